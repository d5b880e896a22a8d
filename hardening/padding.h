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

// The secret of a page.
typedef struct mi_padding_key_s {
  uint64_t place;   // mixed with the place
  uint64_t factor;  // odd
} mi_padding_key_t;

// A key from two random words.
mi_inline mi_padding_key_t _mi_hard_padding_key(uint64_t a, uint64_t b) { return (mi_padding_key_t){a, b | 1}; }

// What the slack at `trailer` is combined with: 56 bits of the key and the place. Both halves of the product, so that neither
// the factor nor the sum can be divided out of canaries that are read.
mi_inline uint64_t mi_padding_canary(uintptr_t trailer, const mi_padding_key_t* key) {
  return _mi_bits_mul_fold((uint64_t)trailer ^ key->place, key->factor) & ~UINT64_C(0xff);
}

mi_inline uint64_t _mi_hard_padding_encode(uintptr_t trailer, size_t slack, const mi_padding_key_t* key) {
  return mi_padding_canary(trailer, key) ^ ((uint64_t)slack << MI_PADDING_SLACK_SHIFT);
}

// Trailers are read by neighbours while others write them: as a whole, and with no order but what the reader sees to.
mi_inline uint64_t _mi_hard_padding_load(const uint8_t* trailer) {
  return mi_padding_order(mi_atomic_load_relaxed((const _Atomic(uint64_t)*)(const void*)trailer));
}

mi_inline void _mi_hard_padding_store(uint8_t* trailer, uint64_t word) {
  mi_atomic_store_relaxed((_Atomic(uint64_t)*)(void*)trailer, mi_padding_order(word));
}

// The slack in `word`, as found at `trailer`, if that is one; else a number larger than any room, as what is wrong of the canary
// is turned to above it.
mi_inline uint64_t mi_padding_slack(uint64_t word, const uint8_t* trailer, const mi_padding_key_t* key) {
  return _mi_rotl64(word ^ mi_padding_canary((uintptr_t)trailer, key), 64 - MI_PADDING_SLACK_SHIFT);
}

// Whether `word`, as found at `trailer`, is a trailer of a slack of at most `limit`. *difference: of what was found to one
// without slack; its bits outside of the slack tell where a bad one is bad.
mi_inline bool _mi_hard_padding_decode(uint64_t word, uintptr_t trailer, size_t limit, const mi_padding_key_t* key,
                                       size_t* slack, uint64_t* difference) {
  const uint64_t x = word ^ mi_padding_canary(trailer, key);
  *difference = x;
  *slack = (size_t)((x >> MI_PADDING_SLACK_SHIFT) & ((UINT64_C(1) << MI_PADDING_SLACK_BITS) - 1));
  return mi_likely((x & (MI_PADDING_LOW_MASK | MI_PADDING_HIGH_MASK)) == 0 && *slack <= limit);
}

// The slack of most blocks is short: not longer than the step of the small classes.
enum { MI_PADDING_SHORT = 16 };

// For the last 16 bytes before the trailer of a block with a short slack, from the slack-th byte of both on: which of them
// are slack, and what they hold: zeroes for the request's part, the zero behind it and the pattern.
static const struct {
  uint8_t is_slack[2 * MI_PADDING_SHORT];
  uint8_t bytes[2 * MI_PADDING_SHORT];
} mi_padding_short = {
    {[16] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
    {[16] = 0, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7, 0xa7},
};

// A word as it stands in memory.
mi_inline uint64_t mi_padding_raw(const uint8_t* p) {
  uint64_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return word;
}

// The bits of the word at trailer - 8 that are slack and wrong.
mi_inline uint64_t mi_padding_short_bad(const uint8_t* trailer, uint64_t slack) {
  const size_t at = (size_t)slack + MI_PADDING_SHORT - 8;
  return (mi_padding_raw(trailer - 8) ^ mi_padding_raw(&mi_padding_short.bytes[at])) & mi_padding_raw(&mi_padding_short.is_slack[at]);
}

// A longer slack is handled in 16 bytes at a time, of which those from its end may overlap those from its start: up to 63 bytes
// take the same instructions.
typedef uint64_t mi_padding_pair_t __attribute__((vector_size(16), aligned(1), may_alias));

mi_inline mi_padding_pair_t* mi_padding_at(const uint8_t* p) { return (mi_padding_pair_t*)(uintptr_t)p; }

// How far the second 16 bytes from either end are from the first, or from the byte behind the zero that the slack begins with.
mi_inline size_t mi_padding_step(size_t slack) { return _mi_min(15, slack - MI_PADDING_SHORT - 1); }

// Whether a slack that is not short is right.
mi_inline bool mi_padding_long_is_right(const uint8_t* trailer, size_t slack) {
  const uint8_t* const start = trailer - slack;
  const size_t step = mi_padding_step(slack);
  const mi_padding_pair_t pattern = {MI_PADDING_PATTERN, MI_PADDING_PATTERN};
  mi_padding_pair_t bad = *mi_padding_at(start) ^ *mi_padding_at(&mi_padding_short.bytes[MI_PADDING_SHORT]);
  bad |= (*mi_padding_at(start + 1 + step) ^ pattern) | (*mi_padding_at(trailer - 16 - step) ^ pattern) | (*mi_padding_at(trailer - 16) ^ pattern);
  for (const uint8_t* p = start + 32; p < trailer - 31; p += 16) {
    bad |= *mi_padding_at(p) ^ pattern;
  }
  return (bad[0] | bad[1]) == 0;
}

// Whether a short slack before a trailer is right, in a block of at least MI_PADDING_SHORT bytes before that.
mi_inline bool mi_padding_short_is_right(const uint8_t* trailer, uint64_t slack) {
  // Both tables from one address.
  const uint8_t* table = (const uint8_t*)&mi_padding_short + slack;
  mi_opaque(table);
  const uint8_t* const bytes = table + sizeof(mi_padding_short.is_slack);
  const uint64_t bad = ((mi_padding_raw(trailer - 16) ^ mi_padding_raw(bytes)) & mi_padding_raw(table)) |
      ((mi_padding_raw(trailer - 8) ^ mi_padding_raw(bytes + 8)) & mi_padding_raw(table + 8));
  return mi_likely(bad == 0);
}

// Whether the padding before a trailer is right, in a block of `room` bytes before that. May read bytes of the request, so
// not while the program uses the block.
mi_inline bool _mi_hard_padding_is_right(const uint8_t* trailer, size_t room, const mi_padding_key_t* key) {
  const uint64_t slack = mi_padding_slack(_mi_hard_padding_load(trailer), trailer, key);
  if (mi_unlikely(slack > MI_PADDING_SHORT)) {
    return slack <= room && mi_padding_long_is_right(trailer, (size_t)slack);
  }
  if (mi_unlikely(room < MI_PADDING_SHORT)) {
    return slack <= room && mi_padding_short_bad(trailer, slack) == 0;
  }
  return mi_padding_short_is_right(trailer, slack);
}

// The same if the slack is short, as it mostly is; else, and where it is not right, false. The block has at least
// MI_PADDING_SHORT bytes before its trailer.
mi_inline bool _mi_hard_padding_is_right_and_short(const uint8_t* trailer, const mi_padding_key_t* key) {
  const uint64_t slack = mi_padding_slack(_mi_hard_padding_load(trailer), trailer, key);
  return mi_likely(slack <= MI_PADDING_SHORT) && mi_padding_short_is_right(trailer, slack);
}

// Whether `word`, as found at `trailer`, is one.
mi_inline bool _mi_hard_padding_is_trailer(const uint8_t* trailer, uint64_t word, size_t room, const mi_padding_key_t* key) {
  return mi_likely(mi_padding_slack(word, trailer, key) <= room);
}

// Writes the padding of a block that nobody else looks at yet. Words may run into the trailer, which comes last.
mi_inline void _mi_hard_padding_write(uint8_t* trailer, size_t slack, const mi_padding_key_t* key) {
  uint8_t* const start = trailer - slack;
  if (slack <= MI_PADDING_SHORT) {
    mi_padding_put(start, MI_PADDING_PATTERN & ~UINT64_C(0xff));
    if (slack > 8) {
      mi_padding_put(start + 8, MI_PADDING_PATTERN);
    }
  } else {
    const size_t step = mi_padding_step(slack);
    const mi_padding_pair_t pattern = {MI_PADDING_PATTERN, MI_PADDING_PATTERN};
    *mi_padding_at(trailer - 16) = pattern;
    *mi_padding_at(trailer - 16 - step) = pattern;
    *mi_padding_at(start + 1 + step) = pattern;
    *mi_padding_at(start) = *mi_padding_at(&mi_padding_short.bytes[MI_PADDING_SHORT]);
    for (uint8_t* p = start + 32; p < trailer - 31; p += 16) {
      *mi_padding_at(p) = pattern;
    }
  }
  _mi_hard_padding_store(trailer, _mi_hard_padding_encode((uintptr_t)trailer, slack, key));
}

// The same for a short slack in a block that holds zeroes and has at least MI_PADDING_SHORT bytes before its trailer.
mi_inline void _mi_hard_padding_write_short(uint8_t* trailer, size_t slack, const mi_padding_key_t* key) {
  __builtin_memcpy(trailer - MI_PADDING_SHORT, &mi_padding_short.bytes[slack], MI_PADDING_SHORT);
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
mi_inline void _mi_hard_padding_rewrite(uint8_t* trailer, size_t slack, const mi_padding_key_t* key) {
  _mi_hard_padding_fill(trailer, slack);
  _mi_hard_padding_store(trailer, _mi_hard_padding_encode((uintptr_t)trailer, slack, key));
}

// What the slack holds at its byte `at`.
mi_inline uint8_t _mi_hard_padding_slack_byte(size_t at) { return at == 0 ? 0 : (uint8_t)(MI_PADDING_PATTERN & 0xff); }

// Compares slack of any memory; the number of bytes up to the first bad one, `slack` when all are right.
mi_inline size_t _mi_hard_padding_compare_bytes(const uint8_t* start, size_t slack) {
  size_t i = 0;
  if (slack > 8 && mi_padding_get(start) == (MI_PADDING_PATTERN & ~UINT64_C(0xff))) {
    for (i = 8; i + 8 <= slack && mi_padding_get(start + i) == MI_PADDING_PATTERN; i += 8) {
    }
  }
  while (i < slack && start[i] == _mi_hard_padding_slack_byte(i)) {
    i++;
  }
  return i;
}

// The same for the slack before a trailer. Reads no byte of the request, which others may be writing, but may read the
// trailer.
mi_inline mi_wraps size_t _mi_hard_padding_compare(const uint8_t* trailer, size_t slack) {
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

// The same for the first `part` bytes of a slack.
mi_inline size_t _mi_hard_padding_compare_part(const uint8_t* trailer, size_t slack, size_t part) {
  if (part >= slack) {
    return _mi_hard_padding_compare(trailer, slack);
  }
  const size_t good = _mi_hard_padding_compare_bytes(trailer - slack, part);
  return good == part ? slack : good;
}

// The same as rewrite for a block whose slack was `before` and, as far as has been seen, right: writes what is between the
// two ends. What comes to be the request's holds zeroes.
mi_inline void _mi_hard_padding_shift(uint8_t* trailer, size_t before, size_t slack, const mi_padding_key_t* key) {
  uint8_t* const end = trailer - slack;
  if (slack > before) {
    const size_t changed = before > 0 ? slack - before + 1 : slack;
    _mi_hard_padding_fill(end + changed, changed);
  } else {
    __builtin_memset(trailer - before, 0, before - slack + (slack > 0));
  }
  _mi_hard_padding_store(trailer, _mi_hard_padding_encode((uintptr_t)trailer, slack, key));
}

// Whether the damage that `difference` shows came from behind the block: nothing is wrong at the trailer's beginning.
mi_inline bool _mi_hard_padding_hit_from_behind(uint64_t difference) { return (difference & MI_PADDING_LOW_MASK) == 0; }

// The first of the trailer's bytes that is certainly wrong, in a trailer that is.
mi_inline size_t _mi_hard_padding_bad_byte(uint64_t difference) {
  const uint64_t bad = difference & (MI_PADDING_LOW_MASK | MI_PADDING_HIGH_MASK);
  return bad == 0 ? MI_PADDING_SLACK_SHIFT / 8 : _mi_bits_ctz64(bad) >> 3;
}

// Whether byte `at` of a trailer has no bit of the slack, and so one right value.
mi_inline bool _mi_hard_padding_is_certain(size_t at) {
  return (((MI_PADDING_LOW_MASK | MI_PADDING_HIGH_MASK) >> (8 * at)) & 0xff) == 0xff;
}

// What such a byte, which holds `found`, should hold.
mi_inline uint8_t _mi_hard_padding_wanted(uint64_t difference, size_t at, uint8_t found) {
  return (uint8_t)(found ^ (uint8_t)(difference >> (8 * at)));
}
