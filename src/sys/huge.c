// Owns: huge pages asked for one at a time, what is put around them, and the count of nodes.
// May include: base, prim, sys.
// Called by: through huge.h.
// Invariants: pages of one reservation lie without a gap; a page that came to lie elsewhere is given back.
#include "src/sys/huge.h"

#include "src/base/bits.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"

size_t _mi_os_numa_count(void) {
  static _Atomic(size_t) nodes;
  const long wanted = _mi_option_get(mi_option_use_numa_nodes);
  if (wanted > 0) {
    return (size_t)wanted;
  }
  // Relaxed: two threads that ask at once get the same answer.
  if (mi_atomic_load_relaxed(&nodes) == 0) {
    mi_atomic_store_relaxed(&nodes, _mi_prim_numa_nodes());
  }
  return mi_atomic_load_relaxed(&nodes);
}

int _mi_os_numa_node(void) {
  const size_t count = _mi_os_numa_count();
  return count == 1 ? 0 : (int)((size_t)_mi_prim_numa_node() % count);
}

// An inaccessible OS page at an address, if it can be had there.
static bool mi_huge_fence(uint8_t* at, size_t page_size) {
  void* p;
  if (_mi_prim_reserve_at(at, page_size, false, &p) != 0) {
    return false;
  }
  if (p != at) {
    (void)_mi_prim_release(p, page_size);
    return false;
  }
  return true;
}

// Huge pages cannot be part of an inaccessible reservation, so the guards are put around them afterwards.
static void mi_huge_finish(uint8_t* start, size_t size, mi_os_block_t* os) {
  const size_t page_size = _mi_os_page_size();
  *os = (mi_os_block_t){start, size, size};
  if (mi_huge_fence(start - page_size, page_size)) {
    os->base = start - page_size;
    os->size += page_size;
  } else {
    _mi_counter_add(&_mi_stats.guards_skipped, 1);
  }
  if (mi_huge_fence(start + size, page_size)) {
    os->size += page_size;
  } else {
    _mi_counter_add(&_mi_stats.guards_skipped, 1);
  }
  _mi_counter_add(&_mi_stats.mmap_calls, 1);
  _mi_stat_increase(&_mi_stats.reserved, os->size);
  _mi_stat_increase(&_mi_stats.committed, size);
}

void* _mi_os_reserve_large(size_t size, int numa_node, mi_os_block_t* os) {
  void* p;
  if (size == 0 || size % MI_LARGE_OS_PAGE_SIZE != 0 ||
      _mi_prim_reserve_huge(NULL, size, MI_LARGE_OS_PAGE_SIZE, numa_node, &p) != 0) {
    return NULL;
  }
  if (!_mi_os_is_in_reach(p, size)) {
    (void)_mi_prim_release(p, size);
    return NULL;
  }
  mi_huge_finish(p, size, os);
  return p;
}

// A range of addresses where so many huge pages had room a moment ago; NULL: anywhere is as good.
static uint8_t* mi_huge_place(size_t count) {
  size_t size;
  void* p;
  if (_mi_mul_overflow(count, MI_HUGE_PAGE_SIZE, &size) || size > (size_t)PTRDIFF_MAX - MI_HUGE_PAGE_SIZE ||
      _mi_prim_reserve(size + MI_HUGE_PAGE_SIZE, false, &p) != 0) {
    return NULL;
  }
  (void)_mi_prim_release(p, size + MI_HUGE_PAGE_SIZE);
  return (uint8_t*)_mi_align_up_ptr((uintptr_t)p, MI_HUGE_PAGE_SIZE);
}

static bool mi_huge_get(uint8_t* wish, int numa_node, uint8_t** page, bool* is_large) {
  void* p;
  *is_large = false;
  if (_mi_prim_reserve_huge(wish, MI_HUGE_PAGE_SIZE, MI_HUGE_PAGE_SIZE, numa_node, &p) != 0) {
    *is_large = true;
    if (_mi_prim_reserve_huge(wish, MI_HUGE_PAGE_SIZE, MI_LARGE_OS_PAGE_SIZE, numa_node, &p) != 0) {
      return false;
    }
  }
  *page = p;
  return true;
}

void* _mi_os_reserve_huge(size_t count, int numa_node, int64_t timeout_ms, mi_os_block_t* os, size_t* got, size_t* in_large) {
  const int64_t began = _mi_prim_clock_ms();
  uint8_t* start = mi_huge_place(count);
  size_t n = 0;
  *in_large = 0;
  while (n < count) {
    uint8_t* const wish = start == NULL ? NULL : start + n * MI_HUGE_PAGE_SIZE;
    uint8_t* page;
    bool is_large;
    if (!mi_huge_get(wish, numa_node, &page, &is_large)) {
      break;
    }
    if ((n > 0 && page != wish) || !_mi_os_is_in_reach(page, MI_HUGE_PAGE_SIZE)) {
      (void)_mi_prim_release(page, MI_HUGE_PAGE_SIZE);
      break;
    }
    start = n == 0 ? page : start;
    n++;
    *in_large += is_large;
    // The next one takes about as long as these did.
    const int64_t elapsed = _mi_prim_clock_ms() - began;
    if (timeout_ms > 0 && elapsed + elapsed / (int64_t)n > timeout_ms) {
      break;
    }
  }
  *got = n;
  if (n == 0) {
    return NULL;
  }
  mi_huge_finish(start, n * MI_HUGE_PAGE_SIZE, os);
  return start;
}
