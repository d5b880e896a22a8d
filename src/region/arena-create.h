// Owns: what arenas are made of: their memory, their metadata, and what becomes of both.
// May include: base, sys, region.
// Called by: region.
// Invariants: metadata stands in a mapping of its own whoever the memory is from.
#pragma once

#include "src/region/arena.h"

// What an arena is to be. The fields of the same names in mi_arena_t say what they mean.
typedef struct mi_arena_plan_s {
  uint8_t* base;
  size_t slice_count;
  mi_os_block_t os;
  bool commit_lazily;
  bool is_committed;  // all of it, already
  bool is_zero;       // what was not written since
  bool counts_touched;
  bool is_programs;
  bool is_exclusive;
  bool is_lent;
  bool is_pinned;
  size_t os_page_size;
  int numa_node;
  mi_commit_fun_t* commit_fun;
  void* commit_arg;
} mi_arena_plan_t;

// A complete arena of the plan's memory, in no table yet. NULL: no memory for its metadata; the plan's is the caller's still.
mi_arena_t* _mi_arena_create(const mi_arena_plan_t* plan);

// Adds an arena with room for `needed` slices, smaller and smaller down to that; on a node, unless that is negative. Under the
// lock of the table.
bool _mi_arena_add(size_t needed, int numa_node);

// Reserves memory for an arena of exactly so many slices, and fills the plan in. False: the system has none.
bool _mi_arena_plan_reserve(mi_arena_plan_t* plan, size_t slice_count, bool commit, bool large);

// Gives a plan's memory back.
void _mi_arena_plan_release(mi_arena_plan_t* plan);

// Whether slices are chosen at random: not where a limit makes arenas small or charges for what is committed, since gaps
// and metadata here and there would cost what the program needs.
bool _mi_arena_has_room(const mi_arena_t* arena);

// Bytes of one group of an arena with so many slices: one that has no more than a group is charged for its own only.
size_t _mi_arena_group_size(size_t slice_count);

// Bytes of the metadata of an arena with so many slices, without guards.
size_t _mi_arena_meta_size(size_t slice_count);

// Gives the memory of the slices back to whom it is from.
void _mi_arena_release_memory(mi_arena_t* arena);

// Whether this process may map only so much: then address space counts as memory does, and is given back.
bool _mi_arenas_are_limited(void);
