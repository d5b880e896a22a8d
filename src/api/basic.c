// Owns: allocation in its basic forms.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs.
// Invariants: one line a function; everything that decides lies in the alloc layer.
#include "src/api/api.h"

mi_hot void* mi_malloc(size_t size) { return _mi_alloc(size); }
mi_hot void* mi_zalloc(size_t size) { return _mi_alloc_zero(size); }
mi_hot void* mi_calloc(size_t count, size_t size) { return _mi_alloc_zero(_mi_api_total(count, size)); }
mi_hot void* mi_realloc(void* p, size_t newsize) { return _mi_realloc(NULL, p, newsize, false); }
mi_hot void mi_free(void* p) { _mi_free(p); }

// So many words in bytes. The promise that they are few is the caller's: of more than there can be, there is none.
mi_inline size_t mi_words(size_t wsize) { return _mi_api_total(wsize, sizeof(void*)); }

void* mi_malloc_small(size_t size) { return _mi_alloc(size); }
void* mi_zalloc_small(size_t size) { return _mi_alloc_zero(size); }
void* mi_wmalloc_small(size_t wsize) { return _mi_alloc(mi_words(wsize)); }
void* mi_wzalloc_small(size_t wsize) { return _mi_alloc_zero(mi_words(wsize)); }
void* mi_zallocn(size_t count, size_t size) { return _mi_alloc_zero(_mi_api_total(count, size)); }
void* mi_mallocn(size_t count, size_t size) { return _mi_alloc(_mi_api_total(count, size)); }

void* mi_reallocn(void* p, size_t count, size_t size) {
  return _mi_realloc(NULL, p, _mi_api_total(count, size), false);
}

void* mi_reallocf(void* p, size_t newsize) {
  void* const q = _mi_realloc(NULL, p, newsize, false);
  if (mi_unlikely(q == NULL)) {
    _mi_free(p);
  }
  return q;
}

void* mi_rezalloc(void* p, size_t newsize) { return _mi_realloc(NULL, p, newsize, true); }

void* mi_recalloc(void* p, size_t newcount, size_t size) {
  return _mi_realloc(NULL, p, _mi_api_total(newcount, size), true);
}

void* mi_expand(void* p, size_t newsize) {
  void* const q = p == NULL ? NULL : _mi_expand(p, newsize);
  if (mi_unlikely(q == NULL)) {
    errno = ENOMEM;
  }
  return q;
}

// The promises that a block is small, local or there are the caller's; a wrong one must do no harm, so all are mi_free.
void mi_free_small(void* p) { _mi_free(p); }
void mi_free_small_nonnull(void* p) { _mi_free(p); }
void mi_free_small_local(void* p) { _mi_free(p); }
void mi_free_small_local_nonnull(void* p) { _mi_free(p); }

size_t mi_usable_size(const void* p) { return _mi_usable_size(p); }
size_t mi_good_size(size_t size) { return _mi_good_size(size); }
