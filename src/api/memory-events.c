// Owns: memory events as programs switch, receive and read them.
// May include: base, profile, heap, alloc, mimalloc.h.
// Called by: programs.
// Invariants: a snapshot is known by its size and version together.
#include "src/api/api.h"
#include "src/heap/visit.h"
#include "src/prim/prim.h"
#include "src/profile/memory-events.h"
#include "src/profile/unwrapped.h"

enum { MI_EVENTS_YIELDS = 4 };

bool mi_memory_tracking_set_enabled(bool enabled) {
  _mi_memory_events_set(enabled);
  if (enabled) {
    // Full: the flag is set before any thread is disarmed. One that has just not seen it and arms is disarmed again by the
    // second round: its stores are out by then.
    atomic_thread_fence(memory_order_seq_cst);
    _mi_threads_disarm();
    for (int i = 0; i < MI_EVENTS_YIELDS; i++) {
      _mi_prim_yield();
    }
    _mi_threads_disarm();
  }
  return true;
}

bool mi_memory_tracking_is_enabled(void) { return _mi_memory_events_are_on(); }

bool mi_memory_set_callbacks(const mi_memory_callbacks_t* callbacks) { return _mi_memory_events_register(callbacks); }

bool mi_memory_snapshot(mi_memory_snapshot_t* out) {
  if (out == NULL || out->size != sizeof(*out) || out->version != MI_MEMORY_SNAPSHOT_VERSION) {
    return false;
  }
  _mi_memory_events_read(out);
  return true;
}

typedef struct mi_events_visit_s {
  mi_memory_allocation_visit_fun* visitor;
  void* arg;
  bool stopped;
} mi_events_visit_t;

static bool mi_events_visit(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap;
  (void)area;
  mi_events_visit_t* const visit = arg;
  visit->stopped = block != NULL && !visit->visitor(block, size, visit->arg);
  return !visit->stopped;
}

bool mi_memory_visit_live_allocations(mi_memory_allocation_visit_fun* visitor, void* arg) {
  if (visitor == NULL || _mi_memory_events_is_telling()) {
    return false;
  }
  mi_events_visit_t events_visit = {visitor, arg, false};
  const mi_visit_t visit = {.tid = _mi_tls.own_tid, .tag = -1, .blocks = true, .visitor = &mi_events_visit, .arg = &events_visit};
  // A thread that has allocated nothing has nothing to show.
  return _mi_tls.own_tid == 0 || _mi_visit(&visit) || events_visit.stopped;
}

void* mi_unwrapped_malloc(size_t size, size_t alignment) { return _mi_unwrapped_alloc(size, alignment); }
void* mi_unwrapped_realloc(void* p, size_t new_size, size_t alignment) { return _mi_unwrapped_realloc(p, new_size, alignment); }
void mi_unwrapped_free(void* p) { _mi_unwrapped_free(p); }
