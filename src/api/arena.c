// Owns: arenas: reserved, lent and huge ones, and questions about them.
// May include: base, heap, region, include/mimalloc.h.
// Called by: programs.
// Invariants: what fails stores no id; an id of version 2 is the same number in an int.
#include <limits.h>

#include "src/api/api.h"
#include "src/heap/process.h"
#include "src/region/arena-program.h"

enum { MI_API_MSECS_MAX = INT_MAX };

// Stores the id of what was made. 0, or ENOMEM if there is nothing.
static int mi_arena_answer(const mi_arena_t* arena, mi_arena_id_t* arena_id) {
  if (arena_id != NULL) {
    *arena_id = arena == NULL ? NULL : _mi_arena_id(arena);
  }
  return arena == NULL ? ENOMEM : 0;
}

static int mi_arena_answer_v2(const mi_arena_t* arena, int* arena_id) {
  mi_arena_id_t id;
  const int err = mi_arena_answer(arena, &id);
  if (arena_id != NULL) {
    *arena_id = (int)(uintptr_t)id;
  }
  return err;
}

static mi_arena_t* mi_arena_reserve(size_t size, bool commit, bool allow_large, bool exclusive) {
  return _mi_process_init() ? _mi_arena_reserve(size, commit, allow_large, exclusive) : NULL;
}

int mi_reserve_os_memory(size_t size, bool commit, bool allow_large) {
  return mi_reserve_os_memory_ex(size, commit, allow_large, false, NULL);
}

int mi_reserve_os_memory_ex(size_t size, bool commit, bool allow_large, bool exclusive, mi_arena_id_t* arena_id) {
  return mi_arena_answer(mi_arena_reserve(size, commit, allow_large, exclusive), arena_id);
}

int mi_reserve_os_memory_ex_v2(size_t size, bool commit, bool allow_large, bool exclusive, int* arena_id) {
  return mi_arena_answer_v2(mi_arena_reserve(size, commit, allow_large, exclusive), arena_id);
}

// Lent memory

static mi_arena_t* mi_arena_manage(const mi_lent_memory_t* memory) {
  return _mi_process_init() ? _mi_arena_manage(memory) : NULL;
}

bool mi_manage_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node,
                      bool exclusive, mi_commit_fun_t* commit_fun, void* commit_fun_arg, mi_arena_id_t* arena_id) {
  const mi_lent_memory_t memory = {start, size, is_committed, is_pinned, is_zero,
                                   exclusive, numa_node, commit_fun, commit_fun_arg};
  return mi_arena_answer(mi_arena_manage(&memory), arena_id) == 0;
}

bool mi_manage_os_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node) {
  return mi_manage_os_memory_ex(start, size, is_committed, is_pinned, is_zero, numa_node, false, NULL);
}

bool mi_manage_os_memory_ex(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node,
                            bool exclusive, mi_arena_id_t* arena_id) {
  return mi_manage_memory(start, size, is_committed, is_pinned, is_zero, numa_node, exclusive, NULL, NULL, arena_id);
}

bool mi_manage_os_memory_ex_v2(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node,
                               bool exclusive, int* arena_id) {
  const mi_lent_memory_t memory = {start, size, is_committed, is_pinned, is_zero, exclusive, numa_node, NULL, NULL};
  return mi_arena_answer_v2(mi_arena_manage(&memory), arena_id) == 0;
}

// Huge pages

static mi_arena_t* mi_arena_reserve_huge(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive) {
  size_t got;
  return _mi_process_init()
      ? _mi_arena_reserve_huge(pages, numa_node, (int64_t)_mi_min(timeout_msecs, MI_API_MSECS_MAX), exclusive, &got)
      : NULL;
}

int mi_reserve_huge_os_pages_at(size_t pages, int numa_node, size_t timeout_msecs) {
  return mi_reserve_huge_os_pages_at_ex(pages, numa_node, timeout_msecs, false, NULL);
}

int mi_reserve_huge_os_pages_at_ex(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                   mi_arena_id_t* arena_id) {
  const int err = mi_arena_answer(mi_arena_reserve_huge(pages, numa_node, timeout_msecs, exclusive), arena_id);
  return pages == 0 ? 0 : err;
}

int mi_reserve_huge_os_pages_at_ex_v2(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive, int* arena_id) {
  const int err = mi_arena_answer_v2(mi_arena_reserve_huge(pages, numa_node, timeout_msecs, exclusive), arena_id);
  return pages == 0 ? 0 : err;
}

static size_t mi_arenas_reserve_huge(size_t pages, size_t numa_nodes, size_t timeout_msecs) {
  return pages > 0 && _mi_process_init()
      ? _mi_arenas_reserve_huge(pages, numa_nodes, (int64_t)_mi_min(timeout_msecs, MI_API_MSECS_MAX))
      : 0;
}

int mi_reserve_huge_os_pages_interleave(size_t pages, size_t numa_nodes, size_t timeout_msecs) {
  return mi_arenas_reserve_huge(pages, numa_nodes, timeout_msecs) > 0 || pages == 0 ? 0 : ENOMEM;
}

int mi_reserve_huge_os_pages(size_t pages, double max_secs, size_t* pages_reserved) {
  const double msecs = max_secs * 1000;
  const size_t timeout_msecs = msecs <= 0 ? 0 : msecs < (double)MI_API_MSECS_MAX ? (size_t)msecs + 1
                                                                                 : MI_API_MSECS_MAX;
  const size_t got = mi_arenas_reserve_huge(pages, 0, timeout_msecs);
  _mi_api_store(pages_reserved, got);
  return got > 0 || pages == 0 ? 0 : ENOMEM;
}

// Questions

void* mi_arena_area(mi_arena_id_t arena_id, size_t* size) {
  const mi_arena_t* const arena = _mi_arena_of_id(arena_id);
  _mi_api_store(size, arena == NULL ? 0 : arena->slice_count * MI_SLICE_SIZE);
  return arena == NULL ? NULL : arena->base;
}

void* mi_arena_area_v2(int arena_id, size_t* size) {
  return mi_arena_area((mi_arena_id_t)(uintptr_t)(arena_id > 0 ? arena_id : 0), size);
}

bool mi_arena_contains(mi_arena_id_t arena_id, const void* p) {
  const mi_arena_t* const arena = _mi_arena_of_id(arena_id);
  return arena != NULL && _mi_arena_of(p) == arena;
}

size_t mi_arena_min_alignment(void) { return MI_SLICE_SIZE; }
size_t mi_arena_min_size(void) { return MI_SLICE_SIZE; }

size_t mi_arena_max_object_size(void) { return _mi_min(_mi_arena_slices_max(), MI_ALLOC_SIZE_MAX / MI_SLICE_SIZE) * MI_SLICE_SIZE; }

void mi_arenas_purge(void) { _mi_arenas_purge(0, true); }
void mi_arenas_print(void) { _mi_arenas_print(NULL, NULL); }
void mi_debug_show_arenas(void) { mi_arenas_print(); }
