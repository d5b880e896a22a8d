// Owns: sampled blocks, the figures of heaps, and the dump at the end of the process.
// May include: base, sys, profile, heap.
// Called by: through profiled.h.
// Invariants: as in profiled.h.
#include "src/heap/profiled.h"

#include "src/heap/heap-stats.h"
#include "src/heap/sample.h"
#include "src/profile/settings.h"

// Samples

void _mi_profiled_note(const mi_theap_t* theap, void* p, size_t size, const void* frame) {
  (void)theap;
  mi_page_t* const page = _mi_page_map_find(p);
  page->sample = _mi_profile_note_alloc(size, MI_PROFILE_SCOPE_NONE, frame);
}

void _mi_profiled_offer(mi_page_t* page, size_t grown, size_t size, const void* frame) {
  mi_theap_t* const theap = _mi_tls.own;
  if (theap == NULL || page->sample != 0) {
    return;
  }
  _mi_sample_update(theap);
  if ((theap->sampling.kinds & MI_SAMPLE_PROFILE) != 0 && _mi_profile_hits(&theap->sampling.profile, grown)) {
    _mi_profiled_note(theap, page->single_start, size, frame);
  }
}

// Figures

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
