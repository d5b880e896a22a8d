// Owns: tests of hardening/large-quarantine: bounds, who leaves, and the budget over time.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is allocated.
#include "hardening/large-quarantine.h"

#include "test/lib/test.h"

enum { FULL = MI_LARGE_HELD_FULL_SLICES_MAX };

static const struct {
  mi_large_held_t held;
  size_t slices;
  size_t full_slices;
  bool is_full;
} mi_large_quarantine_test_bounds[] = {
    {{0, 0, 0}, 512, 512, false},
    {{1, 512, 0}, 512, 0, false},
    {{1, 513, 0}, 512, 0, true},
    {{MI_LARGE_HELD_MAX, 64, 0}, 1, 0, true},
    {{MI_LARGE_HELD_MAX - 1, 64, 0}, 1, 0, false},
    {{1, FULL / 2, FULL / 2}, FULL / 2, FULL / 2, false},
    {{2, FULL, FULL}, 16, 16, true},
    {{2, FULL, FULL}, 16, 0, false},
    {{1, 100, 100}, 100, 100, true},
};

MI_TEST(bounds) {
  for (size_t i = 0; i < sizeof(mi_large_quarantine_test_bounds) / sizeof(mi_large_quarantine_test_bounds[0]); i++) {
    const size_t slices = mi_large_quarantine_test_bounds[i].slices;
    const bool is_full =
        _mi_hard_large_is_full(&mi_large_quarantine_test_bounds[i].held, slices, mi_large_quarantine_test_bounds[i].full_slices);
    MI_CHECK_MSG(is_full == mi_large_quarantine_test_bounds[i].is_full, "row %zu", i);
  }
  MI_CHECK(_mi_hard_large_may_hold(512, 0) && !_mi_hard_large_may_hold(513, 0));
  MI_CHECK(_mi_hard_large_may_hold(FULL / 2, FULL / 2) && !_mi_hard_large_may_hold(FULL / 2 + 1, FULL / 2 + 1));
}

MI_TEST(one_of_the_older_half_leaves) {
  for (size_t count = 1; count <= MI_LARGE_HELD_MAX; count++) {
    uint32_t seen = 0;
    for (uint64_t random = 0; random < 64; random++) {
      const size_t i = _mi_hard_large_leaving(count, random);
      MI_CHECK(i < (count + 1) / 2);
      seen |= UINT32_C(1) << i;
    }
    MI_CHECK_EQ(seen, (UINT32_C(1) << ((count + 1) / 2)) - 1);
  }
}

static const struct {
  int64_t at_ms;
  size_t size;
  bool granted;
} mi_large_quarantine_test_spending[] = {
    {1, 3 << 19, true},
    {1, 1 << 19, true},
    {1, 1, false},
    {41, 100000, true},  // 4 MiB in a second are 160 KiB in 40 ms
    {41, 100000, false},
    {700, 80 << 20, true},  // full again, and all of it goes
    {700, 65536, false},
    {701, 65536, false},
    {5000, 2 << 20, true},
    {4999, 1 << 20, true},  // a clock that goes back fills it
};

MI_TEST(budget) {
  mi_large_budget_t budget = {0, 0};
  for (size_t i = 0; i < sizeof(mi_large_quarantine_test_spending) / sizeof(mi_large_quarantine_test_spending[0]); i++) {
    MI_CHECK_MSG(_mi_hard_large_spend(&budget, mi_large_quarantine_test_spending[i].at_ms, mi_large_quarantine_test_spending[i].size) ==
                     mi_large_quarantine_test_spending[i].granted,
                 "row %zu", i);
  }
}

static size_t mi_large_quarantine_test_turns(mi_large_sparse_t* sparse, size_t slices) {
  size_t turns = 0;
  while (!_mi_hard_large_may_wipe(sparse, slices)) {
    turns++;
  }
  return turns;
}

// A size of which little is written is not zeroed by hand for a while, others are.
MI_TEST(sparse_blocks_are_given_back) {
  mi_large_sparse_t sparse = {{0}};
  MI_CHECK(!_mi_hard_large_may_wipe(&sparse, MI_LARGE_WIPED_SLICES_MAX + 1));
  for (size_t slices = 1; slices <= MI_LARGE_WIPED_SLICES_MAX; slices++) {
    const size_t pages = slices * 16;
    MI_CHECK_EQ(mi_large_quarantine_test_turns(&sparse, slices), 0);
    _mi_hard_large_wiped(&sparse, slices, (pages + MI_LARGE_SPARSE_SHARE - 1) / MI_LARGE_SPARSE_SHARE, pages);
    MI_CHECK_EQ(mi_large_quarantine_test_turns(&sparse, slices), 0);
    _mi_hard_large_wiped(&sparse, slices, (pages - 1) / MI_LARGE_SPARSE_SHARE, pages);
    const size_t other = slices > MI_LARGE_WIPED_SLICES_MAX / 2 ? slices / 4 : slices * 2;
    MI_CHECK_EQ(mi_large_quarantine_test_turns(&sparse, other), 0);
    MI_CHECK_EQ(mi_large_quarantine_test_turns(&sparse, slices), MI_LARGE_SPARSE_TURNS);
    MI_CHECK_EQ(mi_large_quarantine_test_turns(&sparse, slices), 0);
  }
}

MI_TEST_MAIN()
