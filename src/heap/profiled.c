// Owns: sampled blocks, the figures of heaps, and the dump at the end of the process.
// May include: base, sys, profile, heap.
// Called by: through profiled.h.
// Invariants: as in profiled.h.
#include "src/heap/profiled.h"

#include <errno.h>

#include "src/heap/heap-stats.h"
#include "src/heap/heap.h"
#include "src/heap/sample.h"
#include "src/heap/subproc.h"
#include "src/profile/profiler.h"
#include "src/profile/settings.h"

// Samples

void _mi_profiled_note(uint32_t number, void* p, size_t size, const void* frame) {
  mi_page_t* const page = _mi_page_map_find(p);
  bool is_due;
  page->sample = _mi_profile_note_alloc(number, size, frame, &is_due);
  if (mi_unlikely(is_due)) {
    const int saved = errno;
    (void)_mi_profiler_write(number);
    errno = saved;
  }
}

void _mi_profiled_offer(mi_page_t* page, size_t grown, size_t size, const void* frame) {
  mi_theap_t* const theap = _mi_tls.own;
  if (theap == NULL || page->sample != 0) {
    return;
  }
  _mi_sample_update(theap);
  mi_profile_thread_t* numbers = &theap->sampling.profile;
  mi_profile_thread_t others;
  if (_mi_page_heap(page) != mi_atomic_load_relaxed(&theap->heap)) {
    // Of another heap, whose theap this thread may not have.
    others = (mi_profile_thread_t){0};
    (void)_mi_profile_follow(&others, _mi_profiled_wanted(_mi_page_heap(page)), theap->tid ^ page->slice_index ^ size);
    numbers = &others;
  }
  if (numbers->number != 0 && _mi_profile_hits(numbers, grown)) {
    _mi_profiled_note(numbers->number, page->single_start, size, frame);
  }
}

// Heaps and their profilers

uint32_t _mi_profiled_wanted(const mi_heap_t* heap) {
  if (heap == NULL) {
    return 0;
  }
  // Relaxed: who reads an old one is told to look again.
  const uint32_t own = mi_atomic_load_relaxed(&heap->profiler);
  if (own != 0) {
    return own;
  }
  const mi_heap_t* const main = mi_atomic_peek(&heap->main);
  return mi_atomic_load_relaxed(&(main != NULL ? main : heap)->profiler_of_all);
}

bool _mi_profiled_attach(mi_heap_t* heap, uint32_t number) {
  mi_heap_t* const to = heap != NULL ? heap : _mi_subproc_current();
  if (!_mi_heap_may_be(to) || mi_atomic_load_relaxed(&to->id) == 0) {
    return false;
  }
  mi_atomic_store_relaxed(&to->profiler, number != 0 ? number : MI_HEAP_DETACHED);
  _mi_sample_changed();
  return true;
}

void _mi_profiled_disable(mi_heap_t* heap) { (void)_mi_profiled_attach(heap, MI_PROFILE_NONE); }

bool _mi_profiled_attach_all(uintptr_t subproc, uint32_t number) {
  if (mi_unlikely(_mi_heaps_are_busy_here())) {
    return false;
  }
  _mi_heaps_lock();
  mi_heap_t* const main = _mi_subproc_find(subproc);
  if (main != NULL) {
    mi_atomic_store_relaxed(&main->profiler_of_all, number);
    uint32_t detached = MI_HEAP_DETACHED;
    (void)mi_atomic_cas_strong_acq_rel(&main->profiler, &detached, 0);
  }
  for (mi_heap_t* heap = _mi_heaps_first(); main != NULL && heap != NULL; heap = heap->next) {
    uint32_t detached = MI_HEAP_DETACHED;
    if (heap->main == main) {
      (void)mi_atomic_cas_strong_acq_rel(&heap->profiler, &detached, 0);
    }
  }
  _mi_heaps_unlock();
  _mi_sample_changed();
  return main != NULL;
}

void _mi_profiled_heap_ended(void) {
  if (_mi_profile_is_on()) {
    _mi_sample_changed();
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

void _mi_profiled_process_start(void) {
  _mi_profile_load();
  const uint32_t number = _mi_profiler_load();
  if (number != 0) {
    mi_atomic_store_relaxed(&_mi_heap_main()->profiler_of_all, number);
  }
}

void _mi_profiled_process_done(void) {
  _mi_profiler_process_done();
  bool is_text;
  if (_mi_profile_wants_dump(&is_text)) {
    mi_profile_figures_t figures;
    _mi_profiled_figures(&figures);
    _mi_profile_dump_at_exit(is_text ? &figures : NULL);
  }
}
