// Owns: frees that the inline path leaves: other threads' blocks, singles, blocks with an offset, and bad pointers.
// May include: base, hardening, sys, region, profile, heap, alloc.
// Called by: api, alloc.
// Invariants: nothing is read through a pointer before it is known to lie in a page of ours.
#include <errno.h>

#include "src/alloc/alloc.h"
#include "src/alloc/told.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"
#include "src/profile/unwrapped.h"
#include "src/prim/prim.h"
#include "src/sys/report.h"

// Bad pointers

size_t _mi_thread_number(void) { return (size_t)_mi_prim_os_thread_id_at_hand(); }

static const char* mi_page_kind_of(const mi_page_t* page) {
  return _mi_page_is_zero_size(page) ? "zero-size block in a granule" : _mi_page_is_single(page) ? "large block"
                                                                                                 : "block";
}

// The tool has a report of its own for frees.
static void mi_tell_misuse(const void* p, const char* what) {
  if (what == NULL) {
    _mi_track_misused(p);
  }
}

// An address in a page in use that is no live block: freed already, or inside a block.
static void mi_report_in_page(const mi_page_t* page, const void* p, const char* what) {
  mi_tell_misuse(p, what);
  const bool single = _mi_page_is_single(page);
  const void* const block = single ? page->single_start : _mi_page_block_of(page, p);
  const size_t size = single ? _mi_page_single_usable(page) : page->block_size;
  const size_t thread = _mi_thread_number();
  const bool live = single || (MI_HAS_LIVE_BITS && _mi_hard_live_test(page->live, _mi_page_live_index(page, block)));
  // Where a block may have been handed out at an address inside it, any address in a free one may have been that.
  const bool handed_out = single ? p == page->single_start : block == p || (page->has_interior && !live);
  if (handed_out && _mi_page_was_listed(page, p)) {
    const mi_violation_t kind = what == NULL ? MI_VIOLATION_double_free : MI_VIOLATION_use_after_free;
    _mi_report(kind, "pointer %p is a free %s of %zu bytes (page %p, class %u, thread %zu), %s", p,
               mi_page_kind_of(page), size, (void*)page->start, page->bin, thread,
               what == NULL ? "freed again" : what);
    return;
  }
  // A single has memory before and behind its block too: a guarded one most of its slot.
  if (live && (uintptr_t)p >= (uintptr_t)block && (!single || (uintptr_t)p - (uintptr_t)block < size)) {
    _mi_report(MI_VIOLATION_interior_free, "pointer %p is %zu bytes into a %s of %zu bytes at %p (page %p, thread %zu), %s",
               p, (size_t)((uintptr_t)p - (uintptr_t)block), mi_page_kind_of(page), size, block,
               (void*)page->start, thread, what == NULL ? "freed" : what);
    return;
  }
  _mi_report(MI_VIOLATION_invalid_free, "pointer %p is in a page of %zu byte blocks but no block (page %p, thread %zu), %s",
             p, size, (void*)page->start, thread, what == NULL ? "freed" : what);
}

// An address without a page.
static void mi_report_no_page(const void* p, const char* what) {
  const size_t thread = _mi_thread_number();
  const mi_page_t* const page = _mi_page_of_any(p);
  if (page != NULL) {
    mi_report_in_page(page, p, what);
    return;
  }
  mi_tell_misuse(p, what);
  if (_mi_page_was_block(p)) {
    _mi_report(what == NULL ? MI_VIOLATION_double_free : MI_VIOLATION_use_after_free,
               "pointer %p is a free block whose memory has been given back (thread %zu), %s", p, thread,
               what == NULL ? "freed again" : what);
  } else if (_mi_arena_of(p) != NULL) {
    _mi_report(MI_VIOLATION_invalid_free, "pointer %p is in unused memory of this allocator (thread %zu), %s", p, thread,
               what == NULL ? "freed" : what);
  } else if (_mi_unwrapped_is(p)) {
    _mi_report(MI_VIOLATION_foreign_free, "pointer %p is a block of mi_unwrapped_malloc, which other functions do not take (thread %zu), %s",
               p, thread, what == NULL ? "freed" : what);
  } else {
    _mi_report(MI_VIOLATION_foreign_free, "pointer %p is not from this allocator (thread %zu), %s", p, thread,
               what == NULL ? "freed" : what);
  }
}

void _mi_free_report(const void* p, const mi_page_t* page) { mi_report_in_page(page, p, NULL); }

void _mi_report_bad_pointer(const mi_page_t* page, const void* p, const char* what) {
  if (page != NULL) {
    mi_report_in_page(page, p, what);
  } else {
    mi_report_no_page(p, what);
  }
}

// Free

// The block that was handed out as p, which may be an address inside it (alignment with an offset); NULL when it is none.
static mi_block_t* mi_page_block_handed_out(const mi_page_t* page, void* p) {
  if (mi_likely(!page->has_interior)) {
    return p;
  }
  mi_block_t* const block = _mi_page_block_of(page, p);
  if (MI_HAS_LIVE_BITS && (void*)block != p &&
      !_mi_hard_live_test(page->live, _mi_page_live_index(page, block))) {
    return NULL;
  }
  return block;
}

static void mi_free_other(mi_page_t* page, void* p) {
  mi_block_t* const block = mi_page_block_handed_out(page, p);
  // Where blocks wait, all would go the long way that are freed until the first has waited.
  if (MI_HAS_QUARANTINE && MI_HAS_LIVE_BITS && block != NULL && _mi_hard_live_test(page->live, _mi_page_live_index(page, block)) &&
      _mi_page_take_back(page)) {
    _mi_free_local(page, block);
    return;
  }
  if (MI_HAS_OUTLINE_LISTS && !mi_atomic_load_relaxed(&page->has_remote)) {
    // The mark, which comes behind it, releases it.
    mi_atomic_store_relaxed(&page->has_remote, true);
  }
  if (block == NULL ||
      (MI_HAS_LIVE_BITS && !_mi_hard_live_mark_remote(page->live, _mi_page_live_index(page, block)))) {
    mi_report_in_page(page, p, NULL);
    return;
  }
  if (MI_BLOCKS_ARE_DRESSED) {
    _mi_block_free_remote(page, block);
  } else {
    _mi_page_free_remote(page, block);
  }
}

void _mi_free_dressed(mi_page_t* page, mi_block_t* block) {
  const uint64_t index = _mi_page_live_index(page, block);
  if (MI_HAS_LIVE_BITS && mi_unlikely(!_mi_hard_live_clear(page->live, index))) {
    _mi_free_report(block, page);
    return;
  }
  _mi_block_free_local(page, block);
}

void _mi_free_nowhere(void* p) {
  if (p != NULL && !_mi_process_is_closed()) {
    mi_report_no_page(p, NULL);
  }
}

mi_inline void mi_free_slow(void* p, mi_page_t* page) {
  if (mi_unlikely(_mi_page_is_none(page))) {
    _mi_free_nowhere(p);
    return;
  }
  // The clock may be due for a look, and the fast paths for arming. Not before a report: a handler may have interrupted what holds
  // the lock of arenas, and is to say what it does wrong.
  if (mi_likely(_mi_page_is_live(page, p))) {
    _mi_theap_tick();
  }
  if (_mi_page_is_single(page)) {
    if (mi_unlikely(p != page->single_start || !_mi_single_free(page))) {
      mi_report_in_page(page, p, NULL);
      return;
    }
    _mi_thread_disarm();
    return;
  }
  if (_mi_page_is_zero_size(page)) {
    if (mi_unlikely(!_mi_zero_size_free(page, p))) {
      mi_report_in_page(page, p, NULL);
    }
    return;
  }
  const uintptr_t owner = mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS;
  if (owner != 0 && owner == _mi_tls.own_tid) {
    mi_block_t* const block = mi_page_block_handed_out(page, p);
    if (block == NULL) {
      mi_report_in_page(page, p, NULL);
      return;
    }
    _mi_free_local(page, block);
    return;
  }
  mi_free_other(page, p);
}

static mi_noinline void mi_free_told(void* p, mi_page_t* page) {
  const bool is_live = !_mi_page_is_none(page) && _mi_page_is_live(page, p);
  const size_t size = is_live ? _mi_told_size(page, p) : 0;
  mi_free_slow(p, page);
  if (is_live) {
    _mi_memory_events_tell(MI_MEMORY_FREE, -(int64_t)size, -1, 0);
  }
}

void _mi_free_slow(void* p, mi_page_t* page) {
  if (_mi_memory_events_are_on()) {
    mi_free_told(p, page);
  } else {
    mi_free_slow(p, page);
  }
}

// Queries

bool _mi_page_is_live(const mi_page_t* page, const void* p) {
  if (_mi_page_is_single(page)) {
    return p == page->single_start;
  }
  if (!MI_HAS_LIVE_BITS) {
    return true;
  }
  const void* const block = page->has_interior ? _mi_page_block_of(page, p) : p;
  return _mi_hard_live_test(page->live, _mi_page_live_index(page, block));
}

mi_page_t* _mi_page_of_live(const void* p, const char* what) {
  mi_page_t* const page = _mi_page_map_find(p);
  if (mi_unlikely(page == NULL)) {
    if (!_mi_process_is_closed()) {
      mi_report_no_page(p, what);
    }
    return NULL;
  }
  if (mi_likely(_mi_page_is_live(page, p))) {
    return page;
  }
  mi_report_in_page(page, p, what);
  return NULL;
}

size_t _mi_page_usable_size(const mi_page_t* page, const void* p) {
  if (_mi_page_is_zero_size(page)) {
    return 0;
  }
  if (MI_HAS_PADDING) {
    return _mi_block_request(page, p);
  }
  if (_mi_page_is_single(page)) {
    return _mi_page_single_usable(page);
  }
  if (mi_likely(!page->has_interior)) {
    return page->block_size;
  }
  const uintptr_t block = (uintptr_t)_mi_page_block_of(page, p);
  return page->block_size - (size_t)((uintptr_t)p - block);
}

size_t _mi_usable_size(const void* p) {
  if (p == NULL) {
    return 0;
  }
  const mi_page_t* const page = _mi_page_of_live(p, "its usable size asked");
  return page == NULL ? 0 : _mi_page_usable_size(page, p);
}
