// Owns: the pages of blocks of no bytes: a slice of inaccessible addresses each, and the bits that say which are taken.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: everything is touched under mi_zero_size.lock, but for the test whether a block is live; a page with no block
// in use is kept for the next, a few of them; nothing is ever written where the blocks are.
#include "src/heap/zero-size.h"

#include "hardening/zero-size.h"
#include "src/heap/heap-stats.h"
#include "src/region/meta.h"
#include "src/sys/random.h"

enum { MI_ZERO_SIZE_KEPT = 16 };  // pages with no block in use

static struct {
  mi_lock_t lock;  // leaf lock, but for those of the metadata, the page map and the random numbers
  mi_page_t* first;
  size_t empty;
  size_t used;  // blocks
  mi_random_t random;
} mi_zero_size;

static mi_page_t* mi_zero_size_page_new(mi_heap_t* heap) {
  mi_page_t* const page = _mi_meta_zalloc(sizeof(*page));
  if (page == NULL) {
    return NULL;
  }
  page->live = _mi_meta_zalloc(MI_LIVE_META_SIZE + MI_ORIGIN_META_SIZE);
  if (page->live == NULL) {
    _mi_meta_free(page, sizeof(*page));
    return NULL;
  }
  page->start = _mi_os_reserve_aligned(MI_SLICE_SIZE, MI_SLICE_SIZE, 0, false, &page->os);
  page->slice_count = 1;
  page->block_size = MI_BLOCK_ALIGN;
  page->granule_shift = MI_BLOCK_ALIGN_SHIFT;
  page->bin = MI_BIN_ZERO_SIZE;
  page->reserved = MI_PAGE_GRANULES;
  page->capacity = MI_PAGE_GRANULES;
  mi_atomic_store_relaxed(&page->heap, heap);
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
  if (page->start == NULL || !_mi_page_map_register(page->start, 1, page)) {
    if (page->start != NULL) {
      _mi_os_release(&page->os);
    }
    _mi_meta_free((void*)(uintptr_t)page->live, MI_LIVE_META_SIZE + MI_ORIGIN_META_SIZE);
    _mi_meta_free(page, sizeof(*page));
    return NULL;
  }
  page->next = mi_zero_size.first;
  if (page->next != NULL) {
    page->next->prev = page;
  }
  mi_zero_size.first = page;
  mi_zero_size.empty++;
  _mi_page_count_new(page);
  return page;
}

static void mi_zero_size_page_release(mi_page_t* page) {
  if (page->prev != NULL) {
    page->prev->next = page->next;
  } else {
    mi_zero_size.first = page->next;
  }
  if (page->next != NULL) {
    page->next->prev = page->prev;
  }
  mi_zero_size.used -= page->used;
  mi_zero_size.empty -= page->used == 0;
  _mi_page_count_gone(page);
  _mi_page_map_unregister(page->start, 1);
  _mi_os_release(&page->os);
  _mi_meta_free((void*)(uintptr_t)page->live, MI_LIVE_META_SIZE + MI_ORIGIN_META_SIZE);
  _mi_meta_free(page, sizeof(*page));
}

// A place in the page, or NULL.
// Wraps: the distance to the next multiple.
static mi_wraps void* mi_zero_size_take(mi_page_t* page, size_t align, size_t offset) {
  const size_t step = _mi_max(align >> MI_BLOCK_ALIGN_SHIFT, 1);
  const size_t first = ((0 - offset) & (align - 1)) >> MI_BLOCK_ALIGN_SHIFT;
  if (page->used == MI_PAGE_GRANULES) {
    return NULL;
  }
  const size_t start = _mi_random_below(&mi_zero_size.random, MI_PAGE_GRANULES);
  const size_t index = _mi_hard_zero_size_pick(page->live, start, first, step);
  if (index == MI_PAGE_GRANULES) {
    return NULL;
  }
  (void)_mi_hard_live_set(page->live, index);
  if (MI_HAS_FAMILY) {
    _mi_page_set_origin(page, index, MI_FAMILY_ANY);
  }
  if (offset % align != 0) {
    // Aligned frees of it are to know that the address need not be.
    mi_atomic_store_relaxed(&page->has_interior, true);
  }
  mi_zero_size.empty -= page->used == 0;
  mi_zero_size.used++;
  page->used++;
  _mi_heap_count_blocks(_mi_page_heap(page), MI_STAT_BIN_ZERO_SIZE, 1);
  return page->start + (index << MI_BLOCK_ALIGN_SHIFT);
}

void* _mi_zero_size_alloc(const mi_theap_t* theap, size_t align, size_t offset) {
  if (!MI_HAS_ZERO_SIZE || align > MI_SLICE_SIZE || (align > MI_BLOCK_ALIGN && offset % MI_BLOCK_ALIGN != 0) ||
      (align <= MI_BLOCK_ALIGN && (offset & (align - 1)) != 0)) {
    return NULL;
  }
  void* p = NULL;
  _mi_lock_acquire(&mi_zero_size.lock);
  // Under the lock: when the heap is deleted its pages here change under it, after the theap.
  mi_heap_t* const heap = theap == NULL ? &_mi_heap_main_instance : mi_atomic_load_relaxed(&theap->heap);
  for (mi_page_t* page = mi_zero_size.first; page != NULL && p == NULL; page = page->next) {
    if (page->used == 0) {
      _mi_page_count_gone(page);
      mi_atomic_store_relaxed(&page->heap, heap);
      _mi_page_count_new(page);
    }
    if (mi_atomic_load_relaxed(&page->heap) == heap) {
      p = mi_zero_size_take(page, align, offset);
    }
  }
  if (p == NULL) {
    mi_page_t* const page = mi_zero_size_page_new(heap);
    p = page == NULL ? NULL : mi_zero_size_take(page, align, offset);
  }
  _mi_lock_release(&mi_zero_size.lock);
  return p;
}

bool _mi_zero_size_free(mi_page_t* page, void* p) {
  _mi_lock_acquire(&mi_zero_size.lock);
  // The page may have gone since it was looked up, after another free of the same block.
  const bool freed =
      _mi_page_map_find(p) == page && _mi_hard_live_clear(page->live, _mi_page_live_index(page, p));
  if (freed) {
    mi_zero_size.used--;
    _mi_heap_count_blocks(_mi_page_heap(page), MI_STAT_BIN_ZERO_SIZE, -1);
    if (--page->used == 0 && ++mi_zero_size.empty > MI_ZERO_SIZE_KEPT) {
      mi_zero_size_page_release(page);
    }
  }
  _mi_lock_release(&mi_zero_size.lock);
  return freed;
}

void _mi_zero_size_heap_end(const mi_heap_t* heap, mi_heap_t* successor) {
  if (!MI_HAS_ZERO_SIZE) {
    return;
  }
  _mi_lock_acquire(&mi_zero_size.lock);
  mi_page_t* next;
  for (mi_page_t* page = mi_zero_size.first; page != NULL; page = next) {
    next = page->next;
    if (mi_atomic_load_relaxed(&page->heap) != heap) {
      continue;
    }
    if (successor != NULL) {
      mi_atomic_store_relaxed(&page->heap, successor);
    } else {
      mi_zero_size_page_release(page);
    }
  }
  _mi_lock_release(&mi_zero_size.lock);
}

size_t _mi_zero_size_heap_count(const mi_heap_t* heap) {
  size_t count = 0;
  if (MI_HAS_ZERO_SIZE) {
    _mi_lock_acquire(&mi_zero_size.lock);
    for (const mi_page_t* page = mi_zero_size.first; page != NULL; page = page->next) {
      count += mi_atomic_load_relaxed(&page->heap) == heap ? page->used : 0;
    }
    _mi_lock_release(&mi_zero_size.lock);
  }
  return count;
}

bool _mi_zero_size_next(mi_zero_size_view_t* view) {
  mi_page_t* next = NULL;
  _mi_lock_acquire(&mi_zero_size.lock);
  for (mi_page_t* page = mi_zero_size.first; page != NULL; page = page->next) {
    if (page->start > view->start && (next == NULL || page->start < next->start)) {
      next = page;
    }
  }
  if (next != NULL) {
    view->start = next->start;
    view->heap = mi_atomic_load_relaxed(&next->heap);
    view->used = next->used;
    for (size_t i = 0; i < MI_PAGE_GRANULES / 64; i++) {
      view->live[i] = _mi_hard_live_word(next->live, i);
    }
  }
  _mi_lock_release(&mi_zero_size.lock);
  return next != NULL;
}

bool _mi_zero_size_is_live(const void* p) {
  _mi_lock_acquire(&mi_zero_size.lock);
  const mi_page_t* const page = _mi_page_map_find(p);
  const bool live = page != NULL && _mi_page_is_zero_size(page) && _mi_hard_live_test(page->live, _mi_page_live_index(page, p));
  _mi_lock_release(&mi_zero_size.lock);
  return live;
}

bool _mi_zero_size_in_use(void) { return MI_HAS_ZERO_SIZE && mi_zero_size.used != 0; }

void _mi_zero_size_destroy_all(void) {
  while (MI_HAS_ZERO_SIZE && mi_zero_size.first != NULL) {
    mi_zero_size_page_release(mi_zero_size.first);
  }
}

void _mi_zero_size_fork_prepare(void) { _mi_lock_acquire(&mi_zero_size.lock); }

void _mi_zero_size_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_zero_size.lock);
  } else {
    _mi_lock_release(&mi_zero_size.lock);
  }
}
