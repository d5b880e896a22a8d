// Owns: tests of how often an allocation comes to a search for a page, where blocks of nearly full pages are freed and made.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: searches are counted, by the allocator itself; the sequence of calls is the same in each run, and chance, where places are
// random, moves a count by a few parts in a hundred.
#include "src/alloc/alloc.h"
#include "src/heap/heap-stats.h"
#include "src/sys/options.h"
#include "test/lib/test.h"

enum { STEPS = 40000 };

// What is looked at when a block serves again is not put off, so pages are chosen in another way.
static bool mi_refill_test_applies(void) { return !MI_BLOCKS_ARE_DRESSED; }

enum { LIVE_MAX = 16384 };
static void* mi_refill_test_blocks[LIVE_MAX];

// As in a run of an interpreter, by so many of 16: mostly small ones, of which few classes have most.
static const size_t mi_refill_test_mix[16] = {48, 48, 48, 48, 48, 48, 64, 64, 64, 64, 32, 32, 80, 80, 128, 560};

// `size`: 0 for the mix.
static void mi_refill_test_replace(size_t k, size_t size, uint64_t* seed) {
  _mi_free(mi_refill_test_blocks[k]);
  mi_refill_test_blocks[k] = _mi_alloc(size != 0 ? size : mi_refill_test_mix[mi_test_random(seed) % 16]);
  MI_REQUIRE(mi_refill_test_blocks[k] != NULL);
}

// How many searches for a page there are in STEPS allocations, when one of `live` blocks is freed before each.
static size_t mi_refill_test_searches(size_t live, size_t size) {
  MI_REQUIRE(live <= LIVE_MAX);
  // Counts stay in the theap meanwhile, and no list is cut for a sample.
  _mi_option_set(mi_option_generic_collect, 100 * STEPS);
  _mi_option_set(mi_option_guarded_sample_rate, 0);
  mi_theap_t* const theap = _mi_theap_default();
  MI_REQUIRE(theap != NULL);
  uint64_t seed = 5;
  for (size_t k = 0; k < live; k++) {
    mi_refill_test_replace(k, size, &seed);
  }
  size_t before = 0;
  for (size_t i = 0; i < 2 * STEPS; i++) {
    if (i == STEPS) {
      before = theap->counts.searches;
    }
    mi_refill_test_replace(mi_test_random(&seed) % live, size, &seed);
  }
  const size_t searches = theap->counts.searches - before;
  for (size_t k = 0; k < live; k++) {
    _mi_free(mi_refill_test_blocks[k]);
    mi_refill_test_blocks[k] = NULL;
  }
  _mi_collect(true);
  return searches;
}

// First, a page goes on with what was freed into it, without a search for another; second, no page is chosen for the one block or
// two that it has, as long as a new one can be had. Of what chance decides the most is far beyond all that was seen.
MI_TEST(searches) {
  if (!mi_refill_test_applies()) {
    return;
  }
  static const struct {
    size_t live;
    size_t size;
    size_t most;
  } rows[] = {
      {900, 64, 200},     // 44, and 656 without the first
      {2000, 0, 200},     // 80, and 458 or more without the first
      {8000, 64, 8000},   // 3450, and 35000 without the second
      {3000, 256, 8000},  // 3520, and 21600 or more without the second
  };
  for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
    const size_t searches = mi_refill_test_searches(rows[r].live, rows[r].size);
    MI_CHECK_MSG(searches <= rows[r].most, "%zu blocks of %zu bytes: %zu searches in %d allocations", rows[r].live, rows[r].size, searches,
                 (int)STEPS);
  }
}

MI_TEST_MAIN()
