// Owns: that types and numbers of the interface are what programs were compiled with: sizes, offsets, limits.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11; figures in words hold on 32 and on 64 bits.
#pragma once

#include <assert.h>

#include "test/api/header_calls.h"
#include "test/api/header_calls_numbers.h"

#define WORD (sizeof(void*))
#define AT(type, field, words) static_assert(offsetof(type, field) == (words)*WORD, #type "." #field)

static_assert(MI_MALLOC_VERSION >= 30403 && MI_MALLOC_VERSION < 40000, "major * 10000 + minor * 100 + patch");
static_assert(MI_SMALL_WSIZE_MAX == 128 && MI_SMALL_SIZE_MAX == 128 * WORD, "small sizes");

static_assert(sizeof(mi_heap_area_t) == 7 * WORD, "mi_heap_area_t");
AT(mi_heap_area_t, blocks, 0);
AT(mi_heap_area_t, reserved, 1);
AT(mi_heap_area_t, committed, 2);
AT(mi_heap_area_t, used, 3);
AT(mi_heap_area_t, block_size, 4);
AT(mi_heap_area_t, full_block_size, 5);
AT(mi_heap_area_t, heap_tag, 6);
AT(mi_heap_area_t, reserved1, 6);

#if !defined(MI_API_V2)
static_assert(sizeof(mi_arena_id_t) == WORD && sizeof(mi_subproc_id_t) == WORD, "names of arenas and sub-processes");
AT(mi_subproc_id_t, _mi_subproc_id, 0);
#else
static_assert(sizeof(mi_arena_id_t) == sizeof(int) && sizeof(mi_subproc_id_t) == WORD, "the same in version 2");
#endif

// The types of functions that programs hand over. A function of a program is assigned without a cast.
static bool layout_block_visit(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  return heap != NULL && area != NULL && block == NULL && size == 0 && arg == NULL;
}
static bool layout_heap_visit(mi_heap_t* heap, void* arg) { return heap != NULL && arg == NULL; }
static bool layout_commit(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  return commit && start == NULL && size == 0 && is_zero == NULL && arg == NULL;
}
static void layout_deferred(bool force, unsigned long long heartbeat, void* arg) {
  MI_CHECK(!force && heartbeat == 0 && arg == NULL);
}
static void layout_output(const char* msg, void* arg) { MI_CHECK(msg == NULL && arg == NULL); }
static void layout_error(int err, void* arg) { MI_CHECK(err == 0 && arg == NULL); }

MI_TEST(types_of_functions) {
  mi_block_visit_fun* const block_visit = layout_block_visit;
  mi_heap_visit_fun* const heap_visit = layout_heap_visit;
  mi_commit_fun_t* const commit = layout_commit;
  mi_deferred_free_fun* const deferred = layout_deferred;
  mi_output_fun* const output = layout_output;
  mi_error_fun* const error = layout_error;
  mi_heap_area_t area;
  memset(&area, 0, sizeof(area));
  MI_CHECK(block_visit(mi_heap_main(), &area, NULL, 0, NULL) && heap_visit(mi_heap_main(), NULL));
  MI_CHECK(commit(true, NULL, 0, NULL, NULL));
  deferred(false, 0, NULL);
  output(NULL, NULL);
  error(0, NULL);
}
