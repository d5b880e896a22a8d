// Owns: tests of hardening/quarantine: bounds, that what goes in comes out once, how late, and how much is kept ready.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: entries are numbers; nothing is allocated.
#include "hardening/quarantine.h"

#include "test/lib/test.h"

static union {
  mi_quarantine_t quarantine;
  uint8_t room[sizeof(mi_quarantine_t) + (MI_QUARANTINE_SLOTS_MAX + 1) * sizeof(uintptr_t)];
} mi_quarantine_test, mi_quarantine_test_larger;

static mi_quarantine_t* mi_quarantine_test_new(size_t bound) {
  memset(&mi_quarantine_test, 0, sizeof(mi_quarantine_test));
  _mi_hard_quarantine_init(&mi_quarantine_test.quarantine, bound, _mi_hard_quarantine_limit(bound));
  return &mi_quarantine_test.quarantine;
}

static bool mi_quarantine_test_put(mi_quarantine_t* q, uintptr_t n, uint64_t random) {
  return q->half == 0 ? _mi_hard_quarantine_put_queued(q, n) : _mi_hard_quarantine_put(q, n, (uint32_t)random & (q->half - 1));
}

static uintptr_t mi_quarantine_test_take(mi_quarantine_t* q) {
  const uintptr_t n = _mi_hard_quarantine_first(q);
  _mi_hard_quarantine_drop(q);
  return n;
}

static const struct {
  size_t block_size, blocks, bytes, bound;
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
    const size_t bound = _mi_hard_quarantine_bound(mi_quarantine_test_bounds[i].block_size, mi_quarantine_test_bounds[i].blocks,
                                                   mi_quarantine_test_bounds[i].bytes);
    MI_CHECK_EQ(bound, mi_quarantine_test_bounds[i].bound);
    if (bound != 0) {
      MI_CHECK_EQ(_mi_hard_quarantine_bound_of(mi_quarantine_test_new(bound)), bound);
      const size_t burst =
          _mi_hard_quarantine_burst(bound, mi_quarantine_test_bounds[i].block_size, mi_quarantine_test_bounds[i].bytes);
      MI_CHECK(burst >= _mi_hard_quarantine_limit(bound));
      MI_CHECK(burst <= 2 * mi_quarantine_test_bounds[i].bytes / mi_quarantine_test_bounds[i].block_size ||
               mi_quarantine_test_bounds[i].bytes == SIZE_MAX);
      MI_CHECK(_mi_hard_quarantine_size(bound, burst) <= sizeof(mi_quarantine_test));
    }
  }
}

// The program takes one as often as there is one in `taken` of 8 steps; what is too many leaves.
static void mi_quarantine_test_pass(size_t bound, uint64_t taken) {
  enum { MANY = 20000 };
  static uint8_t out[MANY + 1];
  uint64_t seed = 5 + taken;
  mi_quarantine_t* const q = mi_quarantine_test_new(bound);
  memset(out, 0, sizeof(out));
  size_t inside = 0;
  for (uintptr_t n = 1; n <= MANY; n++) {
    bool fits = mi_quarantine_test_put(q, n, mi_test_random(&seed) >> 7);
    inside++;
    MI_CHECK(inside <= bound + bound / 2 + 1);
    for (bool wanted = mi_test_random(&seed) % 8 < taken; q->ready > 0 && (wanted || !fits); wanted = false) {
      fits = fits || q->ready <= q->limit / 2 + 1;
      const uintptr_t left = mi_quarantine_test_take(q);
      inside--;
      MI_CHECK(left <= n);
      MI_CHECK_MSG(out[left]++ == 0, "%zu came out twice", (size_t)left);
      // Nothing comes out before so many others went in.
      MI_CHECK_MSG(n - left >= (bound == 1 ? 1 : bound / 2 + 1), "%zu came out at %zu", (size_t)left, (size_t)n);
    }
  }
  uint32_t slot = 0;
  uintptr_t left;
  while ((left = _mi_hard_quarantine_take_any(q, &slot)) != 0) {
    MI_CHECK(out[left]++ == 0);
    inside--;
  }
  MI_CHECK_EQ(inside, 0);
  size_t missing = 0;
  for (size_t n = 1; n <= MANY; n++) {
    missing += out[n] == 0;
  }
  MI_CHECK_EQ(missing, 0);
}

MI_TEST(in_and_out_once) {
  static const size_t bounds[] = {1, 2, 4, 8, 64, 1024};
  for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
    for (uint64_t taken = 0; taken <= 8; taken += 4) {
      mi_quarantine_test_pass(bounds[i], taken);
    }
  }
}

// It can be used again after it was emptied.
MI_TEST(emptied) {
  mi_quarantine_t* const q = mi_quarantine_test_new(8);
  for (uintptr_t n = 1; n <= 1000; n++) {
    if (!mi_quarantine_test_put(q, n, n * 7) || n % 50 == 0) {
      uint32_t slot = 0;
      while (_mi_hard_quarantine_take_any(q, &slot) != 0) {
      }
      MI_CHECK(q->ready == -4);
    }
  }
}

// What is in one comes out of a larger one, in the same order, no earlier, and as many more may be ready.
MI_TEST(moved) {
  static const size_t bounds[] = {2, 8, 64, 1024};
  for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
    const size_t bound = bounds[i];
    const size_t more = 2 * _mi_hard_quarantine_limit(bound);
    for (size_t filled = 1; filled <= 3 * bound; filled += bound / 2) {
      uint64_t seed = 11 + filled;
      mi_quarantine_t* const q = mi_quarantine_test_new(bound);
      size_t n = 0;
      while (n < filled && mi_quarantine_test_put(q, ++n, mi_test_random(&seed) >> 7)) {
        // The queue is to begin anywhere.
        if (q->ready > 0 && n % 3 == 0) {
          (void)mi_quarantine_test_take(q);
        }
      }
      q->left = 5;
      q->granted = 7;
      q->again = 9;
      mi_quarantine_t* const larger = &mi_quarantine_test_larger.quarantine;
      memset(&mi_quarantine_test_larger, 0, sizeof(mi_quarantine_test_larger));
      _mi_hard_quarantine_init(larger, bound, more);
      _mi_hard_quarantine_move(larger, q);
      MI_CHECK(larger->ready == q->ready && larger->left == 5 && larger->granted == 7 && larger->again == 9);
      uint32_t slot = 0, larger_slot = 0;
      uintptr_t left;
      size_t count = 0;
      while ((left = _mi_hard_quarantine_take_any(q, &slot)) != 0) {
        MI_CHECK_EQ(_mi_hard_quarantine_take_any(larger, &larger_slot), left);
        count++;
      }
      MI_CHECK_EQ(_mi_hard_quarantine_take_any(larger, &larger_slot), 0);
      MI_CHECK(count > 0 && count <= n);
      n = 0;
      while (mi_quarantine_test_put(larger, ++n, mi_test_random(&seed) >> 7)) {
      }
      MI_CHECK_EQ((size_t)larger->ready, more + 1);
    }
  }
}

// A forked child finds the quarantine of a thread that had taken an entry out and not counted it yet: it is not taken again.
MI_TEST(stopped_in_the_middle) {
  mi_quarantine_t* const q = mi_quarantine_test_new(8);
  for (uintptr_t n = 1; n <= 1000; n++) {
    (void)mi_quarantine_test_put(q, n, n * 7);
    while (q->ready > 0) {
      (void)mi_quarantine_test_take(q);
    }
  }
  q->ready++;
  size_t left = 0;
  uint32_t slot = 0;
  while (_mi_hard_quarantine_take_any(q, &slot) != 0) {
    left++;
  }
  MI_CHECK_EQ(left, 8);
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
    (void)mi_quarantine_test_put(q, n, mi_test_random(&seed) >> 20);
    if (q->ready > 0) {
      const uintptr_t left = mi_quarantine_test_take(q);
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
