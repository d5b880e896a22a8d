// Owns: the calls that differ in MI_API_V2: the order of typed forms, numbers for arenas, addresses for sub-processes, theaps.
// May include: test/lib, mimalloc.h with MI_API_V2.
// Called by: header_v2_test.c and header_v2_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11; what a pointer or a number goes to is checked against what version 3 says of it.
#pragma once

#include <pthread.h>

#include "test/api/header_calls.h"

MI_TEST(typed_v2) {
  mi_thread_init();  // the tests before may have ended with mi_thread_done
  pair_t* p = mi_malloc_tp(pair_t);
  use(p, sizeof(pair_t), 1);
  p = mi_reallocn_tp(p, pair_t, 100);
  MI_CHECK(mi_test_all_bytes(p, sizeof(pair_t), 1));
  mi_free(p);
  use_zero(p = mi_calloc_tp(pair_t, 3), 3 * sizeof(pair_t));
  p = mi_recalloc_tp(p, pair_t, 30);
  MI_CHECK(p != NULL && p[29].b == 0);
  mi_free(p);
  mi_heap_t* const h = mi_heap_new();
  if (!MI_CHECK(h != NULL)) return;
  use(mi_heap_malloc_tp(h, pair_t), sizeof(pair_t), 1);
  use_zero(mi_heap_zalloc_tp(h, pair_t), sizeof(pair_t));
  use_zero(p = mi_heap_calloc_tp(h, pair_t, 3), 3 * sizeof(pair_t));
  p = mi_heap_recalloc_tp(h, p, pair_t, 30);
  MI_CHECK(p != NULL && p[29].b == 0 && mi_heap_contains_block(h, p));
  p = mi_heap_mallocn_tp(h, pair_t, 3);
  p = mi_heap_reallocn_tp(h, p, pair_t, 30);
  use(p, 30 * sizeof(pair_t), 1);
  MI_CHECK(mi_heap_contains_block(h, p));
  mi_heap_destroy(h);
}

MI_TEST(theaps_v2) {
  mi_heap_t* const h = mi_heap_new();
  if (!MI_CHECK(h != NULL)) return;
  mi_theap_t* const before = mi_theap_set_default(h);
  MI_CHECK_PTR_EQ(before, mi_heap_get_backing());
  MI_CHECK_PTR_EQ(mi_theap_get_default(), h);
  MI_CHECK_PTR_EQ(mi_heap_get_default(), h);
  void* p = mi_malloc(10);
  MI_CHECK(mi_heap_contains_block(h, p));
  mi_theap_guarded_set_sample_rate(h, 0, 0);
  mi_theap_guarded_set_size_bound(h, 1, 1000);
  use(p = mi_theap_realloc(h, p, 1000), 1000, 1);
  use(mi_theap_malloc(h, 10), 10, 1);
  use_zero(mi_theap_zalloc(h, 10), 10);
  use_zero(mi_theap_calloc(h, 10, 10), 100);
  use(mi_theap_malloc_small(h, 10), 10, 1);
  check_at(mi_theap_malloc_aligned(h, 10, 256), 256, 0);
  mi_theap_collect(h, true);
  MI_CHECK_PTR_EQ(mi_theap_set_default(before), h);
  MI_CHECK(mi_heap_check_owned(h, p));
  mi_heap_destroy(h);
}

MI_TEST(arenas_v2) {
  mi_arena_id_t id = 0;
  struct {
    int before;
    mi_arena_id_t id;
    int after;
  } made = {-1, 0, -1};
  const size_t size = (size_t)64 << 20;
  MI_CHECK_EQ(mi_reserve_os_memory_ex(size, false, false, true, &made.id), 0);
  // An id of version 3 is larger and would have overwritten the neighbour.
  MI_CHECK(made.id > 0 && made.before == -1 && made.after == -1);
  size_t found = 0;
  char* const start = (char*)mi_arena_area(made.id, &found);
  MI_CHECK(start != NULL && found >= size);
  mi_heap_t* const h = mi_heap_new_in_arena(made.id);
  if (!MI_CHECK(h != NULL)) return;
  char* p = (char*)mi_heap_malloc(h, 1000);
  MI_CHECK(p >= start && p < start + found);
  mi_heap_destroy(h);
  mi_heap_t* const tagged = mi_heap_new_ex(5, false, made.id);
  if (!MI_CHECK(tagged != NULL)) return;
  p = (char*)mi_heap_malloc(tagged, 1000);
  MI_CHECK(p >= start && p < start + found);
  mi_heap_destroy(tagged);  // as mi_heap_delete, since destruction was not allowed
  memset(p, 1, 1000);
  mi_free(p);
  void* const lent = mi_malloc_aligned(size, size);
  MI_CHECK(mi_manage_os_memory_ex((char*)lent, 0, true, false, false, -1, true, &id) == false && id == 0);
  mi_free(lent);
  // There are as many huge OS pages as the machine sets aside, which may be none.
  const int error = mi_reserve_huge_os_pages_at_ex(1, -1, 1, true, &id);
  MI_CHECK(error == 0 ? id > made.id : error == ENOMEM && id == 0);
}

static void* in_sub_process(void* arg) {
  mi_subproc_add_current_thread(*(mi_subproc_id_t*)arg);
  use(mi_malloc(100), 100, 1);
  return NULL;
}

MI_TEST(sub_processes_v2) {
  mi_subproc_id_t s = mi_subproc_new();
  MI_CHECK(s != NULL && s != mi_subproc_main());
  pthread_t thread;
  MI_CHECK_EQ(pthread_create(&thread, NULL, in_sub_process, &s), 0);
  MI_CHECK_EQ(pthread_join(thread, NULL), 0);
  mi_subproc_delete(s);
}
