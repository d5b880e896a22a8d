// Owns: blocks straight from the system, in no heap, statistics or events.
// May include: base.
// Called by: alloc, api.
// Invariants: what is known of a block stands in metadata, by its address: nothing is read through a pointer that is asked
// about.
#pragma once

#include "src/base/compiler.h"

// As mi_unwrapped_malloc. A wrong pointer to the others is reported; NULL then.
void* _mi_unwrapped_alloc(size_t size, size_t align);
void* _mi_unwrapped_realloc(void* p, size_t size, size_t align);
void _mi_unwrapped_free(void* p);

// Whether p is such a block. For reports, also where the thread may hold the lock: then false.
bool _mi_unwrapped_is(const void* p);

void _mi_unwrapped_fork_prepare(void);
void _mi_unwrapped_fork_release(bool in_child);
