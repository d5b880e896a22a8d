// Owns: setting and clearing guards in arenas, with their bits.
// May include: base, hardening, sys, region.
// Called by: through arena-guard.h.
// Invariants: a bit is set after its guard is there, and cleared after it is gone; each bit counts one unit.
#include "src/region/arena-guard.h"

#include "hardening/large-layout.h"
#include "src/base/assert.h"
#include "src/region/arena-purge.h"
#include "src/sys/stats.h"

static bool mi_slice_is_guarded(const mi_arena_t* arena, size_t index) {
  return _mi_bitmap_count(arena->guarded, index, 1) == 1;
}

// The slice at an offset in the arena.
static bool mi_slice_is_sealed(const mi_arena_t* arena, size_t at) {
  return _mi_bitmap_count(arena->sealed, at >> MI_SLICE_SHIFT, 1) == 1;
}

// Memory that is to stay, or lies in huge OS pages, has no guards.
static bool mi_arena_skips_guards(const mi_arena_t* arena) {
  if (arena->is_pinned && _mi_guard_is_enabled()) {
    _mi_counter_add(&_mi_stats.guards_skipped, 1);
  }
  return arena->is_pinned;
}

void _mi_arena_guard_last(mi_arena_t* arena, size_t index) {
  if (mi_slice_is_guarded(arena, index) || mi_arena_skips_guards(arena)) {
    return;
  }
  const size_t page_size = _mi_os_page_size();
  if (_mi_guard_set(arena->base + (index + 1) * MI_SLICE_SIZE - page_size, page_size, 1)) {
    _mi_bitmap_set(arena->guarded, index, 1);
  }
}

// A refused guard may have taken those along that slices inside its range had of their own, or have left them.
static void mi_arena_doubt(mi_arena_t* arena, size_t index, size_t slices) {
  for (size_t i = index; i < index + slices; i++) {
    if (mi_slice_is_guarded(arena, i) && _mi_bitmap_set(arena->sealed, i, 1) == 0) {
      _mi_guard_forget(1);
    }
    _mi_bitmap_clear(arena->guarded, i, 1);
  }
}

bool _mi_arena_guard(mi_arena_t* arena, size_t from, size_t to) {
  mi_assert_internal(from < to);
  if (mi_arena_skips_guards(arena)) {
    return false;
  }
  const size_t last = (to - 1) >> MI_SLICE_SHIFT;
  if (to % MI_SLICE_SIZE == 0) {
    _mi_arena_guard_last(arena, last);
    // What a refused guard would take back does not include one that is there.
    to -= mi_slice_is_guarded(arena, last) ? _mi_os_page_size() : 0;
    if (from >= to) {
      return true;
    }
  }
  const size_t first = from >> MI_SLICE_SHIFT;
  const size_t slices = ((to - 1) >> MI_SLICE_SHIFT) - first + 1;
  if (!_mi_guard_set(arena->base + from, to - from, slices - _mi_bitmap_count(arena->sealed, first, slices))) {
    mi_arena_doubt(arena, first, slices - 1);
    return false;
  }
  _mi_bitmap_set(arena->sealed, first, slices);
  return true;
}

bool _mi_arena_unguard(mi_arena_t* arena, size_t from, size_t to) {
  const size_t first = _mi_div_up(from, MI_SLICE_SIZE);
  const size_t end = to >> MI_SLICE_SHIFT;
  const size_t whole = end > first ? end - first : 0;
  // The last OS page of the slice that the range begins in.
  const bool has_partial = from % MI_SLICE_SIZE != 0 && to >= first * MI_SLICE_SIZE;
  size_t units = 0;
  if (whole > 0) {
    units = _mi_bitmap_count(arena->sealed, first, whole) + _mi_bitmap_count(arena->guarded, first, whole);
  }
  if (has_partial) {
    units += _mi_bitmap_count(arena->guarded, first - 1, 1);
  }
  if (units == 0 && !mi_slice_is_sealed(arena, from) && !mi_slice_is_sealed(arena, to - 1)) {
    return true;
  }
  if (!_mi_guard_clear(arena->base + from, to - from, units)) {
    return false;
  }
  if (whole > 0) {
    _mi_bitmap_clear(arena->sealed, first, whole);
    _mi_bitmap_clear(arena->guarded, first, whole);
  }
  if (has_partial) {
    _mi_bitmap_clear(arena->guarded, first - 1, 1);
  }
  return true;
}

bool _mi_arena_unguard_run(mi_arena_t* arena, size_t index, size_t slices) {
  if (!MI_HAS_GUARD_PAGES && !MI_HAS_LARGE_QUARANTINE && !MI_HAS_GUARDED) {
    return true;
  }
  const size_t guard = _mi_hard_guard_size(slices * MI_SLICE_SIZE, _mi_os_page_size());
  const size_t kept = guard > 0 && mi_slice_is_guarded(arena, index + slices - 1) ? 1 : 0;
  const size_t sealed = _mi_bitmap_count(arena->sealed, index, slices);
  const size_t guarded = slices > kept ? _mi_bitmap_count(arena->guarded, index, slices - kept) : 0;
  if (sealed + guarded == 0) {
    return true;
  }
  if (!_mi_guard_clear(arena->base + index * MI_SLICE_SIZE, slices * MI_SLICE_SIZE - kept * guard, sealed + guarded)) {
    return false;
  }
  _mi_bitmap_clear(arena->sealed, index, slices);
  if (slices > kept) {
    _mi_bitmap_clear(arena->guarded, index, slices - kept);
  }
  return true;
}

void _mi_arena_forget_guards(mi_arena_t* arena, size_t index, size_t slices) {
  _mi_guard_forget(_mi_bitmap_clear(arena->guarded, index, slices) + _mi_bitmap_clear(arena->sealed, index, slices));
}

static void mi_arena_drop_guards_of(mi_arena_t* arena, const mi_bitmap_word_t* bits) {
  const size_t count = arena->slice_count;
  for (size_t index = _mi_bitmap_next_set(bits, count, 0); index < count; index = _mi_bitmap_next_set(bits, count, index + 1)) {
    if (_mi_bitmap_try_claim(arena->free, index, 1)) {
      (void)_mi_arena_unguard(arena, index * MI_SLICE_SIZE, (index + 1) * MI_SLICE_SIZE);
      _mi_arena_give_back(arena, index, 1);
    }
  }
}

void _mi_arena_drop_free_guards(void) {
  if ((!MI_HAS_GUARD_PAGES && !MI_HAS_GUARDED) || !_mi_guard_are_mappings()) {
    return;
  }
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    mi_arena_drop_guards_of(arena, arena->guarded);
    mi_arena_drop_guards_of(arena, arena->sealed);
  }
}
