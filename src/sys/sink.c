// Owns: how a registered function is stored and read.
// May include: base, sys/sealed.h.
// Called by: through sink.h.
// Invariants: a function and its argument are always read as the pair that was registered.
#include "src/sys/sink.h"

bool _mi_sink_register(mi_sink_t* sink, uintptr_t fun, uintptr_t arg) {
  // One thread at a time is past this.
  if (!_mi_sealed_open("the registered function")) {
    return false;
  }
  const uint32_t next = mi_atomic_load_relaxed(&sink->current) + 1;
  // Release: a reader that meets these too early, in a slot it still reads, also sees that `current` has gone on.
  mi_atomic_store_release(&sink->slots[next % MI_SINK_SLOTS].fun, fun);
  mi_atomic_store_release(&sink->slots[next % MI_SINK_SLOTS].arg, arg);
  // Release: pairs with the acquire in _mi_sink_read, which then finds the pair complete.
  mi_atomic_store_release(&sink->current, next);
  _mi_sealed_close();
  return true;
}

uintptr_t _mi_sink_read(mi_sink_t* sink, uintptr_t* arg) {
  for (;;) {
    const uint32_t current = mi_atomic_load_acquire(&sink->current);
    const uintptr_t fun = mi_atomic_load_acquire(&sink->slots[current % MI_SINK_SLOTS].fun);
    *arg = mi_atomic_load_acquire(&sink->slots[current % MI_SINK_SLOTS].arg);
    // The slot is written again only after SLOTS - 1 further registrations.
    if (mi_atomic_load_relaxed(&sink->current) - current < MI_SINK_SLOTS - 1) {
      return fun;
    }
  }
}
