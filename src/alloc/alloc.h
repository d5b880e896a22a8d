// Owns: what the public functions are made of: the inline fast paths of malloc and free, and the declarations of the rest.
// May include: base, hardening, sys, region, heap.
// Called by: api.
// Invariants: a function that returns NULL has set errno to ENOMEM, or EINVAL where said; success and free leave it alone.
#pragma once

#include "src/heap/block.h"
#include "src/heap/heap.h"
#include "src/heap/process.h"
#include "src/heap/theap.h"

// Everything the inline paths do not serve.
mi_noinline void* _mi_alloc_slow(size_t size);
mi_noinline void* _mi_alloc_zero_slow(size_t size);
mi_noinline void* _mi_alloc_slow_as(size_t size, bool zero, mi_family_t family);  // where origins are kept
// The page as _mi_page_map_look found it, which may be none; and an address for which it found nothing.
mi_noinline void _mi_free_slow(void* p, mi_page_t* page);
mi_noinline void _mi_free_nowhere(void* p);

// Reports a free of an address in an owned page of this thread that is no live block.
mi_cold void _mi_free_report(const void* p, const mi_page_t* page);

// Notes which call made the block p, where it is not made by _mi_page_pop_as with that. p may be NULL.
mi_noinline void _mi_origin_note(void* p, uint8_t origin);

// The same, and nothing where the profile keeps no origins. Returns p.
mi_inline void* _mi_origin_mark(void* p, mi_family_t family, size_t align) {
  if (MI_HAS_FAMILY) {
    _mi_origin_note(p, _mi_hard_origin(family, align));
  }
  return p;
}

// What is left of an allocation when a small size finds no block at once.
mi_inline void* _mi_alloc_beyond(size_t size, bool zero, mi_family_t family) {
  return MI_HAS_FAMILY && family != MI_FAMILY_ANY ? _mi_alloc_slow_as(size, zero, family)
      : zero                                      ? _mi_alloc_zero_slow(size)
                                                  : _mi_alloc_slow(size);
}

// Where blocks wait: allocates a small size when none has waited long enough, or the one that has cannot be handed out here.
// Another thread may have disarmed this one since it was found to be armed.
mi_noinline void* _mi_alloc_listed(size_t size, bool zero, mi_family_t family);
mi_noinline void* _mi_alloc_not_ready(size_t size, bool zero, mi_family_t family);

// The place of a request of a small size in a theap's direct tables.
mi_inline size_t _mi_direct_entry(size_t size) { return (size + MI_BLOCK_EXTRA + MI_BLOCK_ALIGN - 1) >> MI_BLOCK_ALIGN_SHIFT; }

// The same from what has waited. All exits are tail calls, so that no register is saved on the way that is usual.
mi_inline void* mi_alloc_again(mi_theap_t* theap, size_t size, bool zero, mi_family_t family) {
  mi_quarantine_t* const quarantine = theap->direct_quarantines[_mi_direct_entry(size)];
  if (mi_unlikely(quarantine->ready <= 0)) {
    return _mi_alloc_listed(size, zero, family);
  }
  mi_page_t* page;
  mi_block_t* block;
  return mi_likely(_mi_quarantine_take(theap, quarantine, (uint8_t)family, &page, &block))
      ? _mi_block_prepare_usual(page, block, size, zero, false)
      : _mi_alloc_not_ready(size, zero, family);
}

mi_inline void* mi_alloc_as(size_t size, bool zero, mi_family_t family) {
  if (mi_likely(_mi_thread_is_direct(size))) {
    mi_theap_t* const theap = _mi_tls.theap;
    if (MI_HAS_QUARANTINE) {
      return mi_alloc_again(theap, size, zero, family);
    }
    mi_page_t* const page = theap->direct[_mi_direct_entry(size)];
    void* const p = _mi_page_try_pop_known(page, (uint8_t)family, MI_SMALL_GRANULE_SHIFT);
    if (mi_likely(p != NULL)) {
      return _mi_block_hand_out(page, p, size, zero, page->free_is_zero);
    }
  }
  return _mi_alloc_beyond(size, zero, family);
}

// Allocates `size` bytes from this thread's default theap, on behalf of a call of the family.
mi_inline void* _mi_alloc_as(size_t size, mi_family_t family) { return mi_alloc_as(size, false, family); }
mi_inline void* _mi_alloc(size_t size) { return _mi_alloc_as(size, MI_FAMILY_ANY); }

// The same, zeroed up to the usable size.
mi_inline void* _mi_alloc_zero_as(size_t size, mi_family_t family) { return mi_alloc_as(size, true, family); }
mi_inline void* _mi_alloc_zero(size_t size) { return _mi_alloc_zero_as(size, MI_FAMILY_ANY); }

// Allocates from a theap of the calling thread; NULL: from its default theap.
void* _mi_theap_alloc(mi_theap_t* theap, size_t size, bool zero);

// The same from the class of blocks of `room` bytes, at least as many as a request of `size` bytes needs, which are multiples
// of `align` by themselves.
void* _mi_theap_alloc_in_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero);

// The same for blocks whose bytes the profile does something to.
mi_noinline void _mi_free_dressed(mi_page_t* page, mi_block_t* block);

// Puts a block back that this thread's own page handed out.
mi_inline void _mi_free_local(mi_page_t* page, mi_block_t* block) {
  if (MI_BLOCKS_ARE_DRESSED) {
    _mi_free_dressed(page, block);
    return;
  }
  const uint64_t index = MI_HAS_LIVE_BITS ? _mi_page_live_index(page, block) : 0;
  if (MI_HAS_LIVE_BITS && mi_unlikely(!_mi_hard_live_clear(page->live, index))) {
    _mi_free_report(block, page);
    return;
  }
  _mi_block_push_at(page, block, index);
}

// Frees an address of the page that was looked up for it.
mi_inline void _mi_free_in(mi_page_t* page, void* p) {
  // Relaxed: only this thread ever stores its own id there, and nobody's in one that is none.
  if (mi_likely(mi_atomic_load_is_relaxed(&page->owner, _mi_thread_tid()))) {
    _mi_free_local(page, p);
  } else {
    _mi_free_slow(p, page);
  }
}

// Frees a block; NULL is ignored. What is no block of this allocator is a violation.
mi_inline void _mi_free(void* p) {
  mi_page_t* page;
  if (mi_unlikely(!_mi_page_map_look(p, &page))) {
    _mi_free_nowhere(p);
  } else {
    _mi_free_in(page, p);
  }
}

// Allocates so that `offset` bytes into the block is a multiple of `align`, a power of two: EINVAL if it is none.
// `theap`: NULL for this thread's default theap.
void* _mi_alloc_aligned(mi_theap_t* theap, size_t size, size_t align, size_t offset, bool zero);

// Changes a block's size and returns where it is now. NULL leaves the block as it was. `zero`: what lies beyond the old
// usable size reads zero, and so does, after shrinking, what lies beyond the new size.
void* _mi_realloc(mi_theap_t* theap, void* p, size_t newsize, bool zero);
void* _mi_realloc_aligned(mi_theap_t* theap, void* p, size_t newsize, size_t align, size_t offset, bool zero);

// Changes a block's size where it is; NULL (errno untouched) when it cannot.
void* _mi_expand(void* p, size_t newsize);

// The bytes that may be written at p; 0 for NULL. What is no live block is a violation.
size_t _mi_usable_size(const void* p);

// The same for a live block of `page`.
size_t _mi_page_usable_size(const mi_page_t* page, const void* p);

// What _mi_alloc would make of a request of this size, in bytes.
size_t _mi_good_size(size_t size);

// Whether p lies in memory of this allocator that is in use.
bool _mi_is_in_heap(const void* p);

// The bytes from p, anywhere in a live block, to the block's end: an upper bound of what may be touched there. 0 for NULL,
// SIZE_MAX for an address that is not in memory of this allocator; an address in memory that is no live block is a
// violation, and its answer 0. _fast takes no lock: SIZE_MAX also deep inside a block that has a mapping of its own.
size_t _mi_object_size(const void* p);
size_t _mi_object_size_fast(const void* p);

// The system's number of this thread, for reports.
size_t _mi_thread_number(void);

// Reports an address that is in the page, or has no page, and is no live block there. `what` names the call.
mi_cold void _mi_report_bad_pointer(const mi_page_t* page, const void* p, const char* what);

// Whether p is the address of a live block of the page.
bool _mi_page_is_live(const mi_page_t* page, const void* p);

// The page of a live block, for everything but free. NULL after a report that did not abort. `what` names the call.
mi_page_t* _mi_page_of_live(const void* p, const char* what);
