// Owns: the reading of all counts of blocks and pages, and their beginning anew.
// May include: base, hardening, sys, region, heap.
// Called by: through heap-stats.h.
// Invariants: a reader changes nothing that another thread writes; it looks at a heap's totals before those of its pages, so
// that what is on its way may be missed, and is never seen twice.
#include <string.h>

#include "src/heap/heap-stats.h"
#include "src/heap/subproc.h"
#include "src/heap/visit.h"

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
  if ((MI_HAS_QUARANTINE || MI_HAS_OUTLINE_LISTS) && MI_HAS_LIVE_BITS) {
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
  if (MI_HAS_OUTLINE_LISTS) {
    length = (uint32_t) * (const volatile uintptr_t*)&page->stocked;
  } else if (own) {
    length = _mi_page_is_ready(page) ? _mi_page_free_length(page) : 0;
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
    _mi_visit_arena_pages(seen->heap, &mi_page_look, seen);
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
  _mi_visit_arena_pages(heap, &mi_page_look, &seen);
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
  if (heap->ended != NULL && of_process) {
    mi_stats_each(reading->stats, heap->ended, &mi_count_subtract, &mi_counter_subtract);
  } else if (heap->ended != NULL && inside) {
    mi_stats_each(reading->stats, heap->ended, &mi_count_add, &mi_counter_add_part);
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
  if (heap->ended != NULL) {
    memset(heap->ended, 0, sizeof(*heap->ended));
  }
  return true;
}

void _mi_heap_stats_reset(void) {
  mi_publish_own();
  _mi_heaps_visit(&mi_heap_reset_visit, NULL);
  mi_counts_reset(&_mi_stats.all_heaps, NULL);
  _mi_stats_reset();
}
