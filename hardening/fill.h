// Owns: blocks filled with one byte, zero or a pattern, and the search for a byte that is not that any more.
// May include: base.
// Called by: heap.
// Invariants: addresses are multiples of 8, and so are sizes; a block's is a multiple of 16 and not 0.
#pragma once

#include "src/base/bits.h"

enum {
  MI_FILL_ALLOCATED = 0xd0,  // what the program finds in a block that it did not ask to be zero
  MI_FILL_FREED = 0xdf,
  // Larger blocks lie outside of the nearest caches, and programs often write little of them: a line that holds the value
  // already is left clean.
  MI_FILL_LOOK_MIN = 2048,
};

typedef uint64_t mi_fill_pair_t __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint64_t mi_fill_word_t __attribute__((may_alias));

mi_inline uint64_t mi_fill_word(uint8_t value) { return value * UINT64_C(0x0101010101010101); }

mi_inline mi_fill_pair_t* mi_fill_at(const uint8_t* p) { return (mi_fill_pair_t*)(uintptr_t)p; }

// Both below work from both ends, with accesses that may overlap, so that the sizes of each of a few ranges take the same
// instructions: the next size is not known to the processor, and a branch that it guesses wrong costs more than the accesses
// that a smaller size could do without. Offsets below are valid from either end of the sizes they are used for.
//
// For 48 … 128 bytes: 48, but what is left of 48.
mi_inline size_t mi_fill_fourth(size_t size) { return _mi_min(48, size - 16); }

mi_inline void _mi_hard_fill_set(void* start, size_t size, uint8_t value) {
  const mi_fill_pair_t pair = {mi_fill_word(value), mi_fill_word(value)};
  uint8_t* const p = start;
  uint8_t* const last = p + size - 16;
  *mi_fill_at(p) = pair;
  *mi_fill_at(last) = pair;
  if (size <= 32) {
    return;
  }
  *mi_fill_at(p + 16) = pair;
  *mi_fill_at(p + 32) = pair;
  *mi_fill_at(last - 32) = pair;
  *mi_fill_at(last - 16) = pair;
  const size_t fourth = mi_fill_fourth(size);
  *mi_fill_at(p + fourth) = pair;
  *mi_fill_at(last - fourth) = pair;
  if (size >= MI_FILL_LOOK_MIN) {
    for (uint8_t* at = p + 64; at < last - 48; at += 64) {
      const mi_fill_pair_t seen = (*mi_fill_at(at) ^ pair) | (*mi_fill_at(at + 16) ^ pair) | (*mi_fill_at(at + 32) ^ pair) | (*mi_fill_at(at + 48) ^ pair);
      if ((seen[0] | seen[1]) != 0) {
        *mi_fill_at(at) = pair;
        *mi_fill_at(at + 16) = pair;
        *mi_fill_at(at + 32) = pair;
        *mi_fill_at(at + 48) = pair;
      }
    }
    return;
  }
  for (uint8_t* at = p + 64; at < last - 48; at += 64) {
    *mi_fill_at(at) = pair;
    *mi_fill_at(at + 16) = pair;
    *mi_fill_at(at + 32) = pair;
    *mi_fill_at(at + 48) = pair;
  }
}

// Whether a block holds `value` everywhere; but for its first word if it has a link there.
mi_inline bool _mi_hard_fill_is(const void* start, size_t size, uint8_t value, bool has_link) {
  const mi_fill_pair_t pair = {mi_fill_word(value), mi_fill_word(value)};
  const uint8_t* const p = start;
  const uint8_t* const last = p + size - 16;
  // What comes from the end must not meet a link either.
  const uint8_t* const first = has_link ? p + 16 : p;
  mi_fill_pair_t seen = {0, 0};
  if (has_link) {
    seen[0] = ((const mi_fill_word_t*)(const void*)p)[1] ^ pair[0];
  } else {
    seen = *mi_fill_at(p) ^ pair;
  }
  if (!has_link || mi_likely(size > 16)) {
    seen |= *mi_fill_at(last) ^ pair;
  }
  if (size > 32) {
    const size_t fourth = mi_fill_fourth(size);
    const uint8_t* const third_last = has_link && last - 32 < first ? first : last - 32;
    const uint8_t* const fourth_last = has_link && last - fourth < first ? first : last - fourth;
    seen |= (*mi_fill_at(p + 16) ^ pair) | (*mi_fill_at(p + 32) ^ pair) | (*mi_fill_at(p + fourth) ^ pair) |
        (*mi_fill_at(fourth_last) ^ pair) | (*mi_fill_at(third_last) ^ pair) | (*mi_fill_at(last - 16) ^ pair);
    for (const uint8_t* at = p + 64; at < last - 48; at += 64) {
      seen |= (*mi_fill_at(at) ^ pair) | (*mi_fill_at(at + 16) ^ pair) | (*mi_fill_at(at + 32) ^ pair) | (*mi_fill_at(at + 48) ^ pair);
    }
  }
  return mi_likely((seen[0] | seen[1]) == 0);
}

// The offset of the first byte that differs from `value`, `size` when none does. Slow.
mi_inline size_t _mi_hard_fill_find(const void* p, size_t size, uint8_t value) {
  size_t i = 0;
  while (i < size && ((const uint8_t*)p)[i] == value) {
    i++;
  }
  return i;
}
