// Owns: the counts of memory events and the calls of the program's functions.
// May include: base, sys.
// Called by: through memory-events.h.
// Invariants: see memory-events.h.
#include "src/profile/memory-events.h"

#include <errno.h>

#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/sink.h"

_Static_assert((int)MI_MEMORY_CHANGE_COUNT == (int)MI_SINK_MEMORY_EVENTS, "each kind of event has a function");

_Atomic(bool) _mi_memory_events_flag;
static _Atomic(bool) mi_events_are_decided;

static struct {
  _Atomic(int64_t) live_bytes;
  _Atomic(int64_t) accum_bytes;
  _Atomic(int64_t) live_count;
  _Atomic(int64_t) accum_count;
} mi_events_counted;

static mi_thread_local uint32_t mi_events_muted;
static mi_thread_local bool mi_events_telling;

mi_cold bool _mi_memory_events_start(void) {
  if (!mi_atomic_load_relaxed(&mi_events_are_decided)) {
    mi_atomic_store_relaxed(&_mi_memory_events_flag, _mi_option_is_enabled(mi_option_memory_events));
  }
  return _mi_memory_events_are_on();
}

void _mi_memory_events_set(bool enabled) {
  mi_atomic_store_relaxed(&mi_events_are_decided, true);
  mi_atomic_store_relaxed(&_mi_memory_events_flag, enabled);
}

void _mi_memory_events_mute(void) { mi_events_muted++; }
void _mi_memory_events_unmute(void) { mi_events_muted--; }

void _mi_memory_events_aside(mi_memory_part_t* call, bool force) {
  const uint32_t muted = mi_events_muted;
  mi_events_muted = 0;
  call(force);
  mi_events_muted = muted;
}

bool _mi_memory_events_is_telling(void) { return mi_events_telling; }

void _mi_memory_events_tell(mi_memory_change_kind_t kind, int64_t bytes, int64_t blocks, size_t request) {
  if (mi_events_muted != 0 || mi_events_telling) {
    return;
  }
  const int64_t total = mi_atomic_add_relaxed(&mi_events_counted.live_bytes, bytes) + bytes;
  if (bytes > 0) {
    mi_atomic_add_relaxed(&mi_events_counted.accum_bytes, bytes);
  }
  if (blocks != 0) {
    mi_atomic_add_relaxed(&mi_events_counted.live_count, blocks);
  }
  if (blocks > 0) {
    mi_atomic_add_relaxed(&mi_events_counted.accum_count, blocks);
  }
  uintptr_t arg;
  const uintptr_t fun = _mi_sink_read(&_mi_settings.memory_events[kind], &arg);
  // A report may have come from the middle of a structure.
  if (fun == 0 || _mi_report_is_running()) {
    return;
  }
  const mi_memory_change_t change = {
      .kind = kind, .total_bytes = total < 0 ? 0 : (uint64_t)total, .delta_bytes = bytes, .request_size = request};
  const int saved = errno;
  mi_events_telling = true;
  ((mi_memory_change_fun*)fun)(&change, (void*)arg);
  mi_events_telling = false;
  errno = saved;
}

bool _mi_memory_events_register(const mi_memory_callbacks_t* callbacks) {
  for (size_t kind = 0; kind < MI_MEMORY_CHANGE_COUNT; kind++) {
    const uintptr_t fun = callbacks == NULL ? 0 : (uintptr_t)callbacks->handlers[kind];
    const uintptr_t arg = callbacks == NULL ? 0 : (uintptr_t)callbacks->args[kind];
    if (!_mi_sink_register(&_mi_settings.memory_events[kind], fun, arg)) {
      return false;
    }
  }
  return true;
}

static uint64_t mi_events_figure(_Atomic(int64_t)* count) {
  const int64_t figure = mi_atomic_load_relaxed(count);
  return figure < 0 ? 0 : (uint64_t)figure;
}

void _mi_memory_events_read(mi_memory_snapshot_t* out) {
  out->live_bytes = mi_events_figure(&mi_events_counted.live_bytes);
  out->accum_bytes = mi_events_figure(&mi_events_counted.accum_bytes);
  out->live_count = mi_events_figure(&mi_events_counted.live_count);
  out->accum_count = mi_events_figure(&mi_events_counted.accum_count);
}
