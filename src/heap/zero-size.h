// Owns: blocks of no bytes, in inaccessible memory.
// May include: base, heap.
// Called by: heap, alloc.
// Invariants: their pages are never owned and in no queue; MI_BIN_ZERO_SIZE tells them.
#pragma once

#include "src/heap/page.h"

mi_inline bool _mi_page_is_zero_size(const mi_page_t* page) {
  return MI_HAS_ZERO_SIZE && mi_unlikely(page->bin == MI_BIN_ZERO_SIZE);
}

// An address of a block of no bytes such that `offset` beyond it is a multiple of `align`, a power of two. NULL: there is no
// memory, or no such place: an ordinary block is to serve then. In the theap's heap (NULL: the main heap).
void* _mi_zero_size_alloc(const mi_theap_t* theap, size_t align, size_t offset);

// Frees one. False: it is none, or has been freed.
bool _mi_zero_size_free(mi_page_t* page, void* p);

// The heap ends; its blocks of no bytes are another's from now on, or go with it (NULL).
void _mi_zero_size_heap_end(const mi_heap_t* heap, mi_heap_t* successor);

// How many there are of the heap.
size_t _mi_zero_size_heap_count(const mi_heap_t* heap);

// A page of them as it was at some moment.
typedef struct mi_zero_size_view_s {
  uint8_t* start;
  mi_heap_t* heap;
  size_t used;
  uint64_t live[MI_PAGE_GRANULES / 64];
} mi_zero_size_view_t;

// The page of the lowest address beyond view->start. False: there is none.
bool _mi_zero_size_next(mi_zero_size_view_t* view);

// Whether p is a block of no bytes.
bool _mi_zero_size_is_live(const void* p);

// Whether there is any; and the end of all.
bool _mi_zero_size_in_use(void);
void _mi_zero_size_destroy_all(void);

void _mi_zero_size_fork_prepare(void);
void _mi_zero_size_fork_release(bool in_child);
