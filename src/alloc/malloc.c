// Owns: allocation beyond the inline path, and the plain queries.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: api.
// Invariants: blocks of a class that has no direct entry still cost one look at the queue's first page.
#include <errno.h>
#include <string.h>

#include "src/alloc/alloc.h"

// A block of a larger class from the theap's own queue.
mi_inline void* mi_theap_pop_queue_as(mi_theap_t* theap, size_t size, mi_page_t** page, mi_family_t family) {
  *page = theap->queues[_mi_bin_of_size(size)].first;
  return *page == NULL ? NULL : _mi_page_try_pop_as(*page, (uint8_t)family);
}

mi_inline void* mi_theap_pop_queue(mi_theap_t* theap, size_t size, mi_page_t** page) {
  return mi_theap_pop_queue_as(theap, size, page, MI_FAMILY_ANY);
}

void* _mi_alloc_slow(size_t size) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (size > MI_DIRECT_SIZE_MAX && size <= MI_LARGE_BLOCK_MAX && theap != NULL) {
    mi_page_t* page;
    void* const p = mi_theap_pop_queue(theap, size, &page);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  return _mi_theap_alloc_slow(_mi_theap_default(), size, false);
}

void* _mi_alloc_slow_as(size_t size, mi_family_t family) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (size > MI_DIRECT_SIZE_MAX && size <= MI_LARGE_BLOCK_MAX && theap != NULL) {
    mi_page_t* page;
    void* const p = mi_theap_pop_queue_as(theap, size, &page, family);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  return _mi_origin_mark(_mi_theap_alloc_slow(_mi_theap_default(), size, false), family, 1);
}

void* _mi_alloc_zero_slow(size_t size) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (size > MI_DIRECT_SIZE_MAX && size <= MI_LARGE_BLOCK_MAX && theap != NULL) {
    mi_page_t* page;
    void* const p = mi_theap_pop_queue(theap, size, &page);
    if (mi_likely(p != NULL)) {
      memset(p, 0, page->free_is_zero ? sizeof(mi_block_t) : page->block_size);
      return p;
    }
  }
  return _mi_theap_alloc_slow(_mi_theap_default(), size, true);
}

void* _mi_theap_alloc(mi_theap_t* theap, size_t size, bool zero) {
  if (theap == NULL) {
    return zero ? _mi_alloc_zero(size) : _mi_alloc(size);
  }
  if (size <= MI_LARGE_BLOCK_MAX) {
    mi_page_t* page;
    void* const p = mi_theap_pop_queue(theap, size, &page);
    if (mi_likely(p != NULL)) {
      if (zero) {
        memset(p, 0, page->free_is_zero ? sizeof(mi_block_t) : page->block_size);
      }
      return p;
    }
  }
  return _mi_theap_alloc_slow(theap, size, zero);
}

size_t _mi_good_size(size_t size) {
  // A block by itself ends where its OS page does, and begins anywhere in one: how much that leaves is not known before.
  return MI_HAS_GUARD_PAGES && size > MI_LARGE_BLOCK_MAX ? size : _mi_sizeclass_round(size);
}

bool _mi_is_in_heap(const void* p) { return p != NULL && _mi_page_of_any(p) != NULL; }
