// Owns: the target that compares base/bitmap with an array of bools.
// May include: fuzz/lib, src/base.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: one thread, so what is found is there and a claim of ones never fails.
#include <string.h>

#include "fuzz/lib/fuzz.h"
#include "src/base/bitmap.h"

enum { BITS_MAX = 1024 };

static mi_bitmap_word_t words[BITS_MAX / MI_BITMAP_WORD_BITS];
static bool model[BITS_MAX];

static size_t mi_count(size_t start, size_t n) {
  size_t count = 0;
  for (size_t i = start; i < start + n; i++) {
    count += model[i];
  }
  return count;
}

static void mi_assign(size_t start, size_t n, bool value) {
  for (size_t i = start; i < start + n; i++) {
    model[i] = value;
  }
}

static size_t mi_next(size_t bits, size_t from, bool value) {
  while (from < bits && model[from] != value) {
    from++;
  }
  return from;
}

// The first run of n at or after `from`, as the promise of _mi_bitmap_find reads.
static bool mi_is_run(size_t bits, size_t start, size_t n, size_t align, size_t phase) {
  return start + n <= bits && (start + phase) % align == 0 && mi_count(start, n) == n;
}

static void mi_check_find(size_t bits, size_t from, size_t n, size_t align, size_t phase) {
  size_t found = SIZE_MAX;
  const bool is_there = _mi_bitmap_find(words, bits, from, n, align, phase, &found);
  size_t first = from;
  while (first < bits && !mi_is_run(bits, first, n, align, phase)) {
    first++;
  }
  MI_FUZZ_CHECK(is_there == (first < bits), "find: %zu bits at %zu of %zu: found is %d", n, first, bits, is_there);
  MI_FUZZ_CHECK(!is_there || (found >= from && mi_is_run(bits, found, n, align, phase)), "find: %zu bits are not at %zu of %zu", n, found, bits);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  const size_t bits = 1 + (size_t)mi_fuzz_take(&input, 2) % BITS_MAX;
  memset(model, 0, sizeof(model));
  for (size_t i = 0; i < BITS_MAX / MI_BITMAP_WORD_BITS; i++) {
    mi_atomic_store_relaxed(&words[i], 0);
  }
  while (input.left > 0) {
    const unsigned op = (unsigned)mi_fuzz_take(&input, 1);
    const size_t start = (size_t)mi_fuzz_take(&input, 2) % bits;
    const size_t n = 1 + (size_t)mi_fuzz_take(&input, 2) % (bits - start);
    switch (op % 8) {
      case 0:
      case 1: {
        const size_t before = mi_count(start, n);
        MI_FUZZ_CHECK(_mi_bitmap_set(words, start, n) == n - before, "set: %zu bits at %zu", n, start);
        mi_assign(start, n, true);
        break;
      }
      case 2: {
        const size_t before = mi_count(start, n);
        MI_FUZZ_CHECK(_mi_bitmap_clear(words, start, n) == before, "clear: %zu bits at %zu", n, start);
        mi_assign(start, n, false);
        break;
      }
      case 3: {
        const bool all = mi_count(start, n) == n;
        MI_FUZZ_CHECK(_mi_bitmap_try_claim(words, start, n) == all, "claim: %zu bits at %zu: all set is %d", n, start, all);
        if (all) {
          mi_assign(start, n, false);
        }
        break;
      }
      case 4: mi_check_find(bits, start, 1 + n % 80, (size_t)1 << (op >> 3) % 8, op >> 5); break;
      case 5:
        MI_FUZZ_CHECK(_mi_bitmap_next_set(words, bits, start) == mi_next(bits, start, true), "next_set: from %zu", start);
        MI_FUZZ_CHECK(_mi_bitmap_next_clear(words, bits, start) == mi_next(bits, start, false), "next_clear: from %zu", start);
        break;
      case 6: MI_FUZZ_CHECK(_mi_bitmap_count(words, start, n) == mi_count(start, n), "count: %zu bits at %zu", n, start); break;
      default: {
        const uint64_t window = _mi_bitmap_window(words, bits, start);
        for (size_t i = 0; i < 64 && start + i < bits; i++) {
          MI_FUZZ_CHECK(((window >> i) & 1) == model[start + i], "window: bit %zu from %zu", i, start);
        }
        break;
      }
    }
    MI_FUZZ_CHECK(_mi_bitmap_is_set(words, start) == model[start], "is_set: %zu", start);
  }
  for (size_t i = 0; i < bits; i++) {
    MI_FUZZ_CHECK(_mi_bitmap_is_set(words, i) == model[i], "at the end: bit %zu", i);
  }
  return 0;
}
