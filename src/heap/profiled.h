// Owns: what heaps do for the profile: samples of their blocks, their figures, and the dump at the end of the process.
// May include: base, sys, profile, heap.
// Called by: heap, alloc, api.
// Invariants: only a block that is a page by itself is ever sampled, so that its page names its record, and the fast path of
// free never meets one.
#pragma once

#include "src/profile/encode.h"

// What all heaps hold now.
void _mi_profiled_figures(mi_profile_figures_t* figures);

// Writes the profile where the environment or the program said so.
void _mi_profiled_process_done(void);
