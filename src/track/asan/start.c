// Owns: the beginning of AddressSanitizer as seen from here, and the pages that its search for leaks begins at.
// May include: base, track, the sanitizer's header.
// Called by: the loader; region, heap.
// Invariants: the run time is not called before it has started, as it calls malloc while it starts. What lies in pages that were
// made before that is searched as well, as long as there are no more of them than have a place here.
#include "src/track/track.h"

#ifdef MI_TRACK_HAS_START

#include <sanitizer/lsan_interface.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/atomic.h"

#pragma weak __asan_init
#pragma weak __lsan_register_root_region
#pragma weak __lsan_unregister_root_region

void __asan_init(void);

bool _mi_track_is_on;

// Pages of the time before the start. Where there are more of them nothing is searched.
enum { MI_TRACK_EARLY_MAX = 128 };

static struct {
  size_t count;
  struct {
    const void* start;
    size_t size;
  } pages[MI_TRACK_EARLY_MAX];
} mi_track_early;

static bool mi_track_has_roots(void) { return mi_track_early.count <= MI_TRACK_EARLY_MAX; }

void _mi_track_page(const void* p, size_t size) {
  if (_mi_track_is_on) {
    if (mi_track_has_roots()) {
      __lsan_register_root_region(p, size);
    }
    return;
  }
  if (mi_track_early.count < MI_TRACK_EARLY_MAX) {
    mi_track_early.pages[mi_track_early.count].start = p;
    mi_track_early.pages[mi_track_early.count].size = size;
  }
  // More than there are places stays more.
  mi_track_early.count += mi_track_has_roots();
}

void _mi_track_page_gone(const void* p, size_t size) {
  if (_mi_track_is_on) {
    if (mi_track_has_roots()) {
      __lsan_unregister_root_region(p, size);
    }
    return;
  }
  for (size_t i = 0; mi_track_has_roots() && i < mi_track_early.count; i++) {
    if (mi_track_early.pages[i].start == p) {
      mi_track_early.pages[i] = mi_track_early.pages[--mi_track_early.count];
      return;
    }
  }
}

// The allocator's own, hidden from all others: the run time's has nothing to call yet when it first calls malloc.
int clock_gettime(clockid_t clock, struct timespec* now) { return (int)syscall(SYS_clock_gettime, clock, now); }

// Before constructors of the program, so that there is one thread. The run time may be about to be started by one of them.
__attribute__((constructor(101))) static void mi_track_start(void) {
  if (__asan_init == NULL || __lsan_register_root_region == NULL || __asan_poison_memory_region == NULL) {
    return;
  }
  __asan_init();
  _mi_track_is_on = true;
  for (size_t i = 0; mi_track_has_roots() && i < mi_track_early.count; i++) {
    __lsan_register_root_region(mi_track_early.pages[i].start, mi_track_early.pages[i].size);
  }
}

#endif
