// Owns: sub-processes: made, found, ended; which one a thread is in.
// May include: sys, heap.
// Called by: heap, api.
// Invariants: a sub-process is its main heap, which leads to no other heap: `main` is NULL. Its other heaps' `main` leads to it.
// Its number is that of its main heap. A thread is in the sub-process of its first theap's heap.
#pragma once

#include "src/heap/heap.h"

// The main heap of the calling thread's sub-process.
mi_heap_t* _mi_subproc_current(void);

// The number of a sub-process: never 0, and never used twice.
mi_inline uintptr_t _mi_subproc_id(const mi_heap_t* main) { return mi_atomic_load_relaxed(&main->id); }

// The main heap of the sub-process with that number, 0 for the main sub-process; NULL: there is none, or none any more. The
// heaps' lock is held.
mi_heap_t* _mi_subproc_find(uintptr_t id);

// A new sub-process; 0 when there is no memory.
uintptr_t _mi_subproc_new(void);

// Ends a sub-process that has neither threads nor live blocks; `with_blocks`: one that may have both, of which no thread is in
// a call or uses a block meanwhile. 0 is ignored; refused with a warning where that cannot be.
void _mi_subproc_end(uintptr_t id, bool with_blocks);

// Makes the calling thread one of the sub-process.
void _mi_subproc_add_current_thread(uintptr_t id);

// Calls `visit` for each heap of the sub-process, the main one first; no lock is held then, and heaps may be made and ended,
// which may then be missed. False: `visit` returned false, which was the last call, or there is no such sub-process.
bool _mi_subproc_visit_heaps(uintptr_t id, mi_heap_visit_fun* visit, void* arg);
