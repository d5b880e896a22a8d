// Owns: the counting of blocks and pages in their heaps.
// May include: base, hardening, sys, region, heap.
// Called by: through heap-stats.h.
// Invariants: a reader changes nothing that another thread writes. What a page adds to its heap's totals it takes off itself
// first, and a reader looks at the heap's first: what is on its way may be missed, and is never seen twice.
#include "src/heap/heap-stats.h"

#include <string.h>

#include "src/heap/block.h"

enum {
  // So many bytes in blocks of a class a theap notes before its heap is told.
  MI_NOTED_BYTES_MAX = 32 * MI_KIB,
};

// What a count of blocks changes by, and how much more there was in between than before.
typedef struct mi_change_s {
  unsigned bin;
  int64_t block_size;
  int64_t delta;
  int64_t high;
} mi_change_t;

static mi_change_t mi_change(unsigned bin, int64_t delta, int64_t high) {
  return (mi_change_t){bin, (int64_t)_mi_bin_block_size(bin), delta, high};
}

static void mi_counts_note(mi_heap_counts_t* counts, const mi_change_t* change) {
  _mi_tally_note(&counts->blocks[_mi_stat_bin(change->bin)], change->delta, change->high);
  _mi_tally_note(&counts->malloc_normal, change->delta * change->block_size, change->high * change->block_size);
}

static void mi_heap_note(mi_heap_t* heap, mi_change_t change) {
  mi_counts_note(&heap->counts, &change);
  mi_counts_note(_mi_heap_counts_above(heap), &change);
}

static void mi_counts_add(mi_heap_counts_t* counts, const mi_change_t* change) {
  // Release pairs with the acquire in mi_counts_look: who sees this does not see it in the page any more.
  mi_atomic_add_acq_rel(&counts->blocks[_mi_stat_bin(change->bin)].total, change->delta);
  mi_atomic_add_acq_rel(&counts->malloc_normal.total, change->delta * change->block_size);
}

static void mi_heap_add(mi_heap_t* heap, mi_change_t change) {
  mi_counts_add(&heap->counts, &change);
  mi_counts_add(_mi_heap_counts_above(heap), &change);
}

static void mi_theap_publish_bin(mi_theap_t* theap, mi_heap_t* heap, unsigned bin) {
  const int32_t delta = theap->counts.bins[bin].noted;
  const int32_t high = theap->counts.bins[bin].high;
  if (delta != 0 || high != 0) {
    theap->counts.bins[bin].noted = 0;
    theap->counts.bins[bin].high = 0;
    mi_heap_note(heap, mi_change(bin, delta, high));
  }
}

// What served again from a quarantine was in no list of its page meanwhile.
static void mi_theap_hand_in_again(mi_theap_t* theap, mi_heap_t* heap, unsigned bin) {
  const int64_t again = (int64_t)_mi_quarantine_count_again(theap, bin);
  if (again != 0) {
    theap->counts.bins[bin].handed += again;
    mi_heap_add(heap, mi_change(bin, again, 0));
  }
}

void _mi_theap_count_publish(mi_theap_t* theap) {
  mi_heap_t* const heap = mi_atomic_load_relaxed(&theap->heap);
  if (heap == NULL) {
    return;
  }
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_theap_publish_bin(theap, heap, bin);
    mi_theap_hand_in_again(theap, heap, bin);
  }
  mi_heap_counter_add(heap, page_searches, theap->counts.searched);
  mi_heap_counter_add(heap, page_searches_count, theap->counts.searches);
  mi_heap_counter_add(heap, pages_extended, theap->counts.extended);
  theap->counts.extended = 0;
  theap->counts.searched = 0;
  theap->counts.searches = 0;
}

void _mi_page_note_live(mi_page_t* page, uint32_t live) {
  const int32_t delta = (int32_t)live - (int32_t)page->noted;
  if (MI_STATS_LEVEL >= 2 || delta == 0) {
    return;
  }
  page->noted = live;
  mi_theap_t* const theap = page->theap;
  mi_heap_t* const heap = theap == NULL ? _mi_page_heap(page) : mi_atomic_load_relaxed(&theap->heap);
  if (theap == NULL) {
    mi_heap_note(heap, mi_change(page->bin, delta, delta));
    return;
  }
  const int32_t noted = theap->counts.bins[page->bin].noted += delta;
  if (noted > theap->counts.bins[page->bin].high) {
    theap->counts.bins[page->bin].high = noted;
    if (heap != NULL && (size_t)noted * page->block_size >= MI_NOTED_BYTES_MAX) {
      mi_theap_publish_bin(theap, heap, page->bin);
    }
  }
}

// Pages

void _mi_page_count_joined(mi_page_t* page, uint32_t moved) {
  const uint32_t free = page->capacity - _mi_page_in_use(page);
  const uint32_t before = free > moved ? free - moved : 0;
  const uint32_t handed = page->listed > before ? page->listed - before : 0;
  page->listed = (uint16_t)_mi_min(free, MI_PAGE_GRANULES);
  mi_atomic_store_release(&page->handed, mi_atomic_load_relaxed(&page->handed) + handed);
}

uint32_t _mi_page_free_length(const mi_page_t* page) {
  uint32_t length = _mi_page_free_length_at_once(page);
  if (length != UINT32_MAX) {
    return length;
  }
  length = 0;
  for (const mi_block_t* block = page->free; block != NULL && length < page->listed; block = _mi_block_next(page, block)) {
    if ((uintptr_t)block - (uintptr_t)page->start >= page->reserved * page->block_size || !_mi_page_may_be_free(page, block)) {
      break;
    }
    length++;
  }
  return length;
}

// The page's totals come to its heap.
static void mi_page_hand_in(mi_page_t* page) {
  const uint32_t length = _mi_page_is_ready(page) ? _mi_page_free_length(page) : 0;
  const int64_t handed = (int64_t)mi_atomic_load_relaxed(&page->handed) + (page->listed > length ? page->listed - length : 0);
  if (handed == 0) {
    return;
  }
  page->listed = (uint16_t)length;
  mi_atomic_store_relaxed(&page->handed, 0);
  if (page->theap != NULL) {
    page->theap->counts.bins[page->bin].handed += handed;
  }
  if (MI_STATS_LEVEL < 2) {
    mi_heap_add(_mi_page_heap(page), mi_change(page->bin, handed, 0));
  }
}

static void mi_page_count_leave_with(mi_page_t* page, uint32_t live) {
  mi_page_hand_in(page);
  _mi_page_note_live(page, live);
  mi_heap_t* const heap = page->theap == NULL ? NULL : mi_atomic_load_relaxed(&page->theap->heap);
  if (heap != NULL) {
    mi_theap_publish_bin(page->theap, heap, page->bin);
  }
}

void _mi_page_count_leave(mi_page_t* page) { mi_page_count_leave_with(page, _mi_page_live(page)); }

void _mi_page_count_end(mi_page_t* page) {
  if (_mi_page_is_single(page)) {
    return;
  }
  // Of another thread, whose theap ends without its counts.
  page->theap = NULL;
  mi_page_hand_in(page);
  page->noted = 0;
}

void _mi_page_count_new(mi_page_t* page) {
  mi_heap_t* const heap = _mi_page_heap(page);
  mi_heap_stat_increase(heap, page_bins[_mi_stat_bin(page->bin)], 1);
  if (page->bin <= MI_BIN_SINGLE) {
    mi_heap_stat_increase(heap, pages, 1);
    mi_heap_stat_increase(heap, page_committed, page->slice_count * MI_SLICE_SIZE);
  }
  if (_mi_page_is_single(page)) {
    page->counted_size = 0;
    page->counted_request = 0;
    mi_heap_counter_add(heap, malloc_huge_count, 1);
    _mi_heap_count_blocks(heap, MI_STAT_BIN_HUGE, 1);
    _mi_single_count(page);
  }
}

void _mi_page_count_gone(mi_page_t* page) {
  mi_heap_t* const heap = _mi_page_heap(page);
  mi_heap_stat_decrease(heap, page_bins[_mi_stat_bin(page->bin)], 1);
  if (page->bin <= MI_BIN_SINGLE) {
    mi_heap_stat_decrease(heap, pages, 1);
    mi_heap_stat_decrease(heap, page_committed, page->slice_count * MI_SLICE_SIZE);
  }
  if (_mi_page_is_single(page)) {
    mi_heap_stat_decrease(heap, malloc_huge, page->counted_size);
    _mi_heap_count_request(heap, page->counted_request, 0);
    _mi_heap_count_blocks(heap, MI_STAT_BIN_HUGE, -1);
  } else if (page->bin <= MI_BIN_LAST) {
    // The live blocks of a page that goes with its heap are still marked, and have been counted with the heap.
    mi_page_count_leave_with(page, 0);
  }
}

void _mi_single_count(mi_page_t* page) {
  mi_heap_t* const heap = _mi_page_heap(page);
  if (page->block_size > page->counted_size) {
    mi_heap_stat_increase(heap, malloc_huge, page->block_size - page->counted_size);
  } else {
    mi_heap_stat_decrease(heap, malloc_huge, page->counted_size - page->block_size);
  }
  page->counted_size = page->block_size;
}

void _mi_single_count_request(mi_page_t* page) {
  _mi_heap_count_request(_mi_page_heap(page), page->counted_request, page->request);
  page->counted_request = page->request;
}

// Calls that count

static void mi_tally_change(mi_tally_t* tally, int64_t delta) {
  _mi_tally_note(tally, delta, delta);
  if (delta > 0) {
    mi_atomic_add_relaxed(&tally->total, delta);
  }
}

void _mi_heap_count_blocks(mi_heap_t* heap, unsigned stat_bin, int64_t delta) {
  mi_tally_change(&heap->counts.blocks[stat_bin], delta);
  mi_tally_change(&_mi_heap_counts_above(heap)->blocks[stat_bin], delta);
}

void _mi_heap_count_request(mi_heap_t* heap, size_t before, size_t after) {
  if (MI_STATS_LEVEL >= 2 && before != after) {
    mi_tally_change(&heap->counts.malloc_requested, (int64_t)after - (int64_t)before);
    mi_tally_change(&_mi_heap_counts_above(heap)->malloc_requested, (int64_t)after - (int64_t)before);
  }
}

void _mi_page_count_call(const mi_page_t* page, int64_t delta, size_t request) {
  mi_heap_t* const heap = _mi_page_heap(page);
  const int64_t bytes = delta * (int64_t)page->block_size;
  _mi_heap_count_blocks(heap, _mi_stat_bin(page->bin), delta);
  mi_tally_change(&heap->counts.malloc_normal, bytes);
  mi_tally_change(&_mi_heap_counts_above(heap)->malloc_normal, bytes);
  _mi_heap_count_request(heap, delta < 0 ? request : 0, delta < 0 ? 0 : request);
}

void _mi_theap_count_merge(mi_theap_t* theap) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    for (mi_page_t* page = theap->queues[bin].first; page != NULL; page = page->next) {
      mi_page_hand_in(page);
    }
    theap->counts.bins[bin].handed = 0;
  }
  _mi_theap_count_publish(theap);
}

// The end of a heap

// What a heap has counted, but for what its successor counts from now on, stays in the totals of its sub-process.
static void mi_count_keep(mi_stat_count_t* kept, const _Atomic(int64_t)* total, const _Atomic(int64_t)* peak, int64_t inherited) {
  kept->total += mi_atomic_load_relaxed(total) - inherited;
  const int64_t most = mi_atomic_load_relaxed(peak);
  kept->peak = most > kept->peak ? most : kept->peak;
}

// A deleted heap's counts of what there is become its successor's.
static void mi_stat_inherit(mi_stat_t* from, mi_stat_t* to, mi_stat_count_t* kept) {
  const int64_t current = mi_atomic_exchange_relaxed(&from->current, 0);
  if (to != NULL && current != 0) {
    _mi_stat_increase(to, (size_t)current);
  }
  mi_count_keep(kept, &from->total, &from->peak, to != NULL ? current : 0);
}

// `above`: where what nobody inherits is taken off. The successor's total comes to hold what there is; of blocks that pages
// know of, only those which they have handed in.
static void mi_tally_inherit(mi_tally_t* from, mi_tally_t* to, mi_tally_t* above, mi_stat_count_t* kept, bool by_pages) {
  const int64_t current = mi_atomic_exchange_relaxed(&from->current, 0);
  const int64_t total = mi_atomic_load_relaxed(&from->total);
  const int64_t passed_on = to == NULL || current < 0 ? 0 : by_pages && total < current ? total
                                                                                        : current;
  if (to == NULL) {
    mi_atomic_sub_relaxed(&above->current, current);
  } else {
    _mi_tally_note(to, current, current);
    mi_atomic_add_relaxed(&to->total, passed_on);
  }
  mi_count_keep(kept, &from->total, &from->peak, passed_on);
}

void _mi_heap_counts_end(mi_heap_t* heap, mi_heap_t* successor, mi_stats_t* kept) {
  mi_heap_counts_t* const from = &heap->counts;
  mi_heap_counts_t* const to = successor == NULL ? NULL : &successor->counts;
  mi_heap_counts_t* const above = _mi_heap_counts_above(heap);
  mi_stats_t nowhere;
  mi_stats_t* const in = kept != NULL ? kept : &nowhere;
  memset(&nowhere, 0, sizeof(nowhere));
#define MI_STATS_ROW(field, unit, label) mi_stat_inherit(&from->field, to == NULL ? NULL : &to->field, &in->field);
  MI_STATS_HEAP_COUNTS(MI_STATS_ROW)
  MI_STATS_ROW(malloc_huge, , )
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) in->field.total += mi_atomic_load_relaxed(&from->field);
  MI_STATS_HEAP_COUNTERS(MI_STATS_ROW)
  MI_STATS_ROW(malloc_huge_count, , )
#undef MI_STATS_ROW
  in->malloc_normal_count.total = 0;
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    mi_stat_inherit(&from->page_bins[i], to == NULL ? NULL : &to->page_bins[i], &in->page_bins[i]);
    mi_tally_inherit(&from->blocks[i], to == NULL ? NULL : &to->blocks[i], &above->blocks[i], &in->malloc_bins[i],
                     MI_STATS_LEVEL < 2 && i != MI_STAT_BIN_ZERO_SIZE && i != MI_STAT_BIN_HUGE);
    in->malloc_normal_count.total += i < MI_STAT_BIN_HUGE ? in->malloc_bins[i].total : 0;
  }
  mi_tally_inherit(&from->malloc_normal, to == NULL ? NULL : &to->malloc_normal, &above->malloc_normal, &in->malloc_normal, MI_STATS_LEVEL < 2);
  mi_tally_inherit(&from->malloc_requested, to == NULL ? NULL : &to->malloc_requested, &above->malloc_requested, &in->malloc_requested, false);
  if (MI_STATS_LEVEL < 2) {
    in->malloc_requested.total = in->malloc_normal.total + in->malloc_huge.total;
  }
}

void _mi_heap_counts_clear(mi_heap_t* heap) {
  // One by one: such a free may count just now.
  mi_counter_t* const counts = (mi_counter_t*)&heap->counts;
  for (size_t i = 0; i < sizeof(heap->counts) / sizeof(*counts); i++) {
    mi_atomic_store_relaxed(&counts[i], 0);
  }
}
