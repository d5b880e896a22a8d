// Owns: pages that change hands: frees by other threads, full pages let go of, pages of ended threads, reclaiming.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: who sets MI_REMOTE_OWNED in page->remote by compare-and-swap owns the page until it clears it again. An
// unowned page that is not listed is full, and the first free into it claims it; a listed one is claimed by whoever needs
// its class, or by the free that makes all its blocks free. LISTED changes only under the heap's lock, by the owner.
#include "src/heap/heap-stats.h"

#include "src/sys/options.h"
#include "src/sys/report.h"

// The heap's list of a class: first in, first out, so that a page had time to gather free blocks when its turn comes.

// A page of an exclusive arena whose heap was deleted belongs to the main heap, and gives nobody a block any more.
mi_inline bool mi_page_may_serve(const mi_page_t* page, const mi_heap_t* heap) {
  return !page->arena->is_exclusive || page->arena == mi_atomic_load_relaxed(&heap->arena);
}

static mi_page_list_t* mi_heap_list_of(mi_heap_t* heap, const mi_page_t* page) {
  return &heap->listed[mi_page_may_serve(page, heap) ? page->bin : MI_BIN_SINGLE];
}

static void mi_page_list(mi_page_t* page) {
  page->next = NULL;
  mi_heap_t* const heap = _mi_page_lock_heap(page);
  mi_page_list_t* const list = mi_heap_list_of(heap, page);
  page->prev = list->last;
  if (list->last != NULL) {
    list->last->next = page;
  } else {
    mi_atomic_store_relaxed(&list->first, page);
  }
  list->last = page;
  mi_atomic_or_relaxed(&page->remote, MI_REMOTE_LISTED);
  _mi_lock_release(&heap->lock);
  mi_heap_stat_increase(heap, pages_abandoned, 1);
}

// The heap's lock is held and the page is owned by the caller.
static void mi_heap_unlink(mi_heap_t* heap, mi_page_t* page) {
  mi_page_list_t* const list = mi_heap_list_of(heap, page);
  if (page->next != NULL) {
    page->next->prev = page->prev;
  } else {
    list->last = page->prev;
  }
  if (page->prev != NULL) {
    page->prev->next = page->next;
  } else {
    mi_atomic_store_relaxed(&list->first, page->next);
  }
  page->next = NULL;
  page->prev = NULL;
  mi_atomic_and_relaxed(&page->remote, ~MI_REMOTE_LISTED);
  mi_heap_stat_decrease(heap, pages_abandoned, 1);
}

static void mi_page_unlist(mi_page_t* page) {
  mi_heap_t* const heap = _mi_page_lock_heap(page);
  mi_heap_unlink(heap, page);
  _mi_lock_release(&heap->lock);
}

// Makes an owned page this theap's. In no queue yet.
static void mi_page_adopt(mi_page_t* page, mi_theap_t* theap) {
  page->theap = theap;
  mi_atomic_store_relaxed(&page->last_tid, theap->tid);
  _mi_page_rekey(page);
  mi_atomic_store_relaxed(&page->owner, theap->tid | (page->has_interior ? (uintptr_t)MI_OWNER_HAS_INTERIOR : 0));
}

mi_page_t* _mi_heap_take_listed(mi_heap_t* heap, unsigned bin, mi_theap_t* theap) {
  mi_page_list_t* const list = &heap->listed[bin];
  // Relaxed: a page listed just now is seen the next time.
  if (mi_atomic_load_relaxed(&list->first) == NULL) {
    return NULL;
  }
  _mi_lock_acquire(&heap->lock);
  // A theap changes its heap under the lock of the one that it leaves: if it has, this one may be another heap by now.
  mi_page_t* page = mi_atomic_load_relaxed(&theap->heap) == heap ? mi_atomic_load_relaxed(&list->first) : NULL;
  for (; page != NULL; page = page->next) {
    uint64_t remote = mi_atomic_load_relaxed(&page->remote);
    bool claimed = false;
    while ((remote & MI_REMOTE_OWNED) == 0 && !claimed) {
      // Acquire pairs with the release of whoever let go of the page.
      claimed = mi_atomic_cas_weak_acq_rel(&page->remote, &remote,
                                           (remote & ~MI_REMOTE_USED_BITS) | MI_REMOTE_OWNED);
    }
    if (claimed) {
      mi_heap_unlink(heap, page);
      break;
    }
  }
  _mi_lock_release(&heap->lock);
  if (page != NULL) {
    mi_page_adopt(page, theap);
    mi_heap_counter_add(heap, pages_reclaim_on_alloc, 1);
  }
  return page;
}

bool _mi_page_try_unown_full(mi_page_t* page) {
  const uintptr_t owner = mi_atomic_load_relaxed(&page->owner);
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
  uint64_t remote = MI_REMOTE_OWNED;
  // Release: the next owner sees the page as it is.
  if (mi_atomic_cas_strong_acq_rel(&page->remote, &remote, 0)) {
    return true;
  }
  mi_atomic_store_relaxed(&page->owner, owner);
  return false;
}

// Lets go of a listed page, unless all its blocks have been freed by now: then it is gone.
static void mi_page_unown_listed(mi_page_t* page) {
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
  const uint64_t used = (uint64_t)_mi_page_used(page) << MI_REMOTE_USED_SHIFT;
  uint64_t remote = mi_atomic_load_relaxed(&page->remote);
  for (;;) {
    if (_mi_remote_count(remote) == _mi_page_used(page)) {
      _mi_page_collect_remote(page);
      mi_page_unlist(page);
      _mi_page_release(page);
      return;
    }
    if (mi_atomic_cas_weak_acq_rel(&page->remote, &remote, (remote & ~MI_REMOTE_OWNED) | used)) {
      return;
    }
  }
}

void _mi_page_abandon(mi_page_t* page) {
  _mi_page_collect(page);
  if (_mi_page_used(page) == 0) {
    _mi_page_release(page);
    return;
  }
  _mi_page_count_leave(page);
  if (_mi_page_is_full(page) && _mi_page_try_unown_full(page)) {
    return;
  }
  page->theap = NULL;
  mi_page_list(page);
  mi_page_unown_listed(page);
}

// A full page got a free block: whether the thread that freed it should have the page. The thread that filled it
// should; another one if it allocates in this class itself and has not collected too many, else frees by a thread that
// never allocates would keep memory from those who do.
static bool mi_page_should_reclaim(const mi_page_t* page, const mi_theap_t* theap) {
  if (!mi_page_may_serve(page, mi_atomic_load_relaxed(&theap->heap))) {
    return false;
  }
  const long reclaim = _mi_option_get(mi_option_page_reclaim_on_free);
  const mi_page_queue_t* const queue = &theap->queues[page->bin];
  if (mi_atomic_load_relaxed(&page->last_tid) == theap->tid) {
    const long max = _mi_option_get(mi_option_page_max_reclaim);
    return reclaim >= 0 && (max < 0 || (long)queue->count < max);
  }
  // Another heap than the main one may end at this moment; its pages then move to where this thread would not put them.
  if (mi_atomic_load_relaxed(&theap->heap) != &_mi_heap_main_instance) {
    return false;
  }
  return reclaim > 0 && !_mi_tls.in_threadpool && queue->first != NULL &&
      (long)queue->count < _mi_option_get(mi_option_page_cross_thread_max_reclaim);
}

static void mi_page_reclaim(mi_page_t* page, mi_theap_t* theap) {
  mi_page_adopt(page, theap);
  _mi_queue_push_back(theap, page);
  _mi_page_note_live(page, _mi_page_live(page));
  mi_heap_counter_add(_mi_page_heap(page), pages_reclaim_on_free, 1);
}

// This thread's free has claimed the page.
static void mi_page_claimed(mi_page_t* page, bool listed) {
  // Who had it last may be gone.
  page->theap = NULL;
  _mi_page_collect_remote(page);
  if (_mi_page_used(page) == 0) {
    if (listed) {
      mi_page_unlist(page);
    }
    _mi_page_release(page);
    _mi_thread_disarm();
    return;
  }
  if (!listed) {
    mi_theap_t* const theap = _mi_theap_find(mi_atomic_load_relaxed(&page->heap));
    if (theap != NULL && mi_page_should_reclaim(page, theap)) {
      mi_page_reclaim(page, theap);
      return;
    }
    _mi_page_count_leave(page);
    mi_page_list(page);
  }
  mi_page_unown_listed(page);
}

bool _mi_page_take_back(mi_page_t* page) {
  // Relaxed: what is seen of the page is looked at again by the swap.
  mi_theap_t* const theap = mi_atomic_load_relaxed(&page->remote) == 0 ? _mi_theap_find(mi_atomic_load_relaxed(&page->heap)) : NULL;
  uint64_t remote = 0;
  // Acquire pairs with the release of whoever let go of the page.
  if (theap == NULL || mi_atomic_load_relaxed(&page->last_tid) != theap->tid || !mi_page_should_reclaim(page, theap) ||
      !mi_atomic_cas_strong_acq_rel(&page->remote, &remote, MI_REMOTE_OWNED)) {
    return false;
  }
  mi_page_reclaim(page, theap);
  return true;
}

void _mi_page_free_remote(mi_page_t* page, mi_block_t* block) {
  const uint64_t head = (uint64_t)((uintptr_t)block - (uintptr_t)page->start) / MI_BLOCK_ALIGN + 1;
  uint64_t remote = mi_atomic_load_relaxed(&page->remote);
  uint64_t next;
  bool claim;
  do {
    const uint64_t old_head = (remote >> MI_REMOTE_HEAD_SHIFT) & MI_REMOTE_HEAD_MASK;
    const uint64_t count = _mi_remote_count(remote) + UINT64_C(1);
    _mi_block_set_remote_next(
        page, block, old_head == 0 ? NULL : (mi_block_t*)(void*)(page->start + (old_head - 1) * MI_BLOCK_ALIGN));
    claim = (remote & MI_REMOTE_OWNED) == 0 &&
        ((remote & MI_REMOTE_LISTED) == 0 || count == remote >> MI_REMOTE_USED_SHIFT);
    next = (count << MI_REMOTE_COUNT_SHIFT) | (head << MI_REMOTE_HEAD_SHIFT) |
        (remote & (MI_REMOTE_OWNED | MI_REMOTE_LISTED)) |
        (claim ? MI_REMOTE_OWNED : remote & MI_REMOTE_USED_BITS);
    // Release: the collector sees the link. Acquire: a claim sees the page as its last owner left it.
  } while (!mi_atomic_cas_weak_acq_rel(&page->remote, &remote, next));
  if (mi_unlikely(claim)) {
    mi_page_claimed(page, (remote & MI_REMOTE_LISTED) != 0);
  }
}

void _mi_theap_abandon(mi_theap_t* theap) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* page;
    while ((page = theap->queues[bin].first) != NULL) {
      _mi_queue_remove(theap, page);
      _mi_page_abandon(page);
    }
  }
  _mi_theap_count_publish(theap);
}
