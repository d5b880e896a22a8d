// Owns: slices of freed large blocks that nobody gets for a while.
// May include: base, hardening, prim, sys, region.
// Called by: region, heap.
// Invariants: held slices are claimed by the quarantine; what is held is bounded by hardening/large-quarantine.h; the memory
// behind it goes back to the system at the arena's next purge at the latest.
#pragma once

#include "src/region/arena.h"

// Takes the claimed slices of a freed block over: makes them inaccessible, holds them, and gives up others in their place.
// Where not all can be made inaccessible at once, the OS pages from `first` on, an offset in the run, up to `first_end` are.
// `end`: where the block ends in the run, if all the rest of it holds zeroes, else 0. `random`: any number.
void _mi_arena_hold(mi_arena_t* arena, size_t index, size_t slices, size_t first, size_t first_end, size_t end, uint64_t random);

// Looks through those slices of a claimed run, without guards but for its last OS page, that were cleared when they were
// freed, and reports what was written since. Returns how many there are; they hold zeroes.
size_t _mi_arena_take_wiped(mi_arena_t* arena, size_t index, size_t slices);

// Gives back the memory behind what is held in the arena, and makes the rest of it inaccessible.
void _mi_arena_held_purge(mi_arena_t* arena);

// Gives up everything held. For when addresses run out.
void _mi_arena_held_release(void);

// How many slices are held.
size_t _mi_arena_held_slices(void);

// The arenas are gone.
void _mi_arena_held_forget(void);

void _mi_arena_held_fork_prepare(void);
void _mi_arena_held_fork_release(bool in_child);
