// Owns: allocation at an alignment.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: api, alloc.
// Invariants: up to a slice, alignment costs no more than rounding the size: a multiple of A falls in a class whose block
// size is a multiple of A, and pages start at slices; beyond, a block is a page by itself. Only an offset that is no
// multiple of the alignment makes a block begin before the pointer that is handed out.
#include <errno.h>

#include "src/alloc/alloc.h"
#include "src/alloc/told.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"
#include "src/sys/report.h"

static void* mi_fail(int error) {
  errno = error;
  return NULL;
}

// The pointer lies inside a block that is larger by the alignment. The page is marked, so that frees find the block.
static void* mi_alloc_with_offset(mi_theap_t* theap, size_t size, size_t align, size_t offset, bool zero) {
  theap = theap != NULL ? theap : _mi_theap_default();
  // The late theap lets go of its pages at once, so that there would be no owner to mark one.
  void* const block = theap != NULL ? _mi_theap_alloc(theap, size + align, zero)
                                    : _mi_theap_alloc_single(NULL, size + align, MI_SLICE_SIZE, zero);
  if (block == NULL) {
    return NULL;
  }
  const uintptr_t address = _mi_align_up_ptr((uintptr_t)block + offset, align) - offset;
  mi_page_t* const page = _mi_page_map_find(block);
  // Also where the two are the same by chance: an aligned free of it is to know that the address need not be.
  if (!_mi_page_mark_interior(page, (void*)address)) {
    _mi_free(block);
    return mi_fail(ENOMEM);
  }
  if (MI_HAS_PADDING) {
    _mi_track_moved(block, size + align, (void*)address, size + align - (size_t)(address - (uintptr_t)block), zero);
    _mi_block_set_request(page, (void*)address, size);
  }
  return (void*)address;
}

// A block of the class of so many bytes, if the fast path has one; else NULL.
mi_inline void* mi_alloc_at_once(size_t rounded, bool zero) {
  if (MI_HAS_PADDING || MI_HAS_QUARANTINE || !_mi_thread_is_direct(rounded)) {
    return NULL;
  }
  mi_page_t* const page = _mi_tls.theap->direct[_mi_direct_entry(rounded)];
  void* const p = _mi_page_try_pop_known(page, MI_FAMILY_ANY, MI_SMALL_GRANULE_SHIFT);
  return mi_likely(p != NULL) ? _mi_block_hand_out(page, p, rounded, zero, page->free_is_zero) : NULL;
}

mi_inline void* mi_alloc_aligned(mi_theap_t* theap, size_t size, size_t align, size_t offset, bool zero) {
  if (mi_unlikely(!_mi_is_power_of_two(align))) {
    return mi_fail(EINVAL);
  }
  if (mi_unlikely(size > MI_ALLOC_SIZE_MAX || align > MI_ALLOC_SIZE_MAX - size)) {
    _mi_report_oom(size);
    return mi_fail(ENOMEM);
  }
  offset &= align - 1;
  if (MI_HAS_ZERO_SIZE && mi_unlikely(size == 0)) {
    void* const p = _mi_zero_size_alloc(theap != NULL ? theap : _mi_theap_default(), align, offset);
    if (p != NULL) {
      return p;
    }
  }
  if (mi_unlikely(offset != 0 && align > 1)) {
    return mi_alloc_with_offset(theap, size, align, offset, zero);
  }
  if (align <= MI_BLOCK_ALIGN) {
    return _mi_theap_alloc(theap, size, zero);
  }
  const size_t rounded = _mi_align_up(MI_HAS_PADDING ? size + MI_BLOCK_EXTRA : _mi_max(size, 1), align);
  if (mi_likely(align <= MI_SLICE_SIZE && rounded <= MI_LARGE_BLOCK_MAX)) {
    void* const p = theap == NULL ? mi_alloc_at_once(rounded, zero) : NULL;
    return mi_likely(p != NULL) ? p : _mi_theap_alloc_in_room(theap, size, rounded, align, zero);
  }
  return _mi_theap_alloc_single(theap != NULL ? theap : _mi_theap_default(), size, align, zero);
}

static mi_noinline void* mi_alloc_aligned_told(mi_theap_t* theap, size_t size, size_t align, size_t offset, bool zero) {
  _mi_memory_events_mute();
  void* const p = mi_alloc_aligned(theap, size, align, offset, zero);
  _mi_memory_events_unmute();
  return _mi_told(p, size);
}

void* _mi_alloc_aligned(mi_theap_t* theap, size_t size, size_t align, size_t offset, bool zero) {
  return _mi_memory_events_are_on() ? mi_alloc_aligned_told(theap, size, align, offset, zero)
                                    : mi_alloc_aligned(theap, size, align, offset, zero);
}
