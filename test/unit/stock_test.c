// Owns: tests of hardening/stock: what a search finds, what was noted, and that a place is handed out once.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the words and the stock stand alone; nothing is allocated.
#include "hardening/stock.h"

#include "test/lib/test.h"

static mi_live_word_t mi_stock_test_words[MI_LIVE_META_SIZE / sizeof(mi_live_word_t)];
static uint16_t mi_stock_test_stock[MI_STOCK_SLOTS];
static uint16_t mi_stock_test_freed[MI_STOCK_MAX];

// Opens every `step`-th place of the page.
static void mi_stock_test_open(uint32_t step) {
  _mi_hard_live_close_all(mi_stock_test_words);
  for (uint32_t i = 0; i < MI_PAGE_GRANULES; i += step) {
    _mi_hard_live_open(mi_stock_test_words, i & ~(uint32_t)(MI_LIVE_WORD_BITS - 1), mi_live_bit(i));
  }
}

// Free places are found in their order, all that there is room for, and no others: live, marked or closed ones.
MI_TEST(searches) {
  static const uint32_t steps[] = {1, 2, 3, 7, 31, 32, 64, 100, 512};
  uint64_t seed = 3;
  for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
    for (int way = 0; way < 2; way++) {
      static bool is_free[MI_PAGE_GRANULES];
      mi_stock_test_open(steps[s]);
      for (uint32_t i = 0; i < MI_PAGE_GRANULES; i++) {
        is_free[i] = i % steps[s] == 0;
        if (is_free[i] && mi_test_random(&seed) % 3 == 0) {
          is_free[i] = false;
          MI_REQUIRE(_mi_hard_live_set(mi_stock_test_words, i));
          MI_REQUIRE(mi_test_random(&seed) % 2 == 0 || _mi_hard_live_mark_remote(mi_stock_test_words, i));
        }
      }
      const uint32_t from = (uint32_t)(mi_test_random(&seed) % 8) * MI_LIVE_WORD_BITS;
      const uint32_t first = way == 0 ? from : (from + steps[s] - 1) / steps[s] * steps[s];
      const uint32_t count = way == 0
          ? _mi_hard_stock_add(mi_stock_test_stock, 0, mi_stock_test_words, from, MI_PAGE_GRANULES)
          : _mi_hard_stock_add_far(mi_stock_test_stock, 0, mi_stock_test_words, first, MI_PAGE_GRANULES, steps[s]);
      uint32_t expected = 0;
      for (uint32_t i = first; i < MI_PAGE_GRANULES && expected < MI_STOCK_MAX; i++) {
        if (is_free[i]) {
          MI_CHECK(expected < count && mi_stock_test_stock[expected] == i);
          expected++;
        }
      }
      MI_CHECK_EQ(count, expected);
    }
  }
}

MI_TEST(known_to_be_free) {
  const uint32_t count = _mi_hard_stock_add_all(mi_stock_test_stock, 5, 30, 60, 10);
  MI_CHECK(count == 8 && mi_stock_test_stock[5] == 30 && mi_stock_test_stock[6] == 40 && mi_stock_test_stock[7] == 50);
}

// The last that were freed come back, whatever the numbers begin with.
MI_TEST(noted) {
  mi_stock_test_open(1);
  static const uint32_t starts[] = {0, 1, 100, 255, 256, UINT32_MAX};
  for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
    for (uint32_t n = 0; n < 2 * MI_STOCK_MAX; n += 1 + n / 7) {
      uint32_t number = starts[s];
      for (uint32_t i = 0; i < n; i++) {
        _mi_hard_stock_note_freed(mi_stock_test_freed, --number, 1000 + i);
      }
      const uint32_t known = n < MI_STOCK_MAX ? n : MI_STOCK_MAX;
      _mi_hard_stock_take_freed(NULL, mi_stock_test_stock, mi_stock_test_freed, number, known);
      for (uint32_t i = 0; i < known; i++) {
        MI_CHECK_EQ(mi_stock_test_stock[i], 1000 + n - 1 - i);
      }
      MI_CHECK_EQ(_mi_hard_stock_find_marked(mi_stock_test_stock, known, mi_stock_test_words), known);
      if (known > 2) {
        // Freed by another thread as well.
        const uint32_t both = mi_stock_test_stock[known / 2];
        (void)mi_atomic_or_acq_rel(mi_live_remote_word(mi_stock_test_words, both), mi_live_bit(both));
        MI_CHECK_EQ(_mi_hard_stock_find_marked(mi_stock_test_stock, known, mi_stock_test_words), known / 2);
        mi_atomic_and_acq_rel(mi_live_remote_word(mi_stock_test_words, both), ~mi_live_bit(both));
      }
    }
  }
}

// Shuffled, each of what was noted is there once, wherever the ring begins and whatever the parts on its two sides.
MI_TEST(noted_and_shuffled) {
  mi_shuffle_t shuffle;
  _mi_hard_shuffle_seed(&shuffle, 7, 8);
  for (uint32_t start = 0; start < 2 * MI_STOCK_MAX; start += 5) {
    for (uint32_t n = 1; n <= MI_STOCK_MAX; n += 1 + n / 9) {
      uint32_t number = start;
      for (uint32_t i = 0; i < n; i++) {
        _mi_hard_stock_note_freed(mi_stock_test_freed, --number, 1000 + i);
      }
      _mi_hard_stock_take_freed(&shuffle, mi_stock_test_stock, mi_stock_test_freed, number, n);
      static bool seen[MI_STOCK_MAX];
      memset(seen, 0, sizeof(seen));
      uint32_t in_order = 0;
      for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = mi_stock_test_stock[i] - 1000U;
        MI_REQUIRE(at < n && !seen[at]);
        seen[at] = true;
        in_order += at == n - 1 - i;
      }
      MI_CHECK_MSG(n < 64 || in_order < n / 2, "%u of %u are where they were", in_order, n);
    }
  }
}

MI_TEST(turned_round) {
  for (uint32_t n = 0; n < 6; n++) {
    (void)_mi_hard_stock_add_all(mi_stock_test_stock, 0, 0, n, 1);
    _mi_hard_stock_reverse(mi_stock_test_stock, n);
    for (uint32_t i = 0; i < n; i++) {
      MI_CHECK_EQ(mi_stock_test_stock[i], n - 1 - i);
    }
  }
}

MI_TEST(handed_out_once) {
  mi_stock_test_open(4);
  MI_CHECK(_mi_hard_stock_hand_out(mi_stock_test_words, 400));
  MI_CHECK(_mi_hard_live_test(mi_stock_test_words, 400) && !_mi_hard_live_test(mi_stock_test_words, 404));
  MI_CHECK(!_mi_hard_stock_hand_out(mi_stock_test_words, 400));
  // A place where no block starts.
  MI_CHECK(!_mi_hard_stock_hand_out(mi_stock_test_words, 401));
}

MI_TEST_MAIN()
