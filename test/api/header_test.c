// Owns: the public headers as C, compiled for each standard with all warnings as errors.
// May include: test/lib, the public headers.
// Called by: the tests header_c11 and header_c17.
// Invariants: none beyond header_calls.h.
#define _POSIX_C_SOURCE 200809L
#include "test/api/header_calls.h"
#include "test/api/header_calls_arenas.h"
#include "test/api/header_calls_events.h"
#include "test/api/header_calls_heaps.h"
#include "test/api/header_calls_layout.h"
#include "test/api/header_calls_profile.h"
#include "test/api/header_calls_profiler.h"
#include "test/api/header_calls_stats.h"
#include "test/api/header_calls_subproc.h"
#include "test/api/header_calls_threads.h"

#include "mimalloc-override.h"

// Linked with a library that replaces malloc, a name that is no macro would be served all the same.
#if !(defined(malloc) && defined(calloc) && defined(realloc) && defined(free) && defined(strdup) && defined(strndup) && \
      defined(realpath) && defined(memalign) && defined(aligned_alloc) && defined(posix_memalign) &&                    \
      defined(_posix_memalign) && defined(cfree) && defined(valloc) && defined(pvalloc) && defined(reallocf) &&         \
      defined(reallocarray) && defined(reallocarr) && defined(malloc_size) && defined(malloc_usable_size) &&            \
      defined(malloc_good_size) && defined(free_sized) && defined(free_aligned_sized))
#error "mimalloc-override.h misses a name of the C library"
#endif
#if !(defined(_expand) && defined(_msize) && defined(_recalloc) && defined(_strdup) && defined(_strndup) &&            \
      defined(_wcsdup) && defined(_mbsdup) && defined(_dupenv_s) && defined(_wdupenv_s) && defined(_aligned_malloc) && \
      defined(_aligned_realloc) && defined(_aligned_recalloc) && defined(_aligned_msize) && defined(_aligned_free) &&  \
      defined(_aligned_offset_malloc) && defined(_aligned_offset_realloc) && defined(_aligned_offset_recalloc))
#error "mimalloc-override.h misses a name of Microsoft's library"
#endif

MI_TEST(override_macros) {
  // Each name is now one of ours, so that addresses are redirected too.
  void* (*const allocate)(size_t) = malloc;
  void (*const release)(void*) = free;
  MI_CHECK(allocate == mi_malloc && release == mi_free);
  void* p = calloc(3, 7);
  MI_CHECK(mi_is_in_heap_region(p) && mi_test_all_bytes(p, 21, 0));
  p = realloc(p, 100);
  p = reallocarray(p, 3, 50);
  p = _recalloc(p, 3, 100);
  MI_CHECK(mi_is_in_heap_region(p));
  MI_CHECK(malloc_usable_size(p) >= 300 && malloc_size(p) == _msize(p) && malloc_good_size(10) >= 10);
  MI_CHECK_PTR_EQ(_expand(p, 300), p);
  MI_CHECK_EQ(reallocarr(&p, 4, 100), 0);
  p = reallocf(p, 20);
  free(p);
  char* s = strdup("one");
  MI_CHECK(mi_is_in_heap_region(s));
  free(s);
  s = strndup("one", 2);
  MI_CHECK_STREQ(s, "on");
  free(s);
  s = realpath("/", NULL);
  MI_CHECK(mi_is_in_heap_region(s));
  free(s);
  free(s = _strdup("x"));
  free(s = _strndup("xy", 1));
  wchar_t* w = _wcsdup(L"x");
  free(w);
  static const unsigned char x[] = "x";
  free(_mbsdup(x));
  size_t n = 0;
  MI_CHECK_EQ(_dupenv_s(&s, &n, "PATH"), 0);
  free(s);
  MI_CHECK_EQ(_wdupenv_s(&w, &n, L"PATH"), 0);
  free(w);
  cfree(malloc(1));
  free(valloc(1));
  free(pvalloc(1));
  check_at(p = memalign(64, 1), 64, 0);
  free_aligned_sized(p, 64, 1);
  check_at(p = aligned_alloc(64, 64), 64, 0);
  free_sized(p, 64);
  MI_CHECK_EQ(posix_memalign(&p, 64, 1), 0);
  free(p);
  MI_CHECK_EQ(_posix_memalign(&p, 64, 1), 0);
  free(p);
  // Microsoft's order: size first.
  check_at(p = _aligned_malloc(10, 256), 256, 0);
  check_at(p = _aligned_realloc(p, 20, 256), 256, 0);
  check_at(p = _aligned_recalloc(p, 3, 10, 256), 256, 0);
  MI_CHECK(_aligned_msize(p, 256, 0) >= 30);
  _aligned_free(p);
  check_at(p = _aligned_offset_malloc(10, 256, 8), 256, 8);
  check_at(p = _aligned_offset_realloc(p, 20, 256, 8), 256, 8);
  check_at(p = _aligned_offset_recalloc(p, 3, 10, 256, 8), 256, 8);
  _aligned_free(p);
}

MI_TEST_MAIN()
