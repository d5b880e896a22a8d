// Owns: tests of hardening/bounds.h and alloc/bounds: verdicts by a table, and the blocks that addresses are found in.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what would be reported goes to a counter, and the process goes on.
#include "src/alloc/bounds.h"

#include "src/alloc/alloc.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "test/lib/test.h"

static const struct {
  uintptr_t start;
  size_t size;
  bool live;
  uintptr_t address;
  size_t length;
  mi_bounds_t verdict;
  size_t room;
} mi_bounds_test_rows[] = {
    {4096, 48, true, 4096, 48, MI_BOUNDS_INSIDE, 48},
    {4096, 48, true, 4096, 49, MI_BOUNDS_BEYOND, 48},
    {4096, 48, true, 4096, 0, MI_BOUNDS_INSIDE, 48},
    {4096, 48, true, 4096, SIZE_MAX, MI_BOUNDS_BEYOND, 48},
    {4096, 48, true, 4100, 44, MI_BOUNDS_INSIDE, 44},
    {4096, 48, true, 4100, 45, MI_BOUNDS_BEYOND, 44},
    {4096, 48, true, 4143, 1, MI_BOUNDS_INSIDE, 1},
    {4096, 48, true, 4143, 2, MI_BOUNDS_BEYOND, 1},
    {4096, 48, true, 4144, 1, MI_BOUNDS_BEYOND, 0},
    {4096, 48, true, 4144, 0, MI_BOUNDS_INSIDE, 0},
    {4096, 48, true, 4095, 1, MI_BOUNDS_BEFORE, 0},
    {4096, 48, true, 4000, 200, MI_BOUNDS_BEFORE, 0},
    {4096, 48, true, 0, SIZE_MAX, MI_BOUNDS_BEFORE, 0},
    {4096, 48, false, 4096, 1, MI_BOUNDS_FREE, 0},
    {4096, 48, false, 4100, 100, MI_BOUNDS_FREE, 0},
    {4096, 48, false, 4000, 1, MI_BOUNDS_FREE, 0},
    {4096, 48, false, 4096, 0, MI_BOUNDS_INSIDE, 0},
    {UINTPTR_MAX - 63, 64, true, UINTPTR_MAX, 1, MI_BOUNDS_INSIDE, 1},
    {UINTPTR_MAX - 63, 64, true, UINTPTR_MAX, 2, MI_BOUNDS_BEYOND, 1},
    {UINTPTR_MAX - 63, 64, true, 0, 1, MI_BOUNDS_BEFORE, 0},
    {16, SIZE_MAX - 15, true, 32, SIZE_MAX - 31, MI_BOUNDS_INSIDE, SIZE_MAX - 31},
};

MI_TEST(verdicts) {
  for (size_t i = 0; i < sizeof(mi_bounds_test_rows) / sizeof(mi_bounds_test_rows[0]); i++) {
    const mi_extent_t extent = {
        .start = mi_bounds_test_rows[i].start, .size = mi_bounds_test_rows[i].size, .live = mi_bounds_test_rows[i].live};
    const mi_bounds_t verdict =
        _mi_hard_bounds_check(extent, mi_bounds_test_rows[i].address, mi_bounds_test_rows[i].length);
    MI_CHECK_MSG(verdict == mi_bounds_test_rows[i].verdict, "row %zu: %d", i, (int)verdict);
    MI_CHECK_MSG(_mi_hard_bounds_room(extent, mi_bounds_test_rows[i].address) == mi_bounds_test_rows[i].room, "row %zu", i);
  }
}

static const size_t mi_bounds_test_sizes[] = {1, 16, 24, 100, 1000, 1025, 8192, 9000, 40000, 65536, 70000, 262144, 524288, 600000, 3145728};

enum { MI_BOUNDS_TEST_SIZES = sizeof(mi_bounds_test_sizes) / sizeof(mi_bounds_test_sizes[0]) };

// Every address of a block leads to it, in every place of the page.
MI_TEST(extents) {
  for (size_t k = 0; k < MI_BOUNDS_TEST_SIZES; k++) {
    enum { N = 40 };
    uint8_t* p[N];
    const size_t count = mi_bounds_test_sizes[k] > 100000 ? 10 : N;
    for (size_t i = 0; i < count; i++) {
      p[i] = _mi_alloc(mi_bounds_test_sizes[k]);
      MI_REQUIRE(p[i] != NULL);
    }
    for (size_t i = 0; i < count; i++) {
      const size_t usable = _mi_usable_size(p[i]);
      const size_t step = usable < 5000 ? 1 : 997;
      for (size_t at = 0; at < usable; at += step) {
        mi_page_t* const page = _mi_page_map_find(p[i] + at);
        MI_REQUIRE(page != NULL);
        const mi_extent_t extent = _mi_block_extent(page, p[i] + at);
        MI_REQUIRE(extent.start == (uintptr_t)p[i] && extent.size == usable && extent.live);
        MI_REQUIRE(_mi_bounds_room(p[i] + at) == usable - at);
        // What is plain is inside; of blocks of classes it is all that is.
        MI_REQUIRE(_mi_bounds_are_plain(p[i] + at, usable - at) == (MI_HAS_LIVE_BITS && !_mi_page_is_single(page)));
        MI_REQUIRE(!_mi_bounds_are_plain(p[i] + at, usable - at + 1) && !_mi_bounds_are_plain(p[i] + at, SIZE_MAX));
      }
      MI_CHECK_EQ(_mi_bounds_room(p[i] + usable - 1), 1);
    }
    for (size_t i = 0; i < count; i++) _mi_free(p[i]);
  }
}

static int mi_bounds_test_errors[200];

static void mi_bounds_test_count(int err, void* arg) {
  (void)arg;
  mi_bounds_test_errors[err]++;
}

MI_TEST(reports) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  _mi_log_register_error(&mi_bounds_test_count, NULL);
  uint8_t* const p = _mi_alloc(100);
  uint8_t* const keep = _mi_alloc(100);
  MI_REQUIRE(p != NULL && keep != NULL);
  const size_t usable = _mi_usable_size(p);
  const int saved = errno;
  errno = 77;
  MI_CHECK(_mi_bounds_allow(p, usable, "call", true));
  MI_CHECK(_mi_bounds_allow(p + 50, usable - 50, "call", false));
  MI_CHECK(_mi_bounds_allow(p + 50, 0, "call", true));
  MI_CHECK_EQ(mi_bounds_test_errors[EFAULT], 0);
  MI_CHECK(!_mi_bounds_allow(p, usable + 1, "call", true));
  MI_CHECK_EQ(mi_bounds_test_errors[EFAULT], 1);
  MI_CHECK(!_mi_bounds_allow(p + 50, SIZE_MAX, "call", false));
  MI_CHECK_EQ(mi_bounds_test_errors[EFAULT], 2);
  _mi_free(p);
  if (MI_HAS_LIVE_BITS) {
    MI_CHECK(_mi_bounds_allow(p + 16, 0, "call", true));
    MI_CHECK(!_mi_bounds_allow(p + 16, 1, "call", true));
    MI_CHECK_EQ(_mi_bounds_room(p + 16), 0);
    MI_CHECK_EQ(mi_bounds_test_errors[EFAULT], 3);
  }
  MI_CHECK_EQ(errno, 77);
  errno = saved;
  _mi_free(keep);
}

// Behind the last block of a page there is room that is nobody's.
MI_TEST(tail_of_a_page) {
  uint8_t* const p = _mi_alloc(112);
  MI_REQUIRE(p != NULL);
  mi_page_t* const page = _mi_page_map_find(p);
  uint8_t* const tail = page->start + page->reserved * page->block_size;
  MI_REQUIRE(tail < page->start + page->slice_count * MI_SLICE_SIZE);
  const int before = mi_bounds_test_errors[EFAULT];
  MI_CHECK_EQ(_mi_bounds_room(tail), 0);
  MI_CHECK(!_mi_bounds_allow(tail, 1, "call", true));
  MI_CHECK_EQ(mi_bounds_test_errors[EFAULT], before + 1);
  _mi_free(p);
}

// A single that was handed out at an address inside it: what is before that is nobody's.
MI_TEST(before_a_single) {
  uint8_t* const p = _mi_alloc_aligned(NULL, 1000000, 4096, 16, false);
  MI_REQUIRE(p != NULL);
  mi_page_t* const page = _mi_page_map_find(p);
  MI_REQUIRE(page != NULL && _mi_page_is_single(page) && p > page->start);
  const int before = mi_bounds_test_errors[EFAULT];
  MI_CHECK(_mi_bounds_allow(p, _mi_usable_size(p), "call", true));
  MI_CHECK(!_mi_bounds_allow(p, _mi_usable_size(p) + 1, "call", true));
  MI_CHECK(!_mi_bounds_allow(p - 1, 1, "call", true));
  MI_CHECK_EQ(mi_bounds_test_errors[EFAULT], before + 2);
  _mi_free(p);
}

MI_TEST(not_ours) {
  static char mi_bounds_test_static[64];
  char local[64];
  MI_CHECK_EQ(_mi_bounds_room(mi_bounds_test_static), SIZE_MAX);
  MI_CHECK_EQ(_mi_bounds_room(local), SIZE_MAX);
  MI_CHECK_EQ(_mi_bounds_room(NULL), SIZE_MAX);
  MI_CHECK(_mi_bounds_allow(local, SIZE_MAX, "call", true));
  MI_CHECK(_mi_bounds_allow((void*)UINTPTR_MAX, 5, "call", true));
}

MI_TEST_MAIN()
