// Owns: heaps, and allocation in them.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs.
// Invariants: each form finds the calling thread's theap of the heap and is then what it is without a heap.
#include "src/api/api.h"
#include "src/heap/sample.h"
#include "src/heap/query.h"
#include "src/heap/subproc.h"

enum { MI_HEAP_TAG_MAX = 255 };

static mi_heap_t* mi_heap_or_enomem(mi_heap_t* heap) {
  if (mi_unlikely(heap == NULL)) {
    errno = ENOMEM;
  }
  return heap;
}

static const mi_heap_t* mi_heap_or_main(const mi_heap_t* heap) { return heap != NULL ? heap : _mi_subproc_current(); }

// Making and ending

mi_heap_t* mi_heap_new(void) { return mi_heap_or_enomem(_mi_heap_new()); }
mi_heap_t* mi_heap_try_new(void) { return _mi_heap_new(); }
mi_heap_t* mi_heap_new_qsbr(void) { return mi_heap_new(); }

mi_heap_t* mi_heap_new_ex(int heap_tag, bool allow_destroy, mi_arena_id_t arena_id) {
  mi_arena_t* const arena = _mi_arena_of_id(arena_id);
  if (heap_tag < 0 || heap_tag > MI_HEAP_TAG_MAX || (arena_id != NULL && arena == NULL)) {
    errno = EINVAL;
    return NULL;
  }
  const mi_heap_config_t config = {.tag = heap_tag, .allow_destroy = allow_destroy, .arena = arena};
  return mi_heap_or_enomem(_mi_heap_new_as(&config));
}

mi_heap_t* mi_heap_new_ex_v2(int heap_tag, bool allow_destroy, int arena_id) {
  return mi_heap_new_ex(heap_tag, allow_destroy, (mi_arena_id_t)(intptr_t)arena_id);
}

mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t arena_id) { return mi_heap_new_ex(0, true, arena_id); }
mi_heap_t* mi_heap_new_in_arena_v2(int arena_id) { return mi_heap_new_ex_v2(0, true, arena_id); }

void mi_heap_delete(mi_heap_t* heap) { _mi_heap_delete(heap); }
void mi_heap_destroy(mi_heap_t* heap) { _mi_heap_destroy(heap); }

// The default one

mi_heap_t* mi_heap_main(void) { return _mi_subproc_current(); }
mi_heap_t* mi_heap_get_backing(void) { return _mi_subproc_current(); }

mi_heap_t* mi_heap_get_default(void) {
  const mi_theap_t* const theap = _mi_theap_default();
  mi_heap_t* const heap = theap == NULL ? NULL : mi_atomic_load_relaxed(&theap->heap);
  return heap != NULL ? heap : _mi_subproc_current();
}

mi_heap_t* mi_heap_set_default(mi_heap_t* heap) {
  mi_heap_t* const before = mi_heap_get_default();
  mi_theap_t* const theap = _mi_heap_theap(heap);
  if (mi_likely(theap != NULL)) {
    _mi_theap_choose_default(theap);
  }
  return before;
}

// How it behaves

void mi_heap_collect(mi_heap_t* heap, bool force) { _mi_heap_collect(heap, force); }

void mi_heap_set_numa_affinity(mi_heap_t* heap, int numa_node) {
  mi_atomic_store_relaxed(&(heap != NULL ? heap : _mi_subproc_current())->numa_node, numa_node);
}

void mi_heap_set_debug_fill_preserve(mi_heap_t* heap, size_t preserve) {
  if (heap != NULL) {
    mi_atomic_store_relaxed(&heap->fill_preserve, (uint32_t)_mi_align_up(_mi_min(preserve, MI_LARGE_BLOCK_MAX), 8));
  }
}

void mi_heap_guarded_set_sample_rate(mi_heap_t* heap, size_t sample_rate, size_t seed) {
  _mi_sample_set_heap_rate(heap != NULL ? heap : _mi_subproc_current(), sample_rate, seed);
}

void mi_heap_guarded_set_size_bound(mi_heap_t* heap, size_t min, size_t max) {
  _mi_sample_set_heap_bounds(heap != NULL ? heap : _mi_subproc_current(), min, max);
}

// Questions

mi_heap_t* mi_heap_of(const void* p) { return _mi_heap_of(p); }
bool mi_heap_contains(const mi_heap_t* heap, const void* p) { return _mi_heap_of(p) == mi_heap_or_main(heap); }
bool mi_any_heap_contains(const void* p) { return _mi_heap_of(p) != NULL; }
bool mi_heap_contains_block(mi_heap_t* heap, const void* p) { return mi_heap_contains(heap, p); }
bool mi_heap_check_owned(mi_heap_t* heap, const void* p) { return mi_heap_contains(heap, p); }

bool mi_unsafe_heap_page_is_under_utilized(mi_heap_t* heap, void* p, size_t perc_threshold) {
  return _mi_page_is_under_utilized(mi_heap_or_main(heap), p, perc_threshold);
}

// Allocation

void* mi_heap_malloc(mi_heap_t* heap, size_t size) { return _mi_api_heap_alloc(heap, size, false); }
void* mi_heap_zalloc(mi_heap_t* heap, size_t size) { return _mi_api_heap_alloc(heap, size, true); }

void* mi_heap_calloc(mi_heap_t* heap, size_t count, size_t size) {
  return _mi_api_heap_alloc(heap, _mi_api_total(count, size), true);
}

void* mi_heap_mallocn(mi_heap_t* heap, size_t count, size_t size) {
  return _mi_api_heap_alloc(heap, _mi_api_total(count, size), false);
}

void* mi_heap_malloc_small(mi_heap_t* heap, size_t size) { return _mi_api_heap_alloc(heap, size, false); }
void* mi_heap_zalloc_small(mi_heap_t* heap, size_t size) { return _mi_api_heap_alloc(heap, size, true); }

void* mi_heap_realloc(mi_heap_t* heap, void* p, size_t newsize) {
  return _mi_realloc(_mi_api_theap(heap), p, newsize, false);
}

void* mi_heap_reallocn(mi_heap_t* heap, void* p, size_t count, size_t size) {
  return _mi_realloc(_mi_api_theap(heap), p, _mi_api_total(count, size), false);
}

void* mi_heap_reallocf(mi_heap_t* heap, void* p, size_t newsize) {
  void* const q = mi_heap_realloc(heap, p, newsize);
  if (mi_unlikely(q == NULL)) {
    _mi_free(p);
  }
  return q;
}

void* mi_heap_rezalloc(mi_heap_t* heap, void* p, size_t newsize) {
  return _mi_realloc(_mi_api_theap(heap), p, newsize, true);
}

void* mi_heap_recalloc(mi_heap_t* heap, void* p, size_t newcount, size_t size) {
  return _mi_realloc(_mi_api_theap(heap), p, _mi_api_total(newcount, size), true);
}

void* mi_heap_malloc_aligned(mi_heap_t* heap, size_t size, size_t alignment) {
  return _mi_alloc_aligned(_mi_api_theap(heap), size, alignment, 0, false);
}

void* mi_heap_malloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) {
  return _mi_alloc_aligned(_mi_api_theap(heap), size, alignment, offset, false);
}

void* mi_heap_zalloc_aligned(mi_heap_t* heap, size_t size, size_t alignment) {
  return _mi_alloc_aligned(_mi_api_theap(heap), size, alignment, 0, true);
}

void* mi_heap_zalloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) {
  return _mi_alloc_aligned(_mi_api_theap(heap), size, alignment, offset, true);
}

void* mi_heap_calloc_aligned(mi_heap_t* heap, size_t count, size_t size, size_t alignment) {
  return mi_heap_zalloc_aligned(heap, _mi_api_total(count, size), alignment);
}

void* mi_heap_calloc_aligned_at(mi_heap_t* heap, size_t count, size_t size, size_t alignment, size_t offset) {
  return mi_heap_zalloc_aligned_at(heap, _mi_api_total(count, size), alignment, offset);
}

void* mi_heap_realloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment) {
  return _mi_realloc_aligned(_mi_api_theap(heap), p, newsize, alignment, 0, false);
}

void* mi_heap_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset) {
  return _mi_realloc_aligned(_mi_api_theap(heap), p, newsize, alignment, offset, false);
}

void* mi_heap_rezalloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment) {
  return _mi_realloc_aligned(_mi_api_theap(heap), p, newsize, alignment, 0, true);
}

void* mi_heap_rezalloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset) {
  return _mi_realloc_aligned(_mi_api_theap(heap), p, newsize, alignment, offset, true);
}

void* mi_heap_recalloc_aligned(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment) {
  return mi_heap_rezalloc_aligned(heap, p, _mi_api_total(newcount, size), alignment);
}

void* mi_heap_recalloc_aligned_at(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment,
                                  size_t offset) {
  return mi_heap_rezalloc_aligned_at(heap, p, _mi_api_total(newcount, size), alignment, offset);
}
