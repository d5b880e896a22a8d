// Owns: the page map's memory and its writers.
// May include: base, sys.
// Called by: region, heap.
// Invariants: leaves are never removed while the process lives, so a reader can never follow a stale one.
#include "src/region/page-map.h"

#include <string.h>

#include "src/base/assert.h"
#include "src/base/bits.h"
#include "src/sys/lock.h"
#include "src/sys/options.h"
#include "src/sys/os.h"

enum {
  MI_PAGE_MAP_CHUNK_LEAVES = MI_INTPTR_SIZE == 8 ? 8 : 64,
  // Where addresses and what is not touched cost nothing.
  MI_PAGE_MAP_FREE_CHUNK_LEAVES = 64,
};

_Static_assert(MI_INTPTR_SIZE == 4 || (int)MI_PAGE_MAP_ROOT_SHIFT == 32, "an index is what a shift of the lower half leaves");

mi_cold bool _mi_page_map_init(unsigned address_bits, uintptr_t none) {
  const size_t count = (size_t)1 << (address_bits - MI_PAGE_MAP_ROOT_SHIFT);
  const size_t page_size = _mi_os_page_size();
  const size_t size = _mi_align_up(sizeof(mi_page_map_tables_t) + count * sizeof(uintptr_t), page_size);
  mi_page_map_tables_t* const tables = _mi_os_reserve_permanent(size, true);
  if (tables == NULL) {
    return false;
  }
  memcpy(tables->empty.head.none, &none, sizeof(none));
  tables->empty.head.root_count = count;
  if (page_size <= sizeof(tables->empty)) {
    // A refusal costs a defence and nothing else.
    (void)_mi_os_protect(tables, page_size, true);
  }
  _mi_page_map.tables = tables;
  return true;
}

// Leaves come from chunks of many, so that a process with addresses all over the place has few mappings for them; where
// the system refuses a chunk, one at a time.
static struct {
  mi_lock_t lock;  // leaf lock: creation
  uint8_t* bump;
  size_t left;     // leaves in the chunk
  bool committed;  // the chunk, as a whole
} mi_leaves;

// Where memory that is not touched costs nothing, a chunk is one mapping: a leaf that is needed when the process has none
// left is there already.
static bool mi_leaves_are_free(void) {
  return _mi_os_config.has_overcommit && _mi_os_config.address_space_limit == SIZE_MAX;
}

static mi_page_map_leaf_t* mi_page_map_leaf_new(void) {
  const size_t page_size = _mi_os_page_size();
  const size_t size = _mi_align_up(sizeof(mi_page_map_leaf_t), page_size);
  if (mi_leaves.left == 0) {
    const bool are_free = mi_leaves_are_free();
    mi_leaves.left = are_free ? MI_PAGE_MAP_FREE_CHUNK_LEAVES : MI_PAGE_MAP_CHUNK_LEAVES;
    mi_leaves.committed = are_free || _mi_option_is_enabled(mi_option_pagemap_commit);
    mi_leaves.bump = _mi_os_reserve_permanent(mi_leaves.left * size, mi_leaves.committed);
    if (mi_leaves.bump == NULL) {
      mi_leaves.left = 0;
      return _mi_os_reserve_permanent(size, true);
    }
  }
  if (!mi_leaves.committed) {
    if (!_mi_os_commit(mi_leaves.bump, size)) {
      return NULL;
    }
    if (_mi_sealed_mseal_state() == MI_MSEAL_ALWAYS) {
      _mi_os_seal(mi_leaves.bump, size);
    }
  }
  mi_page_map_leaf_t* const leaf = (mi_page_map_leaf_t*)(void*)mi_leaves.bump;
  mi_leaves.bump += size;
  mi_leaves.left--;
  return leaf;
}

// The leaf of a root; NULL when it was never made.
// Wraps: a distance may lead backwards.
static mi_wraps mi_page_map_leaf_t* mi_page_map_leaf_of(size_t root) {
  const uintptr_t distance = mi_atomic_load_acquire(&_mi_page_map.tables->leaves[root]);
  return distance == 0 ? NULL : (mi_page_map_leaf_t*)((uintptr_t)_mi_page_map.tables + distance);
}

// Wraps: a distance may lead backwards.
static mi_wraps mi_page_map_leaf_t* mi_page_map_leaf(size_t root) {
  mi_page_map_leaf_t* leaf = mi_page_map_leaf_of(root);
  if (mi_likely(leaf != NULL)) {
    return leaf;
  }
  mi_page_map_tables_t* const tables = _mi_page_map.tables;
  _mi_lock_acquire(&mi_leaves.lock);
  leaf = mi_page_map_leaf_of(root);
  if (leaf == NULL && (leaf = mi_page_map_leaf_new()) != NULL) {
    memcpy(&leaf->head, &tables->empty.head, sizeof(leaf->head));
    // Release publishes the leaf; pairs with the acquire in _mi_page_map_look.
    mi_atomic_store_release(&tables->leaves[root], (uintptr_t)leaf - (uintptr_t)tables);
  }
  _mi_lock_release(&mi_leaves.lock);
  return leaf;
}

// `page`: NULL for none.
// Wraps: a distance may lead backwards.
static mi_wraps void mi_page_map_store(uintptr_t address, size_t slices, const mi_page_t* page) {
  for (size_t i = 0; i < slices; i++, address += MI_SLICE_SIZE) {
    mi_page_map_leaf_t* const leaf = mi_page_map_leaf_of(address >> MI_PAGE_MAP_ROOT_SHIFT);
    const uintptr_t distance = page == NULL ? 0 : (uintptr_t)page - (uintptr_t)leaf;
    mi_atomic_store_relaxed(&leaf->entries[mi_page_map_index(address)], distance);
  }
}

// Wraps: the last address there is may be the end.
mi_wraps bool _mi_page_map_register(const void* start, size_t slices, mi_page_t* page) {
  const uintptr_t address = (uintptr_t)start;
  const size_t count = _mi_min(slices, MI_PAGE_MAP_SLICES_MAX);
  const size_t first = (size_t)(address >> MI_PAGE_MAP_ROOT_SHIFT);
  const size_t last = (size_t)((address + count * MI_SLICE_SIZE - 1) >> MI_PAGE_MAP_ROOT_SHIFT);
  mi_assert_internal(_mi_is_aligned(start, MI_SLICE_SIZE));
  if (last >= _mi_page_map.tables->empty.head.root_count) {
    return false;
  }
  for (size_t root = first; root <= last; root++) {
    if (mi_page_map_leaf(root) == NULL) {
      return false;
    }
  }
  mi_page_map_store(address, count, page);
  return true;
}

void _mi_page_map_unregister(const void* start, size_t slices) {
  mi_page_map_store((uintptr_t)start, _mi_min(slices, MI_PAGE_MAP_SLICES_MAX), NULL);
}

void _mi_page_map_seal(void) {
  const size_t page_size = _mi_os_page_size();
  const size_t size = _mi_align_up(sizeof(mi_page_map_leaf_t), page_size);
  _mi_lock_acquire(&mi_leaves.lock);
  if (mi_leaves.bump != NULL && !mi_leaves.committed && mi_leaves.left < MI_PAGE_MAP_CHUNK_LEAVES) {
    // Its protection stays from here on; that of the others is still to change.
    const size_t used = (MI_PAGE_MAP_CHUNK_LEAVES - mi_leaves.left) * size;
    _mi_os_seal(mi_leaves.bump - used, used);
  }
  _mi_lock_release(&mi_leaves.lock);
}

void _mi_page_map_fork_prepare(void) { _mi_lock_acquire(&mi_leaves.lock); }

void _mi_page_map_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_leaves.lock);
  } else {
    _mi_lock_release(&mi_leaves.lock);
  }
}
