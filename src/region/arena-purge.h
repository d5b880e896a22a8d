// Owns: giving free slices' memory back to the system at a deadline.
// May include: base, sys, region.
// Called by: region/arena.c only; others see _mi_arenas_purge in arena.h.
// Invariants: memory is purged only while the purger owns the slices, so nobody can be given them meanwhile.
#pragma once

#include "src/region/arena.h"

// Sets the deadline for what is free and pending; with a purge delay of 0, purges now.
void _mi_arena_schedule_purge(mi_arena_t* arena);

// Makes a claimed run free, and its memory pending for the next purge.
void _mi_arena_release_pending(mi_arena_t* arena, size_t index, size_t slices);

// Calls the program's function for a claimed run of an arena that has one. False: refused.
bool _mi_arena_call_program(mi_arena_t* arena, bool commit, size_t index, size_t slices, bool* is_zero);

// Gives the memory behind a claimed and committed run back as far as that can be; it stays claimed. *is_zero: it is certain to
// read zero from now on. False: the system, the program or the kind of arena does not let it.
bool _mi_arena_purge_run(mi_arena_t* arena, size_t index, size_t slices, bool* is_zero);

// Zeroes a claimed and committed run by hand, guards in it taken away. For memory of which a purge does not promise that.
void _mi_arena_wipe(mi_arena_t* arena, size_t index, size_t slices);

// Makes a claimed run free for the next claim.
void _mi_arena_give_back(mi_arena_t* arena, size_t index, size_t slices);

// In a process that may map only so much: gives back the addresses of an arena that nobody uses.
void _mi_arena_vacate_if_unused(mi_arena_t* arena);

// Keeps huge OS pages away from where a small program lives, on systems that give them unasked.
void _mi_arena_advise_huge_pages(mi_arena_t* arena);

void _mi_arena_purge_fork_prepare(void);
void _mi_arena_purge_fork_release(bool in_child);
