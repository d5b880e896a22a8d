// Owns: inaccessible OS pages within arenas, and the bits that tell of them.
// May include: base, hardening, sys, region.
// Called by: region, heap.
// Invariants: an OS page that is inaccessible lies in a slice whose `sealed` bit is set, or is the last of one whose
// `guarded` bit is set; a slice with neither is accessible. The bits change only while the slice is claimed, and outlast the
// claim: guards stay until somebody else's blocks come to lie there.
#pragma once

#include "src/region/arena.h"
#include "src/sys/guard.h"

// Makes the last OS page of a claimed slice inaccessible, if it is not so already.
void _mi_arena_guard_last(mi_arena_t* arena, size_t index);

// Makes the bytes from `from` up to `to` of the arena inaccessible, in claimed slices and accessible but for the last OS page
// of a slice. False: refused.
bool _mi_arena_guard(mi_arena_t* arena, size_t from, size_t to);

// Makes the bytes from `from` up to `to` of the arena accessible, in claimed slices. Of the slices that are not wholly in the
// range the bits stay. False: no mapping is left for it, nothing is certain.
bool _mi_arena_unguard(mi_arena_t* arena, size_t from, size_t to);

// Makes a run that was claimed accessible, but for its last OS page where it is guarded and the run will hold no block there.
bool _mi_arena_unguard_run(mi_arena_t* arena, size_t index, size_t slices);

// The guards of these slices went with their memory.
void _mi_arena_forget_guards(mi_arena_t* arena, size_t index, size_t slices);

// Where guards are mappings of their own: makes all free slices accessible, so that mappings are left for memory.
void _mi_arena_drop_free_guards(void);
