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

// Wraps: a generator modulo 2^64.
mi_inline mi_wraps uint64_t _mi_hard_shuffle_next(mi_shuffle_t* shuffle) {
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

// Puts `item` at place `at` of `count` items, and what was there behind them all.
mi_inline void mi_shuffle_insert(uint16_t* items, uint32_t count, uint32_t item, uint32_t at) {
  items[count] = (uint16_t)item;
  items[count] = items[at];
  items[at] = (uint16_t)item;
}

// Adds the numbers `first` … `first + more - 1` to `count` items that are in a random order, so that all are (Fisher and
// Yates, from the inside out). There are at most MI_SHUFFLE_MAX. Three draws share a word: what the first leaves of it
// serves the next, and all three are drawn again where some results would be favoured.
enum { MI_SHUFFLE_MAX = 1024 };

// Wraps: how many of 2^32 are too many.
mi_inline mi_wraps void _mi_hard_shuffle_add(mi_shuffle_t* shuffle, uint16_t* items, uint32_t count, uint32_t first, uint32_t more) {
  for (; more >= 3; more -= 3) {
    const uint32_t bound = count + 1;
    const uint32_t orders = bound * (bound + 1) * (bound + 2);
    uint64_t a;
    uint64_t b;
    uint64_t c;
    do {
      a = (_mi_hard_shuffle_next(shuffle) >> 32) * bound;
      b = (uint64_t)(uint32_t)a * (bound + 1);
      c = (uint64_t)(uint32_t)b * (bound + 2);
    } while (mi_unlikely((uint32_t)c < orders) && (uint32_t)c < (0U - orders) % orders);
    mi_shuffle_insert(items, count++, first++, (uint32_t)(a >> 32));
    mi_shuffle_insert(items, count++, first++, (uint32_t)(b >> 32));
    mi_shuffle_insert(items, count++, first++, (uint32_t)(c >> 32));
  }
  for (; more > 0; more--) {
    const uint32_t at = _mi_hard_shuffle_below(shuffle, count + 1);
    mi_shuffle_insert(items, count++, first++, at);
  }
}

// Adds the items at `more` to `count` items that are in a random order, until there are `end`, at most MI_SHUFFLE_QUICK_MAX, so
// that all are. Where the new ones stand behind the others already, this puts them in order in place. Four draws share a word, 16
// bits each, so that a place may be favoured by one part in 65536 / MI_SHUFFLE_QUICK_MAX, which is less than the generator can be
// trusted for.
enum { MI_SHUFFLE_QUICK_MAX = 256 };

mi_inline void mi_shuffle_put(uint16_t* items, uint16_t* end, uint16_t item, uint32_t at) {
  *end = items[at];
  items[at] = item;
}

mi_inline void _mi_hard_shuffle_items(mi_shuffle_t* shuffle, uint16_t* items, uint32_t count, const uint16_t* more, uint32_t end) {
  mi_shuffle_t state = *shuffle;
  for (; count + MI_BITS_LANES <= end; count += MI_BITS_LANES, more += MI_BITS_LANES) {
    uint16_t at[MI_BITS_LANES];
    const uint64_t low = _mi_hard_shuffle_next(&state);
    uint16_t* const to = items + count;
    _mi_bits_scale16(at, low, _mi_hard_shuffle_next(&state), count + 1);
#pragma GCC unroll 8
    for (unsigned k = 0; k < MI_BITS_LANES; k++) {
      mi_shuffle_put(items, to + k, more[k], at[k]);
    }
  }
  while (count < end) {
    uint64_t draws = _mi_hard_shuffle_next(&state);
    for (unsigned k = 0; k < 4 && count < end; k++, count++, draws >>= 16) {
      mi_shuffle_put(items, items + count, *more++, ((uint32_t)draws & 0xffff) * (count + 1) >> 16);
    }
  }
  *shuffle = state;
}

// The number of one of the bits that are set in `set`, which is not empty, each as likely.
mi_inline unsigned _mi_hard_shuffle_pick(mi_shuffle_t* shuffle, uint64_t set) {
  for (uint32_t skip = _mi_hard_shuffle_below(shuffle, _mi_bits_popcount64(set)); skip > 0; skip--) {
    set &= set - 1;
  }
  return _mi_bits_ctz64(set);
}
