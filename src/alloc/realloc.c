// Owns: changing the size of a block: in place, by moving OS pages, or by copying.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: api.
// Invariants: a block that cannot be changed is left as it was; of a zeroed block everything beyond its size stays zero.
#include <errno.h>
#include <string.h>

#include "src/alloc/alloc.h"
#include "src/alloc/told.h"
#include "src/heap/heap-stats.h"
#include "src/heap/profiled.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"

enum {
  // Smaller blocks cost little to copy, and are many.
  MI_REALLOC_ROOM_MIN = 256,
  // A block that grows beyond this gets a page by itself, which is a slice at least, and goes on in place. Not where each such page
  // has guards.
  MI_REALLOC_APART_MIN = MI_HAS_GUARD_PAGES ? MI_MEDIUM_BLOCK_MAX : 16 * MI_KIB,
};

// Whether a block of a class that holds the new size is worth keeping for it.
static bool mi_realloc_suits(const mi_page_t* page, size_t newsize, size_t capacity) {
  return newsize >= capacity / 2 ||
      (_mi_page_is_single(page) && page->slice_count == 1 && newsize > MI_REALLOC_APART_MIN / 2) ||
      (MI_HAS_PADDING && !_mi_page_is_single(page) && _mi_sizeclass_round(newsize + MI_BLOCK_EXTRA) == page->block_size);
}

// Changes the size in place. True: done, *capacity is what there is room for now, *is_zero tells of the bytes beyond what
// there was room for before.
static bool mi_realloc_in_place(mi_page_t* page, size_t newsize, size_t* capacity, bool* is_zero) {
  // Before the start of a block that was aligned with an offset.
  const size_t skipped = _mi_page_is_single(page) ? page->block_size - *capacity : 0;
  *is_zero = false;
  if (MI_HAS_ZERO_SIZE && newsize == 0) {
    return false;
  }
  const bool fits = newsize <= *capacity && mi_realloc_suits(page, newsize, *capacity);
  // A large block gives back what is worth a slice and an eighth of it.
  if (fits && (!_mi_page_is_single(page) || *capacity - newsize < _mi_max(*capacity / 8, MI_SLICE_SIZE))) {
    return true;
  }
  if (!_mi_page_is_single(page) || newsize <= MI_MEDIUM_BLOCK_MAX ||
      newsize > MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE - skipped) {
    return fits;
  }
  if (!_mi_page_single_resize(page, newsize + skipped, is_zero)) {
    return fits;
  }
  *capacity = page->block_size - skipped;
  return true;
}

// The same for a block whose request stands behind it. `zero` as in _mi_realloc.
static bool mi_realloc_exact(mi_page_t* page, void* p, size_t newsize, size_t request, bool zero) {
  const size_t old_capacity = _mi_block_capacity(page, p);
  size_t capacity = old_capacity;
  bool is_zero;
  if (!mi_realloc_in_place(page, newsize, &capacity, &is_zero)) {
    return false;
  }
  // What lies beyond a request is the allocator's, and may hold what the program wrote when it was larger. A tool does not know
  // that what is new holds zeroes.
  const size_t clear = zero ? _mi_min(newsize, is_zero && !MI_TRACKS ? old_capacity : capacity) : 0;
  _mi_block_set_request(page, p, newsize);
  if (clear > request) {
    memset((uint8_t*)p + request, 0, clear - request);
  }
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
  const bool anywhere = theap == NULL || _mi_theap_source(theap).only == NULL;
  // Its OS pages take the block's place in a slice along.
  if (anywhere && _mi_page_is_single(page) && align <= MI_SLICE_SIZE && offset == 0 && _mi_is_aligned(p, align) && newsize > old_usable &&
      newsize <= MI_ALLOC_SIZE_MAX - MI_SLICE_SIZE) {
    const size_t old_capacity = page->block_size;
    mi_page_t* const larger = _mi_single_move(page, newsize);
    if (larger != NULL) {
      if (theap != NULL && mi_atomic_load_relaxed(&larger->heap) != mi_atomic_load_relaxed(&theap->heap)) {
        // As a copy would be, it is in the heap that the caller named, and counts there.
        _mi_page_count_gone(larger);
        _mi_heap_leave_page(larger);
        _mi_heap_enter_page(larger, theap);
        _mi_page_count_new(larger);
      }
      if (_mi_profile_is_on()) {
        _mi_profiled_offer(larger, newsize, newsize, __builtin_frame_address(0));
      }
      if (MI_HAS_PADDING) {
        _mi_block_set_request(larger, larger->single_start, newsize);
        if (zero) {
          memset(larger->single_start + old_usable, 0, (MI_TRACKS ? newsize : _mi_min(old_capacity, newsize)) - old_usable);
        }
      }
      return larger->single_start;
    }
  }
  // What has grown is likely to grow on. A block by itself can do so in place, by the slices behind it.
  const bool apart = newsize > old_usable && newsize > MI_REALLOC_APART_MIN && align <= MI_SLICE_SIZE && offset == 0;
  // Growth takes the whole usable size along: a program that knows it may have written there.
  void* const fresh = apart ? _mi_theap_alloc_growing(theap != NULL ? theap : _mi_theap_default(), newsize, align, zero)
                            : _mi_alloc_aligned(theap, mi_realloc_room(old_usable, newsize), align, offset, zero);
  if (fresh == NULL) {
    return NULL;
  }
  if (MI_HAS_PADDING && !apart && mi_realloc_room(old_usable, newsize) != newsize) {
    // The room is for growing; what lies behind the request is checked all the same.
    _mi_block_set_request(_mi_page_map_get(fresh), fresh, newsize);
  }
  memcpy(fresh, p, _mi_min(old_usable, newsize));
  _mi_free(p);
  if (_mi_profile_is_on()) {
    // Not what it was given to grow into.
    _mi_profiled_resize(_mi_page_map_find(fresh), newsize);
  }
  return fresh;
}

// The size of a block has changed in place.
static void* mi_realloc_done(mi_page_t* page, void* p, size_t newsize, size_t old_usable) {
  if (_mi_profile_is_on() && _mi_page_is_single(page)) {
    _mi_profiled_resize(page, newsize);
    if (newsize > old_usable) {
      _mi_profiled_offer(page, newsize - old_usable, newsize, __builtin_frame_address(0));
    }
  }
  return p;
}

// A block of no bytes gets some, or another alignment.
static void* mi_realloc_nothing(mi_theap_t* theap, void* p, size_t newsize, size_t align, size_t offset, bool zero) {
  if (newsize == 0 && ((uintptr_t)p + offset) % align == 0) {
    return p;
  }
  void* const fresh = _mi_alloc_aligned(theap, newsize, align, offset, zero);
  if (fresh != NULL) {
    _mi_free(p);
  }
  return fresh;
}

static void* mi_realloc_any(mi_theap_t* theap, void* p, size_t newsize, size_t align, size_t offset, bool zero) {
  if (p == NULL) {
    return _mi_alloc_aligned(theap, newsize, align, offset, zero);
  }
  if (mi_unlikely(!_mi_is_power_of_two(align))) {
    errno = EINVAL;
    return NULL;
  }
  mi_page_t* const page = _mi_page_of_live(p, "reallocated");
  if (mi_unlikely(page == NULL)) {
    // Reported, and not aborted: the pointer cannot be used.
    errno = ENOMEM;
    return NULL;
  }
  offset &= align - 1;
  if (_mi_page_is_zero_size(page)) {
    return mi_realloc_nothing(theap, p, newsize, align, offset, zero);
  }
  const size_t old_usable = MI_HAS_PADDING ? _mi_block_request_before(page, p, newsize) : _mi_page_usable_size(page, p);
  size_t usable = old_usable;
  bool is_zero;
  const bool aligned = ((uintptr_t)p + offset) % align == 0;
  if (MI_HAS_PADDING) {
    if (aligned && mi_realloc_exact(page, p, newsize, old_usable, zero)) {
      return mi_realloc_done(page, p, newsize, old_usable);
    }
  } else if (aligned && mi_realloc_in_place(page, newsize, &usable, &is_zero)) {
    if (zero) {
      mi_realloc_zero_tail(p, newsize, old_usable, usable, is_zero);
    }
    return mi_realloc_done(page, p, newsize, old_usable);
  }
  return mi_realloc_move(theap, page, p, newsize, align, offset, old_usable, zero);
}

static void* mi_expand_in_place(void* p, size_t newsize) {
  if (p == NULL) {
    return NULL;
  }
  mi_page_t* const page = _mi_page_of_live(p, "expanded");
  if (page == NULL) {
    return NULL;
  }
  const size_t old_usable = _mi_page_usable_size(page, p);
  if (newsize <= old_usable) {
    return p;
  }
  if (_mi_page_is_zero_size(page)) {
    return NULL;
  }
  size_t usable = old_usable;
  bool is_zero;
  const bool done = MI_HAS_PADDING ? mi_realloc_exact(page, p, newsize, old_usable, false)
                                   : mi_realloc_in_place(page, newsize, &usable, &is_zero);
  return done ? mi_realloc_done(page, p, newsize, old_usable) : NULL;
}

// Either of them, with what it is asked.
typedef struct mi_realloc_request_s {
  mi_theap_t* theap;
  size_t newsize;
  size_t align;
  size_t offset;
  bool zero;
  bool in_place;
} mi_realloc_request_t;

// A block is resized, and told to be so once, whatever it takes.
static mi_noinline void* mi_realloc_told(void* p, mi_realloc_request_t request) {
  const mi_page_t* page = _mi_page_map_find(p);
  const bool is_live = page != NULL && _mi_page_is_live(page, p);
  const size_t before = is_live ? _mi_told_size(page, p) : 0;
  _mi_memory_events_mute();
  void* const q = request.in_place
      ? mi_expand_in_place(p, request.newsize)
      : mi_realloc_any(request.theap, p, request.newsize, request.align, request.offset, request.zero);
  _mi_memory_events_unmute();
  page = q == NULL ? NULL : _mi_page_map_find(q);
  if (page != NULL) {
    const size_t after = _mi_told_size(page, q);
    _mi_memory_events_tell(MI_MEMORY_RESIZE, (int64_t)after - (int64_t)before, 0, request.newsize);
  }
  return q;
}

void* _mi_realloc_aligned(mi_theap_t* theap, void* p, size_t newsize, size_t align, size_t offset, bool zero) {
  if (_mi_memory_events_are_on() && p != NULL) {
    const mi_realloc_request_t request = {theap, newsize, align, offset, zero, false};
    return mi_realloc_told(p, request);
  }
  return mi_realloc_any(theap, p, newsize, align, offset, zero);
}

void* _mi_realloc(mi_theap_t* theap, void* p, size_t newsize, bool zero) {
  return _mi_realloc_aligned(theap, p, newsize, 1, 0, zero);
}

void* _mi_expand(void* p, size_t newsize) {
  if (_mi_memory_events_are_on() && p != NULL) {
    return mi_realloc_told(p, (mi_realloc_request_t){.newsize = newsize, .in_place = true});
  }
  return mi_expand_in_place(p, newsize);
}
