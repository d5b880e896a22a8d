// Owns: tests of hardening/quarantine: bounds, that what goes in comes out once, and how late.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: entries are numbers; nothing is allocated.
#include "hardening/quarantine.h"

#include "test/lib/test.h"

static union {
  mi_quarantine_t quarantine;
  uint8_t room[sizeof(mi_quarantine_t) + MI_QUARANTINE_BLOCKS_MAX * sizeof(uintptr_t)];
} mi_quarantine_test;

static mi_quarantine_t* mi_quarantine_test_new(size_t slots) {
  memset(&mi_quarantine_test, 0, sizeof(mi_quarantine_test));
  mi_quarantine_test.quarantine.half = (uint32_t)slots / 2;
  return &mi_quarantine_test.quarantine;
}

static const struct {
  size_t block_size, blocks, bytes, slots;
} mi_quarantine_test_bounds[] = {
    {16, 64, 65536, 64},
    {1024, 64, 65536, 64},
    {1152, 64, 65536, 32},
    {4096, 64, 65536, 16},
    {40960, 64, 65536, 1},
    {65536, 64, 65536, 1},
    {73728, 64, 65536, 0},
    {16, 0, 65536, 0},
    {16, 64, 0, 0},
    {16, 1, 65536, 1},
    {16, 100, 65536, 64},
    {16, SIZE_MAX, SIZE_MAX, MI_QUARANTINE_BLOCKS_MAX},
};

MI_TEST(bounds) {
  for (size_t i = 0; i < sizeof(mi_quarantine_test_bounds) / sizeof(mi_quarantine_test_bounds[0]); i++) {
    const size_t slots = _mi_hard_quarantine_slots(mi_quarantine_test_bounds[i].block_size, mi_quarantine_test_bounds[i].blocks,
                                                   mi_quarantine_test_bounds[i].bytes);
    MI_CHECK_EQ(slots, mi_quarantine_test_bounds[i].slots);
    if (slots != 0) {
      MI_CHECK_EQ(_mi_hard_quarantine_count(mi_quarantine_test_new(slots)), slots);
    }
  }
}

MI_TEST(in_and_out_once) {
  enum { MANY = 20000 };
  static uint8_t out[MANY + 1];
  static const size_t slots[] = {1, 2, 4, 64, 1024};
  uint64_t seed = 5;
  for (size_t s = 0; s < sizeof(slots) / sizeof(slots[0]); s++) {
    mi_quarantine_t* const q = mi_quarantine_test_new(slots[s]);
    memset(out, 0, sizeof(out));
    size_t inside = 0;
    for (uintptr_t n = 1; n <= MANY; n++) {
      const uint32_t random = (uint32_t)(q->half == 0 ? 0 : mi_test_random(&seed) % q->half);
      const uintptr_t left = _mi_hard_quarantine_pass(q, n, random);
      inside += left == 0;
      MI_CHECK(left < n && inside <= slots[s]);
      MI_CHECK_MSG(left == 0 || out[left]++ == 0, "%zu came out twice", (size_t)left);
      // Nothing comes out before so many others went in.
      MI_CHECK(left == 0 || n - left >= (slots[s] == 1 ? 1 : slots[s] / 2 + 1));
    }
    for (size_t i = 0; i < slots[s]; i++) {
      MI_CHECK(q->slots[i] == 0 || out[q->slots[i]]++ == 0);
    }
    size_t missing = 0;
    for (size_t n = 1; n <= MANY; n++) {
      missing += out[n] == 0;
    }
    MI_CHECK_EQ(missing, 0);
  }
}

// The time in the random part is geometric, as policy/threat-model.md says of R = 32: after R + k further frees a block has left
// with probability 1 - (1 - 1/R)^k. A double free of a block handed out again, which nothing can see, has that chance at most.
static const struct {
  size_t k;
  size_t per_mille;
} mi_quarantine_test_left[] = {{1, 31}, {5, 147}, {22, 503}, {64, 869}, {150, 991}};

enum { MI_QUARANTINE_TEST_LEFT = sizeof(mi_quarantine_test_left) / sizeof(mi_quarantine_test_left[0]) };

MI_TEST(delay) {
  enum { MANY = 200000 };
  uint64_t seed = 9;
  mi_quarantine_t* const q = mi_quarantine_test_new(64);
  size_t counted = 0, sum = 0;
  size_t early[MI_QUARANTINE_TEST_LEFT] = {0};
  for (uintptr_t n = 1; n <= MANY; n++) {
    const uintptr_t left = _mi_hard_quarantine_pass(q, n, (uint32_t)(mi_test_random(&seed) >> 20) & 31);
    if (left != 0 && n > 5000) {
      counted++;
      sum += n - left;
      for (size_t i = 0; i < MI_QUARANTINE_TEST_LEFT; i++) early[i] += n - left <= 32 + mi_quarantine_test_left[i].k;
    }
  }
  MI_CHECK_MSG(sum / counted >= 62 && sum / counted <= 66, "mean %zu", sum / counted);
  for (size_t i = 0; i < MI_QUARANTINE_TEST_LEFT; i++) {
    const size_t stated = mi_quarantine_test_left[i].per_mille;
    const size_t seen = (early[i] * 1000 + counted / 2) / counted;
    MI_CHECK_MSG(seen + 5 >= stated && seen <= stated + 5, "after %zu more %zu of 1000 have left", mi_quarantine_test_left[i].k, seen);
  }
}

MI_TEST_MAIN()
