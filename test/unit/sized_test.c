// Owns: tests of hardening/sized: which sizes and alignments agree with which blocks, against the size classes themselves.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is allocated.
#include "hardening/sized.h"

#include "src/base/sizeclass.h"
#include "test/lib/test.h"

MI_TEST(spread_is_that_of_the_class) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    const size_t size = _mi_bin_block_size(bin);
    const size_t below = bin == MI_BIN_FIRST ? 0 : _mi_bin_block_size(bin - 1);
    // The smallest class serves 0 as well.
    MI_CHECK_EQ(_mi_hard_class_spread(size), size - below + (bin == MI_BIN_FIRST));
  }
}

MI_TEST(every_small_size_agrees_with_its_class_only) {
  for (size_t size = 0; size <= 20000; size++) {
    const unsigned own = _mi_bin_of_size(size);
    for (unsigned bin = own > 3 ? own - 3 : MI_BIN_FIRST; bin <= own + 3; bin++) {
      const size_t block = _mi_bin_block_size(bin);
      const bool agrees = _mi_hard_size_agrees(size, block, _mi_hard_class_spread(block));
      if (agrees != (bin == own)) {
        MI_CHECK_MSG(false, "size %zu, block %zu: %d", size, block, agrees);
        return;
      }
    }
  }
}

MI_TEST(aligned_sizes_agree_with_what_allocation_makes) {
  for (size_t align = 1; align <= MI_SLICE_SIZE; align *= 2) {
    for (size_t size = 0; size <= 3000; size += 1 + size / 50) {
      // As aligned allocation rounds.
      const size_t rounded = align <= MI_BLOCK_ALIGN ? size : _mi_align_up(_mi_max(size, 1), align);
      const size_t block = _mi_bin_block_size(_mi_bin_of_size(rounded));
      MI_CHECK(_mi_hard_size_agrees_aligned(size, align, block, _mi_hard_class_spread(block)));
      MI_CHECK(_mi_hard_size_agrees_any_align(size, MI_SLICE_SIZE, block, _mi_hard_class_spread(block)));
      MI_CHECK(!_mi_hard_size_agrees_aligned(block + 1, align, block, _mi_hard_class_spread(block)));
      MI_CHECK(!_mi_hard_size_agrees_aligned(SIZE_MAX, align, block, _mi_hard_class_spread(block)));
    }
  }
}

static const struct {
  size_t size;
  size_t request;
  size_t spread;
  bool agrees;
  bool resized;
} mi_sized_test_rows[] = {
    {0, 16, 17, true, false},
    {16, 16, 17, true, true},
    {17, 16, 17, false, false},
    {100, 112, 16, true, true},
    {96, 112, 16, false, true},
    {113, 112, 16, false, false},
    {56, 112, 16, false, true},
    {55, 112, 16, false, false},
    // Exact to the byte.
    {100, 100, 1, true, true},
    {99, 100, 1, false, true},
    {101, 100, 1, false, false},
    {0, 0, 1, true, true},
    // Singles.
    {MI_SLICE_SIZE, 2 * MI_SLICE_SIZE, MI_SLICE_SIZE, false, true},
    {MI_SLICE_SIZE + 1, 2 * MI_SLICE_SIZE, MI_SLICE_SIZE, true, true},
    {SIZE_MAX, 2 * MI_SLICE_SIZE, MI_SLICE_SIZE, false, false},
};

MI_TEST(rows) {
  for (size_t i = 0; i < sizeof(mi_sized_test_rows) / sizeof(mi_sized_test_rows[0]); i++) {
    MI_CHECK_MSG(_mi_hard_size_agrees(mi_sized_test_rows[i].size, mi_sized_test_rows[i].request, mi_sized_test_rows[i].spread) == mi_sized_test_rows[i].agrees, "row %zu", i);
    MI_CHECK_MSG(_mi_hard_size_agrees_resized(mi_sized_test_rows[i].size, mi_sized_test_rows[i].request) == mi_sized_test_rows[i].resized, "row %zu", i);
  }
}

static const struct {
  uintptr_t address;
  size_t align;
  bool agrees;
} mi_sized_test_aligns[] = {
    {64, 64, true},
    {64, 32, true},
    {64, 128, false},
    {64, 1, true},
    {64, 0, false},
    {64, 48, false},
    {64, (size_t)1 << 31, false},
    {(uintptr_t)1 << 31, (size_t)1 << 31, true},
    {0, 4096, true},
    {65, 2, false},
};

MI_TEST(alignments) {
  for (size_t i = 0; i < sizeof(mi_sized_test_aligns) / sizeof(mi_sized_test_aligns[0]); i++) {
    MI_CHECK_MSG(_mi_hard_align_agrees(mi_sized_test_aligns[i].address, mi_sized_test_aligns[i].align) == mi_sized_test_aligns[i].agrees, "row %zu", i);
  }
}

MI_TEST_MAIN()
