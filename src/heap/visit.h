// Owns: visits of the live blocks of heaps.
// May include: base, hardening, region, heap; the public header for the visitor's type.
// Called by: api.
// Invariants: no lock is held while the program's visitor runs; what it is told of cannot lose its memory meanwhile.
#pragma once

#include "mimalloc.h"
#include "src/heap/heap.h"

// Which pages are visited, and how.
typedef struct mi_visit_s {
  const mi_heap_t* heap;  // NULL: of every heap
  const mi_heap_t* main;  // of this main heap and those that belong to it; NULL: of any
  uintptr_t tid;          // that this thread had last; 0: any
  int tag;                // of heaps with this tag; -1: any
  bool abandoned;         // that no thread owns
  bool blocks;            // each block, too
  mi_block_visit_fun* visitor;
  void* arg;
} mi_visit_t;

// Calls `visit` for the heap's pages in arenas, those of all heaps for NULL. A page is in use when the call begins, and does not
// become another one during it, unless there are too many visits at once.
void _mi_visit_arena_pages(const mi_heap_t* heap, bool (*visit)(mi_page_t* page, void* arg), void* arg);

// Adds the live blocks of a heap, and their usable bytes.
void _mi_visit_sum(const mi_heap_t* heap, size_t* blocks, size_t* bytes);

// Calls the visitor for each page, and each live block in it. False: it said so, or there are too many visits at once.
bool _mi_visit(const mi_visit_t* visit);
