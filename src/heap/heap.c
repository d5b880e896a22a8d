// Owns: first-class heaps and the list of them.
// May include: base, sys, region, guarded, heap.
// Called by: alloc, api, heap.
// Invariants: mi_heaps.lock is taken before a heap's own lock; it guards which heap a theap belongs to. The memory of an
// ended heap only ever becomes a heap again and keeps its lock, so a thread that was about to lock it finds a lock, and
// finds out under it that its page has moved on.
#include "src/heap/heap.h"

#include <string.h>

#include "src/guarded/slots.h"
#include "src/heap/block.h"
#include "src/heap/guarded.h"
#include "src/heap/heap-stats.h"
#include "src/heap/profiled.h"
#include "src/heap/single.h"
#include "src/heap/subproc.h"
#include "src/heap/visit.h"
#include "src/heap/zero-size.h"
#include "src/prim/prim.h"
#include "src/region/meta.h"
#include "src/sys/deferred.h"
#include "src/sys/log.h"
#include "src/sys/report.h"

mi_heap_t _mi_heap_main_instance = {.id = 1, .numa_node = -1};

static struct {
  mi_lock_t lock;
  mi_heap_t* first;
  mi_heap_t* ended;  // for reuse
  uintptr_t last_id;
  mi_report_hold_t held;  // reports of blocks that are looked at under the lock
} mi_heaps = {.last_id = 1};

void _mi_heaps_lock(void) {
  _mi_lock_acquire(&mi_heaps.lock);
  _mi_report_hold(&mi_heaps.held);
}

bool _mi_heaps_try_lock(void) {
  if (!_mi_lock_try_acquire(&mi_heaps.lock)) {
    return false;
  }
  _mi_report_hold(&mi_heaps.held);
  return true;
}

void _mi_heaps_unlock(void) { _mi_report_release(&mi_heaps.held, &mi_heaps.lock); }

bool _mi_heaps_are_busy_here(void) { return _mi_lock_is_mine(&mi_heaps.lock) && !_mi_lock_is_forking(); }

mi_heap_t* _mi_heap_new_as(const mi_heap_config_t* config) {
  if (mi_unlikely(_mi_heaps_are_busy_here())) {
    return NULL;
  }
  mi_heap_t* const main = _mi_subproc_current();
  _mi_heaps_lock();
  mi_heap_t* heap = mi_heaps.ended;
  if (heap != NULL) {
    mi_heaps.ended = heap->next;
    // A free that had begun when the heap ended may have counted since.
    _mi_heap_counts_end(heap, _mi_heap_main(), NULL);
    _mi_heap_counts_clear(heap);
  } else {
    heap = _mi_meta_zalloc(sizeof(*heap));
  }
  if (heap != NULL) {
    // Who has found the heap that was here may still look at what is stored by itself.
    mi_atomic_poke(&heap->main, config->is_main ? NULL : main);
    heap->next_main = NULL;
    if (config->is_main) {
      heap->next_main = _mi_heap_main()->next_main;
      _mi_heap_main()->next_main = heap;
    }
    mi_atomic_poke(&heap->tag, config->tag);
    heap->allow_destroy = config->allow_destroy;
    mi_atomic_store_relaxed(&heap->arena, config->arena);
    mi_atomic_store_relaxed(&heap->numa_node, -1);
    mi_atomic_store_relaxed(&heap->fill_preserve, 0);
    mi_atomic_store_relaxed(&heap->profiler, 0);
    mi_atomic_store_relaxed(&heap->profiler_of_all, 0);
    mi_atomic_store_relaxed(&heap->guarded.has_rate, false);
    mi_atomic_store_relaxed(&heap->guarded.has_bounds, false);
    mi_atomic_store_relaxed(&heap->id, ++mi_heaps.last_id);
    heap->prev = NULL;
    heap->next = mi_heaps.first;
    if (heap->next != NULL) {
      heap->next->prev = heap;
    }
    mi_heaps.first = heap;
    _mi_stat_increase(&_mi_stats.heaps, 1);
  }
  _mi_heaps_unlock();
  return heap;
}

mi_heap_t* _mi_heap_new(void) {
  const mi_heap_config_t config = {.allow_destroy = true};
  return _mi_heap_new_as(&config);
}

// The pages of a heap

static bool mi_heap_keeps_list(const mi_heap_t* heap) { return heap != _mi_heap_main(); }

// Its lock is held; so in the next. Release: a page of the main heap leaves it without a lock, and its links are the next's.
static void mi_heap_link_page(mi_heap_t* heap, mi_page_t* page) {
  mi_atomic_store_release(&page->heap, heap);
  if (!mi_heap_keeps_list(heap)) {
    return;
  }
  page->heap_prev = NULL;
  page->heap_next = heap->pages;
  if (page->heap_next != NULL) {
    page->heap_next->heap_prev = page;
  }
  heap->pages = page;
}

static void mi_heap_unlink_page(mi_heap_t* heap, mi_page_t* page) {
  if (!mi_heap_keeps_list(heap)) {
    return;
  }
  if (page->heap_prev != NULL) {
    page->heap_prev->heap_next = page->heap_next;
  } else {
    heap->pages = page->heap_next;
  }
  if (page->heap_next != NULL) {
    page->heap_next->heap_prev = page->heap_prev;
  }
}

mi_heap_t* _mi_page_lock_heap(mi_page_t* page) {
  for (;;) {
    mi_heap_t* const heap = mi_atomic_load_acquire(&page->heap);
    _mi_lock_acquire(&heap->lock);
    if (mi_likely(mi_atomic_load_relaxed(&page->heap) == heap)) {
      return heap;
    }
    _mi_lock_release(&heap->lock);
  }
}

void _mi_heap_enter_page(mi_page_t* page, const mi_theap_t* theap) {
  for (;;) {
    // The main heap does not end, and keeps no list.
    mi_heap_t* const heap = theap == NULL ? _mi_heap_main() : mi_atomic_load_acquire(&theap->heap);
    if (!mi_heap_keeps_list(heap)) {
      mi_heap_link_page(heap, page);
      return;
    }
    // A theap changes its heap under the lock of the one that it leaves.
    _mi_lock_acquire(&heap->lock);
    const bool same = mi_atomic_load_relaxed(&theap->heap) == heap;
    if (mi_likely(same)) {
      mi_heap_link_page(heap, page);
    }
    _mi_lock_release(&heap->lock);
    if (mi_likely(same)) {
      return;
    }
  }
}

void _mi_heap_enter_page_beside(mi_page_t* page, mi_page_t* other) {
  mi_heap_t* const heap = _mi_page_lock_heap(other);
  mi_heap_link_page(heap, page);
  _mi_lock_release(&heap->lock);
}

void _mi_heap_leave_page(mi_page_t* page) {
  // What is in the main heap stays there, and other heaps' pages are looked at again under the lock.
  if (mi_heap_keeps_list(mi_atomic_load_acquire(&page->heap))) {
    mi_heap_t* const heap = _mi_page_lock_heap(page);
    mi_heap_unlink_page(heap, page);
    _mi_lock_release(&heap->lock);
  }
}

// The end of a heap

// The heaps' lock is held. False: it has ended before, or is none.
static bool mi_heap_exists(const mi_heap_t* heap) {
  return mi_atomic_load_relaxed(&heap->id) != 0 &&
      (heap->prev != NULL ? heap->prev->next == heap : mi_heaps.first == heap);
}

mi_heap_t* _mi_heaps_first(void) { return mi_heaps.first; }

static void mi_heap_take_out(mi_heap_t* heap) {
  if (heap->prev != NULL) {
    heap->prev->next = heap->next;
  } else {
    mi_heaps.first = heap->next;
  }
  if (heap->next != NULL) {
    heap->next->prev = heap->prev;
  }
}

// Whoever has the theap for its default one goes back to its own. It may be about to use it, which does no harm as long as
// the theap lasts.
static void mi_theap_is_no_default(mi_theap_t* theap) {
  mi_tls_t* const tls = theap->tls;
  mi_theap_t* chosen = theap;
  if (tls != NULL && mi_atomic_cas_strong_acq_rel(&tls->chosen, &chosen, NULL)) {
    _mi_tls_disarm(tls);
  }
}

// The theap of a thread that lost its sub-process: its next slow call finds out. Until then it has nothing to allocate from.
static void mi_theap_forget_pages(mi_theap_t* theap) {
  memset(theap->queues, 0, sizeof(theap->queues));
  memset((void*)theap->sampling.counted, 0, sizeof(theap->sampling.counted));
  for (size_t i = 0; i < MI_DIRECT_ENTRIES; i++) {
    theap->direct[i] = &_mi_page_empty;
  }
}

// The heap's theaps belong to `successor` from now on, or to nobody. The heap's lock is held.
static void mi_heap_detach_theaps(mi_heap_t* heap, mi_heap_t* successor) {
  mi_theap_t* next;
  for (mi_theap_t* theap = heap->theaps; theap != NULL; theap = next) {
    next = theap->next_in_heap;
    theap->prev_in_heap = NULL;
    theap->next_in_heap = NULL;
    mi_heap_t* const next_heap = theap->tid == MI_TID_LATE ? _mi_heap_main() : successor;
    if (next_heap != NULL) {
      mi_atomic_store_relaxed(&theap->heap_id, mi_atomic_load_relaxed(&next_heap->id));
      _mi_heap_link_theap(next_heap, theap);
    }
    // Release pairs with the acquire of the owner thread, which drops a theap without a heap unseen.
    mi_atomic_store_release(&theap->heap, next_heap);
    mi_theap_is_no_default(theap);
    if (successor == NULL && theap->is_own) {
      mi_theap_forget_pages(theap);
    }
  }
  heap->theaps = NULL;
}

// Where the sub-process keeps what its ended heaps have counted: the main one has what the process has. NULL: no memory, or
// it ends itself.
static mi_stats_t* mi_heap_ended_counts(const mi_heap_t* heap) {
  mi_heap_t* const main = heap->main;
  if (main == NULL || main == _mi_heap_main()) {
    return NULL;
  }
  if (main->ended == NULL) {
    main->ended = _mi_meta_zalloc(sizeof(*main->ended));
  }
  return main->ended;
}

// All but the lock is as new, or is made so when the memory becomes the next heap.
static void mi_heap_end(mi_heap_t* heap, mi_heap_t* successor) {
  _mi_heap_counts_end(heap, successor, mi_heap_ended_counts(heap));
  if (heap->ended != NULL) {
    _mi_meta_free(heap->ended, sizeof(*heap->ended));
    heap->ended = NULL;
  }
  // One by one, as a thread may ask just now whether there are any.
  for (size_t bin = 0; bin < MI_BIN_COUNT; bin++) {
    mi_atomic_store_relaxed(&heap->listed[bin].first, NULL);
    heap->listed[bin].last = NULL;
  }
  mi_atomic_store_relaxed(&heap->id, 0);
  heap->next = mi_heaps.ended;
  mi_heaps.ended = heap;
  _mi_stat_decrease(&_mi_stats.heaps, 1);
}

static void mi_heap_move_pages(mi_heap_t* heap, mi_heap_t* successor) {
  mi_page_t* next;
  for (mi_page_t* page = heap->pages; page != NULL; page = next) {
    next = page->heap_next;
    mi_heap_link_page(successor, page);
  }
  heap->pages = NULL;
}

// Joins the ended heap's lists to its successor's.
static void mi_heap_move_lists(mi_heap_t* heap, mi_heap_t* successor) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* const first = mi_atomic_load_relaxed(&heap->listed[bin].first);
    if (first == NULL) {
      continue;
    }
    // What is in an exclusive arena serves nobody once its heap is gone.
    mi_arena_t* const arena = mi_atomic_load_relaxed(&heap->arena);
    const bool is_exclusive = arena != NULL && arena->is_exclusive;
    mi_page_list_t* const list = &successor->listed[is_exclusive ? MI_BIN_SINGLE : bin];
    first->prev = list->last;
    if (list->last != NULL) {
      list->last->next = first;
    } else {
      mi_atomic_store_relaxed(&list->first, first);
    }
    list->last = heap->listed[bin].last;
    // Now, and not when the heap has ended: who was about to look for a page there looks still.
    mi_atomic_store_relaxed(&heap->listed[bin].first, NULL);
    heap->listed[bin].last = NULL;
  }
}

// The heaps' lock is held.
void _mi_heap_end_into(mi_heap_t* heap, mi_heap_t* main) {
  mi_heap_take_out(heap);
  // Both locks: a page changes its heap and its list at once for everyone who enters, leaves, lists or unlists.
  _mi_lock_acquire(&heap->lock);
  _mi_lock_acquire(&main->lock);
  mi_heap_detach_theaps(heap, main);
  mi_heap_move_pages(heap, main);
  _mi_zero_size_heap_end(heap, main);
  mi_heap_move_lists(heap, main);
  _mi_lock_release(&main->lock);
  _mi_lock_release(&heap->lock);
  mi_heap_end(heap, main);
}

// A page that goes with its heap has blocks that nobody frees: what a free would have seen is looked for here.
static void mi_page_check_blocks(mi_page_t* page) {
  if (!MI_HAS_PADDING || !MI_HAS_LIVE_BITS) {
    return;
  }
  if (_mi_page_is_single(page)) {
    _mi_block_check_single(page);
    return;
  }
  for (uint32_t i = 0; i < page->reserved; i++) {
    const uint8_t* const block = page->start + i * page->block_size;
    if (_mi_hard_live_test(page->live, _mi_page_live_index(page, block))) {
      (void)_mi_block_request(page, block);
      _mi_block_end(page, block);
      _mi_track_shut(block, page->block_size);
    }
  }
}

// Counts as unlisted what was listed: the lists go with the heap.
static void mi_page_release_with_heap(mi_page_t* page) {
  if ((mi_atomic_load_relaxed(&page->remote) & MI_REMOTE_LISTED) != 0) {
    mi_heap_stat_decrease(_mi_page_heap(page), pages_abandoned, 1);
  }
  mi_page_check_blocks(page);
  if (_mi_page_is_guarded(page)) {
    _mi_guarded_free(page);
    return;
  }
  _mi_page_count_end(page);
  _mi_page_set_unused(page);
  if (MI_HAS_ZERO_ON_FREE && page->arena != NULL && !(MI_HAS_LARGE_QUARANTINE && _mi_page_is_single(page))) {
    _mi_page_release_idle(page);
  } else {
    _mi_page_release(page);
  }
}

void _mi_heap_tell_loss(const mi_heap_loss_t* loss) {
  if (loss->blocks > 0) {
    _mi_memory_events_tell(MI_MEMORY_FREE, -(int64_t)loss->bytes, -(int64_t)loss->blocks, 0);
  }
}

void _mi_heap_end_with_blocks(mi_heap_t* heap, mi_heap_loss_t* loss) {
  if (_mi_memory_events_are_on()) {
    _mi_visit_sum(heap, &loss->blocks, &loss->bytes);
  }
  mi_heap_take_out(heap);
  // What the threads of a sub-process have freed waits with them, and may be of other heaps.
  for (mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->next_in_heap) {
    if (theap->is_own) {
      _mi_quarantine_flush_of_others(theap);
    }
  }
  _mi_lock_acquire(&heap->lock);
  mi_heap_detach_theaps(heap, NULL);
  _mi_lock_release(&heap->lock);
  // Each leaves the list as it goes.
  while (heap->pages != NULL) {
    mi_page_release_with_heap(heap->pages);
  }
  _mi_zero_size_heap_end(heap, NULL);
  mi_heap_end(heap, NULL);
}

bool _mi_heap_may_be(const mi_heap_t* heap) { return heap == _mi_heap_main() || _mi_meta_may_be(heap); }

static void mi_heap_end_as(mi_heap_t* heap, bool destroy) {
  if (heap == NULL || mi_unlikely(_mi_heaps_are_busy_here())) {
    return;
  }
  const char* const what = destroy ? "destroyed" : "deleted";
  if (mi_unlikely(!_mi_heap_may_be(heap))) {
    _mi_report(MI_VIOLATION_foreign_free, "pointer %p is no heap of this allocator, %s", (void*)heap, what);
    return;
  }
  if (mi_unlikely(heap->main == NULL && mi_atomic_load_relaxed(&heap->id) != 0)) {
    _mi_log_warning("the main heap cannot be %s\n", what);
    return;
  }
  mi_heap_loss_t loss = {0};
  _mi_heaps_lock();
  const bool exists = mi_heap_exists(heap);
  if (mi_likely(exists)) {
    if (destroy && heap->allow_destroy) {
      _mi_heap_end_with_blocks(heap, &loss);
    } else {
      _mi_heap_end_into(heap, heap->main);
    }
  }
  _mi_heaps_unlock();
  if (mi_unlikely(!exists)) {
    _mi_report(MI_VIOLATION_double_free, "pointer %p is a heap that has been deleted or destroyed, %s again", (void*)heap, what);
    return;
  }
  _mi_heap_tell_loss(&loss);
  _mi_profiled_heap_ended();
  _mi_thread_disarm();
}

void _mi_heap_delete(mi_heap_t* heap) { mi_heap_end_as(heap, false); }

void _mi_heap_destroy(mi_heap_t* heap) { mi_heap_end_as(heap, true); }

// The end of the process

static bool mi_page_unregister(mi_page_t* page, void* arg) {
  (void)arg;
  _mi_page_map_unregister(page->start, page->slice_count);
  return true;
}

static bool mi_page_note_use(mi_page_t* page, void* in_use) {
  const uint32_t freed = _mi_remote_count(mi_atomic_load_acquire(&page->remote));
  *(bool*)in_use = *(bool*)in_use || _mi_page_in_use(page) > freed;
  return true;
}

static bool mi_heaps_are_empty(void) {
  bool in_use = false;
  _mi_visit_arena_pages(NULL, &mi_page_note_use, &in_use);
  _mi_single_visit(&mi_page_note_use, &in_use);
  return !in_use && !_mi_zero_size_in_use();
}

// What waits in a quarantine is not in use. Only when no other thread can call any more.
static void mi_heaps_flush_quarantines(void) {
  for (mi_theap_t* theap = _mi_heap_main()->theaps; theap != NULL; theap = theap->next_in_heap) {
    _mi_quarantine_flush_of_others(theap);
  }
  for (mi_heap_t* heap = mi_heaps.first; heap != NULL; heap = heap->next) {
    for (mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->next_in_heap) {
      _mi_quarantine_flush_of_others(theap);
    }
  }
}

bool _mi_heaps_destroy_all(bool unloaded) {
  _mi_heaps_lock();
  if (unloaded) {
    mi_heaps_flush_quarantines();
  }
  const bool destroy = unloaded ? mi_heaps_are_empty() : _mi_prim_is_single_threaded();
  if (destroy) {
    // What is still called finds no theap, and is served from fresh memory; late frees are ignored.
    _mi_thread_disarm();
    _mi_tls.own = NULL;
    mi_atomic_store_relaxed(&_mi_tls.chosen, NULL);
    _mi_tls.state = MI_THREAD_DONE;
    _mi_heap_main()->theaps = NULL;
    for (mi_heap_t* heap = mi_heaps.first; heap != NULL; heap = heap->next) {
      heap->theaps = NULL;
      heap->pages = NULL;
      memset((void*)heap->listed, 0, sizeof(heap->listed));
    }
    memset((void*)_mi_heap_main()->listed, 0, sizeof(_mi_heap_main()->listed));
    _mi_visit_arena_pages(NULL, &mi_page_unregister, NULL);
    _mi_zero_size_destroy_all();
    _mi_slots_forget();
    _mi_arenas_destroy();
  }
  _mi_heaps_unlock();
  if (destroy && unloaded) {
    _mi_os_release_permanent();
  }
  return destroy;
}

void _mi_heaps_visit(bool (*visit)(mi_heap_t* heap, void* arg), void* arg) {
  const bool held = _mi_heaps_are_busy_here();
  if (!held) {
    _mi_heaps_lock();
  }
  bool more = visit(_mi_heap_main(), arg);
  for (mi_heap_t* heap = mi_heaps.first; heap != NULL && more; heap = heap->next) {
    more = visit(heap, arg);
  }
  if (!held) {
    _mi_heaps_unlock();
  }
}

void _mi_heap_collect(mi_heap_t* heap, bool force) {
  _mi_deferred_free(force);
  mi_theap_t* const theap = heap == NULL ? _mi_theap_own() : _mi_theap_find(heap);
  if (theap != NULL) {
    _mi_theap_collect(theap, force);
  }
}

void _mi_heaps_fork_prepare(void) {
  _mi_lock_acquire(&mi_heaps.lock);
  _mi_lock_acquire(&_mi_heap_main()->lock);
  for (mi_heap_t* heap = mi_heaps.first; heap != NULL; heap = heap->next) {
    _mi_lock_acquire(&heap->lock);
  }
}

static void mi_heap_fork_release(mi_heap_t* heap, bool in_child) {
  if (in_child) {
    _mi_lock_reset(&heap->lock);
  } else {
    _mi_lock_release(&heap->lock);
  }
}

// The child has one thread. The storage of the others may become anything, so nobody is to reach it through their theaps.
// Returns whether there were others.
static bool mi_heap_forget_threads(mi_heap_t* heap) {
  bool others = false;
  for (mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->next_in_heap) {
    if (theap->tls != &_mi_tls && theap->tid != MI_TID_LATE) {
      theap->tls = NULL;
      others = true;
    }
  }
  return others;
}

static void mi_heap_drop_orphans(mi_heap_t* heap) {
  mi_theap_t* next;
  for (mi_theap_t* theap = heap->theaps; theap != NULL; theap = next) {
    next = theap->next_in_heap;
    if (theap->tls == NULL) {
      _mi_heap_unlink_theap(heap, theap);
      _mi_quarantine_flush_of_others(theap);
      _mi_theap_count_publish(theap);
      _mi_quarantine_end(theap);
      mi_heap_stat_decrease(heap, theaps, 1);
      _mi_theap_free(theap);
    }
  }
}

void _mi_heaps_drop_orphans(void) {
  _mi_heaps_lock();
  mi_heap_drop_orphans(_mi_heap_main());
  for (mi_heap_t* heap = mi_heaps.first; heap != NULL; heap = heap->next) {
    mi_heap_drop_orphans(heap);
  }
  _mi_heaps_unlock();
}

bool _mi_heaps_fork_release(bool in_child) {
  bool others = false;
  if (in_child) {
    others = mi_heap_forget_threads(_mi_heap_main());
    for (mi_heap_t* heap = mi_heaps.first; heap != NULL; heap = heap->next) {
      others = mi_heap_forget_threads(heap) || others;
    }
  }
  for (mi_heap_t* heap = mi_heaps.first; heap != NULL; heap = heap->next) {
    mi_heap_fork_release(heap, in_child);
  }
  mi_heap_fork_release(_mi_heap_main(), in_child);
  // A thread may have been about to find that its page has moved on.
  for (mi_heap_t* heap = mi_heaps.ended; in_child && heap != NULL; heap = heap->next) {
    _mi_lock_reset(&heap->lock);
  }
  if (in_child) {
    _mi_lock_reset(&mi_heaps.lock);
  } else {
    _mi_lock_release(&mi_heaps.lock);
  }
  return others;
}
