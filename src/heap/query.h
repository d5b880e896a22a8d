// Owns: questions about addresses, for the public functions that ask them.
// May include: base, region, heap.
// Called by: api.
// Invariants: any address may be asked about; nothing is read through it.
#pragma once

#include "src/heap/heap.h"

// The heap that has a page at p; NULL when there is none.
mi_heap_t* _mi_heap_of(const void* p);

// A number for the thread that owns the page at p, from 1 on; 0 when there is none.
uintptr_t _mi_thread_of(const void* p);

// Whether less than `percent` of the blocks are in use of the page at p, which is this thread's and not the one that its
// class is allocated from.
bool _mi_page_is_under_utilized(const mi_heap_t* heap, const void* p, size_t percent);
