// Owns: what a profile is; the numbers of profiles; their one lock.
// May include: base, sys, profile.
// Called by: profile.
// Invariants: all of a profile but what its maker sets up is touched under the lock. A number is given for as long as the profile
// has records, and not again for many others: it ends with the place that the profile has, so that it is found without a search.
#pragma once

#include "src/profile/profile.h"
#include "src/profile/profiler.h"

enum {
  MI_PROFILE_PLACES = 128,  // a power of two
  MI_PROFILE_NUMBERS = (1 << 25) - 2,
};
_Static_assert((uint64_t)(MI_PROFILE_NUMBERS + 1) * MI_PROFILE_PLACES < MI_PROFILE_NONE, "no number is that of none");

// When a profiler is written by itself; all zero: never.
typedef struct mi_profile_intervals_s {
  size_t alloc;     // bytes allocated
  size_t inuse;     // bytes that more are in use than ever before
  int64_t time_ms;  // time
} mi_profile_intervals_t;

struct mi_profiler_s {
  mi_profile_table_t table;
  uint32_t number;  // 0: it has none
  bool samples;
  bool accum;
  bool writes;  // has an interval
  size_t depth;
  size_t rate;
  uint64_t seed;
  // Of a profiler only.
  const char* base;  // of the names of its files
  uint32_t files;    // that it has begun
  mi_profile_intervals_t every;
  uint64_t allocated;  // what the samples stand for, in bytes: all, and those that live
  uint64_t in_use;
  uint64_t alloc_due;
  uint64_t inuse_due;
  int64_t time_due;
};

// The lock. Whether this thread may take it: it does not hold it and is in no visitor. Enter returns whether it is to be left: a
// message from under the lock may call a function of the program's, which allocates and frees.
bool _mi_profile_may_enter(void);
bool _mi_profile_enter(void);
void _mi_profile_leave(bool entered);

// Under the lock: the profile with that number; NULL: there is none any more. Whether this is the address of one; false: there
// is no place for it. And the end of its number.
mi_profiler_t* _mi_profile_at(uint32_t number);
bool _mi_profile_is_one(const mi_profiler_t* profiler);
bool _mi_profile_give_number(mi_profiler_t* profiler);
void _mi_profile_take_number(mi_profiler_t* profiler);
void _mi_profile_set_up(mi_profiler_t* profiler, const mi_profile_settings_t* settings);

// The same: a copy of its counts; NULL: no memory.
mi_prof_snapshot_t* _mi_profile_copy(const mi_profiler_t* profiler);

// How many bytes a sample of a request of `size` stands for.
uint64_t _mi_profile_stands_for(size_t rate, size_t size);

// The same, of one with an interval: a sampled block was allocated, freed, resized. Returns whether an interval has ended, which
// begins anew.
bool _mi_profiler_count(mi_profiler_t* profiler, size_t size);
void _mi_profiler_uncount(mi_profiler_t* profiler, size_t size);
void _mi_profiler_recount(mi_profiler_t* profiler, size_t before, size_t size);
