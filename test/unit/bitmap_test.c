// Owns: tests of base/bitmap: every operation against a plain array of flags, edges of words, claims by many threads.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: bits beside a run are never changed; the words behind the last are never read.
#include "src/base/bitmap.h"

#include <pthread.h>

#include "test/lib/test.h"

enum { WORDS = 5,
       BITS = 290,
       THREADS = 4 };

static mi_bitmap_word_t mi_bitmap_test_words[WORDS];
static bool mi_bitmap_test_model[WORDS * 64];

// Also the bits behind the last are at random: nothing may depend on them.
static void mi_bitmap_test_randomise(uint64_t* seed, unsigned density) {
  for (size_t i = 0; i < WORDS * 64; i++) {
    mi_bitmap_test_model[i] = mi_test_random(seed) % 8 < density;
  }
  for (size_t w = 0; w < WORDS; w++) {
    uint64_t word = 0;
    for (size_t i = 0; i < 64; i++) {
      word |= (uint64_t)mi_bitmap_test_model[w * 64 + i] << i;
    }
    mi_atomic_store_relaxed(&mi_bitmap_test_words[w], word);
  }
}

static size_t mi_bitmap_test_model_count(size_t start, size_t n) {
  size_t count = 0;
  for (size_t i = start; i < start + n; i++) {
    count += mi_bitmap_test_model[i];
  }
  return count;
}

static size_t mi_bitmap_test_model_next(size_t from, size_t bits, bool set) {
  while (from < bits && mi_bitmap_test_model[from] != set) {
    from++;
  }
  return from < bits ? from : bits;
}

static void mi_bitmap_test_compare(const char* what, size_t start, size_t n) {
  for (size_t i = 0; i < WORDS * 64; i++) {
    const bool bit = (mi_atomic_load_relaxed(&mi_bitmap_test_words[i / 64]) >> (i % 64)) & 1;
    if (!MI_CHECK_MSG(bit == mi_bitmap_test_model[i], "%s of %zu bits from %zu: bit %zu", what, n, start, i)) {
      return;
    }
  }
}

static const struct {
  size_t start;
  size_t n;
} mi_bitmap_test_runs[] = {
    {0, 0},
    {63, 0},
    {64, 0},
    {0, 1},
    {63, 1},
    {64, 1},
    {0, 63},
    {0, 64},
    {0, 65},
    {1, 63},
    {1, 64},
    {63, 2},
    {63, 66},
    {64, 64},
    {65, 63},
    {60, 200},
    {0, 289},
    {0, 290},
    {0, 320},
    {256, 64},
    {319, 1},
    {289, 1},
};
enum { RUNS = sizeof(mi_bitmap_test_runs) / sizeof(mi_bitmap_test_runs[0]) };

static const struct {
  size_t bits;
  size_t words;
} mi_bitmap_test_word_counts[] = {{0, 0}, {1, 1}, {63, 1}, {64, 1}, {65, 2}, {128, 2}, {129, 3}, {16384, 256}};

MI_TEST(word_counts) {
  for (size_t i = 0; i < sizeof(mi_bitmap_test_word_counts) / sizeof(mi_bitmap_test_word_counts[0]); i++) {
    MI_CHECK_EQ(_mi_bitmap_words(mi_bitmap_test_word_counts[i].bits), mi_bitmap_test_word_counts[i].words);
  }
}

MI_TEST(set_and_clear) {
  uint64_t seed = 1;
  for (size_t r = 0; r < RUNS; r++) {
    const size_t start = mi_bitmap_test_runs[r].start;
    const size_t n = mi_bitmap_test_runs[r].n;
    for (unsigned density = 0; density <= 8; density += 4) {
      mi_bitmap_test_randomise(&seed, density);
      const size_t set = mi_bitmap_test_model_count(start, n);
      MI_CHECK_EQ(_mi_bitmap_count(mi_bitmap_test_words, start, n), set);
      MI_CHECK_EQ(_mi_bitmap_set(mi_bitmap_test_words, start, n), n - set);
      memset(mi_bitmap_test_model + start, 1, n);
      mi_bitmap_test_compare("set", start, n);
      MI_CHECK_EQ(_mi_bitmap_set(mi_bitmap_test_words, start, n), 0);

      mi_bitmap_test_randomise(&seed, density);
      const size_t were = mi_bitmap_test_model_count(start, n);
      MI_CHECK_EQ(_mi_bitmap_clear(mi_bitmap_test_words, start, n), were);
      memset(mi_bitmap_test_model + start, 0, n);
      mi_bitmap_test_compare("clear", start, n);
      MI_CHECK_EQ(_mi_bitmap_clear(mi_bitmap_test_words, start, n), 0);
    }
  }
}

// All or nothing, with a hole at each place of the run.
MI_TEST(try_claim) {
  uint64_t seed = 2;
  for (size_t r = 0; r < RUNS; r++) {
    const size_t start = mi_bitmap_test_runs[r].start;
    const size_t n = mi_bitmap_test_runs[r].n;
    for (size_t hole = start; hole <= start + n && hole < WORDS * 64; hole++) {
      mi_bitmap_test_randomise(&seed, 4);
      (void)_mi_bitmap_set(mi_bitmap_test_words, start, n);
      memset(mi_bitmap_test_model + start, 1, n);
      // Behind the run it does not matter.
      mi_bitmap_test_model[hole] = false;
      (void)_mi_bitmap_clear(mi_bitmap_test_words, hole, 1);
      const bool may = hole == start + n;
      MI_CHECK_EQ(_mi_bitmap_try_claim(mi_bitmap_test_words, start, n), may);
      if (may) {
        memset(mi_bitmap_test_model + start, 0, n);
      }
      mi_bitmap_test_compare(may ? "claim" : "failed claim", start, n);
    }
  }
}

MI_TEST(next) {
  uint64_t seed = 3;
  static const unsigned densities[] = {0, 1, 4, 7, 8};
  static const size_t ends[] = {0, 1, 63, 64, 65, 128, 289, 290, 320};
  for (size_t d = 0; d < 5; d++) {
    mi_bitmap_test_randomise(&seed, densities[d]);
    for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
      for (size_t from = 0; from <= ends[e] + 1; from++) {
        MI_CHECK_EQ(_mi_bitmap_next_set(mi_bitmap_test_words, ends[e], from), mi_bitmap_test_model_next(from, ends[e], true));
        MI_CHECK_EQ(_mi_bitmap_next_clear(mi_bitmap_test_words, ends[e], from), mi_bitmap_test_model_next(from, ends[e], false));
      }
    }
  }
}

// The first fitting place, or none: what the model finds by trying each.
static bool mi_bitmap_test_model_find(size_t bits, size_t from, size_t n, size_t align, size_t phase, size_t* start) {
  for (size_t at = from; at + n <= bits; at++) {
    if ((at + phase) % align == 0 && mi_bitmap_test_model_count(at, n) == n) {
      *start = at;
      return true;
    }
  }
  return false;
}

MI_TEST(find) {
  uint64_t seed = 4;
  static const unsigned densities[] = {0, 3, 6, 7, 8, 8};
  static const size_t lengths[] = {1, 2, 3, 8, 31, 63, 64, 65, 130, 200, 289, 290, 291, 1000};
  static const size_t aligns[] = {1, 2, 8, 64, 128, 512};
  for (size_t d = 0; d < 6; d++) {
    mi_bitmap_test_randomise(&seed, densities[d]);
    if (d == 5) {
      // Full but for two holes.
      mi_bitmap_test_model[70] = mi_bitmap_test_model[200] = false;
      (void)_mi_bitmap_clear(mi_bitmap_test_words, 70, 1);
      (void)_mi_bitmap_clear(mi_bitmap_test_words, 200, 1);
    }
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
      for (size_t a = 0; a < sizeof(aligns) / sizeof(aligns[0]); a++) {
        for (int k = 0; k < 12; k++) {
          const size_t from = k == 0 ? 0 : mi_test_random(&seed) % (BITS + 2);
          const size_t phase = k < 2 ? 0 : mi_test_random(&seed) % aligns[a];
          size_t expected = 0;
          size_t start = 0;
          const bool may = mi_bitmap_test_model_find(BITS, from, lengths[l], aligns[a], phase, &expected);
          const bool found = _mi_bitmap_find(mi_bitmap_test_words, BITS, from, lengths[l], aligns[a], phase, &start);
          MI_CHECK_MSG(found == may && start == expected, "%zu bits from %zu, multiple of %zu - %zu: %d at %zu, not %d at %zu",
                       lengths[l], from, aligns[a], phase, found, start, may, expected);
        }
      }
    }
  }
}

// Runs of all lengths, claimed and given back by many threads: no bit is anyone's twice, and none is lost.

enum { SHARED_BITS = 64 * 6 };
static mi_bitmap_word_t mi_bitmap_test_shared[SHARED_BITS / 64];
// Plain on purpose: what a claim and a release order is seen by the thread sanitizer.
static size_t mi_bitmap_test_owner[SHARED_BITS];

static void* mi_bitmap_test_churn(void* arg) {
  const size_t self = (size_t)(uintptr_t)arg;
  uint64_t seed = self;
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 20000);
  for (long i = 0; i < rounds; i++) {
    const size_t n = 1 + mi_test_random(&seed) % (i % 4 == 0 ? 150 : 10);
    const size_t from = mi_test_random(&seed) % SHARED_BITS;
    size_t start;
    if (!_mi_bitmap_find(mi_bitmap_test_shared, SHARED_BITS, from, n, 1, 0, &start) ||
        !_mi_bitmap_try_claim(mi_bitmap_test_shared, start, n)) {
      continue;
    }
    for (size_t k = start; k < start + n; k++) {
      MI_CHECK_EQ(mi_bitmap_test_owner[k], 0);
      mi_bitmap_test_owner[k] = self;
    }
    for (size_t k = start; k < start + n; k++) {
      MI_CHECK_EQ(mi_bitmap_test_owner[k], self);
      mi_bitmap_test_owner[k] = 0;
    }
    MI_CHECK_EQ(_mi_bitmap_set(mi_bitmap_test_shared, start, n), n);
  }
  return NULL;
}

MI_TEST(claims_by_many_threads) {
  pthread_t threads[THREADS];
  (void)_mi_bitmap_set(mi_bitmap_test_shared, 0, SHARED_BITS);
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_bitmap_test_churn, (void*)(t + 1)) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  MI_CHECK_EQ(_mi_bitmap_count(mi_bitmap_test_shared, 0, SHARED_BITS), SHARED_BITS);
}

MI_TEST(windows) {
  enum { WINDOW_BITS = 192 };
  mi_bitmap_word_t words[WINDOW_BITS / 64] = {0};
  uint64_t seed = 41;
  for (size_t i = 0; i < WINDOW_BITS; i++) {
    if ((mi_test_random(&seed) & 1) != 0) {
      _mi_bitmap_set(words, i, 1);
    }
  }
  for (size_t start = 0; start < WINDOW_BITS; start++) {
    const uint64_t window = _mi_bitmap_window(words, WINDOW_BITS, start);
    for (size_t i = 0; i < 64; i++) {
      const bool expected = start + i < WINDOW_BITS && _mi_bitmap_count(words, start + i, 1) == 1;
      MI_CHECK_EQ((window >> i) & 1, expected);
      MI_CHECK(start + i >= WINDOW_BITS || _mi_bitmap_is_set(words, start + i) == expected);
    }
  }
}

MI_TEST_MAIN()
