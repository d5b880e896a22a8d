// Owns: tests of base/bits: each function at its edges and against a plain loop.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is asked outside of a function's precondition.
#include "src/base/bits.h"

#include "test/lib/test.h"

static unsigned mi_bits_test_count(uint64_t x) {
  unsigned n = 0;
  for (unsigned i = 0; i < 64; i++) {
    n += (unsigned)((x >> i) & 1);
  }
  return n;
}

MI_TEST(words) {
  uint64_t seed = 1;
  for (unsigned i = 0; i < 64; i++) {
    const uint64_t bit = UINT64_C(1) << i;
    const uint64_t below = mi_test_random(&seed) & (bit - 1);
    MI_CHECK_EQ(_mi_bits_log2_64(bit), i);
    MI_CHECK_EQ(_mi_bits_log2_64(bit | below), i);
    MI_CHECK_EQ(_mi_bits_ctz64(bit), i);
    MI_CHECK_EQ(_mi_bits_ctz64(bit | ~(bit | (bit - 1))), i);
    MI_CHECK_EQ(_mi_bits_mask64(i), bit - 1);
    MI_CHECK_EQ(_mi_bits_popcount64(bit | below), mi_bits_test_count(bit | below));
    MI_CHECK_EQ(_mi_rotl64(1, i), bit);
    MI_CHECK_EQ(_mi_rotl64(bit, (64 - i) % 64), 1);
    MI_CHECK(_mi_is_power_of_two((size_t)bit));
    MI_CHECK(i == 0 || !_mi_is_power_of_two((size_t)(bit | 1)));
  }
  MI_CHECK(_mi_bits_mask64(64) == UINT64_MAX && _mi_bits_mask64(65) == UINT64_MAX);
  MI_CHECK_EQ(_mi_bits_popcount64(0), 0);
  MI_CHECK_EQ(_mi_bits_popcount64(UINT64_MAX), 64);
  MI_CHECK(!_mi_is_power_of_two(0) && !_mi_is_power_of_two(SIZE_MAX));
}

MI_TEST(bits_in_bytes) {
  uint64_t seed = 3;
  for (int i = 0; i < 10000; i++) {
    const uint64_t x = i < 64 ? UINT64_C(1) << i : i == 64 ? UINT64_MAX
                                                           : mi_test_random(&seed) & mi_test_random(&seed);
    const uint64_t bytes = _mi_bits_count_in_bytes(x);
    uint32_t sum = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) {
      MI_CHECK_EQ((bytes >> shift) & 0xff, _mi_bits_popcount64((x >> shift) & 0xff));
      sum += (uint32_t)(x >> shift) & 0xff;
    }
    MI_CHECK_EQ(_mi_bits_sum_bytes(x), sum);
  }
}

MI_TEST(alignment) {
  for (unsigned shift = 0; shift < 40; shift++) {
    const size_t align = (size_t)1 << shift;
    const size_t values[] = {0, 1, align - 1, align, align + 1, 3 * align - 1, 3 * align, SIZE_MAX - align, SIZE_MAX - align + 1};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
      const size_t x = values[i];
      const size_t down = x - x % align;
      const size_t up = x % align == 0 ? x : down + align;
      MI_CHECK_EQ(_mi_align_down(x, align), down);
      MI_CHECK_EQ(_mi_align_up(x, align), up);
      MI_CHECK_EQ(_mi_align_up_ptr(x, align), up);
      MI_CHECK_EQ(_mi_is_aligned((const void*)x, align), x % align == 0);
    }
  }
}

static const struct {
  size_t x;
  size_t d;
  size_t quotient;
} mi_bits_test_divisions[] = {{0, 1, 0}, {1, 1, 1}, {0, 65536, 0}, {1, 65536, 1}, {65536, 65536, 1}, {65537, 65536, 2}, {SIZE_MAX, 1, SIZE_MAX}, {SIZE_MAX, SIZE_MAX, 1}, {SIZE_MAX - 1, SIZE_MAX, 1}, {SIZE_MAX, 2, SIZE_MAX / 2 + 1}};

MI_TEST(divisions) {
  for (size_t i = 0; i < sizeof(mi_bits_test_divisions) / sizeof(mi_bits_test_divisions[0]); i++) {
    MI_CHECK_EQ(_mi_div_up(mi_bits_test_divisions[i].x, mi_bits_test_divisions[i].d), mi_bits_test_divisions[i].quotient);
  }
}

MI_TEST(overflow) {
  size_t r;
  MI_CHECK(!_mi_mul_overflow(0, SIZE_MAX, &r) && r == 0);
  MI_CHECK(!_mi_mul_overflow(SIZE_MAX, 1, &r) && r == SIZE_MAX);
  MI_CHECK(!_mi_mul_overflow(SIZE_MAX / 2, 2, &r) && r == SIZE_MAX - 1);
  MI_CHECK(_mi_mul_overflow(SIZE_MAX / 2 + 1, 2, &r));
  MI_CHECK(_mi_mul_overflow((size_t)1 << (sizeof(size_t) * 4), (size_t)1 << (sizeof(size_t) * 4), &r));
  MI_CHECK(!_mi_add_overflow(SIZE_MAX - 1, 1, &r) && r == SIZE_MAX);
  MI_CHECK(_mi_add_overflow(SIZE_MAX, 1, &r));
  MI_CHECK(_mi_min(1, 2) == 1 && _mi_min(SIZE_MAX, 0) == 0 && _mi_max(1, 2) == 2 && _mi_max(SIZE_MAX, 0) == SIZE_MAX);
}

MI_TEST(mul_fold) {
  MI_CHECK_EQ(_mi_bits_mul_fold(0, UINT64_MAX), 0);
  MI_CHECK_EQ(_mi_bits_mul_fold(7, 6), 42);
  // 2^64 times 2^64 less both and one: halves 0xfff…e and 1.
  MI_CHECK_EQ(_mi_bits_mul_fold(UINT64_MAX, UINT64_MAX), UINT64_MAX);
  MI_CHECK_EQ(_mi_bits_mul_fold(UINT64_C(1) << 63, 2), 1);
  MI_CHECK_EQ(_mi_bits_mul_fold(UINT64_C(0x123456789abcdef1), UINT64_C(0x9e3779b97f4a7c15)), UINT64_C(0x6c31ca77df0d9494));
}

// Each number by itself, as it is said: by one instruction or not.
MI_TEST(scale16) {
  static const uint64_t numbers[] = {0, UINT64_MAX, UINT64_C(0x8000ffff00017fff), UINT64_C(0x0001800012349abc)};
  static const uint32_t bounds[] = {1, 2, 255, 4096, 32761};
  for (size_t n = 0; n < 4; n++) {
    for (size_t b = 0; b < 5; b++) {
      const uint64_t halves[2] = {numbers[n], numbers[3 - n]};
      uint16_t scaled[MI_BITS_LANES];
      _mi_bits_scale16(scaled, halves[0], halves[1], bounds[b]);
      for (unsigned k = 0; k < MI_BITS_LANES; k++) {
        const uint64_t number = halves[k / 4] >> (16 * (k % 4)) & 0xffff;
        MI_CHECK_EQ(scaled[k], number * (bounds[b] + k) / 65536);
      }
    }
  }
}

MI_TEST_MAIN()
