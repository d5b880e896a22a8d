// Owns: tests of huge and large OS pages and of nodes of memory, on a machine that is made up: how many pages each node has,
// how long one takes, and on which node the thread runs.
// May include: everything.
// Called by: the test runner, under every variant; linked with -Wl,--wrap of the primitives below.
// Invariants: each test has a child of its own, so that each has its own arenas.
#include "src/sys/huge.h"

#include "mimalloc.h"
#include "src/heap/heap.h"
#include "src/heap/process.h"
#include "src/region/arena-program.h"
#include "src/region/arena-purge.h"
#include "src/sys/guard.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/probe.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { NODES = 4,
       ANY = NODES,  // what a call without a node takes from
       CHILD_MS = 60000,
       MIB = 1024 * 1024 };

#define GIB ((size_t)1 << 30)

static struct {
  long huge[NODES + 1];   // pages of 1 GiB that are there
  long large[NODES + 1];  // pages of 2 MiB
  int64_t ms_each;        // what a call takes
  int64_t ms;             // that have passed so
  long misplace;          // call of this number is given another place
  long calls;
  int node;               // of the thread
  long preferred[NODES];  // calls to prefer a node
} mi_huge_test;

int __real__mi_prim_reserve_huge(void* wish, size_t size, size_t huge_size, int numa_node, void** addr);
int __wrap__mi_prim_reserve_huge(void* wish, size_t size, size_t huge_size, int numa_node, void** addr);
int64_t __real__mi_prim_clock_ms(void);
int64_t __wrap__mi_prim_clock_ms(void);
int __wrap__mi_prim_numa_node(void);
int __wrap__mi_prim_numa_prefer(void* addr, size_t size, int numa_node);

int64_t __wrap__mi_prim_clock_ms(void) { return 1000 + mi_huge_test.ms; }

int __wrap__mi_prim_numa_node(void) { return mi_huge_test.node; }

int __wrap__mi_prim_numa_prefer(void* addr, size_t size, int numa_node) {
  MI_CHECK(addr != NULL && size > 0 && numa_node >= 0);
  mi_huge_test.preferred[numa_node % NODES]++;
  return 0;
}

int __wrap__mi_prim_reserve_huge(void* wish, size_t size, size_t huge_size, int numa_node, void** addr) {
  MI_CHECK((huge_size == GIB || huge_size == 2 * MIB) && size % huge_size == 0 && (uintptr_t)wish % huge_size == 0);
  mi_huge_test.calls++;
  long* const left = &(huge_size == GIB ? mi_huge_test.huge : mi_huge_test.large)[numa_node < 0 ? ANY : numa_node % NODES];
  if (*left < (long)(size / huge_size)) {
    return ENOMEM;
  }
  mi_huge_test.ms += mi_huge_test.ms_each;
  void* p;
  MI_REQUIRE(_mi_prim_reserve(size + huge_size, false, &p) == 0 && _mi_prim_release(p, size + huge_size) == 0);
  uint8_t* at = (uint8_t*)_mi_align_up_ptr((uintptr_t)p, huge_size);
  at = wish != NULL && mi_huge_test.calls != mi_huge_test.misplace ? wish : at;
  MI_REQUIRE(_mi_prim_reserve_at(at, size, true, &p) == 0 && p == at);
  *left -= (long)(size / huge_size);
  *addr = p;
  return 0;
}

static int mi_huge_test_lines;
static void mi_huge_test_line(const char* text, void* arg) {
  (void)arg;
  mi_huge_test_lines += strstr(text, "warning: ") != NULL;
}

static void mi_huge_test_begin(void) {
  mi_option_set(mi_option_show_errors, 1);
  mi_option_set(mi_option_use_numa_nodes, NODES);
  mi_register_output(&mi_huge_test_line, NULL);
  mi_huge_test_lines = 0;
}

static size_t mi_huge_test_count(void) {
  size_t n = 0;
  while (_mi_arena_at(n) != NULL) {
    n++;
  }
  return n;
}

// The last arena must be so many huge pages on a node.
static mi_arena_t* mi_huge_test_last(size_t pages, int node, size_t os_page_size) {
  const mi_arena_t* const arena = _mi_arena_at(mi_huge_test_count() - 1);
  MI_REQUIRE(arena != NULL);
  MI_CHECK_EQ(arena->slice_count * MI_SLICE_SIZE, pages * GIB);
  MI_CHECK_EQ(arena->numa_node, node);
  MI_CHECK_EQ(arena->os_page_size, os_page_size);
  MI_CHECK(arena->is_pinned && arena->is_programs && !arena->is_lent && (uintptr_t)arena->base % GIB == 0);
  return _mi_arena_at(mi_huge_test_count() - 1);
}

// What is asked for, what the machine has, and what comes of it.
static const struct {
  size_t pages;
  int node;
  size_t timeout;
  long huge;
  long large;
  long misplace;
  int64_t ms_each;
  size_t got;
  int lines;
  bool in_large;
} mi_huge_test_rows[] = {
    {3, -1, 0, 8, 0, 0, 0, 3, 0, false},
    {3, 2, 0, 3, 0, 0, 0, 3, 0, false},
    {4, 1, 0, 2, 0, 0, 0, 2, 1, false},           // there are fewer
    {2, 1, 0, 0, 0, 0, 0, 0, 1, false},           // there are none
    {2, -1, 0, 0, 1024, 0, 0, 2, 1, true},        // none, but smaller ones
    {3, -1, 0, 1, 1024 + 100, 0, 0, 3, 1, true},  // one, and smaller ones
    {3, -1, 0, 0, 512 + 511, 0, 0, 1, 1, true},   // smaller ones, but not enough
    {3, -1, 0, 8, 0, 2, 0, 1, 1, false},          // the second comes to lie elsewhere
    {8, -1, 350, 8, 0, 0, 100, 3, 1, false},      // the fourth would be late
    {8, -1, 1, 8, 0, 0, 100, 1, 1, false},        // one is always tried
    {8, -1, 0, 8, 0, 0, 1000000, 8, 0, false},    // there is time enough
    {0, -1, 0, 8, 0, 0, 0, 0, 0, false},
};

static void mi_huge_test_row(void* arg) {
  const size_t i = (size_t)(uintptr_t)arg;
  mi_huge_test_begin();
  const size_t arenas = mi_huge_test_count();
  const size_t space = mi_test_address_space();
  const int node = mi_huge_test_rows[i].node;
  mi_huge_test.huge[node < 0 ? ANY : node] = mi_huge_test_rows[i].huge;
  mi_huge_test.large[node < 0 ? ANY : node] = mi_huge_test_rows[i].large;
  mi_huge_test.misplace = mi_huge_test_rows[i].misplace;
  mi_huge_test.ms_each = mi_huge_test_rows[i].ms_each;
  const size_t pages = mi_huge_test_rows[i].pages;
  const size_t got = mi_huge_test_rows[i].got;
  mi_arena_id_t id = (mi_arena_id_t)1;
  const int err = mi_reserve_huge_os_pages_at_ex(pages, node, mi_huge_test_rows[i].timeout, true, &id);
  MI_CHECK_EQ(err, got > 0 || pages == 0 ? 0 : ENOMEM);
  MI_CHECK_EQ(mi_huge_test_lines, mi_huge_test_rows[i].lines);
  MI_CHECK_EQ(mi_huge_test_count(), arenas + (got > 0));
  if (got == 0) {
    MI_CHECK(id == NULL);
    MI_CHECK_EQ(mi_test_address_space(), space);
    return;
  }
  mi_arena_t* const arena = mi_huge_test_last(got, node, mi_huge_test_rows[i].in_large ? (size_t)(2 * MIB) : GIB);
  MI_CHECK(_mi_arena_of_id(id) == arena && arena->is_exclusive);
  // Apart from the metadata nothing else was mapped for good.
  MI_CHECK(mi_test_address_space() < space + got * (GIB + GIB / 8) + 64 * MIB);
  MI_CHECK(!mi_test_is_readable(arena->base - 1) && !mi_test_is_readable(arena->base + got * GIB));
  mi_heap_t* const heap = mi_heap_new_in_arena(_mi_arena_id(arena));
  uint8_t* const p = mi_heap_malloc(heap, 5 * MIB);
  MI_CHECK(p != NULL && mi_arena_contains(id, p));
  memset(p, 1, 5 * MIB);
  mi_heap_destroy(heap);
}

MI_TEST(pages_at) {
  for (size_t i = 0; i < sizeof(mi_huge_test_rows) / sizeof(mi_huge_test_rows[0]); i++) {
    const int before = mi_test_failure_count();
    MI_CHECK_IN_CHILD(&mi_huge_test_row, (void*)(uintptr_t)i, CHILD_MS);
    MI_CHECK_MSG(mi_test_failure_count() == before, "row %zu", i);
  }
}

// Spread over nodes

static const struct {
  size_t pages;
  size_t nodes;  // 0: all
  size_t timeout;
  int64_t ms_each;
  long huge[NODES];
  size_t got[NODES];
} mi_huge_test_spread[] = {
    {10, 4, 0, 0, {9, 9, 9, 9}, {3, 3, 2, 2}},
    {10, 0, 0, 0, {9, 9, 9, 9}, {3, 3, 2, 2}},
    {4, 2, 0, 0, {9, 9, 9, 9}, {2, 2, 0, 0}},
    {3, 4, 0, 0, {9, 9, 9, 9}, {1, 1, 1, 0}},
    {8, 4, 0, 0, {9, 0, 1, 9}, {2, 0, 1, 2}},
    {8, 4, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}},
    {16, 4, 800, 100, {9, 9, 9, 9}, {2, 2, 2, 2}},
    {16, 2, 10, 100, {9, 9, 9, 9}, {1, 1, 0, 0}},
};

static void mi_huge_test_spread_row(void* arg) {
  const size_t i = (size_t)(uintptr_t)arg;
  mi_huge_test_begin();
  mi_huge_test.ms_each = mi_huge_test_spread[i].ms_each;
  size_t sum = 0;
  for (int n = 0; n < NODES; n++) {
    mi_huge_test.huge[n] = mi_huge_test_spread[i].huge[n];
    sum += mi_huge_test_spread[i].got[n];
  }
  size_t at = mi_huge_test_count();
  const size_t nodes = mi_huge_test_spread[i].nodes;
  const size_t timeout = mi_huge_test_spread[i].timeout;
  if (nodes == 0) {
    size_t got = 12345;
    MI_CHECK_EQ(mi_reserve_huge_os_pages(mi_huge_test_spread[i].pages, (double)timeout / 1000, &got), sum > 0 ? 0 : ENOMEM);
    MI_CHECK_EQ(got, sum);
  } else {
    MI_CHECK_EQ(mi_reserve_huge_os_pages_interleave(mi_huge_test_spread[i].pages, nodes, timeout), sum > 0 ? 0 : ENOMEM);
  }
  for (int n = 0; n < NODES; n++) {
    const size_t pages = mi_huge_test_spread[i].got[n];
    if (pages > 0) {
      const mi_arena_t* const arena = _mi_arena_at(at++);
      MI_REQUIRE(arena != NULL);
      MI_CHECK_EQ(arena->numa_node, n);
      MI_CHECK_EQ(arena->slice_count * MI_SLICE_SIZE, pages * GIB);
    }
  }
  MI_CHECK(_mi_arena_at(at) == NULL);
}

MI_TEST(pages_spread) {
  for (size_t i = 0; i < sizeof(mi_huge_test_spread) / sizeof(mi_huge_test_spread[0]); i++) {
    const int before = mi_test_failure_count();
    MI_CHECK_IN_CHILD(&mi_huge_test_spread_row, (void*)(uintptr_t)i, CHILD_MS);
    MI_CHECK_MSG(mi_test_failure_count() == before, "row %zu", i);
  }
}

// Whose arena serves

static int mi_huge_test_node_of(const void* p) {
  const mi_arena_t* const arena = _mi_arena_of(p);
  return arena == NULL ? -2 : arena->numa_node;
}

static void mi_huge_test_nearest(void* arg) {
  (void)arg;
  mi_huge_test_begin();
  for (int n = 0; n < NODES; n++) {
    mi_huge_test.huge[n] = 1;
  }
  // Alone with these, so that there is a choice among them only.
  mi_option_set(mi_option_disallow_os_alloc, 1);
  MI_REQUIRE(mi_reserve_huge_os_pages_interleave(NODES - 1, NODES - 1, 0) == 0);
  for (int n = 0; n < 3 * NODES; n++) {
    mi_huge_test.node = n % NODES;
    void* const p = mi_malloc(20 * MIB);
    const int from = mi_huge_test_node_of(p);
    MI_CHECK_MSG(n % NODES < NODES - 1 ? from == n % NODES : from >= 0, "on node %d from %d", n % NODES, from);
    // A heap may prefer another.
    mi_heap_t* const heap = mi_heap_new();
    mi_heap_set_numa_affinity(heap, 1);
    MI_CHECK_EQ(mi_huge_test_node_of(mi_heap_malloc(heap, 20 * MIB)), 1);
  }
  // When its own is full, those of others serve.
  mi_huge_test.node = 0;
  int last = 0;
  void* p;
  while ((p = mi_malloc(50 * MIB)) != NULL) {
    last = mi_huge_test_node_of(p);
  }
  MI_CHECK(last > 0);
}

static void mi_huge_test_local(void* arg) {
  (void)arg;
  mi_huge_test_begin();
  mi_option_set(mi_option_arena_is_numa_local, 1);
  for (int round = 0; round < 2; round++) {
    for (int n = 0; n < NODES; n++) {
      mi_huge_test.node = n;
      void* const p = mi_malloc(20 * MIB);
      const int from = mi_huge_test_node_of(p);
      MI_CHECK_MSG(from == n || from == -1, "on node %d from %d", n, from);
      MI_CHECK(from == -1 || mi_huge_test.preferred[n] == 1);
    }
  }
  // Where no more can be had a far one serves.
  mi_option_set(mi_option_disallow_os_alloc, 1);
  int last = 0;
  void* p;
  mi_huge_test.node = 0;
  while ((p = mi_malloc(100 * MIB)) != NULL) {
    last = mi_huge_test_node_of(p);
  }
  MI_CHECK(last != 0);
}

MI_TEST(nodes) {
  if (_mi_os_config.address_space_limit != SIZE_MAX) {
    MI_TEST_SKIP("the process may map only so much");
    return;
  }
  MI_CHECK_IN_CHILD(&mi_huge_test_nearest, NULL, CHILD_MS);
  MI_CHECK_IN_CHILD(&mi_huge_test_local, NULL, CHILD_MS);
}

// Large pages

static void mi_huge_test_large(void* arg) {
  (void)arg;
  mi_huge_test_begin();
  mi_arena_id_t id;
  // None: ordinary ones with a line.
  MI_CHECK_EQ(mi_reserve_os_memory_ex(10 * MIB, true, true, true, &id), 0);
  MI_CHECK(_mi_arena_of_id(id)->os_page_size == 0 && mi_huge_test_lines == 1);
  // Enough: as many as it takes, and whole ones.
  mi_huge_test.large[ANY] = 100;
  MI_CHECK_EQ(mi_reserve_os_memory_ex(9 * MIB, false, true, true, &id), 0);
  const mi_arena_t* const arena = _mi_arena_of_id(id);
  MI_CHECK(arena->os_page_size == 2 * MIB && arena->is_pinned && arena->slice_count == 10 * MIB / MI_SLICE_SIZE);
  MI_CHECK(mi_huge_test.large[ANY] == 95 && mi_huge_test_lines == 1);
  // Not asked for.
  MI_CHECK_EQ(mi_reserve_os_memory_ex(10 * MIB, true, false, true, &id), 0);
  MI_CHECK(_mi_arena_of_id(id)->os_page_size == 0 && mi_huge_test.large[ANY] == 95);
}

static void mi_huge_test_large_by_option(void* arg) {
  const bool enough = arg != NULL;
  mi_huge_test_begin();
  mi_option_set(mi_option_allow_large_os_pages, 1);
  mi_option_set(mi_option_arena_reserve, 64 * 1024);
  mi_huge_test.large[ANY] = enough ? 32 : 31;
  const size_t before = mi_huge_test_count();
  // More than there is so far.
  for (size_t i = 0; mi_huge_test_count() == before && i < 1000; i++) {
    MI_CHECK(mi_malloc(10 * MIB) != NULL);
  }
  MI_REQUIRE(mi_huge_test_count() > before);
  MI_CHECK_EQ(_mi_arena_at(before)->os_page_size, enough ? (size_t)(2 * MIB) : 0);
  MI_CHECK_EQ(mi_huge_test_lines, !enough);
  // The next ones find none: one line for all.
  for (size_t i = 0; i < 20; i++) {
    MI_CHECK(mi_malloc(10 * MIB) != NULL);
  }
  MI_CHECK_EQ(mi_huge_test_lines, 1);
}

static void mi_huge_test_start(void* arg) {
  (void)arg;
  mi_huge_test_begin();
  size_t at = mi_huge_test_count();
  mi_huge_test.huge[2] = 2;
  mi_huge_test.large[ANY] = 100;
  mi_option_set(mi_option_allow_large_os_pages, 1);
  mi_option_set(mi_option_reserve_huge_os_pages, 2);
  mi_option_set(mi_option_reserve_huge_os_pages_at, 2);
  mi_option_set(mi_option_reserve_os_memory, 20 * 1024);
  _mi_arenas_start();
  _mi_arenas_start();
  MI_REQUIRE(mi_huge_test_count() == at + 2);
  MI_CHECK(_mi_arena_at(at)->numa_node == 2 && _mi_arena_at(at)->slice_count * MI_SLICE_SIZE == 2 * GIB);
  MI_CHECK(_mi_arena_at(at + 1)->os_page_size == 2 * MIB && _mi_arena_at(at + 1)->slice_count * MI_SLICE_SIZE == 20 * MIB);
}

MI_TEST(large_pages) { MI_CHECK_IN_CHILD(&mi_huge_test_large, NULL, CHILD_MS); }

MI_TEST(large_pages_by_option) {
  MI_CHECK_IN_CHILD(&mi_huge_test_large_by_option, NULL, CHILD_MS);
  MI_CHECK_IN_CHILD(&mi_huge_test_large_by_option, (void*)1, CHILD_MS);
}

MI_TEST(at_the_start) { MI_CHECK_IN_CHILD(&mi_huge_test_start, NULL, CHILD_MS); }

MI_TEST_MAIN()
