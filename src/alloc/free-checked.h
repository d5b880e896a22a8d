// Owns: the inline part of frees that say more than an address: their family, a size, an alignment.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: alloc, api.
// Invariants: what the profile does not check folds away, down to _mi_free; what does not agree here is judged again in
// free-checked.c, which alone reports.
#pragma once

#include "src/alloc/alloc.h"

// What a free says, beside its mi_family_t in the low bits.
enum {
  MI_FREE_SIZED = 1 << 3,
  MI_FREE_ALIGNED = 1 << 4,
  MI_FREE_FAMILY_MASK = (1 << 3) - 1,
  // Whether a block's request is known to the byte. It is not while only its class is; see _mi_free_request.
  MI_BLOCK_REQUEST_IS_EXACT = 0,
};

_Static_assert((int)MI_FAMILY_COUNT <= (int)MI_FREE_SIZED, "a family has no room beside the flags");

// The request of the block that was handed out as p: exact where blocks are padded, else the largest size that it may have
// been asked with. Its spread says how many sizes below and with it lead to the same block. Not in pages where blocks were
// handed out at addresses inside them.
mi_inline size_t _mi_free_request(const mi_page_t* page, const void* p) {
  return MI_HAS_PADDING          ? _mi_page_usable_size(page, p)
      : _mi_page_is_single(page) ? _mi_page_single_usable(page)
                                 : page->block_size;
}

mi_inline size_t _mi_free_request_spread(const mi_page_t* page) { return MI_HAS_PADDING ? 1 : page->class_spread; }

// Frees what the inline path leaves: judges, reports, and then frees like _mi_free. The page as _mi_page_map_look found it.
mi_noinline void _mi_free_checked_slow(void* p, mi_page_t* page, unsigned how, size_t size, size_t align);

mi_inline bool mi_free_agrees(const mi_page_t* page, const void* p, unsigned how, size_t size, size_t align) {
  const bool aligned = (how & MI_FREE_ALIGNED) != 0;
  if (aligned && !_mi_hard_align_agrees((uintptr_t)p, align)) {
    return false;
  }
  // The end of a free block holds no request: what is bad of it is that it is freed again.
  if (MI_HAS_PADDING && MI_HAS_SIZED_FREE != 0 && (how & MI_FREE_SIZED) != 0 &&
      !_mi_hard_live_test(page->live, _mi_page_live_index(page, p))) {
    return false;
  }
  if (MI_HAS_SIZED_FREE != 0 && (how & MI_FREE_SIZED) != 0) {
    const size_t request = _mi_free_request(page, p);
    const size_t spread = _mi_free_request_spread(page);
    if (!(aligned ? _mi_hard_size_agrees_aligned(size, align, request, spread)
                  : _mi_hard_size_agrees(size, request, spread))) {
      return false;
    }
  }
  if (MI_HAS_FAMILY && (how & MI_FREE_FAMILY_MASK) != MI_FAMILY_ANY) {
    const mi_family_t family = (mi_family_t)(how & MI_FREE_FAMILY_MASK);
    // The index of what is no block may lie anywhere, and is looked at where the byte is.
    const uint8_t origin = _mi_hard_origin(family, aligned ? align : 1);
    if (mi_likely(!mi_atomic_load_relaxed(&page->has_origins))) {
      return origin == MI_ORIGIN_PLAIN;
    }
    const uint64_t index = _mi_page_live_index(page, p);
    if (mi_unlikely(index >= MI_PAGE_GRANULES)) {
      return false;
    }
    const uint8_t made_as = _mi_page_origin(page, index);
    // Of what a free that names no alignment may take, aligned blocks are not rare.
    return made_as == origin || (family == MI_FAMILY_MALLOC && !aligned && _mi_hard_origin_family(made_as) == MI_FAMILY_MEMALIGN);
  }
  return true;
}

// Frees on behalf of a call of a family, with a size or an alignment where `how` says so.
mi_inline void _mi_free_checked(void* p, unsigned how, size_t size, size_t align) {
  if (!MI_HAS_FAMILY && (MI_HAS_SIZED_FREE == 0 || (how & (MI_FREE_SIZED | MI_FREE_ALIGNED)) == 0)) {
    _mi_free(p);
    return;
  }
  mi_page_t* page;
  if (mi_unlikely(!_mi_page_map_look(p, &page))) {
    _mi_free_nowhere(p);
  } else if (mi_likely(mi_atomic_load_is_relaxed(&page->owner, _mi_thread_tid())) && mi_likely(mi_free_agrees(page, p, how, size, align))) {
    _mi_free_local(page, p);
  } else {
    _mi_free_checked_slow(p, page, how, size, align);
  }
}

// What realloc does on behalf of the C library's names, where origins are kept: the block must be of the malloc family,
// and is from then on.
void* _mi_realloc_checked(void* p, size_t newsize);

mi_inline void* _mi_realloc_as_malloc(void* p, size_t newsize) {
  return MI_HAS_FAMILY ? _mi_realloc_checked(p, newsize) : _mi_realloc(NULL, p, newsize, false);
}
