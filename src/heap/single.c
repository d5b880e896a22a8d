// Owns: singles with memory of their own, their list, and growth in place or by moving OS pages.
// May include: base, sys, region, heap.
// Called by: heap, alloc.
// Invariants: mi_singles is touched under its lock; it holds every page without an arena.
#include "src/heap/single.h"

#include "src/heap/block.h"
#include "src/heap/guarded.h"
#include "src/heap/heap-stats.h"
#include "src/prim/prim.h"
#include "src/region/arena-guard.h"
#include "src/region/meta.h"
#include "src/sys/options.h"

enum { MI_SINGLES_REMEMBERED = 64 };

static struct {
  mi_lock_t lock;  // leaf lock
  mi_page_t* first;
  // Where singles were that are unmapped now, so that a second free is called what it is.
  const void* gone[MI_SINGLES_REMEMBERED];
  size_t gone_next;
} mi_singles;

uint64_t _mi_single_random(void) {
  if (!MI_HAS_RANDOM_LARGE && !MI_HAS_LARGE_QUARANTINE) {
    return 0;
  }
  if (_mi_tls.own != NULL) {
    return _mi_random_next(&_mi_tls.own->random);
  }
  mi_random_t random = {0};
  return _mi_random_next(&random);
}

mi_large_layout_t _mi_single_layout(size_t size, size_t align) {
  const size_t os_page = _mi_os_page_size();
  if (align > MI_SLICE_SIZE) {
    return _mi_hard_large_layout_at(size, MI_HAS_GUARD_PAGES ? MI_SLICE_SIZE : 0, os_page);
  }
  const size_t places = _mi_hard_large_places(align, os_page);
  return _mi_hard_large_layout(size, align, places > 1 ? (size_t)(_mi_single_random() % places) : 0, os_page);
}

void _mi_single_init(mi_page_t* page, const mi_large_layout_t* layout) {
  page->bin = MI_BIN_SINGLE;
  page->single_start = page->start + layout->offset;
  page->block_size = layout->end;
  page->class_spread = MI_SLICE_SIZE;
  page->request = layout->end - layout->offset;
  page->reserved = 1;
  page->capacity = 1;
  page->used = 1;
  // Every offset but 0 is off the granule.
  page->granule_shift = 63;
  mi_atomic_store_relaxed(&page->last_tid, _mi_tls.own_tid);
  mi_atomic_store_relaxed(&page->remote, 0);
  mi_atomic_store_relaxed(&page->owner, MI_TID_NONE);
  _mi_track_open(page->start, page->slice_count * MI_SLICE_SIZE);
}

// Guards

// A buffer that grows step by step gets a guard and loses it with each step. Beyond so many steps of all buffers in a while
// the last OS page is left unused, and accessible: what lies behind has a guard before it.
enum { MI_GROWTH_GUARDS_MAX = 64,
       MI_GROWTH_WHILE_MS = 16 };

static bool mi_single_growth_is_guarded(void) {
  static _Atomic(int64_t) began;
  static _Atomic(uint32_t) count;
  const int64_t now = _mi_prim_clock_ms();
  // Relaxed: a guard more or less is all that a race of two threads makes of it.
  if (now - mi_atomic_load_relaxed(&began) >= MI_GROWTH_WHILE_MS) {
    mi_atomic_store_relaxed(&began, now);
    mi_atomic_store_relaxed(&count, 0);
  }
  return mi_atomic_add_relaxed(&count, 1) < MI_GROWTH_GUARDS_MAX;
}

static void mi_single_guard_os(mi_page_t* page, size_t from, size_t to, uint8_t which) {
  if (from < to && _mi_guard_set(page->start + from, to - from, 1)) {
    page->os_guards |= which;
  }
}

static void mi_single_guard_tail(mi_page_t* page) {
  const size_t size = page->slice_count * MI_SLICE_SIZE;
  if (!MI_HAS_GUARD_PAGES) {
    return;
  }
  if (page->arena == NULL) {
    mi_single_guard_os(page, page->block_size, size, MI_OS_GUARD_TAIL);
  } else {
    // One OS page, not all up to the end: what is guarded loses its memory, and who has it next pays for it with faults.
    const size_t at = page->slice_index * MI_SLICE_SIZE + page->block_size;
    (void)_mi_arena_guard(page->arena, at, at + _mi_os_page_size());
  }
}

static void mi_single_guard_head(mi_page_t* page) {
  if (!MI_HAS_GUARD_PAGES) {
    return;
  }
  const size_t os_page = _mi_os_page_size();
  const size_t head = _mi_align_down((size_t)(page->single_start - page->start), os_page);
  if (page->arena == NULL) {
    mi_single_guard_os(page, 0, head, MI_OS_GUARD_HEAD);
  } else if (head > 0) {
    const size_t at = page->slice_index * MI_SLICE_SIZE;
    (void)_mi_arena_guard(page->arena, at + head - os_page, at + head);
  }
}

void _mi_single_guard(mi_page_t* page, bool grows) {
  mi_single_guard_head(page);
  if (!grows || mi_single_growth_is_guarded()) {
    mi_single_guard_tail(page);
  }
}

// Takes the guard behind the block away as far as `end`, an offset in the run.
static bool mi_single_unguard(mi_page_t* page, size_t end) {
  const size_t from = page->block_size;
  if (!MI_HAS_GUARD_PAGES || from >= end) {
    return true;
  }
  if (page->arena == NULL) {
    const bool guarded = (page->os_guards & MI_OS_GUARD_TAIL) != 0;
    return !guarded || _mi_guard_clear(page->start + from, end - from, 0);
  }
  const size_t at = page->slice_index * MI_SLICE_SIZE;
  return _mi_arena_unguard(page->arena, at + from, at + end);
}

static void mi_single_forget_os_guards(mi_page_t* page, uint8_t which) {
  const unsigned gone = page->os_guards & which;
  _mi_guard_forget((gone & MI_OS_GUARD_HEAD) + ((gone & MI_OS_GUARD_TAIL) != 0));
  page->os_guards &= (uint8_t)~which;
}

// Memory of their own

static void mi_single_link(mi_page_t* page) {
  _mi_lock_acquire(&mi_singles.lock);
  page->prev = NULL;
  page->next = mi_singles.first;
  if (page->next != NULL) {
    page->next->prev = page;
  }
  mi_singles.first = page;
  for (size_t i = 0; i < MI_SINGLES_REMEMBERED; i++) {
    if (mi_singles.gone[i] == page->start) {
      mi_singles.gone[i] = NULL;
    }
  }
  _mi_lock_release(&mi_singles.lock);
}

static void mi_single_unlink(mi_page_t* page) {
  _mi_lock_acquire(&mi_singles.lock);
  if (page->prev != NULL) {
    page->prev->next = page->next;
  } else {
    mi_singles.first = page->next;
  }
  if (page->next != NULL) {
    page->next->prev = page->prev;
  }
  mi_singles.gone[mi_singles.gone_next++ % MI_SINGLES_REMEMBERED] = page->single_start;
  _mi_lock_release(&mi_singles.lock);
}

// `align`: of the run. Beyond a slice the guard before the block is one of the reservation. In the heap of the
// page `beside`, without the guard behind the block as what is moved there would take it away; or in that of the theap.
static mi_page_t* mi_single_new_laid_out(const mi_theap_t* theap, mi_page_t* beside, const mi_large_layout_t* layout, size_t align) {
  const mi_arena_t* const only = beside != NULL ? mi_atomic_load_relaxed(&beside->heap)->arena : _mi_theap_source(theap).only;
  if (only != NULL || _mi_option_is_enabled(mi_option_disallow_os_alloc)) {
    return NULL;
  }
  mi_page_t* const page = _mi_meta_zalloc(sizeof(*page));
  if (page == NULL) {
    return NULL;
  }
  const size_t guard = MI_HAS_GUARD_PAGES && align > MI_SLICE_SIZE && _mi_guard_is_enabled() ? _mi_os_page_size() : 0;
  page->start = _mi_os_reserve_aligned(layout->size, align, guard, true, &page->os);
  if (page->start == NULL) {
    _mi_meta_free(page, sizeof(*page));
    return NULL;
  }
  page->slice_count = layout->size / MI_SLICE_SIZE;
  page->memory_is_zero = true;
  _mi_single_init(page, layout);
  mi_single_guard_head(page);
  if (beside != NULL) {
    _mi_heap_enter_page_beside(page, beside);
  } else {
    mi_single_guard_tail(page);
    _mi_heap_enter_page(page, theap);
  }
  if (!_mi_page_map_register(page->start, page->slice_count, page)) {
    _mi_heap_leave_page(page);
    mi_single_forget_os_guards(page, MI_OS_GUARD_HEAD | MI_OS_GUARD_TAIL);
    _mi_os_release(&page->os);
    _mi_meta_free(page, sizeof(*page));
    return NULL;
  }
  mi_single_link(page);
  _mi_track_page(page->start, page->slice_count * MI_SLICE_SIZE);
  _mi_page_count_new(page);
  return page;
}

mi_page_t* _mi_single_new_from_os(const mi_theap_t* theap, size_t size, size_t align) {
  const mi_large_layout_t layout =
      align > MI_SLICE_SIZE ? _mi_hard_large_layout_at(size, 0, _mi_os_page_size()) : _mi_single_layout(size, align);
  return mi_single_new_laid_out(theap, NULL, &layout, _mi_max(align, MI_SLICE_SIZE));
}

mi_page_t* _mi_single_new_at(const mi_theap_t* theap, const mi_large_layout_t* layout, size_t align) {
  return mi_single_new_laid_out(theap, NULL, layout, align);
}

mi_os_block_t _mi_single_part_with_os(mi_page_t* page) {
  const mi_os_block_t os = page->os;
  mi_single_unlink(page);
  mi_single_forget_os_guards(page, MI_OS_GUARD_HEAD | MI_OS_GUARD_TAIL);
  _mi_meta_free(page, sizeof(*page));
  return os;
}

void _mi_single_release_to_os(mi_page_t* page) {
  mi_os_block_t os = _mi_single_part_with_os(page);
  _mi_os_release(&os);
}

// For look-ups that a report makes, which may come from a signal handler that interrupted a holder of the lock, or a thread
// about to be one. This thread's own lock keeps all others out, and each step of a holder leaves a list that can be walked.
// Returns whether the lock is to be released; *safe: nobody else changes the list.
static bool mi_singles_enter(bool* safe) {
  enum { MI_SINGLES_TRIES = 50 };
  *safe = true;
  if (_mi_lock_is_mine(&mi_singles.lock)) {
    return false;
  }
  for (int i = 0; i < MI_SINGLES_TRIES; i++) {
    if (_mi_lock_acquire_bounded(&mi_singles.lock)) {
      return true;
    }
  }
  *safe = false;
  return false;
}

// Wraps: an address before a page is far behind it.
mi_wraps mi_page_t* _mi_single_of(const void* p) {
  bool safe;
  const bool entered = mi_singles_enter(&safe);
  if (!safe) {
    return NULL;
  }
  mi_page_t* page = mi_singles.first;
  while (page != NULL && (uintptr_t)p - (uintptr_t)page->start >= page->slice_count * MI_SLICE_SIZE) {
    page = page->next;
  }
  if (entered) {
    _mi_lock_release(&mi_singles.lock);
  }
  return page;
}

bool _mi_single_was(const void* p) {
  bool found = false;
  bool safe;
  const bool entered = mi_singles_enter(&safe);
  if (!safe) {
    return false;
  }
  for (size_t i = 0; i < MI_SINGLES_REMEMBERED; i++) {
    found = found || mi_singles.gone[i] == p;
  }
  if (entered) {
    _mi_lock_release(&mi_singles.lock);
  }
  return found && p != NULL;
}

void _mi_single_visit(bool (*visit)(mi_page_t* page, void* arg), void* arg) {
  _mi_lock_acquire(&mi_singles.lock);
  for (mi_page_t* page = mi_singles.first; page != NULL && visit(page, arg); page = page->next) {
  }
  _mi_lock_release(&mi_singles.lock);
}

mi_page_t* _mi_single_next_pinned(const mi_page_t* page, mi_pin_t* pin, bool* in_use) {
  _mi_lock_acquire(&mi_singles.lock);
  mi_page_t* const next = page == NULL ? mi_singles.first : page->next;
  if (next != NULL) {
    _mi_pin_set(pin, next);
    *in_use = _mi_page_map_find(next->start) == next;
  }
  _mi_lock_release(&mi_singles.lock);
  return next;
}

static bool mi_single_claim(mi_page_t* page) {
  uint64_t unowned = 0;
  // Acquire and release: of two frees exactly one claims the page.
  return mi_atomic_cas_strong_acq_rel(&page->remote, &unowned, MI_REMOTE_OWNED);
}

static void mi_single_release(mi_page_t* page) {
  // What the system takes back comes as zeroes.
  if (MI_HAS_ZERO_ON_FREE && !MI_HAS_LARGE_QUARANTINE && page->arena != NULL) {
    _mi_page_release_idle(page);
  } else {
    _mi_page_release(page);
  }
}

bool _mi_single_free(mi_page_t* page) {
  if (!mi_single_claim(page)) {
    return false;
  }
  if (_mi_page_is_guarded(page)) {
    _mi_guarded_free(page);
    return true;
  }
  _mi_block_check_single(page);
  mi_single_release(page);
  return true;
}

void _mi_single_drop(mi_page_t* page) {
  if (mi_single_claim(page)) {
    mi_single_release(page);
  }
}

// Changing the size

static void mi_single_set_end(mi_page_t* page, size_t slices, size_t end) {
  // Walks over the singles look at the size under the lock.
  if (page->arena == NULL) {
    _mi_lock_acquire(&mi_singles.lock);
  }
  _mi_track_page_gone(page->start, page->slice_count * MI_SLICE_SIZE);
  mi_atomic_poke(&page->slice_count, slices);
  _mi_track_page(page->start, slices * MI_SLICE_SIZE);
  mi_atomic_poke(&page->block_size, end);
  mi_atomic_poke(&page->request, _mi_min(page->request, _mi_page_single_usable(page)));
  if (page->arena == NULL) {
    _mi_lock_release(&mi_singles.lock);
  }
  _mi_single_count(page);
}

// The new part of a block that grew in place must be found by a free of an address in it, as far as the map goes.
static bool mi_single_set_slices(mi_page_t* page, size_t slices, size_t end) {
  if (slices > page->slice_count) {
    const size_t old_mapped = _mi_min(page->slice_count, MI_PAGE_MAP_SLICES_MAX);
    const size_t new_mapped = _mi_min(slices, MI_PAGE_MAP_SLICES_MAX);
    if (new_mapped > old_mapped &&
        !_mi_page_map_register(page->start + old_mapped * MI_SLICE_SIZE, new_mapped - old_mapped, page)) {
      return false;
    }
    mi_heap_stat_increase(_mi_page_heap(page), page_committed, (slices - page->slice_count) * MI_SLICE_SIZE);
  } else {
    const size_t kept = _mi_min(slices, MI_PAGE_MAP_SLICES_MAX);
    const size_t mapped = _mi_min(page->slice_count, MI_PAGE_MAP_SLICES_MAX);
    if (mapped > kept) {
      _mi_page_map_unregister(page->start + kept * MI_SLICE_SIZE, mapped - kept);
    }
    mi_heap_stat_decrease(_mi_page_heap(page), page_committed, (page->slice_count - slices) * MI_SLICE_SIZE);
  }
  mi_single_set_end(page, slices, end);
  return true;
}

// What lies between the end of the block and that of its run holds zeroes if the memory did, as long as the block has not
// been longer.
static bool mi_single_slack_is_zero(const mi_page_t* page) {
  return page->memory_is_zero || page->block_size == page->slice_count * MI_SLICE_SIZE;
}

static bool mi_single_grow_in_run(mi_page_t* page, bool* is_zero) {
  const size_t end = _mi_hard_large_end_of(page->slice_count * MI_SLICE_SIZE, _mi_os_page_size());
  if (!mi_single_unguard(page, end)) {
    return false;
  }
  *is_zero = page->memory_is_zero;
  mi_single_set_end(page, page->slice_count, end);
  return true;
}

// The same for a run in an arena that has new slices: guards may be anywhere in them.
static bool mi_single_unguard_grown(mi_page_t* page, size_t end) {
  if (!MI_HAS_GUARD_PAGES && !MI_HAS_LARGE_QUARANTINE && !MI_HAS_GUARDED) {
    return true;
  }
  const size_t at = page->slice_index * MI_SLICE_SIZE;
  return _mi_arena_unguard(page->arena, at + page->block_size, at + end);
}

static bool mi_single_grow_in_arena(mi_page_t* page, size_t slices, bool* is_zero) {
  const size_t old = page->slice_count;
  const size_t end = _mi_hard_large_end_of(slices * MI_SLICE_SIZE, _mi_os_page_size());
  const bool slack_is_zero = mi_single_slack_is_zero(page);
  if ((slices > _mi_arena_slices_max() && !page->arena->is_exclusive) ||
      !_mi_arena_claim_behind(page->arena, page->slice_index + old, slices - old, is_zero)) {
    return false;
  }
  // From the end of the old block, so that one call takes its guard away and those in the new slices.
  if (!mi_single_unguard_grown(page, end) ||
      !mi_single_set_slices(page, slices, end)) {
    _mi_arena_release(page->arena, page->slice_index + old, slices - old, false);
    return false;
  }
  page->memory_is_zero = page->memory_is_zero && *is_zero;
  *is_zero = *is_zero && slack_is_zero;
  if (mi_single_growth_is_guarded()) {
    mi_single_guard_tail(page);
  }
  return true;
}

// Whether the mapping is the block's run and nothing else, so that it can be resized as a whole.
static bool mi_single_is_mapping(const mi_page_t* page) {
  return page->os.base == page->start && page->os.size == page->slice_count * MI_SLICE_SIZE;
}

static bool mi_single_grow_in_os(mi_page_t* page, size_t slices, bool* is_zero) {
  const size_t old_size = page->slice_count * MI_SLICE_SIZE;
  const size_t end = _mi_hard_large_end_of(slices * MI_SLICE_SIZE, _mi_os_page_size());
  // What grows is the last mapping of the run, which is not to be a guard.
  if (!mi_single_is_mapping(page) || ((page->os_guards & MI_OS_GUARD_TAIL) != 0 && _mi_guard_are_mappings()) ||
      _mi_os_grow(&page->os, slices * MI_SLICE_SIZE, false) == NULL) {
    return false;
  }
  *is_zero = mi_single_slack_is_zero(page);
  if (!mi_single_unguard(page, old_size)) {
    return false;
  }
  mi_single_forget_os_guards(page, MI_OS_GUARD_TAIL);
  if (!mi_single_set_slices(page, slices, end)) {
    return false;
  }
  mi_single_guard_tail(page);
  return true;
}

static bool mi_single_shrink(mi_page_t* page, size_t slices, size_t end) {
  const size_t old = page->slice_count;
  if (page->arena == NULL && !mi_single_is_mapping(page)) {
    return false;
  }
  page->memory_is_zero = false;
  const size_t request = _mi_min(page->request, end - (page->block_size - _mi_page_single_usable(page)));
  _mi_track_resized(page->single_start, page->request, request, page->start + old * MI_SLICE_SIZE);
  // What goes is taken out of the page map first: as soon as the system has it, another thread may get and enter it.
  (void)mi_single_set_slices(page, slices, end);
  if (page->arena == NULL) {
    // Where the system keeps it, its guard stays as well.
    if (!_mi_os_trim(&page->os, slices * MI_SLICE_SIZE)) {
      return true;
    }
    mi_single_forget_os_guards(page, MI_OS_GUARD_TAIL);
  }
  mi_single_guard_tail(page);
  if (page->arena != NULL) {
    if (MI_HAS_ZERO_ON_FREE) {
      _mi_arena_release_purged(page->arena, page->slice_index + slices, old - slices);
    } else {
      _mi_arena_release(page->arena, page->slice_index + slices, old - slices, false);
    }
  }
  return true;
}

bool _mi_page_single_resize(mi_page_t* page, size_t size, bool* is_zero) {
  if (_mi_page_is_guarded(page)) {
    return false;
  }
  const mi_large_layout_t wanted = _mi_hard_large_layout_at(size, 0, _mi_os_page_size());
  const size_t slices = wanted.size / MI_SLICE_SIZE;
  const size_t old = page->slice_count;
  *is_zero = false;
  if (slices == old) {
    return wanted.end <= page->block_size || mi_single_grow_in_run(page, is_zero);
  }
  if (slices < old) {
    return mi_single_shrink(page, slices, wanted.end);
  }
  return page->arena != NULL ? mi_single_grow_in_arena(page, slices, is_zero)
                             : mi_single_grow_in_os(page, slices, is_zero);
}

mi_page_t* _mi_single_move(mi_page_t* page, size_t size) {
  const size_t os_page = _mi_os_page_size();
  const size_t usable = _mi_page_single_usable(page);
  const size_t offset = page->block_size - usable;
  // A tool knows a block by its address. The block keeps its place in its run, with the guard that is before it there.
  if (MI_TRACKS || _mi_page_is_guarded(page) || usable < MI_SINGLE_MOVE_MIN || size <= usable || offset > MI_SLICE_SIZE || (MI_HAS_GUARD_PAGES && offset < os_page)) {
    return NULL;
  }
  // What the program lent, or lies in huge OS pages, stays what it is.
  if (page->arena != NULL && (page->arena->is_lent || page->arena->is_pinned)) {
    return NULL;
  }
  const size_t first = _mi_align_down(offset, os_page);
  const mi_large_layout_t layout = _mi_hard_large_layout_at(size, offset, os_page);
  mi_page_t* const larger = mi_single_new_laid_out(NULL, page, &layout, MI_SLICE_SIZE);
  if (larger == NULL) {
    return NULL;
  }
  const size_t run = larger->slice_count * MI_SLICE_SIZE;
  if (_mi_prim_move(page->start + first, larger->start + first, page->block_size - first, run - first) != 0) {
    _mi_single_drop(larger);
    return NULL;
  }
  mi_single_guard_tail(larger);
  mi_atomic_poke(&larger->request, page->request);
  mi_atomic_poke(&page->request, usable);
  _mi_single_drop(page);
  return larger;
}

void _mi_singles_fork_prepare(void) { _mi_lock_acquire(&mi_singles.lock); }

void _mi_singles_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_singles.lock);
  } else {
    _mi_lock_release(&mi_singles.lock);
  }
}
