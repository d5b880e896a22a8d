// Owns: where a guarded block lies between the inaccessible OS pages before and behind it, and the pattern in what accessible
// memory is left around it.
// May include: base.
// Called by: heap.
// Invariants: no byte of a slot that is not the block's is both accessible and without the pattern.
//
//     guard | pattern | block | pattern | guard      every guard begins and ends at an OS page
//
// A block at the right edge ends where the guard begins, as far as its alignment lets it, so that the first byte behind it
// faults; one at the left edge begins where the guard ends.
#pragma once

#include "src/base/bits.h"
#include "src/base/geometry.h"

typedef struct mi_guarded_layout_s {
  size_t offset;  // of the block in its slot
  size_t first;   // of what is accessible
  size_t end;     // of what is accessible
  size_t size;    // of the slot, a multiple of the slice size
  size_t lead;    // so many slices go before the one that the block begins in, where that is to be aligned
} mi_guarded_layout_t;

// The layout of a block of `size` bytes at a multiple of `align`. `precise`: where no more than the usual alignment is asked
// for the block ends at its last byte, whatever that makes of its address.
mi_inline mi_guarded_layout_t _mi_hard_guarded_layout(size_t size, size_t align, size_t os_page, bool left, bool precise) {
  mi_guarded_layout_t layout;
  const size_t step = align > MI_BLOCK_ALIGN ? align : precise ? 1
                                                               : MI_BLOCK_ALIGN;
  layout.lead = align > MI_SLICE_SIZE ? 1 : 0;
  if (step <= os_page) {
    const size_t taken = _mi_align_up(size, step);
    layout.first = os_page;
    layout.end = os_page + _mi_align_up(taken, os_page);
    layout.offset = left ? os_page : layout.end - taken;
  } else {
    layout.first = _mi_min(step, MI_SLICE_SIZE);
    layout.end = _mi_align_up(layout.first + size, os_page);
    layout.offset = layout.first;
  }
  layout.size = _mi_align_up(layout.end + os_page, MI_SLICE_SIZE);
  return layout;
}

enum { MI_GUARDED_BYTE = 0xa7 };

// Of so many accessible bytes before or behind a block: written, and compared; how many are right from the start on. Most of an
// OS page each time, so by as much as registers take: the compiler, which knows that this is rare, would go byte by byte.
mi_inline void _mi_hard_guarded_fill(uint8_t* start, size_t size) {
  static const uint64_t pattern = UINT64_C(0x0101010101010101) * MI_GUARDED_BYTE;
  const uint64_t words[4] = {pattern, pattern, pattern, pattern};
  for (; size >= sizeof(words); size -= sizeof(words), start += sizeof(words)) {
    __builtin_memcpy(start, words, sizeof(words));
  }
  for (; size > 0; size--) {
    *start++ = MI_GUARDED_BYTE;
  }
}

mi_inline size_t _mi_hard_guarded_compare(const uint8_t* start, size_t size) {
  // All are alike if each is like the one before it.
  if (size == 0 || (start[0] == MI_GUARDED_BYTE && __builtin_memcmp(start, start + 1, size - 1) == 0)) {
    return size;
  }
  size_t i = 0;
  while (start[i] == MI_GUARDED_BYTE) {
    i++;
  }
  return i;
}
