// Owns: arenas that the program asks for: of memory it lends, of reserved memory, and of huge OS pages.
// May include: base, sys, region.
// Called by: heap, api.
// Invariants: what is refused has been said in a line, and leaves nothing behind.
#pragma once

#include "src/region/arena.h"

// Memory that the program lends.
typedef struct mi_lent_memory_s {
  void* start;
  size_t size;
  bool is_committed;
  bool is_pinned;
  bool is_zero;
  bool is_exclusive;
  int numa_node;
  mi_commit_fun_t* commit_fun;
  void* commit_arg;
} mi_lent_memory_t;

// Makes an arena of the whole slices in the memory. NULL: it has none, it overlaps memory that is ours already, its addresses are
// beyond the page map, or there is no memory for metadata.
mi_arena_t* _mi_arena_manage(const mi_lent_memory_t* memory);

// Makes an arena of at least `size` bytes of the system's memory, in large OS pages if those are allowed and there. NULL: none.
mi_arena_t* _mi_arena_reserve(size_t size, bool commit, bool allow_large, bool exclusive);

// Makes an arena of as many of `count` huge OS pages as there are and can be had in so many milliseconds, 0 for any time, on a
// node unless that is negative. *got: how many. NULL: none.
mi_arena_t* _mi_arena_reserve_huge(size_t count, int numa_node, int64_t timeout_ms, bool exclusive, size_t* got);

// The same spread over the first `nodes` nodes, 0 for all, an arena on each. How many pages there are in all.
size_t _mi_arenas_reserve_huge(size_t count, size_t nodes, int64_t timeout_ms);

// Makes the arenas that the options ask for, once, as soon as the options say so.
mi_cold void _mi_arenas_start(void);

// A table of all arenas. NULL: to the registered output.
void _mi_arenas_print(mi_output_fun* out, void* arg);
