// Owns: the function that a program has registered to free, from time to time, what it has put off.
// May include: policy, base, prim, sys/sealed.h; the public header for mi_deferred_free_fun.
// Called by: heap, api.
// Invariants: it is called where this thread is inside no structure of ours, and not from inside itself; errno is untouched.
#pragma once

#include "mimalloc.h"
#include "src/sys/sealed.h"

// So many calls of _mi_deferred_tick lead to one of the function.
enum { MI_DEFERRED_TICKS = 100 };

// Registers the function; NULL: there is none. Any thread, any time; a call under way may still be of the old one.
void _mi_deferred_register(mi_deferred_free_fun* fun, void* arg);

// Calls the function, if there is one, with this thread's next heartbeat; `force`: it should free all that it can now.
void _mi_deferred_free(bool force);

mi_cold void _mi_deferred_count(void);

// An allocation off the fast path, before it looks for memory.
mi_inline void _mi_deferred_tick(void) {
  // Relaxed: who has missed a registration calls the function later. The count is 0 where there was none yet.
  if (mi_unlikely(mi_atomic_load_relaxed(&_mi_settings.deferred.current) != 0)) {
    _mi_deferred_count();
  }
}
