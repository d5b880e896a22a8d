// Owns: the counts: how much of what there is, was at most, and was in all, of the process and of each heap.
// May include: base, prim, sys/log.h; the public header for the struct that a program reads.
// Called by: everyone above prim.
// Invariants: what is read is never negative and no current value exceeds its peak, no peak its total; counting is relaxed and
// orders nothing but where said.
#pragma once

#include "mimalloc-stats.h"
#include "src/base/atomic.h"
#include "src/base/sizeclass.h"

// X(field, unit, label): of each heap, and of the process: what goes up and down.
#define MI_STATS_HEAP_COUNTS(X)           \
  X(pages, NUMBER, "pages")               \
  X(page_committed, BYTES, "in pages")    \
  X(pages_abandoned, NUMBER, "abandoned") \
  X(theaps, NUMBER, "theaps")

// X(field, unit, label): likewise what only goes up.
#define MI_STATS_HEAP_COUNTERS(X)                         \
  X(pages_extended, NUMBER, "pages extended")             \
  X(pages_retire, NUMBER, "pages retired")                \
  X(page_searches, NUMBER, "pages searched")              \
  X(page_searches_count, NUMBER, "page searches")         \
  X(pages_reclaim_on_alloc, NUMBER, "reclaimed on alloc") \
  X(pages_reclaim_on_free, NUMBER, "reclaimed on free")   \
  X(pages_reabandon_full, NUMBER, "full pages let go")    \
  X(malloc_guarded_count, NUMBER, "guarded")

// X(field, unit, label): of the process only, up and down.
#define MI_STATS_COUNTS(X)         \
  X(reserved, BYTES, "reserved")   \
  X(committed, BYTES, "committed") \
  X(threads, NUMBER, "threads")    \
  X(heaps, NUMBER, "heaps")

// X(field, unit, label): of the process only, up.
#define MI_STATS_COUNTERS(X)                         \
  X(reset, BYTES, "reset")                           \
  X(purged, BYTES, "purged")                         \
  X(mmap_calls, NUMBER, "mmap calls")                \
  X(commit_calls, NUMBER, "commit calls")            \
  X(reset_calls, NUMBER, "reset calls")              \
  X(purge_calls, NUMBER, "purge calls")              \
  X(arena_count, NUMBER, "arenas")                   \
  X(arena_rollback_count, NUMBER, "arena rollbacks") \
  X(arena_purges, NUMBER, "arena purges")

// The bins of the public struct: 0 for blocks of no bytes, 1 … 40 for a size class each, then two classes each, 73 for
// blocks by themselves.
enum {
  MI_STAT_BINS = MI_BIN_HUGE + 1,
  MI_STAT_BIN_ZERO_SIZE = 0,
  MI_STAT_BIN_HUGE = MI_BIN_HUGE,
  MI_STAT_BINS_ALONE = 40,
};

_Static_assert(MI_STAT_BINS_ALONE + (MI_BIN_LAST - MI_STAT_BINS_ALONE) / 2 == MI_STAT_BIN_HUGE - 1, "every class has a bin");

// The bin of a page's class.
mi_inline unsigned _mi_stat_bin(unsigned bin) {
  if (bin <= MI_STAT_BINS_ALONE) {
    return bin;
  }
  return bin <= MI_BIN_LAST ? (bin + MI_STAT_BINS_ALONE + 1) / 2 : bin == MI_BIN_SINGLE ? MI_STAT_BIN_HUGE
                                                                                        : MI_STAT_BIN_ZERO_SIZE;
}

// The largest blocks that a bin is of; 0 for those that are of no class.
mi_inline size_t _mi_stat_bin_size(size_t stat_bin) {
  if (stat_bin == 0 || stat_bin >= MI_STAT_BIN_HUGE) {
    return 0;
  }
  const unsigned bin = (unsigned)stat_bin;
  return _mi_bin_block_size(bin <= MI_STAT_BINS_ALONE ? bin : 2 * bin - MI_STAT_BINS_ALONE);
}

typedef struct mi_stat_s {
  _Atomic(int64_t) total;  // of all increases
  _Atomic(int64_t) peak;
  _Atomic(int64_t) current;
} mi_stat_t;

typedef _Atomic(int64_t) mi_counter_t;

// Of what pages know better at any moment: `total` and `current` are what they have handed in so far.
typedef struct mi_tally_s {
  _Atomic(int64_t) total;
  _Atomic(int64_t) peak;
  _Atomic(int64_t) current;
  _Atomic(int64_t) shown;  // the highest total that was read: no later one is lower
} mi_tally_t;

#define MI_STATS_FIELD(field, unit, label) mi_stat_t field;
#define MI_STATS_COUNTER_FIELD(field, unit, label) mi_counter_t field;
#define MI_STATS_HEAP_FIELDS                     \
  MI_STATS_HEAP_COUNTS(MI_STATS_FIELD)           \
  MI_STATS_HEAP_COUNTERS(MI_STATS_COUNTER_FIELD) \
  mi_stat_t malloc_huge; /* bytes */             \
  mi_counter_t malloc_huge_count;                \
  mi_tally_t malloc_normal;        /* bytes */   \
  mi_tally_t malloc_requested;     /* bytes */   \
  mi_tally_t blocks[MI_STAT_BINS]; /* numbers */ \
  mi_stat_t page_bins[MI_STAT_BINS];             \
  _Atomic(int64_t) kind_peaks[MI_CBIN_COUNT]; /* as seen when read; the rest is in page_bins */

// What is counted of a heap.
typedef struct mi_heap_counts_s {
  MI_STATS_HEAP_FIELDS
} mi_heap_counts_t;

// And of the process: the same of all its heaps, and more.
typedef struct mi_stats_core_s {
  union {
    mi_heap_counts_t all_heaps;
    struct {
      MI_STATS_HEAP_FIELDS
    };
  };
  MI_STATS_COUNTS(MI_STATS_FIELD)
  MI_STATS_COUNTERS(MI_STATS_COUNTER_FIELD)
  mi_counter_t guards_skipped;  // reservations without guards; not in the public struct
} mi_stats_core_t;

#undef MI_STATS_FIELD
#undef MI_STATS_COUNTER_FIELD

extern mi_stats_core_t _mi_stats;

// A count as read: 0 <= current <= peak <= total.
typedef mi_stat_count_t mi_stat_view_t;

mi_inline void _mi_stat_raise(_Atomic(int64_t)* peak, int64_t current) {
  int64_t before = mi_atomic_load_relaxed(peak);
  while (mi_unlikely(before < current) && !mi_atomic_cas_weak_relaxed(peak, &before, current)) {
  }
}

mi_inline void _mi_stat_increase(mi_stat_t* stat, size_t n) {
  const int64_t current = mi_atomic_add_relaxed(&stat->current, (int64_t)n) + (int64_t)n;
  mi_atomic_add_relaxed(&stat->total, (int64_t)n);
  _mi_stat_raise(&stat->peak, current);
}

mi_inline void _mi_stat_decrease(mi_stat_t* stat, size_t n) { mi_atomic_sub_relaxed(&stat->current, (int64_t)n); }

mi_inline void _mi_counter_add(mi_counter_t* counter, size_t n) { mi_atomic_add_relaxed(counter, (int64_t)n); }

// Notes a change of what there is, which was at most `high` more than the tally says in between.
mi_inline void _mi_tally_note(mi_tally_t* tally, int64_t delta, int64_t high) {
  const int64_t before = mi_atomic_add_relaxed(&tally->current, delta);
  _mi_stat_raise(&tally->peak, before + high);
}

mi_stat_view_t _mi_stat_view(const mi_stat_t* stat);
int64_t _mi_counter_view(const mi_counter_t* counter);

// The same of a tally whose pages say that there are so many now and were so many in all.
mi_stat_view_t _mi_tally_view(mi_tally_t* tally, int64_t current, int64_t total);

// Starts a count anew: total and peak are what there is.
void _mi_stat_reset(mi_stat_t* stat);

// The same for the counts that are the process's alone.
void _mi_stats_reset(void);

// Milliseconds since the first call of it; _mi_os_init makes one.
int64_t _mi_stats_elapsed_ms(void);

// Fills in what is the process's alone.
void _mi_stats_fill(mi_stats_t* stats);

// What was counted of heaps, but for blocks.
void _mi_stats_fill_counts(mi_stats_t* stats, mi_heap_counts_t* counts);

// The table: of `what`, with the figures of arenas and the process if `whole`. NULL: to the registered output.
void _mi_stats_print(const mi_stats_t* stats, const char* what, bool whole, mi_output_fun* out, void* arg);

// The line about the process only.
void _mi_stats_print_process(mi_output_fun* out, void* arg);

// Figures of the system about the process.
typedef struct mi_stats_process_s {
  int64_t elapsed_ms;
  int64_t user_ms;
  int64_t system_ms;
  int64_t page_faults;
  int64_t rss;
  int64_t rss_peak;
} mi_stats_process_t;

mi_stats_process_t _mi_stats_process(void);

// Writes statistics as JSON and returns the length, as _mi_fmt.
size_t _mi_stats_json(const mi_stats_t* stats, const mi_stats_process_t* process, char* buf, size_t size);
