// Owns: the sizes the whole allocator is built on: slice, page kinds, granules, limits.
// May include: base/compiler.h.
// Called by: region and every layer above it.
// Invariants: a page of any kind has MI_PAGE_GRANULES granules and every block size in it is a multiple of its granule.
#pragma once

#include "src/base/compiler.h"

enum {
  MI_KIB = 1024,
  MI_MIB = 1024 * 1024,

  // A slice is the unit in which arenas hand out memory, and the alignment of every page's first block.
  MI_SLICE_SHIFT = 16,
  MI_SLICE_SIZE = 1 << MI_SLICE_SHIFT,

  // A page of blocks has this many granules, whatever its kind: 16 bytes in a small page, 128 in a medium one and
  // 1024 in a large one. One live bit a granule makes the free check a shift, a mask and a bit test.
  MI_PAGE_GRANULES = 4096,
  MI_SMALL_PAGE_SHIFT = 16,
  MI_SMALL_GRANULE_SHIFT = MI_SMALL_PAGE_SHIFT - 12,
  MI_MEDIUM_PAGE_SHIFT = 19,
  MI_LARGE_PAGE_SHIFT = 22,
  MI_SMALL_PAGE_SLICES = 1 << (MI_SMALL_PAGE_SHIFT - MI_SLICE_SHIFT),
  MI_MEDIUM_PAGE_SLICES = 1 << (MI_MEDIUM_PAGE_SHIFT - MI_SLICE_SHIFT),
  MI_LARGE_PAGE_SLICES = 1 << (MI_LARGE_PAGE_SHIFT - MI_SLICE_SHIFT),

  // The largest block of each page kind; at least eight of them fit, so the tail of a page wastes little.
  MI_SMALL_BLOCK_MAX = 8 * MI_KIB,
  MI_MEDIUM_BLOCK_MAX = 64 * MI_KIB,
  MI_LARGE_BLOCK_MAX = 512 * MI_KIB,

  // The smallest block, and the alignment of every block.
  MI_BLOCK_ALIGN = 16,
  MI_BLOCK_ALIGN_SHIFT = 4,

  // Requests up to this size find their page through the direct table of a theap.
  MI_DIRECT_SIZE_MAX = 1024,

  // Metadata of an arena is laid out, and committed, for groups of this many slices (32 MiB of blocks).
  MI_GROUP_SHIFT = 9,
  MI_GROUP_SLICES = 1 << MI_GROUP_SHIFT,

  // Bytes of page metadata and of live bits for every slice: the live bit and the remote-free bit of each granule.
  MI_PAGE_META_SIZE = 320,
  MI_LIVE_META_SIZE = 2 * MI_PAGE_GRANULES / 8,

  // Behind the live bits of a slice: a byte for each granule that says which call made the block there.
  MI_ORIGIN_META_SIZE = MI_HAS_FAMILY ? MI_PAGE_GRANULES : 0,

  // Behind those: the numbers of the granules where the blocks start that are handed out next, with room for one word of live
  // bits more; and of those that were freed last.
  MI_STOCK_MAX = 256,
  MI_STOCK_SLOTS = MI_STOCK_MAX + 32,
  MI_STOCK_META_SIZE = MI_HAS_OUTLINE_LISTS ? (MI_STOCK_SLOTS + MI_STOCK_MAX) * 2 : 0,
};

// No request is larger: pointer differences inside a block must be representable.
#define MI_ALLOC_SIZE_MAX ((size_t)PTRDIFF_MAX)
