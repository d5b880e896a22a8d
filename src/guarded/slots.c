// Owns: the slots that wait, and those that were made and have not been used yet.
// May include: base, sys, region.
// Called by: through slots.h.
// Invariants: mi_slots is touched under its lock, a leaf lock; what leaves is released without it. The sealed bit of each
// slice of a slot is set, and counts one unit where guards are mappings.
#include "src/guarded/slots.h"

#include "src/guarded/record.h"
#include "src/prim/prim.h"
#include "src/region/arena-create.h"
#include "src/region/arena-guard.h"
#include "src/sys/lock.h"
#include "src/sys/stats.h"

enum {
  // Slots are used again while more than this share of what may wait does; a fourth, where addresses are limited.
  MI_SLOTS_KEPT_OF_4 = 3,
  MI_SLOTS_LIMITED_SHARE = 32,
  // Where guards are mappings of their own, slots of more slices cost too many.
  MI_SLOT_MAPPINGS_MAX = 32,
  MI_SLOTS_LEAVING_MAX = 16,
  // All slots, used or not, take this share of the addresses that the process may have.
  MI_SLOTS_ADDRESS_SHARE = 4,
  // After one was refused so many go without, of that size or a larger one, before the next is asked for.
  MI_SLOTS_PATIENCE = 64,
  // Mappings of blocks that have one of their own, and their bytes together.
  MI_SLOTS_OS_MAX = 8,
};

static const size_t mi_slots_os_bytes = (size_t)MI_SLOTS_HELD_SLICES * MI_SLICE_SIZE;

typedef struct mi_slot_s {
  mi_arena_t* arena;
  uint32_t index;
  uint32_t slices;
} mi_slot_t;

typedef struct mi_slot_os_s {
  mi_os_block_t os;
  void* start;  // NULL: there is none
} mi_slot_os_t;

static mi_far struct {
  mi_lock_t lock;
  size_t held_count;
  size_t held_slices;
  size_t fresh_count;
  size_t os_next;
  mi_slot_t fresh[MI_SLOTS_FRESH];
  mi_slot_os_t os[MI_SLOTS_OS_MAX];
  mi_slot_t held[MI_SLOTS_HELD_MAX];
} mi_slots;

static uint8_t* mi_slot_start(const mi_slot_t* slot) { return slot->arena->base + slot->index * (size_t)MI_SLICE_SIZE; }

// Whether what is dropped reads zero afterwards. A mapping of the program's may hold what it likes.
static bool mi_slot_is_zero(const mi_arena_t* arena) { return !_mi_guard_are_mappings() && !arena->is_lent; }

static void mi_slot_fill_in(const mi_slot_t* slot, mi_run_t* run) {
  run->arena = slot->arena;
  run->index = slot->index;
  run->slices = slot->slices;
  run->start = mi_slot_start(slot);
  run->is_zero = mi_slot_is_zero(slot->arena);
}

// Slots of others serve nobody but who names them, or are memory of the program's.
static bool mi_slot_may_wait(const mi_arena_t* arena) { return !arena->is_exclusive && !arena->is_lent; }

// Budget

static size_t mi_slots_share(size_t max) { return _mi_arenas_are_limited() || _mi_guard_are_mappings() ? max / MI_SLOTS_LIMITED_SHARE : max; }

static bool mi_slots_are_many(size_t of_4) {
  return mi_slots.held_count >= mi_slots_share(MI_SLOTS_HELD_MAX) / 4 * of_4 ||
      mi_slots.held_slices >= mi_slots_share(MI_SLOTS_HELD_SLICES) / 4 * of_4;
}

// The slices of all slots. Relaxed: a few more or less are all that a race makes of it.
static _Atomic(size_t) mi_slots_slices;

// Slots of one slice that left one by one, less those made since: so many places are free, about, in which no more fits.
// They serve first, or searches for more would look through all of them again and again, and then take more addresses.
static _Atomic(size_t) mi_slots_scattered;

static bool mi_slots_take_scattered(void) {
  size_t scattered = mi_atomic_load_relaxed(&mi_slots_scattered);
  while (scattered > 0 && !mi_atomic_cas_weak_relaxed(&mi_slots_scattered, &scattered, scattered - 1)) {
  }
  return scattered > 0;
}

// Where there is no place for another slot the search for one goes through all that there is, and then asks the system: for each
// of a million allocations that would be most of their time. Relaxed: a search more or less is all that a race makes of it.
static _Atomic(uint32_t) mi_slots_waiting;
static _Atomic(size_t) mi_slots_refused;

static bool mi_slots_are_hopeless(size_t slices) {
  const uint32_t left = mi_atomic_load_relaxed(&mi_slots_waiting);
  if (left == 0 || slices < mi_atomic_load_relaxed(&mi_slots_refused)) {
    return false;
  }
  mi_atomic_store_relaxed(&mi_slots_waiting, left - 1);
  _mi_counter_add(&_mi_stats.guards_skipped, 1);
  return true;
}

static void mi_slots_lose_hope(size_t slices) {
  // A guard that was refused has been counted.
  _mi_counter_add(&_mi_stats.guards_skipped, !_mi_guard_are_mappings());
  mi_atomic_store_relaxed(&mi_slots_refused, slices);
  mi_atomic_store_relaxed(&mi_slots_waiting, MI_SLOTS_PATIENCE);
}

static bool mi_slots_have_room(size_t slices) {
  const size_t space = _mi_min(_mi_os_config.address_space_limit, (size_t)1 << (_mi_min(_mi_os_config.address_bits, MI_INTPTR_SIZE * 8 - 1)));
  return mi_atomic_load_relaxed(&mi_slots_slices) + slices <= space / MI_SLICE_SIZE / MI_SLOTS_ADDRESS_SHARE;
}

static mi_slot_t mi_slots_remove(size_t i) {
  const mi_slot_t slot = mi_slots.held[i];
  mi_slots.held[i] = mi_slots.held[--mi_slots.held_count];
  mi_slots.held_slices -= slot.slices;
  return slot;
}

// Any of those that wait and have so many slices. Under the lock.
static bool mi_slots_remove_fitting(size_t slices, uint64_t random, mi_slot_t* slot) {
  const size_t count = mi_slots.held_count;
  for (size_t i = 0, at = count == 0 ? 0 : (size_t)(random % count); i < count; i++, at = at + 1 == count ? 0 : at + 1) {
    if (mi_slots.held[at].slices == slices) {
      *slot = mi_slots_remove(at);
      return true;
    }
  }
  return false;
}

// Making

static bool mi_slot_seal(const mi_run_t* run) {
  if (run->arena->is_pinned || (_mi_guard_are_mappings() && run->slices > MI_SLOT_MAPPINGS_MAX)) {
    return false;
  }
  const size_t units = run->slices - _mi_bitmap_count(run->arena->sealed, run->index, run->slices);
  if (_mi_guard_set(run->start, run->slices * MI_SLICE_SIZE, units)) {
    _mi_bitmap_set(run->arena->sealed, run->index, run->slices);
    return true;
  }
  // It took the guard along that the last slice may have had.
  _mi_guard_forget(_mi_bitmap_clear(run->arena->guarded, run->index, run->slices));
  return false;
}

// Claims more than one where they are small, and keeps the others for later.
static bool mi_slot_make(const mi_arena_source_t* source, size_t slices, size_t lead, size_t align, mi_run_t* run) {
  const bool may_be_more = slices == 1 && align == MI_SLICE_SIZE && source->only == NULL && !_mi_arenas_are_limited();
  const size_t count = may_be_more && !mi_slots_take_scattered() ? MI_SLOTS_FRESH : 1;
  if (!mi_slots_have_room(slices * count)) {
    return false;
  }
  if (!_mi_arena_claim_from(source, slices * count, lead, align, true, run) &&
      (count == 1 || !_mi_arena_claim_from(source, slices, lead, align, true, run))) {
    return false;
  }
  if (!mi_slot_seal(run)) {
    _mi_arena_release(run->arena, run->index, run->slices, false);
    return false;
  }
  const size_t extra = run->slices - slices;
  (void)mi_atomic_add_relaxed(&mi_slots_slices, run->slices);
  size_t kept = 0;
  _mi_lock_acquire(&mi_slots.lock);
  for (; kept < extra && mi_slots.fresh_count < MI_SLOTS_FRESH; kept++) {
    const size_t index = run->index + slices + kept;
    mi_slots.fresh[mi_slots.fresh_count++] = (mi_slot_t){run->arena, (uint32_t)index, 1};
  }
  _mi_lock_release(&mi_slots.lock);
  run->is_zero = mi_slot_is_zero(run->arena);
  if (kept < extra) {
    mi_atomic_sub_relaxed(&mi_slots_slices, extra - kept);
    _mi_arena_release(run->arena, run->index + slices + kept, extra - kept, run->is_zero);
  }
  run->slices = slices;
  return true;
}

bool _mi_slot_take(const mi_arena_source_t* source, size_t slices, size_t lead, size_t align, uint64_t random, mi_run_t* run) {
  if (!_mi_guard_is_enabled()) {
    return false;
  }
  const bool any = source->only == NULL && align <= MI_SLICE_SIZE;
  mi_slot_t slot;
  bool found = false;
  if (any) {
    _mi_lock_acquire(&mi_slots.lock);
    if (mi_slots_are_many(MI_SLOTS_KEPT_OF_4)) {
      found = mi_slots_remove_fitting(slices, random, &slot);
    } else if (slices == 1 && mi_slots.fresh_count > 0) {
      slot = mi_slots.fresh[--mi_slots.fresh_count];
      found = true;
    }
    _mi_lock_release(&mi_slots.lock);
  }
  const bool hopeless = any && !found && mi_slots_are_hopeless(slices);
  if (!found && !hopeless && mi_slot_make(source, slices, lead, align, run)) {
    return true;
  }
  if (!found && any) {
    _mi_lock_acquire(&mi_slots.lock);
    found = mi_slots_remove_fitting(slices, random, &slot);
    _mi_lock_release(&mi_slots.lock);
    if (!found && !hopeless) {
      mi_slots_lose_hope(slices);
    }
  }
  if (found) {
    mi_slot_fill_in(&slot, run);
    _mi_guarded_forget(run->start);
  }
  return found;
}

bool _mi_slot_open(const mi_run_t* slot, size_t first, size_t end) {
  return first == end || _mi_guard_clear(slot->start + first, end - first, 0);
}

bool _mi_slot_close(const mi_run_t* slot, size_t first, size_t end) {
  return first == end || _mi_guard_set(slot->start + first, end - first, 0);
}

// Giving back

// The guards stay until somebody's blocks come to lie there, unless they cost mappings.
static void mi_slot_release(const mi_slot_t* slot, bool closed) {
  mi_atomic_sub_relaxed(&mi_slots_slices, slot->slices);
  if (slot->slices == 1) {
    (void)mi_atomic_add_relaxed(&mi_slots_scattered, 1);
  }
  _mi_guarded_forget(mi_slot_start(slot));
  if (_mi_guard_are_mappings()) {
    (void)_mi_arena_unguard_run(slot->arena, slot->index, slot->slices);
  }
  if (MI_HAS_ZERO_ON_FREE && !(closed && mi_slot_is_zero(slot->arena))) {
    _mi_arena_release_purged(slot->arena, slot->index, slot->slices);
  } else {
    _mi_arena_release(slot->arena, slot->index, slot->slices, closed && mi_slot_is_zero(slot->arena));
  }
}

void _mi_slot_put(const mi_run_t* run, bool closed, uint64_t random) {
  const mi_slot_t slot = {run->arena, (uint32_t)run->index, (uint32_t)run->slices};
  if (!closed || !mi_slot_may_wait(run->arena) || run->slices > mi_slots_share(MI_SLOTS_HELD_SLICES) / 4) {
    mi_slot_release(&slot, closed);
    return;
  }
  mi_slot_t leaving[MI_SLOTS_LEAVING_MAX];
  size_t leaving_count = 0;
  _mi_lock_acquire(&mi_slots.lock);
  while (mi_slots_are_many(4) && leaving_count < MI_SLOTS_LEAVING_MAX) {
    leaving[leaving_count++] = mi_slots_remove((size_t)(random % mi_slots.held_count));
    random = _mi_rotl64(random, 7);
  }
  const bool fits = mi_slots.held_count < MI_SLOTS_HELD_MAX;
  if (fits) {
    mi_slots.held[mi_slots.held_count++] = slot;
    mi_slots.held_slices += slot.slices;
  }
  _mi_lock_release(&mi_slots.lock);
  for (size_t i = 0; i < leaving_count; i++) {
    mi_slot_release(&leaving[i], true);
  }
  if (!fits) {
    mi_slot_release(&slot, true);
  }
}

static void mi_slot_release_os(mi_slot_os_t* slot) {
  if (slot->start != NULL) {
    _mi_guarded_forget(slot->start);
    _mi_os_release(&slot->os);
  }
}

void _mi_slot_put_os(const mi_os_block_t* os, void* start) {
  mi_slot_os_t leaving = {*os, start};
  bool is_zero;
  if (os->size <= mi_slots_os_bytes / MI_SLOTS_OS_MAX && _mi_prim_protect(os->base, os->size, false) == 0) {
    (void)_mi_prim_purge(os->base, os->size, &is_zero);
    _mi_lock_acquire(&mi_slots.lock);
    mi_slot_os_t* const place = &mi_slots.os[mi_slots.os_next++ % MI_SLOTS_OS_MAX];
    const mi_slot_os_t held = leaving;
    leaving = *place;
    *place = held;
    _mi_lock_release(&mi_slots.lock);
  }
  mi_slot_release_os(&leaving);
}

// Takes any that waits, or was not used yet.
static bool mi_slots_take_any(mi_slot_t* slot, mi_slot_os_t* os) {
  os->start = NULL;
  _mi_lock_acquire(&mi_slots.lock);
  const bool found = mi_slots.held_count + mi_slots.fresh_count > 0;
  if (mi_slots.held_count > 0) {
    *slot = mi_slots_remove(mi_slots.held_count - 1);
  } else if (found) {
    *slot = mi_slots.fresh[--mi_slots.fresh_count];
  }
  for (size_t i = 0; i < MI_SLOTS_OS_MAX && !found && os->start == NULL; i++) {
    *os = mi_slots.os[i];
    mi_slots.os[i].start = NULL;
  }
  _mi_lock_release(&mi_slots.lock);
  return found;
}

void _mi_slots_release(void) {
  mi_slot_t slot;
  mi_slot_os_t os;
  bool found;
  while ((found = mi_slots_take_any(&slot, &os)) || os.start != NULL) {
    if (found) {
      mi_slot_release(&slot, true);
    } else {
      mi_slot_release_os(&os);
    }
  }
}

size_t _mi_slots_held(void) {
  _mi_lock_acquire(&mi_slots.lock);
  const size_t count = mi_slots.held_count;
  _mi_lock_release(&mi_slots.lock);
  return count;
}

void _mi_slots_forget(void) {
  mi_slots.held_count = 0;
  mi_slots.held_slices = 0;
  mi_slots.fresh_count = 0;
  mi_atomic_store_relaxed(&mi_slots_slices, 0);
  mi_atomic_store_relaxed(&mi_slots_scattered, 0);
  mi_atomic_store_relaxed(&mi_slots_waiting, 0);
}

void _mi_slots_fork_prepare(void) { _mi_lock_acquire(&mi_slots.lock); }

void _mi_slots_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_slots.lock);
  } else {
    _mi_lock_release(&mi_slots.lock);
  }
}
