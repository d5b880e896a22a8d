// Owns: which allocations of a theap are sampled, decided where its lists are filled, so that the fast paths have no part in it.
// May include: base, sys, guarded, heap.
// Called by: heap, alloc, api.
// Invariants: while a kind of sampling is on, what the first page of a queue has in `free` is counted: it ends before the
// next sampled allocation of its class, which so comes to the slow path. No other page's list is counted. With all kinds off
// nothing is counted and nothing is cut.
//
// A theap has for each class and each kind of sampling a countdown: how many allocations of the class go before the next
// sampled one. A list that is about to serve is counted at once, by its length, and cut where the countdown ends; the rest
// goes back to page->local_free and is counted when its turn comes. A list that ceases to serve before it is used up is
// counted back. So it is certain allocations that are sampled, the n-th of a class, whatever pages and lists they come from.
// Blocks that serve again from a quarantine touch no list: they have a countdown of their own, which each of them counts.
#pragma once

#include "src/heap/theap.h"

// Brings the theap's settings up to date, if any have changed. By its thread, on slow paths.
mi_cold void _mi_sample_update_slow(mi_theap_t* theap);

extern _Atomic(uint32_t) _mi_sample_generation;

mi_inline bool _mi_sample_is_old(const mi_theap_t* theap) {
  // Relaxed: a setting that is missed here is seen by the next slow call.
  return mi_unlikely(theap->sampling.generation != mi_atomic_load_relaxed(&_mi_sample_generation));
}

mi_inline void _mi_sample_update(mi_theap_t* theap) {
  if (_mi_sample_is_old(theap)) {
    _mi_sample_update_slow(theap);
  }
}

// Which kinds sample the allocation of the class that is about to be made; their countdowns begin anew. MI_BIN_SINGLE: of
// what has no class. One that a counted list will serve is none.
unsigned _mi_sample_now(mi_theap_t* theap, unsigned bin);

// Whether that may be any, for a class.
mi_inline bool _mi_sample_may_be_now(mi_theap_t* theap, unsigned bin) {
  const mi_page_t* const counted = theap->sampling.counted[bin];
  if (counted != NULL && !_mi_page_is_ready(counted)) {
    theap->sampling.counted[bin] = NULL;
  }
  return MI_HAS_QUARANTINE || theap->sampling.lists[bin].ahead == 0;
}

// An allocation of the class, asked about by _mi_sample_now, was or will be served by no list.
void _mi_sample_pass(mi_theap_t* theap, unsigned bin);

// One that was to serve again from a quarantine, and was not guarded after all, is about to be served by a list: a list that is
// filled for it has one more.
void _mi_sample_lend(mi_theap_t* theap, unsigned bin);

void _mi_sample_follow_slow(mi_theap_t* theap, unsigned bin);
void _mi_sample_put_down_slow(mi_theap_t* theap, const mi_page_t* page);

// The first page of a queue is another one, or its list is: the list is counted, and any other of the class no longer.
mi_inline void _mi_sample_follow(mi_theap_t* theap, unsigned bin) {
  if (mi_unlikely(theap->sampling.kinds != 0) && theap->queues[bin].first != theap->sampling.counted[bin]) {
    _mi_sample_follow_slow(theap, bin);
  }
}

// The list of the first page of a queue has come to its end, and has been filled again.
mi_inline void _mi_sample_refilled(mi_theap_t* theap, const mi_page_t* page) {
  if (mi_unlikely(theap->sampling.kinds != 0)) {
    if (theap->sampling.counted[page->bin] == page) {
      theap->sampling.counted[page->bin] = NULL;
    }
    _mi_sample_follow_slow(theap, page->bin);
  }
}

// The page's list serves no longer, or is about to change.
mi_inline void _mi_sample_put_down(mi_theap_t* theap, const mi_page_t* page) {
  if (mi_unlikely(theap->sampling.kinds != 0)) {
    _mi_sample_put_down_slow(theap, page);
  }
}

// Of quarantines: how many blocks of the class may serve again before the next sampled one; so many have; and the kinds
// that sample the one that would have served now.
int64_t _mi_sample_grant(mi_theap_t* theap, unsigned bin);
void _mi_sample_taken(mi_theap_t* theap, unsigned bin, int64_t count);
unsigned _mi_sample_take_ended(mi_theap_t* theap, unsigned bin);

// The seed that the process's sampling began with, as option guarded_sample_seed takes it.
size_t _mi_sample_seed(void);

// Settings. Each takes effect for the calling thread at once, for others with their next call that finds no block in a list; where
// blocks serve again from a quarantine, which may never end, with their next call.

// Options have changed, or were read; a profile has started or ended.
void _mi_sample_changed(void);

// Of all theaps of a heap, and of those it will have; and of one theap, of the calling thread. A rate of 0 samples nothing; a
// seed of 0 is the process's. Sizes are requests in bytes; both bounds are allowed.
void _mi_sample_set_heap_rate(mi_heap_t* heap, size_t rate, size_t seed);
void _mi_sample_set_heap_bounds(mi_heap_t* heap, size_t min, size_t max);
void _mi_sample_set_theap_rate(mi_theap_t* theap, size_t rate, size_t seed);
void _mi_sample_set_theap_bounds(mi_theap_t* theap, size_t min, size_t max);

// In a forked child: it draws other numbers than its parent from now on.
void _mi_sample_fork_child(void);
