// Owns: the map from an address to the page that holds it, two levels, read without a lock.
// May include: base, sys.
// Called by: region (registering), heap and alloc (look-up on every free).
// Invariants: an address that lies in no page of ours finds NULL, whatever it is; an entry is set before the first block
// of its page is handed out and cleared before the page's memory can become another page.
#pragma once

#include "src/base/atomic.h"
#include "src/base/geometry.h"
#include "src/sys/sealed.h"

// The layout belongs to heap/page.h; this layer only stores the pointer.
typedef struct mi_page_s mi_page_t;

enum {
  MI_PAGE_MAP_LEAF_SHIFT = 13,
  MI_PAGE_MAP_LEAF_ENTRIES = 1 << MI_PAGE_MAP_LEAF_SHIFT,
  MI_PAGE_MAP_ROOT_SHIFT = MI_SLICE_SHIFT + MI_PAGE_MAP_LEAF_SHIFT,
  // A block larger than a large page is entered under its first slices only: nothing but its start may be freed, and
  // a map that grows with the size of a block would cost memory for address space nobody touches.
  MI_PAGE_MAP_SLICES_MAX = MI_LARGE_PAGE_SLICES,
};

struct mi_page_map_leaf_s {
  _Atomic(mi_page_t*) entries[MI_PAGE_MAP_LEAF_ENTRIES];
};

// Read-only once the process has started.
#define _mi_page_map (_mi_fixed.page_map)

// The page that holds address p, or NULL. Any address may be asked.
mi_inline mi_page_t* _mi_page_map_find(const void* p) {
  const uintptr_t address = (uintptr_t)p;
  const size_t root = (size_t)(address >> MI_PAGE_MAP_ROOT_SHIFT);
  if (mi_unlikely(root >= _mi_page_map.root_count)) {
    return NULL;
  }
  // Acquire pairs with the release that published the leaf.
  mi_page_map_leaf_t* const leaf = mi_atomic_load_acquire(&_mi_page_map.roots[root]);
  if (mi_unlikely(leaf == NULL)) {
    return NULL;
  }
  // Relaxed is enough: whoever holds a pointer to a block got it after the entry was set.
  return mi_atomic_load_relaxed(&leaf->entries[(address >> MI_SLICE_SHIFT) & (MI_PAGE_MAP_LEAF_ENTRIES - 1)]);
}

// The page of an address that is known to lie in one.
mi_inline mi_page_t* _mi_page_map_get(const void* p) {
  const uintptr_t address = (uintptr_t)p;
  mi_page_map_leaf_t* const leaf = mi_atomic_load_relaxed(&_mi_page_map.roots[address >> MI_PAGE_MAP_ROOT_SHIFT]);
  return mi_atomic_load_relaxed(&leaf->entries[(address >> MI_SLICE_SHIFT) & (MI_PAGE_MAP_LEAF_ENTRIES - 1)]);
}

// Makes the map for `address_bits` bits of user addresses. Called once, before any other thread can look.
bool _mi_page_map_init(unsigned address_bits);

// Enters `page` for `slices` slices from `start` (at most MI_PAGE_MAP_SLICES_MAX of them). False: no memory for a leaf,
// or an address beyond the map; nothing has been entered then.
bool _mi_page_map_register(const void* start, size_t slices, mi_page_t* page);

void _mi_page_map_unregister(const void* start, size_t slices);

// Has the system fix the leaves that are there. At the start of the process; the rest is done by _mi_os_seal_permanent.
mi_cold void _mi_page_map_seal(void);

void _mi_page_map_fork_prepare(void);
void _mi_page_map_fork_release(bool in_child);
