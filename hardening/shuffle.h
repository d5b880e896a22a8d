// Owns: orders that cannot be foreseen: unbiased numbers, uniform permutations, choices from a set.
// May include: base.
// Called by: heap.
// Invariants: every order is as likely as any other, up to what two secret words can tell apart; a state is seeded anew
// after a few uses, so who could compute one from the orders it gave would learn little about the next.
#pragma once

#include "src/base/bits.h"

// A permuted congruential generator: one multiplication a number. Not for keys: those come from sys/random.
typedef struct mi_shuffle_s {
  uint64_t state;
  uint64_t step;  // odd
} mi_shuffle_t;

// Seeds from two random words.
mi_inline void _mi_hard_shuffle_seed(mi_shuffle_t* shuffle, uint64_t a, uint64_t b) {
  shuffle->state = a;
  shuffle->step = b | 1;
}

mi_inline uint64_t _mi_hard_shuffle_next(mi_shuffle_t* shuffle) {
  const uint64_t x = shuffle->state;
  shuffle->state = x * UINT64_C(6364136223846793005) + shuffle->step;
  const uint64_t mixed = ((x >> ((x >> 59) + 5)) ^ x) * UINT64_C(12605985483714917081);
  return (mixed >> 43) ^ mixed;
}

// A number below `bound`, which is not zero, without bias: the few values that would favour some are drawn again.
mi_inline uint32_t _mi_hard_shuffle_below(mi_shuffle_t* shuffle, uint32_t bound) {
  uint64_t product = (_mi_hard_shuffle_next(shuffle) >> 32) * bound;
  if (mi_unlikely((uint32_t)product < bound)) {
    const uint32_t surplus = (0U - bound) % bound;
    while ((uint32_t)product < surplus) {
      product = (_mi_hard_shuffle_next(shuffle) >> 32) * bound;
    }
  }
  return (uint32_t)(product >> 32);
}

// Puts `count` items, fewer than 65536, into a random order (Fisher and Yates). Four draws a word, without bias as above.
mi_inline void _mi_hard_shuffle(mi_shuffle_t* shuffle, uint16_t* items, uint32_t count) {
  uint64_t word = 0;
  unsigned draws = 0;
  for (uint32_t left = count; left > 1;) {
    if (draws == 0) {
      word = _mi_hard_shuffle_next(shuffle);
      draws = 4;
    }
    const uint32_t product = (uint32_t)(word & 0xffff) * left;
    word >>= 16;
    draws--;
    if (mi_unlikely((product & 0xffff) < left) && (product & 0xffff) < 0x10000U % left) {
      continue;
    }
    left--;
    const uint32_t chosen = product >> 16;
    const uint16_t item = items[chosen];
    items[chosen] = items[left];
    items[left] = item;
  }
}

// The number of one of the bits that are set in `set`, which is not empty, each as likely.
mi_inline unsigned _mi_hard_shuffle_pick(mi_shuffle_t* shuffle, uint64_t set) {
  for (uint32_t skip = _mi_hard_shuffle_below(shuffle, _mi_bits_popcount64(set)); skip > 0; skip--) {
    set &= set - 1;
  }
  return _mi_bits_ctz64(set);
}
