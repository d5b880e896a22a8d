// Owns: the memory of a profile: stacks, each kept once, and a record of each sampled block that lives.
// May include: base, sys.
// Called by: profile.
// Invariants: everything here is touched under the lock of the profile, which the caller holds; memory comes from the system,
// in chunks, never from a heap, and goes back when the table ends. A record is named by a number, so that a name outlives it.
#pragma once

#include "src/sys/os.h"

enum {
  MI_PROFILE_CHUNK_SIZE = 64 * 1024,
  MI_PROFILE_STACKS_MAX = 65536,
  MI_PROFILE_DEPTH_MAX = 128,
};

// What was sampled with one stack.
typedef struct mi_profile_counts_s {
  size_t live_objects;
  size_t live_bytes;
  size_t accum_objects;
  size_t accum_bytes;
} mi_profile_counts_t;

typedef struct mi_profile_stack_s {
  struct mi_profile_stack_s* next;  // with the same hash, or unused
  mi_profile_counts_t counts;
  uint32_t hash;
  uint32_t depth;
  uint32_t room;      // frames that there is memory for
  uintptr_t calls[];  // the latest first
} mi_profile_stack_t;

typedef struct mi_profile_record_s {
  mi_profile_stack_t* stack;  // NULL: the record is unused
  union {
    size_t size;
    uint32_t next_unused;  // its number and one
  };
} mi_profile_record_t;

typedef struct mi_profile_chunk_s {
  mi_os_block_t os;
  struct mi_profile_chunk_s* next;
} mi_profile_chunk_t;

typedef struct mi_profile_table_s {
  size_t budget;       // bytes of chunks; 0: as many as are needed
  size_t committed;    // bytes of chunks
  size_t stacks;       // that are in use
  size_t idle_stacks;  // of those, the ones that nothing is counted for any more
  size_t records;      // of live blocks
  size_t overflows;    // samples that found no place for their stack
  size_t dropped;      // samples that were not recorded, for whatever reason
  mi_profile_counts_t sum;
  mi_profile_chunk_t* chunks;
  uint8_t* bump;
  uint8_t* bump_end;
  mi_profile_stack_t** buckets;
  mi_profile_record_t** record_chunks;
  uint32_t record_count;  // that there ever were
  uint32_t unused_record;
  mi_profile_stack_t* unused_stacks[MI_PROFILE_DEPTH_MAX / 8 + 1];  // by their room in units of eight frames
} mi_profile_table_t;

// Counts a block of `size` bytes with its stack. The record's number and one; 0: there is no memory or no place, and the sample
// is counted as dropped. `accum`: the block counts for good.
uint32_t _mi_profile_table_add(mi_profile_table_t* table, const uintptr_t* calls, size_t depth, size_t size, bool accum);

// The block of a record is gone; or has another size. The size that it had.
size_t _mi_profile_table_remove(mi_profile_table_t* table, uint32_t record);
size_t _mi_profile_table_resize(mi_profile_table_t* table, uint32_t record, size_t size);

// Forgets what was counted of blocks whether they live or not.
void _mi_profile_table_reset(mi_profile_table_t* table);

// The stack behind `stack`, or the first if that is NULL; NULL: there is none.
mi_profile_stack_t* _mi_profile_table_next(const mi_profile_table_t* table, const mi_profile_stack_t* stack);

// Gives all memory back; the table is as a new one, but for its budget.
void _mi_profile_table_end(mi_profile_table_t* table);

mi_inline bool _mi_profile_counts_are_zero(const mi_profile_counts_t* counts) {
  return counts->live_objects == 0 && counts->accum_objects == 0;
}
