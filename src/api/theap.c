// Owns: theaps as programs see them, and allocation in them.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs.
// Invariants: what a call works with is a theap of the calling thread whose heap exists, whatever it was given.
#include "src/api/api.h"
#include "src/heap/sample.h"
#include "src/sys/log.h"

// Another thread's theap stands for ours of the same heap. One without a heap is not to be used any more.
static mi_noinline mi_theap_t* mi_theap_of_other(const mi_theap_t* theap) {
  mi_heap_t* const heap = theap == NULL ? NULL : mi_atomic_load_relaxed(&theap->heap);
  return heap == NULL ? _mi_theap_default() : _mi_heap_theap(heap);
}

mi_inline mi_theap_t* mi_theap_mine(mi_theap_t* theap) {
  return mi_likely(theap != NULL && theap->tls == &_mi_tls && mi_atomic_load_relaxed(&theap->heap) != NULL)
      ? theap
      : mi_theap_of_other(theap);
}

mi_inline void* mi_theap_alloc(mi_theap_t* theap, size_t size, bool zero) {
  return _mi_api_theap_alloc(mi_theap_mine(theap), size, zero);
}

static size_t mi_theap_words(size_t wsize) { return _mi_api_total(wsize, sizeof(void*)); }

mi_theap_t* mi_heap_theap(mi_heap_t* heap) { return _mi_heap_theap(heap); }
mi_theap_t* mi_theap_get_default(void) { return _mi_theap_default(); }

mi_theap_t* mi_theap_set_default(mi_theap_t* theap) {
  mi_theap_t* const before = _mi_theap_default();
  mi_theap_t* const chosen = theap == NULL ? _mi_theap_own() : mi_theap_mine(theap);
  if (mi_likely(chosen != NULL)) {
    _mi_theap_choose_default(chosen);
  }
  return before;
}

void mi_theap_collect(mi_theap_t* theap, bool force) {
  mi_theap_t* const mine = mi_theap_mine(theap);
  if (mine != NULL) {
    _mi_theap_collect(mine, force);
  }
}

void mi_theap_delete(mi_theap_t* theap) {
  if (theap == NULL || theap->tls != &_mi_tls) {
    return;
  }
  if (theap == _mi_tls.own) {
    _mi_log_warning("the theap of the main heap cannot be deleted\n");
    return;
  }
  _mi_thread_end_theap(theap);
}

void mi_theap_quiescent_abandon(mi_theap_t* theap) {
  mi_theap_t* const mine = mi_theap_mine(theap);
  if (mine != NULL) {
    _mi_quarantine_flush(mine);
    _mi_theap_abandon(mine);
  }
}

void mi_theap_guarded_set_sample_rate(mi_theap_t* theap, size_t sample_rate, size_t seed) {
  mi_theap_t* const mine = mi_theap_mine(theap);
  if (mine != NULL) {
    _mi_sample_set_theap_rate(mine, sample_rate, seed);
  }
}

void mi_theap_guarded_set_size_bound(mi_theap_t* theap, size_t min, size_t max) {
  mi_theap_t* const mine = mi_theap_mine(theap);
  if (mine != NULL) {
    _mi_sample_set_theap_bounds(mine, min, max);
  }
}

void* mi_theap_malloc(mi_theap_t* theap, size_t size) { return mi_theap_alloc(theap, size, false); }
void* mi_theap_zalloc(mi_theap_t* theap, size_t size) { return mi_theap_alloc(theap, size, true); }

void* mi_theap_calloc(mi_theap_t* theap, size_t count, size_t size) {
  return mi_theap_alloc(theap, _mi_api_total(count, size), true);
}

void* mi_theap_malloc_small(mi_theap_t* theap, size_t size) { return mi_theap_alloc(theap, size, false); }
void* mi_theap_zalloc_small(mi_theap_t* theap, size_t size) { return mi_theap_alloc(theap, size, true); }

void* mi_theap_wmalloc_small(mi_theap_t* theap, size_t wsize) {
  return mi_theap_alloc(theap, mi_theap_words(wsize), false);
}

void* mi_theap_wzalloc_small(mi_theap_t* theap, size_t wsize) {
  return mi_theap_alloc(theap, mi_theap_words(wsize), true);
}

void* mi_theap_malloc_aligned(mi_theap_t* theap, size_t size, size_t alignment) {
  return _mi_alloc_aligned(mi_theap_mine(theap), size, alignment, 0, false);
}

void* mi_theap_zalloc_aligned(mi_theap_t* theap, size_t size, size_t alignment) {
  return _mi_alloc_aligned(mi_theap_mine(theap), size, alignment, 0, true);
}

void* mi_theap_realloc(mi_theap_t* theap, void* p, size_t newsize) {
  return _mi_realloc(mi_theap_mine(theap), p, newsize, false);
}

void* mi_theap_rezalloc(mi_theap_t* theap, void* p, size_t newsize) {
  return _mi_realloc(mi_theap_mine(theap), p, newsize, true);
}
