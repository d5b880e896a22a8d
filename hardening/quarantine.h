// Owns: the waiting room of freed blocks: a random part, from which a block comes out by chance, and a queue behind it, from
// whose end blocks serve again.
// May include: base.
// Called by: heap.
// Invariants: what goes in comes out exactly once; entries are opaque words that are not 0. An entry waits in the random
// part until a later one takes its place, and then until as many others have followed it into the queue as the random part
// has slots: then it is ready. Without a random part one other has to follow.
#pragma once

#include "src/base/atomic.h"
#include "src/base/bits.h"

enum {
  MI_QUARANTINE_BLOCKS_MAX = 1024,
  // Where many are freed and asked for at a time, so many times as many bytes may be ready as may wait, in so many slots.
  MI_QUARANTINE_BURST = 2,
  MI_QUARANTINE_GROWTH = 4,  // in so large steps
  MI_QUARANTINE_SLOTS_MAX = 1920,
  // Places that are drawn in advance, a byte each. A random part that is too large for bytes has each drawn when it is needed.
  MI_QUARANTINE_DRAWS = 32,
  MI_QUARANTINE_DRAWN_MAX = 256,
};

typedef struct mi_quarantine_s {
  int32_t ready;    // entries of the queue that may be taken; below 0 as long as it is too short for any
  uint32_t drawn;   // of `draws`, not used yet
  uint32_t head;    // the slot of the queue where the next goes
  uint32_t tail;    // the one of its oldest entry
  uint32_t half;    // slots of the random part, which come first: 0 or a power of two
  uint32_t slots;   // of both parts
  int32_t limit;    // so many may be ready
  int32_t room;     // there are slots for so many
  bool drained;     // some had to leave since `limit` was last raised
  int64_t left;     // so many blocks may serve again before the next is to be sampled; below 0: that one is due
  int64_t granted;  // what `left` was when it was last set
  uint64_t again;   // blocks that served again before that and are not counted elsewhere yet
  uint8_t draws[MI_QUARANTINE_DRAWS];
  uintptr_t entries[];
} mi_quarantine_t;

// How many entries of blocks of `block_size` bytes wait at most, within both bounds: 0, 1 or a power of two.
mi_inline size_t _mi_hard_quarantine_bound(size_t block_size, size_t max_blocks, size_t max_bytes) {
  const size_t bound = _mi_min(_mi_min(max_blocks, MI_QUARANTINE_BLOCKS_MAX), max_bytes / block_size);
  return bound == 0 ? 0 : (size_t)1 << _mi_bits_log2_64(bound);
}

// How many may be ready besides.
mi_inline size_t _mi_hard_quarantine_limit(size_t bound) { return bound / 2; }

// The same where many are freed and asked for at a time; `max_bytes` as above.
mi_inline size_t _mi_hard_quarantine_burst(size_t bound, size_t block_size, size_t max_bytes) {
  const size_t bytes = _mi_min(max_bytes, SIZE_MAX / MI_QUARANTINE_BURST) * MI_QUARANTINE_BURST;
  return _mi_max(_mi_min(bytes / block_size, MI_QUARANTINE_SLOTS_MAX - bound), _mi_hard_quarantine_limit(bound));
}

// The queue holds what waits, what is ready, and one more until somebody is taken out.
mi_inline size_t mi_quarantine_slots(size_t bound, size_t limit) { return _mi_max(bound, 2) + limit + (bound > 1); }

mi_inline size_t _mi_hard_quarantine_size(size_t bound, size_t limit) {
  return sizeof(mi_quarantine_t) + mi_quarantine_slots(bound, limit) * sizeof(uintptr_t);
}

// An empty one in memory that holds zeroes.
mi_inline void _mi_hard_quarantine_init(mi_quarantine_t* quarantine, size_t bound, size_t limit) {
  quarantine->half = (uint32_t)bound / 2;
  quarantine->slots = (uint32_t)mi_quarantine_slots(bound, limit);
  quarantine->limit = (int32_t)limit;
  quarantine->room = (int32_t)limit;
  quarantine->ready = -(int32_t)_mi_max(quarantine->half, 1);
  quarantine->head = quarantine->half;
  quarantine->tail = quarantine->half;
}

// What it was initialised with.
mi_inline size_t _mi_hard_quarantine_bound_of(const mi_quarantine_t* quarantine) {
  return quarantine->half == 0 ? 1 : 2 * (size_t)quarantine->half;
}

mi_inline uint32_t mi_quarantine_behind(const mi_quarantine_t* quarantine, uint32_t slot) {
  return slot + 1 == quarantine->slots ? quarantine->half : slot + 1;
}

mi_inline void mi_quarantine_push(mi_quarantine_t* quarantine, uintptr_t entry) {
  const uint32_t head = quarantine->head;
  quarantine->entries[head] = entry;
  // A forked child may find the thread stopped anywhere in here: what is counted is an entry.
  atomic_signal_fence(memory_order_release);
  quarantine->head = mi_quarantine_behind(quarantine, head);
  quarantine->ready++;
}

// Puts an entry in, at `place` of the random part, a number below `half`, if there is one. False: more are ready than may be,
// and some have to be taken before the next is put in.
mi_inline bool _mi_hard_quarantine_put(mi_quarantine_t* quarantine, uintptr_t entry, uint32_t place) {
  const uintptr_t older = quarantine->entries[place];
  quarantine->entries[place] = entry;
  if (mi_unlikely(older == 0)) {
    return true;
  }
  mi_quarantine_push(quarantine, older);
  return mi_likely(quarantine->ready <= quarantine->limit);
}

mi_inline bool _mi_hard_quarantine_put_queued(mi_quarantine_t* quarantine, uintptr_t entry) {
  mi_quarantine_push(quarantine, entry);
  return quarantine->ready <= quarantine->limit;
}

// What was in one, which had no room for more, is in a larger one from now on, in the order in which it was there. `larger` is
// empty. The other stays as it is, for who may be looking at it.
mi_inline void _mi_hard_quarantine_move(mi_quarantine_t* larger, const mi_quarantine_t* quarantine) {
  __builtin_memcpy(larger->entries, quarantine->entries, quarantine->half * sizeof(uintptr_t));
  for (uint32_t slot = quarantine->tail; quarantine->ready > larger->ready; slot = mi_quarantine_behind(quarantine, slot)) {
    mi_quarantine_push(larger, quarantine->entries[slot]);
  }
  __builtin_memcpy(larger->draws, quarantine->draws, sizeof(larger->draws));
  larger->drawn = quarantine->drawn;
  larger->left = quarantine->left;
  larger->granted = quarantine->granted;
  larger->again = quarantine->again;
}

// The entry that is to be taken next. Only if one is ready.
mi_inline uintptr_t _mi_hard_quarantine_first(const mi_quarantine_t* quarantine) {
  return quarantine->entries[quarantine->tail];
}

// Takes it.
mi_inline void _mi_hard_quarantine_drop(mi_quarantine_t* quarantine) {
  quarantine->tail = mi_quarantine_behind(quarantine, quarantine->tail);
  quarantine->ready--;
}

// Takes any entry, whether it is ready or not; 0 when there is none. *slot: where in the random part to go on, 0 at first.
mi_inline uintptr_t _mi_hard_quarantine_take_any(mi_quarantine_t* quarantine, uint32_t* slot) {
  // Counted and between the ends, which differ but for a full queue: the thread may have stopped in the middle of a call.
  if (quarantine->ready > -(int32_t)_mi_max(quarantine->half, 1) &&
      (quarantine->tail != quarantine->head || quarantine->ready > quarantine->room)) {
    const uintptr_t entry = _mi_hard_quarantine_first(quarantine);
    _mi_hard_quarantine_drop(quarantine);
    return entry;
  }
  while (*slot < quarantine->half) {
    const uint32_t i = (*slot)++;
    const uintptr_t entry = quarantine->entries[i];
    if (entry != 0) {
      quarantine->entries[i] = 0;
      return entry;
    }
  }
  return 0;
}
