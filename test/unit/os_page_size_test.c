// Owns: tests of everything that rounds, guards, commits and purges under OS pages of 4, 16 and 64 KiB.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the size is set before the allocator starts, in a child of its own; a larger one than the machine's is a
// multiple of it, so the system takes every range that is right for the larger one. Reservations begin at multiples of
// it, as that system's do: linked with -Wl,--wrap for both ways to reserve.
#include <pthread.h>
#include <sys/mman.h>

#include "mimalloc.h"
#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/region/arena.h"
#include "src/region/meta.h"
#include "src/sys/options.h"
#include "src/sys/os.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { CHILD_MS = 60000,
       SLOTS = 500 };

static const size_t mi_page_size_test_sizes[] = {4096, 16384, 65536};

int __real__mi_prim_reserve_at(void* wish, size_t size, bool commit, void** p);
int __wrap__mi_prim_reserve_at(void* wish, size_t size, bool commit, void** p);
int __wrap__mi_prim_reserve(size_t size, bool commit, void** p);

int __wrap__mi_prim_reserve_at(void* wish, size_t size, bool commit, void** p) {
  const size_t page = _mi_os_config.page_size;
  if (page == 0 || size > SIZE_MAX - page) {
    return __real__mi_prim_reserve_at(wish, size, commit, p);
  }
  // What is not whole pages of that size would be refused or rounded there.
  MI_CHECK(size % page == 0 && _mi_is_aligned(wish, page));
  void* base;
  const int error = __real__mi_prim_reserve_at(wish, size + page, commit, &base);
  if (error != 0) {
    return error;
  }
  const size_t head = (size_t)(_mi_align_up_ptr((uintptr_t)base, page) - (uintptr_t)base);
  if (head > 0) {
    (void)_mi_prim_release(base, head);
  }
  (void)_mi_prim_release((uint8_t*)base + head + size, page - head);
  *p = (uint8_t*)base + head;
  return 0;
}

int __wrap__mi_prim_reserve(size_t size, bool commit, void** p) { return __wrap__mi_prim_reserve_at(NULL, size, commit, p); }

static void mi_page_size_test_set(size_t size) {
  _mi_os_init();
  if (size < _mi_os_config.page_size) {
    // Pages of this machine are larger already: its own size stands for the smaller ones.
    return;
  }
  // Closed since the start.
  MI_REQUIRE(_mi_prim_unprotect(&_mi_fixed, sizeof(_mi_fixed)) == 0);
  _mi_os_config.page_size = size;
  _mi_os_config.alloc_granularity = size;
}

// Whether the system lets the byte be read, without reading it.
static bool mi_page_size_test_readable(const void* p) {
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const bool readable = write(fds[1], p, 1) == 1;
  close(fds[0]);
  close(fds[1]);
  return readable;
}

static void mi_page_size_test_reserve(void* arg) {
  const size_t size = *(const size_t*)arg;
  mi_page_size_test_set(size);
  const size_t page = _mi_os_page_size();
  MI_CHECK(page >= size && page % size == 0);
  for (size_t pages = 1; pages <= 16; pages *= 4) {
    for (size_t guard = 0; guard <= 2 * page; guard += page) {
      mi_os_block_t os;
      uint8_t* const p = _mi_os_reserve_aligned(pages * page, 4 * page, guard, true, &os);
      MI_REQUIRE(p != NULL);
      MI_CHECK(_mi_is_aligned(p, 4 * page));
      p[0] = p[pages * page - 1] = 1;
      if (guard > 0) {
        MI_CHECK(!mi_page_size_test_readable(p - 1) && !mi_page_size_test_readable(p - guard));
        MI_CHECK(!mi_page_size_test_readable(p + pages * page) && !mi_page_size_test_readable(p + pages * page + guard - 1));
      }
      MI_CHECK(_mi_os_protect(p, page, false) && !mi_page_size_test_readable(p + page - 1));
      MI_CHECK(_mi_os_unprotect(p, page) && p[0] == 1);
      MI_CHECK(_mi_os_decommit(p, page) && _mi_os_commit(p, page) && p[0] == 0);
      _mi_os_release(&os);
    }
  }
  // Metadata lies between guards, the first of it all together.
  const size_t much = (size_t)256 << 20;
  uint8_t* const permanent = _mi_os_reserve_permanent(much, true);
  MI_CHECK(permanent == NULL || (!mi_page_size_test_readable(permanent - 1) && !mi_page_size_test_readable(permanent + much)));
  uint8_t* const piece = _mi_os_reserve_permanent(3 * page, true);
  MI_REQUIRE(piece != NULL);
  MI_CHECK(mi_page_size_test_readable(piece) && mi_page_size_test_readable(piece + 3 * page - 1));
}

static void* mi_page_size_test_slots[SLOTS];

static void mi_page_size_test_steps(uint64_t seed, int steps) {
  for (int i = 0; i < steps; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t size = (size_t)(r >> 20) % (r % 64 == 0 ? 5000000 : r % 8 == 0 ? 200000
                                                                                : 2000);
    void* const p = r % 3 == 0 ? mi_zalloc(size) : r % 3 == 1 ? mi_malloc_aligned(size, (size_t)16 << (r >> 8) % 14)
                                                              : mi_malloc(size);
    MI_REQUIRE(p != NULL);
    MI_CHECK(r % 3 != 0 || mi_test_all_bytes(p, size, 0));
    mi_test_fill(p, _mi_min(size, 5000), size);
    void** const slot = &mi_page_size_test_slots[(r >> 40) % SLOTS];
    *slot = *slot == NULL || r % 5 != 0 ? (mi_free(*slot), p) : (mi_free(p), mi_realloc(*slot, size + 1));
    MI_REQUIRE(*slot != NULL);
  }
}

static void* mi_page_size_test_thread(void* arg) {
  (void)arg;
  for (size_t size = 8; size < 3000000; size = size * 3 / 2) {
    mi_free(mi_malloc(size));
  }
  return NULL;
}

static void mi_page_size_test_work(void* arg) {
  const size_t size = *(const size_t*)arg;
  mi_page_size_test_set(size);
  MI_REQUIRE(_mi_process_init());
  for (int mode = 0; mode < 4; mode++) {
    _mi_option_set(mi_option_purge_delay, mode == 0 ? 1000 : 0);
    _mi_option_set(mi_option_purge_decommits, mode != 2);
    _mi_option_set(mi_option_arena_eager_commit, mode == 3 ? 0 : 2);
    mi_page_size_test_steps((uint64_t)mode + 1, 4000);
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_page_size_test_thread, NULL) == 0);
    pthread_join(thread, NULL);
  }
  for (size_t i = 0; i < SLOTS; i++) {
    mi_free(mi_page_size_test_slots[i]);
    mi_page_size_test_slots[i] = NULL;
  }
  _mi_option_set(mi_option_purge_decommits, 1);
  mi_collect(true);
  MI_CHECK_MSG(mi_test_rss() < 64 * MI_MIB, "%zu KiB remain", mi_test_rss() >> 10);
  // The page map, the arenas and their metadata are whole pages of that size.
  const mi_arena_t* const arena = _mi_arena_at(0);
  MI_REQUIRE(arena != NULL);
  MI_CHECK(_mi_is_aligned(arena->base, _mi_os_page_size()) && arena->os.size % _mi_os_page_size() == 0 && arena->meta_os.size % _mi_os_page_size() == 0);
}

// A heap with its theap, blocks of every kind, destroyed: under OS pages as large as a slice nothing is torn.
static void mi_page_size_test_heaps(void* arg) {
  const size_t size = *(const size_t*)arg;
  mi_page_size_test_set(size);
  for (int round = 0; round < 20; round++) {
    mi_heap_t* const heap = mi_heap_new();
    MI_REQUIRE(heap != NULL);
    for (size_t n = 1; n < 20000000; n = n * 2 + 1) {
      char* const p = mi_heap_malloc(heap, n);
      MI_REQUIRE(p != NULL);
      p[0] = p[n - 1] = 1;
    }
    mi_heap_destroy(heap);
  }
}

static void mi_page_size_test_each(void (*fn)(void* arg)) {
  for (size_t i = 0; i < sizeof(mi_page_size_test_sizes) / sizeof(mi_page_size_test_sizes[0]); i++) {
    size_t size = mi_page_size_test_sizes[i];
    static mi_test_child_t child;
    mi_test_child_run(&child, fn, &size, CHILD_MS);
    MI_CHECK_CHILD_OK(&child, size == 4096 ? "4 KiB" : size == 16384 ? "16 KiB"
                                                                     : "64 KiB");
  }
}

MI_TEST(reservations_and_guards) { mi_page_size_test_each(&mi_page_size_test_reserve); }

MI_TEST(allocation_and_purge) { mi_page_size_test_each(&mi_page_size_test_work); }

MI_TEST(heaps) { mi_page_size_test_each(&mi_page_size_test_heaps); }

MI_TEST_MAIN()
