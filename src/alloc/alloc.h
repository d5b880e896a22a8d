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
mi_noinline void* _mi_alloc_slow_as(size_t size, mi_family_t family);  // where origins are kept
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

// Allocates `size` bytes from this thread's theap of the main heap, on behalf of a call of the family.
mi_inline void* _mi_alloc_as(size_t size, mi_family_t family) {
  if (mi_likely(_mi_thread_is_direct(size))) {
    mi_page_t* const page = _mi_tls.theap->direct[(size + MI_BLOCK_EXTRA + MI_BLOCK_ALIGN - 1) >> MI_BLOCK_ALIGN_SHIFT];
    void* const p = _mi_page_try_pop_known(page, (uint8_t)family, MI_SMALL_GRANULE_SHIFT);
    if (mi_likely(p != NULL)) {
      return _mi_block_hand_out(page, p, size, false, page->free_is_zero);
    }
  }
  return MI_HAS_FAMILY && family != MI_FAMILY_ANY ? _mi_alloc_slow_as(size, family) : _mi_alloc_slow(size);
}

mi_inline void* _mi_alloc(size_t size) { return _mi_alloc_as(size, MI_FAMILY_ANY); }

// The same, zeroed up to the usable size.
mi_inline void* _mi_alloc_zero_as(size_t size, mi_family_t family) {
  if (mi_likely(_mi_thread_is_direct(size))) {
    mi_page_t* const page = _mi_tls.theap->direct[(size + MI_BLOCK_EXTRA + MI_BLOCK_ALIGN - 1) >> MI_BLOCK_ALIGN_SHIFT];
    void* const p = _mi_page_try_pop_known(page, (uint8_t)family, MI_SMALL_GRANULE_SHIFT);
    if (mi_likely(p != NULL)) {
      return _mi_block_hand_out(page, p, size, true, page->free_is_zero);
    }
  }
  void* const p = _mi_alloc_zero_slow(size);
  return family == MI_FAMILY_ANY ? p : _mi_origin_mark(p, family, 1);
}

mi_inline void* _mi_alloc_zero(size_t size) { return _mi_alloc_zero_as(size, MI_FAMILY_ANY); }

// Allocates from a theap of the calling thread; NULL: from that of the main heap.
void* _mi_theap_alloc(mi_theap_t* theap, size_t size, bool zero);

// The same from the class of blocks of `room` bytes, at least as many as a request of `size` bytes needs.
void* _mi_theap_alloc_in_room(mi_theap_t* theap, size_t size, size_t room, bool zero);

// Puts a block back that this thread's own page handed out.
mi_inline void _mi_free_local(mi_page_t* page, mi_block_t* block) {
  if (MI_HAS_LIVE_BITS && mi_unlikely(!_mi_hard_live_clear(page->live, _mi_page_live_index(page, block)))) {
    _mi_free_report(block, page);
    return;
  }
  if (MI_BLOCKS_ARE_DRESSED) {
    _mi_block_free_local(page, block);
  } else {
    _mi_block_push_local(page, block);
  }
}

// Frees a block; NULL is ignored. What is no block of this allocator is a violation.
mi_inline void _mi_free(void* p) {
  mi_page_t* page;
  // Relaxed: only this thread ever stores its own id there, and nobody's in one that is none.
  if (mi_unlikely(!_mi_page_map_look(p, &page))) {
    _mi_free_nowhere(p);
  } else if (mi_likely(mi_atomic_load_is_relaxed(&page->owner, _mi_thread_tid()))) {
    _mi_free_local(page, p);
  } else {
    _mi_free_slow(p, page);
  }
}

// Allocates so that `offset` bytes into the block is a multiple of `align`, a power of two: EINVAL if it is none.
// `theap`: NULL for this thread's theap of the main heap.
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
