// Owns: tests of option page_commit_on_demand: pages of an arena that commits in steps are committed as they are used.
// May include: everything.
// Called by: the test runner, under every variant; linked so that a commit can be refused.
// Invariants: the options are set before the first allocation.
#include <errno.h>

#include "mimalloc.h"
#include "src/base/geometry.h"
#include "src/prim/prim.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

enum {
  MI_DEMAND_BLOCK = 100 * 1024,
  MI_DEMAND_BLOCKS = 36,  // less than a page of them
  MI_DEMAND_PAGE = MI_LARGE_PAGE_SLICES * MI_SLICE_SIZE,
};

static _Atomic(long) mi_demand_allowed = 1000000;

int __real__mi_prim_commit(void* addr, size_t size);
int __wrap__mi_prim_commit(void* addr, size_t size);
int __wrap__mi_prim_commit(void* addr, size_t size) {
  return atomic_fetch_sub(&mi_demand_allowed, 1) > 0 ? __real__mi_prim_commit(addr, size) : ENOMEM;
}

static size_t mi_demand_committed(void) { return (size_t)_mi_stat_view(&_mi_stats.committed).current; }

static void mi_demand_begin(void) {
  mi_option_set(mi_option_arena_eager_commit, 0);
  mi_option_set(mi_option_page_commit_on_demand, 1);
  mi_option_set(mi_option_purge_delay, 0);
  // What is needed once.
  mi_free(mi_malloc(100));
}

MI_TEST(a_page_is_committed_as_it_is_used) {
  mi_demand_begin();
  const size_t before = mi_demand_committed();
  uint8_t* blocks[MI_DEMAND_BLOCKS];
  size_t last = 0;
  for (size_t i = 0; i < MI_DEMAND_BLOCKS; i++) {
    blocks[i] = mi_zalloc(MI_DEMAND_BLOCK);
    MI_REQUIRE(blocks[i] != NULL);
    MI_CHECK(mi_test_all_bytes(blocks[i], MI_DEMAND_BLOCK, 0));
    mi_test_fill(blocks[i], MI_DEMAND_BLOCK, i);
    const size_t grown = mi_demand_committed() - before;
    MI_CHECK(grown >= last);
    last = grown;
    if (i == 0 && !MI_HAS_RANDOM_ORDER) {
      // The metadata of a group of slices comes with its first page.
      MI_CHECK_MSG(grown < MI_DEMAND_PAGE, "%zu bytes for one block", grown);
    }
  }
  for (size_t i = 0; i < MI_DEMAND_BLOCKS; i++) {
    MI_CHECK(mi_test_filled(blocks[i], MI_DEMAND_BLOCK, i));
    mi_free(blocks[i]);
  }
  mi_collect(true);
  MI_CHECK(MI_HAS_QUARANTINE || mi_demand_committed() - before < MI_DEMAND_PAGE);
  // And again, in slices that were committed and given back.
  for (size_t i = 0; i < MI_DEMAND_BLOCKS; i++) {
    blocks[i] = mi_zalloc(MI_DEMAND_BLOCK);
    MI_REQUIRE(blocks[i] != NULL);
    MI_CHECK(mi_test_all_bytes(blocks[i], MI_DEMAND_BLOCK, 0));
  }
  for (size_t i = 0; i < MI_DEMAND_BLOCKS; i++) {
    mi_free(blocks[i]);
  }
  mi_collect(true);
}

MI_TEST(a_refused_commit_is_no_memory) {
  mi_demand_begin();
  uint8_t* blocks[MI_DEMAND_BLOCKS] = {NULL};
  for (long allowed = 0; allowed < 12; allowed++) {
    atomic_store(&mi_demand_allowed, allowed);
    size_t count = 0;
    while (count < MI_DEMAND_BLOCKS && (blocks[count] = mi_malloc(MI_DEMAND_BLOCK)) != NULL) {
      memset(blocks[count], 1, MI_DEMAND_BLOCK);
      count++;
    }
    MI_CHECK(count == MI_DEMAND_BLOCKS || errno == ENOMEM);
    atomic_store(&mi_demand_allowed, 1000000);
    // There is memory again, and the page goes on where it was.
    for (; count < MI_DEMAND_BLOCKS; count++) {
      blocks[count] = mi_malloc(MI_DEMAND_BLOCK);
      MI_REQUIRE(blocks[count] != NULL);
      memset(blocks[count], 2, MI_DEMAND_BLOCK);
    }
    for (size_t i = 0; i < MI_DEMAND_BLOCKS; i++) {
      mi_free(blocks[i]);
    }
    mi_collect(true);
  }
}

MI_TEST_MAIN()
