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
  // So far ahead of what is looked at memory is asked for: the processor does not do so by itself beyond an OS page.
  MI_FILL_AHEAD = 1024,
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

// Fills a block of less than MI_FILL_LOOK_MIN bytes.
mi_inline void _mi_hard_fill_set_short(void* start, size_t size, uint8_t value) {
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
  for (uint8_t* at = p + 64; at < last - 48; at += 64) {
    *mi_fill_at(at) = pair;
    *mi_fill_at(at + 16) = pair;
    *mi_fill_at(at + 32) = pair;
    *mi_fill_at(at + 48) = pair;
  }
}

// A line of a block, 64 bytes, is filled if it holds anything else. Returns whether it does.
mi_inline bool mi_fill_line(uint8_t* at, mi_fill_pair_t pair) {
  const mi_fill_pair_t seen = (*mi_fill_at(at) ^ pair) | (*mi_fill_at(at + 16) ^ pair) | (*mi_fill_at(at + 32) ^ pair) | (*mi_fill_at(at + 48) ^ pair);
  if ((seen[0] | seen[1]) == 0) {
    return false;
  }
  *mi_fill_at(at) = pair;
  *mi_fill_at(at + 16) = pair;
  *mi_fill_at(at + 32) = pair;
  *mi_fill_at(at + 48) = pair;
  return true;
}

// Fills memory of whole lines, each of them if it holds anything else. Returns whether one does.
mi_inline bool _mi_hard_fill_lines(void* start, size_t size, uint8_t value) {
  const mi_fill_pair_t pair = {mi_fill_word(value), mi_fill_word(value)};
  bool written = false;
  for (uint8_t* at = start; at < (uint8_t*)start + size; at += 64) {
    __builtin_prefetch(at + MI_FILL_AHEAD);
    written |= mi_fill_line(at, pair);
  }
  return written;
}

// The same for any block: a larger one is looked at as it is filled.
mi_inline void _mi_hard_fill_set(void* start, size_t size, uint8_t value) {
  if (size < MI_FILL_LOOK_MIN) {
    _mi_hard_fill_set_short(start, size, value);
    return;
  }
  const mi_fill_pair_t pair = {mi_fill_word(value), mi_fill_word(value)};
  uint8_t* const last_line = (uint8_t*)start + size - 64;
  for (uint8_t* at = start; at < last_line; at += 64) {
    __builtin_prefetch(at + MI_FILL_AHEAD);
    (void)mi_fill_line(at, pair);
  }
  (void)mi_fill_line(last_line, pair);
}

// The bits in which a block of less than MI_FILL_LOOK_MIN bytes, or the first and last 64 bytes of any block, differ from `value`;
// but for the first word if it has a link there.
mi_inline uint64_t mi_fill_seen(const uint8_t* p, size_t size, mi_fill_pair_t pair, bool has_link, size_t lines_end) {
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
    for (size_t i = 64; i + 64 < lines_end; i += 64) {
      seen |= (*mi_fill_at(p + i) ^ pair) | (*mi_fill_at(p + i + 16) ^ pair) | (*mi_fill_at(p + i + 32) ^ pair) | (*mi_fill_at(p + i + 48) ^ pair);
    }
  }
  return seen[0] | seen[1];
}

// Whether a block of less than MI_FILL_LOOK_MIN bytes holds `value` everywhere; but for its first word if it has a link there.
mi_inline bool _mi_hard_fill_is_short(const void* start, size_t size, uint8_t value, bool has_link) {
  const mi_fill_pair_t pair = {mi_fill_word(value), mi_fill_word(value)};
  return mi_likely(mi_fill_seen(start, size, pair, has_link, size) == 0);
}

// The same for any block.
mi_inline bool _mi_hard_fill_is(const void* start, size_t size, uint8_t value, bool has_link) {
  const mi_fill_pair_t pair = {mi_fill_word(value), mi_fill_word(value)};
  const uint8_t* const p = start;
  mi_fill_pair_t seen = {mi_fill_seen(p, size, pair, has_link, size < MI_FILL_LOOK_MIN ? size : 0), 0};
  for (size_t i = 64; size >= MI_FILL_LOOK_MIN && i + 64 < size; i += 64) {
    __builtin_prefetch(p + i + MI_FILL_AHEAD);
    seen |= (*mi_fill_at(p + i) ^ pair) | (*mi_fill_at(p + i + 16) ^ pair) | (*mi_fill_at(p + i + 32) ^ pair) | (*mi_fill_at(p + i + 48) ^ pair);
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
