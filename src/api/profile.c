// Owns: the functions of the heap profiler.
// May include: base, profile, heap, mimalloc/profile.h.
// Called by: programs.
// Invariants: a layout of the program's is known by its size and version together, and nothing of it is written before both are.
#include "mimalloc/profile.h"

#include <string.h>

#include "src/api/api.h"
#include "src/heap/profiled.h"
#include "src/heap/sample.h"
#include "src/profile/settings.h"

// Start and stop

static bool mi_prof_start_with(const mi_profile_settings_t* settings) {
  const bool started = _mi_profile_start(settings);
  if (started) {
    _mi_sample_changed();
  }
  return started;
}

bool mi_prof_start(size_t sample_rate) {
  mi_profile_settings_t settings;
  _mi_profile_settings(sample_rate, &settings);
  return mi_prof_start_with(&settings);
}

bool mi_prof_start_seeded(size_t sample_rate, uint64_t seed) {
  mi_profile_settings_t settings;
  _mi_profile_settings(sample_rate, &settings);
  settings.seed = seed;
  return mi_prof_start_with(&settings);
}

bool mi_prof_start_ex(const mi_prof_config_t* config) {
  mi_profile_settings_t settings;
  if (!_mi_profile_settings_of(config, &settings) || !mi_prof_start_with(&settings)) {
    return false;
  }
  if (config != NULL) {
    _mi_profile_settings_keep(config, &settings);
  }
  return true;
}

void mi_prof_stop(void) {
  _mi_profile_stop();
  _mi_sample_changed();
}

bool mi_prof_is_enabled(void) { return _mi_profile_runs(); }

void mi_prof_reset(void) { _mi_profile_reset(); }

// Counts

// The versions of the statistics, by where they end.
enum { MI_PROF_STAT_V1_SIZE = offsetof(mi_prof_stats_t, dropped_samples),
       MI_PROF_STAT_V2_SIZE = offsetof(mi_prof_stats_t, heap_committed) };

_Static_assert(sizeof(mi_prof_stats_t) == sizeof(void*) * 19 + 8, "version 3 is as it was released");

static bool mi_prof_stats_are_known(const mi_prof_stats_t* stats) {
  return stats != NULL &&
      ((stats->version == 1 && stats->size == MI_PROF_STAT_V1_SIZE) || (stats->version == 2 && stats->size == MI_PROF_STAT_V2_SIZE) ||
       (stats->version == MI_PROF_STAT_VERSION && stats->size == sizeof(*stats)));
}

bool mi_prof_stats_get(mi_prof_stats_t* stats) {
  if (!mi_prof_stats_are_known(stats)) {
    return false;
  }
  mi_profile_figures_t figures;
  _mi_profiled_figures(&figures);
  mi_prof_stats_t all = {
      .size = stats->size,
      .version = stats->version,
      .heap_committed = figures.committed,
      .heap_reserved = figures.reserved,
      .heap_malloc_requested = figures.malloc_requested,
      .heap_pages = figures.pages,
      .heap_pages_abandoned = figures.pages_abandoned,
      .heap_count = figures.heaps,
      .theap_count = figures.theaps,
      .heap_purged = figures.purged,
      .heap_stats_detailed = figures.detailed,
  };
  _mi_profile_stats(&all);
  memcpy(stats, &all, stats->size);
  return true;
}

void mi_prof_debug_stats(size_t* records, size_t* bytes, size_t* unique_stacks) {
  mi_prof_stats_t_decl(stats);
  _mi_profile_stats(&stats);
  if (records != NULL) {
    *records = stats.live_samples;
  }
  if (bytes != NULL) {
    *bytes = stats.live_bytes;
  }
  if (unique_stacks != NULL) {
    *unique_stacks = stats.unique_stacks;
  }
}

// Copies and visits

mi_prof_snapshot_t* mi_prof_snapshot_new(void) { return _mi_profile_snapshot(); }

void mi_prof_snapshot_free(mi_prof_snapshot_t* snap) { _mi_profile_snapshot_free(snap); }

bool mi_prof_snapshot_visit(const mi_prof_snapshot_t* snap, mi_prof_visit_fun* visitor, void* arg) {
  return _mi_profile_visit(snap, visitor, arg);
}

bool mi_prof_visit(mi_prof_visit_fun* visitor, void* arg) {
  mi_prof_snapshot_t* const snapshot = _mi_profile_snapshot();
  const bool visited = _mi_profile_visit(snapshot, visitor, arg);
  _mi_profile_snapshot_free(snapshot);
  return visited;
}

bool mi_prof_modules_visit(mi_prof_module_visit_fun* visitor, void* arg) { return _mi_profile_visit_modules(visitor, arg); }

// Dumps

static bool mi_prof_dump_as(bool is_text, const char* path, mi_prof_write_fun* write, void* arg) {
  mi_prof_snapshot_t* const snapshot = _mi_profile_snapshot();
  if (snapshot == NULL || (path == NULL && write == NULL)) {
    _mi_profile_snapshot_free(snapshot);
    return false;
  }
  mi_profile_figures_t figures;
  _mi_profiled_figures(&figures);
  const bool done = path != NULL ? _mi_profile_write_file(snapshot, is_text ? &figures : NULL, path, false)
      : is_text                  ? _mi_profile_write_text(snapshot, &figures, write, arg)
                                 : _mi_profile_write_proto(snapshot, write, arg);
  _mi_profile_snapshot_free(snapshot);
  return done;
}

bool mi_prof_dump(const char* path) { return mi_prof_dump_as(true, path, NULL, NULL); }

bool mi_prof_dump_writer(mi_prof_write_fun* write, void* arg) { return mi_prof_dump_as(true, NULL, write, arg); }

bool mi_prof_dump_proto(const char* path) { return mi_prof_dump_as(false, path, NULL, NULL); }

bool mi_prof_dump_proto_writer(mi_prof_write_fun* write, void* arg) { return mi_prof_dump_as(false, NULL, write, arg); }
