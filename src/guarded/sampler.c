// Owns: the numbers and the gaps.
// May include: base.
// Called by: through sampler.h.
// Invariants: whole numbers only, so that every compiler and machine draws the same.
#include "src/guarded/sampler.h"

// A permutation of 64 bits in which each depends on all. Wraps, as the next two: numbers are of 64 bits.
static mi_wraps uint64_t mi_sampler_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

// 2^64 over the golden ratio: the multiples of it are spread evenly.
#define MI_SAMPLER_STEP UINT64_C(0x9e3779b97f4a7c15)

mi_wraps void _mi_sampler_begin(mi_sampler_t* sampler, uint64_t seed, uint64_t stream) {
  sampler->state = mi_sampler_mix(seed + MI_SAMPLER_STEP) ^ mi_sampler_mix(~stream * MI_SAMPLER_STEP);
}

mi_wraps uint64_t _mi_sampler_next(mi_sampler_t* sampler) {
  sampler->state += MI_SAMPLER_STEP;
  return mi_sampler_mix(sampler->state);
}

enum { MI_LOG_BITS = 16 };
_Static_assert((1 << MI_LOG_BITS) == (int)MI_SAMPLER_ONE, "logarithms have so many bits behind the point");

// Minus the logarithm to base 2 of x / 2^64.
static uint64_t mi_minus_log2(uint64_t x) {
  const unsigned whole = _mi_bits_log2_64(x);
  // Of the mantissa, 1 … 2 with 31 bits behind the point: each squaring gives the next bit.
  uint64_t mantissa = (x << (63 - whole)) >> 32;
  uint64_t log = whole;
  for (int i = 0; i < MI_LOG_BITS; i++) {
    mantissa = (mantissa * mantissa) >> 31;
    const unsigned bit = (unsigned)(mantissa >> 32);
    mantissa >>= bit;
    log = (log << 1) | bit;
  }
  return (UINT64_C(64) << MI_LOG_BITS) - log;
}

uint64_t _mi_sampler_exponential(mi_sampler_t* sampler) {
  // 2^16 times the natural logarithm of 2. Half a step is added for what the logarithm was cut by.
  return (mi_minus_log2(_mi_sampler_next(sampler) | 1) * 45426 + 32768) >> MI_LOG_BITS;
}

uint32_t _mi_sampler_gap(mi_sampler_t* sampler, uint32_t rate) {
  enum { MI_SAMPLER_EXACT_MAX = 1 << 16 };
  if (rate <= 1) {
    return rate == 0 ? MI_SAMPLER_NEVER : 0;
  }
  // A gap of at least k has probability (1 - 1/rate)^k. That is what is left of an exponential number when it is cut, if its
  // mean is -1 / ln(1 - 1/rate), which is rate - 1/2 - 1/(12 rate) - 1/(24 rate²) - …
  const uint64_t log = _mi_sampler_exponential(sampler);
  uint64_t gap = (log * (2 * (uint64_t)rate - 1)) >> (MI_LOG_BITS + 1);
  if (rate <= MI_SAMPLER_EXACT_MAX) {
    const uint64_t less = (MI_SAMPLER_ONE / 12) / rate + (MI_SAMPLER_ONE / 24) / rate / rate;
    gap = (log * (((2 * (uint64_t)rate - 1) << (MI_LOG_BITS - 1)) - less)) >> (2 * MI_LOG_BITS);
  }
  return gap < MI_SAMPLER_NEVER ? (uint32_t)gap : MI_SAMPLER_NEVER;
}
