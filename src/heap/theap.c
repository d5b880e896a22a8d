// Owns: theaps: made, found, given back; the thread-local words.
// May include: base, prim, sys, region, heap.
// Called by: heap, alloc.
// Invariants: a thread's theaps are chained from its theap of its sub-process's main heap, which comes first.
#include "src/heap/theap.h"

#include <string.h>

#include "src/heap/block.h"
#include "src/heap/heap-stats.h"
#include "src/heap/heap.h"
#include "src/heap/process.h"
#include "src/prim/prim.h"
#include "src/region/meta.h"
#include "src/sys/report.h"

// All zeroes at first: an indirect function's resolver may allocate before the loader has copied initial values here.
mi_thread_local mi_tls_t _mi_tls;

// A deadline that was set just now concerns all threads: any of them may make the next call after it. A theap is unlinked
// before its thread's storage goes, and this lock keeps it linked.
static void mi_threads_disarm_locked(void) {
  for (const mi_heap_t* main = _mi_heap_main(); main != NULL; main = main->next_main) {
    for (mi_theap_t* theap = main->theaps; theap != NULL; theap = theap->next_in_heap) {
      if (theap->tls != NULL) {
        _mi_tls_disarm(theap->tls);
      }
    }
  }
}

static void mi_threads_disarm_for_purge(void) {
  if (!_mi_heaps_try_lock()) {
    return;
  }
  if (mi_atomic_exchange_acq_rel(&_mi_arena_purge_is_news, false)) {
    mi_threads_disarm_locked();
  }
  _mi_heaps_unlock();
}

void _mi_threads_disarm(void) {
  const bool held = _mi_heaps_are_busy_here();
  if (!held) {
    _mi_heaps_lock();
  }
  mi_threads_disarm_locked();
  if (!held) {
    _mi_heaps_unlock();
  }
}

void _mi_thread_disarm(void) {
  _mi_tls_disarm(&_mi_tls);
  if (mi_unlikely(mi_atomic_load_relaxed(&_mi_arena_purge_is_news))) {
    mi_threads_disarm_for_purge();
  }
}

// Thread ids are not used twice, so a page can never be taken for that of a thread long gone.
static _Atomic(uintptr_t) mi_next_tid = MI_TID_FIRST;

void _mi_theap_begin(mi_theap_t* theap, uintptr_t tid) {
  theap->tid = tid;
  for (size_t i = 0; i < MI_DIRECT_ENTRIES; i++) {
    theap->direct[i] = &_mi_page_empty;
  }
  _mi_quarantine_begin(theap);
}

void _mi_theap_free(mi_theap_t* theap) {
  enum { WITHOUT_TABLES = offsetof(mi_theap_t, sampling) + offsetof(mi_sampling_t, drawn) };
  _Static_assert(MI_HAS_QUARANTINE || (int)WITHOUT_TABLES <= 8 * MI_KIB, "a thread touches two OS pages of a theap");
  _mi_meta_free_part(theap, sizeof(*theap), theap->sampling.has_tables ? sizeof(*theap) : WITHOUT_TABLES);
}

// NULL, and *ended set: the heap has ended. Else there is no memory.
static mi_theap_t* mi_theap_new(mi_heap_t* heap, uintptr_t tid, bool is_own, bool* ended) {
  *ended = false;
  if (mi_unlikely(_mi_heaps_are_busy_here())) {
    return NULL;
  }
  mi_theap_t* const theap = _mi_meta_zalloc(sizeof(*theap));
  if (theap == NULL) {
    return NULL;
  }
  _mi_theap_begin(theap, tid);
  theap->tls = &_mi_tls;
  theap->is_own = is_own;
  _mi_heaps_lock();
  const uintptr_t id = mi_atomic_load_relaxed(&heap->id);
  mi_atomic_store_relaxed(&theap->heap_id, id);
  mi_atomic_store_relaxed(&theap->heap, heap);
  *ended = id == 0;
  if (mi_likely(!*ended)) {
    _mi_heap_link_theap(heap, theap);
  }
  _mi_heaps_unlock();
  if (mi_unlikely(*ended)) {
    _mi_theap_free(theap);
    return NULL;
  }
  mi_heap_stat_increase(heap, theaps, 1);
  return theap;
}

void _mi_heap_link_theap(mi_heap_t* heap, mi_theap_t* theap) {
  theap->next_in_heap = heap->theaps;
  if (heap->theaps != NULL) {
    heap->theaps->prev_in_heap = theap;
  }
  heap->theaps = theap;
}

void _mi_heap_unlink_theap(mi_heap_t* heap, mi_theap_t* theap) {
  if (theap->prev_in_heap != NULL) {
    theap->prev_in_heap->next_in_heap = theap->next_in_heap;
  } else {
    heap->theaps = theap->next_in_heap;
  }
  if (theap->next_in_heap != NULL) {
    theap->next_in_heap->prev_in_heap = theap->prev_in_heap;
  }
}

uintptr_t _mi_theap_next_tid(void) { return mi_atomic_load_relaxed(&mi_next_tid); }

void _mi_theap_end(mi_theap_t* theap) {
  // Under this lock a heap cannot be ended, so the theap either has its heap or has none to be unlinked from.
  _mi_heaps_lock();
  mi_heap_t* const heap = mi_atomic_load_relaxed(&theap->heap);
  if (heap != NULL) {
    _mi_quarantine_flush(theap);
    _mi_theap_abandon(theap);
    _mi_heap_unlink_theap(heap, theap);
    _mi_stat_decrease(&heap->counts.theaps, 1);
  }
  _mi_heaps_unlock();
  _mi_quarantine_end(theap);
  _mi_stat_decrease(&_mi_stats.theaps, 1);
  _mi_theap_free(theap);
}

mi_theap_t* _mi_theap_own(void) {
  if (mi_likely(_mi_tls.own != NULL)) {
    // Without a heap where the thread's sub-process was destroyed.
    const bool is_whole = mi_atomic_load_relaxed(&_mi_tls.own->heap) != NULL;
    return mi_likely(is_whole) || _mi_thread_move(_mi_heap_main()) ? _mi_tls.own : NULL;
  }
  if (_mi_tls.state == MI_THREAD_DONE || !_mi_process_init()) {
    return NULL;
  }
  // A hook of the C library may have allocated on the way here.
  if (_mi_tls.own != NULL) {
    return _mi_tls.own;
  }
  const uintptr_t tid = mi_atomic_add_relaxed(&mi_next_tid, MI_TID_STEP);
  bool ended;
  mi_theap_t* const theap = mi_theap_new(_mi_heap_main(), tid, true, &ended);
  if (theap == NULL) {
    return NULL;
  }
  _mi_tls.own = theap;
  _mi_tls.own_tid = tid;
  _mi_tls.state = MI_THREAD_READY;
  _mi_thread_arm();
  _mi_stat_increase(&_mi_stats.threads, 1);
  // May allocate, which works by now.
  _mi_prim_thread_on_exit_set(theap);
  return theap;
}

bool _mi_thread_move(mi_heap_t* main) {
  mi_theap_t* const old = _mi_tls.own;
  bool ended;
  mi_theap_t* const theap = mi_theap_new(main, old->tid, true, &ended);
  if (theap == NULL) {
    return false;
  }
  theap->retire_due = old->retire_due;
  theap->next_in_thread = old->next_in_thread;
  _mi_tls.own = theap;
  _mi_thread_arm();
  _mi_theap_end(old);
  return true;
}

mi_theap_t* _mi_theap_default(void) {
  mi_theap_t* const own = _mi_theap_own();
  mi_theap_t* const chosen = mi_atomic_load_relaxed(&_mi_tls.chosen);
  return mi_likely(chosen == NULL) ? own : chosen;
}

void _mi_theap_choose_default(mi_theap_t* theap) {
  mi_atomic_store_relaxed(&_mi_tls.chosen, theap == _mi_tls.own ? NULL : theap);
  _mi_thread_arm();
}

static bool mi_theap_is_of(const mi_theap_t* theap, const mi_heap_t* heap, uintptr_t id) {
  return mi_atomic_load_relaxed(&theap->heap) == heap && mi_atomic_load_relaxed(&theap->heap_id) == id;
}

mi_theap_t* _mi_theap_find(const mi_heap_t* heap) {
  mi_theap_t* const own = _mi_tls.own;
  if (own == NULL) {
    return NULL;
  }
  const uintptr_t id = mi_atomic_load_relaxed(&heap->id);
  mi_theap_t** const recent = &own->recent[id % MI_THEAP_RECENT];
  if (mi_likely(*recent != NULL && mi_theap_is_of(*recent, heap, id))) {
    return *recent;
  }
  mi_theap_t* theap = own;
  while (theap != NULL && !mi_theap_is_of(theap, heap, id)) {
    theap = theap->next_in_thread;
  }
  if (theap != NULL) {
    *recent = theap;
  }
  return theap;
}

// Nothing of the thread leads to the theap any more, which is out of its chain.
static void mi_thread_forget_theap(const mi_theap_t* theap) {
  for (size_t i = 0; i < MI_THEAP_RECENT; i++) {
    if (_mi_tls.own->recent[i] == theap) {
      _mi_tls.own->recent[i] = NULL;
    }
  }
  if (mi_atomic_load_relaxed(&_mi_tls.chosen) == theap) {
    mi_atomic_store_relaxed(&_mi_tls.chosen, NULL);
  }
  if (_mi_thread_theap() == theap) {
    _mi_thread_disarm();
  }
}

void _mi_thread_end_theap(mi_theap_t* theap) {
  mi_theap_t** link = &_mi_tls.own->next_in_thread;
  while (*link != theap) {
    link = &(*link)->next_in_thread;
  }
  *link = theap->next_in_thread;
  mi_thread_forget_theap(theap);
  _mi_theap_end(theap);
}

// A heap was destroyed, or deleted so that its theap is a second one of the main heap, which the first inherits the pages of
// through the heap's lists.
void _mi_thread_prune(void) {
  if (_mi_tls.own == NULL || mi_unlikely(_mi_heaps_are_busy_here())) {
    return;
  }
  mi_theap_t* next;
  const mi_heap_t* const own_heap = mi_atomic_load_relaxed(&_mi_tls.own->heap);
  for (mi_theap_t* theap = _mi_tls.own->next_in_thread; theap != NULL; theap = next) {
    next = theap->next_in_thread;
    const mi_heap_t* const heap = mi_atomic_load_acquire(&theap->heap);
    if (heap == NULL || heap == own_heap) {
      _mi_thread_end_theap(theap);
    }
  }
}

// Stand-ins: theaps of no thread that never have a page. They stay; those whose heaps have ended are the main heap's, for the
// next heap that needs one.

static mi_theap_t* mi_stand_in_of(const mi_heap_t* heap) {
  mi_theap_t* theap = heap->theaps;
  while (theap != NULL && theap->tid != MI_TID_LATE) {
    theap = theap->next_in_heap;
  }
  return theap;
}

static mi_theap_t* mi_stand_in_new(void) {
  static mi_tls_t nobody;
  mi_theap_t* theap = mi_stand_in_of(_mi_heap_main());
  if (theap != NULL) {
    _mi_heap_unlink_theap(_mi_heap_main(), theap);
    return theap;
  }
  theap = _mi_meta_zalloc(sizeof(*theap));
  if (theap != NULL) {
    _mi_theap_begin(theap, MI_TID_LATE);
    theap->tls = &nobody;
  }
  return theap;
}

// NULL: the heap is not bound to an arena.
static mi_cold mi_theap_t* mi_heap_stand_in(mi_heap_t* heap) {
  // Of no heap: there is never memory.
  static mi_far mi_theap_t none;
  if (mi_atomic_load_relaxed(&heap->arena) == NULL) {
    return NULL;
  }
  const bool held = _mi_heaps_are_busy_here();
  if (!held) {
    _mi_heaps_lock();
  }
  mi_theap_t* theap = mi_stand_in_of(heap);
  if (theap == NULL && mi_atomic_load_relaxed(&heap->id) != 0) {
    theap = mi_stand_in_new();
    if (theap != NULL) {
      theap->prev_in_heap = NULL;
      mi_atomic_store_relaxed(&theap->heap_id, mi_atomic_load_relaxed(&heap->id));
      mi_atomic_store_relaxed(&theap->heap, heap);
      _mi_heap_link_theap(heap, theap);
    }
  }
  if (theap == NULL && none.tid == 0) {
    _mi_theap_begin(&none, MI_TID_LATE);
  }
  if (!held) {
    _mi_heaps_unlock();
  }
  return theap != NULL ? theap : &none;
}

mi_inline mi_theap_t* mi_heap_theap_or(mi_heap_t* heap, bool or_stand_in) {
  mi_theap_t* const own = _mi_theap_own();
  if (own == NULL || heap == NULL || heap == mi_atomic_load_relaxed(&own->heap)) {
    return own != NULL || heap == NULL || !or_stand_in ? own : mi_heap_stand_in(heap);
  }
  mi_theap_t* const found = _mi_theap_find(heap);
  if (mi_likely(found != NULL)) {
    return found;
  }
  if (mi_unlikely(!_mi_heap_may_be(heap))) {
    _mi_report(MI_VIOLATION_foreign_free, "pointer %p is no heap of this allocator, and is used", (void*)heap);
    return own;
  }
  _mi_thread_prune();
  bool ended;
  mi_theap_t* const theap = mi_theap_new(heap, own->tid, false, &ended);
  if (theap != NULL) {
    theap->next_in_thread = own->next_in_thread;
    own->next_in_thread = theap;
  } else if (mi_unlikely(ended)) {
    _mi_report(MI_VIOLATION_use_after_free, "pointer %p is a heap that has been deleted or destroyed, and is used", (void*)heap);
    return own;
  }
  return theap != NULL || !or_stand_in ? theap : mi_heap_stand_in(heap);
}

mi_theap_t* _mi_heap_theap(mi_heap_t* heap) { return mi_heap_theap_or(heap, false); }

mi_theap_t* _mi_heap_theap_or_stand_in(mi_heap_t* heap) { return mi_heap_theap_or(heap, true); }

void _mi_thread_each_theap(void (*visit)(mi_theap_t* theap)) {
  mi_theap_t* const own = _mi_tls.own;
  if (own == NULL) {
    return;
  }
  visit(own);
  if (own->next_in_thread == NULL) {
    return;
  }
  _mi_heaps_lock();
  for (mi_theap_t* theap = own->next_in_thread; theap != NULL; theap = theap->next_in_thread) {
    if (mi_atomic_load_relaxed(&theap->heap) != NULL) {
      visit(theap);
    }
  }
  _mi_heaps_unlock();
}
