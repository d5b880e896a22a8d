// Owns: a call of every function of mimalloc-profile.h, with a check of what it did.
// May include: test/lib, mimalloc-profile.h.
// Called by: header_test.c and header_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11.
#pragma once

#include "mimalloc-profile.h"
#include "test/lib/test.h"

#ifndef MIMALLOC_PROFILE_H
#error "the guard of mimalloc-profile.h has another name"
#endif

static bool profiler_file(const char* base, unsigned number) {
  char path[600];
  snprintf(path, sizeof(path), "%s.%d.%04u.pb", base, (int)getpid(), number);
  return unlink(path) == 0;
}

MI_TEST(profilers) {
  char base[512];
  const char* const folder = getenv("TEST_TMPDIR");
  snprintf(base, sizeof(base), "%s/header_calls_profiler", folder != NULL ? folder : "/tmp");
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const profiler = mi_pprof_profiler_new(1, base, 10000, 0, 0);
  MI_CHECK(profiler != NULL && mi_heap_profile(heap, profiler));
  MI_CHECK(mi_profiler_start(profiler) && !profiler_file(base, 1));
  mi_free(mi_heap_malloc(heap, 12345));
  MI_CHECK(profiler_file(base, 1) && !profiler_file(base, 2));
  mi_heap_profile_disable(heap);
  mi_free(mi_heap_malloc(heap, 12345));
  MI_CHECK(!profiler_file(base, 2));
  MI_CHECK(mi_profile(profiler));
  void* const p = mi_malloc(20000);
  use(p, 20000, 1);
  mi_free(p);
  MI_CHECK(profiler_file(base, 2));
  MI_CHECK(mi_profile(NULL));
  MI_CHECK(mi_subproc_profile(mi_subproc_main(), profiler) && mi_subproc_profile(mi_subproc_main(), NULL));
  MI_CHECK(mi_profiler_snapshot(profiler) && profiler_file(base, 3));
  MI_CHECK(mi_profiler_stop(profiler));
  mi_pprof_profiler_delete(profiler);
  MI_CHECK(!mi_profiler_start(profiler));
  mi_heap_delete(heap);
}
