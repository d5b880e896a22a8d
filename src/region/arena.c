// Owns: claims of slices, and where the metadata of a slice stands.
// May include: base, sys, region.
// Called by: heap.
// Invariants: `committed`, `dirty` and `purge` bits of a slice change only while its run is claimed.
#include "src/region/arena.h"

#include <errno.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/bits.h"
#include "src/region/arena-create.h"
#include "src/region/arena-guard.h"
#include "src/region/arena-purge.h"
#include "src/region/arena-quarantine.h"
#include "src/region/arena-table.h"
#include "src/sys/huge.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"

enum {
  // Runs that are to lie apart are looked for behind this share of an arena.
  MI_ARENA_APART_SHARE = 4,
  // With random places a run lies in so many slices behind the first free one, more for longer runs, up to a share of the
  // arena. Small enough for the metadata of a few pages to lie together.
  MI_ARENA_WINDOW = 64,
  MI_ARENA_WINDOW_RUNS = 16,
  MI_ARENA_USED_RUNS = 8,
  MI_ARENA_WINDOW_SHARE = 8,
  // After so many runs that the system would not open the search for one ends: it is not guards that are in the way.
  MI_ARENA_REFUSALS_MAX = 8,
};

_Static_assert((int)MI_ARENA_WINDOW == (int)MI_BITMAP_WORD_BITS, "a window for one slice is a word");

static uint8_t* mi_arena_group(const mi_arena_t* arena, size_t index) {
  return arena->groups + (index >> MI_GROUP_SHIFT) * _mi_arena_group_size(arena->slice_count);
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

size_t _mi_arena_slices_max(void) {
  if (_mi_option_is_enabled(mi_option_disallow_os_alloc)) {
    return SIZE_MAX / MI_SLICE_SIZE;
  }
  if (_mi_arenas_are_limited() || _mi_option_is_enabled(mi_option_disallow_arena_alloc)) {
    return 0;
  }
  const size_t reserve = _mi_option_get_size(mi_option_arena_reserve);
  const size_t size = _mi_min(_mi_option_get_size(mi_option_arena_max_object_size), reserve / 4);
  return _mi_max(size / MI_SLICE_SIZE, MI_LARGE_PAGE_SLICES);
}

// Claims

static bool mi_arena_commit_group(mi_arena_t* arena, size_t group) {
  if (!arena->commit_lazily || _mi_bitmap_count(arena->group_ready, group, 1) == 1) {
    return true;
  }
  const size_t group_size = _mi_arena_group_size(arena->slice_count);
  if (!_mi_os_commit(arena->groups + group * group_size, group_size)) {
    return false;
  }
  if (_mi_bitmap_set(arena->group_ready, group, 1) == 0) {
    // Another thread committed it at the same time, and both were counted.
    _mi_stat_decrease(&_mi_stats.committed, group_size);
  }
  return true;
}

bool _mi_arena_call_program(mi_arena_t* arena, bool commit, size_t index, size_t slices, bool* is_zero) {
  const int saved_errno = errno;
  *is_zero = false;
  const bool done =
      arena->commit_fun(commit, arena->base + index * MI_SLICE_SIZE, slices * MI_SLICE_SIZE, is_zero, arena->commit_arg);
  errno = saved_errno;
  return done;
}

// Commits by the program's function, which is asked for what is not committed and nothing else.
static bool mi_arena_commit_by_program(mi_arena_t* arena, size_t index, size_t slices) {
  const size_t end = index + slices;
  size_t next;
  for (size_t at = index; (at = _mi_bitmap_next_clear(arena->committed, end, at)) < end; at = next) {
    bool is_zero;
    next = _mi_bitmap_next_set(arena->committed, end, at);
    _mi_counter_add(&_mi_stats.commit_calls, 1);
    if (!_mi_arena_call_program(arena, true, at, next - at, &is_zero)) {
      return false;
    }
    (void)_mi_bitmap_set(arena->committed, at, next - at);
    (void)(is_zero ? _mi_bitmap_clear(arena->dirty, at, next - at) : _mi_bitmap_set(arena->dirty, at, next - at));
    _mi_stat_increase(&_mi_stats.committed, (next - at) * MI_SLICE_SIZE);
  }
  return true;
}

// Makes slices of a claimed run usable. False: the caller still owns it and gives it back.
static bool mi_arena_commit_slices(mi_arena_t* arena, size_t index, size_t slices) {
  if (_mi_bitmap_count(arena->committed, index, slices) == slices) {
    return true;
  }
  if (arena->commit_fun != NULL) {
    return mi_arena_commit_by_program(arena, index, slices);
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

// Makes a claimed run usable. What the program lent may have to be wiped as a whole, and is not committed piecemeal.
static bool mi_arena_commit_run(mi_arena_t* arena, size_t index, size_t slices, bool piecemeal) {
  if (!arena->commit_lazily) {
    return true;
  }
  // Only a page's first slice needs metadata.
  return mi_arena_commit_group(arena, index >> MI_GROUP_SHIFT) &&
      ((piecemeal && !arena->is_lent) || mi_arena_commit_slices(arena, index, slices));
}

bool _mi_arena_commit(mi_arena_t* arena, size_t index, size_t slices) {
  return !arena->commit_lazily || mi_arena_commit_slices(arena, index, slices);
}

// What a new owner does to a run: it is in use, so not to be purged, and will be written. True: it holds zeroes. Which of
// its first slices do is in *zero_slices.
static bool mi_arena_take(mi_arena_t* arena, size_t index, size_t slices, uint64_t* zero_slices) {
  _mi_bitmap_clear(arena->purge, index, slices);
  const size_t wiped = MI_HAS_ZERO_ON_FREE ? _mi_arena_take_wiped(arena, index, slices) : 0;
  *zero_slices = ~_mi_bitmap_window(arena->dirty, arena->slice_count, index);
  const size_t fresh = _mi_bitmap_set(arena->dirty, index, slices);
  _mi_arena_count_dirty(arena, fresh);
  return fresh + wiped == slices;
}

void _mi_arena_give_back(mi_arena_t* arena, size_t index, size_t slices) {
  _mi_bitmap_set(arena->free, index, slices);
  size_t hint = mi_atomic_load_relaxed(&arena->hint);
  while (index < hint && !mi_atomic_cas_weak_relaxed(&arena->hint, &hint, index)) {
  }
}

// Gives back what could not be made usable. The program's function may have committed a part of it: nobody has written there, and
// what it refused cannot be written to.
static void mi_arena_disclaim(mi_arena_t* arena, size_t index, size_t slices) {
  if (arena->commit_fun != NULL && !arena->is_pinned) {
    _mi_arena_release_pending(arena, index, slices);
  } else {
    _mi_arena_give_back(arena, index, slices);
  }
}

// How many slices behind the first free one a run may begin.
static size_t mi_arena_window(const mi_arena_t* arena, size_t slices) {
  const size_t wanted = _mi_max(MI_ARENA_WINDOW, slices * MI_ARENA_WINDOW_RUNS);
  return _mi_min(wanted, arena->slice_count / MI_ARENA_WINDOW_SHARE);
}

// Claims a run of memory that was used before, at a random place of the window behind `first`: as long as there is such
// memory, random places do not make the process hold more of it.
static bool mi_arena_claim_used(mi_arena_t* arena, size_t first, size_t slices, size_t align, size_t* index) {
  const size_t from = _mi_align_up(first, align);
  const size_t window = _mi_min(mi_arena_window(arena, slices), _mi_max(MI_ARENA_WINDOW, slices * MI_ARENA_USED_RUNS));
  const size_t places = window / align;
  if (from >= arena->slice_count || places == 0) {
    return false;
  }
  const size_t offset = _mi_arena_choose(places);
  if (slices == 1 && (_mi_bitmap_window(arena->free, arena->slice_count, from) & _mi_bitmap_window(arena->dirty, arena->slice_count, from)) == 0) {
    return false;
  }
  for (size_t i = 0; i < places; i++) {
    const size_t at = from + (i + offset < places ? i + offset : i + offset - places) * align;
    // That both ends were used tells enough of the rest.
    if (at + slices <= arena->slice_count && _mi_bitmap_is_set(arena->dirty, at) && _mi_bitmap_is_set(arena->dirty, at + slices - 1) && _mi_bitmap_is_set(arena->free, at) &&
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
  if (MI_HAS_RANDOM_PLACE && _mi_arena_has_room(arena)) {
    if (phase == 0 && mi_arena_claim_used(arena, wanted, slices, align, index)) {
      return true;
    }
    wanted += _mi_arena_choose(mi_arena_window(arena, slices));
  }
  size_t from = wanted;
  bool again = false;
  for (;;) {
    while (_mi_bitmap_find(arena->free, arena->slice_count, from, slices, align, phase, index)) {
      if (_mi_bitmap_try_claim(arena->free, *index, slices)) {
        return true;
      }
      _mi_counter_add(&_mi_stats.arena_rollback_count, 1);
      // Whoever gave back the rest meanwhile took for used what this claim held.
      _mi_arena_vacate_if_unused(arena);
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
static bool mi_arena_open_run(mi_arena_t* arena, size_t index, size_t slices, bool piecemeal) {
  return mi_arena_commit_run(arena, index, slices, piecemeal) && _mi_arena_unguard_run(arena, index, slices);
}

// In a process without a mapping left a run between guards in use cannot be opened: that would split what is inaccessible.
// Others need nothing of the kind. Claims and opens a run without guards.
static bool mi_arena_claim_unguarded(mi_arena_t* arena, size_t slices, size_t align, size_t phase, bool piecemeal, size_t* index) {
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
      if (mi_arena_open_run(arena, *index, slices, piecemeal)) {
        return true;
      }
      _mi_arena_give_back(arena, *index, slices);
      refused++;
    }
  }
  return false;
}

// What a claim is to be.
typedef struct mi_claim_s {
  size_t slices;
  size_t lead;
  size_t align;
  bool apart;
  bool piecemeal;
  int node;
} mi_claim_t;

static bool mi_arena_try_claim(mi_arena_t* arena, const mi_claim_t* claim, mi_run_t* run) {
  const size_t slices = claim->slices;
  const size_t lead = claim->lead;
  const size_t align = claim->align;
  const bool apart = claim->apart;
  const size_t align_slices = align >> MI_SLICE_SHIFT;
  // Relaxed: it may be given another one at this moment; see below.
  const size_t phase = (((uintptr_t)mi_atomic_peek(&arena->base) >> MI_SLICE_SHIFT) + lead) & (align_slices - 1);
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
  if (!mi_arena_open_run(arena, index, slices, claim->piecemeal)) {
    mi_arena_disclaim(arena, index, slices);
    if (arena->commit_fun != NULL || !mi_arena_claim_unguarded(arena, slices, align_slices, phase, claim->piecemeal, &index)) {
      return false;
    }
  }
  // The base may have changed since the phase was computed, when the arena was given new memory.
  if (!_mi_is_aligned(arena->base + (index + lead) * MI_SLICE_SIZE, align)) {
    _mi_arena_give_back(arena, index, slices);
    _mi_arena_vacate_if_unused(arena);
    return false;
  }
  run->arena = arena;
  run->index = index;
  run->slices = slices;
  run->start = arena->base + index * MI_SLICE_SIZE;
  run->is_zero = mi_arena_take(arena, index, slices, &run->zero_slices);
  return true;
}

// The node whose arenas are to serve first; -1 where no arena is of one.
static int mi_arena_wanted_node(const mi_arena_source_t* source) {
  if (source->numa_node >= 0) {
    return source->numa_node;
  }
  return _mi_arenas_have_nodes() || _mi_option_is_enabled(mi_option_arena_is_numa_local) ? _mi_os_numa_node() : -1;
}

// Which arenas to look at.
typedef enum mi_arena_which_e {
  MI_ARENA_NEAR,  // of the wanted node, or of none
  MI_ARENA_FAR,   // the others
  MI_ARENA_ALL,
} mi_arena_which_t;

static bool mi_arena_serves(const mi_arena_t* arena, int node, mi_arena_which_t which) {
  if (arena->is_exclusive || (arena->is_programs && _mi_option_is_enabled(mi_option_disallow_arena_alloc))) {
    return false;
  }
  return which == MI_ARENA_ALL || (arena->numa_node < 0 || arena->numa_node == node) == (which == MI_ARENA_NEAR);
}

// `locked`: no function of the program's may be called.
static bool mi_arenas_try_claim(const mi_claim_t* claim, mi_arena_which_t which, bool locked, mi_run_t* run) {
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    if (mi_arena_serves(arena, claim->node, which) && !(locked && arena->commit_fun != NULL) &&
        mi_arena_try_claim(arena, claim, run)) {
      return true;
    }
  }
  return false;
}

// Makes an arena for the claim. Another thread may have added one while this one waited, and others may use up what this one
// adds.
static bool mi_arenas_claim_new(const mi_claim_t* claim, mi_arena_which_t which, mi_run_t* run) {
  const int node = _mi_option_is_enabled(mi_option_arena_is_numa_local) ? claim->node : -1;
  // An arena may start a slice short of the alignment.
  const size_t needed = claim->slices + (claim->align >> MI_SLICE_SHIFT) - 1;
  _mi_arenas_lock();
  bool claimed = mi_arenas_try_claim(claim, which, true, run);
  while (!claimed && _mi_arena_add(needed, node)) {
    claimed = mi_arenas_try_claim(claim, which, true, run);
  }
  _mi_arenas_unlock();
  return claimed;
}

bool _mi_arena_claim_from(const mi_arena_source_t* source, size_t slices, size_t lead, size_t align, bool apart, mi_run_t* run) {
  mi_assert_internal(slices > lead && align >= MI_SLICE_SIZE && _mi_is_power_of_two(align));
  if (source->only != NULL) {
    const mi_claim_t claim = {slices, lead, align, apart, source->piecemeal, -1};
    return mi_arena_try_claim(source->only, &claim, run);
  }
  const mi_claim_t claim = {slices, lead, align, apart, source->piecemeal, mi_arena_wanted_node(source)};
  const mi_arena_which_t first = claim.node < 0 ? MI_ARENA_ALL : MI_ARENA_NEAR;
  const bool may_add = !_mi_option_is_enabled(mi_option_disallow_os_alloc);
  if (mi_arenas_try_claim(&claim, first, false, run)) {
    return true;
  }
  // With an arena to each node a far one is the last resort, else a new one is.
  const bool new_first = may_add && _mi_option_is_enabled(mi_option_arena_is_numa_local);
  if (new_first && mi_arenas_claim_new(&claim, first, run)) {
    return true;
  }
  if (first != MI_ARENA_ALL && mi_arenas_try_claim(&claim, MI_ARENA_FAR, false, run)) {
    return true;
  }
  return may_add && !new_first && mi_arenas_claim_new(&claim, MI_ARENA_ALL, run);
}

bool _mi_arena_claim_behind(mi_arena_t* arena, size_t end_index, size_t extra, bool* is_zero) {
  if (extra > arena->slice_count - end_index || !_mi_bitmap_try_claim(arena->free, end_index, extra)) {
    return false;
  }
  if (!mi_arena_commit_run(arena, end_index, extra, false)) {
    mi_arena_disclaim(arena, end_index, extra);
    return false;
  }
  // What was wiped is looked through.
  if (MI_HAS_ZERO_ON_FREE && !_mi_arena_unguard_run(arena, end_index, extra)) {
    mi_arena_disclaim(arena, end_index, extra);
    return false;
  }
  uint64_t zero_slices;
  *is_zero = mi_arena_take(arena, end_index, extra, &zero_slices);
  return true;
}

void _mi_arena_release(mi_arena_t* arena, size_t index, size_t slices, bool known_zero) {
  if (known_zero || arena->is_pinned) {
    if (known_zero) {
      _mi_arena_count_clean(arena, _mi_bitmap_clear(arena->dirty, index, slices));
    }
    _mi_arena_give_back(arena, index, slices);
    _mi_arena_vacate_if_unused(arena);
    return;
  }
  const size_t at_once = _mi_option_get_size(mi_option_arena_purge_immediate_size);
  if (mi_unlikely(at_once > 0 && slices * MI_SLICE_SIZE >= at_once)) {
    _mi_arena_release_purged(arena, index, slices);
    return;
  }
  _mi_arena_release_pending(arena, index, slices);
}

void _mi_arena_release_pending(mi_arena_t* arena, size_t index, size_t slices) {
  // Pending before free, so that whoever claims the run takes the mark away; the deadline after free, so that a purger
  // which has just taken the old deadline down cannot have passed the run by.
  _mi_bitmap_set(arena->purge, index, slices);
  _mi_arena_give_back(arena, index, slices);
  _mi_arena_schedule_purge(arena);
  _mi_arena_vacate_if_unused(arena);
}
