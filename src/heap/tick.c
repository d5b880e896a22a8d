// Owns: what is looked at from time to time: deadlines, keys after a fork; and what becomes of empty pages.
// May include: base, prim, sys, region, heap.
// Called by: heap.
// Invariants: memory that is not used is given back by the first call after its deadline, whichever function that is.
#include "src/heap/block.h"
#include "src/heap/heap-stats.h"
#include "src/heap/heap.h"
#include "src/heap/sample.h"
#include "src/heap/theap.h"
#include "src/prim/prim.h"
#include "src/region/arena.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

enum {
  // A thread whose slow calls are further apart than a tick of the coarse clock makes so few that each may as well look
  // at it.
  MI_TICK_BUSY_MS = 4,
  // So many slow calls in a row that are closer make a thread busy.
  MI_TICK_BUSY_CALLS = 8,
  // So many slow calls of a forked child before all of its pages get keys of their own.
  MI_FORKED_CALLS = 256,
  // Where blocks wait, so many frees after that look at the clock.
  MI_WATCHED_FREES = 256,
  // One empty page of each class is kept as it is, and further ones while a theap keeps no more slices than
  // a fourth of what it has: at least and at most so many.
  MI_RETIRED_SLICES_MIN = 32,
  MI_RETIRED_SLICES_MAX = 128,
};

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

// Whether this thread's pages may have keys that the parent of this process knows. The pages from which a forked child takes
// blocks get new ones before. All others only if it goes on for a while: most children run another program or end soon, and
// a new key is a copy of each OS page with one of the page's free blocks. Until then the slow path looks at each page.
static bool mi_theap_has_old_keys(mi_theap_t* own) {
  if (!(MI_HAS_ENCODED_LISTS | MI_HAS_OUTLINE_LISTS) || mi_likely(own->key_generation == _mi_random_generation())) {
    return false;
  }
  if (own->forked_generation != _mi_random_generation()) {
    own->forked_generation = _mi_random_generation();
    own->forked_calls = 0;
  }
  // Here and not in the fork handler: a fork in a signal handler may have interrupted a list operation. A thread that had no keys
  // yet was not forked.
  const bool waits = own->key_generation != 0 && ++own->forked_calls <= MI_FORKED_CALLS;
  if (waits || _mi_heaps_are_busy_here() || _mi_report_is_running()) {
    return true;
  }
  (void)_mi_random_next(&own->random);
  own->key_generation = own->random.generation;
  _mi_thread_each_theap(&mi_theap_rekey);
  return false;
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
  const bool has_old_keys = mi_unlikely(mi_theap_has_old_keys(own));
  // A quarantine may serve for good once the thread is armed.
  if (MI_HAS_QUARANTINE && _mi_sample_is_old(own) && !_mi_heaps_are_busy_here()) {
    _mi_thread_each_theap(&_mi_sample_update_slow);
  }
  // Relaxed: a deadline that is missed here is seen by the next call.
  int64_t purge_due = mi_atomic_load_relaxed(&_mi_arena_purge_due);
  if (own->retire_due == 0 && purge_due == 0) {
    if (!has_old_keys) {
      _mi_thread_arm();
    }
    return;
  }
  const int64_t now = _mi_prim_clock_ms();
  if (own->retire_due != 0 && now >= own->retire_due) {
    _mi_quarantine_settle_down(own);
    _mi_thread_each_theap(&mi_theap_retire_expired);
  }
  if (purge_due != 0 && now >= purge_due) {
    _mi_arenas_purge(now, false);
  }
  const bool pending = own->retire_due != 0 || mi_atomic_load_relaxed(&_mi_arena_purge_due) != 0;
  own->busy_ticks = now - own->last_tick <= MI_TICK_BUSY_MS ? own->busy_ticks + 1 : 0;
  own->last_tick = now;
  if (!has_old_keys && (!pending || own->busy_ticks >= MI_TICK_BUSY_CALLS)) {
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

bool _mi_theap_keeps(void) {
  const long delay = _mi_option_get(mi_option_purge_delay);
  // Time runs for the thread as a whole: its first theap's tick looks after all of them.
  mi_theap_t* const own = _mi_tls.own;
  if (delay > 0 && own != NULL && own->retire_due == 0) {
    own->retire_due = _mi_prim_clock_ms() + delay;
  }
  return delay != 0;
}

// A page became empty on this thread, and is kept or given back.
void _mi_page_retire(mi_page_t* page) {
  mi_theap_t* const theap = page->theap;
  if (_mi_option_get(mi_option_purge_delay) == 0 || !mi_theap_may_keep(theap, page)) {
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
  (void)_mi_theap_keeps();
  _mi_thread_disarm();
}
