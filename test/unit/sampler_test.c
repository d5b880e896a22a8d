// Owns: tests of the gaps between samples.
// May include: test/lib, guarded.
// Called by: the build, as a test.
// Invariants: seeds are fixed, so every run checks the same numbers.
#include "src/guarded/sampler.h"

#include "test/lib/test.h"

MI_TEST(a_seed_and_a_stream_give_the_same_numbers) {
  mi_sampler_t a;
  mi_sampler_t b;
  mi_sampler_t other_stream;
  mi_sampler_t other_seed;
  _mi_sampler_begin(&a, 7, 3);
  _mi_sampler_begin(&b, 7, 3);
  _mi_sampler_begin(&other_stream, 7, 4);
  _mi_sampler_begin(&other_seed, 8, 3);
  unsigned same = 0;
  for (int i = 0; i < 1000; i++) {
    const uint64_t number = _mi_sampler_next(&a);
    MI_CHECK(number == _mi_sampler_next(&b));
    same += number == _mi_sampler_next(&other_stream);
    same += number == _mi_sampler_next(&other_seed);
  }
  MI_CHECK_EQ(same, 0);
}

MI_TEST(the_first_numbers_are_what_they_were) {
  // So that a seed found with one version repeats with the next.
  mi_sampler_t sampler;
  _mi_sampler_begin(&sampler, 1, 2);
  static const uint32_t gaps[] = {8274, 308, 12235, 14063};
  for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
    MI_CHECK_EQ(_mi_sampler_gap(&sampler, 4000), gaps[i]);
  }
}

MI_TEST(gaps_have_the_mean_and_the_share_of_zeroes_that_the_rate_says) {
  enum { ROUNDS = 200000 };
  static const uint32_t rates[] = {2, 3, 10, 100, 4000, 1 << 17};
  for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
    mi_sampler_t sampler;
    _mi_sampler_begin(&sampler, 11, r);
    double sum = 0;
    double zeroes = 0;
    for (int i = 0; i < ROUNDS; i++) {
      const uint32_t gap = _mi_sampler_gap(&sampler, rates[r]);
      sum += gap;
      zeroes += gap == 0;
    }
    const double mean = sum / ROUNDS + 1;
    // The standard error of the mean is less than 1/447 of it.
    MI_CHECK(mean > 0.99 * rates[r] && mean < 1.01 * rates[r]);
    if (rates[r] <= 100) {
      MI_CHECK(zeroes / ROUNDS > 0.92 / rates[r] && zeroes / ROUNDS < 1.08 / rates[r]);
    }
  }
}

MI_TEST(the_ends_of_the_range) {
  mi_sampler_t sampler;
  _mi_sampler_begin(&sampler, 0, 0);
  MI_CHECK_EQ(_mi_sampler_gap(&sampler, 0), MI_SAMPLER_NEVER);
  MI_CHECK_EQ(_mi_sampler_gap(&sampler, 1), 0);
  for (int i = 0; i < 1000; i++) {
    MI_CHECK(_mi_sampler_gap(&sampler, UINT32_MAX) <= MI_SAMPLER_NEVER);
  }
}

MI_TEST_MAIN()
