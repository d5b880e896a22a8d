// Owns: chunks, the hash table of stacks, and the records.
// May include: base, sys.
// Called by: through table.h.
// Invariants: a stack stands in one bucket, or in one list of unused ones; the counts of a stack are the sums of its records,
// and of what was counted for good.
#include "src/profile/table.h"

#include <string.h>

#include "src/base/bits.h"

enum {
  MI_PROFILE_BUCKETS = 4096,
  MI_PROFILE_ROOM_UNIT = 8,
  MI_PROFILE_RECORD_CHUNKS = 2048,
  MI_PROFILE_RECORDS_PER_CHUNK = (MI_PROFILE_CHUNK_SIZE - (int)sizeof(mi_profile_chunk_t)) / (int)sizeof(mi_profile_record_t),
  // When there is no place for another stack those without a count are taken out, if they are one in so many at least: a walk
  // over all of them is then paid for by as many samples.
  MI_PROFILE_IDLE_SHARE = 16,
};

_Static_assert(MI_PROFILE_BUCKETS * sizeof(void*) + MI_PROFILE_RECORD_CHUNKS * sizeof(void*) <= MI_PROFILE_CHUNK_SIZE - sizeof(mi_profile_chunk_t),
               "the tables fit in the first chunk");

// Memory

static void* mi_profile_chunk(mi_profile_table_t* table) {
  if (table->budget != 0 && table->committed + MI_PROFILE_CHUNK_SIZE > table->budget) {
    return NULL;
  }
  mi_os_block_t os;
  mi_profile_chunk_t* const chunk = _mi_os_reserve_aligned(_mi_align_up(MI_PROFILE_CHUNK_SIZE, _mi_os_page_size()), _mi_os_page_size(), 0, true, &os);
  if (chunk == NULL) {
    return NULL;
  }
  chunk->os = os;
  chunk->next = table->chunks;
  table->chunks = chunk;
  table->committed += MI_PROFILE_CHUNK_SIZE;
  return chunk + 1;
}

// Zeroed at first, and never given back one by one.
static void* mi_profile_bump(mi_profile_table_t* table, size_t size) {
  if ((size_t)(table->bump_end - table->bump) < size) {
    uint8_t* const chunk = mi_profile_chunk(table);
    if (chunk == NULL) {
      return NULL;
    }
    table->bump = chunk;
    table->bump_end = chunk + (MI_PROFILE_CHUNK_SIZE - sizeof(mi_profile_chunk_t));
  }
  void* const p = table->bump;
  table->bump += size;
  return p;
}

static bool mi_profile_prepare(mi_profile_table_t* table) {
  if (table->buckets != NULL) {
    return true;
  }
  mi_profile_stack_t** const buckets = mi_profile_bump(table, MI_PROFILE_BUCKETS * sizeof(void*));
  if (buckets == NULL) {
    return false;
  }
  table->record_chunks = mi_profile_bump(table, MI_PROFILE_RECORD_CHUNKS * sizeof(void*));
  table->buckets = buckets;
  return true;
}

void _mi_profile_table_end(mi_profile_table_t* table) {
  mi_profile_chunk_t* next;
  for (mi_profile_chunk_t* chunk = table->chunks; chunk != NULL; chunk = next) {
    next = chunk->next;
    mi_os_block_t os = chunk->os;
    _mi_os_release(&os);
  }
  const size_t budget = table->budget;
  memset(table, 0, sizeof(*table));
  table->budget = budget;
}

// Stacks

// Wraps: it mixes.
static mi_wraps uint32_t mi_profile_hash(const uintptr_t* calls, size_t depth) {
  uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
  for (size_t i = 0; i < depth; i++) {
    hash = (hash ^ calls[i]) * UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 32;
  }
  return (uint32_t)hash;
}

static mi_profile_stack_t* mi_profile_find(const mi_profile_table_t* table, uint32_t hash, const uintptr_t* calls, size_t depth) {
  mi_profile_stack_t* stack = table->buckets[hash % MI_PROFILE_BUCKETS];
  for (; stack != NULL; stack = stack->next) {
    if (stack->hash == hash && stack->depth == depth && memcmp(stack->calls, calls, depth * sizeof(calls[0])) == 0) {
      return stack;
    }
  }
  return NULL;
}

// Makes what is not counted for any more available to others.
static void mi_profile_reuse_idle(mi_profile_table_t* table) {
  if (table->idle_stacks == 0 || table->idle_stacks < table->stacks / MI_PROFILE_IDLE_SHARE) {
    return;
  }
  for (size_t i = 0; i < MI_PROFILE_BUCKETS; i++) {
    mi_profile_stack_t** link = &table->buckets[i];
    while (*link != NULL) {
      mi_profile_stack_t* const stack = *link;
      if (!_mi_profile_counts_are_zero(&stack->counts)) {
        link = &stack->next;
        continue;
      }
      *link = stack->next;
      mi_profile_stack_t** const unused = &table->unused_stacks[stack->room / MI_PROFILE_ROOM_UNIT];
      stack->next = *unused;
      *unused = stack;
      table->stacks--;
    }
  }
  table->idle_stacks = 0;
}

static mi_profile_stack_t* mi_profile_new_stack(mi_profile_table_t* table, size_t depth) {
  const size_t room = _mi_align_up(_mi_max(depth, 1), MI_PROFILE_ROOM_UNIT);
  mi_profile_stack_t** const unused = &table->unused_stacks[room / MI_PROFILE_ROOM_UNIT];
  if (table->stacks == MI_PROFILE_STACKS_MAX) {
    mi_profile_reuse_idle(table);
    if (table->stacks == MI_PROFILE_STACKS_MAX) {
      table->overflows++;
      return NULL;
    }
  }
  mi_profile_stack_t* stack = *unused;
  if (stack == NULL) {
    stack = mi_profile_bump(table, sizeof(*stack) + room * sizeof(stack->calls[0]));
  }
  if (stack == NULL) {
    mi_profile_reuse_idle(table);
    stack = *unused;
  }
  if (stack != NULL) {
    *unused = stack == *unused ? stack->next : *unused;
    memset(stack, 0, sizeof(*stack));
    stack->room = (uint32_t)room;
    table->stacks++;
    table->idle_stacks++;
  }
  return stack;
}

static mi_profile_stack_t* mi_profile_intern(mi_profile_table_t* table, const uintptr_t* calls, size_t depth) {
  const uint32_t hash = mi_profile_hash(calls, depth);
  mi_profile_stack_t* stack = mi_profile_find(table, hash, calls, depth);
  if (stack != NULL) {
    return stack;
  }
  stack = mi_profile_new_stack(table, depth);
  if (stack != NULL) {
    stack->hash = hash;
    stack->depth = (uint32_t)depth;
    memcpy(stack->calls, calls, depth * sizeof(calls[0]));
    stack->next = table->buckets[hash % MI_PROFILE_BUCKETS];
    table->buckets[hash % MI_PROFILE_BUCKETS] = stack;
  }
  return stack;
}

mi_profile_stack_t* _mi_profile_table_next(const mi_profile_table_t* table, const mi_profile_stack_t* stack) {
  if (table->buckets == NULL) {
    return NULL;
  }
  if (stack != NULL && stack->next != NULL) {
    return stack->next;
  }
  for (size_t i = stack == NULL ? 0 : stack->hash % MI_PROFILE_BUCKETS + 1; i < MI_PROFILE_BUCKETS; i++) {
    if (table->buckets[i] != NULL) {
      return table->buckets[i];
    }
  }
  return NULL;
}

// Records

static mi_profile_record_t* mi_profile_record(const mi_profile_table_t* table, uint32_t record) {
  const uint32_t index = record - 1;
  return &table->record_chunks[index / MI_PROFILE_RECORDS_PER_CHUNK][index % MI_PROFILE_RECORDS_PER_CHUNK];
}

static uint32_t mi_profile_new_record(mi_profile_table_t* table) {
  const uint32_t unused = table->unused_record;
  if (unused != 0) {
    table->unused_record = mi_profile_record(table, unused)->next_unused;
    return unused;
  }
  const uint32_t chunk = table->record_count / MI_PROFILE_RECORDS_PER_CHUNK;
  if (table->record_count % MI_PROFILE_RECORDS_PER_CHUNK == 0) {
    if (chunk == MI_PROFILE_RECORD_CHUNKS || (table->record_chunks[chunk] = mi_profile_chunk(table)) == NULL) {
      return 0;
    }
  }
  return ++table->record_count;
}

// Counts, or with -1 takes off, one block. Wraps, as the next two: what is added may be a negative number.
static mi_wraps void mi_profile_count(mi_profile_counts_t* counts, size_t objects, size_t bytes, bool accum) {
  counts->live_objects += objects;
  counts->live_bytes += bytes;
  if (accum) {
    counts->accum_objects += objects;
    counts->accum_bytes += bytes;
  }
}

uint32_t _mi_profile_table_add(mi_profile_table_t* table, const uintptr_t* calls, size_t depth, size_t size, bool accum) {
  mi_profile_stack_t* const stack = mi_profile_prepare(table) ? mi_profile_intern(table, calls, depth) : NULL;
  const uint32_t record = stack == NULL ? 0 : mi_profile_new_record(table);
  if (record == 0) {
    table->dropped++;
    return 0;
  }
  table->idle_stacks -= _mi_profile_counts_are_zero(&stack->counts);
  table->records++;
  mi_profile_count(&stack->counts, 1, size, accum);
  mi_profile_count(&table->sum, 1, size, accum);
  *mi_profile_record(table, record) = (mi_profile_record_t){.stack = stack, .size = size};
  return record;
}

mi_wraps size_t _mi_profile_table_remove(mi_profile_table_t* table, uint32_t record) {
  mi_profile_record_t* const entry = mi_profile_record(table, record);
  mi_profile_stack_t* const stack = entry->stack;
  const size_t size = entry->size;
  mi_profile_count(&stack->counts, (size_t)-1, (size_t)0 - size, false);
  mi_profile_count(&table->sum, (size_t)-1, (size_t)0 - size, false);
  table->idle_stacks += _mi_profile_counts_are_zero(&stack->counts);
  table->records--;
  *entry = (mi_profile_record_t){.stack = NULL, .next_unused = table->unused_record};
  table->unused_record = record;
  return size;
}

mi_wraps size_t _mi_profile_table_resize(mi_profile_table_t* table, uint32_t record, size_t size) {
  mi_profile_record_t* const entry = mi_profile_record(table, record);
  const size_t before = entry->size;
  mi_profile_count(&entry->stack->counts, 0, size - before, false);
  mi_profile_count(&table->sum, 0, size - before, false);
  entry->size = size;
  return before;
}

void _mi_profile_table_reset(mi_profile_table_t* table) {
  mi_profile_stack_t* stack = NULL;
  while ((stack = _mi_profile_table_next(table, stack)) != NULL) {
    const bool counted = !_mi_profile_counts_are_zero(&stack->counts);
    stack->counts.accum_objects = 0;
    stack->counts.accum_bytes = 0;
    table->idle_stacks += counted && _mi_profile_counts_are_zero(&stack->counts);
  }
  table->sum.accum_objects = 0;
  table->sum.accum_bytes = 0;
}
