// Owns: which address a block of no bytes gets: any place of a page that is not taken and fits the alignment.
// May include: base, hardening/live-bits.h.
// Called by: heap.
// Invariants: every place that fits and is not taken can come out; a page where none does is told from one that has some.
#pragma once

#include "hardening/live-bits.h"

// The first place from `start` on, around the end, that is a multiple of `step` places beyond `first` and not taken;
// MI_PAGE_GRANULES when there is none. `step` is a power of two, `first` below it, and both are below MI_PAGE_GRANULES or
// `first` is 0 and `step` MI_PAGE_GRANULES.
mi_inline size_t _mi_hard_zero_size_pick(mi_live_word_t* words, size_t start, size_t first, size_t step) {
  const size_t count = MI_PAGE_GRANULES / step;
  size_t at = start / step;
  for (size_t i = 0; i < count; i++, at++) {
    const size_t index = (at & (count - 1)) * step + first;
    if ((mi_atomic_load_relaxed(mi_live_owner_word(words, index)) & mi_live_bit(index)) == 0) {
      return index;
    }
  }
  return MI_PAGE_GRANULES;
}
