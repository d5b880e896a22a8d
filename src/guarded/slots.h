// Owns: slots: runs of slices that guarded blocks lie in, inaccessible but for the block; and which of them is used next.
// May include: base, sys, region.
// Called by: heap.
// Invariants: a slot is inaccessible from its first moment to its last, but for what is opened; one that is given back stays
// so until others have been given back after it, and is used again in no order that could be foreseen.
#pragma once

#include "src/region/arena.h"

enum {
  // What waits: at most so many slots, of so many slices together.
  MI_SLOTS_HELD_MAX = 4096,
  MI_SLOTS_HELD_SLICES = MI_INTPTR_SIZE == 8 ? 8192 : 1024,
  // Slots that are made at a time: one call makes them all inaccessible.
  MI_SLOTS_FRESH = 8,
};

// A slot of `slices` slices, of which number `lead` starts at a multiple of `align`. `random`: any number. run->is_zero: what
// is opened in it reads zero. False: no memory, or nothing can be made inaccessible there.
bool _mi_slot_take(const mi_arena_source_t* source, size_t slices, size_t lead, size_t align, uint64_t random, mi_run_t* run);

// Makes the bytes of the slot from `first` up to `end`, whole OS pages, accessible. False: no mapping is left for it.
bool _mi_slot_open(const mi_run_t* slot, size_t first, size_t end);

// Makes them inaccessible again; what they held is gone. Nothing is certain if the system refuses, but that the slot is not to
// wait then.
bool _mi_slot_close(const mi_run_t* slot, size_t first, size_t end);

// Gives a slot back. Not `closed`: something in it is accessible.
void _mi_slot_put(const mi_run_t* slot, bool closed, uint64_t random);

// The same for a block's own mapping, in which its slot begins at `start`: inaccessible until a few others have been given back.
void _mi_slot_put_os(const mi_os_block_t* os, void* start);

// Gives up all that waits. For when addresses run out.
void _mi_slots_release(void);

// How many slots wait.
size_t _mi_slots_held(void);

// The arenas are gone.
void _mi_slots_forget(void);

void _mi_slots_fork_prepare(void);
void _mi_slots_fork_release(bool in_child);
