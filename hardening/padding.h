// Owns: the end of a block: what lies between a request and the end of its block, and the keyed word that closes it.
// May include: base.
// Called by: heap.
// Invariants: behind the request comes a zero, so that a string which fills its buffer leaks nothing; every other byte up
// to the end of the block has one right value. Whoever has no key cannot make a trailer, and one of another block is wrong.
//
//     request | 0 pattern … pattern | trailer, whose first byte is 0
//             |       slack         | 8 bytes
#pragma once

#include "src/base/atomic.h"
#include "src/base/bits.h"

enum {
  MI_PADDING_SIZE = 8,
  // The trailer, by bits from its first byte: 8 zeroes, 16 of canary, 20 of slack, 20 of canary. Writes that come from
  // either side meet canary before they meet slack.
  MI_PADDING_SLACK_SHIFT = 24,
  MI_PADDING_SLACK_BITS = 20,
};

#define MI_PADDING_PATTERN UINT64_C(0xa7a7a7a7a7a7a7a7)
#define MI_PADDING_LOW_MASK UINT64_C(0x0000000000ffffff)
#define MI_PADDING_HIGH_MASK UINT64_C(0xfffff00000000000)

// A word whose first byte in memory is the lowest.
mi_inline uint64_t mi_padding_order(uint64_t word) {
  return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

mi_inline uint64_t mi_padding_get(const uint8_t* p) {
  uint64_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return mi_padding_order(word);
}

mi_inline void mi_padding_put(uint8_t* p, uint64_t word) {
  word = mi_padding_order(word);
  __builtin_memcpy(p, &word, sizeof(word));
}

// What the slack at `trailer` is combined with: 56 bits of the key and the place. Two multiplications, one of them by the
// key, so that a canary that is read does not give the key away by arithmetic that undoes itself.
mi_inline uint64_t mi_padding_canary(uintptr_t trailer, uint64_t key) {
  uint64_t x = ((uint64_t)trailer ^ key) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 32;
  x *= key | 1;
  x ^= x >> 29;
  return x & ~UINT64_C(0xff);
}

mi_inline uint64_t _mi_hard_padding_encode(uintptr_t trailer, size_t slack, uint64_t key) {
  return mi_padding_canary(trailer, key) ^ ((uint64_t)slack << MI_PADDING_SLACK_SHIFT);
}

// Trailers are read by neighbours while others write them: as a whole, and with no order but what the reader sees to.
mi_inline uint64_t _mi_hard_padding_load(const uint8_t* trailer) {
  return mi_padding_order(mi_atomic_load_relaxed((const _Atomic(uint64_t)*)(const void*)trailer));
}

mi_inline void _mi_hard_padding_store(uint8_t* trailer, uint64_t word) {
  mi_atomic_store_relaxed((_Atomic(uint64_t)*)(void*)trailer, mi_padding_order(word));
}

// Whether `word`, as found at `trailer`, is a trailer of a slack of at most `limit`. *difference: of what was found to one
// without slack; its bits outside of the slack tell where a bad one is bad.
mi_inline bool _mi_hard_padding_decode(uint64_t word, uintptr_t trailer, size_t limit, uint64_t key, size_t* slack,
                                       uint64_t* difference) {
  const uint64_t x = word ^ mi_padding_canary(trailer, key);
  *difference = x;
  *slack = (size_t)((x >> MI_PADDING_SLACK_SHIFT) & ((UINT64_C(1) << MI_PADDING_SLACK_BITS) - 1));
  return mi_likely((x & (MI_PADDING_LOW_MASK | MI_PADDING_HIGH_MASK)) == 0 && *slack <= limit);
}

// Writes the padding of a block that nobody else looks at yet. Words may run into the trailer, which comes last.
mi_inline void _mi_hard_padding_write(uint8_t* trailer, size_t slack, uint64_t key) {
  uint8_t* p = trailer - slack;
  mi_padding_put(p, MI_PADDING_PATTERN & ~UINT64_C(0xff));
  for (p += 8; mi_unlikely(p < trailer); p += 8) {
    mi_padding_put(p, MI_PADDING_PATTERN);
  }
  _mi_hard_padding_store(trailer, _mi_hard_padding_encode((uintptr_t)trailer, slack, key));
}

// Fills the slack before `end` without a byte beyond.
mi_inline void _mi_hard_padding_fill(uint8_t* end, size_t slack) {
  if (slack != 0) {
    __builtin_memset(end - slack, (int)(MI_PADDING_PATTERN & 0xff), slack);
    *(end - slack) = 0;
  }
}

// The same as write for a block in use, whose trailer others may read meanwhile: it is right all the time.
mi_inline void _mi_hard_padding_rewrite(uint8_t* trailer, size_t slack, uint64_t key) {
  _mi_hard_padding_fill(trailer, slack);
  _mi_hard_padding_store(trailer, _mi_hard_padding_encode((uintptr_t)trailer, slack, key));
}

// Compares slack of any memory; the number of bytes up to the first bad one, `slack` when all are right.
mi_inline size_t _mi_hard_padding_compare_bytes(const uint8_t* start, size_t slack) {
  size_t i = 0;
  while (i < slack && start[i] == (i == 0 ? 0 : (uint8_t)(MI_PADDING_PATTERN & 0xff))) {
    i++;
  }
  return i;
}

// The same for the slack before a trailer. Reads no byte of the request, which others may be writing, but may read the
// trailer.
mi_inline size_t _mi_hard_padding_compare(const uint8_t* trailer, size_t slack) {
  const uint8_t* const start = trailer - slack;
  uint64_t bad = mi_padding_get(start) ^ (MI_PADDING_PATTERN & ~UINT64_C(0xff));
  if (slack <= 8) {
    // The shift takes off what belongs to the trailer.
    bad = slack == 0 ? 0 : bad << ((64 - 8 * slack) & 63);
  } else {
    // Whole words, of which the last may overlap the one before.
    bad |= mi_padding_get(trailer - 8) ^ MI_PADDING_PATTERN;
    for (const uint8_t* p = start + 8; mi_unlikely(p < trailer - 8); p += 8) {
      bad |= mi_padding_get(p) ^ MI_PADDING_PATTERN;
    }
  }
  return mi_likely(bad == 0) ? slack : _mi_hard_padding_compare_bytes(start, slack);
}

// Whether the damage that `difference` shows came from behind the block: nothing is wrong at the trailer's beginning.
mi_inline bool _mi_hard_padding_hit_from_behind(uint64_t difference) { return (difference & MI_PADDING_LOW_MASK) == 0; }

// The first of the trailer's bytes that is certainly wrong, in a trailer that is.
mi_inline size_t _mi_hard_padding_bad_byte(uint64_t difference) {
  const uint64_t bad = difference & (MI_PADDING_LOW_MASK | MI_PADDING_HIGH_MASK);
  return bad == 0 ? MI_PADDING_SLACK_SHIFT / 8 : _mi_bits_ctz64(bad) >> 3;
}
