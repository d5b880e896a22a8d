// Owns: whether a size and an alignment that a free names can be those of the block.
// May include: base.
// Called by: alloc.
// Invariants: no division. A block is given as its request: the largest that it may have been asked with, and how many
// sizes below and with that lead to the same block, its spread.
#pragma once

#include "src/base/bits.h"
#include "src/base/geometry.h"

// How many requests lead to blocks of this size: the spread of a size class. The smallest class serves 0 as well.
mi_inline size_t _mi_hard_class_spread(size_t block_size) {
  if (block_size <= 128) {
    return MI_BLOCK_ALIGN + (block_size == MI_BLOCK_ALIGN);
  }
  return (size_t)1 << (_mi_bits_log2_64(block_size - 1) - 3U);
}

// Whether `size` is one of the requests that lead to the block.
mi_inline mi_wraps bool _mi_hard_size_agrees(size_t size, size_t request, size_t spread) {
  // A size beyond the request wraps around to a huge difference.
  return request - size < spread;
}

// The same for a request that named an alignment, a power of two: up to a slice, sizes are rounded up to it.
mi_inline bool _mi_hard_size_agrees_aligned(size_t size, size_t align, size_t request, size_t spread) {
  if (align <= MI_BLOCK_ALIGN || align > MI_SLICE_SIZE) {
    return _mi_hard_size_agrees(size, request, spread) || (size == 0 && _mi_hard_size_agrees(1, request, spread));
  }
  const size_t least = size + (size == 0);
  return least <= request && _mi_hard_size_agrees(_mi_align_up(least, align), request, spread);
}

// Whether realloc may have left a block of this request where it was when it was asked for `size`.
mi_inline bool _mi_hard_size_agrees_resized(size_t size, size_t request) {
  return size <= request && size >= request / 2;
}

// Whether the block at `address` may have been asked with this size and some alignment that the free does not name.
mi_inline bool _mi_hard_size_agrees_any_align(size_t size, uintptr_t address, size_t request, size_t spread) {
  for (size_t align = 1; align <= MI_SLICE_SIZE && address % align == 0; align *= 2) {
    if (_mi_hard_size_agrees_aligned(size, align, request, spread)) {
      return true;
    }
  }
  return false;
}

// Whether the alignment that a free names can be one of this address.
mi_inline bool _mi_hard_align_agrees(uintptr_t address, size_t align) {
  return _mi_is_power_of_two(align) && (address & (align - 1)) == 0;
}
