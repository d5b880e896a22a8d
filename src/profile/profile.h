// Owns: profiles: when a thread takes its next sample, what is recorded of it, and the answers to who asks.
// May include: base, prim, sys, the public header.
// Called by: heap, alloc, api.
// Invariants: one lock, a leaf, held by no one who calls a function of the program's; a sample that cannot be recorded is
// dropped, and nothing else changes. The name of a record means nothing once its profile has ended.
#pragma once

#include "mimalloc/profile.h"
#include "src/base/atomic.h"
#include "src/profile/table.h"

enum {
  MI_PROFILE_RATE_DEFAULT = 512 * 1024,
};

// In place of a number: no profile, not even that of the whole process.
#define MI_PROFILE_NONE UINT32_MAX

// The record of a sampled block; 0: none. In its upper half the profile it is of.
typedef uint64_t mi_profile_name_t;

// What a theap knows of the profile that it follows.
typedef struct mi_profile_thread_s {
  uint64_t random;
  size_t rate;
  uint32_t number;  // of the profile; 0: it follows none
} mi_profile_thread_t;

// Profiles that have a number: that of the whole process, while it runs, and all profilers.
extern _Atomic(uint32_t) _mi_profile_count;

// Relaxed: who allocates when a profile starts may miss it.
mi_inline bool _mi_profile_is_on(void) { return mi_unlikely(mi_atomic_load_relaxed(&_mi_profile_count) != 0); }

// The choice of samples. Each byte that is asked for is as likely to be sampled, with the mean distance of the profile; whoever
// asks for twice the distance less a byte, or more, is sampled for certain. So countdowns can be begun and dropped at any time.

// Has the thread follow the profiler with the number `wanted` if that samples, else the profile of the whole process if that
// runs, else none; with numbers from the profile's seed and the thread's sequence number. Returns whether that is a change.
bool _mi_profile_follow(mi_profile_thread_t* thread, uint32_t wanted, uint64_t sequence);

// How many blocks of `size` bytes go before the next one that a sample falls on.
uint32_t _mi_profile_gap(mi_profile_thread_t* thread, size_t size);

// A sample has fallen on a block of `size` bytes for a request: whether it is taken, so that it is what is asked for that
// counts, and not what is got.
bool _mi_profile_takes(mi_profile_thread_t* thread, size_t request, size_t size);

// Whether a sample falls on a request by itself.
bool _mi_profile_hits(mi_profile_thread_t* thread, size_t request);

// Records a block of `size` bytes in the profile, allocated by the function with the frame `frame` for whoever called the library.
// *is_due: one of its intervals has ended, and the caller is to write it when it holds no lock (_mi_profiler_write).
mi_cold mi_profile_name_t _mi_profile_note_alloc(uint32_t number, size_t size, const void* frame, bool* is_due);

// The block of a record is gone, or has another size.
mi_cold void _mi_profile_note_free(mi_profile_name_t name);
mi_cold void _mi_profile_note_resize(mi_profile_name_t name, size_t size);

// What to profile with; all is set.
typedef struct mi_profile_settings_s {
  size_t rate;
  size_t budget;
  uint64_t seed;
  bool accum;
  size_t depth;
} mi_profile_settings_t;

// The profile of the whole process. False: it runs, or a visitor calls.
bool _mi_profile_start(const mi_profile_settings_t* settings);
void _mi_profile_stop(void);
void _mi_profile_reset(void);
bool _mi_profile_runs(void);

// Fills in what is not of the heaps.
void _mi_profile_stats(mi_prof_stats_t* stats);

// Whether this thread is in a visitor.
bool _mi_profile_is_visiting(void);

// Calls visitor for each stack of a snapshot, or each module.
bool _mi_profile_visit(const mi_prof_snapshot_t* snapshot, mi_prof_visit_fun* visitor, void* arg);
bool _mi_profile_visit_modules(mi_prof_module_visit_fun* visitor, void* arg);

// A copy of all counts; NULL: it does not run, there is no memory, or this thread is in a visitor.
mi_prof_snapshot_t* _mi_profile_snapshot(void);
void _mi_profile_snapshot_free(mi_prof_snapshot_t* snapshot);

// The lock, for the fork handlers.
void _mi_profile_fork_prepare(void);
void _mi_profile_fork_release(bool in_child);
