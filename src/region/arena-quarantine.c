// Owns: the list of held slices.
// May include: base, hardening, prim, sys, region.
// Called by: through arena-quarantine.h.
// Invariants: mi_held is touched under its lock, a leaf lock; what leaves is released without it.
#include "src/region/arena-quarantine.h"

#include <string.h>

#include "hardening/fill.h"
#include "hardening/large-quarantine.h"
#include "src/prim/prim.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-purge.h"
#include "src/sys/lock.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"

typedef struct mi_held_s {
  mi_arena_t* arena;
  size_t index;
  size_t slices;
  bool is_purged;
  bool is_zero;
  bool is_wiped;  // cleared by hand, and accessible for the most part
} mi_held_t;

static struct {
  mi_lock_t lock;
  mi_large_budget_t budget;
  mi_large_held_t sum;
  mi_held_t list[MI_LARGE_HELD_MAX];  // the oldest first
} mi_held;

static mi_large_sparse_t mi_held_sparse;

// Makes all of it inaccessible, or at least gives its memory back.
static void mi_held_seal(mi_held_t* held) {
  const size_t start = held->index * MI_SLICE_SIZE;
  const size_t size = held->slices * MI_SLICE_SIZE;
  if (MI_HAS_ZERO_ON_FREE && held->arena->is_lent) {
    // What the program has mapped there may outlast all that is done to this mapping of it.
    _mi_arena_wipe(held->arena, held->index, held->slices);
  }
  if (_mi_arena_guard(held->arena, start, start + size)) {
    held->is_purged = true;
    _mi_os_count_purge(size);
    _mi_counter_add(&_mi_stats.arena_purges, 1);
    // Where guards are mappings the content may still be there: the program may have locked it in memory. What is behind a
    // guard in memory that the program lent only the program knows.
    held->is_zero = !_mi_guard_are_mappings() && !held->arena->is_lent;
  } else if (held->arena->commit_fun == NULL) {
    held->is_purged = _mi_arena_purge_run(held->arena, held->index, held->slices, &held->is_zero);
  }
}

// The slices are free for others; the guards stay until they are claimed, unless they cost mappings.
static void mi_held_give_up(const mi_held_t* held) {
  if (_mi_guard_are_mappings()) {
    (void)_mi_arena_unguard_run(held->arena, held->index, held->slices);
  }
  if (MI_HAS_ZERO_ON_FREE && !held->is_purged && held->is_wiped) {
    _mi_bitmap_set(held->arena->wiped, held->index, held->slices);
    _mi_arena_release_pending(held->arena, held->index, held->slices);
  } else if (MI_HAS_ZERO_ON_FREE && !held->is_purged) {
    _mi_arena_release_purged(held->arena, held->index, held->slices);
  } else {
    _mi_arena_release(held->arena, held->index, held->slices, held->is_zero);
  }
}

static size_t mi_held_full(const mi_held_t* held) { return held->is_purged ? 0 : held->slices; }

// The one that leaves: one with memory, if it is memory that there is too much of.
static size_t mi_held_choose(size_t full_slices, uint64_t random) {
  size_t candidates[MI_LARGE_HELD_MAX];
  size_t count = 0;
  const bool any = full_slices == 0 || mi_held.sum.full_slices == 0;
  for (size_t i = 0; i < mi_held.sum.count; i++) {
    if (any || !mi_held.list[i].is_purged) {
      candidates[count++] = i;
    }
  }
  return candidates[_mi_hard_large_leaving(count, random)];
}

static mi_held_t mi_held_take(size_t i) {
  const mi_held_t held = mi_held.list[i];
  mi_held.sum.count--;
  mi_held.sum.slices -= held.slices;
  mi_held.sum.full_slices -= mi_held_full(&held);
  memmove(&mi_held.list[i], &mi_held.list[i + 1], (mi_held.sum.count - i) * sizeof(held));
  return held;
}

// Whether a block is small enough to be cleared by hand rather than by giving its memory back, where freed memory is zeroed:
// nothing else in its run was written. `end`: of the block in its run, 0: that is not known.
static bool mi_held_may_wipe(const mi_held_t* held, size_t end) {
  return MI_HAS_ZERO_ON_FREE && end > 0 && !held->arena->is_lent && _mi_hard_large_may_wipe(&mi_held_sparse, held->slices);
}

// Zeroes what a block has written of a part of its run that is whole OS pages. Returns how many it had written to.
static size_t mi_held_wipe(mi_held_t* held, size_t from, size_t end) {
  uint8_t* const run = held->arena->base + held->index * MI_SLICE_SIZE;
  const size_t os_page = _mi_os_page_size();
  size_t written = 0;
  for (size_t at = from; at < end; at += os_page) {
    written += _mi_hard_fill_lines(run + at, os_page, 0);
  }
  held->is_wiped = true;
  return written;
}

static mi_cold void mi_wiped_report(const uint8_t* p, size_t size) {
  const size_t at = _mi_hard_fill_find(p, size, 0);
  _mi_report(MI_VIOLATION_write_after_free, "a large block was written while it was free: address %p holds 0x%02x",
             (const void*)(p + at), p[at]);
}

size_t _mi_arena_take_wiped(mi_arena_t* arena, size_t index, size_t slices) {
  const size_t end = index + slices;
  for (size_t i = _mi_bitmap_next_set(arena->wiped, end, index); i < end; i = _mi_bitmap_next_set(arena->wiped, end, i + 1)) {
    uint8_t* const slice = arena->base + i * MI_SLICE_SIZE;
    // A guard that the run keeps is nobody's memory.
    const size_t size = MI_SLICE_SIZE - (_mi_bitmap_is_set(arena->guarded, i) ? _mi_os_page_size() : 0);
    if (size > 0 && mi_unlikely(!_mi_hard_fill_is(slice, size, 0, false))) {
      mi_wiped_report(slice, size);
      memset(slice, 0, size);
    }
  }
  return _mi_bitmap_clear(arena->wiped, index, slices);
}

// Whether all of a block may become inaccessible now. What is never to be purged keeps its memory. Where freed memory is
// zeroed, that a block's memory goes back is how one becomes zeroes that is not cleared by hand.
static bool mi_held_may_seal(size_t slices, bool may_wipe) {
  if (MI_HAS_ZERO_ON_FREE && !may_wipe) {
    return true;
  }
  const long delay = _mi_option_get(mi_option_purge_delay);
  if (delay <= 0) {
    return delay == 0;
  }
  const int64_t now = _mi_prim_clock_ms();
  _mi_lock_acquire(&mi_held.lock);
  const bool may = _mi_hard_large_spend(&mi_held.budget, now, slices * MI_SLICE_SIZE);
  _mi_lock_release(&mi_held.lock);
  return may;
}

void _mi_arena_hold(mi_arena_t* arena, size_t index, size_t slices, size_t first, size_t first_end, size_t end, uint64_t random) {
  mi_held_t held = {arena, index, slices, false, false, false};
  mi_held_t leaving[MI_LARGE_HELD_MAX];
  size_t leaving_count = 0;
  if (_mi_guard_is_enabled() && (_mi_hard_large_may_hold(slices, 0) || !_mi_guard_are_mappings())) {
    const bool may_wipe = mi_held_may_wipe(&held, end);
    if (mi_held_may_seal(slices, may_wipe)) {
      mi_held_seal(&held);
    } else {
      if (may_wipe && _mi_guard_are_mappings()) {
        // Such a guard may keep what it hides, and show it again.
        (void)mi_held_wipe(&held, first, _mi_min(first_end, end));
      }
      const bool is_guarded = _mi_arena_guard(arena, index * MI_SLICE_SIZE + first, index * MI_SLICE_SIZE + first_end);
      if (may_wipe) {
        const size_t from = is_guarded ? first_end : first;
        const size_t pages = from < end ? (end - from) / _mi_os_page_size() : 0;
        _mi_hard_large_wiped(&mi_held_sparse, slices, mi_held_wipe(&held, from, end), pages);
      }
    }
  }
  if (!_mi_guard_is_enabled() || !_mi_hard_large_may_hold(slices, mi_held_full(&held))) {
    mi_held_give_up(&held);
    return;
  }
  _mi_lock_acquire(&mi_held.lock);
  while (_mi_hard_large_is_full(&mi_held.sum, slices, mi_held_full(&held))) {
    leaving[leaving_count++] = mi_held_take(mi_held_choose(mi_held_full(&held), random));
    random /= MI_LARGE_HELD_MAX;
  }
  mi_held.list[mi_held.sum.count++] = held;
  mi_held.sum.slices += slices;
  mi_held.sum.full_slices += mi_held_full(&held);
  _mi_lock_release(&mi_held.lock);
  for (size_t i = 0; i < leaving_count; i++) {
    mi_held_give_up(&leaving[i]);
  }
  if (!held.is_purged) {
    _mi_arena_schedule_purge(arena);
  }
}

void _mi_arena_held_purge(mi_arena_t* arena) {
  if (!MI_HAS_LARGE_QUARANTINE) {
    return;
  }
  _mi_lock_acquire(&mi_held.lock);
  for (size_t i = 0; i < mi_held.sum.count; i++) {
    if (mi_held.list[i].arena == arena && !mi_held.list[i].is_purged) {
      mi_held_seal(&mi_held.list[i]);
      mi_held.sum.full_slices -= mi_held.list[i].is_purged ? mi_held.list[i].slices : 0;
    }
  }
  _mi_lock_release(&mi_held.lock);
}

void _mi_arena_held_release(void) {
  mi_held_t leaving[MI_LARGE_HELD_MAX];
  size_t count = 0;
  _mi_lock_acquire(&mi_held.lock);
  while (mi_held.sum.count > 0) {
    leaving[count++] = mi_held_take(0);
  }
  _mi_lock_release(&mi_held.lock);
  for (size_t i = 0; i < count; i++) {
    mi_held_give_up(&leaving[i]);
  }
}

size_t _mi_arena_held_slices(void) {
  _mi_lock_acquire(&mi_held.lock);
  const size_t slices = mi_held.sum.slices;
  _mi_lock_release(&mi_held.lock);
  return slices;
}

void _mi_arena_held_forget(void) {
  mi_held.sum = (mi_large_held_t){0, 0, 0};
}

void _mi_arena_held_fork_prepare(void) { _mi_lock_acquire(&mi_held.lock); }

void _mi_arena_held_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_held.lock);
  } else {
    _mi_lock_release(&mi_held.lock);
  }
}
