// Owns: the table of arenas: their numbers, how they come into it, and what the process does to all of them.
// May include: base, sys, region.
// Called by: region; others see arena.h.
// Invariants: the table only grows, so that an arena keeps its number; what is in it is complete.
#pragma once

#include "src/region/arena.h"
#include "src/sys/random.h"

// The lock of creation, a leaf lock but for those of the system's memory. No function of the program's is called under it.
void _mi_arenas_lock(void);
void _mi_arenas_unlock(void);

// How many there are.
size_t _mi_arenas_count(void);

// Whether there is one whose memory is of a certain node.
bool _mi_arenas_have_nodes(void);

// Under the lock: the random numbers of creation.
mi_random_t* _mi_arenas_random(void);

// Under the lock: whether there is room for one more.
bool _mi_arenas_have_room(void);

// Under the lock: enters a complete arena, for everyone to claim from.
void _mi_arenas_publish(mi_arena_t* arena);

// A random number below `bound`.
size_t _mi_arena_choose(size_t bound);
