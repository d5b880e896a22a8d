// Owns: the counts of the process, and what may be read of counts.
// May include: base, prim.
// Called by: through stats.h.
// Invariants: a field is filled in from the list that it is counted by.
#include "src/sys/stats.h"

#include "src/prim/prim.h"

mi_stats_core_t _mi_stats;

mi_stat_view_t _mi_stat_view(const mi_stat_t* stat) {
  mi_stat_view_t view;
  // Other threads count on meanwhile, and what one takes off may be seen before what another has added.
  view.current = mi_atomic_load_relaxed(&stat->current);
  view.current = view.current < 0 ? 0 : view.current;
  view.peak = mi_atomic_load_relaxed(&stat->peak);
  view.peak = view.peak < view.current ? view.current : view.peak;
  view.total = mi_atomic_load_relaxed(&stat->total);
  view.total = view.total < view.peak ? view.peak : view.total;
  return view;
}

int64_t _mi_counter_view(const mi_counter_t* counter) { return mi_atomic_load_relaxed(counter); }

mi_stat_view_t _mi_tally_view(mi_tally_t* tally, int64_t current, int64_t total) {
  mi_stat_view_t view;
  view.current = current < 0 ? 0 : current;
  _mi_stat_raise(&tally->peak, view.current);
  view.peak = mi_atomic_load_relaxed(&tally->peak);
  _mi_stat_raise(&tally->shown, total < view.peak ? view.peak : total);
  view.total = mi_atomic_load_relaxed(&tally->shown);
  return view;
}

void _mi_stat_reset(mi_stat_t* stat) {
  const int64_t current = mi_atomic_load_relaxed(&stat->current);
  mi_atomic_store_relaxed(&stat->total, current);
  mi_atomic_store_relaxed(&stat->peak, current);
}

void _mi_stats_reset(void) {
#define MI_STATS_ROW(field, unit, label) _mi_stat_reset(&_mi_stats.field);
  MI_STATS_COUNTS(MI_STATS_ROW)
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) mi_atomic_store_relaxed(&_mi_stats.field, 0);
  MI_STATS_COUNTERS(MI_STATS_ROW)
#undef MI_STATS_ROW
  mi_atomic_store_relaxed(&_mi_stats.guards_skipped, 0);
}

void _mi_stats_fill(mi_stats_t* stats) {
#define MI_STATS_ROW(field, unit, label) stats->field = _mi_stat_view(&_mi_stats.field);
  MI_STATS_COUNTS(MI_STATS_ROW)
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) stats->field.total = _mi_counter_view(&_mi_stats.field);
  MI_STATS_COUNTERS(MI_STATS_ROW)
#undef MI_STATS_ROW
}

static mi_chunkbin_t mi_kind_of(unsigned stat_bin) {
  if (stat_bin == MI_STAT_BIN_HUGE || stat_bin == MI_STAT_BIN_ZERO_SIZE) {
    return stat_bin == MI_STAT_BIN_HUGE ? MI_CBIN_HUGE : MI_CBIN_OTHER;
  }
  const size_t size = _mi_stat_bin_size(stat_bin);
  return size <= MI_SMALL_BLOCK_MAX ? MI_CBIN_SMALL : size <= MI_MEDIUM_BLOCK_MAX ? MI_CBIN_MEDIUM
                                                                                  : MI_CBIN_LARGE;
}

// A kind's pages are those of its bins. At once there were at least as many as of any bin, and as there are.
static void mi_fill_kinds(mi_stats_t* stats, _Atomic(int64_t) peaks[MI_CBIN_COUNT]) {
  for (unsigned i = 0; i < MI_STAT_BINS; i++) {
    mi_stat_count_t* const kind = &stats->chunk_bins[mi_kind_of(i)];
    kind->current += stats->page_bins[i].current;
    kind->total += stats->page_bins[i].total;
    kind->peak = kind->peak < stats->page_bins[i].peak ? stats->page_bins[i].peak : kind->peak;
  }
  for (unsigned i = 0; i < MI_CBIN_COUNT; i++) {
    mi_stat_count_t* const kind = &stats->chunk_bins[i];
    _mi_stat_raise(&peaks[i], kind->peak < kind->current ? kind->current : kind->peak);
    kind->peak = mi_atomic_load_relaxed(&peaks[i]);
    kind->total = kind->total < kind->peak ? kind->peak : kind->total;
  }
}

void _mi_stats_fill_counts(mi_stats_t* stats, mi_heap_counts_t* counts) {
#define MI_STATS_ROW(field, unit, label) stats->field = _mi_stat_view(&counts->field);
  MI_STATS_HEAP_COUNTS(MI_STATS_ROW)
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) stats->field.total = _mi_counter_view(&counts->field);
  MI_STATS_HEAP_COUNTERS(MI_STATS_ROW)
#undef MI_STATS_ROW
  stats->malloc_huge = _mi_stat_view(&counts->malloc_huge);
  stats->malloc_huge_count.total = _mi_counter_view(&counts->malloc_huge_count);
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    stats->page_bins[i] = _mi_stat_view(&counts->page_bins[i]);
  }
  mi_fill_kinds(stats, counts->kind_peaks);
}

mi_early int64_t _mi_stats_elapsed_ms(void) {
  static _Atomic(int64_t) mi_stats_start_ms;
  const int64_t now = _mi_prim_clock_ms();
  int64_t start = 0;
  if (mi_atomic_cas_strong_acq_rel(&mi_stats_start_ms, &start, now)) {
    return 0;
  }
  return now > start ? now - start : 0;
}

mi_stats_process_t _mi_stats_process(void) {
  mi_prim_process_info_t info;
  _mi_prim_process_info(&info);
  return (mi_stats_process_t){.elapsed_ms = _mi_stats_elapsed_ms(),
                              .user_ms = info.user_ms,
                              .system_ms = info.system_ms,
                              .page_faults = (int64_t)info.page_faults,
                              .rss = (int64_t)info.current_rss,
                              .rss_peak = (int64_t)info.peak_rss};
}
