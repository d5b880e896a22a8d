// Owns: the walk over a forked child's arenas for pages of threads left behind, and the check of what those threads left.
// May include: base, hardening, sys, region, heap.
// Called by: heap.
// Invariants: each thread left behind stopped between two instructions of its own, so the structures of a page are whole or
// in the middle of one operation. A page is taken over only if its lists and counts agree; one that was in the middle of
// something stays as it is, and is at most one for each thread. Whatever the child may free was handed out before the fork.
#include "src/heap/orphan.h"

#include "src/heap/block.h"
#include "src/heap/heap.h"
#include "src/sys/lock.h"

enum { MI_ORPHANS_BATCH = 64 };

static struct {
  mi_lock_t lock;  // outer to all others; not waited for
  _Atomic(bool) pending;
  bool theaps_gone;
  uintptr_t survivor;
  uintptr_t next_tid;
  size_t arena;
  size_t slice;
} mi_orphans;

void _mi_orphans_begin(uintptr_t survivor, uintptr_t next_tid) {
  // Whoever held it is not here.
  _mi_lock_reset(&mi_orphans.lock);
  mi_orphans.survivor = survivor;
  mi_orphans.next_tid = next_tid;
  mi_orphans.arena = 0;
  mi_orphans.slice = 0;
  mi_orphans.theaps_gone = false;
  mi_atomic_store_release(&mi_orphans.pending, true);
}

bool _mi_orphans_pending(void) { return mi_atomic_load_relaxed(&mi_orphans.pending); }

static bool mi_orphan_block_is(const mi_page_t* page, const mi_block_t* block, bool freed_by_other) {
  if (!_mi_page_is_block_start(page, block) || !_mi_page_was_listed(page, block)) {
    return false;
  }
  if (!MI_HAS_LIVE_BITS) {
    return true;
  }
  const uint64_t index = _mi_page_live_index(page, block);
  const uint32_t bit = mi_live_bit(index);
  const bool live = (mi_atomic_load_relaxed(mi_live_owner_word(page->live, index)) & bit) != 0;
  const bool marked = (mi_atomic_load_relaxed(mi_live_remote_word(page->live, index)) & bit) != 0;
  // What left a quarantine is marked alone.
  return marked == freed_by_other && (live == freed_by_other || (MI_HAS_QUARANTINE && freed_by_other));
}

// How many blocks in use have not the end that they are to have. A thread may have stopped between making one live and
// writing that; the frees of its neighbours would take it for an overflow. `mend`: writes it.
static uint32_t mi_orphan_bad_ends(const mi_page_t* page, bool mend) {
  uint32_t bad = 0;
  for (uint32_t i = 0; MI_HAS_PADDING && MI_HAS_LIVE_BITS && i < page->reserved; i++) {
    uint8_t* const block = page->start + i * page->block_size;
    if (_mi_hard_live_test(page->live, _mi_page_live_index(page, block)) && !_mi_block_end_is_right(page, block)) {
      bad++;
      if (mend) {
        _mi_block_mend_end(page, block);
      }
    }
  }
  return bad;
}

// Adds the length of a list to *count, which may be at most `max`. False: it leads to something else than free blocks.
static bool mi_orphan_count(const mi_page_t* page, const mi_block_t* block, bool freed_by_other, uint32_t max, uint32_t* count) {
  for (; block != NULL; block = freed_by_other ? _mi_block_remote_next(page, block) : _mi_block_next(page, block)) {
    if (++*count > max || !mi_orphan_block_is(page, block, freed_by_other)) {
      return false;
    }
  }
  return true;
}

// Whether the owner's free blocks agree with its counts: those in its lists, or all that the live bits tell of.
static bool mi_orphan_lists_are_whole(const mi_page_t* page) {
  uint32_t count = _mi_page_in_use(page);
  if (!MI_HAS_OUTLINE_LISTS) {
    return mi_orphan_count(page, page->free, false, page->capacity, &count) &&
        mi_orphan_count(page, page->local_free, false, page->capacity, &count) && count == page->capacity;
  }
  uint64_t seen[MI_PAGE_GRANULES / 64] = {0};
  for (uintptr_t i = 0; i < page->stocked; i++) {
    const uint64_t index = i < MI_STOCK_MAX ? _mi_page_stock(page)[i] : MI_PAGE_GRANULES;
    const uint64_t bit = UINT64_C(1) << (index % 64);
    if (index >= MI_PAGE_GRANULES || (seen[index / 64] & bit) != 0 ||
        !mi_orphan_block_is(page, (const mi_block_t*)(const void*)(page->start + (index << page->granule_shift)), false)) {
      return false;
    }
    seen[index / 64] |= bit;
  }
  for (uint32_t i = 0; i < page->reserved; i++) {
    const mi_block_t* const block = (const mi_block_t*)(const void*)(page->start + i * page->block_size);
    const bool is_free = _mi_hard_live_is_free(page->live, _mi_page_live_index(page, block));
    // Its thread may have been about to mark it, or in the middle of marking all anew.
    if (is_free && !_mi_block_is_marked(page, block)) {
      return false;
    }
    count += is_free;
  }
  return count == page->capacity;
}

static bool mi_orphan_is_whole(const mi_page_t* page) {
  const uint64_t remote = mi_atomic_load_acquire(&page->remote);
  if ((remote & (MI_REMOTE_OWNED | MI_REMOTE_LISTED)) != MI_REMOTE_OWNED || page->capacity > page->reserved ||
      _mi_page_in_use(page) > page->capacity) {
    return false;
  }
  uint32_t freed = 0;
  const uint64_t head = (remote >> MI_REMOTE_HEAD_SHIFT) & MI_REMOTE_HEAD_MASK;
  const mi_block_t* const remote_head =
      head == 0 || _mi_remote_count(remote) == 0 ? NULL : (const mi_block_t*)(const void*)(page->start + (head - 1) * MI_BLOCK_ALIGN);
  return _mi_page_order_is_whole(page) && mi_orphan_bad_ends(page, false) <= 1 && mi_orphan_lists_are_whole(page) &&
      mi_orphan_count(page, remote_head, true, _mi_page_in_use(page), &freed) && freed == _mi_remote_count(remote);
}

// Whether the page's owner is a thread of the parent. Singles and unowned pages belong to no thread.
static bool mi_page_is_orphan(const mi_page_t* page) {
  const uintptr_t owner = mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS;
  return owner >= MI_TID_FIRST && owner < mi_orphans.next_tid && owner != mi_orphans.survivor;
}

static void mi_orphan_adopt(mi_page_t* page) {
  (void)mi_orphan_bad_ends(page, true);
  page->theap = NULL;
  page->next = NULL;
  page->prev = NULL;
  _mi_page_set_retired(page, false);
  _mi_page_abandon(page);
}

// Walks on until enough orphans have been met. False: it is through.
static bool mi_orphans_walk(void) {
  size_t left = MI_ORPHANS_BATCH;
  mi_arena_t* arena;
  for (; (arena = _mi_arena_at(mi_orphans.arena)) != NULL; mi_orphans.arena++, mi_orphans.slice = 0) {
    for (;;) {
      const size_t index = _mi_bitmap_next_set(arena->heads, arena->slice_count, mi_orphans.slice);
      if (index >= arena->slice_count) {
        break;
      }
      mi_orphans.slice = index + 1;
      mi_page_t* const page = _mi_arena_page_meta(arena, index);
      if (!mi_page_is_orphan(page)) {
        continue;
      }
      if (mi_orphan_is_whole(page)) {
        mi_orphan_adopt(page);
      }
      if (--left == 0) {
        return true;
      }
    }
  }
  return false;
}

bool _mi_orphans_adopt(void) {
  if (!_mi_orphans_pending() || !_mi_lock_try_acquire(&mi_orphans.lock)) {
    return false;
  }
  bool more = false;
  if (_mi_orphans_pending()) {
    if (!mi_orphans.theaps_gone) {
      _mi_heaps_drop_orphans();
      mi_orphans.theaps_gone = true;
    }
    more = mi_orphans_walk();
    if (!more) {
      mi_atomic_store_relaxed(&mi_orphans.pending, false);
    }
  }
  _mi_lock_release(&mi_orphans.lock);
  return more;
}
