// Owns: the table of size classes: which block size serves a request, and its bin number.
// May include: base.
// Called by: heap, alloc, and good-size queries.
// Invariants: 8 classes for every doubling above 128 bytes, so a block wastes at most 1/9 of itself beyond what 16-byte
// alignment forces; multiples of a power of two A up to 16 A are classes, which is what aligned allocation relies on.
#pragma once

#include "src/base/bits.h"
#include "src/base/geometry.h"

enum {
  // Bins 1 … 104 are size classes; bin 0 is unused so that a zeroed table means "none".
  MI_BIN_FIRST = 1,
  MI_BIN_LAST = 104,
  // A page with a single block that has no class.
  MI_BIN_SINGLE = 105,
  MI_BIN_COUNT = 106,
  // A page of blocks of no bytes; in no table.
  MI_BIN_ZERO_SIZE = 107,
};

// The bin of a request of 0 … MI_LARGE_BLOCK_MAX bytes.
mi_inline unsigned _mi_bin_of_size(size_t size) {
  if (size <= 128) {
    return (unsigned)((size + (size == 0) + MI_BLOCK_ALIGN - 1) >> MI_BLOCK_ALIGN_SHIFT);
  }
  const size_t x = size - 1;
  const unsigned log2 = _mi_bits_log2_64(x);
  return 9U + ((log2 - 7U) << 3) + (unsigned)((x >> (log2 - 3U)) & 7U);
}

// The block size of bin MI_BIN_FIRST … MI_BIN_LAST.
mi_inline size_t _mi_bin_block_size(unsigned bin) {
  if (bin <= 8) {
    return (size_t)bin << MI_BLOCK_ALIGN_SHIFT;
  }
  const unsigned k = bin - 9U;
  return (size_t)(9U + (k & 7U)) << (4U + (k >> 3));
}

// How many slices a page of this bin has.
mi_inline size_t _mi_bin_page_slices(unsigned bin) {
  const size_t block_size = _mi_bin_block_size(bin);
  return block_size <= MI_SMALL_BLOCK_MAX ? MI_SMALL_PAGE_SLICES
      : block_size <= MI_MEDIUM_BLOCK_MAX ? MI_MEDIUM_PAGE_SLICES
                                          : MI_LARGE_PAGE_SLICES;
}

// log2 of the granule of a page with this many slices; the granule is the page's size over MI_PAGE_GRANULES.
mi_inline unsigned _mi_granule_shift(size_t slices) {
  return slices == MI_SMALL_PAGE_SLICES ? 4U : slices == MI_MEDIUM_PAGE_SLICES ? 7U
                                                                               : 10U;
}

// What a request of `size` bytes would be given, in bytes; sizes beyond the limit come back unchanged.
mi_inline size_t _mi_sizeclass_round(size_t size) {
  if (size <= MI_LARGE_BLOCK_MAX) {
    return _mi_bin_block_size(_mi_bin_of_size(size));
  }
  return size > MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE ? size : _mi_align_up(size, MI_SLICE_SIZE);
}
