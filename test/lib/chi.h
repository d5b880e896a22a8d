// Owns: a test of whether counts are uniform, whose false alarms are bounded.
// May include: nothing.
// Called by: tests of what is random.
// Invariants: a false alarm has a chance of at most e^-25, 1.4e-11, for each statistic (Laurent and Massart: with k degrees of
// freedom, k + 2 sqrt(kx) + 2x is exceeded by a chance of at most e^-x). That is of the distribution which the statistic has in
// the limit: expect some 40 in each cell, or more.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MI_TEST_CHI_EXPONENT 25.0

static inline double mi_test_chi_root(double x) {
  double root = x > 1 ? x : 1;
  for (int i = 0; i < 60; i++) root = (root + x / root) / 2;
  return root;
}

// What a chi-square statistic with that many cells stays below.
static inline double mi_test_chi_bound(size_t cells) {
  const double freedom = (double)(cells - 1);
  return freedom + 2 * mi_test_chi_root(freedom * MI_TEST_CHI_EXPONENT) + 2 * MI_TEST_CHI_EXPONENT;
}

// The statistic of counts that are all expected to be the same.
static inline double mi_test_chi(const uint32_t* counts, size_t cells) {
  double total = 0, chi = 0;
  for (size_t i = 0; i < cells; i++) total += counts[i];
  const double expected = total / (double)cells;
  for (size_t i = 0; i < cells; i++) chi += (counts[i] - expected) * (counts[i] - expected) / expected;
  return chi;
}
