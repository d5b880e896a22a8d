// Owns: blocks filled with one byte, zero or a pattern, and the search for a byte that is not that any more.
// May include: base.
// Called by: heap.
// Invariants: addresses are multiples of 8, and so are sizes.
#pragma once

#include "src/base/bits.h"

enum {
  MI_FILL_ALLOCATED = 0xd0,  // what the program finds in a block that it did not ask to be zero
  MI_FILL_FREED = 0xdf,
  // Up to this size a loop in place beats the call of a function.
  MI_FILL_INLINE_MAX = 256,
};

typedef uint64_t mi_fill_pair_t __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint64_t mi_fill_word_t __attribute__((may_alias));

mi_inline uint64_t mi_fill_word(uint8_t value) { return value * UINT64_C(0x0101010101010101); }

mi_inline void _mi_hard_fill_set(void* p, size_t size, uint8_t value) {
  if (mi_unlikely(size > MI_FILL_INLINE_MAX)) {
    __builtin_memset(p, value, size);
    return;
  }
  const uint64_t word = mi_fill_word(value);
  const mi_fill_pair_t pair = {word, word};
  // An odd word goes first, so that pairs need one comparison each.
  uint8_t* at = p;
  uint8_t* const end = at + size;
  if ((size & 8) != 0) {
    *(mi_fill_word_t*)(void*)at = word;
  }
  for (at += size & 8; at < end; at += 16) {
    *(mi_fill_pair_t*)(void*)at = pair;
  }
}

// The offset of the first byte that differs from `value`, `size` when none does.
mi_inline size_t _mi_hard_fill_find(const void* p, size_t size, uint8_t value) {
  const uint64_t word = mi_fill_word(value);
  const mi_fill_pair_t pair = {word, word};
  const uint8_t* at = p;
  const uint8_t* const end = at + size;
  mi_fill_pair_t seen = {0, 0};
  uint64_t first = 0;
  if ((size & 8) != 0) {
    first = *(const mi_fill_word_t*)(const void*)at ^ word;
    at += 8;
  }
  for (; end - at >= 64; at += 64) {
    const mi_fill_pair_t* const four = (const mi_fill_pair_t*)(const void*)at;
    seen |= (four[0] ^ pair) | (four[1] ^ pair) | (four[2] ^ pair) | (four[3] ^ pair);
  }
  for (; at < end; at += 16) {
    seen |= *(const mi_fill_pair_t*)(const void*)at ^ pair;
  }
  if (mi_likely((seen[0] | seen[1] | first) == 0)) {
    return size;
  }
  size_t i = 0;
  while (((const uint8_t*)p)[i] == value) {
    i++;
  }
  return i;
}
