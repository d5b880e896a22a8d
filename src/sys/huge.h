// Owns: reservations in huge OS pages that the administrator set aside, and the nodes of memory.
// May include: base, prim, sys.
// Called by: region.
// Invariants: a huge page is used only when it is there: what the system has not is got in smaller pages, or not at all.
#pragma once

#include "src/sys/os.h"

#define MI_HUGE_PAGE_SIZE ((size_t)1 << 30)
#define MI_LARGE_OS_PAGE_SIZE ((size_t)1 << 21)

// How many nodes of memory there are to choose from: option use_numa_nodes, else as many as the machine has, which the first
// call asks for.
size_t _mi_os_numa_count(void);

// The number of the node that the calling thread runs on, below that. No system call where there is one only.
int _mi_os_numa_node(void);

// Reserves `size` bytes, a multiple of MI_LARGE_OS_PAGE_SIZE, in such pages. NULL: the system has not so many to spare.
void* _mi_os_reserve_large(size_t size, int numa_node, mi_os_block_t* os);

// Reserves up to `count` huge pages of MI_HUGE_PAGE_SIZE bytes one behind another, each in large pages where the system has
// no huge one, and as many as it gets in about `timeout_ms` milliseconds, 0 for no limit; one at least is tried. *got: how
// many there are, *in_large: how many of them in large pages. NULL: none.
void* _mi_os_reserve_huge(size_t count, int numa_node, int64_t timeout_ms, mi_os_block_t* os, size_t* got, size_t* in_large);
