// Owns: first-class heaps and the list of them.
// May include: base, sys, region, heap.
// Called by: alloc, api, heap.
// Invariants: mi_heaps.lock is taken before a heap's own lock; it guards which heap a theap belongs to. The memory of an
// ended heap only ever becomes a heap again and keeps its lock, so a thread that was about to lock it finds a lock, and
// finds out under it that its page has moved on.
#include "src/heap/heap.h"

#include <string.h>

#include "src/heap/block.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"
#include "src/prim/prim.h"
#include "src/region/meta.h"
#include "src/sys/deferred.h"
#include "src/sys/stats.h"

mi_heap_t _mi_heap_main_instance = {.id = 1};

static struct {
  mi_lock_t lock;
  mi_heap_t* first;
  mi_heap_t* ended;  // for reuse
  uintptr_t last_id;
} mi_heaps = {.last_id = 1};

void _mi_heaps_lock(void) { _mi_lock_acquire(&mi_heaps.lock); }

bool _mi_heaps_try_lock(void) { return _mi_lock_try_acquire(&mi_heaps.lock); }

void _mi_heaps_unlock(void) { _mi_lock_release(&mi_heaps.lock); }

bool _mi_heaps_are_busy_here(void) { return _mi_lock_is_mine(&mi_heaps.lock) && !_mi_lock_is_forking(); }

mi_heap_t* _mi_heap_new(void) {
  if (mi_unlikely(_mi_heaps_are_busy_here())) {
    return NULL;
  }
  (void)_mi_theap_default();
  _mi_heaps_lock();
  mi_heap_t* heap = mi_heaps.ended;
  if (heap != NULL) {
    mi_heaps.ended = heap->next;
  } else {
    heap = _mi_meta_zalloc(sizeof(*heap));
  }
  if (heap != NULL) {
    heap->id = ++mi_heaps.last_id;
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

// Takes the heap out of the list and detaches its theaps: they belong to `successor` from now on, or to nobody.
static void mi_heap_detach(mi_heap_t* heap, mi_heap_t* successor) {
  if (heap->prev != NULL) {
    heap->prev->next = heap->next;
  } else {
    mi_heaps.first = heap->next;
  }
  if (heap->next != NULL) {
    heap->next->prev = heap->prev;
  }
  mi_theap_t* next;
  for (mi_theap_t* theap = heap->theaps; theap != NULL; theap = next) {
    next = theap->next_in_heap;
    theap->prev_in_heap = NULL;
    theap->next_in_heap = NULL;
    if (successor != NULL) {
      mi_atomic_store_relaxed(&theap->heap_id, successor->id);
      _mi_heap_link_theap(successor, theap);
    }
    // Release pairs with the acquire of the owner thread, which drops a theap without a heap unseen.
    mi_atomic_store_release(&theap->heap, successor);
  }
  heap->theaps = NULL;
}

static void mi_heap_end(mi_heap_t* heap) {
  // Everything but the lock as new. The id stays until the next heap gets another, so that it matches no theap.
  memset((void*)heap->listed, 0, sizeof(heap->listed));
  heap->next = mi_heaps.ended;
  mi_heaps.ended = heap;
  _mi_stat_decrease(&_mi_stats.heaps, 1);
}

// Calls `visit` for the heap's pages in arenas, those of all heaps for NULL. The page may be gone when it returns.
static void mi_heap_visit_arena_pages(const mi_heap_t* heap, bool (*visit)(mi_page_t* page, void* arg), void* arg) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    size_t index = _mi_bitmap_next_set(arena->heads, arena->slice_count, 0);
    for (; index < arena->slice_count; index = _mi_bitmap_next_set(arena->heads, arena->slice_count, index + 1)) {
      mi_page_t* const page = _mi_arena_page_meta(arena, index);
      if (heap == NULL || mi_atomic_load_relaxed(&page->heap) == heap) {
        (void)visit(page, arg);
      }
    }
  }
}

// The page may have been given back since it was looked at, and be another heap's by now: then it stays there.
static bool mi_page_move_to_main(mi_page_t* page, void* heap) {
  mi_heap_t* from = heap;
  mi_atomic_cas_strong_acq_rel(&page->heap, &from, _mi_heap_main());
  return true;
}

// Joins the ended heap's lists to the main heap's.
static void mi_heap_move_lists(mi_heap_t* heap) {
  mi_heap_t* const main = _mi_heap_main();
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* const first = mi_atomic_load_relaxed(&heap->listed[bin].first);
    if (first == NULL) {
      continue;
    }
    mi_page_list_t* const list = &main->listed[bin];
    first->prev = list->last;
    if (list->last != NULL) {
      list->last->next = first;
    } else {
      mi_atomic_store_relaxed(&list->first, first);
    }
    list->last = heap->listed[bin].last;
  }
}

void _mi_heap_delete(mi_heap_t* heap) {
  if (heap == NULL || heap == _mi_heap_main() || mi_unlikely(_mi_heaps_are_busy_here())) {
    return;
  }
  _mi_heaps_lock();
  mi_heap_detach(heap, _mi_heap_main());
  // Both locks: a page changes its heap and its list at once for everyone who lists or unlists.
  _mi_lock_acquire(&heap->lock);
  _mi_lock_acquire(&_mi_heap_main()->lock);
  mi_heap_visit_arena_pages(heap, &mi_page_move_to_main, heap);
  _mi_single_visit(&mi_page_move_to_main, heap);
  _mi_zero_size_heap_end(heap, _mi_heap_main());
  mi_heap_move_lists(heap);
  _mi_lock_release(&_mi_heap_main()->lock);
  _mi_lock_release(&heap->lock);
  mi_heap_end(heap);
  _mi_heaps_unlock();
}

static bool mi_single_is_of_heap(mi_page_t* page, void* arg) {
  mi_page_t** const found = arg;
  if (mi_atomic_load_relaxed(&page->heap) != mi_atomic_load_relaxed(&(*found)->heap)) {
    return true;
  }
  *found = page;
  return false;
}

static void mi_heap_release_singles(mi_heap_t* heap) {
  mi_page_t probe;
  mi_atomic_store_relaxed(&probe.heap, heap);
  for (;;) {
    mi_page_t* found = &probe;
    _mi_single_visit(&mi_single_is_of_heap, &found);
    if (found == &probe) {
      return;
    }
    _mi_page_release(found);
  }
}

// Counts as unlisted what was listed: the lists go with the heap.
static bool mi_page_release_with_heap(mi_page_t* page, void* arg) {
  (void)arg;
  if ((mi_atomic_load_relaxed(&page->remote) & MI_REMOTE_LISTED) != 0) {
    _mi_stat_decrease(&_mi_stats.pages_abandoned, 1);
  }
  page->used = 0;
  if (MI_HAS_ZERO_ON_FREE) {
    _mi_page_release_idle(page);
  } else {
    _mi_page_release(page);
  }
  return true;
}

void _mi_heap_destroy(mi_heap_t* heap) {
  if (heap == NULL || heap == _mi_heap_main() || mi_unlikely(_mi_heaps_are_busy_here())) {
    return;
  }
  _mi_heaps_lock();
  mi_heap_detach(heap, NULL);
  mi_heap_visit_arena_pages(heap, &mi_page_release_with_heap, NULL);
  mi_heap_release_singles(heap);
  _mi_zero_size_heap_end(heap, NULL);
  mi_heap_end(heap);
  _mi_heaps_unlock();
  _mi_thread_disarm();
}

static bool mi_page_unregister(mi_page_t* page, void* arg) {
  (void)arg;
  _mi_page_map_unregister(page->start, page->slice_count);
  return true;
}

static bool mi_page_note_use(mi_page_t* page, void* in_use) {
  const uint32_t freed = _mi_remote_count(mi_atomic_load_acquire(&page->remote));
  *(bool*)in_use = *(bool*)in_use || page->used > freed;
  return true;
}

static bool mi_heaps_are_empty(void) {
  bool in_use = false;
  mi_heap_visit_arena_pages(NULL, &mi_page_note_use, &in_use);
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
    _mi_tls.state = MI_THREAD_DONE;
    _mi_heap_main()->theaps = NULL;
    memset((void*)_mi_heap_main()->listed, 0, sizeof(_mi_heap_main()->listed));
    mi_heap_visit_arena_pages(NULL, &mi_page_unregister, NULL);
    _mi_zero_size_destroy_all();
    _mi_arenas_destroy();
  }
  _mi_heaps_unlock();
  if (destroy && unloaded) {
    _mi_os_release_permanent();
  }
  return destroy;
}

void _mi_heap_collect(mi_heap_t* heap, bool force) {
  _mi_deferred_free(force);
  mi_theap_t* const theap = heap == NULL ? _mi_tls.own : _mi_theap_find(heap);
  if (theap != NULL) {
    _mi_theap_collect(theap, force);
  }
}

void _mi_heaps_fork_prepare(void) {
  _mi_heaps_lock();
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
    if (theap->tls != &_mi_tls) {
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
      _mi_quarantine_end(theap);
      _mi_stat_decrease(&_mi_stats.theaps, 1);
      _mi_meta_free(theap, sizeof(*theap));
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
  if (in_child) {
    _mi_lock_reset(&mi_heaps.lock);
  } else {
    _mi_heaps_unlock();
  }
  return others;
}
