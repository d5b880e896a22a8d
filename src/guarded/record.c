// Owns: the records and the map from slices to them.
// May include: base, prim, sys, region, guarded/report.h.
// Called by: through record.h.
// Invariants: memory of records and of the map stays for good, so a reader follows no stale pointer. A record is changed by one
// thread at a time, which the block's owner sees to: a block is allocated, freed and forgotten by one each.
#include "src/guarded/record.h"

#include "src/base/assert.h"
#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/geometry.h"
#include "src/guarded/report.h"
#include "src/prim/prim.h"
#include "src/region/meta.h"
#include "src/region/page-map.h"
#include "src/sys/lock.h"
#include "src/sys/os.h"

typedef struct mi_guarded_node_s {
  mi_guarded_record_t record;      // written by words, between two changes of `version`
  _Atomic(uintptr_t) version;      // odd: a change is under way
  _Atomic(bool) reported;          // somebody has the report of this slot
  struct mi_guarded_node_s* next;  // of the free ones
} mi_guarded_node_t;

enum {
  MI_GUARDED_WORDS = sizeof(mi_guarded_record_t) / sizeof(uintptr_t),
  MI_GUARDED_NODES = MI_META_SIZE_MAX / sizeof(mi_guarded_node_t),
  // Of the calls that are looked at, those inside the allocator are left out.
  MI_GUARDED_CALLS_INSIDE = 8,
};

// For each slice the record of the slot that holds its first byte. A slot has at least one such slice, and what it has before
// the first of them is found through that.
typedef struct mi_guarded_leaf_s {
  _Atomic(uintptr_t) nodes[MI_PAGE_MAP_LEAF_ENTRIES];
} mi_guarded_leaf_t;

static struct {
  mi_lock_t lock;  // creation of leaves, and the free records
  _Atomic(uintptr_t) roots;
  size_t root_count;
  mi_guarded_node_t* free;
  _Atomic(size_t) used;
} mi_guarded;

// The map

static _Atomic(uintptr_t)* mi_guarded_root(uintptr_t address) {
  // Acquire pairs with the release that published the table, and so its size.
  const uintptr_t roots = mi_atomic_load_acquire(&mi_guarded.roots);
  const size_t root = (size_t)(address >> MI_PAGE_MAP_ROOT_SHIFT);
  return roots == 0 || root >= mi_guarded.root_count ? NULL : (_Atomic(uintptr_t)*)roots + root;
}

static _Atomic(uintptr_t)* mi_guarded_entry(uintptr_t address) {
  _Atomic(uintptr_t)* const root = mi_guarded_root(address);
  // Acquire pairs with the release that published the leaf.
  const uintptr_t leaf = root == NULL ? 0 : mi_atomic_load_acquire(root);
  return leaf == 0 ? NULL : &((mi_guarded_leaf_t*)leaf)->nodes[mi_page_map_index(address)];
}

static size_t mi_guarded_pages(size_t size) { return _mi_align_up(size, _mi_os_page_size()); }

// Under the lock. False: no memory.
static bool mi_guarded_make_entries(uintptr_t first, uintptr_t last) {
  if (mi_atomic_load_relaxed(&mi_guarded.roots) == 0) {
    mi_guarded.root_count = (size_t)1 << (_mi_os_config.address_bits - MI_PAGE_MAP_ROOT_SHIFT);
    void* const roots = _mi_os_reserve_permanent(mi_guarded_pages(mi_guarded.root_count * sizeof(uintptr_t)), true);
    mi_atomic_store_release(&mi_guarded.roots, (uintptr_t)roots);
  }
  for (uintptr_t root = first >> MI_PAGE_MAP_ROOT_SHIFT; root <= last >> MI_PAGE_MAP_ROOT_SHIFT; root++) {
    _Atomic(uintptr_t)* const leaf = mi_guarded_root(root << MI_PAGE_MAP_ROOT_SHIFT);
    if (leaf == NULL) {
      return false;
    }
    if (mi_atomic_load_relaxed(leaf) == 0) {
      mi_atomic_store_release(leaf, (uintptr_t)_mi_os_reserve_permanent(mi_guarded_pages(sizeof(mi_guarded_leaf_t)), true));
    }
    if (mi_atomic_load_relaxed(leaf) == 0) {
      return false;
    }
  }
  return true;
}

static void mi_guarded_enter(uintptr_t first, uintptr_t end, const mi_guarded_node_t* node) {
  for (uintptr_t slice = first; slice < end; slice += MI_SLICE_SIZE) {
    // Release: who finds the record finds it as it was made.
    mi_atomic_store_release(mi_guarded_entry(slice), (uintptr_t)node);
  }
}

static mi_guarded_node_t* mi_guarded_node_at(uintptr_t slice) {
  _Atomic(uintptr_t)* const entry = mi_guarded_entry(slice);
  // Acquire pairs with the release above.
  return entry == NULL ? NULL : (mi_guarded_node_t*)mi_atomic_load_acquire(entry);
}

// Records

static mi_guarded_node_t* mi_guarded_node_new(void) {
  if (mi_guarded.free == NULL) {
    mi_guarded_node_t* const nodes = _mi_meta_zalloc(MI_GUARDED_NODES * sizeof(mi_guarded_node_t));
    for (size_t i = 0; nodes != NULL && i < MI_GUARDED_NODES; i++) {
      nodes[i].next = mi_guarded.free;
      mi_guarded.free = &nodes[i];
    }
  }
  mi_guarded_node_t* const node = mi_guarded.free;
  if (node != NULL) {
    mi_guarded.free = node->next;
  }
  return node;
}

static void mi_guarded_write(mi_guarded_node_t* node, const mi_guarded_record_t* record) {
  const uintptr_t version = mi_atomic_load_relaxed(&node->version);
  mi_atomic_store_relaxed(&node->version, version + 1);
  // Who sees a word of what follows sees the odd version too, at its second look.
  atomic_thread_fence(memory_order_release);
  uintptr_t* const to = &node->record.slot;
  const uintptr_t* const from = &record->slot;
  for (size_t i = 0; i < MI_GUARDED_WORDS; i++) {
    mi_atomic_poke(&to[i], from[i]);
  }
  mi_atomic_store_release(&node->version, version + 2);
}

static bool mi_guarded_read(const mi_guarded_node_t* node, mi_guarded_record_t* copy) {
  const uintptr_t version = mi_atomic_load_acquire(&node->version);
  const uintptr_t* const from = &node->record.slot;
  uintptr_t* const to = &copy->slot;
  for (size_t i = 0; i < MI_GUARDED_WORDS; i++) {
    to[i] = mi_atomic_peek(&from[i]);
  }
  // Pairs with the fence above.
  atomic_thread_fence(memory_order_acquire);
  return version % 2 == 0 && mi_atomic_load_relaxed(&node->version) == version;
}

// Wraps: an address before the slot is far behind it.
static mi_wraps mi_guarded_node_t* mi_guarded_find_node(uintptr_t address, mi_guarded_record_t* copy) {
  for (uintptr_t i = 0; i < 2; i++) {
    mi_guarded_node_t* const node = mi_guarded_node_at(_mi_align_down(address, MI_SLICE_SIZE) + i * MI_SLICE_SIZE);
    if (node != NULL && mi_guarded_read(node, copy) && copy->state != MI_GUARDED_NONE &&
        address - copy->slot < copy->slot_size) {
      return node;
    }
  }
  return NULL;
}

// The calls that led into the allocator, of which those inside it are not kept, unless it is a part of the program itself.
static mi_noinline uintptr_t mi_guarded_note_calls(const void* frame, uintptr_t calls[MI_GUARDED_CALLS]) {
  uintptr_t all[MI_GUARDED_CALLS + MI_GUARDED_CALLS_INSIDE];
  const size_t found = _mi_prim_backtrace(frame, all, MI_GUARDED_CALLS + MI_GUARDED_CALLS_INSIDE);
  size_t inside = 0;
  while (inside < found && inside < MI_GUARDED_CALLS_INSIDE && _mi_prim_is_own_library(all[inside])) {
    inside++;
  }
  const size_t count = _mi_min(found - inside, (size_t)MI_GUARDED_CALLS);
  for (size_t i = 0; i < count; i++) {
    calls[i] = all[inside + i];
  }
  return count;
}

mi_guarded_record_t* _mi_guarded_note_alloc(void* slot, size_t slot_size, void* p, size_t request, size_t seed) {
  const uintptr_t start = (uintptr_t)slot;
  const uintptr_t first = _mi_align_up(start, MI_SLICE_SIZE);
  mi_assert_internal(first < start + slot_size && (uintptr_t)p >= first && (uintptr_t)p + request <= start + slot_size);
  _mi_lock_acquire(&mi_guarded.lock);
  mi_guarded_node_t* const node = mi_guarded_make_entries(first, start + slot_size - 1) ? mi_guarded_node_new() : NULL;
  _mi_lock_release(&mi_guarded.lock);
  if (node == NULL) {
    return NULL;
  }
  _mi_guarded_report_arm();
  mi_guarded_record_t record = {
      .slot = start,
      .slot_size = slot_size,
      .block = (uintptr_t)p,
      .request = request,
      .seed = seed,
      .state = MI_GUARDED_LIVE,
      .alloc_thread = _mi_prim_os_thread_id_at_hand(),
  };
  record.alloc_count = mi_guarded_note_calls(__builtin_frame_address(0), record.alloc_calls);
  mi_guarded_write(node, &record);
  mi_atomic_store_relaxed(&node->reported, false);
  mi_guarded_enter(first, start + slot_size, node);
  mi_atomic_add_relaxed(&mi_guarded.used, 1);
  return &node->record;
}

void _mi_guarded_note_free(void* p) {
  mi_guarded_record_t record;
  mi_guarded_node_t* const node = mi_guarded_find_node((uintptr_t)p, &record);
  if (node == NULL) {
    return;
  }
  record.state = MI_GUARDED_FREED;
  record.free_thread = _mi_prim_os_thread_id_at_hand();
  record.free_count = mi_guarded_note_calls(__builtin_frame_address(0), record.free_calls);
  mi_guarded_write(node, &record);
}

void _mi_guarded_forget(void* slot) {
  mi_guarded_record_t record;
  mi_guarded_node_t* const node = mi_guarded_find_node((uintptr_t)slot, &record);
  if (node == NULL) {
    return;
  }
  mi_guarded_enter(_mi_align_up(record.slot, MI_SLICE_SIZE), record.slot + record.slot_size, NULL);
  record = (mi_guarded_record_t){.state = MI_GUARDED_NONE};
  mi_guarded_write(node, &record);
  mi_atomic_sub_relaxed(&mi_guarded.used, 1);
  _mi_lock_acquire(&mi_guarded.lock);
  node->next = mi_guarded.free;
  mi_guarded.free = node;
  _mi_lock_release(&mi_guarded.lock);
}

bool _mi_guarded_find(uintptr_t address, mi_guarded_record_t* copy) { return mi_guarded_find_node(address, copy) != NULL; }

bool _mi_guarded_claim_report(uintptr_t address) {
  mi_guarded_record_t record;
  mi_guarded_node_t* const node = mi_guarded_find_node(address, &record);
  // Relaxed: one of those who ask gets it, and nothing else is ordered by that.
  return node != NULL && !mi_atomic_exchange_relaxed(&node->reported, true);
}

size_t _mi_guarded_records(void) { return mi_atomic_load_relaxed(&mi_guarded.used); }

void _mi_guarded_fork_prepare(void) { _mi_lock_acquire(&mi_guarded.lock); }

void _mi_guarded_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_guarded.lock);
  } else {
    _mi_lock_release(&mi_guarded.lock);
  }
}
