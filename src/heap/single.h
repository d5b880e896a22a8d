// Owns: blocks that are a page by themselves: larger than any class, or aligned beyond a slice.
// May include: base, sys, region, heap.
// Called by: heap, alloc.
// Invariants: a single is never owned; whoever frees it claims it, and a second claim fails.
#pragma once

#include "hardening/large-layout.h"
#include "src/heap/pin.h"

enum {
  // Blocks aligned beyond this get memory of their own: an arena would have to skip too much.
  MI_SINGLE_ARENA_ALIGN_MAX = 32 * MI_MIB,
  // From this size on, a block that has to move takes its OS pages along instead of copying them.
  MI_SINGLE_MOVE_MIN = 1 * MI_MIB,
};

// Any number, unpredictable where the profile places or forgets singles at random.
uint64_t _mi_single_random(void);

// Where a block lies in a run of slices; beyond a slice of alignment, in one that is aligned where the block begins.
mi_large_layout_t _mi_single_layout(size_t size, size_t align);

// Fills in what is the same for every single; arena, slices, start and memory_is_zero are set.
void _mi_single_init(mi_page_t* page, const mi_large_layout_t* layout);

// Makes what lies before and behind the block inaccessible, as far as the system allows. `grows`: in a while in which many
// blocks grow, only what lies before it.
void _mi_single_guard(mi_page_t* page, bool grows);

// A single in memory of its own; entered everywhere. NULL: no memory.
mi_page_t* _mi_single_new_from_os(const mi_theap_t* theap, size_t size, size_t align);

// The same at a place in the run that is given, without or with guards; `align`: of the run.
mi_page_t* _mi_single_new_at(const mi_theap_t* theap, const mi_large_layout_t* layout, size_t align);

// Unmaps it. Out of the page map already.
void _mi_single_release_to_os(mi_page_t* page);

// The first half of that: its mapping and its guards are the caller's to give back.
mi_os_block_t _mi_single_part_with_os(mi_page_t* page);

// The single with memory of its own that holds p.
mi_page_t* _mi_single_of(const void* p);

// Whether such a single started at p not long ago.
bool _mi_single_was(const void* p);

// Frees a single. False: it has been freed already.
bool _mi_single_free(mi_page_t* page);

// The same for one whose memory is not, or no more, that of a block: there is nothing to check.
void _mi_single_drop(mi_page_t* page);

// A larger single with the content of `page`, whose OS pages move there; the old one is gone. NULL: not possible here,
// nothing has changed. What lies beyond the old size holds zeroes.
mi_page_t* _mi_single_move(mi_page_t* page, size_t size);

// Calls `visit` for each single with memory of its own, under their lock, until it returns false.
void _mi_single_visit(bool (*visit)(mi_page_t* page, void* arg), void* arg);

// Pins the single with memory of its own that follows a pinned one in the list, or the first one; NULL: there is none. It is
// there as long as it is pinned; *in_use: and has not been given up.
mi_page_t* _mi_single_next_pinned(const mi_page_t* page, mi_pin_t* pin, bool* in_use);

void _mi_singles_fork_prepare(void);
void _mi_singles_fork_release(bool in_child);
