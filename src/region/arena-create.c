// Owns: reservations for arenas, their layout, and the giving back of those that nobody uses.
// May include: base, hardening, sys, region.
// Called by: through arena-create.h.
// Invariants: what fails leaves nothing behind; memory that the program lent is never released or replaced.
#include "src/region/arena-create.h"

#include "hardening/place.h"
#include "src/base/bits.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-purge.h"
#include "src/region/arena-table.h"
#include "src/sys/huge.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "src/track/track.h"

enum {
  MI_ARENA_BITMAPS = 8,
  // The smallest arena worth a mapping of its own, and the alignment of a large one: a page-map leaf's OS page of
  // entries then belongs to one arena, and huge OS pages fit.
  MI_ARENA_SLICES_MIN = 64,
  MI_ARENA_ALIGN = 32 * MI_MIB,
  // Arenas double after this many, so that a process with terabytes needs few of them.
  MI_ARENA_DOUBLE_EVERY = 8,
  MI_ARENA_DOUBLE_MAX = 4,
  // A process that may map only so much is not to lose more than this share of it to one reservation.
  MI_ARENA_LIMIT_SHARE = 8,
  // A smaller arena is there because of a limit.
  MI_ARENA_RANDOM_SLICES_MIN = 2 * MI_GROUP_SLICES,
  // The first search of an arena begins in so many slices: with the window still in its first group.
  MI_ARENA_FIRST_PLACES = MI_GROUP_SLICES / 4,
};

size_t _mi_arena_group_size(size_t slice_count) {
  return _mi_align_up(_mi_min(MI_GROUP_SLICES, slice_count) * (MI_PAGE_META_SIZE + MI_GRANULE_META_SIZE),
                      _mi_os_page_size());
}

static size_t mi_arena_header_size(size_t slice_count) {
  const size_t groups = _mi_div_up(slice_count, MI_GROUP_SLICES);
  const size_t words = MI_ARENA_BITMAPS * _mi_bitmap_words(slice_count) + _mi_bitmap_words(groups);
  return _mi_align_up(sizeof(mi_arena_t) + words * sizeof(mi_bitmap_word_t), _mi_os_page_size());
}

size_t _mi_arena_meta_size(size_t slice_count) {
  return mi_arena_header_size(slice_count) + _mi_div_up(slice_count, MI_GROUP_SLICES) * _mi_arena_group_size(slice_count);
}

bool _mi_arenas_are_limited(void) { return _mi_os_config.address_space_limit != SIZE_MAX; }

bool _mi_arena_has_room(const mi_arena_t* arena) {
  return !arena->commit_lazily && arena->slice_count >= MI_ARENA_RANDOM_SLICES_MIN;
}

// Reservation

static bool mi_arena_wants_eager_commit(void) {
  const long option = _mi_option_get(mi_option_arena_eager_commit);
  return option == 1 || (option != 0 && !MI_TRACKS && _mi_os_config.has_overcommit);
}

static size_t mi_arena_align(size_t slice_count) {
  return slice_count * MI_SLICE_SIZE >= 2 * (size_t)MI_ARENA_ALIGN ? MI_ARENA_ALIGN : MI_SLICE_SIZE;
}

// Reserves at a random address where the profile and the system allow it. The lock is held.
static void* mi_arena_reserve_somewhere(size_t size, size_t align, size_t guard, bool eager, bool touched, mi_os_block_t* os) {
  uintptr_t wish = 0;
  // Arenas apart need parts of the page map of their own. Where that is charged, only the first one lies apart. The thread
  // sanitizer knows only the places that the system chooses.
  const bool apart = (eager && !_mi_arenas_are_limited()) || _mi_arenas_count() == 0;
  if (MI_HAS_RANDOM_PLACE && !MI_TSAN_BUILD && apart) {
    wish = _mi_hard_place_address(_mi_random_next(_mi_arenas_random()), _mi_os_config.address_bits, size + guard, align);
  }
  return touched ? _mi_os_reserve_touched(wish, size, align, guard, os) : _mi_os_reserve_at(wish, size, align, guard, eager, os);
}

bool _mi_arena_plan_reserve(mi_arena_plan_t* plan, size_t slice_count, bool commit, bool large) {
  const size_t size = slice_count * MI_SLICE_SIZE;
  plan->slice_count = slice_count;
  plan->is_zero = true;
  if (large) {
    // As many whole pages as there are: what is more than was asked for is of use as well.
    const size_t large_size = _mi_align_up(size, MI_LARGE_OS_PAGE_SIZE);
    plan->base = _mi_os_reserve_large(large_size, plan->numa_node, &plan->os);
    plan->slice_count = large_size / MI_SLICE_SIZE;
    plan->is_pinned = true;
    plan->counts_touched = false;
    plan->os_page_size = MI_LARGE_OS_PAGE_SIZE;
    commit = true;
  } else {
    // What the program wants committed counts as it says.
    plan->counts_touched = commit && _mi_os_config.has_overcommit && !plan->is_programs;
    plan->base = mi_arena_reserve_somewhere(size, mi_arena_align(slice_count), _mi_os_page_size(), commit, plan->counts_touched, &plan->os);
    plan->is_pinned = false;
    plan->os_page_size = 0;
  }
  plan->commit_lazily = !commit;
  plan->is_committed = commit;
  if (plan->base != NULL && plan->numa_node >= 0 && !large) {
    (void)_mi_prim_numa_prefer(plan->base, size, plan->numa_node);
  }
  return plan->base != NULL;
}

void _mi_arena_plan_release(mi_arena_plan_t* plan) { _mi_os_release(&plan->os); }

// Layout

// Lays the metadata out behind the structure itself and makes every slice free.
static void mi_arena_lay_out(mi_arena_t* arena, const mi_arena_plan_t* plan, size_t header_size) {
  const size_t words = _mi_bitmap_words(plan->slice_count);
  mi_bitmap_word_t* word = (mi_bitmap_word_t*)(arena + 1);
  mi_bitmap_word_t** const maps[MI_ARENA_BITMAPS] = {&arena->free, &arena->committed, &arena->dirty, &arena->purge,
                                                     &arena->wiped, &arena->guarded, &arena->sealed, &arena->heads};
  for (size_t i = 0; i < MI_ARENA_BITMAPS; i++, word += words) {
    *maps[i] = word;
  }
  arena->group_ready = word;
  arena->groups = (uint8_t*)arena + header_size;
  arena->slice_count = plan->slice_count;
  _mi_bitmap_set(arena->free, 0, plan->slice_count);
  if (plan->is_committed) {
    _mi_bitmap_set(arena->committed, 0, plan->slice_count);
  }
  if (!plan->is_zero) {
    _mi_bitmap_set(arena->dirty, 0, plan->slice_count);
  }
}

mi_arena_t* _mi_arena_create(const mi_arena_plan_t* plan) {
  const size_t page_size = _mi_os_page_size();
  const size_t header_size = mi_arena_header_size(plan->slice_count);
  const size_t size = _mi_arena_meta_size(plan->slice_count);
  mi_os_block_t meta_os = {NULL, 0, 0};
  // That of the first arena lies with the other metadata of the start, where it is not to lie at random.
  const bool is_permanent = !MI_HAS_RANDOM_PLACE && plan->counts_touched && _mi_arenas_count() == 0;
  mi_arena_t* const arena = is_permanent
      ? _mi_os_reserve_permanent(size, true)
      : mi_arena_reserve_somewhere(size, page_size, page_size, !plan->commit_lazily, plan->counts_touched, &meta_os);
  if (arena == NULL) {
    return NULL;
  }
  if (plan->commit_lazily && !_mi_os_commit(arena, header_size)) {
    _mi_os_release(&meta_os);
    return NULL;
  }
  arena->base = plan->base;
  arena->os = plan->os;
  arena->meta_os = meta_os;
  arena->commit_lazily = plan->commit_lazily;
  arena->counts_touched = plan->counts_touched;
  arena->is_programs = plan->is_programs;
  arena->is_exclusive = plan->is_exclusive;
  arena->is_lent = plan->is_lent;
  arena->is_pinned = plan->is_pinned;
  arena->os_page_size = plan->os_page_size;
  arena->numa_node = plan->numa_node;
  arena->commit_fun = plan->commit_fun;
  arena->commit_arg = plan->commit_arg;
  mi_arena_lay_out(arena, plan, header_size);
  if (MI_HAS_RANDOM_PLACE && _mi_arena_has_room(arena)) {
    mi_atomic_store_relaxed(&arena->hint, _mi_random_below(_mi_arenas_random(), MI_ARENA_FIRST_PLACES));
  }
  if (plan->is_lent) {
    _mi_stat_increase(&_mi_stats.reserved, plan->slice_count * MI_SLICE_SIZE);
    _mi_stat_increase(&_mi_stats.committed, plan->is_committed ? plan->slice_count * MI_SLICE_SIZE : 0);
  }
  return arena;
}

void _mi_arena_release_memory(mi_arena_t* arena) {
  const size_t count = arena->slice_count;
  if (arena->is_lent) {
    // It is the program's again, without our guards.
    _mi_track_open(arena->base, count * MI_SLICE_SIZE);
    for (size_t i = 0; i < count; i++) {
      if (_mi_bitmap_is_set(arena->guarded, i) || _mi_bitmap_is_set(arena->sealed, i)) {
        (void)_mi_arena_unguard(arena, i * MI_SLICE_SIZE, (i + 1) * MI_SLICE_SIZE);
      }
    }
    _mi_stat_decrease(&_mi_stats.reserved, count * MI_SLICE_SIZE);
    _mi_stat_decrease(&_mi_stats.committed, _mi_bitmap_count(arena->committed, 0, count) * MI_SLICE_SIZE);
    return;
  }
  mi_os_block_t os = arena->os;
  _mi_arena_count_clean(arena, _mi_bitmap_count(arena->dirty, 0, count));
  if (arena->commit_lazily) {
    os.committed = _mi_bitmap_count(arena->committed, 0, count) * MI_SLICE_SIZE;
  }
  _mi_os_release(&os);
}

// Arenas of our own

// In a process with a limit: an arena that nobody uses gives its addresses back. Owning all its slices keeps others out.
static void mi_arena_vacate(mi_arena_t* arena) {
  const size_t count = arena->slice_count;
  mi_atomic_store_release(&arena->vacant, true);
  _mi_arena_release_memory(arena);
  _mi_arena_forget_guards(arena, 0, count);
  _mi_bitmap_clear(arena->purge, 0, count);
  _mi_bitmap_clear(arena->dirty, 0, count);
  _mi_bitmap_clear(arena->wiped, 0, count);
  if (arena->commit_lazily) {
    _mi_bitmap_clear(arena->committed, 0, count);
  }
  // Release: who gives it new memory does so after all of the above.
  mi_atomic_store_release(&arena->may_revive, true);
}

void _mi_arena_vacate_if_unused(mi_arena_t* arena) {
  const size_t count = arena->slice_count;
  if (!_mi_arenas_are_limited() || arena->is_programs) {
    return;
  }
  // A claim that was refused looks again: whoever was in its way may have seen what it held as used, and left it at that.
  while (_mi_bitmap_count(arena->free, 0, count) == count) {
    if (_mi_bitmap_try_claim(arena->free, 0, count)) {
      mi_arena_vacate(arena);
      return;
    }
  }
}

// Gives a vacant arena of a suitable size new memory. The lock is held.
static bool mi_arena_revive(size_t needed, size_t preferred, bool eager) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    const size_t count = arena->slice_count;
    if (!mi_atomic_load_acquire(&arena->may_revive) || count < needed || count > preferred || arena->commit_lazily == eager) {
      continue;
    }
    const size_t page_size = _mi_os_page_size();
    void* const base =
        mi_arena_reserve_somewhere(count * MI_SLICE_SIZE, mi_arena_align(count), page_size, eager, arena->counts_touched, &arena->os);
    if (base != NULL) {
      mi_atomic_poke(&arena->base, base);
      mi_atomic_store_relaxed(&arena->may_revive, false);
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
  if (_mi_arenas_are_limited()) {
    size = _mi_min(size, _mi_os_config.address_space_limit / MI_ARENA_LIMIT_SHARE);
  }
  if (_mi_option_is_enabled(mi_option_disallow_arena_alloc)) {
    size = 0;
  }
  return _mi_max(_mi_max(size / MI_SLICE_SIZE, MI_ARENA_SLICES_MIN), needed);
}

static mi_arena_t* mi_arena_new_own(size_t slice_count, bool eager, bool large, int numa_node) {
  mi_arena_plan_t plan = {.numa_node = numa_node};
  if (!_mi_arena_plan_reserve(&plan, slice_count, eager, large)) {
    return NULL;
  }
  mi_arena_t* const arena = _mi_arena_create(&plan);
  if (arena == NULL) {
    _mi_arena_plan_release(&plan);
  }
  return arena;
}

// In large OS pages, where they are asked for and the administrator has set so many aside.
static mi_arena_t* mi_arena_new_large(size_t slice_count, bool eager, int numa_node) {
  static _Atomic(bool) has_warned;
  if (!eager || !_mi_option_is_enabled(mi_option_allow_large_os_pages)) {
    return NULL;
  }
  mi_arena_t* const arena = mi_arena_new_own(slice_count, true, true, numa_node);
  if (arena == NULL && !mi_atomic_exchange_acq_rel(&has_warned, true)) {
    _mi_log_warning("there are no large OS pages for %zu KiB: small ones are used (see vm.nr_hugepages)\n",
                    slice_count * (MI_SLICE_SIZE / MI_KIB));
  }
  return arena;
}

bool _mi_arena_add(size_t needed, int numa_node) {
  const size_t count = _mi_arenas_count();
  const bool eager = mi_arena_wants_eager_commit();
  size_t slices = mi_arena_preferred_slices(count, needed);
  if (mi_arena_revive(needed, slices, eager)) {
    return true;
  }
  if (!_mi_arenas_have_room()) {
    return false;
  }
  mi_arena_t* arena = mi_arena_new_large(slices, eager, numa_node);
  if (arena == NULL) {
    arena = mi_arena_new_own(slices, eager, false, numa_node);
  }
  while (arena == NULL && slices > needed) {
    slices = _mi_max(slices / 2, needed);
    arena = mi_arena_new_own(slices, eager, false, numa_node);
  }
  if (arena == NULL && eager) {
    // The system may refuse to charge what it would let us reserve.
    arena = mi_arena_new_own(slices, false, false, numa_node);
  }
  if (arena == NULL) {
    return false;
  }
  arena->is_first = count == 0;
  _mi_arena_advise_huge_pages(arena);
  _mi_arenas_publish(arena);
  return true;
}
