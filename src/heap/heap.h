// Owns: first-class heaps: made, deleted, destroyed, from any thread.
// May include: base, sys, region, heap.
// Called by: alloc, api.
// Invariants: the main heap of the process always exists; that of another sub-process ends with it only (subproc.h).
#pragma once

#include "src/heap/theap.h"

mi_inline mi_heap_t* _mi_heap_main(void) { return &_mi_heap_main_instance; }

// The main heap of the heap's sub-process.
mi_inline mi_heap_t* _mi_heap_main_of(mi_heap_t* heap) { return heap->main != NULL ? heap->main : heap; }

typedef struct mi_heap_config_s {
  int tag;
  bool allow_destroy;
  bool is_main;       // of a new sub-process, else it is one of the calling thread's
  mi_arena_t* arena;  // NULL: any
} mi_heap_config_t;

// A new heap; NULL when there is no memory.
mi_heap_t* _mi_heap_new_as(const mi_heap_config_t* config);

// The same, as most heaps are.
mi_heap_t* _mi_heap_new(void);

// Ends a heap; its live blocks become the main heap's. Other threads may use its blocks meanwhile, and allocate from it
// through theaps that they have. NULL is ignored, the main heap refused with a warning, a heap that has ended reported.
void _mi_heap_delete(mi_heap_t* heap);

// Ends a heap with all its blocks, whose ends are checked as by a free; the same exceptions. One that may not be destroyed is
// deleted. No other thread may use the heap or its blocks meanwhile.
void _mi_heap_destroy(mi_heap_t* heap);

// The first of all heaps but the main one, the one with the highest id, on to `next`. The heaps' lock is held.
mi_heap_t* _mi_heaps_first(void);

// Ends a heap, also one that is the main heap of a sub-process; what it has goes to `main`. The heaps' lock is held.
void _mi_heap_end_into(mi_heap_t* heap, mi_heap_t* main);

// What went with heaps, if memory events are on; to be told when no lock is held.
typedef struct mi_heap_loss_s {
  size_t blocks;
  size_t bytes;
} mi_heap_loss_t;

// The same with all its blocks, which are added to the loss. No thread is in a call that uses them.
void _mi_heap_end_with_blocks(mi_heap_t* heap, mi_heap_loss_t* loss);
void _mi_heap_tell_loss(const mi_heap_loss_t* loss);

// The end of the process: unmaps every arena, with all blocks, if there never was another thread. Or of the library alone
// (`unloaded`): other threads can call it no more, so all there is goes, unless a block is still in use. False: it did
// nothing.
bool _mi_heaps_destroy_all(bool unloaded);

// Collects this thread's theap of the heap.
void _mi_heap_collect(mi_heap_t* heap, bool force);

// In a forked child: gives back the theaps of threads that do not exist here. Their pages are left alone.
void _mi_heaps_drop_orphans(void);

// Calls `visit` for each heap, the main one first, none of which can end meanwhile, until it returns false.
void _mi_heaps_visit(bool (*visit)(mi_heap_t* heap, void* arg), void* arg);

// Whether a heap may stand there: not in memory that the program writes. What a handle leads to elsewhere was forged.
bool _mi_heap_may_be(const mi_heap_t* heap);

// The lock that guards which heap a theap belongs to, and the list of heaps.
void _mi_heaps_lock(void);
bool _mi_heaps_try_lock(void);
void _mi_heaps_unlock(void);

// Whether this thread holds it and is not forking: a signal handler has interrupted it there, which may allocate and free, but
// can make and end no heap.
bool _mi_heaps_are_busy_here(void);

void _mi_heaps_fork_prepare(void);
// In a child: whether threads were left behind.
bool _mi_heaps_fork_release(bool in_child);
