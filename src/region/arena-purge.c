// Owns: the purge deadlines and the purger.
// May include: base, sys, region.
// Called by: region, heap.
// Invariants: a slice that is pending is purged at the first look at the clock after its arena's deadline; a huge OS page
// is returned whole or not at all.
#include "src/region/arena-purge.h"

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

enum { MI_PURGE_TRIES = 8 };

void _mi_arena_schedule_purge(mi_arena_t* arena) {
  const int64_t delay = _mi_option_get(mi_option_purge_delay);
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
    _mi_arenas_purge(now, false);
  }
}

// On a system that backs any memory with huge pages, the first group of the first arena is exempt: a program of 200 KiB
// lives there and must not hold 2 MiB.
void _mi_arena_advise_huge_pages(mi_arena_t* arena) {
  if (!_mi_os_config.thp_always || _mi_os_config.huge_page_size == 0) {
    return;
  }
  // Of metadata a program touches a little here and there.
  _mi_prim_huge_page_advice(arena->meta_os.base, arena->meta_os.size, false);
  const size_t size = arena->slice_count * MI_SLICE_SIZE;
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

// Purges slices that this thread has claimed, and makes them free again. False: the system refused; they stay pending.
static bool mi_purge_claimed(mi_arena_t* arena, size_t index, size_t slices) {
  uint8_t* const start = arena->base + index * MI_SLICE_SIZE;
  const size_t size = slices * MI_SLICE_SIZE;
  bool is_zero = false;
  bool done;
  if (arena->commit_lazily && _mi_option_get(mi_option_purge_decommits)) {
    done = _mi_os_decommit(start, size);
    if (done) {
      // What was not committed has been counted off just the same.
      const size_t changed = _mi_bitmap_clear(arena->committed, index, slices);
      _mi_stat_increase(&_mi_stats.committed, (slices - changed) * MI_SLICE_SIZE);
      _mi_arena_forget_guards(arena, index, slices);
      is_zero = true;
    }
  } else {
    done = _mi_os_purge(start, size, &is_zero);
  }
  if (done) {
    _mi_bitmap_clear(arena->purge, index, slices);
    if (is_zero) {
      _mi_bitmap_clear(arena->dirty, index, slices);
    }
    _mi_arena_purge_live_meta(arena, index, slices);
    _mi_counter_add(&_mi_stats.arena_purges, 1);
  }
  _mi_arena_give_back(arena, index, slices);
  return done;
}

void _mi_arena_release_purged(mi_arena_t* arena, size_t index, size_t slices) {
  if (mi_purge_unit(arena, index) > 1) {
    _mi_arena_release(arena, index, slices, false);
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
  const int64_t delay = _mi_option_get(mi_option_purge_delay);
  return delay > 0 ? delay : 1;
}

// Walks the pending runs; each is claimed as far as it is free, purged in one call and given back. False: some are left.
static bool mi_arena_purge(mi_arena_t* arena) {
  const size_t count = arena->slice_count;
  const size_t minimal = _mi_max(_mi_option_get_size(mi_option_minimal_purge_size) / MI_SLICE_SIZE, 1);
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

void _mi_arenas_purge(int64_t now, bool force) {
  if (force) {
    _mi_lock_acquire(&mi_purge_lock);
  } else if (!_mi_lock_try_acquire(&mi_purge_lock)) {
    return;
  }
  // Cleared first: what is scheduled from here on sets a deadline of its own.
  atomic_exchange(&_mi_arena_purge_due, 0);
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    int64_t deadline = mi_atomic_load_relaxed(&arena->purge_deadline);
    if (deadline == 0) {
      continue;
    }
    if (force || now >= deadline) {
      atomic_exchange(&arena->purge_deadline, 0);
      _mi_arena_held_purge(arena);
      if (mi_arena_purge(arena)) {
        continue;
      }
      deadline = _mi_prim_clock_ms() + mi_purge_again_ms();
      int64_t none = 0;
      atomic_compare_exchange_strong(&arena->purge_deadline, &none, deadline);
    }
    int64_t none = 0;
    atomic_compare_exchange_strong(&_mi_arena_purge_due, &none, deadline);
  }
  _mi_lock_release(&mi_purge_lock);
}

void _mi_arena_purge_fork_prepare(void) { _mi_lock_acquire(&mi_purge_lock); }

void _mi_arena_purge_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_purge_lock);
  } else {
    _mi_lock_release(&mi_purge_lock);
  }
}
