// Owns: the loops over words behind bitmap.h.
// May include: base.
// Called by: region.
// Invariants: a run that spans words is claimed word by word from the left and given back in full when one refuses.
#include "src/base/bitmap.h"

#include "src/base/assert.h"

// The part of a run of n bits from bit `start` that lies in its first word.
mi_inline uint64_t mi_bitmap_head(size_t start, size_t n, size_t* taken) {
  const unsigned bit = (unsigned)(start % MI_BITMAP_WORD_BITS);
  const size_t room = MI_BITMAP_WORD_BITS - bit;
  *taken = _mi_min(room, n);
  return _mi_bits_mask64((unsigned)*taken) << bit;
}

size_t _mi_bitmap_set(mi_bitmap_word_t* words, size_t start, size_t n) {
  size_t changed = 0;
  while (n > 0) {
    size_t taken;
    const uint64_t mask = mi_bitmap_head(start, n, &taken);
    const uint64_t before = mi_atomic_or_acq_rel(&words[start / MI_BITMAP_WORD_BITS], mask);
    changed += _mi_bits_popcount64(mask & ~before);
    start += taken;
    n -= taken;
  }
  return changed;
}

size_t _mi_bitmap_clear(mi_bitmap_word_t* words, size_t start, size_t n) {
  size_t changed = 0;
  while (n > 0) {
    size_t taken;
    const uint64_t mask = mi_bitmap_head(start, n, &taken);
    const uint64_t before = mi_atomic_and_acq_rel(&words[start / MI_BITMAP_WORD_BITS], ~mask);
    changed += _mi_bits_popcount64(mask & before);
    start += taken;
    n -= taken;
  }
  return changed;
}

static bool mi_bitmap_word_try_claim(mi_bitmap_word_t* word, uint64_t mask) {
  uint64_t before = mi_atomic_load_relaxed(word);
  do {
    if ((before & mask) != mask) {
      return false;
    }
  } while (!mi_atomic_cas_weak_acq_rel(word, &before, before & ~mask));
  return true;
}

bool _mi_bitmap_try_claim(mi_bitmap_word_t* words, size_t start, size_t n) {
  size_t done = 0;
  while (done < n) {
    size_t taken;
    const uint64_t mask = mi_bitmap_head(start + done, n - done, &taken);
    if (!mi_bitmap_word_try_claim(&words[(start + done) / MI_BITMAP_WORD_BITS], mask)) {
      _mi_bitmap_set(words, start, done);
      return false;
    }
    done += taken;
  }
  return true;
}

size_t _mi_bitmap_count(const mi_bitmap_word_t* words, size_t start, size_t n) {
  size_t count = 0;
  while (n > 0) {
    size_t taken;
    const uint64_t mask = mi_bitmap_head(start, n, &taken);
    count += _mi_bits_popcount64(mi_atomic_load_relaxed(&words[start / MI_BITMAP_WORD_BITS]) & mask);
    start += taken;
    n -= taken;
  }
  return count;
}

// The first bit at or after `from` that is set in words ^ flip.
static size_t mi_bitmap_next(const mi_bitmap_word_t* words, size_t bits, size_t from, uint64_t flip) {
  while (from < bits) {
    const unsigned bit = (unsigned)(from % MI_BITMAP_WORD_BITS);
    const uint64_t word = (mi_atomic_load_relaxed(&words[from / MI_BITMAP_WORD_BITS]) ^ flip) >> bit;
    if (word != 0) {
      return _mi_min(from + _mi_bits_ctz64(word), bits);
    }
    from += MI_BITMAP_WORD_BITS - bit;
  }
  return bits;
}

size_t _mi_bitmap_next_set(const mi_bitmap_word_t* words, size_t bits, size_t from) {
  return mi_bitmap_next(words, bits, from, 0);
}

size_t _mi_bitmap_next_clear(const mi_bitmap_word_t* words, size_t bits, size_t from) {
  return mi_bitmap_next(words, bits, from, ~UINT64_C(0));
}

bool _mi_bitmap_find(const mi_bitmap_word_t* words, size_t bits, size_t from, size_t n, size_t align, size_t phase,
                     size_t* start) {
  mi_assert_internal(n > 0 && _mi_is_power_of_two(align));
  if (n > bits) {
    return false;
  }
  size_t at = _mi_bitmap_next_set(words, bits, from);
  for (;;) {
    at = _mi_align_up(at + phase, align) - phase;
    if (at > bits - n) {
      return false;
    }
    const size_t hole = mi_bitmap_next(words, at + n, at, ~UINT64_C(0));
    if (hole >= at + n) {
      *start = at;
      return true;
    }
    at = _mi_bitmap_next_set(words, bits, hole + 1);
  }
}
