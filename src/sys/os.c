// Owns: reservations, their guards and alignment, and the counts of what the system was asked for.
// May include: base, prim, sys/lock.h, sys/options.h, sys/stats.h.
// Called by: through os.h.
// Invariants: a failed call leaves nothing behind; what cannot be trimmed off a reservation stays part of it.
#include "src/sys/os.h"

#include "src/base/assert.h"
#include "src/base/bits.h"
#include "src/sys/lock.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "src/track/track.h"

static mi_lock_t mi_os_init_lock;

// Where addresses, and memory that is not touched, cost nothing: one mapping between guards for the first permanent reservations,
// so that most processes have no other, and all of it is sealed at the start, before there is anything in most of it.
enum {
  MI_OS_POOL_SIZE = 64 * 1024 * 1024,
  // Alignment that is not had by chance, and takes two calls more to get by what is cut off.
  MI_OS_ALIGN_FAR = 1024 * 1024,
};

static struct {
  mi_os_block_t os;
  _Atomic(size_t) used;      // with the first guard; 0: there is no pool
  _Atomic(uintptr_t) below;  // what is reserved with a large alignment goes in front of this address, if there is room
} mi_os_pool;

// The configuration is complete but for the guards. The first guard is where they are tried.
static mi_cold void mi_os_pool_make(void) {
  void* base = NULL;
  const size_t page_size = _mi_os_config.page_size;
  const bool is_free = MI_INTPTR_SIZE == 8 && _mi_os_config.has_overcommit && _mi_os_config.address_space_limit == SIZE_MAX;
  if (is_free && _mi_prim_reserve(MI_OS_POOL_SIZE, false, &base) == 0) {
    mi_os_pool.os = (mi_os_block_t){base, MI_OS_POOL_SIZE, 0};
    mi_atomic_store_relaxed(&mi_os_pool.below, (uintptr_t)base);
    _mi_counter_add(&_mi_stats.mmap_calls, 1);
    _mi_stat_increase(&_mi_stats.reserved, MI_OS_POOL_SIZE);
    if (_mi_os_config.thp_always) {
      // Little of it is touched, here and there.
      (void)_mi_prim_huge_page_advice(base, MI_OS_POOL_SIZE, false);
    }
    if (_mi_prim_commit((uint8_t*)base + page_size, MI_OS_POOL_SIZE - 2 * page_size) == 0) {
      mi_atomic_store_relaxed(&mi_os_pool.used, page_size);
    }
  }
  _mi_prim_try_guards(&_mi_os_config, base);
}

// The next part of the pool; NULL: there is no room. It is charged when it is touched, so it does not count as committed.
static mi_cold void* mi_os_pool_take(size_t size) {
  size_t used = mi_atomic_load_relaxed(&mi_os_pool.used);
  do {
    // Without a pool nothing of it is used.
    if (used == 0 || size > mi_os_pool.os.size - _mi_os_page_size() - used) {
      return NULL;
    }
  } while (!mi_atomic_cas_weak_acq_rel(&mi_os_pool.used, &used, used + size));
  return (uint8_t*)mi_os_pool.os.base + used;
}

mi_cold void _mi_os_init_once(void) {
  _mi_lock_acquire(&mi_os_init_lock);
  if (!mi_atomic_load_relaxed(&_mi_fixed.os_ready)) {
    _mi_prim_init(&_mi_os_config);
    mi_os_pool_make();
    _mi_stats_elapsed_ms();
    // Release: pairs with the acquire in _mi_os_init.
    mi_atomic_store_release(&_mi_fixed.os_ready, true);
  }
  _mi_lock_release(&mi_os_init_lock);
}

// Reservations

// Cuts off what lies outside of `keep` bytes at `start`, where the system allows it.
static void mi_os_trim(mi_os_block_t* os, uint8_t* start, size_t keep) {
  if (!_mi_os_config.has_partial_release) {
    return;
  }
  uint8_t* const base = os->base;
  const size_t head = (size_t)(start - base);
  const size_t tail = os->size - head - keep;
  // Releasing a part may need one mapping more than there was; where there is none left, the part is kept.
  if (head > 0 && _mi_prim_release(base, head) == 0) {
    os->base = start;
    os->size -= head;
  }
  if (tail > 0 && _mi_prim_release(start + keep, tail) == 0) {
    os->size -= tail;
  }
}

// Reserves so that `size` bytes behind `guard` bytes are aligned, and trims the rest.
static uint8_t* mi_os_reserve_trimmed(size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os) {
  const size_t granularity = _mi_os_config.page_size;
  const size_t slack = align > granularity ? align - granularity : 0;
  const size_t needed = size + 2 * guard;
  size_t total;
  void* base;
  if (!_mi_add_overflow(needed, slack, &total) && total <= (size_t)PTRDIFF_MAX &&
      _mi_prim_reserve(total, commit, &base) == 0) {
    os->base = base;
    os->size = total;
    uint8_t* const start = (uint8_t*)_mi_align_up_ptr((uintptr_t)base + guard, align);
    mi_os_trim(os, start - guard, needed);
    return start;
  }
  // The room to align in may be what is too much for a limited address space; the place may be right by chance.
  if (slack == 0 || _mi_prim_reserve(needed, commit, &base) != 0) {
    return NULL;
  }
  if (!_mi_is_aligned((uint8_t*)base + guard, align)) {
    _mi_prim_release(base, needed);
    return NULL;
  }
  os->base = base;
  os->size = needed;
  return (uint8_t*)base + guard;
}

// The guards are what is left inaccessible of a reservation that was inaccessible as a whole.
static uint8_t* mi_os_reserve_guarded(size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os) {
  uint8_t* const p = mi_os_reserve_trimmed(size, align, guard, false, os);
  if (p != NULL && commit && _mi_prim_commit(p, size) != 0) {
    _mi_prim_release(os->base, os->size);
    return NULL;
  }
  return p;
}

// Reserves where the caller wants it, or not at all.
static uint8_t* mi_os_reserve_wished(uintptr_t wish, size_t size, size_t guard, bool commit, mi_os_block_t* os) {
  const size_t needed = size + 2 * guard;
  void* const place = (void*)(wish - guard);
  void* base;
  if (_mi_prim_reserve_at(place, needed, guard == 0 && commit, &base) != 0) {
    return NULL;
  }
  if (base != place || (guard > 0 && commit && _mi_prim_commit((uint8_t*)base + guard, size) != 0)) {
    _mi_prim_release(base, needed);
    return NULL;
  }
  os->base = base;
  os->size = needed;
  return (uint8_t*)base + guard;
}

// Addresses

bool _mi_os_is_in_reach(const void* p, size_t size) {
  return (((uint64_t)(uintptr_t)p + (size - 1)) >> _mi_os_config.address_bits) == 0;
}

// A place below the end of the addresses that are used, where the system puts nothing there by itself (option max_vabits). A
// place is taken from where the last one ended.
static uint8_t* mi_os_reserve_in_reach(size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os) {
  static _Atomic(uint64_t) next;
  enum { MI_REACH_TRIES = 64 };
  const uint64_t end = UINT64_C(1) << _mi_os_config.address_bits;
  const uint64_t first = end / MI_REACH_TRIES;
  for (unsigned tries = 0; tries < MI_REACH_TRIES; tries++) {
    uint64_t wish = _mi_max((size_t)mi_atomic_load_relaxed(&next), (size_t)first);
    wish = _mi_align_up((size_t)wish + guard, align);
    // What is taken is passed by in steps that reach the end.
    const bool fits = wish < end && size + guard <= end - wish;
    uint8_t* const p = fits ? mi_os_reserve_wished((uintptr_t)wish, size, guard, commit, os) : NULL;
    mi_atomic_store_relaxed(&next, p != NULL ? wish + size + guard : fits ? wish + first
                                                                          : 0);
    if (p != NULL) {
      return p;
    }
  }
  return NULL;
}

void* _mi_os_reserve_aligned(size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os) {
  return _mi_os_reserve_at(0, size, align, guard, commit, os);
}

// Where there is likely to be room for a reservation that the system would not align: in front of the last such, as the system
// places what has no wish below what is there. 0: nowhere.
static uintptr_t mi_os_place_below(size_t size, size_t align, size_t guard) {
  const uintptr_t below = mi_atomic_load_relaxed(&mi_os_pool.below);
  if (align < MI_OS_ALIGN_FAR || below <= size + 2 * guard + align) {
    return 0;
  }
  return _mi_align_down(below - guard - size, align);
}

static void* mi_os_reserve_any(uintptr_t wish, size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os) {
  const size_t page_size = _mi_os_page_size();
  mi_assert_internal(_mi_is_power_of_two(align));
  mi_assert_internal(size % page_size == 0 && guard % page_size == 0);
  size_t needed;
  if (size == 0 || _mi_add_overflow(size, 2 * guard, &needed) || needed > (size_t)PTRDIFF_MAX) {
    return NULL;
  }
  mi_assert_internal(wish % align == 0);
  const uintptr_t below = wish == 0 ? mi_os_place_below(size, align, guard) : 0;
  uint8_t* p = wish + below == 0 ? NULL : mi_os_reserve_wished(wish + below, size, guard, commit, os);
  if (below != 0) {
    // Relaxed: it is a guess, for the system to judge. One that was wrong is the last.
    mi_atomic_store_relaxed(&mi_os_pool.below, p != NULL ? below - guard : 0);
  }
  if (p == NULL) {
    p = guard > 0 ? mi_os_reserve_guarded(size, align, guard, commit, os)
                  : mi_os_reserve_trimmed(size, align, 0, commit, os);
  }
  if (p == NULL && guard > 0 && commit) {
    // Guards split a mapping in three. A process that has as many mappings as it may gets its memory all the same.
    p = mi_os_reserve_trimmed(size, align, 0, true, os);
    if (p != NULL) {
      _mi_counter_add(&_mi_stats.guards_skipped, 1);
    }
  }
  if (p != NULL && mi_unlikely(!_mi_os_is_in_reach(p, size))) {
    (void)_mi_prim_release(os->base, os->size);
    p = mi_os_reserve_in_reach(size, align, guard, commit, os);
  }
  if (p == NULL) {
    return NULL;
  }
  os->committed = 0;
  _mi_counter_add(&_mi_stats.mmap_calls, 1);
  _mi_stat_increase(&_mi_stats.reserved, os->size);
  return p;
}

void* _mi_os_reserve_at(uintptr_t wish, size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os) {
  void* const p = mi_os_reserve_any(wish, size, align, guard, commit, os);
  if (p != NULL && commit) {
    os->committed = size;
    _mi_stat_increase(&_mi_stats.committed, size);
  }
  return p;
}

void* _mi_os_reserve_touched(uintptr_t wish, size_t size, size_t align, size_t guard, mi_os_block_t* os) {
  return mi_os_reserve_any(wish, size, align, guard, true, os);
}

void _mi_os_release(mi_os_block_t* os) {
  if (os->size == 0) {
    return;
  }
  // Whoever gets the addresses next is not told of us.
  _mi_track_open(os->base, os->size);
  if (_mi_prim_release(os->base, os->size) != 0) {
    // Only the lack of a mapping to split with leads here: the address range is lost, its memory is not.
    bool is_zero;
    _mi_prim_purge(os->base, os->size, &is_zero);
  }
  _mi_stat_decrease(&_mi_stats.reserved, os->size);
  _mi_stat_decrease(&_mi_stats.committed, os->committed);
  *os = (mi_os_block_t){NULL, 0, 0};
}

bool _mi_os_trim(mi_os_block_t* os, size_t new_size) {
  const size_t extra = os->size - new_size;
  _mi_track_open((uint8_t*)os->base + new_size, extra);
  if (!_mi_os_config.has_partial_release || _mi_prim_release((uint8_t*)os->base + new_size, extra) != 0) {
    return false;
  }
  const size_t committed = os->committed - _mi_min(os->committed, new_size);
  _mi_stat_decrease(&_mi_stats.reserved, extra);
  _mi_stat_decrease(&_mi_stats.committed, committed);
  os->size = new_size;
  os->committed -= committed;
  return true;
}

void* _mi_os_grow(mi_os_block_t* os, size_t new_size, bool may_move) {
  mi_assert_internal(new_size >= os->size && new_size % _mi_os_page_size() == 0);
  void* p;
  if (new_size > (size_t)PTRDIFF_MAX || _mi_prim_grow(os->base, os->size, new_size, may_move, &p) != 0) {
    return NULL;
  }
  _mi_stat_increase(&_mi_stats.reserved, new_size - os->size);
  _mi_stat_increase(&_mi_stats.committed, new_size - os->size);
  os->committed += new_size - os->size;
  os->base = p;
  os->size = new_size;
  return p;
}

// Parts of reservations

mi_early bool _mi_os_commit(void* p, size_t size) {
  _mi_counter_add(&_mi_stats.commit_calls, 1);
  if (_mi_prim_commit(p, size) != 0) {
    return false;
  }
  _mi_stat_increase(&_mi_stats.committed, size);
  return true;
}

bool _mi_os_decommit(void* p, size_t size) {
  if (_mi_prim_decommit(p, size) != 0) {
    return false;
  }
  _mi_os_count_purge(size);
  _mi_stat_decrease(&_mi_stats.committed, size);
  return true;
}

void _mi_os_count_purge(size_t size) {
  _mi_counter_add(&_mi_stats.purge_calls, 1);
  _mi_counter_add(&_mi_stats.purged, size);
}

bool _mi_os_purge(void* p, size_t size, bool* is_zero) {
  *is_zero = false;
  if (!_mi_option_is_enabled(mi_option_purge_decommits)) {
    if (_mi_prim_reset(p, size) != 0) {
      return false;
    }
    _mi_counter_add(&_mi_stats.reset_calls, 1);
    _mi_counter_add(&_mi_stats.reset, size);
    return true;
  }
  if (_mi_prim_purge(p, size, is_zero) != 0) {
    *is_zero = false;
    return false;
  }
  _mi_os_count_purge(size);
  return true;
}

mi_early bool _mi_os_protect(void* p, size_t size, bool readable) { return _mi_prim_protect(p, size, readable) == 0; }

mi_early bool _mi_os_unprotect(void* p, size_t size) { return _mi_prim_unprotect(p, size) == 0; }

// Permanent reservations. Those beyond the table stay mapped when the library is unloaded.
enum { MI_OS_PERMANENT_MAX = 256 };

typedef struct mi_os_permanent_s {
  mi_os_block_t os;
  void* start;
  size_t size;
  bool is_open;  // all of it is readable and writable
} mi_os_permanent_t;

static mi_far mi_os_permanent_t mi_os_permanent[MI_OS_PERMANENT_MAX];
static _Atomic(size_t) mi_os_permanent_count;

static mi_cold void mi_os_seal_whole(const mi_os_permanent_t* permanent) {
  // What is committed bit by bit cannot be sealed as a whole.
  if (permanent->is_open) {
    _mi_os_seal(permanent->os.base, permanent->os.size);
  } else {
    _mi_os_seal_guards(&permanent->os, permanent->start, permanent->size);
  }
}

static mi_cold void mi_os_permanent_reserve(mi_os_permanent_t* permanent) {
  const size_t page_size = _mi_os_page_size();
  // Where memory is charged when it is touched, little of this will be: it does not count.
  permanent->start = permanent->is_open && _mi_os_config.has_overcommit
      ? _mi_os_reserve_touched(0, permanent->size, page_size, page_size, &permanent->os)
      : _mi_os_reserve_aligned(permanent->size, page_size, page_size, permanent->is_open, &permanent->os);
  if (permanent->start != NULL && _mi_os_config.thp_always) {
    // Little of it is touched, here and there.
    (void)_mi_prim_huge_page_advice(permanent->os.base, permanent->os.size, false);
  }
}

mi_cold void* _mi_os_reserve_permanent(size_t size, bool commit) {
  void* const p = commit ? mi_os_pool_take(size) : NULL;
  if (p != NULL) {
    return p;
  }
  mi_os_permanent_t permanent = {.size = size, .is_open = commit};
  mi_os_permanent_reserve(&permanent);
  if (permanent.start != NULL) {
    if (_mi_sealed_mseal_state() == MI_MSEAL_ALWAYS) {
      mi_os_seal_whole(&permanent);
    }
    const size_t i = mi_atomic_add_relaxed(&mi_os_permanent_count, 1);
    if (i < MI_OS_PERMANENT_MAX) {
      mi_os_permanent[i] = permanent;
    }
  }
  return permanent.start;
}

mi_cold void _mi_os_seal(void* p, size_t size) {
  // A refusal costs a defence and nothing else.
  (void)_mi_prim_seal(p, size);
}

void _mi_os_seal_guards(const mi_os_block_t* os, const void* start, size_t size) {
  const size_t head = (size_t)((const uint8_t*)start - (const uint8_t*)os->base);
  const size_t tail = os->size - head - size;
  if (head > 0) {
    _mi_os_seal(os->base, head);
  }
  if (tail > 0) {
    _mi_os_seal((uint8_t*)os->base + head + size, tail);
  }
}

mi_cold void _mi_os_seal_permanent(void) {
  if (mi_os_pool.os.size > 0) {
    _mi_os_seal(mi_os_pool.os.base, mi_os_pool.os.size);
  }
  const size_t count = _mi_min(mi_atomic_load_relaxed(&mi_os_permanent_count), MI_OS_PERMANENT_MAX);
  for (size_t i = 0; i < count; i++) {
    mi_os_seal_whole(&mi_os_permanent[i]);
  }
}

void _mi_os_release_permanent(void) {
  const size_t count = _mi_min(mi_atomic_exchange_acq_rel(&mi_os_permanent_count, 0), MI_OS_PERMANENT_MAX);
  for (size_t i = 0; i < count; i++) {
    _mi_os_release(&mi_os_permanent[i].os);
  }
  mi_atomic_store_relaxed(&mi_os_pool.used, 0);
  _mi_os_release(&mi_os_pool.os);
}
