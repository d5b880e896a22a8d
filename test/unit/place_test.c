// Owns: tests of hardening/place: wishes within bounds, and as many as are stated.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the generator is seeded, so a statistic that fails once fails always.
#include "hardening/place.h"

#include "src/base/geometry.h"
#include "test/lib/test.h"

MI_TEST(wishes) {
  static const struct {
    unsigned bits;
    size_t size;
    size_t align;
    bool possible;
  } rows[] = {
      {47, (size_t)1 << 30, (size_t)32 << 20, true},
      {48, (size_t)1 << 30, (size_t)32 << 20, true},
      {57, (size_t)1 << 34, (size_t)32 << 20, true},
      {39, (size_t)1 << 30, (size_t)32 << 20, true},
      {47, 4096, 4096, true},
      {47, (size_t)1 << 31, (size_t)1 << 30, true},
      {32, (size_t)1 << 20, 65536, false},
      {37, (size_t)1 << 20, 65536, false},
      {38, SIZE_MAX / 2, 65536, false},
      {38, 4096, SIZE_MAX / 2 + 1, false},
  };
  uint64_t seed = 21;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const unsigned bits = (unsigned)_mi_min(rows[i].bits, MI_PLACE_ADDRESS_BITS_MAX);
    for (int k = 0; k < 10000; k++) {
      const uint64_t wish = _mi_hard_place_address(mi_test_random(&seed), rows[i].bits, rows[i].size, rows[i].align);
      if (!rows[i].possible || sizeof(void*) < 8) {
        MI_CHECK_EQ(wish, 0);
        continue;
      }
      MI_CHECK(wish % rows[i].align == 0);
      MI_CHECK(wish >= UINT64_C(1) << (bits - MI_PLACE_LOW_SHARE_SHIFT));
      MI_CHECK(wish + rows[i].size <= UINT64_C(1) << (bits - 1));
    }
  }
}

// The two ends are reached, and nothing is twice as likely as it should be.
MI_TEST(wishes_are_spread) {
  enum { CELLS = 64 };
  uint32_t counts[CELLS] = {0};
  uint64_t seed = 22;
  if (sizeof(void*) < 8) {
    return;
  }
  for (int k = 0; k < 64000; k++) {
    const uint64_t wish = _mi_hard_place_address(mi_test_random(&seed), 47, 4096, 4096);
    counts[wish >> 40]++;
  }
  // 2 of the 64 parts lie below the lowest wish.
  MI_CHECK_EQ(counts[0] + counts[1], 0);
  for (int i = 2; i < CELLS; i++) {
    MI_CHECK_MSG(counts[i] > 850 && counts[i] < 1220, "%u of 64000 in part %d", counts[i], i);
  }
}

MI_TEST(words_are_spread) {
  enum { WINDOW = 64,
         TRIES = 64000 };
  uint64_t seed = 23;
  for (int secret = 0; secret < 20; secret++) {
    const uint64_t key = mi_test_random(&seed);
    static uint32_t single[WINDOW];
    static uint32_t pairs[WINDOW * WINDOW];
    memset(single, 0, sizeof(single));
    memset(pairs, 0, sizeof(pairs));
    size_t last = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
      const size_t place = _mi_hard_place_below(_mi_hard_place_word(key, i), WINDOW);
      MI_REQUIRE(place < WINDOW);
      single[place]++;
      pairs[last * WINDOW + place]++;
      last = place;
    }
    double chi = 0;
    for (size_t i = 0; i < WINDOW; i++) {
      const double d = (double)single[i] - TRIES / (double)WINDOW;
      chi += d * d / (TRIES / (double)WINDOW);
    }
    MI_CHECK_MSG(chi < 63 + 6 * 11.2, "places: chi-square %f", chi);
    chi = 0;
    const double expected = TRIES / (double)(WINDOW * WINDOW);
    for (size_t i = 0; i < (size_t)WINDOW * WINDOW; i++) {
      const double d = (double)pairs[i] - expected;
      chi += d * d / expected;
    }
    MI_CHECK_MSG(chi < 4095 + 6 * 90.5, "pairs: chi-square %f", chi);
  }
}

MI_TEST_MAIN()
