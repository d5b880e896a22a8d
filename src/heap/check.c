// Owns: the walk over a theap: its queues and table, the pages in them, their lists, live bits, counts and places in bitmaps.
// May include: base, hardening, region, sys, heap.
// Called by: through check.h.
// Invariants: looks at nothing that another thread may change meanwhile, but for words that only grow and marks that only the
// owner takes off: so whatever threads do, what is right is found right.
#include "src/heap/check.h"

#include "src/base/assert.h"
#include "src/base/bitmap.h"
#include "src/heap/block.h"

// Of a list that a program has spoiled the rest is dropped after a report, and with it what adds up. Where reports end the
// process there is no such list.
static bool mi_check_is_whole(void) { return _mi_option_get(mi_option_on_violation) == MI_ON_VIOLATION_ABORT; }

// Walks a list of the owner's, whose links are checked before they are followed, and adds its length. False: it was reported.
static bool mi_check_list(mi_page_t* page, mi_block_t* block, uint32_t* length) {
  for (; block != NULL; block = _mi_block_next(page, block)) {
    if (!_mi_page_is_block_start(page, block) || !_mi_page_may_be_free(page, block)) {
      _mi_page_report_corrupt(page, block);
      return false;
    }
    // Also the end of a list that leads back to itself.
    mi_assert_expensive(*length < page->capacity);
    ++*length;
    _mi_block_check_free(page, block);
  }
  return true;
}

// What others have freed and nobody has collected. Others put more in front of it meanwhile.
static bool mi_check_remote(mi_page_t* page, uint64_t remote) {
  const uint64_t head = (remote >> MI_REMOTE_HEAD_SHIFT) & MI_REMOTE_HEAD_MASK;
  mi_block_t* block = head == 0 ? NULL : (mi_block_t*)(void*)(page->start + (head - 1) * MI_BLOCK_ALIGN);
  for (uint32_t i = _mi_remote_count(remote); i > 0; i--) {
    if (!_mi_page_is_block_start(page, block) ||
        (MI_HAS_LIVE_BITS && !_mi_hard_live_is_marked(page->live, _mi_page_live_index(page, block)))) {
      _mi_page_report_corrupt(page, block);
      return false;
    }
    block = _mi_block_remote_next(page, block);
  }
  return true;
}

// How many blocks the program has, or others have freed and the owner has not collected: the owner's bits.
static uint32_t mi_check_blocks(mi_page_t* page) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < page->reserved; i++) {
    uint8_t* const block = page->start + i * page->block_size;
    const uint64_t index = _mi_page_live_index(page, block);
    if (!_mi_page_is_in_play(page, block)) {
      // No free of it may be taken for one of a block.
      mi_assert_expensive(!_mi_hard_live_test(page->live, index) && !_mi_hard_live_is_free(page->live, index));
    } else if ((mi_atomic_load_relaxed(mi_live_owner_word(page->live, index)) & mi_live_bit(index)) != 0) {
      count++;
      _mi_block_check_live(page, block);
    }
  }
  return count;
}

// Where its memory is from.
static void mi_check_place(const mi_page_t* page) {
  const mi_arena_t* const arena = page->arena;
  mi_assert_expensive(page->start == arena->base + page->slice_index * MI_SLICE_SIZE);
  mi_assert_expensive(_mi_bitmap_is_set(arena->heads, page->slice_index) &&
                      _mi_bitmap_count(arena->heads, page->slice_index, page->slice_count) == 1);
  mi_assert_expensive(_mi_bitmap_count(arena->free, page->slice_index, page->slice_count) == 0);
  mi_assert_expensive(_mi_bitmap_count(arena->purge, page->slice_index, page->slice_count) == 0);
  mi_assert_expensive(arena->commit_lazily ||
                      _mi_bitmap_count(arena->committed, page->slice_index, page->slice_count) == page->slice_count);
  for (size_t i = 0; i < page->slice_count; i++) {
    mi_assert_expensive(_mi_page_map_find(page->start + i * MI_SLICE_SIZE) == page);
  }
}

static void mi_check_page(const mi_theap_t* theap, mi_page_t* page, unsigned bin) {
  mi_assert_expensive(page->bin == bin && page->block_size == _mi_bin_block_size(bin));
  mi_assert_expensive(page->theap == theap);
  mi_assert_expensive((mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS) == theap->tid);
  mi_check_place(page);
  // Acquire pairs with the release of the frees: their links are visible.
  const uint64_t remote = mi_atomic_load_acquire(&page->remote);
  mi_assert_expensive((remote & MI_REMOTE_OWNED) != 0);
  mi_assert_expensive(page->capacity <= page->reserved && page->reserved * page->block_size <= page->slice_count * MI_SLICE_SIZE);
  const uint32_t in_use = _mi_page_in_use(page);
  mi_assert_expensive(in_use <= page->capacity && _mi_remote_count(remote) <= in_use);
  uint32_t free = 0;
  const bool listed = MI_HAS_OUTLINE_LISTS || (mi_check_list(page, page->free, &free) && mi_check_list(page, page->local_free, &free));
  mi_assert_expensive(MI_HAS_OUTLINE_LISTS || !listed || !mi_check_is_whole() || free == page->capacity - in_use);
  if (mi_check_remote(page, remote) && MI_HAS_LIVE_BITS) {
    const uint32_t live = mi_check_blocks(page);
    // What waits in a quarantine has no bit.
    mi_assert_expensive(MI_HAS_QUARANTINE || !mi_check_is_whole() || live == in_use);
  }
}

// A request of the class finds its first page.
static void mi_check_direct(const mi_theap_t* theap, unsigned bin) {
  const size_t block_size = _mi_bin_block_size(bin);
  if (block_size <= MI_DIRECT_SIZE_MAX) {
    const mi_page_t* const first = theap->queues[bin].first;
    mi_assert_expensive(theap->direct[block_size >> MI_BLOCK_ALIGN_SHIFT] == (first != NULL ? first : &_mi_page_empty));
  }
}

void _mi_theap_check_now(mi_theap_t* theap) {
  size_t slices = 0;
  size_t retired_slices = 0;
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    const mi_page_queue_t* const queue = &theap->queues[bin];
    const mi_page_t* before = NULL;
    uint32_t count = 0;
    uint32_t retired = 0;
    mi_check_direct(theap, bin);
    for (mi_page_t* page = queue->first; page != NULL; page = page->next) {
      mi_assert_expensive(page->prev == before && count < queue->count);
      count++;
      retired += page->retired;
      slices += page->slice_count;
      retired_slices += page->retired ? page->slice_count : 0;
      mi_check_page(theap, page, bin);
      before = page;
    }
    mi_assert_expensive(queue->last == before && queue->count == count && queue->retired == retired);
  }
  mi_assert_expensive(theap->slices == slices && theap->retired_slices == retired_slices);
}
