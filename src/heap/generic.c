// Owns: allocation when the fast path finds no block: which page comes next; and what becomes of empty pages.
// May include: base, sys, region, heap.
// Called by: heap, alloc.
// Invariants: a queue holds no more than a few full pages; memory that is not used is given back by the first call after
// its deadline, whichever function that is.
#include <errno.h>
#include <string.h>

#include "src/guarded/slots.h"
#include "src/heap/block.h"
#include "src/heap/guarded.h"
#include "src/heap/heap-stats.h"
#include "src/heap/heap.h"
#include "src/heap/orphan.h"
#include "src/heap/sample.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"
#include "src/heap/theap.h"
#include "src/prim/prim.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-quarantine.h"
#include "src/sys/deferred.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

enum {
  // Where there are many threads, each has its first few blocks of a small class from pages that it gives up at once, before
  // it gets a page for itself: a thousand threads that allocate little would hold an OS page each for every class.
  MI_SHARED_BLOCKS = 4,
  MI_SHARED_THREADS_MIN = 32,
  // A thread whose slow calls are further apart than a tick of the coarse clock makes so few that each may as well look
  // at it.
  MI_TICK_BUSY_MS = 4,
  // So many slow calls in a row that are closer make a thread busy.
  MI_TICK_BUSY_CALLS = 8,
  // About a millisecond between two tries to get memory that the system does not have.
  MI_RETRY_YIELDS = 16,
  // Where blocks wait, so many frees after that look at the clock.
  MI_WATCHED_FREES = 256,
  // One empty page of each class is kept as it is, and further ones while a theap keeps no more slices than
  // a fourth of what it has: at least and at most so many.
  MI_RETIRED_SLICES_MIN = 32,
  MI_RETIRED_SLICES_MAX = 128,
};

// Time

// Gives back what was kept for reuse and has not been reused.
static void mi_theap_retire_expired(mi_theap_t* theap) {
  theap->retire_due = 0;
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* next;
    for (mi_page_t* page = theap->queues[bin].first; theap->queues[bin].retired > 0; page = next) {
      next = page->next;
      const bool is_idle = page->retired && _mi_page_in_use(page) == 0;
      _mi_queue_unretire(theap, page);
      if (is_idle) {
        _mi_queue_remove(theap, page);
        _mi_page_release_idle(page);
      }
    }
  }
}

// In a forked child the lists of this thread's pages get keys that the parent does not know.
static void mi_theap_rekey(mi_theap_t* theap) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    for (mi_page_t* page = theap->queues[bin].first; page != NULL; page = page->next) {
      _mi_page_rekey(page);
    }
  }
}

// A page becomes empty when its last block leaves quarantine, some frees before the one that is the program's last for now,
// and the fast paths may be armed again by then. So the next frees look at the clock, too: as many as may have been waiting.
static void mi_theaps_watch(mi_theap_t* own) {
  if (MI_HAS_QUARANTINE) {
    for (mi_theap_t* theap = own; theap != NULL; theap = theap->next_in_thread) {
      theap->watched = MI_WATCHED_FREES;
    }
  }
}

void _mi_theap_watch(mi_theap_t* theap) {
  theap->watched--;
  const int64_t purge_due = mi_atomic_load_relaxed(&_mi_arena_purge_due);
  const int64_t retire_due = _mi_tls.own->retire_due;
  if (purge_due == 0 && retire_due == 0) {
    theap->watched = 0;
    return;
  }
  const int64_t now = _mi_prim_clock_ms();
  if ((purge_due != 0 && now >= purge_due) || (retire_due != 0 && now >= retire_due)) {
    _mi_theap_tick();
  }
}

void _mi_theap_tick(void) {
  mi_theap_t* const own = _mi_tls.own;
  if (own == NULL) {
    return;
  }
  // Here and not in the fork handler: a fork in a signal handler may have interrupted a list operation.
  if (MI_HAS_ENCODED_LISTS && mi_unlikely(own->key_generation != _mi_random_generation()) && !_mi_heaps_are_busy_here() &&
      !_mi_report_is_running()) {
    (void)_mi_random_next(&own->random);
    own->key_generation = own->random.generation;
    _mi_thread_each_theap(&mi_theap_rekey);
  }
  // Relaxed: a deadline that is missed here is seen by the next call.
  int64_t purge_due = mi_atomic_load_relaxed(&_mi_arena_purge_due);
  if (own->retire_due == 0 && purge_due == 0) {
    _mi_thread_arm();
    return;
  }
  const int64_t now = _mi_prim_clock_ms();
  if (own->retire_due != 0 && now >= own->retire_due) {
    _mi_thread_each_theap(&mi_theap_retire_expired);
  }
  if (purge_due != 0 && now >= purge_due) {
    _mi_arenas_purge(now, false);
  }
  const bool pending = own->retire_due != 0 || mi_atomic_load_relaxed(&_mi_arena_purge_due) != 0;
  own->busy_ticks = now - own->last_tick <= MI_TICK_BUSY_MS ? own->busy_ticks + 1 : 0;
  own->last_tick = now;
  if (!pending || own->busy_ticks >= MI_TICK_BUSY_CALLS) {
    if (pending) {
      mi_theaps_watch(own);
    }
    _mi_thread_arm();
  }
}

static bool mi_theap_may_keep(const mi_theap_t* theap, const mi_page_t* page) {
  const size_t max = _mi_min(_mi_max(theap->slices / 4, MI_RETIRED_SLICES_MIN), MI_RETIRED_SLICES_MAX);
  return theap->queues[page->bin].retired == 0 || theap->retired_slices + page->slice_count <= max;
}

// A page became empty on this thread, and is kept or given back.
void _mi_page_retire(mi_page_t* page) {
  mi_theap_t* const theap = page->theap;
  const long delay = _mi_option_get(mi_option_purge_delay);
  if (delay == 0 || !mi_theap_may_keep(theap, page)) {
    _mi_queue_remove(theap, page);
    _mi_page_release(page);
    _mi_thread_disarm();
    return;
  }
  // The first is likely to be wanted at once.
  if (theap->queues[page->bin].retired > 0) {
    _mi_page_drop_old_lists(page);
  }
  _mi_queue_retire(theap, page);
  _mi_page_note_live(page, 0);
  mi_heap_counter_add(_mi_page_heap(page), pages_retire, 1);
  // Time runs for the thread as a whole: its first theap's tick looks after all of them.
  mi_theap_t* const own = _mi_tls.own;
  if (delay > 0 && own != NULL && own->retire_due == 0) {
    own->retire_due = _mi_prim_clock_ms() + delay;
  }
  _mi_thread_disarm();
}

// Pages

// Whether the page has a free block that was used before.
static bool mi_page_has_free(mi_page_t* page) { return page->free != NULL || _mi_page_refill_freed(page); }

// Takes a full page out of the queue. False: others have freed into it meanwhile, and it is still in.
static bool mi_theap_let_go(mi_theap_t* theap, mi_page_t* page) {
  _mi_queue_remove(theap, page);
  _mi_page_count_leave(page);
  if (_mi_page_try_unown_full(page)) {
    mi_heap_counter_add(mi_atomic_load_relaxed(&theap->heap), pages_reabandon_full, 1);
    return true;
  }
  _mi_queue_push_front(theap, page);
  return false;
}

// Which of two pages with free blocks serves next: the fuller, so that the other may become empty; or any of the `seen`
// so far that are not empty, each as likely.
static bool mi_page_is_better(mi_theap_t* theap, const mi_page_t* page, const mi_page_t* best, uint32_t seen) {
  if (MI_HAS_RANDOM_PLACE) {
    return _mi_page_in_use(page) > 0 && (_mi_page_in_use(best) == 0 || _mi_theap_choose(theap, seen) == 0);
  }
  return _mi_page_in_use(page) > _mi_page_in_use(best);
}

// The page of the queue to allocate from next, with a free block: one of the first few that have one, else one that can
// be extended. Full pages are let go of, all but a few.
static mi_page_t* mi_theap_search(mi_theap_t* theap, unsigned bin) {
  mi_page_t* const first = theap->queues[bin].first;
  if (first != NULL) {
    // The fast path may have found its list corrupt and come here for the report.
    _mi_page_check_free(first);
  }
  theap->counts.searches++;
  mi_page_t* best = NULL;
  mi_page_t* extensible = NULL;
  mi_page_t* next;
  uint32_t seen = 0;
  long candidates = _mi_option_get(mi_option_page_max_candidates);
  long full = _mi_option_get(mi_option_page_full_retain);
  for (mi_page_t* page = first; page != NULL; page = next) {
    next = page->next;
    theap->counts.searched++;
    if (mi_page_has_free(page)) {
      seen += _mi_page_in_use(page) > 0;
      mi_page_t* const other = best == NULL || mi_page_is_better(theap, page, best, seen) ? best : page;
      best = other == best ? page : best;
      // Emptied by other threads, and nobody will free into it again.
      if (other != NULL && other->used == 0) {  // and not retired
        _mi_page_retire(other);
      }
      if (--candidates <= 0) {
        break;
      }
      continue;
    }
    // It came first and was used again.
    _mi_queue_unretire(theap, page);
    if (page->capacity < page->reserved) {
      extensible = extensible != NULL ? extensible : page;
    } else {
      _mi_page_note_live(page, _mi_page_live(page));
      if (--full < 0 && !mi_theap_let_go(theap, page) && best == NULL) {
        best = mi_page_has_free(page) ? page : NULL;
      }
    }
  }
  // An empty page may stay so while a page in use has room.
  if (extensible != NULL && (best == NULL || (_mi_page_in_use(best) == 0 && _mi_page_in_use(extensible) > 0))) {
    best = extensible;
    _mi_page_extend(best);
  }
  if (best != NULL) {
    _mi_queue_move_front(theap, best);
  }
  return best;
}

static mi_page_t* mi_theap_next_page(mi_theap_t* theap, unsigned bin) {
  mi_page_t* page = mi_theap_search(theap, bin);
  if (page != NULL) {
    return page;
  }
  if (mi_unlikely(_mi_orphans_pending())) {
    (void)_mi_orphans_adopt();
  }
  mi_heap_t* const heap = mi_atomic_load_relaxed(&theap->heap);
  while ((page = _mi_heap_take_listed(heap, bin, theap)) != NULL) {
    _mi_queue_push_front(theap, page);
    if (mi_page_has_free(page)) {
      return page;
    }
    if (page->capacity < page->reserved) {
      _mi_page_extend(page);
      return page;
    }
  }
  page = _mi_page_new(theap, bin);
  if (page != NULL) {
    _mi_queue_push_front(theap, page);
    _mi_page_extend(page);
  }
  return page;
}

// Allocation

static void* mi_out_of_memory(size_t size) {
  _mi_report_oom(size);
  errno = ENOMEM;
  return NULL;
}

static void* mi_theap_try_single(mi_theap_t* theap, size_t size, size_t align, bool zero) {
  bool is_zero = false;
  mi_page_t* const page = _mi_page_new_single(theap, _mi_max(size, 1), align, &is_zero);
  if (page == NULL) {
    return NULL;
  }
  if (zero && !is_zero) {
    memset(page->single_start, 0, _mi_page_single_usable(page));
  }
  _mi_block_prepare_single(page, size);
  return page->single_start;
}

// Whether the thread is to take its next block of this class from a page that others take theirs from, too.
static bool mi_theap_shares(mi_theap_t* theap, unsigned bin) {
  mi_page_queue_t* const queue = &theap->queues[bin];
  return queue->first == NULL && queue->lent < MI_SHARED_BLOCKS && theap->tid != MI_TID_LATE &&
      _mi_bin_page_slices(bin) == MI_SMALL_PAGE_SLICES &&
      mi_atomic_load_relaxed(&_mi_stats.threads.current) > MI_SHARED_THREADS_MIN;
}

// A block was taken from a page that is to be shared: the next thread finds it in the heap's list.
static void mi_theap_share(mi_theap_t* theap, mi_page_t* page) {
  theap->queues[page->bin].lent++;
  _mi_queue_remove(theap, page);
  _mi_page_abandon(page);
}

static void* mi_theap_try_block(mi_theap_t* theap, size_t size, size_t room, bool zero, uint8_t origin) {
  const unsigned bin = _mi_bin_of_size(room);
  const bool shared = mi_theap_shares(theap, bin);
  for (;;) {
    mi_page_t* const page = mi_theap_next_page(theap, bin);
    if (page == NULL) {
      // A page of this class is larger than the block: under a tight limit the block alone may still be had.
      return size > MI_SMALL_BLOCK_MAX ? mi_theap_try_single(theap, size, MI_SLICE_SIZE, zero) : NULL;
    }
    _mi_sample_follow(theap, bin);
    const bool is_zero = page->free_is_zero;
    mi_block_t* const block = _mi_page_pop_as(page, origin);
    // NULL only after a report of a corrupt list that did not abort; the list is gone then.
    if (mi_likely(block != NULL)) {
      void* const p = _mi_block_hand_out(page, block, size, zero, is_zero);
      if (shared) {
        mi_theap_share(theap, page);
      }
      return p;
    }
  }
}

typedef struct mi_request_s {
  size_t size;
  size_t room;  // what the block must have
  size_t align;
  bool single;  // a page by itself, whatever the size
  bool zero;
  uint8_t origin;  // of a block of a class
} mi_request_t;

// Looks whether the allocation is sampled. NULL: it is an ordinary one.
static mi_cold void* mi_theap_try_sampled(mi_theap_t* theap, const mi_request_t* request, unsigned bin) {
  const unsigned sampled = _mi_sample_now(theap, bin);
  void* p = NULL;
  if ((sampled & MI_SAMPLE_GUARD) != 0) {
    p = _mi_guarded_alloc(theap, request->size, request->align, request->zero);
  }
  if ((sampled & MI_SAMPLE_AGAIN) == 0 && (p != NULL || bin == MI_BIN_SINGLE)) {
    _mi_sample_pass(theap, bin);
  }
  return p;
}

static void* mi_theap_try_alloc(mi_theap_t* theap, const mi_request_t* request) {
  const bool single = request->single || request->room > MI_LARGE_BLOCK_MAX;
  if (mi_unlikely(theap->sampling.kinds != 0)) {
    void* const p = mi_theap_try_sampled(theap, request, single ? (unsigned)MI_BIN_SINGLE : _mi_bin_of_size(request->room));
    if (p != NULL) {
      return p;
    }
  }
  if (single) {
    return mi_theap_try_single(theap, request->size, request->align, request->zero);
  }
  return mi_theap_try_block(theap, request->size, request->room, request->zero, request->origin);
}

// What threads allocate that have no theap: they are being torn down, or there was no memory for one. The late theap
// keeps no page from one call to the next, so frees of its blocks need no owner.
static struct {
  mi_lock_t lock;
  mi_theap_t theap;
} mi_late;

static void* mi_late_alloc(const mi_request_t* request) {
  mi_theap_t* const theap = &mi_late.theap;
  if (mi_unlikely(_mi_lock_is_mine(&mi_late.lock)) && !_mi_lock_is_forking()) {
    // A report from in here has called a function of the program's, which allocates: the theap is in the middle of a call.
    return mi_theap_try_single(NULL, request->size, request->align, request->zero);
  }
  _mi_lock_acquire(&mi_late.lock);
  if (mi_atomic_load_relaxed(&theap->heap) == NULL) {
    theap->tid = MI_TID_LATE;
    for (size_t i = 0; i < MI_DIRECT_ENTRIES; i++) {
      theap->direct[i] = &_mi_page_empty;
    }
    _mi_quarantine_begin(theap);
    mi_atomic_store_relaxed(&theap->heap, &_mi_heap_main_instance);
  }
  void* const p = mi_theap_try_alloc(theap, request);
  _mi_theap_abandon(theap);
  _mi_lock_release(&mi_late.lock);
  return p;
}

// What this thread and the process keep for reuse may be just what is missing.
static void* mi_theap_try_after_collect(mi_theap_t* theap, const mi_request_t* request) {
  _mi_theap_collect(theap, true);
  _mi_arena_held_release();
  _mi_slots_release();
  _mi_arenas_purge(0, true);
  _mi_arena_drop_free_guards();
  return mi_theap_try_alloc(theap, request);
}

// Goes on trying, as others may give memory back, for the time of option retry_on_oom. The number of tries is limited as
// well, for systems without a clock.
static void* mi_theap_retry(mi_theap_t* theap, const mi_request_t* request) {
  const long wait = _mi_option_get(mi_option_retry_on_oom);
  const int64_t start = _mi_prim_clock_ms();
  void* p = NULL;
  for (long i = 0; p == NULL && i < wait && _mi_prim_clock_ms() - start < wait; i++) {
    for (int k = 0; k < MI_RETRY_YIELDS; k++) {
      _mi_prim_yield();
    }
    p = mi_theap_try_after_collect(theap, request);
  }
  return p;
}

static void* mi_theap_alloc_any(mi_theap_t* theap, const mi_request_t* request) {
  const size_t size = request->size;
  if (mi_unlikely(size > MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE || request->align > MI_ALLOC_SIZE_MAX - size)) {
    return mi_out_of_memory(size);
  }
  _mi_theap_tick();
  if (mi_unlikely(theap == NULL)) {
    void* const p = mi_late_alloc(request);
    return p != NULL ? p : mi_out_of_memory(size);
  }
  _mi_deferred_tick();
  _mi_sample_update(theap);
  if (mi_unlikely(++theap->slow_calls >= (uint32_t)_mi_option_get(mi_option_generic_collect))) {
    theap->slow_calls = 0;
    _mi_theap_collect(theap, false);
  }
  void* p = mi_theap_try_alloc(theap, request);
  if (mi_unlikely(p == NULL)) {
    _mi_deferred_free(true);
    p = mi_theap_try_after_collect(theap, request);
    if (p == NULL) {
      p = mi_theap_retry(theap, request);
    }
  }
  return p != NULL ? p : mi_out_of_memory(size);
}

mi_inline void* mi_theap_alloc_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero, uint8_t origin) {
  if (MI_HAS_ZERO_SIZE && size == 0 && room == MI_BLOCK_EXTRA) {
    void* const p = _mi_zero_size_alloc(theap, 1, 0);
    if (p != NULL) {
      return p;
    }
  }
  const mi_request_t request = {size, room, align, false, zero, origin};
  return mi_theap_alloc_any(theap, &request);
}

void* _mi_theap_alloc_slow(mi_theap_t* theap, size_t size, bool zero) {
  return mi_theap_alloc_room(theap, size, size + MI_BLOCK_EXTRA, MI_BLOCK_ALIGN, zero, MI_FAMILY_ANY);
}

void* _mi_theap_alloc_slow_as(mi_theap_t* theap, size_t size, bool zero, uint8_t origin) {
  return mi_theap_alloc_room(theap, size, size + MI_BLOCK_EXTRA, MI_BLOCK_ALIGN, zero, origin);
}

void* _mi_theap_alloc_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero) {
  return mi_theap_alloc_room(theap, size, room, align, zero, MI_FAMILY_ANY);
}

void* _mi_theap_alloc_single(mi_theap_t* theap, size_t size, size_t align, bool zero) {
  const mi_request_t request = {_mi_max(size, MI_HAS_PADDING ? 0 : 1), size, align, true, zero, MI_FAMILY_ANY};
  return mi_theap_alloc_any(theap, &request);
}

void _mi_theap_collect(mi_theap_t* theap, bool force) {
  if (force) {
    _mi_quarantine_flush(theap);
  }
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* next;
    for (mi_page_t* page = theap->queues[bin].first; page != NULL; page = next) {
      next = page->next;
      _mi_page_collect(page);
      if (page->used == 0 || (force && _mi_page_in_use(page) == 0)) {
        _mi_queue_remove(theap, page);
        _mi_page_release(page);
      } else {
        _mi_page_note_live(page, _mi_page_live(page));
      }
    }
  }
  _mi_theap_count_publish(theap);
}

void _mi_late_fork_prepare(void) { _mi_lock_acquire(&mi_late.lock); }

void _mi_late_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_late.lock);
  } else {
    _mi_lock_release(&mi_late.lock);
  }
}
