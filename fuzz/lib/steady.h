// Owns: making runs repeatable: the random numbers and the clock of the allocator come from the input.
// May include: the C library.
// Called by: targets that are linked with the allocator; the linker's --wrap puts these in the place of sys/random's and prim's.
// Invariants: between two calls of mi_fuzz_steady_begin the numbers depend on the seed and on how many were drawn.
#pragma once

#include <stdint.h>

// Starts a run: numbers from this seed; the clock goes on from where it was.
void mi_fuzz_steady_begin(uint64_t seed);

// Lets time pass.
void mi_fuzz_steady_pass_ms(uint64_t ms);
