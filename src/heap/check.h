// Owns: when a thread walks over all that its theap has and asserts that it is as it should be.
// May include: base, sys, heap.
// Called by: heap.
// Invariants: folds to nothing where the profile runs no expensive assertions; changes nothing that is right.
#pragma once

#include "src/heap/theap.h"
#include "src/sys/options.h"

// Whether option check_heap is on. Without expensive assertions it never is.
mi_inline bool _mi_check_is_on(void) { return MI_ASSERT_LEVEL >= 3 && mi_unlikely(_mi_option_get(mi_option_check_heap) > 0); }

// The walk, by the theap's thread, when no call of it is in the middle of something. What is wrong in the allocator's own data
// fails an assertion; what the program has written where it may not is reported as bad use.
mi_cold void _mi_theap_check_now(mi_theap_t* theap);

mi_inline void _mi_theap_check(mi_theap_t* theap) {
  if (_mi_check_is_on()) {
    _mi_theap_check_now(theap);
  }
}

// The same at every so-manyth call, as the option says.
mi_inline void _mi_theap_check_sometimes(mi_theap_t* theap) {
  if (_mi_check_is_on() && theap->slow_calls % (unsigned long)_mi_option_get(mi_option_check_heap) == 0) {
    _mi_theap_check_now(theap);
  }
}
