// Owns: aligned allocation.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs.
// Invariants: an alignment that is no power of two is refused in the alloc layer, with errno EINVAL.
#include "src/api/api.h"

void* mi_malloc_aligned(size_t size, size_t alignment) { return _mi_alloc_aligned(NULL, size, alignment, 0, false); }

void* mi_malloc_aligned_at(size_t size, size_t alignment, size_t offset) {
  return _mi_alloc_aligned(NULL, size, alignment, offset, false);
}

void* mi_zalloc_aligned(size_t size, size_t alignment) { return _mi_alloc_aligned(NULL, size, alignment, 0, true); }

void* mi_zalloc_aligned_at(size_t size, size_t alignment, size_t offset) {
  return _mi_alloc_aligned(NULL, size, alignment, offset, true);
}

void* mi_calloc_aligned(size_t count, size_t size, size_t alignment) {
  return _mi_alloc_aligned(NULL, _mi_api_total(count, size), alignment, 0, true);
}

void* mi_calloc_aligned_at(size_t count, size_t size, size_t alignment, size_t offset) {
  return _mi_alloc_aligned(NULL, _mi_api_total(count, size), alignment, offset, true);
}

void* mi_realloc_aligned(void* p, size_t newsize, size_t alignment) {
  return _mi_realloc_aligned(NULL, p, newsize, alignment, 0, false);
}

void* mi_realloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset) {
  return _mi_realloc_aligned(NULL, p, newsize, alignment, offset, false);
}

void* mi_rezalloc_aligned(void* p, size_t newsize, size_t alignment) {
  return _mi_realloc_aligned(NULL, p, newsize, alignment, 0, true);
}

void* mi_rezalloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset) {
  return _mi_realloc_aligned(NULL, p, newsize, alignment, offset, true);
}

void* mi_recalloc_aligned(void* p, size_t newcount, size_t size, size_t alignment) {
  return _mi_realloc_aligned(NULL, p, _mi_api_total(newcount, size), alignment, 0, true);
}

void* mi_recalloc_aligned_at(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) {
  return _mi_realloc_aligned(NULL, p, _mi_api_total(newcount, size), alignment, offset, true);
}
