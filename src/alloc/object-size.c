// Owns: how much lies between an address and the end of its block.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: api.
// Invariants: nothing is read through the address; a query of a block that is not live is a violation where the profile
// has live bits to tell.
#include "src/alloc/alloc.h"
#include "src/sys/report.h"

#define MI_OBJECT_SIZE_ASKED "its object size asked"

// An address in memory of a page, inside a block that is not live.
static mi_cold size_t mi_object_size_freed(const mi_page_t* page, const void* p, const uint8_t* block) {
  if (p == block || (const uint8_t*)p < block || !_mi_page_was_listed(page, block)) {
    _mi_report_bad_pointer(page, p, MI_OBJECT_SIZE_ASKED);
    return 0;
  }
  _mi_report(MI_VIOLATION_use_after_free, "pointer %p is %zu bytes into a free block of %zu bytes at %p (page %p, thread %zu), " MI_OBJECT_SIZE_ASKED,
             p, (size_t)((const uint8_t*)p - block), page->block_size, (const void*)block, (void*)page->start,
             _mi_thread_number());
  return 0;
}

static size_t mi_object_size_in(const mi_page_t* page, const void* p) {
  if (_mi_page_is_single(page)) {
    if (mi_unlikely((const uint8_t*)p < page->single_start)) {
      return mi_object_size_freed(page, p, page->single_start);
    }
    return (size_t)(page->start + page->block_size - (const uint8_t*)p);
  }
  const uint8_t* const block = _mi_page_block_of(page, p);
  if (MI_HAS_LIVE_BITS && mi_unlikely(!_mi_hard_live_test(page->live, _mi_page_live_index(page, block)))) {
    return mi_object_size_freed(page, p, block);
  }
  return page->block_size - (size_t)((const uint8_t*)p - block);
}

// An address in no entry of the page map: foreign, deep inside a large block, or in memory of ours that nobody uses.
static mi_noinline size_t mi_object_size_elsewhere(const void* p, bool fast) {
  const bool in_arena = _mi_arena_of(p) != NULL;
  // Outside of arenas nothing is left of a block that is gone: its addresses may be the program's own mapping by now.
  const mi_page_t* const page = in_arena || !fast ? _mi_page_of_any(p) : NULL;
  if (page != NULL) {
    return mi_object_size_in(page, p);
  }
  if (in_arena && !_mi_process_is_closed()) {
    _mi_report_bad_pointer(NULL, p, MI_OBJECT_SIZE_ASKED);
    return 0;
  }
  return p == NULL ? 0 : SIZE_MAX;
}

size_t _mi_object_size(const void* p) {
  const mi_page_t* const page = _mi_page_map_find(p);
  return mi_likely(page != NULL) ? mi_object_size_in(page, p) : mi_object_size_elsewhere(p, false);
}

size_t _mi_object_size_fast(const void* p) {
  const mi_page_t* const page = _mi_page_map_find(p);
  return mi_likely(page != NULL) ? mi_object_size_in(page, p) : mi_object_size_elsewhere(p, true);
}
