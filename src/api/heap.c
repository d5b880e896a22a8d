// Owns: heaps, and allocation in them.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs.
// Invariants: each form finds the calling thread's theap of the heap and is then what it is without a heap.
#include "src/api/api.h"

mi_heap_t* mi_heap_new(void) {
  mi_heap_t* const heap = _mi_heap_new();
  if (mi_unlikely(heap == NULL)) {
    errno = ENOMEM;
  }
  return heap;
}

void mi_heap_delete(mi_heap_t* heap) { _mi_heap_delete(heap); }
void mi_heap_destroy(mi_heap_t* heap) { _mi_heap_destroy(heap); }
mi_heap_t* mi_heap_main(void) { return _mi_heap_main(); }
void mi_heap_collect(mi_heap_t* heap, bool force) { _mi_heap_collect(heap, force); }

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
