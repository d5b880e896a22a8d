// Owns: what pages and theaps count of blocks, and how it comes to their heap and the process.
// May include: base, sys, region, heap.
// Called by: heap, api.
// Invariants: the fast paths count nothing. A page knows how many blocks were in its list when that last changed other than
// by the fast paths; what is missing there has been handed out. Counts of a heap are counts of the process as well.
#pragma once

#include "src/heap/theap.h"
#include "src/sys/stats.h"

// Where that what a heap counts is counted too.
mi_inline mi_heap_counts_t* _mi_heap_counts_above(const mi_heap_t* heap) {
  (void)heap;
  return &_mi_stats.all_heaps;
}

#define mi_heap_stat_increase(heap, field, n)                      \
  do {                                                             \
    mi_heap_t* const counting = (heap);                            \
    _mi_stat_increase(&counting->counts.field, n);                 \
    _mi_stat_increase(&_mi_heap_counts_above(counting)->field, n); \
  } while (0)

#define mi_heap_stat_decrease(heap, field, n)                      \
  do {                                                             \
    mi_heap_t* const counting = (heap);                            \
    _mi_stat_decrease(&counting->counts.field, n);                 \
    _mi_stat_decrease(&_mi_heap_counts_above(counting)->field, n); \
  } while (0)

#define mi_heap_counter_add(heap, field, n)                      \
  do {                                                           \
    mi_heap_t* const counting = (heap);                          \
    _mi_counter_add(&counting->counts.field, n);                 \
    _mi_counter_add(&_mi_heap_counts_above(counting)->field, n); \
  } while (0)

// The heap that a page counts in.
mi_inline mi_heap_t* _mi_page_heap(const mi_page_t* page) {
  mi_heap_t* const heap = mi_atomic_load_relaxed(&page->heap);
  return mi_likely(heap != NULL) ? heap : &_mi_heap_main_instance;
}

// How many blocks of a page of this thread are in use.
mi_inline uint32_t _mi_page_live(const mi_page_t* page) {
  // What waits in a quarantine is still `used`.
  if (MI_HAS_QUARANTINE && MI_HAS_LIVE_BITS) {
    return _mi_hard_live_count(page->live);
  }
  return _mi_page_in_use(page) - _mi_remote_count(mi_atomic_load_relaxed(&page->remote));
}

// page->free has run out, and gets `count` blocks. The order is for readers: they may miss blocks for a moment, and never
// see one twice.
mi_inline void _mi_page_count_refill(mi_page_t* page, uint32_t count) {
  const uint16_t before = page->listed;
  page->listed = (uint16_t)count;
  // Release pairs with the acquire in mi_page_look. Nobody else writes it, so this need not be one operation.
  mi_atomic_store_release(&page->handed, mi_atomic_load_relaxed(&page->handed) + before);
}

// The owner's lists were joined, with `moved` blocks of page->local_free among them: page->free has all free blocks now.
void _mi_page_count_joined(mi_page_t* page, uint32_t moved);

// The length of page->free, which is at most page->listed. Only by the page's owner, or where it has none. A link that does
// not lead to a free block ends the list.
uint32_t _mi_page_free_length(const mi_page_t* page);

// The same where that takes no walk through the list; else UINT32_MAX.
mi_inline uint32_t _mi_page_free_length_at_once(const mi_page_t* page) {
  if (MI_HAS_OUTLINE_LISTS) {
    return (uint32_t)page->stocked;
  }
  return page->local_free == NULL ? (uint32_t)_mi_min(page->capacity - _mi_page_in_use(page), page->listed) : UINT32_MAX;
}

// The page, of the calling thread's, has so many blocks in use, or is about to.
void _mi_page_note_live(mi_page_t* page, uint32_t live);

// The page leaves its theap, which may be NULL, or ceases to be: what it has counted comes to its heap.
void _mi_page_count_leave(mi_page_t* page);

// The same of a page whose heap is destroyed with it: its blocks count no more as in use.
void _mi_page_count_end(mi_page_t* page);

// A page was made, with its class and size, and is about to go.
void _mi_page_count_new(mi_page_t* page);
void _mi_page_count_gone(mi_page_t* page);

// The size of a single has changed; its request, where calls count.
void _mi_single_count(mi_page_t* page);
void _mi_single_count_request(mi_page_t* page);

// So many blocks more, or fewer, are in use, of a bin whose blocks are counted one by one.
void _mi_heap_count_blocks(mi_heap_t* heap, unsigned stat_bin, int64_t delta);

// A block of a class is handed out (1) or comes back (-1), where calls count.
void _mi_page_count_call(const mi_page_t* page, int64_t delta, size_t request);

// The request of a block in use becomes another, where calls count.
void _mi_heap_count_request(mi_heap_t* heap, size_t before, size_t after);

// What the theap has noted comes to its heap.
void _mi_theap_count_publish(mi_theap_t* theap);

// A heap ends: what it has belongs to `successor`, or ceases to be. What it had counted beyond that is added to `kept`, which
// may be NULL.
void _mi_heap_counts_end(mi_heap_t* heap, mi_heap_t* successor, mi_stats_t* kept);

// The memory of a heap that has ended becomes the next one: nothing is counted of that.
void _mi_heap_counts_clear(mi_heap_t* heap);

// Reads the statistics of a heap; NULL: of the process.
void _mi_heap_stats_read(mi_heap_t* heap, mi_stats_t* stats);

// Reads what the calling thread has of `theap`, its own; NULL: of all its theaps.
void _mi_theap_stats_read(const mi_theap_t* theap, mi_stats_t* stats);

// What the theap, of the calling thread, has counted so far is its heap's alone from now on.
void _mi_theap_count_merge(mi_theap_t* theap);

// What a heap has counted so far is its sub-process's alone from now on.
void _mi_heap_count_merge(mi_heap_t* heap);

// Reads the statistics of the sub-process with that number, 0 for the main one; `exclusive`: without what its heaps count.
// The main one has all the counts of the process but for the heaps of other sub-processes; each of those what its heaps have.
// False: there is none of that number.
bool _mi_subproc_stats_read(uintptr_t id, bool exclusive, mi_stats_t* stats);

// Starts counting anew, in the process and in all its heaps.
void _mi_heap_stats_reset(void);
