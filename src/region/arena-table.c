// Owns: the table of arenas and the lock of their creation.
// May include: base, hardening, sys, region.
// Called by: through arena.h and arena-table.h.
// Invariants: the count is stored after the entry, with release, so that who sees a number finds its arena.
#include "src/region/arena-table.h"

#include "hardening/place.h"
#include "src/region/arena-create.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-purge.h"
#include "src/region/arena-quarantine.h"
#include "src/sys/lock.h"
#include "src/sys/stats.h"

enum { MI_ARENA_MAX = 1024 };

static struct {
  mi_lock_t lock;
  _Atomic(size_t) count;
  _Atomic(bool) have_nodes;
  _Atomic(mi_arena_t*) table[MI_ARENA_MAX];
  mi_random_t random;              // under the lock
  _Atomic(uint64_t) place_secret;  // of the places of runs
  _Atomic(uint64_t) place_count;
} mi_arenas;

void _mi_arenas_lock(void) { _mi_lock_acquire(&mi_arenas.lock); }

void _mi_arenas_unlock(void) { _mi_lock_release(&mi_arenas.lock); }

size_t _mi_arenas_count(void) { return mi_atomic_load_acquire(&mi_arenas.count); }

bool _mi_arenas_have_nodes(void) { return mi_atomic_load_relaxed(&mi_arenas.have_nodes); }

mi_random_t* _mi_arenas_random(void) { return &mi_arenas.random; }

bool _mi_arenas_have_room(void) { return mi_atomic_load_relaxed(&mi_arenas.count) < MI_ARENA_MAX; }

mi_early mi_arena_t* _mi_arena_at(size_t i) {
  return i < mi_atomic_load_acquire(&mi_arenas.count) ? mi_atomic_load_relaxed(&mi_arenas.table[i]) : NULL;
}

// Wraps: an address before the arena is far behind it.
mi_wraps mi_arena_t* _mi_arena_of(const void* p) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    // Acquire pairs with the release in mi_arena_revive: who sees it occupied sees its base.
    if (!mi_atomic_load_acquire(&arena->vacant) &&
        (uintptr_t)p - (uintptr_t)mi_atomic_peek(&arena->base) < arena->slice_count * MI_SLICE_SIZE) {
      return arena;
    }
  }
  return NULL;
}

mi_arena_t* _mi_arena_of_id(mi_arena_id_t id) { return id == NULL ? NULL : _mi_arena_at((uintptr_t)id - 1); }

mi_arena_id_t _mi_arena_id(const mi_arena_t* arena) { return (mi_arena_id_t)(arena->number + 1); }

// Never the memory of blocks: programs change its protection, for guards of their own.
static void mi_arena_seal(const mi_arena_t* arena) {
  if (arena->meta_os.size == 0) {
    // It is permanent, and sealed as such.
  } else if (!arena->commit_lazily) {
    _mi_os_seal(arena->meta_os.base, arena->meta_os.size);
  } else {
    // What is committed bit by bit changes its protection.
    _mi_os_seal_guards(&arena->meta_os, arena, _mi_arena_meta_size(arena->slice_count));
  }
  // Where addresses are limited, an arena that nobody uses gives them back.
  if (!arena->is_lent && !_mi_arenas_are_limited()) {
    _mi_os_seal_guards(&arena->os, arena->base, arena->slice_count * MI_SLICE_SIZE);
  }
}

void _mi_arenas_publish(mi_arena_t* arena) {
  const size_t count = mi_atomic_load_relaxed(&mi_arenas.count);
  arena->number = count;
  if (MI_HAS_RANDOM_PLACE && count == 0) {
    mi_atomic_store_relaxed(&mi_arenas.place_secret, _mi_random_next(&mi_arenas.random));
  }
  if (arena->numa_node >= 0) {
    mi_atomic_store_relaxed(&mi_arenas.have_nodes, true);
  }
  mi_atomic_store_relaxed(&mi_arenas.table[count], arena);
  // Release publishes the arena; pairs with the acquire in _mi_arena_at.
  mi_atomic_store_release(&mi_arenas.count, count + 1);
  _mi_counter_add(&_mi_stats.arena_count, 1);
  if (_mi_sealed_mseal_state() == MI_MSEAL_ALWAYS) {
    mi_arena_seal(arena);
  }
}

void _mi_arenas_seal(void) {
  mi_arena_t* arena;
  if (MI_HAS_RANDOM_PLACE) {
    // Only what is there can be sealed.
    _mi_arenas_lock();
    (void)(_mi_arenas_count() > 0 || _mi_arena_add(1, -1));
    _mi_arenas_unlock();
  }
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    mi_arena_seal(arena);
  }
}

size_t _mi_arena_choose(size_t bound) {
  // Relaxed: each count is drawn once, and nothing else depends on it.
  const uint64_t count = mi_atomic_add_relaxed(&mi_arenas.place_count, 1);
  return _mi_hard_place_below(_mi_hard_place_word(mi_atomic_load_relaxed(&mi_arenas.place_secret), count), bound);
}

void _mi_arenas_destroy(void) {
  const size_t count = mi_atomic_load_acquire(&mi_arenas.count);
  mi_atomic_store_release(&mi_arenas.count, 0);
  _mi_arena_held_forget();
  for (size_t i = 0; i < count; i++) {
    mi_arena_t* const arena = mi_atomic_load_relaxed(&mi_arenas.table[i]);
    mi_os_block_t meta_os = arena->meta_os;
    if (!mi_atomic_load_acquire(&arena->vacant)) {
      _mi_arena_release_memory(arena);
    }
    _mi_arena_forget_guards(arena, 0, arena->slice_count);
    _mi_os_release(&meta_os);
  }
}

void _mi_arenas_fork_prepare(void) {
  _mi_lock_acquire(&mi_arenas.lock);
  _mi_arena_purge_fork_prepare();
  _mi_arena_held_fork_prepare();
}

void _mi_arenas_fork_release(bool in_child) {
  _mi_arena_held_fork_release(in_child);
  _mi_arena_purge_fork_release(in_child);
  if (in_child) {
    if (MI_HAS_RANDOM_PLACE) {
      mi_atomic_store_relaxed(&mi_arenas.place_secret, _mi_random_next(&mi_arenas.random));
    }
    _mi_lock_reset(&mi_arenas.lock);
  } else {
    _mi_lock_release(&mi_arenas.lock);
  }
}
