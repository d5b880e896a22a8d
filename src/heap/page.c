// Owns: a page's life: made from slices, extended, collected, released; and the look-ups for addresses without a page.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: a page is entered in the page map exactly while it exists; a link is followed, and what it leads to written,
// only after it was found to lead to a free block of the page.
#include "src/heap/page.h"

#include <string.h>

#include "hardening/large-layout.h"
#include "src/heap/block.h"
#include "src/heap/guarded.h"
#include "src/heap/heap-stats.h"
#include "src/heap/pin.h"
#include "src/heap/profiled.h"
#include "src/heap/sample.h"
#include "src/heap/single.h"
#include "src/heap/theap.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-quarantine.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

// At least so many bytes are committed ahead of an extension, which lists no more unless a single block is larger.
enum { MI_COMMIT_NEXT_MIN = 16 * MI_KIB };

// The memory of small pages is had at once for a class that has had so many before: less than a fourth of what it has.
enum { MI_POPULATE_PAGES_MIN = 4 };

// No block lies as far before its start as NULL does.
mi_page_t _mi_page_empty = {.start = (uint8_t*)MI_SLICE_SIZE, .block_size = MI_BLOCK_ALIGN, .granule_shift = 4};

// The remote word

static mi_block_t* mi_remote_head(const mi_page_t* page, uint64_t remote) {
  const uint64_t head = (remote >> MI_REMOTE_HEAD_SHIFT) & MI_REMOTE_HEAD_MASK;
  return head == 0 ? NULL : (mi_block_t*)(void*)(page->start + (head - 1) * MI_BLOCK_ALIGN);
}

// Moves a list of `count` blocks that other threads freed to the front of page->free. Each link is checked before it is
// followed: it lies in memory that a program can still write to. Returns the number of good ones.
static uint32_t mi_page_take_checked(mi_page_t* page, mi_block_t* block, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!_mi_page_is_block_start(page, block) ||
        (MI_HAS_LIVE_BITS && !_mi_hard_live_collect(page->live, _mi_page_live_index(page, block)))) {
      _mi_page_report_corrupt(page, block);
      return i;
    }
    mi_block_t* const next = _mi_block_remote_next(page, block);
    if (MI_HAS_OUTLINE_LISTS) {
      _mi_page_note_freed(page, block, _mi_page_live_index(page, block));
    } else {
      _mi_block_set_next(page, block, page->free);
      page->free = block;
    }
    block = next;
  }
  return count;
}

// The same where nothing is checked or encoded.
static uint32_t mi_page_take_plain(mi_page_t* page, mi_block_t* head, uint32_t count) {
  mi_block_t* last = head;
  for (uint32_t i = 1; i < count; i++) {
    last = _mi_block_remote_next(page, last);
  }
  _mi_block_set_next(page, last, page->free);
  page->free = head;
  return count;
}

void _mi_page_collect_remote(mi_page_t* page) {
  uint64_t remote = mi_atomic_load_relaxed(&page->remote);
  do {
    if (_mi_remote_count(remote) == 0) {
      return;
    }
    // Acquire pairs with the release of the frees: their links are visible.
  } while (
      !mi_atomic_cas_weak_acq_rel(&page->remote, &remote, remote & (MI_REMOTE_OWNED | MI_REMOTE_LISTED)));
  page->free_is_zero = page->free_is_zero && MI_HAS_OUTLINE_LISTS;
  const bool ran_out = page->free == NULL;
  mi_block_t* const head = mi_remote_head(page, remote);
  const uint32_t count = MI_HAS_LIVE_BITS || MI_HAS_ENCODED_LISTS
      ? mi_page_take_checked(page, head, _mi_remote_count(remote))
      : mi_page_take_plain(page, head, _mi_remote_count(remote));
  if (MI_HAS_OUTLINE_LISTS) {
    return;
  }
  page->used -= count;
  if (ran_out) {
    _mi_page_count_refill(page, count);
  } else {
    page->listed = (uint16_t)(page->listed + count);
  }
}

// The last block of a list of the owner's that begins with `head`, and its length; NULL after a report.
static mi_block_t* mi_page_list_end(mi_page_t* page, mi_block_t* head, uint32_t* count) {
  mi_block_t* last = head;
  mi_block_t* next;
  *count = 1;
  while ((next = _mi_block_next(page, last)) != NULL) {
    if (!_mi_page_may_be_free(page, next) || ++*count > page->capacity) {
      _mi_page_report_corrupt(page, next);
      return NULL;
    }
    last = next;
  }
  return last;
}

static void mi_page_join_lists(mi_page_t* page) {
  mi_block_t* const head = MI_HAS_OUTLINE_LISTS ? NULL : page->local_free;
  if (head == NULL) {
    return;
  }
  page->local_free = NULL;
  uint32_t moved = page->capacity - _mi_page_in_use(page);
  if (page->free != NULL) {
    mi_block_t* const last = mi_page_list_end(page, head, &moved);
    if (last == NULL) {
      return;
    }
    _mi_block_set_next(page, last, page->free);
  }
  _mi_page_count_joined(page, moved);
  page->free = head;
  page->free_is_zero = false;
}

void _mi_page_collect(mi_page_t* page) {
  // Of an unowned page it may be a theap that is gone.
  mi_theap_t* const theap = mi_atomic_load_relaxed(&page->owner) == MI_TID_NONE ? NULL : page->theap;
  if (theap != NULL) {
    _mi_sample_put_down(theap, page);
  }
  _mi_page_collect_remote(page);
  mi_page_join_lists(page);
  if (theap != NULL) {
    _mi_sample_follow(theap, page->bin);
  }
}

// Those of a stock are found by a search again.
static void mi_page_hold_back_stock(mi_page_t* page, uint32_t keep) {
  if (page->stocked <= keep) {
    return;
  }
  const uint32_t left = (uint32_t)page->stocked - keep;
  uint16_t* const stock = _mi_page_stock(page);
  memmove(stock, stock + left, keep * sizeof(*stock));
  page->stocked = keep;
  page->used -= left;
  page->used_before = page->used;
  page->listed = (uint16_t)(page->listed - left);
}

void _mi_page_hold_back(mi_page_t* page, uint32_t keep) {
  if (MI_HAS_OUTLINE_LISTS) {
    mi_page_hold_back_stock(page, keep);
    return;
  }
  mi_block_t* rest = page->free;
  mi_block_t* last = NULL;
  for (uint32_t i = 0; i < keep && rest != NULL; i++) {
    if (!_mi_page_may_be_free(page, rest)) {
      _mi_page_report_corrupt(page, rest);
      return;
    }
    last = rest;
    rest = _mi_block_next(page, rest);
  }
  if (rest == NULL) {
    return;
  }
  const uint32_t length = _mi_page_free_length(page);
  if (page->local_free != NULL) {
    uint32_t count;
    mi_block_t* const end = _mi_page_may_be_free(page, rest) ? mi_page_list_end(page, rest, &count) : NULL;
    if (end == NULL) {
      return;
    }
    _mi_block_set_next(page, end, page->local_free);
  }
  page->local_free = rest;
  if (last == NULL) {
    page->free = NULL;
  } else {
    _mi_block_set_next(page, last, NULL);
  }
  page->listed = (uint16_t)(page->listed - (length - keep));
}

static mi_cold void mi_page_report_written(const mi_page_t* page, const mi_block_t* block) {
  _mi_report(MI_VIOLATION_free_list_corruption, "block %p of %zu bytes was written to while it was free (page %p, class %u)",
             (const void*)block, page->block_size, (void*)page->start, page->bin);
}

void _mi_page_check_free(mi_page_t* page) {
  if (MI_HAS_OUTLINE_LISTS) {
    const uint64_t index = page->stocked == 0 ? 0 : _mi_page_stock(page)[page->stocked - 1];
    mi_block_t* const block = (mi_block_t*)(void*)(page->start + (index << page->granule_shift));
    if (mi_unlikely(page->stocked != 0 && !_mi_hard_live_is_free(page->live, index))) {
      _mi_page_report_corrupt(page, block);
    } else if (mi_unlikely(page->stocked != 0 && !_mi_block_is_marked(page, block))) {
      mi_page_report_written(page, block);
      _mi_block_set_mark(page, block);
    }
    return;
  }
  if (MI_HAS_LIVE_BITS && page->free != NULL && !_mi_hard_live_is_free(page->live, _mi_page_live_index(page, page->free))) {
    _mi_page_report_corrupt(page, page->free);
  }
}

void* _mi_page_pop_as(mi_page_t* page, uint8_t origin) {
  void* p;
  while (mi_unlikely((p = _mi_page_try_pop_as(page, origin)) == NULL)) {
    _mi_page_check_free(page);
    // A block that was written to has been put right.
    if (!MI_HAS_OUTLINE_LISTS || !_mi_page_is_ready(page)) {
      return NULL;
    }
  }
  return p;
}

// Keys

static void mi_page_draw_key(mi_page_t* page, mi_random_t* random) {
  const uint64_t a = _mi_random_next(random);
  const uint64_t b = _mi_random_next(random);
  page->key = _mi_hard_link_key(a, b, _mi_random_next(random));
  page->key_inverse = _mi_hard_link_inverse(page->key.factor);
  page->key_generation = random->generation;
}

// Encodes a list with the page's key that was encoded with another one.
static mi_block_t* mi_page_rekey_list(mi_page_t* page, mi_block_t* head, const mi_link_key_t* old, uintptr_t old_inverse) {
  uint32_t count = 0;
  for (mi_block_t* block = head; block != NULL;) {
    if (!_mi_page_may_be_free(page, block) || ++count > page->capacity) {
      _mi_page_report_corrupt(page, block);
      return NULL;
    }
    mi_block_t* const next = (mi_block_t*)_mi_hard_link_decode(block->link, (uintptr_t)block, old, old_inverse);
    _mi_block_set_next(page, block, next);
    block = next;
  }
  return head;
}

// Marks the free blocks with a new key. Those that others freed and nobody has collected are marked when somebody does.
static void mi_page_mark_anew(mi_page_t* page) {
  const mi_link_key_t old = page->key;
  mi_page_draw_key(page, &page->theap->random);
  for (uint32_t number = 0; number < page->reserved; number++) {
    mi_block_t* const block = (mi_block_t*)(void*)(page->start + number * page->block_size);
    if (_mi_page_may_be_free(page, block)) {
      if (mi_unlikely(block->link != _mi_hard_stock_mark((uintptr_t)block, &old))) {
        mi_page_report_written(page, block);
      }
      _mi_block_set_mark(page, block);
    }
  }
}

void _mi_page_rekey(mi_page_t* page) {
  if (!(MI_HAS_ENCODED_LISTS | MI_HAS_OUTLINE_LISTS) || mi_likely(page->key_generation == _mi_random_generation()) ||
      _mi_report_is_running()) {
    return;
  }
  if (MI_HAS_OUTLINE_LISTS) {
    mi_page_mark_anew(page);
    _mi_page_order_anew(page);
    return;
  }
  const mi_link_key_t old = page->key;
  const uintptr_t old_inverse = page->key_inverse;
  mi_page_draw_key(page, &page->theap->random);
  page->local_free = mi_page_rekey_list(page, page->local_free, &old, old_inverse);
  page->free = mi_page_rekey_list(page, page->free, &old, old_inverse);
}

// Life

// Fresh metadata is all zeroes; metadata that was in use before keeps its last content for reports until here.
mi_page_t* _mi_page_claim_meta(const mi_run_t* run, bool has_live) {
  mi_page_t* const page = _mi_arena_page_meta(run->arena, run->index);
  const bool had_origins = MI_HAS_FAMILY && mi_atomic_load_relaxed(&page->has_origins);
  const bool used_before = page->start != NULL;
  if (used_before) {
    memset(page, 0, sizeof(*page));
  }
  page->arena = run->arena;
  page->slice_index = run->index;
  page->slice_count = run->slices;
  page->start = run->start;
  page->memory_is_zero = run->is_zero;
  if ((MI_HAS_LIVE_BITS || MI_HAS_FAMILY) && has_live) {
    page->live = _mi_arena_live_meta(run->arena, run->index);
    _mi_hard_live_close_all(page->live);
  }
  if (MI_HAS_FAMILY && had_origins) {
    // Of the last page of blocks that stood here. A single keeps none, and leaves them to the next.
    if (has_live) {
      memset((void*)(uintptr_t)_mi_page_origins(page), 0, MI_ORIGIN_META_SIZE);
    } else {
      mi_atomic_store_relaxed(&page->has_origins, true);
    }
  }
  _mi_track_meta(page, sizeof(*page));
  return page;
}

bool _mi_page_enter(mi_page_t* page, const mi_theap_t* theap) {
  _mi_heap_enter_page(page, theap);
  page->fill_preserve = mi_atomic_load_relaxed(&mi_atomic_load_relaxed(&page->heap)->fill_preserve);
  if (!_mi_page_map_register(page->start, page->slice_count, page)) {
    _mi_heap_leave_page(page);
    return false;
  }
  _mi_bitmap_set(page->arena->heads, page->slice_index, 1);
  _mi_track_page(page->start, page->slice_count * MI_SLICE_SIZE);
  _mi_page_count_new(page);
  return true;
}

bool _mi_page_commit_next(const mi_page_t* page) {
  if (mi_likely(!page->arena->commit_lazily)) {
    return true;
  }
  // In a random order the next blocks may lie anywhere, and the page was committed as a whole.
  const size_t from = page->capacity * page->block_size;
  const size_t to = _mi_min(from + _mi_max(page->block_size, MI_COMMIT_NEXT_MIN), page->slice_count * MI_SLICE_SIZE);
  const size_t first = from >> MI_SLICE_SHIFT;
  return MI_HAS_RANDOM_ORDER ||
      _mi_arena_commit(page->arena, page->slice_index + first, _mi_div_up(to, MI_SLICE_SIZE) - first);
}

static bool mi_page_publish(mi_page_t* page, const mi_theap_t* theap) {
  if (_mi_page_enter(page, theap)) {
    return true;
  }
  _mi_arena_release(page->arena, page->slice_index, page->slice_count, page->memory_is_zero);
  return false;
}

// A class that grows and grows gets the memory of a new page in one call, not by a fault for each of its OS pages. The first few
// pages of a class are touched as they are used: most classes of most programs have no more.
static void mi_page_populate(mi_theap_t* theap, const mi_run_t* run, unsigned bin, size_t guard) {
  if (++theap->queues[bin].made > MI_POPULATE_PAGES_MIN && run->is_zero && run->slices == MI_SMALL_PAGE_SLICES) {
    _mi_prim_populate(run->start, MI_SLICE_SIZE - guard);
  }
}

mi_page_t* _mi_page_new(mi_theap_t* theap, unsigned bin) {
  const size_t slices = _mi_bin_page_slices(bin);
  mi_arena_source_t source = _mi_theap_source(theap);
  source.piecemeal = !MI_HAS_RANDOM_ORDER && slices > 1 && _mi_option_is_enabled(mi_option_page_commit_on_demand);
  mi_run_t run;
  if (!_mi_arena_claim_from(&source, slices, 0, MI_SLICE_SIZE, false, &run)) {
    return NULL;
  }
  // The guard behind the blocks is one of committed memory.
  if (MI_HAS_GUARD_PAGES && source.piecemeal && !_mi_arena_commit(run.arena, run.index + slices - 1, 1)) {
    _mi_arena_release(run.arena, run.index, slices, false);
    return NULL;
  }
  mi_page_t* const page = _mi_page_claim_meta(&run, true);
  page->bin = (uint8_t)bin;
  page->block_size = _mi_bin_block_size(bin);
  const size_t guard = _mi_hard_guard_size(slices * MI_SLICE_SIZE, _mi_os_page_size());
  if (guard > 0) {
    _mi_arena_guard_last(run.arena, run.index + slices - 1);
  }
  mi_page_populate(theap, &run, bin, guard);
  page->reserved = (uint32_t)((slices * MI_SLICE_SIZE - guard) / page->block_size);
  page->granule_shift = (uint8_t)_mi_granule_shift(slices);
  page->class_spread = (uint32_t)_mi_hard_class_spread(page->block_size);
  page->theap = theap;
  mi_atomic_store_relaxed(&page->last_tid, theap->tid);
  if (MI_HAS_ENCODED_LISTS) {
    const uint64_t a = _mi_random_next(&theap->random);
    const uint64_t b = _mi_random_next(&theap->random);
    page->remote_key = _mi_hard_link_key(a, b, _mi_random_next(&theap->random));
    page->remote_inverse = _mi_hard_link_inverse(page->remote_key.factor);
  }
  if (MI_HAS_ENCODED_LISTS || MI_HAS_OUTLINE_LISTS) {
    mi_page_draw_key(page, &theap->random);
  }
  page->key_generation = theap->random.generation;
  _mi_page_order_init(page);
  if (MI_HAS_PADDING) {
    const uint64_t place = _mi_random_next(&theap->random);
    page->canary_key = _mi_hard_padding_key(place, _mi_random_next(&theap->random));
  }
  mi_atomic_store_relaxed(&page->remote, MI_REMOTE_OWNED);
  mi_atomic_store_relaxed(&page->owner, theap->tid);
  _mi_track_shut(page->start, slices * MI_SLICE_SIZE);
  return mi_page_publish(page, theap) ? page : NULL;
}

// Zeroes what the block has of a run that was used before. Slices that hold zeroes are left alone: touching them would be a
// fault for each of their OS pages.
static void mi_page_clear_single(const mi_page_t* page, const mi_run_t* run) {
  size_t from = (size_t)(page->single_start - page->start);
  for (size_t slice = from >> MI_SLICE_SHIFT; from < page->block_size && slice < MI_RUN_KNOWN_SLICES; slice++) {
    const size_t to = _mi_min((slice + 1) * MI_SLICE_SIZE, page->block_size);
    if ((run->zero_slices >> slice & 1) == 0) {
      memset(page->start + from, 0, to - from);
    }
    from = to;
  }
  memset(page->start + from, 0, page->block_size - from);
}

mi_page_t* _mi_page_new_single(mi_theap_t* theap, size_t size, size_t align, bool grows, bool zero) {
  mi_large_layout_t layout = _mi_single_layout(size, align);
  const size_t slices = layout.size / MI_SLICE_SIZE;
  // Up to a slice the layout aligns the block, beyond it the run does.
  const size_t lead = align > MI_SLICE_SIZE ? layout.offset / MI_SLICE_SIZE : 0;
  mi_run_t run;
  mi_page_t* page = NULL;
  const mi_arena_source_t source = _mi_theap_source(theap);
  const bool fits = source.only != NULL || (slices <= _mi_arena_slices_max() && align <= MI_SINGLE_ARENA_ALIGN_MAX);
  if (fits && _mi_arena_claim_from(&source, slices, lead, _mi_max(align, MI_SLICE_SIZE), true, &run)) {
    page = _mi_page_claim_meta(&run, false);
    if (grows) {
      layout.end = _mi_hard_large_end_of(layout.size, _mi_os_page_size());
    }
    _mi_single_init(page, &layout);
    _mi_single_guard(page, grows);
    page = mi_page_publish(page, theap) ? page : NULL;
    if (page != NULL && zero && !page->memory_is_zero) {
      mi_page_clear_single(page, &run);
    }
  }
  // What comes from the system holds zeroes.
  return page != NULL ? page : _mi_single_new_from_os(theap, size, align);
}

static void* mi_slice_of(const void* p) { return (void*)((uintptr_t)p & ~(uintptr_t)(MI_SLICE_SIZE - 1)); }

static void mi_page_retract(mi_page_t* page) {
  mi_assert_internal(_mi_page_used(page) == 0 || _mi_page_is_single(page));
  _mi_profiled_end(page);
  _mi_heap_leave_page(page);
  _mi_track_page_gone(page->start, page->slice_count * MI_SLICE_SIZE);
  _mi_page_map_unregister(page->start, page->slice_count);
  if (_mi_page_is_single(page)) {
    _mi_track_freed(page->single_start);
    _mi_track_shut(page->start, page->slice_count * MI_SLICE_SIZE);
    _mi_page_map_unregister(mi_slice_of(page->single_start), 1);
  }
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
  _mi_page_count_gone(page);
  if (page->arena != NULL) {
    _mi_bitmap_clear(page->arena->heads, page->slice_index, 1);
  }
}

void _mi_page_give_back(mi_page_t* page, bool idle) {
  if (_mi_page_is_guarded(page)) {
    _mi_guarded_give_back(page);
    return;
  }
  if (page->arena == NULL) {
    _mi_single_release_to_os(page);
    return;
  }
  if (idle) {
    _mi_arena_release_purged(page->arena, page->slice_index, page->slice_count);
    return;
  }
  if (MI_HAS_LARGE_QUARANTINE && _mi_page_is_single(page)) {
    const size_t os_page = _mi_os_page_size();
    const size_t first = _mi_align_down((size_t)(page->single_start - page->start), os_page);
    // An address with an offset says nothing of where the block begins, before which there is a pattern.
    const size_t end = page->memory_is_zero && !page->has_interior ? page->block_size : 0;
    _mi_arena_hold(page->arena, page->slice_index, page->slice_count, first, first + os_page, end, _mi_single_random());
    return;
  }
  _mi_arena_release(page->arena, page->slice_index, page->slice_count, false);
}

static void mi_page_go(mi_page_t* page, bool idle) {
  mi_page_retract(page);
  if (!_mi_pin_takes_over(page, idle)) {
    _mi_page_give_back(page, idle);
  }
}

void _mi_page_release_idle(mi_page_t* page) {
  mi_assert_internal(page->arena != NULL);
  mi_page_go(page, true);
}

void _mi_page_release(mi_page_t* page) { mi_page_go(page, false); }

bool _mi_page_mark_interior(mi_page_t* page, void* p) {
  if (_mi_page_is_single(page)) {
    // Where it may lie beyond the slices that are entered.
    if (!_mi_page_map_register(mi_slice_of(p), 1, page)) {
      return false;
    }
    // A request counts from where the block is handed out.
    mi_atomic_poke(&page->request, page->request - (size_t)((uint8_t*)p - page->single_start));
    mi_atomic_poke(&page->single_start, (uint8_t*)p);
    mi_atomic_store_relaxed(&page->has_interior, true);
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
  _mi_page_drop_ready(page);
  _mi_report(MI_VIOLATION_free_list_corruption,
             "a free list of blocks of %zu bytes (page %p) leads to %p, which is no free block of it", page->block_size,
             (void*)page->start, block);
}

static bool mi_page_had_block(const mi_page_t* page, const void* p) {
  return _mi_page_is_single(page) ? page->single_start == p : _mi_page_block_of(page, p) == p;
}

// The page whose metadata stands at or before slice `index` and whose slices hold p. In use or, if `stale`, gone: then the
// last that had a block at p, as several may have been where p is.
static mi_page_t* mi_page_at_slice(const mi_arena_t* arena, size_t index, const void* p, bool stale) {
  for (size_t back = 0; back <= index; back++) {
    const size_t head = index - back;
    // Acquire: the page is seen as it was made.
    const bool in_use = _mi_bitmap_is_set_acquire(arena->heads, head);
    const bool readable = !arena->commit_lazily || _mi_bitmap_count(arena->group_ready, head >> MI_GROUP_SHIFT, 1) == 1;
    if (!readable || (stale && back >= MI_LARGE_PAGE_SLICES)) {
      return NULL;
    }
    mi_page_t* const page = _mi_arena_page_meta(arena, head);
    if ((in_use || stale) && page->start != NULL &&
        (uintptr_t)p - (uintptr_t)page->start < page->slice_count * MI_SLICE_SIZE &&
        (in_use || mi_page_had_block(page, p))) {
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
  return page != NULL && mi_page_had_block(page, p);
}
