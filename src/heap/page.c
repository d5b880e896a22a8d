// Owns: a page's life: made from slices, extended, collected, released; and the look-ups for addresses without a page.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: a page is entered in the page map exactly while it exists; blocks are put in a list one OS page at a time,
// so that memory which was never handed out stays untouched.
#include "src/heap/page.h"

#include <string.h>

#include "src/heap/block.h"
#include "src/heap/single.h"
#include "src/heap/theap.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"

enum {
  // What one extension adds: blocks worth this many bytes, and for larger blocks a few, as long as they stay small.
  MI_EXTEND_BYTES = 4 * MI_KIB,
  MI_EXTEND_BLOCKS = 8,
  MI_EXTEND_BYTES_MAX = 16 * MI_KIB,
};

mi_page_t _mi_page_empty = {.block_size = MI_BLOCK_ALIGN, .granule_shift = 4};

// The remote word

static mi_block_t* mi_remote_head(const mi_page_t* page, uint64_t remote) {
  const uint64_t head = (remote >> MI_REMOTE_HEAD_SHIFT) & MI_REMOTE_HEAD_MASK;
  return head == 0 ? NULL : (mi_block_t*)(void*)(page->start + (head - 1) * MI_BLOCK_ALIGN);
}

// The walk checks each link before it follows it: what other threads freed lies in memory that a program can still
// write to. Returns the last block of the list, with the number of good ones in *count.
static mi_block_t* mi_page_collect_walk(mi_page_t* page, mi_block_t* head, uint32_t* count) {
  mi_block_t* last = NULL;
  mi_block_t* block = head;
  const uint32_t expected = *count;
  for (uint32_t i = 0; i < expected; i++) {
    if (MI_HAS_LIVE_BITS && !_mi_hard_live_collect(page->live, _mi_page_live_index(page, block))) {
      _mi_page_report_corrupt(page, block);
      *count = i;
      break;
    }
    last = block;
    block = _mi_block_next(page, block);
  }
  return last;
}

void _mi_page_collect_remote(mi_page_t* page) {
  uint64_t remote = mi_atomic_load_relaxed(&page->remote);
  do {
    if ((remote >> MI_REMOTE_COUNT_SHIFT) == 0) {
      return;
    }
    // Acquire pairs with the release of the frees: their links are visible.
  } while (
      !mi_atomic_cas_weak_acq_rel(&page->remote, &remote, remote & (MI_REMOTE_OWNED | MI_REMOTE_LISTED)));
  uint32_t count = (uint32_t)(remote >> MI_REMOTE_COUNT_SHIFT);
  mi_block_t* const head = mi_remote_head(page, remote);
  mi_block_t* const last = mi_page_collect_walk(page, head, &count);
  if (last == NULL) {
    return;
  }
  _mi_block_set_next(page, last, page->free);
  page->free = head;
  page->free_is_zero = false;
  page->used -= count;
}

void _mi_page_collect(mi_page_t* page) {
  _mi_page_collect_remote(page);
  mi_block_t* const head = page->local_free;
  if (head == NULL) {
    return;
  }
  if (page->free != NULL) {
    mi_block_t* last = head;
    mi_block_t* next;
    uint32_t count = 1;
    while ((next = _mi_block_next(page, last)) != NULL) {
      if (MI_HAS_LIVE_BITS &&
          (_mi_page_live_index(page, next) >= MI_PAGE_GRANULES || ++count > page->capacity)) {
        page->local_free = NULL;
        _mi_page_report_corrupt(page, next);
        return;
      }
      last = next;
    }
    _mi_block_set_next(page, last, page->free);
  }
  page->free = head;
  page->local_free = NULL;
  page->free_is_zero = false;
}

void _mi_page_extend(mi_page_t* page) {
  mi_assert_internal(page->free == NULL && page->capacity < page->reserved);
  const size_t block_size = page->block_size;
  size_t count = MI_EXTEND_BYTES / block_size;
  if (count < MI_EXTEND_BLOCKS) {
    count = _mi_max(_mi_min(MI_EXTEND_BLOCKS, MI_EXTEND_BYTES_MAX / block_size), 1);
  }
  count = _mi_min(count, page->reserved - page->capacity);
  uint8_t* const first = page->start + page->capacity * block_size;
  uint8_t* const last = first + (count - 1) * block_size;
  bool is_zero = page->memory_is_zero;
  _mi_block_prepare_fresh(first, count * block_size, &is_zero);
  for (uint8_t* p = first; p < last; p += block_size) {
    _mi_block_set_next(page, (mi_block_t*)(void*)p, (mi_block_t*)(void*)(p + block_size));
  }
  _mi_block_set_next(page, (mi_block_t*)(void*)last, NULL);
  page->free = (mi_block_t*)(void*)first;
  page->free_is_zero = is_zero;
  page->capacity += (uint32_t)count;
  _mi_counter_add(&_mi_stats.pages_extended, 1);
}

bool _mi_page_refill_freed(mi_page_t* page) {
  mi_assert_internal(page->free == NULL);
  if (page->local_free != NULL) {
    page->free = page->local_free;
    page->local_free = NULL;
    page->free_is_zero = false;
    return true;
  }
  // Relaxed: a free that is missed here is seen the next time.
  if ((mi_atomic_load_relaxed(&page->remote) >> MI_REMOTE_COUNT_SHIFT) != 0) {
    _mi_page_collect_remote(page);
  }
  return page->free != NULL;
}

// Life

// Fresh metadata is all zeroes; metadata that was in use before keeps its last content for reports until here.
static mi_page_t* mi_page_claim_meta(const mi_run_t* run, bool has_live) {
  mi_page_t* const page = _mi_arena_page_meta(run->arena, run->index);
  const bool used_before = page->start != NULL;
  if (used_before) {
    memset(page, 0, sizeof(*page));
  }
  page->arena = run->arena;
  page->slice_index = run->index;
  page->slice_count = run->slices;
  page->start = run->start;
  page->memory_is_zero = run->is_zero;
  if (MI_HAS_LIVE_BITS && has_live) {
    page->live = _mi_arena_live_meta(run->arena, run->index);
    if (used_before) {
      memset((void*)(uintptr_t)page->live, 0, MI_LIVE_META_SIZE);
    }
  }
  return page;
}

static bool mi_page_publish(mi_page_t* page) {
  if (!_mi_page_map_register(page->start, page->slice_count, page)) {
    _mi_arena_release(page->arena, page->slice_index, page->slice_count, page->memory_is_zero);
    return false;
  }
  _mi_bitmap_set(page->arena->heads, page->slice_index, 1);
  _mi_stat_increase(&_mi_stats.pages, 1);
  _mi_stat_increase(&_mi_stats.page_committed, page->slice_count * MI_SLICE_SIZE);
  return true;
}

mi_page_t* _mi_page_new(mi_theap_t* theap, unsigned bin) {
  const size_t slices = _mi_bin_page_slices(bin);
  mi_run_t run;
  if (!_mi_arena_claim(slices, MI_SLICE_SIZE, false, &run)) {
    return NULL;
  }
  mi_page_t* const page = mi_page_claim_meta(&run, true);
  page->bin = (uint8_t)bin;
  page->block_size = _mi_bin_block_size(bin);
  page->reserved = (uint32_t)(slices * MI_SLICE_SIZE / page->block_size);
  page->granule_shift = (uint8_t)_mi_granule_shift(slices);
  mi_atomic_store_relaxed(&page->heap, mi_atomic_load_relaxed(&theap->heap));
  page->theap = theap;
  page->last_tid = theap->tid;
  if (MI_HAS_ENCODED_LISTS) {
    page->keys[0] = (uintptr_t)_mi_random_next(&theap->random);
    page->keys[1] = (uintptr_t)_mi_random_next(&theap->random);
  }
  if (MI_HAS_PADDING) {
    page->canary_key = _mi_random_next(&theap->random);
  }
  mi_atomic_store_relaxed(&page->remote, MI_REMOTE_OWNED);
  mi_atomic_store_relaxed(&page->owner, theap->tid);
  return mi_page_publish(page) ? page : NULL;
}

mi_page_t* _mi_page_new_single(mi_heap_t* heap, size_t size, size_t align, bool* is_zero) {
  const size_t slices = _mi_div_up(size, MI_SLICE_SIZE);
  mi_run_t run;
  mi_page_t* page = NULL;
  if (slices <= _mi_arena_slices_max() && align <= MI_SINGLE_ARENA_ALIGN_MAX && _mi_arena_claim(slices, align, true, &run)) {
    page = mi_page_claim_meta(&run, false);
    _mi_single_init(page, heap);
    page = mi_page_publish(page) ? page : NULL;
    if (page != NULL) {
      _mi_stat_increase(&_mi_stats.malloc_huge, page->block_size);
    }
  }
  if (page == NULL) {
    page = _mi_single_new_from_os(heap, slices * MI_SLICE_SIZE, align);
  }
  if (page != NULL) {
    _mi_counter_add(&_mi_stats.malloc_huge_count, 1);
    *is_zero = page->memory_is_zero;
  }
  return page;
}

static void* mi_slice_of(const void* p) { return (void*)((uintptr_t)p & ~(uintptr_t)(MI_SLICE_SIZE - 1)); }

static void mi_page_retract(mi_page_t* page) {
  mi_assert_internal(page->used == 0 || _mi_page_is_single(page));
  _mi_page_map_unregister(page->start, page->slice_count);
  if (_mi_page_is_single(page)) {
    _mi_page_map_unregister(mi_slice_of(page->single_start), 1);
  }
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
  _mi_stat_decrease(&_mi_stats.pages, 1);
  _mi_stat_decrease(&_mi_stats.page_committed, page->slice_count * MI_SLICE_SIZE);
  if (_mi_page_is_single(page)) {
    _mi_stat_decrease(&_mi_stats.malloc_huge, page->block_size);
  }
  if (page->arena != NULL) {
    _mi_bitmap_clear(page->arena->heads, page->slice_index, 1);
  }
}

void _mi_page_release_idle(mi_page_t* page) {
  mi_assert_internal(page->arena != NULL);
  mi_page_retract(page);
  _mi_arena_release_purged(page->arena, page->slice_index, page->slice_count);
}

void _mi_page_release(mi_page_t* page) {
  mi_page_retract(page);
  if (page->arena == NULL) {
    _mi_single_release_to_os(page);
    return;
  }
  _mi_arena_release(page->arena, page->slice_index, page->slice_count, false);
}

bool _mi_page_mark_interior(mi_page_t* page, void* p) {
  if (_mi_page_is_single(page)) {
    // Where it may lie beyond the slices that are entered.
    if (!_mi_page_map_register(mi_slice_of(p), 1, page)) {
      return false;
    }
    // A request counts from where the block is handed out.
    page->request -= (size_t)((uint8_t*)p - page->single_start);
    page->single_start = p;
    return true;
  }
  mi_atomic_store_relaxed(&page->has_interior, true);
  const uintptr_t owner = mi_atomic_load_relaxed(&page->owner);
  if (owner != MI_TID_NONE) {
    mi_atomic_store_relaxed(&page->owner, owner | (uintptr_t)MI_OWNER_HAS_INTERIOR);
  }
  return true;
}

// Reports and look-ups

void _mi_page_report_corrupt(mi_page_t* page, const void* block) {
  page->free = NULL;
  _mi_report(MI_VIOLATION_free_list_corruption,
             "a free list of blocks of %zu bytes (page %p) leads to %p, which is no free block of it", page->block_size,
             (void*)page->start, block);
}

// The page whose metadata stands at or before slice `index` and whose slices hold p. In use or, if `stale`, gone.
static mi_page_t* mi_page_at_slice(const mi_arena_t* arena, size_t index, const void* p, bool stale) {
  for (size_t back = 0; back <= index; back++) {
    const size_t head = index - back;
    const bool in_use = _mi_bitmap_count(arena->heads, head, 1) == 1;
    const bool readable = !arena->commit_lazily || _mi_bitmap_count(arena->group_ready, head >> MI_GROUP_SHIFT, 1) == 1;
    if (!readable || (stale && back >= MI_LARGE_PAGE_SLICES)) {
      return NULL;
    }
    mi_page_t* const page = _mi_arena_page_meta(arena, head);
    if ((in_use || stale) && page->start != NULL &&
        (uintptr_t)p - (uintptr_t)page->start < page->slice_count * MI_SLICE_SIZE) {
      return page;
    }
    if (in_use) {
      return NULL;
    }
  }
  return NULL;
}

mi_page_t* _mi_page_of_any(const void* p) {
  mi_page_t* const page = _mi_page_map_find(p);
  if (page != NULL) {
    return page;
  }
  const mi_arena_t* const arena = _mi_arena_of(p);
  if (arena == NULL) {
    return _mi_single_of(p);
  }
  return mi_page_at_slice(arena, (size_t)((const uint8_t*)p - arena->base) >> MI_SLICE_SHIFT, p, false);
}

bool _mi_page_was_block(const void* p) {
  const mi_arena_t* const arena = _mi_arena_of(p);
  if (arena == NULL) {
    return _mi_single_was(p);
  }
  const mi_page_t* const page =
      mi_page_at_slice(arena, (size_t)((const uint8_t*)p - arena->base) >> MI_SLICE_SHIFT, p, true);
  return page != NULL && (_mi_page_is_single(page) ? page->single_start == p : _mi_page_block_of(page, p) == p);
}
