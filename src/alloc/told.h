// Owns: what of the calls of this layer is told as memory events.
// May include: base, profile, heap, alloc.
// Called by: alloc.
// Invariants: a call of the program's is told once, when all is done, by the function that the program's call came to first;
// what that calls in turn is mute. Only slow paths ask, since no thread is armed while events are on.
#pragma once

#include "src/profile/memory-events.h"
#include "src/heap/page.h"

// The usable size of the live block that was handed out as p, without a report if its end is overwritten.
size_t _mi_told_size(const mi_page_t* page, const void* p);

mi_cold void _mi_told_allocation(const void* p, size_t request);

// Tells that a request led to p, if it is a block. Returns p.
mi_inline void* _mi_told(void* p, size_t request) {
  if (_mi_memory_events_are_on() && p != NULL) {
    _mi_told_allocation(p, request);
  }
  return p;
}
