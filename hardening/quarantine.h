// Owns: the waiting room of freed blocks: a random part, from which a block comes out by chance, and a queue behind it.
// May include: base.
// Called by: heap.
// Invariants: what goes in comes out exactly once; entries are opaque words that are not 0; both parts have as many slots,
// a power of two, or there is one slot only, of the queue.
#pragma once

#include "src/base/bits.h"

typedef struct mi_quarantine_s {
  uint32_t half;      // slots of each part; 0: the queue has one slot and there is no random part
  uint32_t next;      // of the queue
  uintptr_t slots[];  // the random part, then the queue
} mi_quarantine_t;

enum { MI_QUARANTINE_BLOCKS_MAX = 1024 };

// How many slots a class of blocks of `block_size` bytes gets within both bounds: 0, 1 or a power of two.
mi_inline size_t _mi_hard_quarantine_slots(size_t block_size, size_t max_blocks, size_t max_bytes) {
  const size_t slots = _mi_min(_mi_min(max_blocks, MI_QUARANTINE_BLOCKS_MAX), max_bytes / block_size);
  return slots == 0 ? 0 : (size_t)1 << _mi_bits_log2_64(slots);
}

mi_inline size_t _mi_hard_quarantine_size(size_t slots) { return sizeof(mi_quarantine_t) + slots * sizeof(uintptr_t); }

mi_inline size_t _mi_hard_quarantine_count(const mi_quarantine_t* quarantine) {
  return quarantine->half == 0 ? 1 : 2 * (size_t)quarantine->half;
}

mi_inline uintptr_t mi_quarantine_swap(uintptr_t* slot, uintptr_t entry) {
  const uintptr_t out = *slot;
  *slot = entry;
  return out;
}

// Puts an entry in and returns the one that leaves for it, 0 when there was room. `random`: a number below `half`.
mi_inline uintptr_t _mi_hard_quarantine_pass(mi_quarantine_t* quarantine, uintptr_t entry, uint32_t random) {
  const uint32_t half = quarantine->half;
  if (mi_unlikely(half == 0)) {
    return mi_quarantine_swap(&quarantine->slots[0], entry);
  }
  const uintptr_t older = mi_quarantine_swap(&quarantine->slots[random], entry);
  if (mi_unlikely(older == 0)) {
    return 0;
  }
  const uint32_t next = quarantine->next;
  quarantine->next = (next + 1) & (half - 1);
  return mi_quarantine_swap(&quarantine->slots[half + next], older);
}
