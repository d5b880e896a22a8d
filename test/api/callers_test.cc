// Owns: that the first call of a sample's stack is in the function that called the allocator, whichever function of ours that was.
// May include: test/lib, mimalloc.h, the C++ library.
// Called by: the build, linked with each variant; compiled with frame pointers, as the profiler asks of programs.
// Invariants: each caller stands in a section of their own, so that an address tells which one it is in.
#include <new>

#include <stdint.h>
#include <stdlib.h>

#include "mimalloc.h"
#include "test/lib/test.h"

extern "C" char __start_mi_callers[];
extern "C" char __stop_mi_callers[];

static mi_heap_t* heap;
static char text[400001];

// `size`: what is asked for. Nothing is left to do after the call but to return, and yet it is no tail call.
#define CALLER(name, call)                                                          \
  __attribute__((section("mi_callers"), noinline)) static void* name(size_t size) { \
    void* volatile p = (call);                                                      \
    return p;                                                                       \
  }

#define CALLERS(ROW)                                                         \
  ROW(of_malloc, mi_malloc(size))                                            \
  ROW(of_calloc, mi_calloc(1, size))                                         \
  ROW(of_zalloc, mi_zalloc(size))                                            \
  ROW(of_mallocn, mi_mallocn(1, size))                                       \
  ROW(of_realloc, mi_realloc(nullptr, size))                                 \
  ROW(of_realloc_moved, mi_realloc(mi_malloc(1), size))                      \
  ROW(of_reallocf, mi_reallocf(nullptr, size))                               \
  ROW(of_rezalloc, mi_rezalloc(mi_malloc(1), size))                          \
  ROW(of_aligned, mi_malloc_aligned(size, 64))                               \
  ROW(of_aligned_far, mi_malloc_aligned(size, 1 << 20))                      \
  ROW(of_zalloc_aligned, mi_zalloc_aligned(size, 8))                         \
  ROW(of_memalign, mi_memalign(256, size))                                   \
  ROW(of_valloc, mi_valloc(size))                                            \
  ROW(of_posix_memalign, of_memalign_to(size))                               \
  ROW(of_umalloc, mi_umalloc(size, nullptr))                                 \
  ROW(of_strdup, mi_strdup(text + sizeof(text) - size))                      \
  ROW(of_strndup, mi_strndup(text, size - 1))                                \
  ROW(of_heap, mi_heap_malloc(heap, size))                                   \
  ROW(of_heap_calloc, mi_heap_calloc(heap, 1, size))                         \
  ROW(of_heap_realloc, mi_heap_realloc(heap, mi_heap_malloc(heap, 1), size)) \
  ROW(of_heap_aligned, mi_heap_malloc_aligned(heap, size, 128))              \
  ROW(of_heap_strdup, mi_heap_strdup(heap, text + sizeof(text) - size))      \
  ROW(of_theap, mi_theap_malloc(mi_heap_theap(heap), size))                  \
  ROW(of_mi_new, mi_new(size))                                               \
  ROW(of_mi_new_nothrow, mi_new_nothrow(size))                               \
  ROW(of_mi_new_n, mi_new_n(1, size))                                        \
  ROW(of_mi_new_aligned, mi_new_aligned(size, 64))                           \
  ROW(of_mi_new_aligned_nothrow, mi_new_aligned_nothrow(size, 64))           \
  ROW(of_mi_new_realloc, mi_new_realloc(mi_malloc(1), size))                 \
  ROW(of_heap_alloc_new, mi_heap_alloc_new(heap, size))                      \
  ROW(of_heap_alloc_new_n, mi_heap_alloc_new_n(nullptr, 1, size))            \
  ROW(of_theap_alloc_new, mi_theap_alloc_new(mi_heap_theap(heap), size))     \
  ROW(of_new, ::operator new(size))                                          \
  ROW(of_new_array, ::operator new[](size))                                  \
  ROW(of_new_nothrow, ::operator new(size, std::nothrow))                    \
  ROW(of_new_array_nothrow, ::operator new[](size, std::nothrow))            \
  ROW(of_new_aligned, ::operator new(size, std::align_val_t(64)))            \
  ROW(of_new_array_aligned, ::operator new[](size, std::align_val_t(64)))    \
  ROW(of_new_aligned_nothrow, ::operator new(size, std::align_val_t(64), std::nothrow))

__attribute__((section("mi_callers"), noinline)) static void* of_memalign_to(size_t size) {
  void* p;
  return mi_posix_memalign(&p, 64, size) == 0 ? p : nullptr;
}

CALLERS(CALLER)

static const struct {
  const char* name;
  void* (*call)(size_t size);
} callers[] = {
#define ROW_OF(name, call) {#name, &name},
    CALLERS(ROW_OF)};

enum { SIZES = 4 };
static const size_t sizes[SIZES] = {101, 3001, 40001, 400001};

typedef struct look_s {
  size_t size;
  const void* first;
  bool found;
} look_t;

static bool look(const mi_prof_sample_info_t* info, void* arg) {
  look_t* const to = static_cast<look_t*>(arg);
  if (info->live_bytes == to->size && info->live_objects == 1) {
    to->found = true;
    to->first = info->depth > 0 ? info->stack[0] : nullptr;
  }
  return !to->found;
}

// The caller whose code the address is in, if any: the last that begins before it.
static const char* caller_of(const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  if (at < reinterpret_cast<uintptr_t>(__start_mi_callers) || at > reinterpret_cast<uintptr_t>(__stop_mi_callers)) {
    return "no caller";
  }
  uintptr_t best = reinterpret_cast<uintptr_t>(&of_memalign_to);
  const char* name = best < at ? "of_posix_memalign" : "no caller";
  best = best < at ? best : 0;
  for (const auto& caller : callers) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(caller.call);
    if (start < at && start > best) {
      best = start;
      name = caller.name;
    }
  }
  return name;
}

MI_TEST(each_caller) {
  memset(text, 'x', sizeof(text) - 1);
  heap = mi_heap_new();
  MI_REQUIRE(mi_prof_start(1));
  for (const auto& caller : callers) {
    for (size_t size : sizes) {
      void* const p = caller.call(size);
      MI_REQUIRE(p != nullptr);
      look_t at = {size, nullptr, false};
      MI_CHECK(mi_prof_visit(&look, &at));
      MI_CHECK_MSG(at.found && strcmp(caller_of(at.first), caller.name) == 0, "%s of %zu bytes: %s", caller.name, size,
                   at.found ? caller_of(at.first) : "no sample");
      mi_free(p);
    }
  }
  mi_prof_stop();
  mi_heap_delete(heap);
}

MI_TEST_MAIN()
