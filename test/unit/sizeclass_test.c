// Owns: tests of base/sizeclass: the classes as a table, what each request is given, and what is wasted.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: every size up to the largest class is asked.
#include "src/base/sizeclass.h"

#include "test/lib/test.h"

static size_t mi_sizeclass_test_given(size_t size) { return _mi_bin_block_size(_mi_bin_of_size(size)); }

static const struct {
  size_t size;
  unsigned bin;
  size_t given;
} mi_sizeclass_test_rows[] = {
    {0, 1, 16},
    {1, 1, 16},
    {16, 1, 16},
    {17, 2, 32},
    {64, 4, 64},
    {65, 5, 80},
    {128, 8, 128},
    {129, 9, 144},
    {256, 16, 256},
    {257, 17, 288},
    {288, 17, 288},
    {289, 18, 320},
    {512, 24, 512},
    {1024, 32, 1024},
    {1025, 33, 1152},
    {8192, 56, 8192},
    {8193, 57, 9216},
    {65536, 80, 65536},
    {65537, 81, 73728},
    {524287, 104, 524288},
    {524288, 104, 524288},
};

MI_TEST(rows) {
  for (size_t i = 0; i < sizeof(mi_sizeclass_test_rows) / sizeof(mi_sizeclass_test_rows[0]); i++) {
    MI_CHECK_EQ(_mi_bin_of_size(mi_sizeclass_test_rows[i].size), mi_sizeclass_test_rows[i].bin);
    MI_CHECK_EQ(mi_sizeclass_test_given(mi_sizeclass_test_rows[i].size), mi_sizeclass_test_rows[i].given);
    MI_CHECK_EQ(_mi_sizeclass_round(mi_sizeclass_test_rows[i].size), mi_sizeclass_test_rows[i].given);
  }
}

// Each class is larger than the one before, is its own class, and starts right behind the one before.
MI_TEST(classes) {
  size_t before = 0;
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    const size_t block_size = _mi_bin_block_size(bin);
    MI_CHECK(block_size > before && block_size % MI_BLOCK_ALIGN == 0);
    MI_CHECK_EQ(_mi_bin_of_size(block_size), bin);
    MI_CHECK_EQ(_mi_bin_of_size(before + 1), bin);
    before = block_size;
  }
  MI_CHECK_EQ(before, MI_LARGE_BLOCK_MAX);
  MI_CHECK(MI_BIN_SINGLE > MI_BIN_LAST && MI_BIN_SINGLE < MI_BIN_COUNT);
}

// Every request: enough, never less than a smaller one gets, the smallest class that will do, and little waste.
MI_TEST(every_size) {
  unsigned before = MI_BIN_FIRST;
  for (size_t size = 0; size <= MI_LARGE_BLOCK_MAX; size++) {
    const unsigned bin = _mi_bin_of_size(size);
    const size_t given = _mi_bin_block_size(bin);
    const size_t needed = _mi_align_up(_mi_max(size, 1), MI_BLOCK_ALIGN);
    bool good = bin >= before && bin <= before + 1 && bin <= MI_BIN_LAST && given >= needed;
    good = good && (bin == MI_BIN_FIRST || _mi_bin_block_size(bin - 1) < _mi_max(size, 1));
    // An eighth of the request at most, beyond what the alignment of every block makes of it.
    good = good && (given - needed) * 8 <= needed && (size > 128 || given == needed);
    if (!MI_CHECK_MSG(good, "%zu bytes: bin %u of %zu bytes after bin %u", size, bin, given, before)) {
      return;
    }
    before = bin;
  }
  MI_CHECK_EQ(before, MI_BIN_LAST);
}

// What aligned allocation builds on: a request that is a multiple of A gets a class that is.
MI_TEST(multiples) {
  for (size_t align = MI_BLOCK_ALIGN; align <= MI_SLICE_SIZE; align *= 2) {
    for (size_t size = align; size <= MI_LARGE_BLOCK_MAX; size += align) {
      const size_t given = mi_sizeclass_test_given(size);
      MI_CHECK_MSG(given % align == 0, "%zu bytes, a multiple of %zu, get %zu", size, align, given);
      MI_CHECK_MSG(size > 16 * align || given == size, "%zu bytes, few times %zu, get %zu", size, align, given);
    }
  }
}

// A page of each class: blocks end within it and have a granule of their own, and at least eight fit.
MI_TEST(pages) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    const size_t block_size = _mi_bin_block_size(bin);
    const size_t slices = _mi_bin_page_slices(bin);
    const size_t page_size = slices * MI_SLICE_SIZE;
    const size_t granule = (size_t)1 << _mi_granule_shift(slices);
    MI_CHECK_EQ(granule * MI_PAGE_GRANULES, page_size);
    MI_CHECK_MSG(block_size % granule == 0, "bin %u: blocks of %zu bytes in granules of %zu", bin, block_size, granule);
    MI_CHECK(page_size / block_size >= 8);
    MI_CHECK_MSG((page_size % block_size) * 8 <= page_size, "bin %u: a tail of %zu bytes", bin, page_size % block_size);
    // The direct table ends where a class does.
    MI_CHECK(block_size <= MI_DIRECT_SIZE_MAX || bin > _mi_bin_of_size(MI_DIRECT_SIZE_MAX));
  }
  MI_CHECK_EQ(mi_sizeclass_test_given(MI_DIRECT_SIZE_MAX), MI_DIRECT_SIZE_MAX);
}

static const struct {
  size_t size;
  size_t rounded;
} mi_sizeclass_test_large[] = {
    {MI_LARGE_BLOCK_MAX + 1, MI_LARGE_BLOCK_MAX + MI_SLICE_SIZE},
    {MI_LARGE_BLOCK_MAX + MI_SLICE_SIZE, MI_LARGE_BLOCK_MAX + MI_SLICE_SIZE},
    {MI_LARGE_BLOCK_MAX + MI_SLICE_SIZE + 1, MI_LARGE_BLOCK_MAX + 2 * MI_SLICE_SIZE},
    {MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE, MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE + 1},
    {MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE + 1, MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE + 1},
    {MI_ALLOC_SIZE_MAX, MI_ALLOC_SIZE_MAX},
    {SIZE_MAX - 5, SIZE_MAX - 5},
    {SIZE_MAX, SIZE_MAX},
};

MI_TEST(beyond_the_classes) {
  for (size_t i = 0; i < sizeof(mi_sizeclass_test_large) / sizeof(mi_sizeclass_test_large[0]); i++) {
    MI_CHECK_EQ(_mi_sizeclass_round(mi_sizeclass_test_large[i].size), mi_sizeclass_test_large[i].rounded);
  }
  // Asking again changes nothing.
  for (size_t size = 1; size < MI_ALLOC_SIZE_MAX / 2; size += size / 4 + 1) {
    const size_t rounded = _mi_sizeclass_round(size);
    MI_CHECK(rounded >= size);
    MI_CHECK_EQ(_mi_sizeclass_round(rounded), rounded);
  }
}

MI_TEST_MAIN()
