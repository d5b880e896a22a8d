// Owns: where guards lie in a page of blocks, and where a large block and its guards lie in its run of slices.
// May include: base.
// Called by: heap.
// Invariants: what is guarded and what is handed out have no OS page in common; without the constants a large block begins
// where its run begins and ends where it ends, and a page of blocks is blocks to its end.
#pragma once

#include "src/base/bits.h"
#include "src/base/geometry.h"

enum {
  // Less than so many OS pages are not worth losing one.
  MI_GUARD_OS_PAGES_MIN = 4,
  // The place of a large block is a multiple of this, a line of the cache, so that chance costs no speed.
  MI_LARGE_PLACE_STEP = 64,
};

// The bytes at the end of a page of `size` bytes that hold no block, whether they could be made inaccessible or not.
mi_inline size_t _mi_hard_guard_size(size_t size, size_t os_page) {
  return MI_HAS_GUARD_PAGES && size >= MI_GUARD_OS_PAGES_MIN * os_page ? os_page : 0;
}

typedef struct mi_large_layout_s {
  size_t offset;  // of the block in its run
  size_t end;     // of what the program may use, in its run
  size_t size;    // of the run, a multiple of the slice size
} mi_large_layout_t;

// Offsets that a block at a multiple of `align`, at most a slice, may have; they are the multiples of
// _mi_hard_large_step(align) up to a slice that leave room for a guard.
mi_inline size_t _mi_hard_large_step(size_t align) { return align > MI_LARGE_PLACE_STEP ? align : MI_LARGE_PLACE_STEP; }

mi_inline size_t mi_large_first_offset(size_t align, size_t os_page) {
  return MI_HAS_GUARD_PAGES ? _mi_align_up(os_page, _mi_hard_large_step(align)) : 0;
}

// How many places a block has, at least one.
mi_inline size_t _mi_hard_large_places(size_t align, size_t os_page) {
  return MI_HAS_RANDOM_LARGE ? (MI_SLICE_SIZE - mi_large_first_offset(align, os_page)) / _mi_hard_large_step(align) + 1 : 1;
}

// The layout of a block of `size` bytes whose offset is known.
mi_inline mi_large_layout_t _mi_hard_large_layout_at(size_t size, size_t offset, size_t os_page) {
  mi_large_layout_t layout;
  layout.offset = offset;
  if (MI_HAS_GUARD_PAGES || MI_HAS_RANDOM_LARGE) {
    layout.end = _mi_align_up(offset + size, os_page);
    layout.size = _mi_align_up(layout.end + (MI_HAS_GUARD_PAGES ? os_page : 0), MI_SLICE_SIZE);
  } else {
    layout.end = layout.size = _mi_align_up(offset + size, MI_SLICE_SIZE);
  }
  return layout;
}

// The layout at place number `place`, which is below _mi_hard_large_places. `align` is at most a slice.
mi_inline mi_large_layout_t _mi_hard_large_layout(size_t size, size_t align, size_t place, size_t os_page) {
  const size_t offset = mi_large_first_offset(align, os_page) + place * _mi_hard_large_step(align);
  return _mi_hard_large_layout_at(size, offset, os_page);
}

// Where usable memory ends in a run that was enlarged in place to `run_size`: the guard is the last OS page only, so that
// the next growth has room.
mi_inline size_t _mi_hard_large_end_of(size_t run_size, size_t os_page) {
  return run_size - (MI_HAS_GUARD_PAGES ? os_page : 0);
}
