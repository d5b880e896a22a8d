// Owns: guarded blocks: singles in a slot of their own, with nothing accessible around them.
// May include: base, hardening, sys, region, guarded, heap.
// Called by: heap, alloc.
// Invariants: a guarded block's usable size is its request; whatever its size becomes, it moves.
#pragma once

#include "src/heap/theap.h"

// A guarded block for a request at a multiple of `align`. `zero`: it holds zeroes. NULL: the theap's settings do not want one
// of that size, or nothing can be guarded now.
mi_cold void* _mi_guarded_alloc(mi_theap_t* theap, size_t size, size_t align, bool zero);

// Reports what was written beside the block as far as it is accessible there.
void _mi_guarded_check(const mi_page_t* page);

// Frees a block that the caller has claimed: it is checked, and inaccessible from now on.
void _mi_guarded_free(mi_page_t* page);

// What is left of its page goes: out of all tables already.
void _mi_guarded_give_back(mi_page_t* page);
