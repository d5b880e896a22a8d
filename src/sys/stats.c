// Owns: the counts, and how they are shown.
// May include: base, prim, sys/log.h, sys/os.h.
// Called by: through stats.h.
// Invariants: a table row and a field are made from the same list.
#include "src/sys/stats.h"

#include "src/prim/prim.h"
#include "src/sys/log.h"

mi_stats_core_t _mi_stats;

typedef enum mi_stat_unit_e { MI_STAT_BYTES,
                              MI_STAT_NUMBER } mi_stat_unit_t;

mi_stat_view_t _mi_stat_view(const mi_stat_t* stat) {
  mi_stat_view_t view;
  // Other threads count on meanwhile, and what one takes off may be seen before what another has added.
  view.current = mi_atomic_load_relaxed(&stat->current);
  view.current = view.current < 0 ? 0 : view.current;
  view.peak = mi_atomic_load_relaxed(&stat->peak);
  view.peak = view.peak < view.current ? view.current : view.peak;
  view.total = mi_atomic_load_relaxed(&stat->total);
  return view;
}

int64_t _mi_counter_view(const mi_counter_t* counter) { return mi_atomic_load_relaxed(counter); }

static void mi_stat_reset(mi_stat_t* stat) {
  mi_atomic_store_relaxed(&stat->total, 0);
  mi_atomic_store_relaxed(&stat->peak, mi_atomic_load_relaxed(&stat->current));
}

void _mi_stats_reset(void) {
#define MI_STATS_ROW(field, unit, label) mi_stat_reset(&_mi_stats.field);
  MI_STATS_COUNTS(MI_STATS_ROW)
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) mi_atomic_store_relaxed(&_mi_stats.field, 0);
  MI_STATS_COUNTERS(MI_STATS_ROW)
#undef MI_STATS_ROW
}

int64_t _mi_stats_elapsed_ms(void) {
  static _Atomic(int64_t) mi_stats_start_ms;
  const int64_t now = _mi_prim_clock_ms();
  int64_t start = 0;
  if (mi_atomic_cas_strong_acq_rel(&mi_stats_start_ms, &start, now)) {
    return 0;
  }
  return now > start ? now - start : 0;
}

// Shown in KiB, rounded up, so that a table has one unit a row and a byte too much is not lost.
static long long mi_stat_shown(int64_t n, mi_stat_unit_t unit) {
  return unit == MI_STAT_BYTES ? (n + 1023) / 1024 : n;
}

static void mi_stat_print(mi_output_fun* out, void* arg, const mi_stat_t* stat, mi_stat_unit_t unit,
                          const char* label) {
  const mi_stat_view_t view = _mi_stat_view(stat);
  _mi_log_print_to(out, arg, "%20s : %14lld %14lld %14lld %s\n", label, mi_stat_shown(view.peak, unit),
                   mi_stat_shown(view.total, unit), mi_stat_shown(view.current, unit),
                   unit == MI_STAT_BYTES ? "KiB" : "-");
}

static void mi_counter_print(mi_output_fun* out, void* arg, const mi_counter_t* counter, mi_stat_unit_t unit,
                             const char* label) {
  _mi_log_print_to(out, arg, "%20s : %14s %14lld %14s %s\n", label, "", mi_stat_shown(_mi_counter_view(counter), unit),
                   "", unit == MI_STAT_BYTES ? "KiB" : "-");
}

void _mi_stats_print(mi_output_fun* out, void* arg) {
  _mi_log_print_to(out, arg, "%20s   %14s %14s %14s %s\n", "", "peak", "total", "current", "unit");
#define MI_STATS_ROW(field, unit, label) mi_stat_print(out, arg, &_mi_stats.field, MI_STAT_##unit, label);
  MI_STATS_COUNTS(MI_STATS_ROW)
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) mi_counter_print(out, arg, &_mi_stats.field, MI_STAT_##unit, label);
  MI_STATS_COUNTERS(MI_STATS_ROW)
#undef MI_STATS_ROW
  _mi_stats_print_process(out, arg);
}

void _mi_stats_print_process(mi_output_fun* out, void* arg) {
  mi_prim_process_info_t info;
  _mi_prim_process_info(&info);
  const long long elapsed = _mi_stats_elapsed_ms();
  _mi_log_print_to(out, arg,
                   "%20s : elapsed %lld.%03lld s, user %lld.%03lld s, system %lld.%03lld s, resident %zu KiB, "
                   "peak %zu KiB, page faults %zu\n",
                   "process", elapsed / 1000, elapsed % 1000, (long long)info.user_ms / 1000,
                   (long long)info.user_ms % 1000, (long long)info.system_ms / 1000, (long long)info.system_ms % 1000,
                   info.current_rss / 1024, info.peak_rss / 1024, info.page_faults);
}
