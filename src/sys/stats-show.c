// Owns: the statistics as a text for people and as JSON.
// May include: base, sys/json.h, sys/log.h.
// Called by: through stats.h.
// Invariants: the fields of the public struct stand in its order, each once.
#include "src/base/fmt.h"
#include "src/sys/json.h"
#include "src/sys/log.h"
#include "src/sys/stats.h"

// Text

enum { MI_SHOWN_SIZE = 72 };

typedef struct mi_shown_s {
  char text[MI_SHOWN_SIZE];
} mi_shown_t;

// Bytes in the largest unit of which there is at least one, to a tenth.
static mi_shown_t mi_show_bytes(int64_t n) {
  static const char* const units[] = {"B  ", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  int64_t whole = n;
  int64_t rest = 0;
  while (whole >= 1024 && unit < sizeof(units) / sizeof(units[0]) - 1) {
    rest = whole % 1024;
    whole /= 1024;
    unit++;
  }
  mi_shown_t shown;
  if (unit == 0) {
    (void)_mi_fmt(shown.text, sizeof(shown.text), "%lld %s", (long long)whole, units[unit]);
  } else {
    (void)_mi_fmt(shown.text, sizeof(shown.text), "%lld.%lld %s", (long long)whole, (long long)(rest * 10 / 1024), units[unit]);
  }
  return shown;
}

static mi_shown_t mi_show_number(int64_t n) {
  mi_shown_t shown;
  (void)_mi_fmt(shown.text, sizeof(shown.text), "%lld    ", (long long)n);
  return shown;
}

static mi_shown_t mi_show_nothing(void) { return (mi_shown_t){""}; }

typedef enum mi_stat_unit_e { MI_STAT_BYTES,
                              MI_STAT_NUMBER } mi_stat_unit_t;

static mi_shown_t mi_show(int64_t n, mi_stat_unit_t unit) { return unit == MI_STAT_BYTES ? mi_show_bytes(n) : mi_show_number(n); }

typedef struct mi_sink_to_s {
  mi_output_fun* out;
  void* arg;
} mi_sink_to_t;

static void mi_print_row(const mi_sink_to_t* to, const char* label, mi_shown_t peak, mi_shown_t total, mi_shown_t current,
                         mi_shown_t block, mi_shown_t number) {
  _mi_log_print_to(to->out, to->arg, "%20s: %14s %14s %14s %12s %14s\n", label, peak.text, total.text, current.text, block.text,
                   number.text);
}

static void mi_print_count(const mi_sink_to_t* to, const char* label, const mi_stat_count_t* count, mi_stat_unit_t unit) {
  mi_print_row(to, label, mi_show(count->peak, unit), mi_show(count->total, unit), mi_show(count->current, unit),
               mi_show_nothing(), mi_show_nothing());
}

static void mi_print_counter(const mi_sink_to_t* to, const char* label, const mi_stat_counter_t* counter, mi_stat_unit_t unit) {
  mi_print_row(to, label, mi_show_nothing(), mi_show(counter->total, unit), mi_show_nothing(), mi_show_nothing(),
               mi_show_nothing());
}

// How many blocks a bin had: in all and, where calls count, so that it is exact, at most and now.
static mi_shown_t mi_show_counts(const mi_stat_count_t* bin) {
  if (MI_STATS_LEVEL < 2) {
    return mi_show_number(bin->total);
  }
  mi_shown_t shown;
  (void)_mi_fmt(shown.text, sizeof(shown.text), "%10lld %14lld %14lld", (long long)bin->total, (long long)bin->peak, (long long)bin->current);
  return shown;
}

// Blocks, in bytes; how many of them in the last column.
static void mi_print_blocks(const mi_sink_to_t* to, const char* label, const mi_stat_count_t* count, size_t block_size,
                            mi_shown_t number) {
  const int64_t size = block_size == 0 ? 1 : (int64_t)block_size;
  mi_print_row(to, label, mi_show_bytes(count->peak * size), mi_show_bytes(count->total * size), mi_show_bytes(count->current * size),
               block_size == 0 ? mi_show_nothing() : mi_show_bytes((int64_t)block_size), number);
}

static void mi_print_bins(const mi_sink_to_t* to, const mi_stats_t* stats) {
  for (unsigned i = 0; i < MI_STAT_BIN_HUGE; i++) {
    const mi_stat_count_t* const bin = &stats->malloc_bins[i];
    char label[MI_SHOWN_SIZE];
    (void)_mi_fmt(label, sizeof(label), "bin %2u", i);
    if (bin->total != 0 && i == MI_STAT_BIN_ZERO_SIZE) {
      mi_print_row(to, label, mi_show_nothing(), mi_show_nothing(), mi_show_nothing(), mi_show_bytes(0), mi_show_counts(bin));
    } else if (bin->total != 0) {
      mi_print_blocks(to, label, bin, _mi_stat_bin_size(i), mi_show_counts(bin));
    }
  }
}

void _mi_stats_print(const mi_stats_t* stats, const char* what, bool whole, mi_output_fun* out, void* arg) {
  const mi_sink_to_t to = {out, arg};
  _mi_log_print_to(out, arg, MI_PROFILE_NAME ": statistics of %s\n", what);
  _mi_log_print_to(out, arg, "%20s  %10s     %10s     %10s     %8s     %10s%s\n", "heap stats", "peak", "total", "current", "block",
                   "total#", MI_STATS_LEVEL < 2 ? "" : "          peak#       current#");
  mi_print_bins(&to, stats);
  mi_print_blocks(&to, "blocks of classes", &stats->malloc_normal, 0, mi_show_number(stats->malloc_normal_count.total));
  mi_print_blocks(&to, "huge blocks", &stats->malloc_huge, 0, mi_show_number(stats->malloc_huge_count.total));
  mi_print_count(&to, "requested", &stats->malloc_requested, MI_STAT_BYTES);
#define MI_STATS_ROW(field, unit, label) mi_print_count(&to, label, &stats->field, MI_STAT_##unit);
#define MI_STATS_COUNTER_ROW(field, unit, label) mi_print_counter(&to, label, &stats->field, MI_STAT_##unit);
  MI_STATS_HEAP_COUNTS(MI_STATS_ROW)
  MI_STATS_HEAP_COUNTERS(MI_STATS_COUNTER_ROW)
  if (whole) {
    MI_STATS_COUNTS(MI_STATS_ROW)
    MI_STATS_COUNTERS(MI_STATS_COUNTER_ROW)
    const mi_stat_counter_t guards_skipped = {_mi_counter_view(&_mi_stats.guards_skipped)};
    mi_print_counter(&to, "guards skipped", &guards_skipped, MI_STAT_NUMBER);
    _mi_stats_print_process(out, arg);
  }
#undef MI_STATS_ROW
#undef MI_STATS_COUNTER_ROW
}

void _mi_stats_print_process(mi_output_fun* out, void* arg) {
  const mi_stats_process_t p = _mi_stats_process();
  _mi_log_print_to(out, arg,
                   "%20s: elapsed %lld.%03lld s, user %lld.%03lld s, system %lld.%03lld s, resident %s, peak %s, page faults %lld\n",
                   "process", (long long)p.elapsed_ms / 1000, (long long)p.elapsed_ms % 1000, (long long)p.user_ms / 1000,
                   (long long)p.user_ms % 1000, (long long)p.system_ms / 1000, (long long)p.system_ms % 1000,
                   mi_show_bytes(p.rss).text, mi_show_bytes(p.rss_peak).text, (long long)p.page_faults);
}

// JSON

// The fields in the order of the public struct: C(field) what goes up and down, K(field) what only goes up.
#define MI_JSON_FIELDS(C, K)   \
  C(pages)                     \
  C(reserved)                  \
  C(committed)                 \
  K(reset)                     \
  K(purged)                    \
  C(page_committed)            \
  C(pages_abandoned)           \
  C(threads)                   \
  C(malloc_normal)             \
  C(malloc_huge)               \
  C(malloc_requested)          \
  K(mmap_calls)                \
  K(commit_calls)              \
  K(reset_calls)               \
  K(purge_calls)               \
  K(arena_count)               \
  K(malloc_normal_count)       \
  K(malloc_huge_count)         \
  K(malloc_guarded_count)      \
  K(arena_rollback_count)      \
  K(arena_purges)              \
  K(pages_extended)            \
  K(pages_retire)              \
  K(page_searches)             \
  K(page_searches_count)       \
  C(segments)                  \
  C(segments_abandoned)        \
  C(segments_cache)            \
  C(heaps)                     \
  C(theaps)                    \
  K(pages_reclaim_on_alloc)    \
  K(pages_reclaim_on_free)     \
  K(pages_reabandon_full)      \
  K(pages_unabandon_busy_wait) \
  K(heaps_delete_wait)

// The members of a count, into the object that is open.
static void mi_json_members(mi_json_t* json, const mi_stat_count_t* count) {
  _mi_json_number(json, "total", count->total);
  _mi_json_number(json, "peak", count->peak);
  _mi_json_number(json, "current", count->current);
}

static void mi_json_count(mi_json_t* json, const char* name, const mi_stat_count_t* count) {
  _mi_json_open(json, name, '{');
  mi_json_members(json, count);
  _mi_json_close(json, '}');
}

static size_t mi_page_size_of(unsigned stat_bin) {
  const size_t block_size = _mi_stat_bin_size(stat_bin);
  return block_size == 0 ? 0 : _mi_bin_page_slices(_mi_bin_of_size(block_size)) * MI_SLICE_SIZE;
}

static void mi_json_bins(mi_json_t* json, const char* name, const mi_stat_count_t bins[MI_STAT_BINS]) {
  _mi_json_open(json, name, '[');
  for (unsigned i = 0; i < MI_STAT_BINS; i++) {
    _mi_json_open(json, NULL, '{');
    mi_json_members(json, &bins[i]);
    _mi_json_number(json, "block_size", (int64_t)_mi_stat_bin_size(i));
    _mi_json_number(json, "page_size", (int64_t)mi_page_size_of(i));
    _mi_json_close(json, '}');
  }
  _mi_json_close(json, ']');
}

static void mi_json_kinds(mi_json_t* json, const mi_stats_t* stats) {
  static const char* const letters[MI_CBIN_COUNT] = {
      [MI_CBIN_SMALL] = "S", [MI_CBIN_OTHER] = "X", [MI_CBIN_MEDIUM] = "M", [MI_CBIN_LARGE] = "L", [MI_CBIN_HUGE] = "H", [MI_CBIN_NONE] = " "};
  _mi_json_open(json, "chunk_bins", '[');
  for (unsigned i = 0; i < MI_CBIN_COUNT; i++) {
    _mi_json_open(json, NULL, '{');
    mi_json_members(json, &stats->chunk_bins[i]);
    _mi_json_text(json, "bin", letters[i]);
    _mi_json_close(json, '}');
  }
  _mi_json_close(json, ']');
}

size_t _mi_stats_json(const mi_stats_t* stats, const mi_stats_process_t* process, char* buf, size_t size) {
  mi_json_t json = {.buf = buf, .size = size};
  _mi_json_open(&json, NULL, '{');
  _mi_json_number_line(&json, "stat_version", MI_STAT_VERSION);
  _mi_json_number_line(&json, "mimalloc_version", MI_MALLOC_VERSION);
  _mi_json_open(&json, "process", '{');
  _mi_json_number(&json, "elapsed_msecs", process->elapsed_ms);
  _mi_json_number(&json, "user_msecs", process->user_ms);
  _mi_json_number(&json, "system_msecs", process->system_ms);
  _mi_json_number(&json, "page_faults", process->page_faults);
  _mi_json_number(&json, "rss_current", process->rss);
  _mi_json_number(&json, "rss_peak", process->rss_peak);
  _mi_json_number(&json, "commit_current", stats->committed.current);
  _mi_json_number(&json, "commit_peak", stats->committed.peak);
  _mi_json_close(&json, '}');
#define MI_JSON_COUNT(field) mi_json_count(&json, #field, &stats->field);
#define MI_JSON_COUNTER(field) _mi_json_number_line(&json, #field, stats->field.total);
  MI_JSON_FIELDS(MI_JSON_COUNT, MI_JSON_COUNTER)
#undef MI_JSON_COUNT
#undef MI_JSON_COUNTER
  mi_json_bins(&json, "malloc_bins", stats->malloc_bins);
  mi_json_bins(&json, "page_bins", stats->page_bins);
  mi_json_kinds(&json, stats);
  _mi_json_close(&json, '}');
  return json.len;
}
