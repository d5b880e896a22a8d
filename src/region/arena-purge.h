// Owns: giving free slices' memory back to the system at a deadline.
// May include: base, sys, region.
// Called by: region/arena.c only; others see _mi_arenas_purge in arena.h.
// Invariants: memory is purged only while the purger owns the slices, so nobody can be given them meanwhile.
#pragma once

#include "src/region/arena.h"

// Sets the deadline for what is free and pending; with a purge delay of 0, purges now.
void _mi_arena_schedule_purge(mi_arena_t* arena);

// Makes a claimed run free for the next claim.
void _mi_arena_give_back(mi_arena_t* arena, size_t index, size_t slices);

// In a process that may map only so much: gives back the addresses of an arena that nobody uses.
void _mi_arena_vacate_if_unused(mi_arena_t* arena);

// Keeps huge OS pages away from where a small program lives, on systems that give them unasked.
void _mi_arena_advise_huge_pages(mi_arena_t* arena);

void _mi_arena_purge_fork_prepare(void);
void _mi_arena_purge_fork_release(bool in_child);
