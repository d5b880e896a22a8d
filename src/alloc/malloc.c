// Owns: allocation beyond the inline path, and the plain queries.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: api.
// Invariants: blocks of a class that has no direct entry still cost one look at the queue's first page.
#include <errno.h>
#include <string.h>

#include "src/alloc/alloc.h"
#include "src/alloc/told.h"
#include "src/heap/sample.h"

// A block of `room` bytes from the theap's own queue, for a request of `size`.
mi_inline void* mi_theap_pop_queue_as(mi_theap_t* theap, size_t size, size_t room, bool zero, mi_family_t family) {
  const unsigned bin = _mi_bin_of_size(room);
  // Nobody disarms who names a theap.
  if (MI_HAS_QUARANTINE && _mi_sample_is_old(theap)) {
    return NULL;
  }
  if (MI_HAS_QUARANTINE && theap->quarantines[bin]->ready > 0) {
    mi_page_t* page;
    mi_block_t* block;
    if (mi_likely(_mi_quarantine_take(theap, theap->quarantines[bin], (uint8_t)family, &page, &block))) {
      return _mi_block_prepare_usual(page, block, size, zero, false);
    }
    if (_mi_quarantine_is_due(theap->quarantines[bin])) {
      return NULL;
    }
    _mi_quarantine_skip(theap, theap->quarantines[bin]);
  }
  if (MI_HAS_QUARANTINE) {
    theap->starved[bin] = true;
  }
  mi_page_t* const page = theap->queues[bin].first;
  if (page == NULL) {
    return NULL;
  }
  void* p = _mi_page_try_pop_as(page, (uint8_t)family);
  if (mi_unlikely(p == NULL) && _mi_theap_refill_first(theap, page)) {
    p = _mi_page_try_pop_as(page, (uint8_t)family);
  }
  return mi_likely(p != NULL) ? _mi_block_hand_out(page, p, size, zero, page->free_is_zero) : NULL;
}

mi_inline void* mi_theap_pop_queue(mi_theap_t* theap, size_t size, size_t room, bool zero) {
  return mi_theap_pop_queue_as(theap, size, room, zero, MI_FAMILY_ANY);
}

// Whether a request that the inline path left goes to the queues: to see what was freed since, or because it has no entry.
mi_inline bool mi_size_is_queued(size_t size) { return _mi_block_is_plain(size, MI_LARGE_BLOCK_MAX); }

void* _mi_alloc_slow(size_t size) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (mi_size_is_queued(size) && theap != NULL) {
    void* const p = mi_theap_pop_queue(theap, size, size + MI_BLOCK_EXTRA, false);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  return _mi_told(_mi_theap_alloc_slow(_mi_theap_default(), size, false), size);
}

void* _mi_alloc_slow_as(size_t size, bool zero, mi_family_t family) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (mi_size_is_queued(size) && theap != NULL) {
    void* const p = mi_theap_pop_queue_as(theap, size, size + MI_BLOCK_EXTRA, zero, family);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  void* const p = _mi_origin_mark(_mi_theap_alloc_slow_as(_mi_theap_default(), size, zero, (uint8_t)family), family, 1);
  return _mi_told(p, size);
}

void* _mi_alloc_listed(size_t size, bool zero, mi_family_t family) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (mi_unlikely(theap == NULL)) {
    return _mi_alloc_beyond(size, zero, family);
  }
  mi_page_t* const page = theap->direct[_mi_direct_entry(size)];
  void* const p = _mi_page_try_pop_as(page, (uint8_t)family);
  if (mi_likely(p != NULL)) {
    theap->starved[page->bin] = true;
    // The next one's link is followed when it is taken, and nobody has touched it for a while.
    __builtin_prefetch(page->free, 1);
    return _mi_block_prepare_usual(page, p, size, zero, true);
  }
  return _mi_alloc_beyond(size, zero, family);
}

void* _mi_alloc_not_ready(size_t size, bool zero, mi_family_t family) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (theap != NULL) {
    mi_quarantine_t* const quarantine = theap->direct_quarantines[_mi_direct_entry(size)];
    if (_mi_quarantine_is_due(quarantine)) {
      return _mi_alloc_beyond(size, zero, family);
    }
    if (quarantine->ready > 0) {
      _mi_quarantine_skip(theap, quarantine);
    }
  }
  return _mi_alloc_listed(size, zero, family);
}

void* _mi_alloc_zero_slow(size_t size) {
  mi_theap_t* const theap = _mi_thread_theap();
  if (mi_size_is_queued(size) && theap != NULL) {
    void* const p = mi_theap_pop_queue(theap, size, size + MI_BLOCK_EXTRA, true);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  return _mi_told(_mi_theap_alloc_slow(_mi_theap_default(), size, true), size);
}

void* _mi_theap_alloc(mi_theap_t* theap, size_t size, bool zero) {
  if (theap == NULL) {
    return zero ? _mi_alloc_zero(size) : _mi_alloc(size);
  }
  if (_mi_block_is_plain(size, MI_LARGE_BLOCK_MAX) && !_mi_memory_events_are_on()) {
    void* const p = mi_theap_pop_queue(theap, size, size + MI_BLOCK_EXTRA, zero);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  return _mi_told(_mi_theap_alloc_slow(theap, size, zero), size);
}

void* _mi_theap_alloc_in_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero) {
  mi_theap_t* const armed = theap != NULL ? theap : _mi_thread_theap();
  if (armed != NULL) {
    void* const p = mi_theap_pop_queue(armed, size, room, zero);
    if (mi_likely(p != NULL)) {
      return p;
    }
  }
  return _mi_theap_alloc_room(theap != NULL ? theap : _mi_theap_default(), size, room, align, zero);
}

size_t _mi_good_size(size_t size) {
  // A block by itself ends where its OS page does, and begins anywhere in one, or has no room for more than its request: how
  // much there will be is not known before.
  if ((MI_HAS_PADDING || MI_HAS_GUARD_PAGES) && size > MI_LARGE_BLOCK_MAX - MI_BLOCK_EXTRA) {
    return size;
  }
  return _mi_sizeclass_round(size + MI_BLOCK_EXTRA) - MI_BLOCK_EXTRA;
}

bool _mi_is_in_heap(const void* p) { return p != NULL && _mi_page_of_any(p) != NULL; }
