// Owns: the map from an address to the page that holds it, two levels, read without a lock.
// May include: base, sys.
// Called by: region (registering), heap and alloc (look-up on every free).
// Invariants: an address that lies in no page of ours finds NULL, whatever it is; an entry is set before the first block
// of its page is handed out and cleared before the page's memory can become another page.
#pragma once

#include "src/base/atomic.h"
#include "src/base/geometry.h"
#include "src/sys/sealed.h"

// The layout belongs to heap/page.h; this layer only stores where it is.
typedef struct mi_page_s mi_page_t;

enum {
  // A leaf covers 4 GiB where addresses have 64 bits, so that its index is what a shift of the lower half leaves.
  MI_PAGE_MAP_LEAF_SHIFT = MI_INTPTR_SIZE == 8 ? 32 - MI_SLICE_SHIFT : 13,
  MI_PAGE_MAP_LEAF_ENTRIES = 1 << MI_PAGE_MAP_LEAF_SHIFT,
  MI_PAGE_MAP_ROOT_SHIFT = MI_SLICE_SHIFT + MI_PAGE_MAP_LEAF_SHIFT,
  // A block larger than a large page is entered under its first slices only: nothing but its start may be freed, and
  // a map that grows with the size of a block would cost memory for address space nobody touches.
  MI_PAGE_MAP_SLICES_MAX = MI_LARGE_PAGE_SLICES,
};

// Distances instead of addresses, so that memory that was never written leads through the leaf without entries to a page
// that is none: a look-up needs no test on its way, and one comparison at its end.
typedef struct mi_page_map_leaf_s {
  mi_page_map_head_t head;
  _Atomic(uintptr_t) entries[MI_PAGE_MAP_LEAF_ENTRIES];  // each the distance of a page from the leaf
} mi_page_map_leaf_t;

struct mi_page_map_tables_s {
  mi_page_map_leaf_t empty;                               // never written; the head is read-only
  mi_aligned(MI_CACHE_LINE) _Atomic(uintptr_t) leaves[];  // for each root the distance of its leaf from `empty`
};

// Read-only once the process has started.
#define _mi_page_map (_mi_fixed.page_map)

mi_inline size_t mi_page_map_index(uintptr_t address) {
  return ((uint32_t)address >> MI_SLICE_SHIFT) & (MI_PAGE_MAP_LEAF_ENTRIES - 1);
}

// *page is the page that holds address p, or one that is none: nobody's, and all zeroes else. False: the address lies beyond
// the map, or there is no map yet, and *page is not set. Any address may be asked.
mi_inline bool _mi_page_map_look(const void* p, mi_page_t** page) {
  const uintptr_t address = (uintptr_t)p;
  const size_t root = (size_t)(address >> MI_PAGE_MAP_ROOT_SHIFT);
  mi_page_map_tables_t* const tables = _mi_page_map.tables;
  if (mi_unlikely(root >= tables->empty.head.root_count)) {
    return false;
  }
  // Acquire pairs with the release that published the leaf. The entry needs none: whoever holds a pointer to a block got it
  // after the entry was set.
  const uintptr_t leaf = mi_atomic_follow_acquire((uintptr_t)tables, root, offsetof(mi_page_map_tables_t, leaves));
  *page = (mi_page_t*)mi_atomic_follow_acquire(leaf, mi_page_map_index(address), offsetof(mi_page_map_leaf_t, entries));
  return true;
}

// The page that holds address p, or NULL. Any address may be asked.
// Wraps: a distance may lead backwards.
mi_inline mi_wraps mi_page_t* _mi_page_map_find(const void* p) {
  const uintptr_t address = (uintptr_t)p;
  const size_t root = (size_t)(address >> MI_PAGE_MAP_ROOT_SHIFT);
  mi_page_map_tables_t* const tables = _mi_page_map.tables;
  if (mi_unlikely(root >= tables->empty.head.root_count)) {
    return NULL;
  }
  // The orders are as above.
  const uintptr_t leaf = (uintptr_t)tables + mi_atomic_load_acquire(&tables->leaves[root]);
  const uintptr_t distance = mi_atomic_load_relaxed(&((const mi_page_map_leaf_t*)leaf)->entries[mi_page_map_index(address)]);
  return mi_likely(distance != 0) ? (mi_page_t*)(leaf + distance) : NULL;
}

// The page of an address that is known to lie in one.
mi_inline mi_page_t* _mi_page_map_get(const void* p) {
  const uintptr_t address = (uintptr_t)p;
  const uintptr_t leaf = mi_atomic_follow_acquire((uintptr_t)_mi_page_map.tables, (size_t)(address >> MI_PAGE_MAP_ROOT_SHIFT),
                                                  offsetof(mi_page_map_tables_t, leaves));
  return (mi_page_t*)mi_atomic_follow_acquire(leaf, mi_page_map_index(address), offsetof(mi_page_map_leaf_t, entries));
}

// Makes the map for `address_bits` bits of user addresses. `none`: the first word of a page that is none. Called once, before
// any other thread can look.
bool _mi_page_map_init(unsigned address_bits, uintptr_t none);

// Enters `page` for `slices` slices from `start` (at most MI_PAGE_MAP_SLICES_MAX of them). False: no memory for a leaf,
// or an address beyond the map; nothing has been entered then.
bool _mi_page_map_register(const void* start, size_t slices, mi_page_t* page);

void _mi_page_map_unregister(const void* start, size_t slices);

// Has the system fix the leaves that are there. At the start of the process; the rest is done by _mi_os_seal_permanent.
mi_cold void _mi_page_map_seal(void);

void _mi_page_map_fork_prepare(void);
void _mi_page_map_fork_release(bool in_child);
