// Owns: the counts of the process: how much of what there is, was at most, and was in all.
// May include: base, prim, sys/log.h.
// Called by: everyone above prim.
// Invariants: what is read is never negative and no current value exceeds its peak; counting is relaxed and orders nothing.
#pragma once

#include "mimalloc.h"
#include "src/base/atomic.h"

// X(field, unit, label): what goes up and down.
#define MI_STATS_COUNTS(X)                   \
  X(reserved, BYTES, "reserved")             \
  X(committed, BYTES, "committed")           \
  X(page_committed, BYTES, "page committed") \
  X(malloc_huge, BYTES, "huge blocks")       \
  X(pages, NUMBER, "pages")                  \
  X(pages_abandoned, NUMBER, "abandoned")    \
  X(threads, NUMBER, "threads")              \
  X(heaps, NUMBER, "heaps")                  \
  X(theaps, NUMBER, "theaps")

// X(field, unit, label): what only goes up.
#define MI_STATS_COUNTERS(X)                              \
  X(reset, BYTES, "reset")                                \
  X(purged, BYTES, "purged")                              \
  X(mmap_calls, NUMBER, "mmap calls")                     \
  X(commit_calls, NUMBER, "commit calls")                 \
  X(reset_calls, NUMBER, "reset calls")                   \
  X(purge_calls, NUMBER, "purge calls")                   \
  X(guards_skipped, NUMBER, "guards skipped")             \
  X(arena_count, NUMBER, "arenas")                        \
  X(arena_rollback_count, NUMBER, "arena rollbacks")      \
  X(arena_purges, NUMBER, "arena purges")                 \
  X(malloc_huge_count, NUMBER, "huge allocations")        \
  X(pages_extended, NUMBER, "pages extended")             \
  X(pages_retire, NUMBER, "pages retired")                \
  X(pages_reclaim_on_alloc, NUMBER, "reclaimed on alloc") \
  X(pages_reclaim_on_free, NUMBER, "reclaimed on free")

typedef struct mi_stat_s {
  _Atomic(int64_t) total;  // of all increases
  _Atomic(int64_t) peak;
  _Atomic(int64_t) current;
} mi_stat_t;

typedef _Atomic(int64_t) mi_counter_t;

typedef struct mi_stats_core_s {
#define MI_STATS_FIELD(field, unit, label) mi_stat_t field;
  MI_STATS_COUNTS(MI_STATS_FIELD)
#undef MI_STATS_FIELD
#define MI_STATS_FIELD(field, unit, label) mi_counter_t field;
  MI_STATS_COUNTERS(MI_STATS_FIELD)
#undef MI_STATS_FIELD
} mi_stats_core_t;

extern mi_stats_core_t _mi_stats;

// A count as read: 0 <= current <= peak.
typedef struct mi_stat_view_s {
  int64_t total;
  int64_t peak;
  int64_t current;
} mi_stat_view_t;

mi_inline void _mi_stat_increase(mi_stat_t* stat, size_t n) {
  const int64_t current = mi_atomic_add_relaxed(&stat->current, (int64_t)n) + (int64_t)n;
  mi_atomic_add_relaxed(&stat->total, (int64_t)n);
  int64_t peak = mi_atomic_load_relaxed(&stat->peak);
  while (mi_unlikely(peak < current) && !mi_atomic_cas_weak_relaxed(&stat->peak, &peak, current)) {
  }
}

mi_inline void _mi_stat_decrease(mi_stat_t* stat, size_t n) { mi_atomic_sub_relaxed(&stat->current, (int64_t)n); }

mi_inline void _mi_counter_add(mi_counter_t* counter, size_t n) { mi_atomic_add_relaxed(counter, (int64_t)n); }

mi_stat_view_t _mi_stat_view(const mi_stat_t* stat);
int64_t _mi_counter_view(const mi_counter_t* counter);

// Starts counting anew: totals and counters at 0, peaks at what is current.
void _mi_stats_reset(void);

// Milliseconds since the first call of it; _mi_os_init makes one.
int64_t _mi_stats_elapsed_ms(void);

// The table, and a line about the process. NULL: to the registered output.
void _mi_stats_print(mi_output_fun* out, void* arg);

// The line about the process only.
void _mi_stats_print_process(mi_output_fun* out, void* arg);
