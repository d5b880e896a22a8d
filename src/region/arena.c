// Owns: the table of arenas, their creation, and claims of slices.
// May include: base, sys, region.
// Called by: heap.
// Invariants: `committed`, `dirty` and `purge` bits of a slice change only while its run is claimed; the table only grows.
#include "src/region/arena.h"

#include "hardening/place.h"
#include "src/base/assert.h"
#include "src/base/bits.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-purge.h"
#include "src/region/arena-quarantine.h"
#include "src/prim/prim.h"
#include "src/sys/lock.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/random.h"
#include "src/sys/stats.h"

enum {
  MI_ARENA_MAX = 1024,
  MI_ARENA_BITMAPS = 7,
  // The smallest arena worth a mapping of its own, and the alignment of a large one: a page-map leaf's OS page of
  // entries then belongs to one arena, and huge OS pages fit.
  MI_ARENA_SLICES_MIN = 64,
  MI_ARENA_ALIGN = 32 * MI_MIB,
  MI_GRANULE_META_SIZE = MI_LIVE_META_SIZE + MI_ORIGIN_META_SIZE,
  // Arenas double after this many, so that a process with terabytes needs few of them.
  MI_ARENA_DOUBLE_EVERY = 8,
  MI_ARENA_DOUBLE_MAX = 4,
  // Runs that are to lie apart are looked for behind this share of an arena.
  MI_ARENA_APART_SHARE = 4,
  // A process that may map only so much is not to lose more than this share of it to one reservation.
  MI_ARENA_LIMIT_SHARE = 8,
  // With random places a run lies in so many slices behind the first free one, more for longer runs, up to a share of the
  // arena. Small enough for the metadata of a few pages to lie together.
  MI_ARENA_WINDOW = 64,
  MI_ARENA_WINDOW_RUNS = 16,
  MI_ARENA_WINDOW_SHARE = 8,
  // A smaller arena is there because of a limit.
  MI_ARENA_RANDOM_SLICES_MIN = 2 * MI_GROUP_SLICES,
  // The first search of an arena begins in so many slices: with the window still in its first group.
  MI_ARENA_FIRST_PLACES = MI_GROUP_SLICES / 4,
  // After so many runs that the system would not open the search for one ends: it is not guards that are in the way.
  MI_ARENA_REFUSALS_MAX = 8,
};

_Static_assert((int)MI_ARENA_WINDOW == (int)MI_BITMAP_WORD_BITS, "a window for one slice is a word");

static struct {
  mi_lock_t lock;  // creation
  _Atomic(size_t) count;
  _Atomic(mi_arena_t*) table[MI_ARENA_MAX];
  mi_random_t random;              // under the lock
  _Atomic(uint64_t) place_secret;  // of the places of runs
  _Atomic(uint64_t) place_count;
} mi_arenas;

mi_arena_t* _mi_arena_at(size_t i) {
  return i < mi_atomic_load_acquire(&mi_arenas.count) ? mi_atomic_load_relaxed(&mi_arenas.table[i]) : NULL;
}

mi_arena_t* _mi_arena_of(const void* p) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    // Acquire pairs with the release in mi_arena_revive: who sees it occupied sees its base.
    if (!mi_atomic_load_acquire(&arena->vacant) &&
        (uintptr_t)p - (uintptr_t)arena->base < arena->slice_count * MI_SLICE_SIZE) {
      return arena;
    }
  }
  return NULL;
}

// Bytes of one group of an arena with so many slices: one that has no more than a group is charged for its own only.
static size_t mi_arena_group_size(size_t slice_count) {
  return _mi_align_up(_mi_min(MI_GROUP_SLICES, slice_count) * (MI_PAGE_META_SIZE + MI_GRANULE_META_SIZE),
                      _mi_os_page_size());
}

static uint8_t* mi_arena_group(const mi_arena_t* arena, size_t index) {
  return arena->groups + (index >> MI_GROUP_SHIFT) * mi_arena_group_size(arena->slice_count);
}

void* _mi_arena_page_meta(const mi_arena_t* arena, size_t index) {
  return mi_arena_group(arena, index) + (index % MI_GROUP_SLICES) * MI_PAGE_META_SIZE;
}

void* _mi_arena_live_meta(const mi_arena_t* arena, size_t index) {
  return mi_arena_group(arena, index) + _mi_min(MI_GROUP_SLICES, arena->slice_count) * MI_PAGE_META_SIZE +
      (index % MI_GROUP_SLICES) * MI_GRANULE_META_SIZE;
}

void _mi_arena_purge_live_meta(const mi_arena_t* arena, size_t index, size_t slices) {
  const size_t page_size = _mi_os_page_size();
  const size_t end = index + slices;
  while ((MI_HAS_LIVE_BITS || MI_HAS_FAMILY) && index < end) {
    const size_t group_end = _mi_min(_mi_align_down(index, MI_GROUP_SLICES) + MI_GROUP_SLICES, end);
    uint8_t* const meta = _mi_arena_live_meta(arena, index);
    const uintptr_t first = _mi_align_up_ptr((uintptr_t)meta, page_size);
    const uintptr_t last = _mi_align_down((uintptr_t)meta + (group_end - index) * MI_GRANULE_META_SIZE, page_size);
    const bool is_ready = !arena->commit_lazily || _mi_bitmap_count(arena->group_ready, index >> MI_GROUP_SHIFT, 1) == 1;
    if (first < last && is_ready) {
      bool is_zero;
      if (_mi_prim_purge((void*)first, last - first, &is_zero) == 0) {
        _mi_os_count_purge(last - first);
      }
    }
    index = group_end;
  }
}

// Whether this process may map only so much: then address space counts as memory does, and is given back.
static bool mi_arenas_are_limited(void) { return _mi_os_config.address_space_limit != SIZE_MAX; }

size_t _mi_arena_slices_max(void) {
  if (mi_arenas_are_limited()) {
    return 0;
  }
  const size_t reserve = _mi_option_get_size(mi_option_arena_reserve);
  const size_t size = _mi_min(_mi_option_get_size(mi_option_arena_max_object_size), reserve / 4);
  return _mi_max(size / MI_SLICE_SIZE, MI_LARGE_PAGE_SLICES);
}

// Creation

static bool mi_arena_wants_eager_commit(void) {
  const long option = _mi_option_get(mi_option_arena_eager_commit);
  return option == 1 || (option != 0 && _mi_os_config.has_overcommit);
}

// Lays the metadata out behind the structure itself and makes every slice free.
static void mi_arena_lay_out(mi_arena_t* arena, size_t slice_count, size_t header_size) {
  const size_t words = _mi_bitmap_words(slice_count);
  mi_bitmap_word_t* word = (mi_bitmap_word_t*)(arena + 1);
  mi_bitmap_word_t** const maps[MI_ARENA_BITMAPS] = {&arena->free, &arena->committed, &arena->dirty, &arena->purge,
                                                     &arena->guarded, &arena->sealed, &arena->heads};
  for (size_t i = 0; i < MI_ARENA_BITMAPS; i++, word += words) {
    *maps[i] = word;
  }
  arena->group_ready = word;
  arena->groups = (uint8_t*)arena + header_size;
  arena->slice_count = slice_count;
  _mi_bitmap_set(arena->free, 0, slice_count);
  if (!arena->commit_lazily) {
    _mi_bitmap_set(arena->committed, 0, slice_count);
  }
}

static size_t mi_arena_align(size_t slice_count) {
  return slice_count * MI_SLICE_SIZE >= 2 * (size_t)MI_ARENA_ALIGN ? MI_ARENA_ALIGN : MI_SLICE_SIZE;
}

// Reserves at a random address where the profile and the system allow it. The lock is held.
static void* mi_arena_reserve_somewhere(size_t size, size_t align, size_t guard, bool eager, mi_os_block_t* os) {
  uintptr_t wish = 0;
  // Arenas apart need parts of the page map of their own. Where that is charged, only the first one lies apart. The thread
  // sanitizer knows only the places that the system chooses.
  const bool apart = eager || mi_atomic_load_relaxed(&mi_arenas.count) == 0;
  if (MI_HAS_RANDOM_PLACE && !MI_TSAN_BUILD && apart) {
    wish = _mi_hard_place_address(_mi_random_next(&mi_arenas.random), _mi_os_config.address_bits, size + guard, align);
  }
  return _mi_os_reserve_at(wish, size, align, guard, eager, os);
}

// Reserves an arena of exactly `slice_count` slices with its metadata; NULL leaves nothing behind.
static mi_arena_t* mi_arena_reserve(size_t slice_count, bool eager) {
  const size_t page_size = _mi_os_page_size();
  const size_t size = slice_count * MI_SLICE_SIZE;
  const size_t groups = _mi_div_up(slice_count, MI_GROUP_SLICES);
  const size_t words = MI_ARENA_BITMAPS * _mi_bitmap_words(slice_count) + _mi_bitmap_words(groups);
  const size_t header_size = _mi_align_up(sizeof(mi_arena_t) + words * sizeof(mi_bitmap_word_t), page_size);
  mi_os_block_t os;
  mi_os_block_t meta_os;
  void* const base = mi_arena_reserve_somewhere(size, mi_arena_align(slice_count), page_size, eager, &os);
  if (base == NULL) {
    return NULL;
  }
  mi_arena_t* const arena =
      mi_arena_reserve_somewhere(header_size + groups * mi_arena_group_size(slice_count), page_size, page_size, eager, &meta_os);
  if (arena == NULL || (!eager && !_mi_os_commit(arena, header_size))) {
    if (arena != NULL) {
      _mi_os_release(&meta_os);
    }
    _mi_os_release(&os);
    return NULL;
  }
  arena->base = base;
  arena->os = os;
  arena->meta_os = meta_os;
  arena->commit_lazily = !eager;
  mi_arena_lay_out(arena, slice_count, header_size);
  return arena;
}

static void mi_arena_release_memory(mi_arena_t* arena) {
  mi_os_block_t os = arena->os;
  if (arena->commit_lazily) {
    os.committed = _mi_bitmap_count(arena->committed, 0, arena->slice_count) * MI_SLICE_SIZE;
  }
  _mi_os_release(&os);
}

// In a process with a limit: an arena that nobody uses gives its addresses back. Owning all its slices keeps others out.
void _mi_arena_vacate_if_unused(mi_arena_t* arena) {
  const size_t count = arena->slice_count;
  if (!mi_arenas_are_limited() || _mi_bitmap_count(arena->free, 0, count) != count ||
      !_mi_bitmap_try_claim(arena->free, 0, count)) {
    return;
  }
  mi_atomic_store_release(&arena->vacant, true);
  mi_arena_release_memory(arena);
  _mi_arena_forget_guards(arena, 0, count);
  _mi_bitmap_clear(arena->purge, 0, count);
  _mi_bitmap_clear(arena->dirty, 0, count);
  if (arena->commit_lazily) {
    _mi_bitmap_clear(arena->committed, 0, count);
  }
}

// Gives a vacant arena of a suitable size new memory. The lock is held.
static bool mi_arena_revive(size_t needed, size_t preferred, bool eager) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    const size_t count = arena->slice_count;
    if (!mi_atomic_load_acquire(&arena->vacant) || count < needed || count > preferred ||
        arena->commit_lazily == eager) {
      continue;
    }
    const size_t page_size = _mi_os_page_size();
    void* const base =
        mi_arena_reserve_somewhere(count * MI_SLICE_SIZE, mi_arena_align(count), page_size, eager, &arena->os);
    if (base != NULL) {
      arena->base = base;
      mi_atomic_store_release(&arena->vacant, false);
      _mi_arena_give_back(arena, 0, count);
      return true;
    }
  }
  return false;
}

// How many slices the next arena should have: the option's size, doubled now and then, a share of a limited space.
static size_t mi_arena_preferred_slices(size_t count, size_t needed) {
  size_t size = _mi_min(_mi_option_get_size(mi_option_arena_reserve), (SIZE_MAX / 32) & ~(size_t)(MI_SLICE_SIZE - 1));
  if (sizeof(void*) > 4) {
    size <<= _mi_min(count / MI_ARENA_DOUBLE_EVERY, MI_ARENA_DOUBLE_MAX);
  }
  if (mi_arenas_are_limited()) {
    size = _mi_min(size, _mi_os_config.address_space_limit / MI_ARENA_LIMIT_SHARE);
  }
  return _mi_max(_mi_max(size / MI_SLICE_SIZE, MI_ARENA_SLICES_MIN), needed);
}

// Whether slices are chosen at random: not where a limit makes arenas small or charges for what is committed, since gaps
// and metadata here and there would cost what the program needs.
static bool mi_arena_has_room(const mi_arena_t* arena) {
  return !arena->commit_lazily && arena->slice_count >= MI_ARENA_RANDOM_SLICES_MIN;
}

// Adds an arena with room for `needed` slices, smaller and smaller down to that. The lock is held.
static bool mi_arena_add(size_t needed) {
  const size_t count = mi_atomic_load_relaxed(&mi_arenas.count);
  const bool eager = mi_arena_wants_eager_commit();
  size_t slices = mi_arena_preferred_slices(count, needed);
  if (mi_arena_revive(needed, slices, eager)) {
    return true;
  }
  if (count == MI_ARENA_MAX) {
    return false;
  }
  mi_arena_t* arena = mi_arena_reserve(slices, eager);
  while (arena == NULL && slices > needed) {
    slices = _mi_max(slices / 2, needed);
    arena = mi_arena_reserve(slices, eager);
  }
  if (arena == NULL && eager) {
    // The system may refuse to charge what it would let us reserve.
    arena = mi_arena_reserve(slices, false);
  }
  if (arena == NULL) {
    return false;
  }
  arena->is_first = count == 0;
  if (MI_HAS_RANDOM_PLACE) {
    if (count == 0) {
      mi_atomic_store_relaxed(&mi_arenas.place_secret, _mi_random_next(&mi_arenas.random));
    }
    if (mi_arena_has_room(arena)) {
      mi_atomic_store_relaxed(&arena->hint, _mi_random_below(&mi_arenas.random, MI_ARENA_FIRST_PLACES));
    }
  }
  _mi_arena_advise_huge_pages(arena);
  mi_atomic_store_relaxed(&mi_arenas.table[count], arena);
  // Release publishes the arena; pairs with the acquire in _mi_arena_at.
  mi_atomic_store_release(&mi_arenas.count, count + 1);
  _mi_counter_add(&_mi_stats.arena_count, 1);
  return true;
}

// Claims

static bool mi_arena_commit_group(mi_arena_t* arena, size_t group) {
  if (!arena->commit_lazily || _mi_bitmap_count(arena->group_ready, group, 1) == 1) {
    return true;
  }
  const size_t group_size = mi_arena_group_size(arena->slice_count);
  if (!_mi_os_commit(arena->groups + group * group_size, group_size)) {
    return false;
  }
  if (_mi_bitmap_set(arena->group_ready, group, 1) == 0) {
    // Another thread committed it at the same time, and both were counted.
    _mi_stat_decrease(&_mi_stats.committed, group_size);
  }
  return true;
}

// Makes a claimed run usable. False: the caller still owns it and gives it back.
static bool mi_arena_commit_run(mi_arena_t* arena, size_t index, size_t slices) {
  if (!arena->commit_lazily) {
    return true;
  }
  // Only a page's first slice needs metadata.
  if (!mi_arena_commit_group(arena, index >> MI_GROUP_SHIFT)) {
    return false;
  }
  if (_mi_bitmap_count(arena->committed, index, slices) == slices) {
    return true;
  }
  if (!_mi_os_commit(arena->base + index * MI_SLICE_SIZE, slices * MI_SLICE_SIZE)) {
    return false;
  }
  if (_mi_guard_are_mappings()) {
    _mi_arena_forget_guards(arena, index, slices);
  }
  // Some slices may have been committed before; they were counted then.
  const size_t fresh = _mi_bitmap_set(arena->committed, index, slices);
  _mi_stat_decrease(&_mi_stats.committed, (slices - fresh) * MI_SLICE_SIZE);
  return true;
}

// What a new owner does to a run: it is in use, so not to be purged, and will be written. True: it holds zeroes.
static bool mi_arena_take(mi_arena_t* arena, size_t index, size_t slices) {
  _mi_bitmap_clear(arena->purge, index, slices);
  return _mi_bitmap_set(arena->dirty, index, slices) == slices;
}

void _mi_arena_give_back(mi_arena_t* arena, size_t index, size_t slices) {
  _mi_bitmap_set(arena->free, index, slices);
  size_t hint = mi_atomic_load_relaxed(&arena->hint);
  while (index < hint && !mi_atomic_cas_weak_relaxed(&arena->hint, &hint, index)) {
  }
}

// How many slices behind the first free one a run may begin.
static size_t mi_arena_window(const mi_arena_t* arena, size_t slices) {
  const size_t wanted = _mi_max(MI_ARENA_WINDOW, slices * MI_ARENA_WINDOW_RUNS);
  return _mi_min(wanted, arena->slice_count / MI_ARENA_WINDOW_SHARE);
}

// A random number below `bound`.
static size_t mi_arena_choose(size_t bound) {
  // Relaxed: each count is drawn once, and nothing else depends on it.
  const uint64_t count = mi_atomic_add_relaxed(&mi_arenas.place_count, 1);
  return _mi_hard_place_below(_mi_hard_place_word(mi_atomic_load_relaxed(&mi_arenas.place_secret), count), bound);
}

// Claims a run of memory that was used before, at a random place of the window behind `first`: as long as there is such
// memory, random places do not make the process hold more of it.
static bool mi_arena_claim_used(mi_arena_t* arena, size_t first, size_t slices, size_t align, size_t* index) {
  const size_t from = _mi_align_up(first, align);
  const size_t places = mi_arena_window(arena, slices) / align;
  if (from >= arena->slice_count || places == 0) {
    return false;
  }
  const size_t offset = mi_arena_choose(places);
  if (slices == 1 && (_mi_bitmap_window(arena->free, arena->slice_count, from) & _mi_bitmap_window(arena->dirty, arena->slice_count, from)) == 0) {
    return false;
  }
  for (size_t i = 0; i < places; i++) {
    const size_t at = from + (i + offset < places ? i + offset : i + offset - places) * align;
    if (at + slices <= arena->slice_count && _mi_bitmap_is_set(arena->dirty, at) && _mi_bitmap_is_set(arena->free, at) &&
        _mi_bitmap_try_claim(arena->free, at, slices)) {
      *index = at;
      return true;
    }
  }
  return false;
}

// Finds and claims a free run; other threads may take what was found, then the search goes on behind it.
// `apart`: from the arena's second quarter on, where there is room.
static bool mi_arena_find(mi_arena_t* arena, size_t slices, size_t align, size_t phase, bool apart, size_t* index) {
  size_t hint = mi_atomic_load_relaxed(&arena->hint);
  const size_t first = _mi_bitmap_next_set(arena->free, arena->slice_count, hint);
  if (first > hint) {
    mi_atomic_cas_weak_relaxed(&arena->hint, &hint, first);
  }
  size_t wanted = apart ? _mi_max(first, arena->slice_count / MI_ARENA_APART_SHARE) : first;
  if (MI_HAS_RANDOM_PLACE && mi_arena_has_room(arena)) {
    if (!apart && phase == 0 && mi_arena_claim_used(arena, first, slices, align, index)) {
      return true;
    }
    wanted += mi_arena_choose(mi_arena_window(arena, slices));
  }
  size_t from = wanted;
  bool again = false;
  for (;;) {
    while (_mi_bitmap_find(arena->free, arena->slice_count, from, slices, align, phase, index)) {
      if (_mi_bitmap_try_claim(arena->free, *index, slices)) {
        return true;
      }
      _mi_counter_add(&_mi_stats.arena_rollback_count, 1);
      from = *index + 1;
    }
    if (again || wanted == 0) {
      return false;
    }
    // The hint may be late, and what was to lie apart may have to lie anywhere.
    again = true;
    from = 0;
  }
}

// Makes a claimed run one that can be written all over. False: the caller still owns it and gives it back.
static bool mi_arena_open_run(mi_arena_t* arena, size_t index, size_t slices) {
  return mi_arena_commit_run(arena, index, slices) && _mi_arena_unguard_run(arena, index, slices);
}

// In a process without a mapping left a run between guards in use cannot be opened: that would split what is inaccessible.
// Others need nothing of the kind. Claims and opens a run without guards.
static bool mi_arena_claim_unguarded(mi_arena_t* arena, size_t slices, size_t align, size_t phase, size_t* index) {
  const size_t count = arena->slice_count;
  unsigned refused = 0;
  size_t from = 0;
  while (refused < MI_ARENA_REFUSALS_MAX && _mi_bitmap_find(arena->free, count, from, slices, align, phase, index)) {
    const size_t guard = _mi_min(_mi_bitmap_next_set(arena->guarded, count, *index), _mi_bitmap_next_set(arena->sealed, count, *index));
    if (guard < *index + slices) {
      from = guard + 1;
      continue;
    }
    from = *index + 1;
    if (_mi_bitmap_try_claim(arena->free, *index, slices)) {
      if (mi_arena_open_run(arena, *index, slices)) {
        return true;
      }
      _mi_arena_give_back(arena, *index, slices);
      refused++;
    }
  }
  return false;
}

static bool mi_arena_try_claim(mi_arena_t* arena, size_t slices, size_t lead, size_t align, bool apart, mi_run_t* run) {
  const size_t align_slices = align >> MI_SLICE_SHIFT;
  const size_t phase = (((uintptr_t)arena->base >> MI_SLICE_SHIFT) + lead) & (align_slices - 1);
  size_t index;
  if (align > MI_SLICE_SIZE) {
    if (!mi_arena_find(arena, slices, align_slices, phase, apart, &index)) {
      return false;
    }
  } else {
    // A run that is a power of two stays within one word where it can: one compare-and-swap, and less fragmentation.
    const size_t neat = _mi_is_power_of_two(slices) && slices <= MI_BITMAP_WORD_BITS ? slices : 1;
    if (!mi_arena_find(arena, slices, neat, 0, apart, &index) &&
        (neat == 1 || !mi_arena_find(arena, slices, 1, 0, apart, &index))) {
      return false;
    }
  }
  if (!mi_arena_open_run(arena, index, slices)) {
    _mi_arena_give_back(arena, index, slices);
    if (!mi_arena_claim_unguarded(arena, slices, align_slices, phase, &index)) {
      return false;
    }
  }
  // The base may have changed since the phase was computed, when the arena was given new memory.
  if (!_mi_is_aligned(arena->base + (index + lead) * MI_SLICE_SIZE, align)) {
    _mi_arena_give_back(arena, index, slices);
    return false;
  }
  run->arena = arena;
  run->index = index;
  run->slices = slices;
  run->start = arena->base + index * MI_SLICE_SIZE;
  run->is_zero = mi_arena_take(arena, index, slices);
  return true;
}

static bool mi_arenas_try_claim(size_t slices, size_t lead, size_t align, bool apart, mi_run_t* run) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    if (mi_arena_try_claim(arena, slices, lead, align, apart, run)) {
      return true;
    }
  }
  return false;
}

bool _mi_arena_claim_led(size_t slices, size_t lead, size_t align, bool apart, mi_run_t* run) {
  mi_assert_internal(slices > lead && align >= MI_SLICE_SIZE && _mi_is_power_of_two(align));
  if (mi_arenas_try_claim(slices, lead, align, apart, run)) {
    return true;
  }
  _mi_lock_acquire(&mi_arenas.lock);
  // Another thread may have added an arena while this one waited, and others may use up what this one adds. An arena may
  // start a slice short of the alignment.
  bool claimed = mi_arenas_try_claim(slices, lead, align, apart, run);
  while (!claimed && mi_arena_add(slices + (align >> MI_SLICE_SHIFT) - 1)) {
    claimed = mi_arenas_try_claim(slices, lead, align, apart, run);
  }
  _mi_lock_release(&mi_arenas.lock);
  return claimed;
}

bool _mi_arena_claim(size_t slices, size_t align, bool apart, mi_run_t* run) {
  return _mi_arena_claim_led(slices, 0, align, apart, run);
}

bool _mi_arena_claim_behind(mi_arena_t* arena, size_t end_index, size_t extra, bool* is_zero) {
  if (extra > arena->slice_count - end_index || !_mi_bitmap_try_claim(arena->free, end_index, extra)) {
    return false;
  }
  if (!mi_arena_commit_run(arena, end_index, extra)) {
    _mi_arena_give_back(arena, end_index, extra);
    return false;
  }
  *is_zero = mi_arena_take(arena, end_index, extra);
  return true;
}

void _mi_arena_release(mi_arena_t* arena, size_t index, size_t slices, bool known_zero) {
  if (known_zero) {
    _mi_bitmap_clear(arena->dirty, index, slices);
    _mi_arena_give_back(arena, index, slices);
    _mi_arena_vacate_if_unused(arena);
    return;
  }
  // Pending before free, so that whoever claims the run takes the mark away; the deadline after free, so that a purger
  // which has just taken the old deadline down cannot have passed the run by.
  _mi_bitmap_set(arena->purge, index, slices);
  _mi_arena_give_back(arena, index, slices);
  _mi_arena_schedule_purge(arena);
  _mi_arena_vacate_if_unused(arena);
}

void _mi_arenas_seal(void) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    // What is committed bit by bit cannot be sealed as a whole.
    if (!arena->commit_lazily) {
      _mi_os_seal(arena->meta_os.base, arena->meta_os.size);
    }
  }
}

void _mi_arenas_destroy(void) {
  const size_t count = mi_atomic_load_acquire(&mi_arenas.count);
  mi_atomic_store_release(&mi_arenas.count, 0);
  _mi_arena_held_forget();
  for (size_t i = 0; i < count; i++) {
    mi_arena_t* const arena = mi_atomic_load_relaxed(&mi_arenas.table[i]);
    mi_os_block_t meta_os = arena->meta_os;
    _mi_arena_forget_guards(arena, 0, arena->slice_count);
    if (!mi_atomic_load_acquire(&arena->vacant)) {
      mi_arena_release_memory(arena);
    }
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
