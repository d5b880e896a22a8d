// Owns: making OS pages inaccessible: by what means, and within what budget of mappings.
// May include: base, prim, sys.
// Called by: region, heap.
// Invariants: a guard that cannot be had is counted and gone without; its lack never fails a request for memory.
#pragma once

#include "src/base/compiler.h"

// All ranges are multiples of the OS page in committed memory. Where guards are mappings, `units` is what the range counts
// against their budget; whoever sets a guard gives the same number back when it is cleared or its memory is gone.

// Makes a range inaccessible that is accessible as a whole; its content is lost. False: it is still accessible, its content
// may be lost, and it is counted as skipped, unless guards are switched off.
bool _mi_guard_set(void* p, size_t size, size_t units);

// Makes a range accessible in which some OS pages may be guarded. False, which only a process without a mapping left
// sees: they still are.
bool _mi_guard_clear(void* p, size_t size, size_t units);

// Guards of so many units went with their memory.
void _mi_guard_forget(size_t units);

// Whether guards are mappings of their own, so that a change of protection ends them; else only _mi_guard_clear does.
bool _mi_guard_are_mappings(void);

// Whether any guards are made.
bool _mi_guard_is_enabled(void);

// How many units are in use; 0 where guards are no mappings.
size_t _mi_guard_units(void);
