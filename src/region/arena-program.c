// Owns: the making of arenas for the program, the options that ask for some, and the table of arenas.
// May include: base, sys, region.
// Called by: through arena-program.h.
// Invariants: an arena is checked against all others and entered under the lock of the table, so that no two overlap.
#include "src/region/arena-program.h"

#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/region/arena-create.h"
#include "src/region/arena-purge.h"
#include "src/region/arena-table.h"
#include "src/region/page-map.h"
#include "src/sys/huge.h"
#include "src/sys/log.h"
#include "src/sys/options.h"

enum { MI_ARENA_NODE_TEXT = 16 };

// Creates the arena and enters it. The lock is held.
static mi_arena_t* mi_arena_enter(const mi_arena_plan_t* plan) {
  mi_arena_t* const arena = _mi_arenas_have_room() ? _mi_arena_create(plan) : NULL;
  if (arena != NULL) {
    _mi_arena_advise_huge_pages(arena);
    _mi_arenas_publish(arena);
  }
  return arena;
}

// Lent memory

static const char* mi_lent_refusal(uint8_t* base, size_t size) {
  const uintptr_t end = (uintptr_t)base + size;
  if (((end - 1) >> MI_PAGE_MAP_ROOT_SHIFT) >= _mi_page_map.tables->empty.head.root_count) {
    return "its addresses are beyond the page map (see option max_vabits)";
  }
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    const uintptr_t other = (uintptr_t)arena->base;
    if (!mi_atomic_load_acquire(&arena->vacant) && other < end &&
        (uintptr_t)base < other + arena->slice_count * MI_SLICE_SIZE) {
      return "a part of it is in an arena already";
    }
  }
  // Blocks with memory of their own are entered under their first slices.
  for (size_t at = 0; at < size; at += MI_SLICE_SIZE) {
    if (_mi_page_map_find(base + at) != NULL) {
      return "a block of this allocator lies in it";
    }
  }
  return NULL;
}

mi_arena_t* _mi_arena_manage(const mi_lent_memory_t* memory) {
  const uintptr_t start = (uintptr_t)memory->start;
  uintptr_t end;
  mi_arena_t* arena = NULL;
  const char* refusal = "it holds no whole slice of 64 KiB at a multiple of 64 KiB";
  if (start != 0 && !_mi_add_overflow(start, memory->size, &end) && start <= UINTPTR_MAX - MI_SLICE_SIZE) {
    uint8_t* const base = (uint8_t*)_mi_align_up_ptr(start, MI_SLICE_SIZE);
    const uintptr_t last = _mi_align_down(end, MI_SLICE_SIZE);
    if (last > (uintptr_t)base) {
      const mi_arena_plan_t plan = {
          .base = base,
          .slice_count = (last - (uintptr_t)base) / MI_SLICE_SIZE,
          .commit_lazily = !memory->is_committed || memory->commit_fun != NULL,
          .is_committed = memory->is_committed,
          .is_zero = memory->is_zero,
          .is_programs = true,
          .is_exclusive = memory->is_exclusive,
          .is_lent = true,
          .is_pinned = memory->is_pinned,
          .numa_node = memory->numa_node < 0 ? -1 : memory->numa_node,
          .commit_fun = memory->commit_fun,
          .commit_arg = memory->commit_arg,
      };
      _mi_arenas_lock();
      refusal = mi_lent_refusal(base, last - (uintptr_t)base);
      if (refusal == NULL) {
        arena = mi_arena_enter(&plan);
        refusal = "there is no memory for its metadata";
      }
      _mi_arenas_unlock();
    }
  }
  if (arena == NULL) {
    _mi_log_warning("memory of %zu bytes at %p cannot be managed: %s\n", memory->size, memory->start, refusal);
  }
  return arena;
}

// The system's memory

static mi_arena_t* mi_arena_try_reserve(size_t slice_count, bool commit, bool large, bool exclusive) {
  mi_arena_plan_t plan = {.is_programs = true, .is_exclusive = exclusive, .numa_node = -1};
  mi_arena_t* arena = NULL;
  _mi_arenas_lock();
  if (_mi_arena_plan_reserve(&plan, slice_count, commit, large)) {
    arena = mi_arena_enter(&plan);
    if (arena == NULL) {
      _mi_arena_plan_release(&plan);
    }
  }
  _mi_arenas_unlock();
  return arena;
}

mi_arena_t* _mi_arena_reserve(size_t size, bool commit, bool allow_large, bool exclusive) {
  mi_arena_t* arena = NULL;
  if (size <= MI_ALLOC_SIZE_MAX / 2) {
    const size_t slice_count = _mi_max(_mi_div_up(size, MI_SLICE_SIZE), 1);
    arena = allow_large ? mi_arena_try_reserve(slice_count, true, true, exclusive) : NULL;
    if (arena == NULL) {
      arena = mi_arena_try_reserve(slice_count, commit, false, exclusive);
      if (arena != NULL && allow_large) {
        _mi_log_warning("there are no large OS pages for %zu KiB: small ones are used (see vm.nr_hugepages)\n",
                        slice_count * (MI_SLICE_SIZE / MI_KIB));
      }
    }
  }
  if (arena == NULL) {
    _mi_log_warning("%zu bytes cannot be reserved: the system has no memory or addresses for them\n", size);
  }
  return arena;
}

// Huge pages

mi_arena_t* _mi_arena_reserve_huge(size_t count, int numa_node, int64_t timeout_ms, bool exclusive, size_t* got) {
  size_t in_large;
  mi_arena_plan_t plan = {.is_committed = true,
                          .is_zero = true,
                          .is_programs = true,
                          .is_exclusive = exclusive,
                          .is_pinned = true,
                          .os_page_size = MI_HUGE_PAGE_SIZE,
                          .numa_node = numa_node < 0 ? -1 : numa_node};
  mi_arena_t* arena = NULL;
  *got = 0;
  if (count == 0) {
    return NULL;
  }
  // Takes its time, so no lock is held.
  plan.base = _mi_os_reserve_huge(count, plan.numa_node, timeout_ms, &plan.os, got, &in_large);
  if (plan.base != NULL) {
    plan.slice_count = *got * (MI_HUGE_PAGE_SIZE / MI_SLICE_SIZE);
    plan.os_page_size = in_large > 0 ? MI_LARGE_OS_PAGE_SIZE : MI_HUGE_PAGE_SIZE;
    _mi_arenas_lock();
    arena = mi_arena_enter(&plan);
    _mi_arenas_unlock();
    if (arena == NULL) {
      _mi_arena_plan_release(&plan);
      *got = 0;
    }
  }
  if (*got < count || in_large > 0) {
    _mi_log_warning(
        "of %zu huge OS pages of 1 GiB there are %zu, %zu of them in pages of 2 MiB (see vm.nr_hugepages, and the "
        "time limit of %ld ms)\n",
        count, *got, *got == 0 ? 0 : in_large, (long)timeout_ms);
  }
  return arena;
}

size_t _mi_arenas_reserve_huge(size_t count, size_t nodes, int64_t timeout_ms) {
  const int64_t began = _mi_prim_clock_ms();
  const size_t all = nodes == 0 ? _mi_os_numa_count() : nodes;
  size_t sum = 0;
  for (size_t node = 0; node < all; node++) {
    // Each node gets its share of the time that is left, at least a moment.
    const int64_t left = timeout_ms - (_mi_prim_clock_ms() - began);
    const int64_t share = left / (int64_t)(all - node);
    const size_t pages = count / all + (node < count % all);
    size_t got;
    (void)_mi_arena_reserve_huge(pages, (int)node, timeout_ms == 0 ? 0 : share > 0 ? share
                                                                                   : 1,
                                 false, &got);
    sum += got;
  }
  return sum;
}

// At the start

mi_cold void _mi_arenas_start(void) {
  static _Atomic(bool) has_pages;
  static _Atomic(bool) has_memory;
  // Milliseconds: a process is not to hang at its start.
  enum { MI_START_TIMEOUT_EACH = 500 };
  const long pages = _mi_option_get_clamp(mi_option_reserve_huge_os_pages, 0, 128 * 1024L);
  if (_mi_option_is_enabled(mi_option_arena_is_numa_local)) {
    // Later a sandbox may forbid to ask.
    (void)_mi_os_numa_count();
  }
  if (pages > 0 && !mi_atomic_exchange_acq_rel(&has_pages, true)) {
    const long node = _mi_option_get(mi_option_reserve_huge_os_pages_at);
    const int64_t timeout_ms = (int64_t)pages * MI_START_TIMEOUT_EACH;
    size_t got;
    if (node >= 0) {
      (void)_mi_arena_reserve_huge((size_t)pages, (int)node, timeout_ms, false, &got);
    } else {
      (void)_mi_arenas_reserve_huge((size_t)pages, 0, timeout_ms);
    }
  }
  const size_t size = _mi_option_get_size(mi_option_reserve_os_memory);
  if (size > 0 && !mi_atomic_exchange_acq_rel(&has_memory, true)) {
    (void)_mi_arena_reserve(size, true, _mi_option_is_enabled(mi_option_allow_large_os_pages), false);
  }
}

// The table

void _mi_arenas_print(mi_output_fun* out, void* arg) {
  mi_arena_t* arena;
  _mi_log_print_to(out, arg, "arenas: %zu\n", _mi_arenas_count());
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    if (mi_atomic_load_acquire(&arena->vacant)) {
      _mi_log_print_to(out, arg, "arena %zu: given back\n", i + 1);
      continue;
    }
    const size_t count = arena->slice_count;
    const size_t kib = MI_SLICE_SIZE / MI_KIB;
    char node[MI_ARENA_NODE_TEXT] = "any";
    if (arena->numa_node >= 0) {
      (void)_mi_fmt(node, sizeof(node), "%d", arena->numa_node);
    }
    _mi_log_print_to(out, arg, "arena %zu: %p, %zu KiB, in use %zu, committed %zu, pending %zu KiB, OS pages of %zu KiB, node %s%s%s%s\n",
                     i + 1, (void*)arena->base, count * kib, (count - _mi_bitmap_count(arena->free, 0, count)) * kib,
                     _mi_bitmap_count(arena->committed, 0, count) * kib, _mi_bitmap_count(arena->purge, 0, count) * kib,
                     (arena->os_page_size == 0 ? _mi_os_page_size() : arena->os_page_size) / MI_KIB, node,
                     arena->is_exclusive ? ", exclusive" : "", arena->is_pinned ? ", pinned" : "",
                     arena->is_lent ? ", lent" : "");
  }
}
