// Owns: sampled blocks, the figures of heaps, and the dump at the end of the process.
// May include: base, sys, profile, heap.
// Called by: through profiled.h.
// Invariants: as in profiled.h.
#include "src/heap/profiled.h"

#include "src/heap/heap-stats.h"
#include "src/profile/settings.h"

static size_t mi_profiled_size(int64_t value) { return value < 0 ? 0 : (size_t)value; }

void _mi_profiled_figures(mi_profile_figures_t* figures) {
  mi_stats_t stats;
  _mi_heap_stats_read(NULL, &stats);
  *figures = (mi_profile_figures_t){
      .committed = mi_profiled_size(stats.committed.current),
      .reserved = mi_profiled_size(stats.reserved.current),
      .malloc_requested = mi_profiled_size(stats.malloc_requested.current),
      .pages = mi_profiled_size(stats.pages.current),
      .pages_abandoned = mi_profiled_size(stats.pages_abandoned.current),
      .heaps = mi_profiled_size(stats.heaps.current),
      .theaps = mi_profiled_size(stats.theaps.current),
      .purged = mi_profiled_size(stats.purged.total),
      .detailed = MI_STATS_LEVEL >= 2,
  };
}

void _mi_profiled_process_done(void) {
  bool is_text;
  if (_mi_profile_wants_dump(&is_text)) {
    mi_profile_figures_t figures;
    _mi_profiled_figures(&figures);
    _mi_profile_dump_at_exit(is_text ? &figures : NULL);
  }
}
