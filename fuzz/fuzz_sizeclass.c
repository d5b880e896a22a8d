// Owns: the target that asks size classes and sized frees of any size for what the rest counts on.
// May include: fuzz/lib, src/base, hardening.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: nothing but arithmetic.
#include "fuzz/lib/fuzz.h"
#include "hardening/sized.h"
#include "src/base/sizeclass.h"

static void mi_check_class(size_t size) {
  const unsigned bin = _mi_bin_of_size(size);
  MI_FUZZ_CHECK(bin >= MI_BIN_FIRST && bin <= MI_BIN_LAST, "bin %u of %zu bytes", bin, size);
  const size_t block = _mi_bin_block_size(bin);
  MI_FUZZ_CHECK(block >= size && block > 0, "blocks of %zu bytes for %zu", block, size);
  MI_FUZZ_CHECK(bin == MI_BIN_FIRST || _mi_bin_block_size(bin - 1) < size, "a smaller class than %zu bytes serves %zu", block, size);
  MI_FUZZ_CHECK(_mi_bin_of_size(block) == bin, "blocks of %zu bytes are of another class", block);
  // A block wastes at most 1/9 of itself beyond what alignment forces.
  MI_FUZZ_CHECK((block - size) * 9 <= block + 9 * MI_BLOCK_ALIGN, "%zu bytes are wasted of %zu", block - size, block);
  const size_t slices = _mi_bin_page_slices(bin);
  const unsigned granule = _mi_granule_shift(slices);
  MI_FUZZ_CHECK(block % ((size_t)1 << granule) == 0, "blocks of %zu bytes in granules of %u", block, 1U << granule);
  MI_FUZZ_CHECK((slices << MI_SLICE_SHIFT) >> granule == MI_PAGE_GRANULES, "pages of %zu slices", slices);
  MI_FUZZ_CHECK((slices << MI_SLICE_SHIFT) / block >= 8, "fewer than 8 blocks of %zu bytes in a page", block);
  MI_FUZZ_CHECK(_mi_sizeclass_round(size) == block, "%zu bytes are rounded to %zu", size, _mi_sizeclass_round(size));
  const size_t spread = _mi_hard_class_spread(block);
  MI_FUZZ_CHECK(_mi_hard_size_agrees(size, block, spread) || size == 0, "a free of %zu bytes does not agree with a block of %zu", size, block);
  MI_FUZZ_CHECK(!_mi_hard_size_agrees(block + 1, block, spread), "a free of %zu bytes agrees with a block of %zu", block + 1, block);
  MI_FUZZ_CHECK(bin == MI_BIN_FIRST || !_mi_hard_size_agrees(_mi_bin_block_size(bin - 1), block, spread),
                "a free of the class below agrees with a block of %zu", block);
}

// What aligned allocation relies on.
static void mi_check_align(size_t size, size_t align) {
  const size_t rounded = _mi_align_up(size + (size == 0), align);
  if (rounded <= MI_LARGE_BLOCK_MAX) {
    const size_t block = _mi_sizeclass_round(rounded);
    MI_FUZZ_CHECK(block % align == 0, "blocks of %zu bytes for %zu at alignment %zu", block, size, align);
    MI_FUZZ_CHECK(_mi_hard_size_agrees_aligned(size, align, block, _mi_hard_class_spread(block)),
                  "a free of %zu bytes at alignment %zu does not agree with a block of %zu", size, align, block);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  size_t last = 0;
  while (input.left > 0) {
    const size_t asked = (size_t)mi_fuzz_take(&input, 4);
    const size_t align = (size_t)1 << mi_fuzz_take(&input, 1) % 17;
    const size_t n = asked % (MI_LARGE_BLOCK_MAX + 1);
    mi_check_class(n);
    mi_check_align(n, align);
    MI_FUZZ_CHECK((n <= last) == (_mi_bin_of_size(n) <= _mi_bin_of_size(last)) || _mi_bin_of_size(n) == _mi_bin_of_size(last),
                  "%zu and %zu bytes are in the wrong order", n, last);
    const size_t beyond = MI_LARGE_BLOCK_MAX + 1 + asked;
    MI_FUZZ_CHECK(_mi_sizeclass_round(beyond) >= beyond && _mi_sizeclass_round(beyond) - beyond < MI_SLICE_SIZE, "%zu bytes are rounded to %zu",
                  beyond, _mi_sizeclass_round(beyond));
    MI_FUZZ_CHECK(_mi_sizeclass_round(SIZE_MAX - asked) == SIZE_MAX - asked, "the size of no block is rounded");
    last = n;
  }
  return 0;
}
