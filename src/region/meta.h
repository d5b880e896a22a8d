// Owns: memory for the allocator's own objects that belong to no arena: theaps, heaps, pages of blocks outside arenas.
// May include: base, sys.
// Called by: region, heap.
// Invariants: objects are zeroed, 64-byte aligned, between guard pages, and never in a program's heap; a freed object is
// kept for the next of its size, so that threads that come and go leave memory flat.
#pragma once

#include "src/base/compiler.h"

// An object of at most MI_META_SIZE_MAX bytes, which are zero; NULL when the system has no memory. Thread-safe.
void* _mi_meta_zalloc(size_t size);

// Gives an object back; `size` is what it was made with. Thread-safe.
void _mi_meta_free(void* p, size_t size);

// The same for one of which only the first `dirty` bytes hold something else than zeroes: whoever is given it next does not touch
// the others either.
void _mi_meta_free_part(void* p, size_t size, size_t dirty);

// Whether an object may begin at p, of whatever size: an address elsewhere is none, for certain. Takes no lock.
bool _mi_meta_may_be(const void* p);

enum { MI_META_SIZE_MAX = 16 * 1024 };

// The lock behind both, for the fork handlers.
void _mi_meta_fork_prepare(void);
void _mi_meta_fork_release(bool in_child);
