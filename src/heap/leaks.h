// Owns: the report of blocks that the program has not freed.
// May include: nothing.
// Called by: heap.
// Invariants: nothing is allocated; blocks that wait in a quarantine are freed.
#pragma once

// Writes a line with the count of live blocks of all heaps and their bytes, and one for each block. A block's bytes are those that
// may be used, which are those that were asked for where padding is.
void _mi_leaks_print(void);
