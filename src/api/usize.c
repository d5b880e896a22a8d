// Owns: the variants of allocation that tell the usable size.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs.
// Invariants: every size pointer may be NULL; what cannot be allocated has size 0.
#include "src/api/api.h"

static void* mi_tell(void* p, size_t* block_size) {
  _mi_api_store(block_size, _mi_usable_size(p));
  return p;
}

void* mi_umalloc(size_t size, size_t* block_size) { return mi_tell(_mi_alloc(size), block_size); }

void* mi_ucalloc(size_t count, size_t size, size_t* block_size) {
  return mi_tell(_mi_alloc_zero(_mi_api_total(count, size)), block_size);
}

void* mi_urealloc(void* p, size_t newsize, size_t* block_size_pre, size_t* block_size_post) {
  _mi_api_store(block_size_pre, _mi_usable_size(p));
  return mi_tell(_mi_realloc(NULL, p, newsize, false), block_size_post);
}

void mi_ufree(void* p, size_t* block_size) {
  _mi_api_store(block_size, _mi_usable_size(p));
  _mi_free(p);
}

void* mi_umalloc_aligned(size_t size, size_t alignment, size_t* block_size) {
  return mi_tell(_mi_alloc_aligned(NULL, size, alignment, 0, false), block_size);
}

void* mi_uzalloc_aligned(size_t size, size_t alignment, size_t* block_size) {
  return mi_tell(_mi_alloc_aligned(NULL, size, alignment, 0, true), block_size);
}

void* mi_umalloc_small(size_t size, size_t* block_size) { return mi_tell(_mi_alloc(size), block_size); }
void* mi_uzalloc_small(size_t size, size_t* block_size) { return mi_tell(_mi_alloc_zero(size), block_size); }
