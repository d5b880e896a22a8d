// Owns: the functions of profilers.
// May include: profile, heap, mimalloc-profile.h.
// Called by: programs.
// Invariants: a pointer that is no profiler is found to be none, and nothing is read through it.
#include "mimalloc-profile.h"

#include "src/heap/profiled.h"
#include "src/heap/sample.h"
#include "src/heap/subproc.h"
#include "src/profile/profiler.h"

mi_profiler_t* mi_pprof_profiler_new(size_t initial_threshold, const char* base_file_name, size_t alloc_interval_size, size_t inuse_interval_size,
                                     size_t time_interval_secs) {
  return _mi_profiler_new(initial_threshold, base_file_name, alloc_interval_size, inuse_interval_size, time_interval_secs);
}

void mi_pprof_profiler_delete(mi_profiler_t* profiler) {
  _mi_profiler_delete(profiler);
  _mi_sample_changed();
}

// Attaching

// Its number, or 0 to detach. False: it is no profiler, or a visitor calls.
static bool mi_profiler_find(const mi_profiler_t* profiler, uint32_t* number) {
  *number = _mi_profiler_number(profiler);
  return !_mi_profile_is_visiting() && (profiler == NULL || *number != 0);
}

static bool mi_profiler_attach_all(uintptr_t subproc, const mi_profiler_t* profiler) {
  uint32_t number;
  return mi_profiler_find(profiler, &number) && _mi_profiled_attach_all(subproc, number);
}

bool mi_profile(mi_profiler_t* profiler) { return mi_profiler_attach_all(_mi_subproc_id(_mi_heap_main()), profiler); }

bool mi_subproc_profile(mi_subproc_id_t subproc_id, mi_profiler_t* profiler) {
  return mi_profiler_attach_all((uintptr_t)subproc_id._mi_subproc_id, profiler);
}

bool mi_heap_profile(mi_heap_t* heap, mi_profiler_t* profiler) {
  uint32_t number;
  return mi_profiler_find(profiler, &number) && _mi_profiled_attach(heap, number);
}

void mi_heap_profile_disable(mi_heap_t* heap) {
  if (!_mi_profile_is_visiting()) {
    _mi_profiled_disable(heap);
  }
}

// Sampling

static bool mi_profiler_set_sampling(mi_profiler_t* profiler, bool samples) {
  const bool changed = _mi_profiler_set_sampling(profiler, samples);
  if (changed) {
    _mi_sample_changed();
  }
  return changed;
}

bool mi_profiler_start(mi_profiler_t* profiler) { return mi_profiler_set_sampling(profiler, true); }

bool mi_profiler_stop(mi_profiler_t* profiler) { return mi_profiler_set_sampling(profiler, false); }

bool mi_profiler_snapshot(mi_profiler_t* profiler) {
  const uint32_t number = _mi_profiler_number(profiler);
  return number != 0 && _mi_profiler_write(number);
}
