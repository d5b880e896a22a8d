// Owns: which freed large block's addresses are given up next, and which blocks become inaccessible as a whole at once.
// May include: base.
// Called by: region.
// Invariants: what is held is bounded in number and bytes; what leaves is one of the older half, chosen at random.
#pragma once

#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/geometry.h"

enum {
  MI_LARGE_HELD_MAX = 32,
  // Address space that is held, in slices.
  MI_LARGE_HELD_SLICES_MAX = 64 * MI_MIB / MI_SLICE_SIZE,
  // The same of blocks whose memory has not been given back yet: a program that allocates large blocks again and again
  // is to find them in the processor's caches. More where those that are zeroed by hand have to wait as well.
  MI_LARGE_HELD_FULL_SLICES_MAX = (MI_HAS_ZERO_ON_FREE ? 8 : 2) * MI_MIB / MI_SLICE_SIZE,
  // Where freed memory is zeroed, larger blocks are so by giving their memory back, the others beyond the budget below by hand,
  // unless blocks of their size are written in few OS pages: then each page that is looked at is one that is mapped for it.
  MI_LARGE_WIPED_SLICES_MAX = 4 * MI_MIB / MI_SLICE_SIZE,
  // So many of a size are given back after one of which less than a share was written, before the next is looked at.
  MI_LARGE_SPARSE_TURNS = 15,
  MI_LARGE_SPARSE_SHARE = 6,
  MI_LARGE_SPARSE_SIZES = 7,
  // Making a block inaccessible drops its content, and its next use pays for that with faults. So much may become so at
  // once, and in a second; beyond it the first OS page does, and the rest when it is purged.
  MI_LARGE_SEAL_BYTES_MAX = 2 * MI_MIB,
  MI_LARGE_SEAL_BYTES_PER_SECOND = 4 * MI_MIB,
};

// Whether a block of `slices`, `full_slices` of them with their memory, is worth holding: a very large one would drive out
// all others.
mi_inline bool _mi_hard_large_may_hold(size_t slices, size_t full_slices) {
  return slices <= MI_LARGE_HELD_SLICES_MAX / 2 && full_slices <= MI_LARGE_HELD_FULL_SLICES_MAX / 2;
}

// What was found of blocks that were zeroed by hand, for each power of two of slices: so many more are not to be. Hints that
// threads may race for.
typedef struct mi_large_sparse_s {
  _Atomic(uint32_t) turns[MI_LARGE_SPARSE_SIZES];
} mi_large_sparse_t;

mi_inline _Atomic(uint32_t)* mi_large_turns(mi_large_sparse_t* sparse, size_t slices) {
  return &sparse->turns[_mi_min(_mi_bits_log2_64(slices), MI_LARGE_SPARSE_SIZES - 1)];
}

// Whether a block of `slices` is worth zeroing by hand.
mi_inline bool _mi_hard_large_may_wipe(mi_large_sparse_t* sparse, size_t slices) {
  if (slices > MI_LARGE_WIPED_SLICES_MAX) {
    return false;
  }
  const uint32_t turns = mi_atomic_load_relaxed(mi_large_turns(sparse, slices));
  if (turns > 0) {
    mi_atomic_store_relaxed(mi_large_turns(sparse, slices), turns - 1);
  }
  return turns == 0;
}

// One was, and held something else in `written` of `pages` OS pages.
mi_inline void _mi_hard_large_wiped(mi_large_sparse_t* sparse, size_t slices, size_t written, size_t pages) {
  if (written * MI_LARGE_SPARSE_SHARE < pages) {
    mi_atomic_store_relaxed(mi_large_turns(sparse, slices), MI_LARGE_SPARSE_TURNS);
  }
}

typedef struct mi_large_held_s {
  size_t count;
  size_t slices;
  size_t full_slices;  // of blocks whose memory has not been given back
} mi_large_held_t;

// Whether one that is held has to leave before another comes of `slices`, and of `full_slices` with its memory.
mi_inline bool _mi_hard_large_is_full(const mi_large_held_t* held, size_t slices, size_t full_slices) {
  return held->count >= MI_LARGE_HELD_MAX || (held->count > 0 && held->slices + slices > MI_LARGE_HELD_SLICES_MAX) ||
      (held->full_slices > 0 && held->full_slices + full_slices > MI_LARGE_HELD_FULL_SLICES_MAX);
}

// Which of `count` held blocks, the oldest first, leaves; `random` is any number.
mi_inline size_t _mi_hard_large_leaving(size_t count, uint64_t random) { return (size_t)(random % ((count + 1) / 2)); }

typedef struct mi_large_budget_s {
  int64_t left;  // bytes
  int64_t at_ms;
} mi_large_budget_t;

// Takes `size` bytes off the budget, which fills up with time. False: it is used up.
mi_inline bool _mi_hard_large_spend(mi_large_budget_t* budget, int64_t now_ms, size_t size) {
  const int64_t full = MI_LARGE_SEAL_BYTES_MAX;
  const int64_t passed = now_ms - budget->at_ms;
  if (passed < 0 || passed >= 1000 || budget->at_ms == 0) {
    budget->left = full;
  } else {
    budget->left += passed * (MI_LARGE_SEAL_BYTES_PER_SECOND / 1000);
    budget->left = budget->left > full ? full : budget->left;
  }
  budget->at_ms = now_ms;
  // One that is larger than the whole budget may use all of it.
  const int64_t needed = size < (size_t)full ? (int64_t)size : full;
  if (budget->left < needed) {
    return false;
  }
  budget->left -= needed;
  return true;
}
