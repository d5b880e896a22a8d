// Owns: allocation when the fast path finds no block: which page comes next.
// May include: base, prim, sys, region, guarded, profile, heap.
// Called by: heap, alloc.
// Invariants: a queue holds no more than a few full pages.
#include <errno.h>
#include <string.h>

#include "src/guarded/slots.h"
#include "src/heap/block.h"
#include "src/heap/check.h"
#include "src/heap/guarded.h"
#include "src/heap/heap-stats.h"
#include "src/heap/heap.h"
#include "src/heap/orphan.h"
#include "src/heap/profiled.h"
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
  // Where there are many threads, each has its first few blocks, or bytes, of a small class from pages that it gives up at once, before
  // it gets a page for itself: a thousand threads that allocate little would hold an OS page each for every class.
  MI_SHARED_BLOCKS = 4,
  MI_SHARED_BYTES = 512,
  MI_SHARED_THREADS_MIN = 32,
  // About a millisecond between two tries to get memory that the system does not have.
  MI_RETRY_YIELDS = 16,
  // So often a page goes on with what was freed into it before others are looked at.
  MI_REFILLS_EACH_SEARCH = 16,
  // A page is chosen for so many free blocks, or so large a share of what it holds. For one where patterns are
  // to show soon what is written to free blocks.
  MI_FREE_BLOCKS_ENOUGH = MI_HAS_FILL ? 1 : 8,
  MI_FREE_SHARE_ENOUGH = 16,
  // Where so many have fewer, a new one is worth its memory, of which a few OS pages are touched: each search would take one of
  // them, for a block or two.
  MI_SCARCE_PAGES_MAX = 4,
  // A page with so many, or so large a share, serves for a while: no other is looked at.
  MI_FREE_BLOCKS_PLENTY = 32,
  MI_FREE_SHARE_PLENTY = 8,
  // With lists out of line a page that keeps being filled again by fewer blocks than that, and fewer bytes, gets more of them:
  // each filling costs as much as several allocations.
  MI_FREE_BYTES_PLENTY = 16 * MI_KIB,
};

static uint32_t mi_page_free_count(const mi_page_t* page) {
  // Relaxed: what others have freed is a hint here.
  return page->capacity - _mi_page_in_use(page) + _mi_remote_count(mi_atomic_load_relaxed(&page->remote));
}

// Whether a page has so many free blocks that no other is looked at. Where chance chooses, several are.
static bool mi_page_has_plenty(const mi_page_t* page) {
  return !MI_HAS_RANDOM_PLACE && !MI_BLOCKS_ARE_DRESSED && _mi_page_in_use(page) != 0 &&
      mi_page_free_count(page) >= _mi_max(_mi_min(MI_FREE_BLOCKS_PLENTY, page->reserved / MI_FREE_SHARE_PLENTY), 1);
}

// Whether a page has enough free blocks to be chosen for them: it would be used up at once, and the next call search again. One
// that can be extended has.
static bool mi_page_is_worth_it(const mi_page_t* page) {
  const size_t enough = _mi_max(_mi_min(MI_FREE_BLOCKS_ENOUGH, page->reserved / MI_FREE_SHARE_ENOUGH), 1);
  return page->capacity < page->reserved || _mi_page_in_use(page) == 0 ||
      mi_page_free_count(page) >= enough;
}

bool _mi_theap_refill_first(mi_theap_t* theap, mi_page_t* page) {
  // Of a few blocks it would be known too well which one comes next.
  if (_mi_page_is_ready(page) || !_mi_page_has_freed(page) || (MI_HAS_RANDOM_PLACE && !mi_page_is_worth_it(page)) ||
      ++theap->slow_calls % MI_REFILLS_EACH_SEARCH == 0 ||
      !_mi_page_refill_freed(page)) {
    return false;
  }
  _mi_sample_refilled(theap, page);
  // None if the allocation is sampled, which is for the slow path.
  return _mi_page_is_ready(page);
}

// Makes blocks of the page available that were used before. False: there are none.
static bool mi_page_make_ready(mi_page_t* page) { return _mi_page_is_ready(page) || _mi_page_refill_freed(page); }

// Whether the page has such blocks.
static bool mi_page_has_free(mi_page_t* page) {
  if (_mi_page_is_ready(page) || _mi_page_has_freed(page)) {
    return true;
  }
  // Relaxed: a free that is missed here is seen the next time.
  if (_mi_remote_count(mi_atomic_load_relaxed(&page->remote)) == 0) {
    return false;
  }
  _mi_page_collect_remote(page);
  return _mi_page_is_ready(page) || _mi_page_has_freed(page);
}

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

// Makes blocks available that were never used. False: there is no memory for them.
static bool mi_page_extend(mi_page_t* page) {
  if (mi_unlikely(!_mi_page_commit_next(page))) {
    return false;
  }
  _mi_page_extend(page);
  return true;
}

// Whether it is time that the page, the only one of its class, is extended, although it has free blocks.
static bool mi_page_wants_more(const mi_page_t* page) {
  const uint32_t free = page->capacity - _mi_page_in_use(page);
  return MI_HAS_OUTLINE_LISTS && !_mi_page_is_ready(page) && page->capacity < page->reserved && free < MI_FREE_BLOCKS_PLENTY &&
      free * page->block_size < MI_FREE_BYTES_PLENTY;
}

// The page of the queue to allocate from next, with a free block: one of the first few that have enough of them, else one
// that can be extended, else any, unless there are several of these. Those with few wait for more at the queue's end. Full
// pages are let go of, all but a few.
static mi_page_t* mi_theap_search(mi_theap_t* theap, unsigned bin) {
  mi_page_t* const first = theap->queues[bin].first;
  if (first != NULL) {
    // The fast path may have found its list corrupt and come here for the report.
    _mi_page_check_free(first);
  }
  theap->counts.searches++;
  if (first != NULL && first->next == NULL && mi_page_has_free(first) && mi_page_is_worth_it(first) &&
      ((mi_page_wants_more(first) && mi_page_extend(first)) || mi_page_make_ready(first))) {
    theap->counts.searched++;
    return first;
  }
  mi_page_t* best = NULL;
  mi_page_t* extensible = NULL;
  mi_page_t* scarce = NULL;
  mi_page_t* next;
  uint32_t seen = 0;
  long candidates = _mi_option_get(mi_option_page_max_candidates);
  long full = _mi_option_get(mi_option_page_full_retain);
  uint32_t scarce_seen = 0;
  const mi_page_t* const last = theap->queues[bin].last;
  for (mi_page_t* page = first; page != NULL; page = next) {
    next = page != last ? page->next : NULL;
    theap->counts.searched++;
    // Where others free, they may have emptied the next page as well, and nobody will free into that again.
    const bool is_left_alone = _mi_remote_count(mi_atomic_load_relaxed(&page->remote)) == 0;
    if (mi_page_has_free(page)) {
      if (!mi_page_is_worth_it(page)) {
        scarce_seen++;
        if (scarce == NULL || (MI_HAS_RANDOM_PLACE && _mi_theap_choose(theap, scarce_seen) == 0)) {
          scarce = page;
        }
        _mi_queue_move_back(theap, page);
        if (scarce_seen == MI_SCARCE_PAGES_MAX) {
          break;
        }
        continue;
      }
      seen += _mi_page_in_use(page) > 0;
      mi_page_t* const other = best == NULL || mi_page_is_better(theap, page, best, seen) ? best : page;
      best = other == best ? page : best;
      // Emptied by other threads, and nobody will free into it again.
      if (other != NULL && _mi_page_used(other) == 0) {  // and not retired
        _mi_page_retire(other);
      }
      if (--candidates <= 0 || (is_left_alone && mi_page_has_plenty(page))) {
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
        best = mi_page_make_ready(page) ? page : NULL;
      }
    }
  }
  // An empty page may stay so while a page in use has room.
  if (extensible != NULL && (best == NULL || (_mi_page_in_use(best) == 0 && _mi_page_in_use(extensible) > 0))) {
    best = mi_page_extend(extensible) ? extensible : best;
  }
  // Where a block is looked at when it serves again that is not put off by a new page.
  if (best == NULL && (MI_BLOCKS_ARE_DRESSED || scarce_seen < MI_SCARCE_PAGES_MAX)) {
    best = scarce;
  }
  if (best == NULL || !mi_page_make_ready(best)) {
    return NULL;
  }
  _mi_queue_move_front(theap, best);
  return best;
}

// There is no memory for another page: any that has a block.
static mi_page_t* mi_theap_last_page(mi_theap_t* theap, unsigned bin) {
  for (mi_page_t* page = theap->queues[bin].first; page != NULL; page = page->next) {
    if (mi_page_make_ready(page)) {
      _mi_queue_move_front(theap, page);
      return page;
    }
  }
  return NULL;
}

// Gives up an empty page that another class keeps, before a new one is made: its memory serves, for this one or those that come
// next, before some that nobody has touched. Small ones first, and only for small ones. Not where checks are made: as long as the
// memory is the class's, a second free is known for what it is, and what was freed lies under no block of another size.
static void mi_theap_give_up_empty(mi_theap_t* theap, unsigned bin) {
  if (MI_HAS_LIVE_BITS) {
    return;
  }
  const size_t slices = _mi_min(_mi_bin_page_slices(bin), MI_MEDIUM_PAGE_SLICES);
  for (unsigned other = MI_BIN_FIRST; other <= MI_BIN_LAST && theap->retired_slices >= slices; other++) {
    const mi_page_queue_t* const queue = &theap->queues[other];
    if (queue->retired == 0 || other == bin || _mi_bin_page_slices(other) < slices) {
      continue;
    }
    // Retired pages stand at the end of a queue, or come first.
    mi_page_t* const page = queue->last->retired ? queue->last : queue->first;
    if (page->retired && _mi_page_in_use(page) == 0) {
      _mi_queue_remove(theap, page);
      _mi_page_release(page);
      return;
    }
  }
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
    if (mi_page_make_ready(page)) {
      return page;
    }
    if (page->capacity < page->reserved && mi_page_extend(page)) {
      return page;
    }
  }
  mi_theap_give_up_empty(theap, bin);
  page = _mi_page_new(theap, bin);
  if (page != NULL) {
    _mi_queue_push_front(theap, page);
    if (mi_unlikely(!mi_page_extend(page))) {
      _mi_queue_remove(theap, page);
      _mi_page_release(page);
      page = NULL;
    }
  }
  return page != NULL ? page : mi_theap_last_page(theap, bin);
}

// Allocation

static void* mi_out_of_memory(size_t size) {
  _mi_report_oom(size);
  errno = ENOMEM;
  return NULL;
}

static void* mi_theap_try_single(mi_theap_t* theap, size_t size, size_t align, bool grows, bool zero) {
  mi_page_t* const page = _mi_page_new_single(theap, _mi_max(size, 1), align, grows, zero);
  if (page == NULL) {
    return NULL;
  }
  _mi_block_hand_out_single(page, size, zero);
  return page->single_start;
}

// Whether the thread is to take its next block of this class from a page that others take theirs from, too.
static bool mi_theap_shares(mi_theap_t* theap, unsigned bin) {
  mi_page_queue_t* const queue = &theap->queues[bin];
  return queue->first == NULL && queue->lent < _mi_max(MI_SHARED_BLOCKS, MI_SHARED_BYTES / _mi_bin_block_size(bin)) &&
      theap->tid != MI_TID_LATE &&
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
      return size > MI_SMALL_BLOCK_MAX ? mi_theap_try_single(theap, size, MI_SLICE_SIZE, false, zero) : NULL;
    }
    _mi_page_rekey(page);
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
  bool grows;   // such a page, and likely to be enlarged soon
  bool zero;
  uint8_t origin;     // of a block of a class
  const void* frame;  // of the function that the caller called
} mi_request_t;

// Looks whether the allocation of a class is sampled. NULL: it is an ordinary one. What the profile samples is a page by itself,
// whose free is no fast one.
static mi_cold void* mi_theap_try_sampled(mi_theap_t* theap, const mi_request_t* request) {
  const unsigned bin = _mi_bin_of_size(request->room);
  const size_t block_size = _mi_bin_block_size(bin);
  const unsigned sampled = _mi_sample_now(theap, bin);
  const bool profiled = (sampled & MI_SAMPLE_PROFILE) != 0 &&
      _mi_profile_takes(&theap->sampling.profile, request->size, block_size);
  void* p = NULL;
  if ((sampled & MI_SAMPLE_GUARD) != 0) {
    p = _mi_guarded_alloc(theap, request->size, request->align, request->zero);
  }
  if (p == NULL && profiled) {
    // As blocks of the class are aligned: a caller may have chosen it for that.
    p = mi_theap_try_single(theap, request->size, block_size & (~block_size + 1), false, request->zero);
  }
  if (p != NULL && profiled) {
    _mi_profiled_note(theap->sampling.profile.number, p, request->size, request->frame);
  }
  const bool again = (sampled & MI_SAMPLE_AGAIN) != 0;
  if (!again && p != NULL) {
    _mi_sample_pass(theap, bin);
  } else if (again && p == NULL) {
    _mi_sample_lend(theap, bin);
  }
  return p;
}

// The same of what has no class, and is a page by itself in any case.
static mi_cold void* mi_theap_try_single_sampled(mi_theap_t* theap, const mi_request_t* request) {
  const unsigned sampled = _mi_sample_now(theap, MI_BIN_SINGLE);
  void* p = NULL;
  if ((sampled & MI_SAMPLE_GUARD) != 0) {
    p = _mi_guarded_alloc(theap, request->size, request->align, request->zero);
  }
  _mi_sample_pass(theap, MI_BIN_SINGLE);
  if (p == NULL) {
    p = mi_theap_try_single(theap, request->size, request->align, request->grows, request->zero);
  }
  if (p != NULL && (theap->sampling.kinds & MI_SAMPLE_PROFILE) != 0 && _mi_profile_hits(&theap->sampling.profile, request->size)) {
    _mi_profiled_note(theap->sampling.profile.number, p, request->size, request->frame);
  }
  return p;
}

static void* mi_theap_try_alloc(mi_theap_t* theap, const mi_request_t* request) {
  const bool sampling = mi_unlikely(theap->sampling.kinds != 0);
  if (request->single || request->room > MI_LARGE_BLOCK_MAX) {
    return sampling ? mi_theap_try_single_sampled(theap, request)
                    : mi_theap_try_single(theap, request->size, request->align, request->grows, request->zero);
  }
  void* const p =
      sampling && _mi_sample_may_be_now(theap, _mi_bin_of_size(request->room)) ? mi_theap_try_sampled(theap, request) : NULL;
  return p != NULL ? p : mi_theap_try_block(theap, request->size, request->room, request->zero, request->origin);
}

// What threads allocate that have no theap: they are being torn down, or there was no memory for one. The late theap
// keeps no page from one call to the next, so frees of its blocks need no owner.
static mi_far struct {
  mi_lock_t lock;
  mi_report_hold_t held;
  mi_theap_t theap;
} mi_late;

// Aligned as any block of a class may have to be.
static void* mi_late_try_single(mi_theap_t* theap, const mi_request_t* request) {
  return mi_theap_try_single(theap, request->size, _mi_max(request->align, MI_SLICE_SIZE), request->grows, request->zero);
}

static void* mi_late_alloc(const mi_request_t* request) {
  mi_theap_t* const theap = &mi_late.theap;
  if (mi_unlikely(_mi_lock_is_mine(&mi_late.lock)) && !_mi_lock_is_forking()) {
    // A signal handler has interrupted this thread in here, and allocates: the theap is in the middle of a call.
    return mi_late_try_single(NULL, request);
  }
  _mi_lock_acquire(&mi_late.lock);
  _mi_report_hold(&mi_late.held);
  if (mi_atomic_load_relaxed(&theap->heap) == NULL) {
    _mi_theap_begin(theap, MI_TID_LATE);
    mi_atomic_store_relaxed(&theap->heap, &_mi_heap_main_instance);
  }
  void* const p = mi_theap_try_alloc(theap, request);
  _mi_theap_abandon(theap);
  _mi_report_release(&mi_late.held, &mi_late.lock);
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

// What the program's function for deferred frees does is no part of the call that leads to it.
static void mi_deferred_part(bool force) {
  if (force) {
    _mi_deferred_free(true);
  } else {
    _mi_deferred_tick();
  }
}

mi_inline void mi_deferred_call(bool force) {
  if (_mi_memory_events_are_on()) {
    _mi_memory_events_aside(&mi_deferred_part, force);
  } else {
    mi_deferred_part(force);
  }
}

static void* mi_theap_alloc_any(mi_theap_t* theap, const mi_request_t* request) {
  const size_t size = request->size;
  if (mi_unlikely(size > MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE || request->align > MI_ALLOC_SIZE_MAX - size)) {
    return mi_out_of_memory(size);
  }
  _mi_theap_tick();
  if (mi_unlikely(theap == NULL || theap->tid == MI_TID_LATE)) {
    void* const p = theap == NULL                      ? mi_late_alloc(request)
        : mi_atomic_load_relaxed(&theap->heap) != NULL ? mi_late_try_single(theap, request)
                                                       : NULL;
    return p != NULL ? p : mi_out_of_memory(size);
  }
  mi_deferred_call(false);
  _mi_sample_update(theap);
  _mi_theap_check_sometimes(theap);
  if (mi_unlikely(++theap->slow_calls >= (uint32_t)_mi_option_get(mi_option_generic_collect))) {
    theap->slow_calls = 0;
    _mi_theap_collect(theap, false);
  }
  void* p = mi_theap_try_alloc(theap, request);
  if (mi_unlikely(p == NULL)) {
    mi_deferred_call(true);
    p = mi_theap_try_after_collect(theap, request);
    if (p == NULL) {
      p = mi_theap_retry(theap, request);
    }
  }
  return p != NULL ? p : mi_out_of_memory(size);
}

mi_inline void* mi_theap_alloc_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero, uint8_t origin, const void* frame) {
  if (MI_HAS_ZERO_SIZE && size == 0 && room == MI_BLOCK_EXTRA) {
    void* const p = _mi_zero_size_alloc(theap, 1, 0);
    if (p != NULL) {
      return p;
    }
  }
  const mi_request_t request = {size, room, align, false, false, zero, origin, frame};
  return mi_theap_alloc_any(theap, &request);
}

// Whoever calls one of these by a tail call has left its caller's frame as it was, so that a walk that begins with the frame here
// misses nobody, whether this library is compiled with frame pointers or not.

// Wraps: the room is then less than the size.
mi_wraps void* _mi_theap_alloc_slow(mi_theap_t* theap, size_t size, bool zero) {
  return mi_theap_alloc_room(theap, size, size + MI_BLOCK_EXTRA, MI_BLOCK_ALIGN, zero, MI_FAMILY_ANY, __builtin_frame_address(0));
}

// Wraps: the room is then less than the size.
mi_wraps void* _mi_theap_alloc_slow_as(mi_theap_t* theap, size_t size, bool zero, uint8_t origin) {
  return mi_theap_alloc_room(theap, size, size + MI_BLOCK_EXTRA, MI_BLOCK_ALIGN, zero, origin, __builtin_frame_address(0));
}

void* _mi_theap_alloc_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero) {
  return mi_theap_alloc_room(theap, size, room, align, zero, MI_FAMILY_ANY, __builtin_frame_address(0));
}

void* _mi_theap_alloc_single(mi_theap_t* theap, size_t size, size_t align, bool zero) {
  const mi_request_t request = {
      _mi_max(size, MI_HAS_PADDING ? 0 : 1), size, align, true, false, zero, MI_FAMILY_ANY, __builtin_frame_address(0)};
  return mi_theap_alloc_any(theap, &request);
}

void* _mi_theap_alloc_growing(mi_theap_t* theap, size_t size, size_t align, bool zero) {
  const mi_request_t request = {size, size, align, true, true, zero, MI_FAMILY_ANY, __builtin_frame_address(0)};
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
      // Joining the lists of a page takes a walk through one of them.
      if (force) {
        _mi_page_collect(page);
      } else {
        _mi_sample_put_down(theap, page);
        _mi_page_collect_remote(page);
        _mi_sample_follow(theap, bin);
      }
      if (_mi_page_used(page) == 0 || (force && _mi_page_in_use(page) == 0)) {
        _mi_queue_remove(theap, page);
        _mi_page_release(page);
      } else {
        _mi_page_note_live(page, _mi_page_live(page));
      }
    }
  }
  _mi_theap_count_publish(theap);
  _mi_theap_check(theap);
}

void _mi_late_fork_prepare(void) { _mi_lock_acquire(&mi_late.lock); }

void _mi_late_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_late.lock);
  } else {
    _mi_lock_release(&mi_late.lock);
  }
}
