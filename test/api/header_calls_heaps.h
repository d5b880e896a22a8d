// Owns: a call of every function of heaps and theaps that mimalloc.h declares, other than forms of allocation in heaps.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11; each test leaves the main heap as the default one.
#pragma once

#include "test/api/header_calls.h"

MI_TEST(heap_life) {
  // The tests before may have ended with mi_thread_done.
  mi_thread_init();
  mi_heap_t* const heaps[] = {mi_heap_new(), mi_heap_try_new(), mi_heap_new_qsbr(), mi_heap_new_ex(7, true, NULL), mi_heap_new_in_arena(NULL),
                              mi_heap_new_ex_v2(255, false, 0), mi_heap_new_in_arena_v2(0)};
  for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++) {
    if (!MI_CHECK(heaps[i] != NULL)) continue;
    void* const p = mi_heap_malloc(heaps[i], 100);
    use(p, 100, 1);
    MI_CHECK(mi_heap_of(p) == heaps[i]);
    mi_heap_set_numa_affinity(heaps[i], 0);
    mi_heap_guarded_set_sample_rate(heaps[i], 10, 1);
    mi_heap_guarded_set_size_bound(heaps[i], 0, 1000);
    mi_heap_set_debug_fill_preserve(heaps[i], 32);
    mi_heap_destroy(heaps[i]);
    // One that may not be destroyed was deleted.
    MI_CHECK(mi_heap_of(p) == (i == 5 ? mi_heap_main() : NULL));
    if (i == 5) mi_free(p);
  }
  errno = 0;
  MI_CHECK(mi_heap_new_ex(256, true, NULL) == NULL && errno == EINVAL);
  errno = 0;
  MI_CHECK(mi_heap_new_ex(-1, true, NULL) == NULL && errno == EINVAL);
  mi_heap_delete(NULL);
  mi_heap_destroy(NULL);
  mi_heap_delete(mi_heap_main());
  mi_heap_destroy(mi_heap_main());
  use(mi_heap_malloc(mi_heap_main(), 10), 10, 0);
}

MI_TEST(heap_questions) {
  mi_heap_t* const heap = mi_heap_new();
  char* const p = (char*)mi_heap_malloc(heap, 100);
  void* const q = mi_malloc(100);
  void* const large = mi_heap_malloc(heap, 3000000);
  int local = 0;
  MI_CHECK(mi_heap_contains(heap, p) && mi_heap_contains(heap, p + 50) && !mi_heap_contains(heap, q) && mi_heap_contains(NULL, q));
  MI_CHECK(mi_heap_contains(heap, large) && mi_heap_contains_block(heap, large) && mi_heap_contains(heap, (char*)large + 2999999));
  MI_CHECK(mi_heap_contains_block(heap, p) && !mi_heap_contains_block(mi_heap_main(), p) && mi_heap_contains_block(mi_heap_main(), q));
  MI_CHECK(mi_heap_check_owned(heap, p + 99) && !mi_heap_check_owned(heap, q) && !mi_heap_check_owned(heap, &local));
  MI_CHECK(mi_any_heap_contains(p) && mi_any_heap_contains(q) && !mi_any_heap_contains(&local) && !mi_any_heap_contains(NULL));
  MI_CHECK(mi_heap_of(p) == heap && mi_heap_of(q) == mi_heap_main() && mi_heap_of(&local) == NULL && mi_heap_of(NULL) == NULL);
  MI_CHECK(mi_heap_of((void*)UINTPTR_MAX) == NULL && mi_heap_of((void*)1) == NULL);
  MI_CHECK(mi_thread_id_of(p) != 0 && mi_thread_id_of(p) == mi_thread_id_of(q) && mi_thread_id_of(&local) == 0 && mi_thread_id_of(NULL) == 0);
  MI_CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, p, 1) && !mi_unsafe_heap_page_is_under_utilized(heap, q, 100));
  MI_CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, NULL, 100) && !mi_unsafe_heap_page_is_under_utilized(heap, large, 100));
  mi_free(q);
  mi_heap_destroy(heap);
}

MI_TEST(heap_default) {
  mi_heap_t* const heap = mi_heap_new();
  MI_CHECK(mi_heap_get_default() == mi_heap_main() && mi_heap_get_backing() == mi_heap_main());
  MI_CHECK(mi_heap_set_default(heap) == mi_heap_main() && mi_heap_get_default() == heap);
  // Forms of every kind.
  void* const blocks[] = {mi_malloc(10), mi_calloc(10, 10), mi_realloc(NULL, 3000), mi_malloc_aligned(100, 4096), mi_new(50), mi_strdup("x"),
                          mi_zalloc(70000), mi_malloc(5000000), mi_heap_malloc(NULL, 9)};
  for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) MI_CHECK_MSG(mi_heap_of(blocks[i]) == heap, "block %zu", i);
  void* const other = mi_heap_malloc(mi_heap_main(), 10);
  MI_CHECK(mi_heap_of(other) == mi_heap_main());
  MI_CHECK(mi_heap_set_default(NULL) == heap && mi_heap_get_default() == mi_heap_main());
  void* const q = mi_malloc(10);
  MI_CHECK(mi_heap_of(q) == mi_heap_main());
  mi_free(q);
  mi_free(other);
  // A default heap that ends is the default no more.
  mi_heap_set_default(heap);
  mi_heap_delete(heap);
  MI_CHECK(mi_heap_get_default() == mi_heap_main());
  for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
    MI_CHECK(mi_heap_of(blocks[i]) == mi_heap_main());
    mi_free(blocks[i]);
  }
  mi_heap_t* const next = mi_heap_new();
  mi_heap_set_default(next);
  MI_CHECK(mi_heap_of(mi_malloc(10)) == next);
  mi_heap_destroy(next);
  MI_CHECK(mi_heap_get_default() == mi_heap_main());
  void* const r = mi_malloc(10);
  MI_CHECK(mi_heap_of(r) == mi_heap_main());
  mi_free(r);
}

MI_TEST(theaps) {
  mi_heap_t* const heap = mi_heap_new();
  mi_theap_t* const theap = mi_heap_theap(heap);
  mi_theap_t* const main_theap = mi_heap_theap(NULL);
  MI_CHECK(theap != NULL && theap == mi_heap_theap(heap) && main_theap == mi_theap_get_default() && main_theap == mi_heap_theap(mi_heap_main()));
  void* p;
  mi_theap_guarded_set_sample_rate(theap, 0, 0);
  mi_theap_guarded_set_size_bound(theap, 1, 1000);
  use(p = mi_theap_malloc(theap, 100), 100, 1);
  MI_CHECK(mi_heap_of(p) == heap);
  p = mi_theap_realloc(theap, p, 9000);
  MI_CHECK(mi_heap_of(p) == heap && mi_test_all_bytes(p, 100, 1));
  mi_free(p);
  use_zero(p = mi_theap_zalloc(theap, 100), 100);
  p = mi_theap_rezalloc(theap, p, 5000);
  MI_CHECK(p != NULL && mi_test_all_bytes((char*)p + 112, 5000 - 112, 0));
  mi_free(p);
  use_zero(p = mi_theap_calloc(theap, 10, 10), 100);
  mi_free(p);
  MI_CHECK(mi_theap_calloc(theap, mi_test_hide_size(SIZE_MAX / 2), 3) == NULL);
  use(p = mi_theap_malloc_small(theap, 8), 8, 1);
  mi_free(p);
  use_zero(p = mi_theap_zalloc_small(theap, 8), 8);
  mi_free(p);
  use(p = mi_theap_malloc_csize(theap, 64), 64, 1);
  MI_CHECK(mi_heap_of(p) == heap);
  mi_free(p);
  use_zero(p = mi_theap_zalloc_csize(theap, 64), 64);
  mi_free(p);
  use_zero(p = mi_theap_zalloc_csize(theap, 9000), 9000);
  MI_CHECK(mi_heap_of(p) == heap);
  mi_free(p);
  use(p = mi_theap_wmalloc_small(theap, 3), 3 * sizeof(void*), 1);
  mi_free(p);
  use_zero(p = mi_theap_wzalloc_small(theap, 3), 3 * sizeof(void*));
  mi_free(p);
  check_at(p = mi_theap_malloc_aligned(theap, 100, 1024), 1024, 0);
  mi_free(p);
  check_at(p = mi_theap_zalloc_aligned(theap, 100, 1024), 1024, 0);
  use_zero(p, 100);
  mi_free(p);
  use(p = mi_theap_alloc_new(theap, 30), 30, 1);
  mi_free(p);
  use(p = mi_theap_alloc_new_n(theap, 3, 10), 30, 1);
  mi_free(p);
  use(p = mi_theap_alloc_new_nothrow(theap, 30), 30, 1);
  MI_CHECK(mi_heap_of(p) == heap && mi_theap_alloc_new_nothrow(theap, mi_test_hide_size(SIZE_MAX / 2)) == NULL);
  MI_CHECK(mi_theap_set_default(theap) == main_theap && mi_theap_get_default() == theap && mi_heap_get_default() == heap);
  MI_CHECK(mi_heap_of(mi_malloc(10)) == heap);
  void* const from_null = mi_theap_malloc(NULL, 10);
  MI_CHECK(mi_heap_of(from_null) == heap);
  MI_CHECK(mi_theap_set_default(NULL) == theap && mi_theap_get_default() == main_theap);
  mi_theap_collect(theap, false);
  mi_theap_collect(theap, true);
  mi_theap_collect(NULL, true);
  mi_theap_quiescent_abandon(theap);
  MI_CHECK(mi_thread_id_of(p) == 0 && mi_heap_of(p) == heap);
  use(p, 30, 2);
  mi_free(p);
  use(p = mi_theap_malloc(theap, 30), 30, 1);
  mi_theap_set_default(theap);
  mi_theap_delete(theap);
  MI_CHECK(mi_theap_get_default() == main_theap && mi_heap_of(p) == heap && mi_thread_id_of(p) == 0);
  mi_free(p);
  mi_theap_delete(NULL);
  mi_theap_delete(main_theap);
  MI_CHECK(mi_theap_get_default() == main_theap);
  use(p = mi_heap_malloc(heap, 30), 30, 1);
  mi_heap_destroy(heap);
}

typedef struct heap_seen_s {
  size_t areas;
  size_t blocks;
  size_t wrong;
  int tag;
} heap_seen_t;

static bool heap_see(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  heap_seen_t* const seen = (heap_seen_t*)arg;
  seen->wrong += area->heap_tag != seen->tag || !mi_heap_contains(heap, area->blocks);
  if (block == NULL) {
    seen->areas++;
    return true;
  }
  seen->blocks++;
  seen->wrong += size != mi_usable_size(block) || !mi_heap_contains(heap, block);
  return seen->blocks < 100;
}

MI_TEST(visits) {
  mi_heap_t* const heap = mi_heap_new_ex(4, true, NULL);
  void* blocks[60];
  for (size_t i = 0; i < 60; i++) blocks[i] = mi_heap_malloc(heap, i == 59 ? 5000000 : i * i * 10);
  for (size_t i = 0; i < 20; i++) mi_free(blocks[i]);
  heap_seen_t seen = {0, 0, 0, 4};
  MI_CHECK(mi_heap_visit_blocks(heap, true, heap_see, &seen));
  MI_CHECK(seen.blocks == 40 && seen.areas > 1 && seen.wrong == 0);
  seen.blocks = 0;
  MI_CHECK(mi_theap_visit_blocks(mi_heap_theap(heap), true, heap_see, &seen) && seen.blocks == 40 && seen.wrong == 0);
  seen.blocks = 0;
  MI_CHECK(mi_heap_visit_blocks(heap, false, heap_see, &seen) && seen.blocks == 0);
  mi_theap_quiescent_abandon(mi_heap_theap(heap));
  MI_CHECK(mi_heap_visit_abandoned_blocks(heap, true, heap_see, &seen) && seen.blocks == 40 && seen.wrong == 0);
  seen.blocks = 0;
  const mi_subproc_id_t none = {NULL};
  MI_CHECK(mi_abandoned_visit_blocks(none, 4, true, heap_see, &seen) && seen.blocks == 40 && seen.wrong == 0);
  seen.blocks = 0;
  MI_CHECK(mi_abandoned_visit_blocks(none, 5, true, heap_see, &seen) && seen.blocks == 0);
  seen.blocks = 99;
  MI_CHECK(!mi_heap_visit_blocks(heap, true, heap_see, &seen) && seen.blocks == 100);
  MI_CHECK(!mi_heap_visit_blocks(heap, true, NULL, NULL));
  mi_heap_destroy(heap);
}

MI_TEST(reduce) {
  void* blocks[200];
  for (size_t i = 0; i < 200; i++) use(blocks[i] = mi_malloc(i * 100 + 1), i * 100 + 1, (int)i);
  MI_CHECK(mi_thread_id_of(blocks[1]) != 0);
  mi_collect_reduce(SIZE_MAX);
  MI_CHECK(mi_thread_id_of(blocks[1]) != 0);
  mi_collect_reduce(0);
  for (size_t i = 0; i < 200; i++) {
    MI_CHECK(mi_thread_id_of(blocks[i]) == 0 && mi_test_all_bytes(blocks[i], i * 100 + 1, (int)i));
    mi_free(blocks[i]);
  }
}
