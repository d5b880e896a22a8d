// Owns: a copy of what a profile counted, in memory of its own.
// May include: base, sys, profile.
// Called by: profile.
// Invariants: never changes once it is made; memory comes from the system.
#pragma once

#include "src/profile/profile.h"

struct mi_prof_snapshot_s {
  mi_os_block_t os;
  size_t rate;
  size_t dropped;
  size_t overflows;
  mi_profile_counts_t sum;
  size_t count;
  size_t frames;  // of all stacks
  mi_prof_sample_info_t samples[];
};

// Memory of the system for a while, zeroed; NULL when there is none. At the start of it stands what it takes to give it back.
void* _mi_profile_scratch(size_t size);
void _mi_profile_scratch_free(void* p);
