// Owns: whether a run of bytes lies in the block in which it begins.
// May include: base.
// Called by: alloc.
// Invariants: nothing is read or written; no sum of an address and a length is formed, so none can wrap.
#pragma once

#include "src/base/compiler.h"

// What an address was found in.
typedef struct mi_extent_s {
  uintptr_t start;  // first byte that is the program's
  size_t size;      // so many are
  bool live;        // whether the program has it now
} mi_extent_t;

typedef enum mi_bounds_e {
  MI_BOUNDS_INSIDE,
  MI_BOUNDS_BEYOND,  // begins in the block or behind it and goes on behind its end
  MI_BOUNDS_BEFORE,  // begins before the block
  MI_BOUNDS_FREE,    // the block is not the program's
} mi_bounds_t;

// Bytes of the block from `address` on; 0 where the address lies outside or the block is not the program's.
mi_inline mi_wraps size_t _mi_hard_bounds_room(mi_extent_t extent, uintptr_t address) {
  // Huge when the address lies before the block.
  const size_t offset = (size_t)(address - extent.start);
  return mi_likely(extent.live && offset < extent.size) ? extent.size - offset : 0;
}

// Judges `length` bytes at `address`. No bytes lie anywhere.
mi_inline mi_bounds_t _mi_hard_bounds_check(mi_extent_t extent, uintptr_t address, size_t length) {
  if (mi_likely(length <= _mi_hard_bounds_room(extent, address))) {
    return MI_BOUNDS_INSIDE;
  }
  if (!extent.live) {
    return MI_BOUNDS_FREE;
  }
  return address < extent.start ? MI_BOUNDS_BEFORE : MI_BOUNDS_BEYOND;
}
