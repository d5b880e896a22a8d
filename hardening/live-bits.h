// Owns: the live bits: one bit for each place in a page where a block may start, set while the block is the program's.
// May include: base.
// Called by: heap, alloc.
// Invariants: bits are kept in pairs of words: the owner's word, which only the owning thread writes, and the remote
// word, in which other threads mark, atomically, what they have freed and the owner has not collected yet. So the owner
// sets and clears without a locked instruction, and a second free by anyone finds one of the two bits telling. Where no
// block starts, or none was listed yet, both bits are set: such a place is neither live nor free, so nothing that names it
// is freed or handed out.
#pragma once

#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/geometry.h"

// Of half a word's size, so that a pair is found with an index that is scaled in the instruction.
typedef _Atomic(uint32_t) mi_live_word_t;

enum { MI_LIVE_WORD_SHIFT = 5,
       MI_LIVE_WORD_BITS = 1 << MI_LIVE_WORD_SHIFT };

// The granule at `offset` bytes into a page. A rotation instead of a shift: an offset inside a granule turns into a huge
// number, so one comparison with MI_PAGE_GRANULES checks both alignment and range.
mi_inline mi_wraps uint64_t _mi_hard_live_index(uint64_t offset, unsigned granule_shift) {
  return (offset >> granule_shift) | (offset << ((64U - granule_shift) & 63U));
}

mi_inline mi_live_word_t* mi_live_owner_word(mi_live_word_t* words, uint64_t index) {
  return words + 2 * (size_t)(index >> MI_LIVE_WORD_SHIFT);
}

mi_inline mi_live_word_t* mi_live_remote_word(mi_live_word_t* words, uint64_t index) {
  return mi_live_owner_word(words, index) + 1;
}

mi_inline uint32_t mi_live_bit(uint64_t index) { return UINT32_C(1) << (index & (MI_LIVE_WORD_BITS - 1)); }

// Written as a shift of the word, which compilers turn into one instruction that tests a bit.
mi_inline bool mi_live_has(uint32_t word, uint64_t index) { return ((word >> (index & (MI_LIVE_WORD_BITS - 1))) & 1) != 0; }

// Anyone: the live blocks among 64 places, from number `i` * 64 on. The remote word first: where a place becomes free, or one
// where blocks start, its owner's bit is cleared before the other, so that it looks live at no moment.
mi_inline uint64_t _mi_hard_live_word(mi_live_word_t* words, size_t i) {
  uint64_t word = 0;
  for (unsigned shift = 0; shift < 64; shift += MI_LIVE_WORD_BITS) {
    const uint64_t index = (uint64_t)i * 64 + shift;
    // Acquire pairs with the release that cleared the bits.
    const uint32_t marked = mi_atomic_load_acquire(mi_live_remote_word(words, index));
    word |= (uint64_t)(mi_atomic_load_relaxed(mi_live_owner_word(words, index)) & ~marked) << shift;
  }
  return word;
}

// Anyone: how many blocks are in use: those whose bit is set and of which no free waits to be collected.
mi_inline uint32_t _mi_hard_live_count(mi_live_word_t* words) {
  // Not every processor that this is compiled for can count bits: bytes are summed up, each of which stays below 256.
  enum { MI_LIVE_SUMMED = 16 };
  uint32_t count = 0;
  for (size_t from = 0; from < MI_PAGE_GRANULES / 64; from += MI_LIVE_SUMMED) {
    uint64_t sum = 0;
    for (size_t i = from; i < from + MI_LIVE_SUMMED; i++) {
      sum += _mi_bits_count_in_bytes(_mi_hard_live_word(words, i));
    }
    count += _mi_bits_sum_bytes(sum);
  }
  return count;
}

// A new page: no place of it is one where a block starts. Nobody else looks at it yet.
mi_inline void _mi_hard_live_close_all(mi_live_word_t* words) {
  __builtin_memset((void*)(uintptr_t)words, 0xff, MI_LIVE_META_SIZE);
}

// Owner: blocks start at the places of `bits`, from `index` on, a multiple of MI_LIVE_WORD_BITS, and are free.
mi_inline void _mi_hard_live_open(mi_live_word_t* words, uint64_t index, uint32_t bits) {
  mi_live_word_t* const word = mi_live_owner_word(words, index);
  // The owner's bits first, as in collecting: no place looks live meanwhile.
  mi_atomic_store_relaxed(word, mi_atomic_load_relaxed(word) & ~bits);
  mi_atomic_and_acq_rel(mi_live_remote_word(words, index), ~bits);
}

// Anyone: whether the block at `index` is free, and no mark of a free waits to be collected.
mi_inline bool _mi_hard_live_is_free(mi_live_word_t* words, uint64_t index) {
  return index < MI_PAGE_GRANULES &&
      !mi_live_has(mi_atomic_load_relaxed(mi_live_owner_word(words, index)) |
                       mi_atomic_load_relaxed(mi_live_remote_word(words, index)),
                   index);
}

// Owner: the block at `index` is handed out. False: it is none of the page's, the program has it already, another
// thread's free of it has not been collected, or no listed block starts there.
mi_inline bool _mi_hard_live_set(mi_live_word_t* words, uint64_t index) {
  if (mi_unlikely(index >= MI_PAGE_GRANULES)) {
    return false;
  }
  size_t pair = (size_t)(index >> MI_LIVE_WORD_SHIFT);
  uint32_t bits = mi_atomic_load_relaxed(&words[2 * pair]);
  if (mi_unlikely(_mi_bits_set32(&bits, (uint32_t)index))) {
    return false;
  }
  mi_opaque(pair);
  if (mi_unlikely(mi_live_has(mi_atomic_load_relaxed(&words[2 * pair + 1]), index))) {
    return false;
  }
  mi_opaque(pair);
  mi_atomic_store_relaxed(&words[2 * pair], bits);
  return true;
}

// Owner: the block at `index` is freed. False: it is not live, or another thread has freed it.
mi_inline bool _mi_hard_live_clear(mi_live_word_t* words, uint64_t index) {
  if (mi_unlikely(index >= MI_PAGE_GRANULES)) {
    return false;
  }
  // The words are found anew each time: the address is part of the instruction.
  size_t pair = (size_t)(index >> MI_LIVE_WORD_SHIFT);
  uint32_t bits = mi_atomic_load_relaxed(&words[2 * pair]);
  if (mi_unlikely(!_mi_bits_clear32(&bits, (uint32_t)index))) {
    return false;
  }
  mi_opaque(pair);
  if (mi_unlikely(mi_live_has(mi_atomic_load_relaxed(&words[2 * pair + 1]), index))) {
    return false;
  }
  mi_opaque(pair);
  mi_atomic_store_relaxed(&words[2 * pair], bits);
  return true;
}

// Another thread: the block at `index` is freed. False: it is not live, or has been freed before.
mi_inline bool _mi_hard_live_mark_remote(mi_live_word_t* words, uint64_t index) {
  if (mi_unlikely(index >= MI_PAGE_GRANULES)) {
    return false;
  }
  const uint32_t bit = mi_live_bit(index);
  // Looked at first, so that an interior pointer leaves no mark. Relaxed: the program ordered the allocation before us.
  if ((mi_atomic_load_relaxed(mi_live_owner_word(words, index)) & bit) == 0) {
    return false;
  }
  if ((mi_atomic_or_acq_rel(mi_live_remote_word(words, index), bit) & bit) != 0) {
    return false;
  }
  // Between the look and the mark the owner may have collected another thread's free of the same block.
  if (mi_unlikely((mi_atomic_load_relaxed(mi_live_owner_word(words, index)) & bit) == 0)) {
    mi_atomic_and_acq_rel(mi_live_remote_word(words, index), ~bit);
    return false;
  }
  return true;
}

// Anyone: whether the block at `index` is freed by a thread that is not the owner, and the owner has not heard of it.
mi_inline bool _mi_hard_live_is_marked(mi_live_word_t* words, uint64_t index) {
  return (mi_atomic_load_relaxed(mi_live_owner_word(words, index)) &
          mi_atomic_load_relaxed(mi_live_remote_word(words, index)) & mi_live_bit(index)) != 0;
}

// Owner: takes over what another thread freed, at a place where a block starts. False: nobody marked it, so the list that
// named it is corrupt.
mi_inline bool _mi_hard_live_collect(mi_live_word_t* words, uint64_t index) {
  if (mi_unlikely(index >= MI_PAGE_GRANULES)) {
    return false;
  }
  const uint32_t bit = mi_live_bit(index);
  mi_live_word_t* const word = mi_live_owner_word(words, index);
  const uint32_t before = mi_atomic_load_relaxed(word);
  mi_atomic_store_relaxed(word, before & ~bit);
  // Cleared after the owner's bit, so that there is no moment in which the block looks live and unmarked.
  // What waited in a quarantine has lost its owner's bit already.
  return (mi_atomic_and_acq_rel(mi_live_remote_word(words, index), ~bit) & bit) != 0 &&
      (MI_HAS_QUARANTINE || (before & bit) != 0);
}

// Whoever took the block at `index` in quarantine when it was the page's owner and is not any more: the block goes on to
// the page's list of others' frees. False: it is not free, or in that list already.
mi_inline bool _mi_hard_live_mark_waited(mi_live_word_t* words, uint64_t index) {
  const uint32_t bit = mi_live_bit(index);
  return (mi_atomic_load_relaxed(mi_live_owner_word(words, index)) & bit) == 0 &&
      (mi_atomic_or_acq_rel(mi_live_remote_word(words, index), bit) & bit) == 0;
}

// Owner: the block at `index` leaves its own quarantine. `marked`: it was freed when the page was another thread's. False:
// it is not what it was when it went in.
mi_inline bool _mi_hard_live_waited(mi_live_word_t* words, uint64_t index, bool marked) {
  if (marked) {
    return mi_likely(_mi_hard_live_is_marked(words, index)) && _mi_hard_live_collect(words, index);
  }
  return mi_likely(((mi_atomic_load_relaxed(mi_live_owner_word(words, index)) |
                     mi_atomic_load_relaxed(mi_live_remote_word(words, index))) &
                    mi_live_bit(index)) == 0);
}

// Anyone: whether the block at `index` is the program's.
mi_inline bool _mi_hard_live_test(mi_live_word_t* words, uint64_t index) {
  if (index >= MI_PAGE_GRANULES) {
    return false;
  }
  return (mi_atomic_load_relaxed(mi_live_owner_word(words, index)) &
          ~mi_atomic_load_relaxed(mi_live_remote_word(words, index)) & mi_live_bit(index)) != 0;
}
