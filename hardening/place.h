// Owns: where memory is put: the address asked for an arena, and the slice at which a search begins.
// May include: base.
// Called by: region.
// Invariants: an address is only ever a wish; a place lies within the bounds that the caller gave.
#pragma once

#include "src/base/bits.h"

enum {
  // Fewer address bits than this leave no room to choose in.
  MI_PLACE_ADDRESS_BITS_MIN = 38,
  // More are not used: the kernel gives such addresses only to those who ask, and who asked may not expect it.
  MI_PLACE_ADDRESS_BITS_MAX = 47,
  // Wishes lie between the 64th part of the addresses and their middle: programs load below and above.
  MI_PLACE_LOW_SHARE_SHIFT = 6,
};

// An address that is a multiple of `align`, a power of two, for `size` bytes; 0: there is none to wish for.
mi_inline uintptr_t _mi_hard_place_address(uint64_t random, unsigned address_bits, size_t size, size_t align) {
  if (sizeof(uintptr_t) < 8 || address_bits < MI_PLACE_ADDRESS_BITS_MIN) {
    return 0;
  }
  const unsigned bits = (unsigned)_mi_min(address_bits, MI_PLACE_ADDRESS_BITS_MAX);
  const uint64_t low = UINT64_C(1) << (bits - MI_PLACE_LOW_SHARE_SHIFT);
  const uint64_t high = UINT64_C(1) << (bits - 1);
  if (size > high - low || align > low) {
    return 0;
  }
  const uint64_t choices = (high - low - size) / align + 1;
  return (uintptr_t)(low + random % choices * align);
}

// Random words from a secret and a counter, so that threads share nothing but the counter.
// Wraps: products modulo 2^64.
mi_inline mi_wraps uint64_t _mi_hard_place_word(uint64_t secret, uint64_t count) {
  uint64_t x = secret ^ (count * UINT64_C(0x9e3779b97f4a7c15));
  x = (x ^ (x >> 32)) * (secret | 1);
  x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ (x >> 32);
}

// A number below `bound`, which is not zero and small, from such a word.
mi_inline size_t _mi_hard_place_below(uint64_t word, size_t bound) {
  return (size_t)(((word >> 32) * (uint64_t)bound) >> 32);
}
