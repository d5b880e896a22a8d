// Owns: bitmaps shared by threads: claim, release and find runs of bits without a lock.
// May include: base.
// Called by: region.
// Invariants: a claimed run was all ones and is all zeroes for everyone afterwards; a failed claim leaves no trace.
#pragma once

#include "src/base/atomic.h"
#include "src/base/bits.h"

typedef _Atomic(uint64_t) mi_bitmap_word_t;

enum { MI_BITMAP_WORD_BITS = 64 };

// Words needed for `bits` bits.
mi_inline size_t _mi_bitmap_words(size_t bits) {
  return (bits + MI_BITMAP_WORD_BITS - 1) / MI_BITMAP_WORD_BITS;
}

// Sets n bits from `start`; returns how many were clear before. Release: pairs with the acquire of a claim.
size_t _mi_bitmap_set(mi_bitmap_word_t* words, size_t start, size_t n);

// Clears n bits from `start`; returns how many were set before.
size_t _mi_bitmap_clear(mi_bitmap_word_t* words, size_t start, size_t n);

// Turns n bits from `start` from one to zero, all or none. Acquire: pairs with the release of _mi_bitmap_set.
bool _mi_bitmap_try_claim(mi_bitmap_word_t* words, size_t start, size_t n);

// How many of the n bits from `start` are set.
size_t _mi_bitmap_count(const mi_bitmap_word_t* words, size_t start, size_t n);

mi_inline bool _mi_bitmap_is_set(const mi_bitmap_word_t* words, size_t i) {
  return ((mi_atomic_load_relaxed(&words[i / MI_BITMAP_WORD_BITS]) >> (i % MI_BITMAP_WORD_BITS)) & 1) != 0;
}

// The same; acquire pairs with the release of _mi_bitmap_set.
mi_inline bool _mi_bitmap_is_set_acquire(const mi_bitmap_word_t* words, size_t i) {
  return ((mi_atomic_load_acquire(&words[i / MI_BITMAP_WORD_BITS]) >> (i % MI_BITMAP_WORD_BITS)) & 1) != 0;
}

// The bits from `start` on, below `bits`, as many as a word has.
// Wraps: the window ends with its last bit.
mi_inline mi_wraps uint64_t _mi_bitmap_window(const mi_bitmap_word_t* words, size_t bits, size_t start) {
  const size_t word = start / MI_BITMAP_WORD_BITS;
  const unsigned shift = (unsigned)(start % MI_BITMAP_WORD_BITS);
  const uint64_t low = mi_atomic_load_relaxed(&words[word]) >> shift;
  const bool more = shift != 0 && (word + 1) * MI_BITMAP_WORD_BITS < bits;
  return more ? low | mi_atomic_load_relaxed(&words[word + 1]) << (MI_BITMAP_WORD_BITS - shift) : low;
}

// Finds n set bits whose first index plus `phase` is a multiple of `align`, looking from `from` below `bits`.
// What it finds may be gone when it returns: claim it.
bool _mi_bitmap_find(const mi_bitmap_word_t* words, size_t bits, size_t from, size_t n, size_t align, size_t phase,
                     size_t* start);

// The first set bit at or after `from`, or `bits` when there is none.
size_t _mi_bitmap_next_set(const mi_bitmap_word_t* words, size_t bits, size_t from);

// The first clear bit at or after `from`, or `bits` when there is none.
size_t _mi_bitmap_next_clear(const mi_bitmap_word_t* words, size_t bits, size_t from);
