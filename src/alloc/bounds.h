// Owns: the look-up behind a check of bounds: the block that an address lies in, and what is its program's of it.
// May include: base, hardening, sys, region, heap.
// Called by: api.
// Invariants: any address may be asked; memory that is not ours has no bounds. Nothing is read through the address, no lock
// is taken and errno is untouched, so a check may stand in a signal handler.
#pragma once

#include "hardening/bounds.h"
#include "src/heap/block.h"
#include "src/heap/page.h"

// The block of the page that holds p.
mi_inline mi_extent_t _mi_block_extent(mi_page_t* page, const void* p) {
  if (mi_unlikely(_mi_page_is_single(page))) {
    const uint8_t* const start = page->single_start;
    // Relaxed: the program ordered the allocation before us, and a free that it did not order is what is looked for.
    return (mi_extent_t){.start = (uintptr_t)start,
                         .size = MI_HAS_PADDING ? page->request : page->block_size - (size_t)(start - page->start),
                         .live = (mi_atomic_load_relaxed(&page->remote) & MI_REMOTE_OWNED) == 0};
  }
  // Both fit 32 bits, of which a division is cheaper.
  const uint32_t block_size = (uint32_t)page->block_size;
  const uint32_t offset = (uint32_t)((uintptr_t)p - (uintptr_t)page->start);
  const uint32_t inside = offset % block_size;
  // A block starts at a granule. Behind the last block of the page no bit is ever set.
  const bool live = MI_HAS_LIVE_BITS ? _mi_hard_live_test(page->live, (uint64_t)(offset - inside) >> page->granule_shift)
                                     : offset / block_size < page->reserved;
  const size_t size = MI_HAS_PADDING && live ? _mi_block_size_asked(page, (const uint8_t*)p - inside) : block_size;
  return (mi_extent_t){.start = (uintptr_t)p - inside, .size = size, .live = live};
}

// Reports the bytes if they are not the program's. True: they may be touched.
mi_cold bool _mi_bounds_report(mi_page_t* page, const void* p, size_t length, const char* call, bool writes);

// Whether `call` may touch `length` bytes at p; false after a report that did not abort.
mi_inline bool _mi_bounds_allow(const void* p, size_t length, const char* call, bool writes) {
  mi_page_t* const page = _mi_page_map_find(p);
  return mi_likely(page == NULL) ||
      mi_likely(_mi_hard_bounds_check(_mi_block_extent(page, p), (uintptr_t)p, length) == MI_BOUNDS_INSIDE) ||
      _mi_bounds_report(page, p, length, call, writes);
}

// Whether the bytes lie in a live block of a class, or where nothing is ours: what most do. Everything else is for _mi_bounds_allow.
mi_inline bool _mi_bounds_are_plain(const void* p, size_t length) {
  mi_page_t* page;
  if (mi_unlikely(!_mi_page_map_look(p, &page))) {
    return true;
  }
  if (mi_unlikely((unsigned)page->bin - MI_BIN_FIRST > MI_BIN_LAST - MI_BIN_FIRST)) {
    return _mi_page_is_none(page);
  }
  if (!MI_HAS_LIVE_BITS) {
    return false;
  }
  const size_t block_size = page->block_size;
  const uint32_t offset = (uint32_t)((uintptr_t)p - (uintptr_t)page->start);
  const size_t inside = offset % (uint32_t)block_size;
  size_t size = block_size;
  // Behind the last block of the page no bit is ever set.
  const bool live = _mi_hard_live_test(page->live, (uint64_t)(offset - inside) >> page->granule_shift);
  if (MI_HAS_PADDING && mi_likely(live)) {
    const uint8_t* const trailer = (const uint8_t*)p - inside + block_size - MI_PADDING_SIZE;
    size_t slack;
    uint64_t difference;
    const bool is_right = _mi_hard_padding_decode(_mi_hard_padding_load(trailer), (uintptr_t)trailer, block_size - MI_PADDING_SIZE,
                                                  &page->canary_key, &slack, &difference);
    size = is_right ? block_size - MI_PADDING_SIZE - slack : 0;
  }
  return mi_likely(live) && mi_likely(inside <= size) && mi_likely(length <= size - inside);
}

// Bytes that the program may touch from p on; SIZE_MAX where the memory is not ours.
mi_inline size_t _mi_bounds_room(const void* p) {
  mi_page_t* const page = _mi_page_map_find(p);
  return page == NULL ? SIZE_MAX : _mi_hard_bounds_room(_mi_block_extent(page, p), (uintptr_t)p);
}
