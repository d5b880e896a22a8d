// Owns: changing the size of a block: in place, by moving OS pages, or by copying.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: api.
// Invariants: a block that cannot be changed is left as it was; of a zeroed block everything beyond its size stays zero.
#include <errno.h>
#include <string.h>

#include "src/alloc/alloc.h"
#include "src/heap/single.h"

enum {
  // Smaller blocks cost little to copy, and are many.
  MI_REALLOC_ROOM_MIN = 256,
};

// Changes the size in place. True: done, *usable is the new usable size, *is_zero tells of the bytes beyond the old one.
static bool mi_realloc_in_place(mi_page_t* page, size_t newsize, size_t* usable, bool* is_zero) {
  // Before the start of a block that was aligned with an offset.
  const size_t skipped = _mi_page_is_single(page) ? page->block_size - *usable : 0;
  *is_zero = false;
  const bool fits = newsize <= *usable && newsize >= *usable / 2;
  // A large block gives back what is worth a slice and an eighth of it.
  if (fits && (!_mi_page_is_single(page) || *usable - newsize < _mi_max(*usable / 8, MI_SLICE_SIZE))) {
    return true;
  }
  if (!_mi_page_is_single(page) || newsize <= MI_MEDIUM_BLOCK_MAX ||
      newsize > MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE - skipped) {
    return fits;
  }
  if (!_mi_page_single_resize(page, newsize + skipped, is_zero)) {
    return fits;
  }
  *usable = page->block_size - skipped;
  return true;
}

// What a zeroing realloc owes after the size changed in place from `old_usable` to `usable`.
static void mi_realloc_zero_tail(void* p, size_t newsize, size_t old_usable, size_t usable, bool is_zero) {
  uint8_t* const bytes = p;
  if (newsize < old_usable) {
    memset(bytes + newsize, 0, _mi_min(old_usable, usable) - newsize);
  }
  if (usable > old_usable && !is_zero) {
    memset(bytes + old_usable, 0, usable - old_usable);
  }
}

// How much a block gets that has to move: one that grows a little at a time gets a fourth more, or appending would copy it
// for each of eight classes as it doubles.
static size_t mi_realloc_room(size_t old_usable, size_t newsize) {
  const size_t room = old_usable + old_usable / 4;
  return newsize > old_usable && old_usable >= MI_REALLOC_ROOM_MIN && newsize < room && room <= MI_MEDIUM_BLOCK_MAX ? room : newsize;
}

// Copies to a new block, or moves OS pages where that is cheaper. NULL: the old block is as it was.
static void* mi_realloc_move(mi_theap_t* theap, mi_page_t* page, void* p, size_t newsize, size_t align, size_t offset,
                             size_t old_usable, bool zero) {
  if (_mi_page_is_single(page) && align <= MI_SLICE_SIZE && offset == 0 && newsize > old_usable &&
      newsize <= MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE) {
    mi_page_t* const larger = _mi_single_move(page, newsize);
    if (larger != NULL) {
      if (theap != NULL) {
        // As a copy would be, it is in the heap that the caller named.
        mi_atomic_store_relaxed(&larger->heap, mi_atomic_load_relaxed(&theap->heap));
      }
      return larger->single_start;
    }
  }
  // What has grown is likely to grow on. A block by itself can do so in place, by the slices behind it.
  const bool apart = newsize > old_usable && newsize > MI_MEDIUM_BLOCK_MAX && align <= MI_SLICE_SIZE && offset == 0;
  // Growth takes the whole usable size along: a program that knows it may have written there.
  void* const fresh = apart ? _mi_theap_alloc_single(theap != NULL ? theap : _mi_theap_default(), newsize, align, zero)
                            : _mi_alloc_aligned(theap, mi_realloc_room(old_usable, newsize), align, offset, zero);
  if (fresh == NULL) {
    return NULL;
  }
  memcpy(fresh, p, _mi_min(old_usable, newsize));
  _mi_free(p);
  return fresh;
}

void* _mi_realloc_aligned(mi_theap_t* theap, void* p, size_t newsize, size_t align, size_t offset, bool zero) {
  if (p == NULL) {
    return _mi_alloc_aligned(theap, newsize, align, offset, zero);
  }
  if (mi_unlikely(!_mi_is_power_of_two(align))) {
    errno = EINVAL;
    return NULL;
  }
  const size_t old_usable = _mi_usable_size_for(p, "reallocated");
  if (mi_unlikely(old_usable == 0)) {
    // Reported, and not aborted: the pointer cannot be used.
    errno = ENOMEM;
    return NULL;
  }
  mi_page_t* const page = _mi_page_map_find(p);
  offset &= align - 1;
  size_t usable = old_usable;
  bool is_zero;
  if (((uintptr_t)p + offset) % align == 0 && mi_realloc_in_place(page, newsize, &usable, &is_zero)) {
    if (zero) {
      mi_realloc_zero_tail(p, newsize, old_usable, usable, is_zero);
    }
    return p;
  }
  return mi_realloc_move(theap, page, p, newsize, align, offset, old_usable, zero);
}

void* _mi_realloc(mi_theap_t* theap, void* p, size_t newsize, bool zero) {
  return _mi_realloc_aligned(theap, p, newsize, 1, 0, zero);
}

void* _mi_expand(void* p, size_t newsize) {
  if (p == NULL) {
    return NULL;
  }
  const size_t old_usable = _mi_usable_size_for(p, "expanded");
  if (old_usable == 0) {
    return NULL;
  }
  if (newsize <= old_usable) {
    return p;
  }
  size_t usable = old_usable;
  bool is_zero;
  return mi_realloc_in_place(_mi_page_map_find(p), newsize, &usable, &is_zero) ? p : NULL;
}
