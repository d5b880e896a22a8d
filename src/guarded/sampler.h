// Owns: which allocation is sampled next: seeded streams of numbers, and the gaps between samples drawn from them.
// May include: base.
// Called by: heap, profile.
// Invariants: pure: no global, no clock, no call of the system; the same seed and stream give the same numbers everywhere.
#pragma once

#include "src/base/bits.h"

typedef struct mi_sampler_s {
  uint64_t state;
} mi_sampler_t;

// The longest gap, which stands for never. Small enough for a few to be added.
#define MI_SAMPLER_NEVER (UINT32_MAX - 8)

// Begins the stream of that number of a seed. Streams of one seed have nothing in common that shows.
void _mi_sampler_begin(mi_sampler_t* sampler, uint64_t seed, uint64_t stream);

// The next 64 bits.
uint64_t _mi_sampler_next(mi_sampler_t* sampler);

// Minus the natural logarithm of a random number between 0 and 1, as a multiple of 1 / MI_SAMPLER_ONE: exponentially
// distributed with mean 1.
enum { MI_SAMPLER_ONE = 1 << 16 };
uint64_t _mi_sampler_exponential(mi_sampler_t* sampler);

// How many allocations go before the next sampled one when one in `rate` is sampled: every allocation has the same
// chance, whatever came before. So nobody can foresee the next one, and a countdown may be begun or dropped at any moment.
// Never, for a rate of 0.
uint32_t _mi_sampler_gap(mi_sampler_t* sampler, uint32_t rate);
