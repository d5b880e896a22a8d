// Owns: the life of the process and of each thread as the allocator sees it.
// May include: base, prim, sys, region, heap.
// Called by: heap, alloc, api, and the loader.
// Invariants: any entry point may be the first to run, in a process and in a thread, also before constructors.
#pragma once

#include "src/heap/heap.h"

// Makes the allocator usable; true when it is. Called by whatever comes first; any number of times, by any thread.
bool _mi_process_init(void);

// The end of the process or of the library in it: prints statistics when asked to. What runs later still allocates.
void _mi_process_done(void);

// Whether the process has ended and its memory is gone (option destroy_on_exit): late frees are ignored then.
bool _mi_process_is_closed(void);

// Gives the calling thread its theap ahead of its first allocation.
void _mi_thread_init(void);

// Gives up what the calling thread holds. It may still allocate and free afterwards.
void _mi_thread_done(void);

// Gives back what this thread keeps for reuse; `force`: and what the process has pending for the system, at once.
void _mi_collect(bool force);

// Collects, and lets go of pages, until this thread owns no more than so many bytes of them.
void _mi_thread_reduce(size_t target);

void _mi_late_fork_prepare(void);
void _mi_late_fork_release(bool in_child);
