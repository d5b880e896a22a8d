// Owns: the purge deadlines and the purger.
// May include: base, sys, region.
// Called by: region, heap.
// Invariants: a slice that is pending is purged at the first look at the clock after its arena's deadline; a huge OS page
// is returned whole or not at all.
#include "src/region/arena-purge.h"

#include <string.h>

#include "src/base/assert.h"
#include "src/prim/prim.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-quarantine.h"
#include "src/sys/lock.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"

_Atomic(int64_t) _mi_arena_purge_due;
_Atomic(bool) _mi_arena_purge_is_news;

static mi_lock_t mi_purge_lock;

enum { MI_PURGE_TRIES = 8,
       MI_PURGE_MULT_MAX = 1000 };

// Negative: never.
static int64_t mi_purge_delay_ms(void) {
  const int64_t delay = _mi_option_get_clamp(mi_option_purge_delay, -1, INT32_MAX);
  return delay < 0 ? delay : delay * _mi_option_get_clamp(mi_option_arena_purge_mult, 0, MI_PURGE_MULT_MAX);
}

static bool mi_arenas_purge_own(int64_t now, bool force);

void _mi_arena_schedule_purge(mi_arena_t* arena) {
  const int64_t delay = mi_purge_delay_ms();
  if (delay < 0) {
    return;
  }
  const int64_t now = _mi_prim_clock_ms();
  // A purger takes deadlines down before it looks at what they stand for, here they are set after that is in place; all
  // four steps are read-modify-writes in one order for all (seq_cst), so that one of the two sees the other.
  int64_t deadline = 0;
  if (atomic_compare_exchange_strong(&arena->purge_deadline, &deadline, now + delay)) {
    deadline = now + delay;
  }
  int64_t none = 0;
  if (mi_atomic_load_relaxed(&_mi_arena_purge_due) == 0 &&
      atomic_compare_exchange_strong(&_mi_arena_purge_due, &none, deadline)) {
    mi_atomic_store_release(&_mi_arena_purge_is_news, true);
  }
  if (delay == 0) {
    (void)mi_arenas_purge_own(now, false);
  }
}

// On a system that backs any memory with huge pages, the first group of the first arena is exempt: a program of 200 KiB
// lives there and must not hold 2 MiB.
void _mi_arena_advise_huge_pages(mi_arena_t* arena) {
  if (!_mi_os_config.thp_always || _mi_os_config.huge_page_size == 0) {
    return;
  }
  // Of metadata a program touches a little here and there.
  if (arena->meta_os.size > 0) {
    (void)_mi_prim_huge_page_advice(arena->meta_os.base, arena->meta_os.size, false);
  }
  const size_t size = arena->slice_count * MI_SLICE_SIZE;
  if (arena->is_lent || arena->os_page_size != 0) {
    return;
  }
  if (!_mi_option_get(mi_option_allow_thp)) {
    _mi_prim_huge_page_advice(arena->base, size, false);
  } else if (arena->is_first) {
    _mi_prim_huge_page_advice(arena->base, _mi_min(size, (size_t)MI_GROUP_SLICES * MI_SLICE_SIZE), false);
  }
}

// The slices of a huge OS page where the slice may lie in one, else 1.
static size_t mi_purge_unit(const mi_arena_t* arena, size_t index) {
  if (!_mi_os_config.thp_always || !_mi_option_get(mi_option_allow_thp) ||
      (arena->is_first && index < MI_GROUP_SLICES)) {
    return 1;
  }
  return _mi_max(_mi_os_config.huge_page_size / MI_SLICE_SIZE, 1);
}

// The program's function gives up what is committed, without the guards that were put in it.
static bool mi_purge_by_program(mi_arena_t* arena, size_t index, size_t slices) {
  const size_t end = index + slices;
  size_t next;
  for (size_t at = index; (at = _mi_bitmap_next_set(arena->committed, end, at)) < end; at = next) {
    bool is_zero;
    next = _mi_bitmap_next_clear(arena->committed, end, at);
    if (!_mi_arena_unguard(arena, at * MI_SLICE_SIZE, next * MI_SLICE_SIZE) ||
        !_mi_arena_call_program(arena, false, at, next - at, &is_zero)) {
      return false;
    }
    (void)_mi_bitmap_clear(arena->committed, at, next - at);
    _mi_counter_add(&_mi_stats.purge_calls, 1);
    _mi_counter_add(&_mi_stats.purged, (next - at) * MI_SLICE_SIZE);
    _mi_stat_decrease(&_mi_stats.committed, (next - at) * MI_SLICE_SIZE);
  }
  return true;
}

bool _mi_arena_purge_run(mi_arena_t* arena, size_t index, size_t slices, bool* is_zero) {
  uint8_t* const start = arena->base + index * MI_SLICE_SIZE;
  const size_t size = slices * MI_SLICE_SIZE;
  *is_zero = false;
  if (arena->is_pinned) {
    return false;
  }
  if (arena->commit_fun != NULL) {
    return mi_purge_by_program(arena, index, slices);
  }
  if (arena->is_lent) {
    // What the system puts in its place depends on what the program mapped there.
    bool unknown;
    return _mi_os_purge(start, size, &unknown);
  }
  if (!arena->commit_lazily || !_mi_option_get(mi_option_purge_decommits)) {
    return _mi_os_purge(start, size, is_zero);
  }
  if (!_mi_os_decommit(start, size)) {
    return false;
  }
  // What was not committed has been counted off just the same.
  const size_t changed = _mi_bitmap_clear(arena->committed, index, slices);
  _mi_stat_increase(&_mi_stats.committed, (slices - changed) * MI_SLICE_SIZE);
  _mi_arena_forget_guards(arena, index, slices);
  *is_zero = true;
  return true;
}

// Purges slices that this thread has claimed, and makes them free again. False: refused; they stay pending.
static bool mi_purge_claimed(mi_arena_t* arena, size_t index, size_t slices) {
  bool is_zero;
  const bool done = _mi_arena_purge_run(arena, index, slices, &is_zero);
  if (done) {
    _mi_bitmap_clear(arena->purge, index, slices);
    if (MI_HAS_ZERO_ON_FREE) {
      _mi_bitmap_clear(arena->wiped, index, slices);
    }
    if (is_zero) {
      _mi_arena_count_clean(arena, _mi_bitmap_clear(arena->dirty, index, slices));
    }
    _mi_arena_purge_live_meta(arena, index, slices);
    _mi_counter_add(&_mi_stats.arena_purges, 1);
  }
  _mi_arena_give_back(arena, index, slices);
  return done;
}

void _mi_arena_wipe(mi_arena_t* arena, size_t index, size_t slices) {
  if (_mi_arena_unguard(arena, index * MI_SLICE_SIZE, (index + slices) * MI_SLICE_SIZE)) {
    memset(arena->base + index * MI_SLICE_SIZE, 0, slices * MI_SLICE_SIZE);
  }
}

void _mi_arena_release_purged(mi_arena_t* arena, size_t index, size_t slices) {
  if (MI_HAS_ZERO_ON_FREE && (arena->is_lent || arena->is_pinned)) {
    _mi_arena_wipe(arena, index, slices);
  }
  if (arena->is_pinned) {
    _mi_arena_give_back(arena, index, slices);
  } else if (arena->commit_fun != NULL || mi_purge_unit(arena, index) > 1) {
    // The program's function is called from a purge only: here the caller may hold a lock.
    _mi_arena_release_pending(arena, index, slices);
  } else {
    _mi_bitmap_set(arena->purge, index, slices);
    if (!mi_purge_claimed(arena, index, slices)) {
      _mi_arena_schedule_purge(arena);
    }
    _mi_arena_vacate_if_unused(arena);
  }
}

// After how long what was left pending is tried again: not at once, or every call would.
static int64_t mi_purge_again_ms(void) {
  const int64_t delay = mi_purge_delay_ms();
  return delay > 0 ? delay : 1;
}

// Walks the pending runs; each is claimed as far as it is free, purged in one call and given back. False: some are left.
static bool mi_arena_purge(mi_arena_t* arena) {
  const size_t count = arena->slice_count;
  const size_t minimal = _mi_max(_mi_option_get_size(mi_option_arena_purge_min_size) / MI_SLICE_SIZE, 1);
  bool complete = true;
  unsigned tries = 0;
  size_t index = _mi_bitmap_next_set(arena->purge, count, 0);
  while (index < count) {
    size_t end = _mi_bitmap_next_clear(arena->purge, count, index);
    end = _mi_min(end, _mi_bitmap_next_clear(arena->free, count, index));
    const size_t unit = mi_purge_unit(arena, index);
    const size_t first = _mi_align_up(index, unit);
    const size_t last = _mi_align_down(end, unit);
    if (first < last && last - first >= minimal) {
      if (_mi_bitmap_try_claim(arena->free, first, last - first)) {
        // Somebody may have used and freed the slices since they were looked at; then they are pending again, or were
        // purged. Purging them once more is correct either way.
        complete = mi_purge_claimed(arena, first, last - first) && complete;
      } else if (tries++ < MI_PURGE_TRIES) {
        // A part was claimed since: look again at what is left of the run.
        continue;
      } else {
        complete = false;
      }
    }
    tries = 0;
    index = _mi_bitmap_next_set(arena->purge, count, _mi_max(end, index + 1));
  }
  return complete;
}

// Purges the arena if its deadline has passed and it may be now, else hands the deadline on.
static void mi_arena_purge_if_due(mi_arena_t* arena, int64_t now, bool force, bool may) {
  int64_t deadline = mi_atomic_load_relaxed(&arena->purge_deadline);
  if (deadline == 0) {
    return;
  }
  int64_t none = 0;
  if (may && (force || now >= deadline)) {
    atomic_exchange(&arena->purge_deadline, 0);
    _mi_arena_held_purge(arena);
    const bool complete = mi_arena_purge(arena);
    // The slices that it held while they were purged may have been all that kept the arena.
    _mi_arena_vacate_if_unused(arena);
    if (complete) {
      return;
    }
    deadline = _mi_prim_clock_ms() + mi_purge_again_ms();
    atomic_compare_exchange_strong(&arena->purge_deadline, &none, deadline);
    none = 0;
  }
  atomic_compare_exchange_strong(&_mi_arena_purge_due, &none, deadline);
}

// Purges arenas that are not committed by the program. Those that are hand their deadlines on.
static bool mi_arenas_purge_own(int64_t now, bool force) {
  if (force) {
    _mi_lock_acquire(&mi_purge_lock);
  } else if (!_mi_lock_try_acquire(&mi_purge_lock)) {
    return false;
  }
  // Cleared first: what is scheduled from here on sets a deadline of its own.
  atomic_exchange(&_mi_arena_purge_due, 0);
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    mi_arena_purge_if_due(arena, now, force, arena->commit_fun == NULL);
  }
  _mi_lock_release(&mi_purge_lock);
  return true;
}

void _mi_arenas_purge(int64_t now, bool force) {
  if (!mi_arenas_purge_own(now, force)) {
    return;
  }
  // No lock is held: the program's functions may allocate, and so come here again.
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    if (arena->commit_fun != NULL) {
      mi_arena_purge_if_due(arena, now, force, true);
    }
  }
}

void _mi_arena_purge_fork_prepare(void) { _mi_lock_acquire(&mi_purge_lock); }

void _mi_arena_purge_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_purge_lock);
  } else {
    _mi_lock_release(&mi_purge_lock);
  }
}
