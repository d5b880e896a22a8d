// Owns: the stock of a page: the places whose blocks its owner hands out next, out of reach of the program.
// May include: base, hardening.
// Called by: heap.
// Invariants: a place is put in the stock when its live bits say that it is free, and a free block becomes live only by being
// taken from there. So a place stands there at most once and stays free until then. The live bits alone say which blocks are
// free; what the owner freed last is noted beside, so that most refills need no search. A free block holds a mark in its first
// word, which is compared when the block is handed out: a write after the free is seen, and leads nowhere.
#pragma once

#include "hardening/free-list.h"
#include "hardening/live-bits.h"
#include "hardening/shuffle.h"

// Adds the free places of whole words, from `from` up to `end`, to `count` that are in stock, until there are MI_STOCK_MAX.
// Returns how many there are.
mi_inline uint32_t _mi_hard_stock_add(uint16_t* stock, uint32_t count, mi_live_word_t* words, uint32_t from, uint32_t end) {
  for (; from < end && count < MI_STOCK_MAX; from += MI_LIVE_WORD_BITS) {
    // Acquire pairs with the release of whoever made the places free: what was done to their blocks is done.
    uint64_t free = (uint32_t) ~(mi_atomic_load_acquire(mi_live_remote_word(words, from)) |
                                 mi_atomic_load_relaxed(mi_live_owner_word(words, from)));
    // There is room for those of the last word.
    for (; free != 0; free &= free - 1) {
      stock[count++] = (uint16_t)(from + _mi_bits_ctz64(free));
    }
  }
  return count < MI_STOCK_MAX ? count : MI_STOCK_MAX;
}

// The same for those of the places that are `step` apart from each other.
mi_inline uint32_t _mi_hard_stock_add_far(uint16_t* stock, uint32_t count, mi_live_word_t* words, uint32_t from, uint32_t end, uint32_t step) {
  for (; from < end && count < MI_STOCK_MAX; from += step) {
    stock[count] = (uint16_t)from;
    count += _mi_hard_live_is_free(words, from);
  }
  return count;
}

// The same for places that are known to be free. There is room for all.
mi_inline uint32_t _mi_hard_stock_add_all(uint16_t* stock, uint32_t count, uint32_t from, uint32_t end, uint32_t step) {
  for (; from < end; from += step) {
    stock[count++] = (uint16_t)from;
  }
  return count;
}

// What a free block at address `at` holds in its first word: two of a page do not tell that of a third.
// Wraps: the product is one modulo the size of a word.
mi_inline mi_wraps uintptr_t _mi_hard_stock_mark(uintptr_t at, const mi_link_key_t* key) { return (at ^ key->link) * key->factor; }

// Notes a place that was freed, under a number that is one less each time. The last MI_STOCK_MAX of them are known; earlier ones
// are left for a search.
mi_inline void _mi_hard_stock_note_freed(uint16_t* freed, uint32_t number, uint64_t index) {
  freed[number % MI_STOCK_MAX] = (uint16_t)index;
}

// The stock is empty and gets the places that were noted under `number` and the `count` - 1 numbers behind it, at most
// MI_STOCK_MAX: in a random order, or, without a shuffle, the last that was freed first.
mi_inline void _mi_hard_stock_take_freed(mi_shuffle_t* shuffle, uint16_t* stock, const uint16_t* freed, uint32_t number, uint32_t count) {
  const uint32_t at = number % MI_STOCK_MAX;
  const uint32_t straight = count < MI_STOCK_MAX - at ? count : MI_STOCK_MAX - at;
  if (shuffle != NULL) {
    _mi_hard_shuffle_items(shuffle, stock, 0, freed + at, straight);
    if (mi_unlikely(straight < count)) {
      _mi_hard_shuffle_items(shuffle, stock, straight, freed, count);
    }
    return;
  }
  __builtin_memcpy(stock, freed + at, straight * sizeof(*stock));
  __builtin_memcpy(stock + straight, freed, (count - straight) * sizeof(*stock));
}

// The first of `count` places that is not free, though its owner has freed it: another thread did so at the same moment; `count`
// if all are.
mi_inline uint32_t _mi_hard_stock_find_marked(const uint16_t* stock, uint32_t count, mi_live_word_t* words) {
  uint32_t i = 0;
  while (i < count && mi_likely(_mi_hard_live_is_free(words, stock[i]))) {
    i++;
  }
  return i;
}

// Turns the stock round: the last is taken first.
mi_inline void _mi_hard_stock_reverse(uint16_t* stock, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; i++) {
    const uint16_t other = stock[count - 1 - i];
    stock[count - 1 - i] = stock[i];
    stock[i] = other;
  }
}

// Owner: the block at a place of the stock becomes live. False: it is live already, so the stock is not what it should be.
mi_inline bool _mi_hard_stock_hand_out(mi_live_word_t* words, uint64_t index) {
  size_t pair = (size_t)(index >> MI_LIVE_WORD_SHIFT);
  uint32_t bits = mi_atomic_load_relaxed(&words[2 * pair]);
  if (mi_unlikely(_mi_bits_set32(&bits, (uint32_t)index))) {
    return false;
  }
  mi_opaque(pair);
  mi_atomic_store_relaxed(&words[2 * pair], bits);
  return true;
}
