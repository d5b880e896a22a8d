// Owns: singles with memory of their own, their list, and growth in place or by moving OS pages.
// May include: base, sys, region, heap.
// Called by: heap, alloc.
// Invariants: mi_singles is touched under its lock; it holds every page without an arena.
#include "src/heap/single.h"

#include "src/heap/block.h"
#include "src/prim/prim.h"
#include "src/region/meta.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"

enum { MI_SINGLES_REMEMBERED = 64 };

static struct {
  mi_lock_t lock;  // leaf lock
  mi_page_t* first;
  // Where singles were that are unmapped now, so that a second free is called what it is.
  const void* gone[MI_SINGLES_REMEMBERED];
  size_t gone_next;
} mi_singles;

void _mi_single_init(mi_page_t* page, mi_heap_t* heap) {
  page->bin = MI_BIN_SINGLE;
  page->single_start = page->start;
  page->block_size = page->slice_count * MI_SLICE_SIZE;
  page->request = page->block_size;
  page->reserved = 1;
  page->capacity = 1;
  page->used = 1;
  // Every offset but 0 is off the granule.
  page->granule_shift = 63;
  mi_atomic_store_relaxed(&page->heap, heap);
  mi_atomic_store_relaxed(&page->remote, 0);
  mi_atomic_store_relaxed(&page->unowned_used, 1);
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
}

static void mi_single_link(mi_page_t* page) {
  _mi_lock_acquire(&mi_singles.lock);
  page->prev = NULL;
  page->next = mi_singles.first;
  if (page->next != NULL) {
    page->next->prev = page;
  }
  mi_singles.first = page;
  for (size_t i = 0; i < MI_SINGLES_REMEMBERED; i++) {
    if (mi_singles.gone[i] == page->start) {
      mi_singles.gone[i] = NULL;
    }
  }
  _mi_lock_release(&mi_singles.lock);
}

static void mi_single_unlink(mi_page_t* page) {
  _mi_lock_acquire(&mi_singles.lock);
  if (page->prev != NULL) {
    page->prev->next = page->next;
  } else {
    mi_singles.first = page->next;
  }
  if (page->next != NULL) {
    page->next->prev = page->prev;
  }
  mi_singles.gone[mi_singles.gone_next++ % MI_SINGLES_REMEMBERED] = page->single_start;
  _mi_lock_release(&mi_singles.lock);
}

mi_page_t* _mi_single_new_from_os(mi_heap_t* heap, size_t size, size_t align) {
  mi_page_t* const page = _mi_meta_zalloc(sizeof(*page));
  if (page == NULL) {
    return NULL;
  }
  page->start = _mi_os_reserve_aligned(size, _mi_max(align, MI_SLICE_SIZE), 0, true, &page->os);
  if (page->start == NULL) {
    _mi_meta_free(page, sizeof(*page));
    return NULL;
  }
  page->slice_count = size / MI_SLICE_SIZE;
  page->memory_is_zero = true;
  _mi_single_init(page, heap);
  if (!_mi_page_map_register(page->start, page->slice_count, page)) {
    _mi_os_release(&page->os);
    _mi_meta_free(page, sizeof(*page));
    return NULL;
  }
  mi_single_link(page);
  _mi_stat_increase(&_mi_stats.pages, 1);
  _mi_stat_increase(&_mi_stats.page_committed, size);
  _mi_stat_increase(&_mi_stats.malloc_huge, size);
  return page;
}

void _mi_single_release_to_os(mi_page_t* page) {
  mi_single_unlink(page);
  _mi_os_release(&page->os);
  _mi_meta_free(page, sizeof(*page));
}

mi_page_t* _mi_single_of(const void* p) {
  _mi_lock_acquire(&mi_singles.lock);
  mi_page_t* page = mi_singles.first;
  while (page != NULL && (uintptr_t)p - (uintptr_t)page->start >= page->block_size) {
    page = page->next;
  }
  _mi_lock_release(&mi_singles.lock);
  return page;
}

bool _mi_single_was(const void* p) {
  bool found = false;
  _mi_lock_acquire(&mi_singles.lock);
  for (size_t i = 0; i < MI_SINGLES_REMEMBERED; i++) {
    found = found || mi_singles.gone[i] == p;
  }
  _mi_lock_release(&mi_singles.lock);
  return found && p != NULL;
}

void _mi_single_visit(bool (*visit)(mi_page_t* page, void* arg), void* arg) {
  _mi_lock_acquire(&mi_singles.lock);
  for (mi_page_t* page = mi_singles.first; page != NULL && visit(page, arg); page = page->next) {
  }
  _mi_lock_release(&mi_singles.lock);
}

bool _mi_single_free(mi_page_t* page) {
  uint64_t unowned = 0;
  // Acquire and release: of two frees exactly one claims the page.
  if (!mi_atomic_cas_strong_acq_rel(&page->remote, &unowned, MI_REMOTE_OWNED)) {
    return false;
  }
  _mi_block_check_single(page);
  // What the system takes back comes as zeroes.
  if (MI_HAS_ZERO_ON_FREE && page->arena != NULL) {
    _mi_page_release_idle(page);
  } else {
    _mi_page_release(page);
  }
  return true;
}

// The new part of a block that grew in place must be found by a free of an address in it, as far as the map goes.
static bool mi_single_set_slices(mi_page_t* page, size_t slices) {
  const size_t skipped = (size_t)(page->single_start - page->start);
  const bool all = page->request == page->block_size - skipped;
  if (slices > page->slice_count) {
    const size_t old_mapped = _mi_min(page->slice_count, MI_PAGE_MAP_SLICES_MAX);
    const size_t new_mapped = _mi_min(slices, MI_PAGE_MAP_SLICES_MAX);
    if (new_mapped > old_mapped &&
        !_mi_page_map_register(page->start + old_mapped * MI_SLICE_SIZE, new_mapped - old_mapped, page)) {
      return false;
    }
    _mi_stat_increase(&_mi_stats.page_committed, (slices - page->slice_count) * MI_SLICE_SIZE);
    _mi_stat_increase(&_mi_stats.malloc_huge, (slices - page->slice_count) * MI_SLICE_SIZE);
  } else {
    const size_t kept = _mi_min(slices, MI_PAGE_MAP_SLICES_MAX);
    const size_t mapped = _mi_min(page->slice_count, MI_PAGE_MAP_SLICES_MAX);
    if (mapped > kept) {
      _mi_page_map_unregister(page->start + kept * MI_SLICE_SIZE, mapped - kept);
    }
    _mi_stat_decrease(&_mi_stats.page_committed, (page->slice_count - slices) * MI_SLICE_SIZE);
    _mi_stat_decrease(&_mi_stats.malloc_huge, (page->slice_count - slices) * MI_SLICE_SIZE);
  }
  // Walks over the singles look at the size under the lock.
  if (page->arena == NULL) {
    _mi_lock_acquire(&mi_singles.lock);
  }
  page->slice_count = slices;
  page->block_size = slices * MI_SLICE_SIZE;
  page->request = all ? page->block_size - skipped : _mi_min(page->request, page->block_size - skipped);
  if (page->arena == NULL) {
    _mi_lock_release(&mi_singles.lock);
  }
  return true;
}

static bool mi_single_grow_in_arena(mi_page_t* page, size_t slices, bool* is_zero) {
  const size_t old = page->slice_count;
  if (slices > _mi_arena_slices_max() ||
      !_mi_arena_claim_behind(page->arena, page->slice_index + old, slices - old, is_zero)) {
    return false;
  }
  if (!mi_single_set_slices(page, slices)) {
    _mi_arena_release(page->arena, page->slice_index + old, slices - old, false);
    return false;
  }
  return true;
}

static bool mi_single_grow_in_os(mi_page_t* page, size_t slices, bool* is_zero) {
  // Only a mapping that is the block and nothing else can be resized as a whole.
  if (page->os.base != page->start || page->os.size != page->block_size ||
      _mi_os_grow(&page->os, slices * MI_SLICE_SIZE, false) == NULL) {
    return false;
  }
  *is_zero = true;
  return mi_single_set_slices(page, slices);
}

bool _mi_page_single_resize(mi_page_t* page, size_t size, bool* is_zero) {
  const size_t slices = _mi_div_up(size, MI_SLICE_SIZE);
  const size_t old = page->slice_count;
  *is_zero = false;
  if (slices == old) {
    return true;
  }
  if (slices > old) {
    return page->arena != NULL ? mi_single_grow_in_arena(page, slices, is_zero)
                               : mi_single_grow_in_os(page, slices, is_zero);
  }
  if (page->arena == NULL) {
    return page->os.base == page->start && page->os.size == page->block_size &&
        _mi_os_trim(&page->os, slices * MI_SLICE_SIZE) && mi_single_set_slices(page, slices);
  }
  (void)mi_single_set_slices(page, slices);
  if (MI_HAS_ZERO_ON_FREE) {
    _mi_arena_release_purged(page->arena, page->slice_index + slices, old - slices);
  } else {
    _mi_arena_release(page->arena, page->slice_index + slices, old - slices, false);
  }
  return true;
}

mi_page_t* _mi_single_move(mi_page_t* page, size_t size) {
  if (page->block_size < MI_SINGLE_MOVE_MIN || size <= page->block_size) {
    return NULL;
  }
  const size_t old_size = page->block_size;
  mi_heap_t* heap = mi_atomic_load_relaxed(&page->heap);
  mi_page_t* const larger = _mi_single_new_from_os(heap, _mi_align_up(size, MI_SLICE_SIZE), MI_SLICE_SIZE);
  if (larger == NULL) {
    return NULL;
  }
  // If the heap was deleted meanwhile, its walk over the singles met the new one, or had moved the old one before.
  mi_atomic_cas_strong_acq_rel(&larger->heap, &heap, mi_atomic_load_acquire(&page->heap));
  if (_mi_prim_move(page->start, larger->start, old_size) != 0) {
    (void)_mi_single_free(larger);
    return NULL;
  }
  larger->request = page->request;
  page->request = old_size;
  (void)_mi_single_free(page);
  return larger;
}

void _mi_singles_fork_prepare(void) { _mi_lock_acquire(&mi_singles.lock); }

void _mi_singles_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_singles.lock);
  } else {
    _mi_lock_release(&mi_singles.lock);
  }
}
