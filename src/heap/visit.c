// Owns: the walks over pages, and which of a page's blocks are live.
// May include: base, hardening, region, heap.
// Called by: heap.
// Invariants: a page is looked at only while it is pinned and was in use after that; whether a block is live is read from
// the live bits, which any thread may read at any time, or, where there are none, from the page's lists: then nothing is
// followed or believed that does not lead to a block of the page.
#include "src/heap/visit.h"

#include "src/heap/block.h"
#include "src/heap/pin.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"

enum { MI_VIEW_WORDS = MI_PAGE_GRANULES / 64 };

// The granules of a page where live blocks start.
typedef struct mi_view_s {
  uint64_t words[MI_VIEW_WORDS];
} mi_view_t;

static void mi_view_set(mi_view_t* view, size_t index) { view->words[index / 64] |= UINT64_C(1) << (index % 64); }

// Returns whether it was set.
static bool mi_view_clear(mi_view_t* view, size_t index) {
  const uint64_t bit = UINT64_C(1) << (index % 64);
  const bool was_set = (view->words[index / 64] & bit) != 0;
  view->words[index / 64] &= ~bit;
  return was_set;
}

static size_t mi_view_count(const mi_view_t* view) {
  size_t count = 0;
  for (size_t i = 0; i < MI_VIEW_WORDS; i++) {
    count += (size_t)__builtin_popcountll(view->words[i]);
  }
  return count;
}

// Where there are no live bits: all blocks that have been in a list but those that are in one.

static size_t mi_page_granule_of(const mi_page_t* page, const void* block) {
  return (size_t)((uintptr_t)block - (uintptr_t)page->start) >> page->granule_shift;
}

// Ends where a list leads to something else than a block that is in none yet: another thread is at it.
static void mi_view_drop_list(mi_view_t* view, const mi_page_t* page, const mi_block_t* block, bool remote) {
  while (block != NULL && _mi_page_is_block_start(page, block) && mi_view_clear(view, mi_page_granule_of(page, block))) {
    block = remote ? _mi_block_remote_next(page, block) : _mi_block_next(page, block);
  }
}

static void mi_view_of_lists(mi_view_t* view, mi_page_t* page) {
  const uint64_t remote = mi_atomic_load_acquire(&page->remote);
  const uint64_t head = (remote >> MI_REMOTE_HEAD_SHIFT) & MI_REMOTE_HEAD_MASK;
  for (uint32_t i = 0; i < page->reserved; i++) {
    const uint8_t* const block = page->start + i * page->block_size;
    if (_mi_page_is_in_play(page, block)) {
      mi_view_set(view, mi_page_granule_of(page, block));
    }
  }
  mi_view_drop_list(view, page, page->free, false);
  mi_view_drop_list(view, page, page->local_free, false);
  if (head != 0) {
    mi_view_drop_list(view, page, (const mi_block_t*)(const void*)(page->start + (head - 1) * MI_BLOCK_ALIGN), true);
  }
}

static void mi_view_of_page(mi_view_t* view, mi_page_t* page) {
  if (!MI_HAS_LIVE_BITS) {
    mi_view_of_lists(view, page);
    return;
  }
  for (size_t i = 0; i < MI_VIEW_WORDS; i++) {
    view->words[i] = _mi_hard_live_word(page->live, i);
  }
}

// One page

// Whether the visitor wants to go on.
static bool mi_visit_tell(const mi_visit_t* visit, const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size) {
  return visit->visitor(heap, area, block, size, visit->arg);
}

static bool mi_single_is_live(const mi_page_t* page) {
  return (mi_atomic_load_acquire(&page->remote) & MI_REMOTE_OWNED) == 0;
}

static bool mi_visit_single(const mi_visit_t* visit, const mi_heap_t* heap, mi_page_t* page) {
  uint8_t* const block = mi_atomic_peek(&page->single_start);
  const size_t end = mi_atomic_peek(&page->block_size);
  const size_t size = MI_HAS_PADDING ? mi_atomic_peek(&page->request) : end - (size_t)(block - page->start);
  const size_t whole = mi_atomic_peek(&page->slice_count) * MI_SLICE_SIZE;
  const mi_heap_area_t area = {.blocks = block,
                               .reserved = whole,
                               .committed = end,
                               .used = 1,
                               .block_size = size,
                               .full_block_size = whole,
                               .heap_tag = mi_atomic_peek(&heap->tag)};
  return !mi_single_is_live(page) ||
      (mi_visit_tell(visit, heap, &area, NULL, size) &&
       (!visit->blocks || !mi_single_is_live(page) || mi_visit_tell(visit, heap, &area, block, size)));
}

// What may be used of a live block, as the program would be told; without a report if its end is overwritten, or is being
// written just now: then it is what fits.
static size_t mi_page_block_usable(const mi_page_t* page, const void* block) {
  return MI_HAS_PADDING ? _mi_block_size_asked(page, block) : page->block_size;
}

static bool mi_visit_page(const mi_visit_t* visit, const mi_heap_t* heap, mi_page_t* page) {
  mi_view_t view = {{0}};
  mi_view_of_page(&view, page);
  const size_t whole = page->slice_count * MI_SLICE_SIZE;
  const mi_heap_area_t area = {.blocks = page->start,
                               .reserved = whole,
                               .committed = whole,
                               .used = mi_view_count(&view),
                               .block_size = page->block_size - MI_BLOCK_EXTRA,
                               .full_block_size = page->block_size,
                               .heap_tag = mi_atomic_peek(&heap->tag)};
  if (!mi_visit_tell(visit, heap, &area, NULL, area.block_size)) {
    return false;
  }
  for (size_t i = 0; visit->blocks && i < MI_VIEW_WORDS; i++) {
    for (uint64_t word = view.words[i]; word != 0; word &= word - 1) {
      const size_t index = i * 64 + _mi_bits_ctz64(word);
      void* const block = page->start + (index << page->granule_shift);
      // The visitor, or another thread, may have freed it since.
      if ((!MI_HAS_LIVE_BITS || _mi_hard_live_test(page->live, index)) &&
          !mi_visit_tell(visit, heap, &area, block, mi_page_block_usable(page, block))) {
        return false;
      }
    }
  }
  return true;
}

static bool mi_visit_wants(const mi_visit_t* visit, const mi_heap_t* heap, uintptr_t owner, uintptr_t last_tid) {
  return heap != NULL && (visit->heap == NULL || heap == visit->heap) &&
      (visit->main == NULL || heap == visit->main || mi_atomic_peek(&heap->main) == visit->main) &&
      (visit->tag < 0 || mi_atomic_peek(&heap->tag) == visit->tag) && (!visit->abandoned || owner == MI_TID_NONE) &&
      (visit->tid == 0 || last_tid == visit->tid);
}

// The page is pinned, and was in use after that.
static bool mi_visit_pinned(const mi_visit_t* visit, mi_page_t* page) {
  // Acquire pairs with the release of whoever moved the page there.
  const mi_heap_t* const heap = mi_atomic_load_acquire(&page->heap);
  if (!mi_visit_wants(visit, heap, mi_atomic_load_relaxed(&page->owner), mi_atomic_load_relaxed(&page->last_tid))) {
    return true;
  }
  return _mi_page_is_single(page) ? mi_visit_single(visit, heap, page) : mi_visit_page(visit, heap, page);
}

// All pages

void _mi_visit_arena_pages(const mi_heap_t* heap, bool (*visit)(mi_page_t* page, void* arg), void* arg) {
  mi_pin_t* const pin = _mi_pin_take();
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    size_t index = _mi_bitmap_next_set(arena->heads, arena->slice_count, 0);
    for (; index < arena->slice_count; index = _mi_bitmap_next_set(arena->heads, arena->slice_count, index + 1)) {
      mi_page_t* const page = _mi_arena_page_meta(arena, index);
      if (pin != NULL) {
        _mi_pin_set(pin, page);
      }
      // Acquire as below.
      if (_mi_bitmap_is_set_acquire(arena->heads, index) && (heap == NULL || mi_atomic_load_relaxed(&page->heap) == heap)) {
        (void)visit(page, arg);
      }
      if (pin != NULL) {
        _mi_pin_clear(pin);
      }
    }
  }
  if (pin != NULL) {
    _mi_pin_give(pin);
  }
}

static bool mi_visit_arena(const mi_visit_t* visit, const mi_arena_t* arena, mi_pin_t* pin) {
  bool go_on = true;
  size_t index = _mi_bitmap_next_set(arena->heads, arena->slice_count, 0);
  while (go_on && index < arena->slice_count) {
    mi_page_t* const page = _mi_arena_page_meta(arena, index);
    _mi_pin_set(pin, page);
    // Acquire pairs with the release that set the bit: the page is seen as it was made.
    if (_mi_bitmap_is_set_acquire(arena->heads, index)) {
      go_on = mi_visit_pinned(visit, page);
    }
    _mi_pin_clear(pin);
    index = _mi_bitmap_next_set(arena->heads, arena->slice_count, index + 1);
  }
  return go_on;
}

// Singles with memory of their own stay in their list as long as they are pinned, retracted or not.
static bool mi_visit_os_singles(const mi_visit_t* visit, mi_pin_t* pin, mi_pin_t* other) {
  bool go_on = true;
  mi_page_t* page = NULL;
  bool in_use;
  while (go_on && (page = _mi_single_next_pinned(page, other, &in_use)) != NULL) {
    _mi_pin_clear(pin);
    mi_pin_t* const free_pin = pin;
    pin = other;
    other = free_pin;
    if (in_use) {
      go_on = mi_visit_pinned(visit, page);
    }
  }
  _mi_pin_clear(pin);
  _mi_pin_clear(other);
  return go_on;
}

// Pages of blocks of no bytes cannot be pinned: they are under a lock. What is told of them needs none of their memory.
static bool mi_visit_zero_sizes(const mi_visit_t* visit) {
  mi_zero_size_view_t page = {.start = NULL};
  while (_mi_zero_size_next(&page)) {
    if (page.used == 0 || !mi_visit_wants(visit, page.heap, MI_TID_NONE, UINTPTR_MAX)) {
      continue;
    }
    const mi_heap_area_t area = {.blocks = page.start,
                                 .reserved = MI_SLICE_SIZE,
                                 .committed = 0,
                                 .used = page.used,
                                 .block_size = 0,
                                 .full_block_size = MI_BLOCK_ALIGN,
                                 .heap_tag = mi_atomic_peek(&page.heap->tag)};
    if (!mi_visit_tell(visit, page.heap, &area, NULL, 0)) {
      return false;
    }
    for (size_t i = 0; visit->blocks && i < MI_PAGE_GRANULES; i++) {
      void* const block = page.start + i * MI_BLOCK_ALIGN;
      if (((page.live[i / 64] >> (i % 64)) & 1) != 0 && _mi_zero_size_is_live(block) &&
          !mi_visit_tell(visit, page.heap, &area, block, 0)) {
        return false;
      }
    }
  }
  return true;
}

bool _mi_visit(const mi_visit_t* visit) {
  mi_pin_t* const pin = _mi_pin_take();
  mi_pin_t* const other = pin == NULL ? NULL : _mi_pin_take();
  bool go_on = other != NULL;
  mi_arena_t* arena;
  for (size_t i = 0; go_on && (arena = _mi_arena_at(i)) != NULL; i++) {
    go_on = mi_visit_arena(visit, arena, pin);
  }
  go_on = go_on && mi_visit_os_singles(visit, pin, other) && (!MI_HAS_ZERO_SIZE || mi_visit_zero_sizes(visit));
  if (other != NULL) {
    _mi_pin_give(other);
  }
  if (pin != NULL) {
    _mi_pin_give(pin);
  }
  return go_on;
}

typedef struct mi_visit_sum_s {
  size_t blocks;
  size_t bytes;
} mi_visit_sum_t;

static bool mi_visit_add(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap;
  (void)area;
  mi_visit_sum_t* const sum = arg;
  if (block != NULL) {
    sum->blocks++;
    sum->bytes += size;
  }
  return true;
}

void _mi_visit_sum(const mi_heap_t* heap, size_t* blocks, size_t* bytes) {
  mi_visit_sum_t sum = {0};
  const mi_visit_t visit = {.heap = heap, .tag = -1, .blocks = true, .visitor = &mi_visit_add, .arg = &sum};
  (void)_mi_visit(&visit);
  *blocks += sum.blocks;
  *bytes += sum.bytes;
}
