// Owns: tests of hardening/shuffle: numbers without bias, uniform permutations and choices.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the generator is seeded, so a statistic that fails once fails always.
#include "hardening/shuffle.h"

#include "test/lib/test.h"

// The sum of squares of differences from what is expected of `cells` equal cells, over that.
static double mi_shuffle_test_chi_square(const uint32_t* counts, size_t cells, double total) {
  const double expected = total / (double)cells;
  double sum = 0;
  for (size_t i = 0; i < cells; i++) {
    const double d = (double)counts[i] - expected;
    sum += d * d / expected;
  }
  return sum;
}

// Five standard deviations around the mean of a chi-square distribution, in units of two degrees of freedom.
static bool mi_shuffle_test_is_uniform(double chi_square, size_t cells) {
  const double freedom = (double)(cells - 1);
  const double away = chi_square - freedom;
  return away * away < 25 * 2 * freedom + 400;
}

// All permutations of `n` items, each as often as any other, from one stream and from a seed for each.
MI_TEST(permutations_are_uniform) {
  enum { N = 5,
         CELLS = 120,
         TRIES = 240000 };
  for (int way = 0; way < 4; way++) {
    const bool fresh = way % 2 != 0;
    const bool in_place = way >= 2;
    static uint32_t counts[CELLS];
    memset(counts, 0, sizeof(counts));
    uint64_t seed = 11;
    mi_shuffle_t shuffle;
    _mi_hard_shuffle_seed(&shuffle, mi_test_random(&seed), mi_test_random(&seed));
    for (int i = 0; i < TRIES; i++) {
      if (fresh) {
        _mi_hard_shuffle_seed(&shuffle, mi_test_random(&seed), mi_test_random(&seed));
      }
      // All at once, or in two steps.
      uint16_t items[N];
      const uint32_t first = (uint32_t)i % N;
      if (in_place) {
        for (unsigned k = 0; k < N; k++) {
          items[k] = (uint16_t)k;
        }
        // Where they stand, or from elsewhere, in two steps.
        uint16_t more[N];
        memcpy(more, items, sizeof(more));
        _mi_hard_shuffle_items(&shuffle, items, 0, i % 2 == 0 ? items : more, first);
        _mi_hard_shuffle_items(&shuffle, items, first, (i % 2 == 0 ? items : more) + first, N);
      } else {
        _mi_hard_shuffle_add(&shuffle, items, 0, 0, first);
        _mi_hard_shuffle_add(&shuffle, items, first, first, N - first);
      }
      uint32_t rank = 0;
      unsigned present = 0;
      for (unsigned k = 0; k < N; k++) {
        unsigned smaller = 0;
        for (unsigned j = k + 1; j < N; j++) {
          smaller += items[j] < items[k];
        }
        rank = rank * (N - k) + smaller;
        present |= 1U << items[k];
      }
      MI_CHECK_EQ(present, 31);
      counts[rank]++;
    }
    const double chi = mi_shuffle_test_chi_square(counts, CELLS, TRIES);
    MI_CHECK_MSG(mi_shuffle_test_is_uniform(chi, CELLS), "chi-square %f of %d cells", chi, (int)CELLS);
  }
}

// Each item of the largest chunk in each place as often as any other: numbers, and items that stand elsewhere.
static void mi_shuffle_test_places(bool quick) {
  enum { N = 256,
         TRIES = 5000 };
  static uint32_t counts[N * N];
  memset(counts, 0, sizeof(counts));
  uint16_t numbers[N];
  for (unsigned k = 0; k < N; k++) {
    numbers[k] = (uint16_t)k;
  }
  uint64_t seed = 12;
  mi_shuffle_t shuffle = {0};
  for (int i = 0; i < TRIES; i++) {
    if (i % 64 == 0) {
      _mi_hard_shuffle_seed(&shuffle, mi_test_random(&seed), mi_test_random(&seed));
    }
    uint16_t items[N];
    if (quick) {
      _mi_hard_shuffle_items(&shuffle, items, 0, numbers, N);
    } else {
      _mi_hard_shuffle_add(&shuffle, items, 0, 0, N);
    }
    for (size_t k = 0; k < N; k++) {
      counts[k * N + items[k]]++;
    }
  }
  const double chi = mi_shuffle_test_chi_square(counts, (size_t)N * N, (double)N * TRIES);
  MI_CHECK_MSG(mi_shuffle_test_is_uniform(chi, (size_t)N * N), "chi-square %f of %d cells", chi, N * N);
}

MI_TEST(places_are_uniform) {
  mi_shuffle_test_places(false);
  mi_shuffle_test_places(true);
}

MI_TEST(numbers_below) {
  static const uint32_t bounds[] = {1, 2, 3, 7, 8, 97, 256};
  uint64_t seed = 13;
  mi_shuffle_t shuffle;
  _mi_hard_shuffle_seed(&shuffle, mi_test_random(&seed), mi_test_random(&seed));
  for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
    uint32_t counts[256] = {0};
    for (int i = 0; i < 200000; i++) {
      const uint32_t n = _mi_hard_shuffle_below(&shuffle, bounds[b]);
      MI_REQUIRE(n < bounds[b]);
      counts[n]++;
    }
    const double chi = mi_shuffle_test_chi_square(counts, bounds[b], 200000);
    MI_CHECK_MSG(bounds[b] == 1 || mi_shuffle_test_is_uniform(chi, bounds[b]), "bound %u: chi-square %f", bounds[b], chi);
  }
  // A bound near the top, where a quarter of the numbers would be favoured without drawing again.
  const uint32_t large = 3U << 30;
  uint32_t low = 0;
  for (int i = 0; i < 300000; i++) {
    low += _mi_hard_shuffle_below(&shuffle, large) < large / 3;
  }
  MI_CHECK_MSG(low > 98500 && low < 101500, "%u of 300000 in the first third", low);
}

MI_TEST(picks) {
  static const uint64_t sets[] = {1, UINT64_C(1) << 63, 0xffff, UINT64_C(0x8000000100000101), ~UINT64_C(0)};
  uint64_t seed = 14;
  mi_shuffle_t shuffle;
  _mi_hard_shuffle_seed(&shuffle, mi_test_random(&seed), mi_test_random(&seed));
  for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
    uint32_t counts[64] = {0};
    for (int i = 0; i < 64000; i++) {
      const unsigned bit = _mi_hard_shuffle_pick(&shuffle, sets[s]);
      MI_REQUIRE(bit < 64 && ((sets[s] >> bit) & 1) != 0);
      counts[bit]++;
    }
    const double expected = 64000.0 / _mi_bits_popcount64(sets[s]);
    for (unsigned bit = 0; bit < 64; bit++) {
      const double d = (double)counts[bit] - expected;
      MI_CHECK(((sets[s] >> bit) & 1) == 0 || d * d < 36 * expected);
    }
  }
}

MI_TEST_MAIN()
