// Owns: the counting of blocks and pages in their heaps, and the reading of all counts.
// May include: base, hardening, sys, region, heap.
// Called by: through heap-stats.h.
// Invariants: a reader changes nothing that another thread writes. What a page adds to its heap's totals it takes off itself
// first, and a reader looks at the heap's first: what is on its way may be missed, and is never seen twice.
#include "src/heap/heap-stats.h"

#include "src/heap/subproc.h"

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

void _mi_theap_count_publish(mi_theap_t* theap) {
  mi_heap_t* const heap = mi_atomic_load_relaxed(&theap->heap);
  if (heap == NULL) {
    return;
  }
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_theap_publish_bin(theap, heap, bin);
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

// The length of page->free, which is at most page->listed. Only by the page's owner, or where it has none. A link that does
// not lead to a free block ends the list.
static uint32_t mi_page_free_length(const mi_page_t* page) {
  if (page->local_free == NULL) {
    return (uint32_t)_mi_min(page->capacity - _mi_page_in_use(page), page->listed);
  }
  uint32_t length = 0;
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
  const uint32_t length = page->free == NULL ? 0 : mi_page_free_length(page);
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

void _mi_page_count_leave(mi_page_t* page) {
  mi_page_hand_in(page);
  _mi_page_note_live(page, _mi_page_live(page));
  mi_heap_t* const heap = page->theap == NULL ? NULL : mi_atomic_load_relaxed(&page->theap->heap);
  if (heap != NULL) {
    mi_theap_publish_bin(page->theap, heap, page->bin);
  }
}

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
    _mi_page_count_leave(page);
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

// The end of a heap

// A deleted heap's counts of what there is become its successor's.
static void mi_stat_inherit(mi_stat_t* from, mi_stat_t* to) {
  const int64_t current = mi_atomic_exchange_relaxed(&from->current, 0);
  if (to != NULL && current != 0) {
    _mi_stat_increase(to, (size_t)current);
  }
}

// `above`: where what nobody inherits is taken off.
static void mi_tally_inherit(mi_tally_t* from, mi_tally_t* to, mi_tally_t* above) {
  const int64_t current = mi_atomic_exchange_relaxed(&from->current, 0);
  if (to != NULL) {
    mi_tally_change(to, current);
  } else {
    mi_atomic_sub_relaxed(&above->current, current);
  }
}

void _mi_heap_counts_end(mi_heap_t* heap, mi_heap_t* successor) {
  mi_heap_counts_t* const from = &heap->counts;
  mi_heap_counts_t* const to = successor == NULL ? NULL : &successor->counts;
  mi_heap_counts_t* const above = _mi_heap_counts_above(heap);
#define MI_STATS_ROW(field, unit, label) mi_stat_inherit(&from->field, to == NULL ? NULL : &to->field);
  MI_STATS_HEAP_COUNTS(MI_STATS_ROW)
  MI_STATS_ROW(malloc_huge, , )
#undef MI_STATS_ROW
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    mi_stat_inherit(&from->page_bins[i], to == NULL ? NULL : &to->page_bins[i]);
    mi_tally_inherit(&from->blocks[i], to == NULL ? NULL : &to->blocks[i], &above->blocks[i]);
  }
  mi_tally_inherit(&from->malloc_normal, to == NULL ? NULL : &to->malloc_normal, &above->malloc_normal);
  mi_tally_inherit(&from->malloc_requested, to == NULL ? NULL : &to->malloc_requested, &above->malloc_requested);
}

// Reading

typedef struct mi_blocks_seen_s {
  const mi_heap_t* heap;    // NULL: of all heaps
  const mi_theap_t* theap;  // NULL: of all theaps
  bool own;                 // only what the calling thread owns
  uintptr_t tid;            // of the calling thread
  int64_t current[MI_STAT_BINS];
  int64_t total[MI_STAT_BINS];
  int64_t bytes;
  int64_t bytes_total;
  int64_t pages[MI_STAT_BINS];
} mi_blocks_seen_t;

// The same as _mi_page_in_use, while the page's thread works. The two may be of different moments.
static mi_no_tsan uint32_t mi_page_look_in_use(const mi_page_t* page) {
  const uint32_t used = *(const volatile uint32_t*)&page->used;
  return used - (used > 0 && *(const volatile bool*)&page->retired);
}

// What a page of any thread has in use: read until nobody has collected meanwhile.
static mi_no_tsan uint32_t mi_page_look_live(const mi_page_t* page) {
  enum { MI_LOOKS = 8 };
  if (MI_HAS_QUARANTINE && MI_HAS_LIVE_BITS) {
    return _mi_hard_live_count(page->live);
  }
  uint64_t remote = mi_atomic_load_acquire(&page->remote);
  uint32_t used = 0;
  for (unsigned i = 0; i < MI_LOOKS; i++) {
    used = mi_page_look_in_use(page);
    const uint64_t again = mi_atomic_load_acquire(&page->remote);
    if (_mi_remote_count(again) == _mi_remote_count(remote)) {
      break;
    }
    remote = again;
  }
  const uint32_t freed = _mi_remote_count(remote);
  return used > freed ? used - freed : 0;
}

// How many blocks a page has handed out of which its heap does not know.
static mi_no_tsan int64_t mi_page_look_handed(const mi_page_t* page, bool own) {
  // Acquire pairs with the release in _mi_page_count_refill.
  const int64_t handed = (int64_t)mi_atomic_load_acquire(&page->handed);
  const uint32_t listed = *(const volatile uint16_t*)&page->listed;
  uint32_t length;
  if (own) {
    length = page->free == NULL ? 0 : mi_page_free_length(page);
  } else {
    // Both lists of free blocks together.
    const uint32_t used = mi_page_look_in_use(page);
    const uint32_t capacity = *(const volatile uint32_t*)&page->capacity;
    length = capacity > used ? capacity - used : 0;
  }
  return handed + (listed > length ? listed - length : 0);
}

static mi_no_tsan bool mi_page_look(mi_page_t* page, void* arg) {
  mi_blocks_seen_t* const seen = arg;
  const unsigned bin = *(const volatile uint8_t*)&page->bin;
  // Acquire pairs with the release of a page's making; one that is gone by now is as it was.
  const uintptr_t owner = mi_atomic_load_acquire(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS;
  const bool own = seen->tid != 0 && owner == seen->tid;
  if (bin < MI_BIN_FIRST || bin > MI_BIN_LAST || (seen->own && (!own || (seen->theap != NULL && page->theap != seen->theap)))) {
    return true;
  }
  const int64_t block_size = (int64_t)_mi_bin_block_size(bin);
  const unsigned stat_bin = _mi_stat_bin(bin);
  const int64_t live = mi_page_look_live(page);
  const int64_t handed = mi_page_look_handed(page, own);
  seen->pages[stat_bin]++;
  seen->current[stat_bin] += live;
  seen->total[stat_bin] += handed;
  seen->bytes += live * block_size;
  seen->bytes_total += handed * block_size;
  return true;
}

// What counts say, and what pages know beyond that.
static void mi_counts_look(const mi_heap_counts_t* counts, mi_blocks_seen_t* seen) {
  // Acquire pairs with the release in mi_counts_add.
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    seen->total[i] = mi_atomic_load_acquire(&counts->blocks[i].total);
  }
  seen->bytes_total = mi_atomic_load_acquire(&counts->malloc_normal.total);
  const bool by_calls = MI_STATS_LEVEL >= 2;
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    if (by_calls || i == MI_STAT_BIN_ZERO_SIZE || i == MI_STAT_BIN_HUGE) {
      seen->current[i] = mi_atomic_load_relaxed(&counts->blocks[i].current);
    }
  }
  if (by_calls) {
    seen->bytes = mi_atomic_load_relaxed(&counts->malloc_normal.current);
  } else {
    _mi_heap_visit_arena_pages(seen->heap, &mi_page_look, seen);
  }
}

static void mi_fill_requested(mi_heap_counts_t* counts, mi_stats_t* stats) {
  mi_tally_t* const requested = &counts->malloc_requested;
  if (MI_STATS_LEVEL >= 2) {
    stats->malloc_requested = _mi_tally_view(requested, mi_atomic_load_relaxed(&requested->current), mi_atomic_load_relaxed(&requested->total));
    return;
  }
  // There was at least what there was of either.
  _mi_stat_raise(&requested->peak, stats->malloc_normal.peak);
  _mi_stat_raise(&requested->peak, stats->malloc_huge.peak);
  stats->malloc_requested = _mi_tally_view(requested, stats->malloc_normal.current + stats->malloc_huge.current,
                                           stats->malloc_normal.total + stats->malloc_huge.total);
}

static void mi_fill_normal_count(mi_stats_t* stats) {
  for (size_t i = MI_STAT_BIN_ZERO_SIZE; i < MI_STAT_BIN_HUGE; i++) {
    stats->malloc_normal_count.total += stats->malloc_bins[i].total;
  }
}

// Not where the program is called with the lock held, which each thread's theaps are walked under.
static void mi_publish_own(void) {
  if (!_mi_heaps_are_busy_here()) {
    _mi_thread_each_theap(&_mi_theap_count_publish);
  }
}

void _mi_heap_stats_read(mi_heap_t* heap, mi_stats_t* stats) {
  mi_stats_init(stats);
  mi_publish_own();
  mi_heap_counts_t* const counts = heap != NULL ? &heap->counts : &_mi_stats.all_heaps;
  mi_blocks_seen_t seen = {.heap = heap, .tid = _mi_tls.own_tid};
  mi_counts_look(counts, &seen);
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    stats->malloc_bins[i] = _mi_tally_view(&counts->blocks[i], seen.current[i], seen.total[i]);
  }
  stats->malloc_normal = _mi_tally_view(&counts->malloc_normal, seen.bytes, seen.bytes_total);
  _mi_stats_fill_counts(stats, counts);
  mi_fill_normal_count(stats);
  mi_fill_requested(counts, stats);
  if (heap == NULL) {
    _mi_stats_fill(stats);
  }
}

static mi_stat_count_t mi_count_of_thread(int64_t current, int64_t total) {
  total = total < current ? current : total;
  return (mi_stat_count_t){.total = total, .peak = current, .current = current};
}

static void mi_theap_look_handed(const mi_theap_t* theap, mi_blocks_seen_t* seen) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    seen->total[_mi_stat_bin(bin)] += theap->counts.bins[bin].handed;
    seen->bytes_total += theap->counts.bins[bin].handed * (int64_t)_mi_bin_block_size(bin);
  }
}

void _mi_theap_stats_read(const mi_theap_t* theap, mi_stats_t* stats) {
  mi_stats_init(stats);
  mi_blocks_seen_t seen = {.theap = theap, .own = true, .tid = _mi_tls.own_tid};
  const mi_heap_t* const heap = theap == NULL ? NULL : mi_atomic_load_relaxed(&theap->heap);
  for (const mi_theap_t* each = _mi_tls.own; each != NULL; each = each->next_in_thread) {
    if (each == theap || (theap == NULL && mi_atomic_load_relaxed(&each->heap) != NULL)) {
      mi_theap_look_handed(each, &seen);
      stats->theaps.current++;
    }
  }
  _mi_heap_visit_arena_pages(heap, &mi_page_look, &seen);
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    stats->malloc_bins[i] = mi_count_of_thread(seen.current[i], seen.total[i]);
    stats->page_bins[i] = mi_count_of_thread(seen.pages[i], seen.pages[i]);
    stats->pages.current += seen.pages[i];
  }
  stats->pages = mi_count_of_thread(stats->pages.current, stats->pages.current);
  stats->theaps = mi_count_of_thread(stats->theaps.current, stats->theaps.current);
  stats->malloc_normal = mi_count_of_thread(seen.bytes, seen.bytes_total);
  stats->malloc_requested = stats->malloc_normal;
  mi_fill_normal_count(stats);
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

// What is left of a count without another, which is a part of it.
static void mi_count_subtract(mi_stat_count_t* count, const mi_stat_count_t* part) {
  count->total -= part->total;
  count->current -= part->current;
}

static void mi_counter_subtract(mi_stat_counter_t* counter, const mi_stat_counter_t* part) { counter->total -= part->total; }

// Heaps count on meanwhile, and nobody knows what there was at most of a difference.
static void mi_count_settle(mi_stat_count_t* count, const mi_stat_count_t* unused) {
  (void)unused;
  count->current = count->current < 0 ? 0 : count->current;
  count->total = count->total < count->current ? count->current : count->total;
  count->peak = count->peak > count->total ? count->total : count->peak;
  count->peak = count->peak < count->current ? count->current : count->peak;
}

static void mi_counter_settle(mi_stat_counter_t* counter, const mi_stat_counter_t* unused) {
  (void)unused;
  counter->total = counter->total < 0 ? 0 : counter->total;
}

// Does something to every field that is of heaps, with the same field of another struct.
static void mi_stats_each(mi_stats_t* stats, const mi_stats_t* other, void (*count)(mi_stat_count_t*, const mi_stat_count_t*),
                          void (*counter)(mi_stat_counter_t*, const mi_stat_counter_t*)) {
#define MI_STATS_ROW(field, unit, label) count(&stats->field, &other->field);
  MI_STATS_HEAP_COUNTS(MI_STATS_ROW)
  MI_STATS_ROW(malloc_normal, , )
  MI_STATS_ROW(malloc_huge, , )
  MI_STATS_ROW(malloc_requested, , )
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) counter(&stats->field, &other->field);
  MI_STATS_HEAP_COUNTERS(MI_STATS_ROW)
  MI_STATS_ROW(malloc_normal_count, , )
  MI_STATS_ROW(malloc_huge_count, , )
#undef MI_STATS_ROW
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    count(&stats->malloc_bins[i], &other->malloc_bins[i]);
    count(&stats->page_bins[i], &other->page_bins[i]);
  }
  for (size_t i = 0; i < MI_CBIN_COUNT; i++) {
    count(&stats->chunk_bins[i], &other->chunk_bins[i]);
  }
}

static void mi_count_add(mi_stat_count_t* count, const mi_stat_count_t* part) {
  count->total += part->total;
  count->current += part->current;
  // Of what there was at once in several heaps only this is known.
  count->peak = count->peak < part->peak ? part->peak : count->peak;
}

static void mi_counter_add_part(mi_stat_counter_t* counter, const mi_stat_counter_t* part) { counter->total += part->total; }

typedef struct mi_subproc_reading_s {
  const mi_heap_t* main;
  bool exclusive;
  mi_stats_t* stats;
} mi_subproc_reading_t;

// The main sub-process has what is the process's, less the others; another one has what its heaps have.
static bool mi_subproc_read_visit(mi_heap_t* heap, void* arg) {
  const mi_subproc_reading_t* const reading = arg;
  const bool inside = _mi_heap_main_of(heap) == reading->main;
  const bool of_process = reading->main == _mi_heap_main();
  mi_stats_t part;
  if (of_process && (reading->exclusive || !inside)) {
    _mi_heap_stats_read(heap, &part);
    mi_stats_each(reading->stats, &part, &mi_count_subtract, &mi_counter_subtract);
  } else if (!of_process && inside && !reading->exclusive) {
    _mi_heap_stats_read(heap, &part);
    mi_stats_each(reading->stats, &part, &mi_count_add, &mi_counter_add_part);
  }
  return true;
}

bool _mi_subproc_stats_read(uintptr_t id, bool exclusive, mi_stats_t* stats) {
  const bool held = _mi_heaps_are_busy_here();
  if (!held) {
    _mi_heaps_lock();
  }
  mi_subproc_reading_t reading = {_mi_subproc_find(id), exclusive, stats};
  if (!held) {
    _mi_heaps_unlock();
  }
  if (reading.main == NULL) {
    return false;
  }
  if (reading.main == _mi_heap_main()) {
    _mi_heap_stats_read(NULL, stats);
  } else {
    mi_stats_init(stats);
    mi_publish_own();
  }
  _mi_heaps_visit(&mi_subproc_read_visit, &reading);
  mi_stats_each(stats, stats, &mi_count_settle, &mi_counter_settle);
  return true;
}

// Reset

static void mi_tally_reset(mi_tally_t* tally, int64_t current, int64_t total) {
  // What pages know beyond the tally they still will.
  mi_atomic_add_relaxed(&tally->total, current - total);
  mi_atomic_store_relaxed(&tally->peak, current);
  mi_atomic_store_relaxed(&tally->shown, current);
}

static void mi_counts_reset(mi_heap_counts_t* counts, const mi_heap_t* heap) {
  mi_blocks_seen_t seen = {.heap = heap, .tid = _mi_tls.own_tid};
  mi_counts_look(counts, &seen);
  for (size_t i = 0; i < MI_STAT_BINS; i++) {
    mi_tally_reset(&counts->blocks[i], seen.current[i], seen.total[i]);
    _mi_stat_reset(&counts->page_bins[i]);
  }
  for (size_t i = 0; i < MI_CBIN_COUNT; i++) {
    mi_atomic_store_relaxed(&counts->kind_peaks[i], 0);
  }
  mi_tally_reset(&counts->malloc_normal, seen.bytes, seen.bytes_total);
  const int64_t requested = mi_atomic_load_relaxed(&counts->malloc_requested.current);
  mi_tally_reset(&counts->malloc_requested, requested, mi_atomic_load_relaxed(&counts->malloc_requested.total));
  _mi_stat_reset(&counts->malloc_huge);
  mi_atomic_store_relaxed(&counts->malloc_huge_count, 0);
#define MI_STATS_ROW(field, unit, label) _mi_stat_reset(&counts->field);
  MI_STATS_HEAP_COUNTS(MI_STATS_ROW)
#undef MI_STATS_ROW
#define MI_STATS_ROW(field, unit, label) mi_atomic_store_relaxed(&counts->field, 0);
  MI_STATS_HEAP_COUNTERS(MI_STATS_ROW)
#undef MI_STATS_ROW
}

void _mi_heap_count_merge(mi_heap_t* heap) {
  mi_publish_own();
  mi_counts_reset(&heap->counts, heap);
}

static bool mi_heap_reset_visit(mi_heap_t* heap, void* arg) {
  (void)arg;
  mi_counts_reset(&heap->counts, heap);
  return true;
}

void _mi_heap_stats_reset(void) {
  mi_publish_own();
  _mi_heaps_visit(&mi_heap_reset_visit, NULL);
  mi_counts_reset(&_mi_stats.all_heaps, NULL);
  _mi_stats_reset();
}
