// Owns: calls of sub-processes, in each language standard.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc.
// Invariants: valid in C11 and C++11; the thread is in the main sub-process at the end.
#pragma once

#include "test/api/header_calls.h"

static bool count_heap(mi_heap_t* heap, void* arg) {
  ++*(int*)arg;
  return heap != NULL;
}

MI_TEST(subproc) {
  const mi_subproc_id_t main_id = mi_subproc_main();
  MI_CHECK_PTR_EQ(mi_subproc_current()._mi_subproc_id, main_id._mi_subproc_id);
  mi_heap_t* const main_heap = mi_heap_main();
  const mi_subproc_id_t id = mi_subproc_new();
  if (!MI_CHECK(id._mi_subproc_id != NULL)) return;
  mi_subproc_add_current_thread(id);
  MI_CHECK_PTR_EQ(mi_subproc_current()._mi_subproc_id, id._mi_subproc_id);
  MI_CHECK(mi_heap_main() != main_heap);
  void* p = mi_malloc(100);
  use(p, 100, 1);
  int heaps = 0;
  MI_CHECK(mi_subproc_visit_heaps(id, count_heap, &heaps));
  MI_CHECK_EQ(heaps, 1);
  mi_subproc_add_current_thread(main_id);
  MI_CHECK_PTR_EQ(mi_heap_main(), main_heap);
  mi_subproc_delete(id);
  mi_free(p);
  mi_subproc_destroy(id);
}
