// Owns: what a forked child does with the pages and theaps of threads that exist in the parent only.
// May include: base, hardening, sys, region, heap.
// Called by: heap.
// Invariants: nothing is done before the child needs a page, as most children call exec soon.
#pragma once

#include "src/heap/page.h"

// In a forked child, with all locks open again: from now on the pages of every thread but this one are orphans.
// `survivor` is this thread's id, or 0; ids from `next_tid` on are given to threads of the child.
void _mi_orphans_begin(uintptr_t survivor, uintptr_t next_tid);

// Whether there may be orphans.
bool _mi_orphans_pending(void);

// Looks at some orphans: empty ones are given back, others listed for whoever needs their class. False: there is none
// left, or another thread is at it.
mi_cold bool _mi_orphans_adopt(void);
