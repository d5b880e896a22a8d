// Owns: single-thread workloads on the fast paths: random replacement, ping-pong, bulk in both orders.
// May include: bench.h, libc.
// Called by: main.c through churn_workloads.
// Invariants: slots live in static memory, so that the allocator is asked for the measured blocks only.
#include "bench.h"

enum { MAX_SLOTS = 16384 };
typedef struct slot_s {
  void* block;
  size_t size;
  uint64_t tag;
} slot_t;

static slot_t slots[MAX_SLOTS];

// Random replacement: each step frees one random slot and fills it with a new block of the mix.
static uint64_t churn(const size_mix_t* mix, size_t slot_count, size_t steps, uint64_t seed) {
  rng_t r = {seed};
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t random = rng_next(&r);
    slot_t* s = &slots[(random >> 32) & (slot_count - 1)];
    if (s->block != NULL) checked_free(s->block, s->size, s->tag);
    s->size = mix_draw(mix, random);
    s->tag = random;
    s->block = must_malloc(s->size);
    mark(s->block, s->size, random);
    sum += s->size;
  }
  for (size_t i = 0; i < slot_count; i++) {
    if (slots[i].block == NULL) continue;
    sum ^= mix64(slots[i].tag);
    checked_free(slots[i].block, slots[i].size, slots[i].tag);
    slots[i].block = NULL;
  }
  return sum;
}

static uint64_t churn_small(unsigned scale) {
  static size_mix_t mix;
  mix_uniform(&mix, 16, 128);
  return churn(&mix, 8192, scaled(6000000, scale, 20000), 101);
}

static uint64_t churn_mixed(unsigned scale) {
  static size_mix_t mix;
  mix_log_uniform(&mix, 16, 4096);
  return churn(&mix, 8192, scaled(3500000, scale, 20000), 102);
}

static uint64_t churn_medium(unsigned scale) {
  static size_mix_t mix;
  mix_log_uniform(&mix, 4096, 65536);
  return churn(&mix, 512, scaled(1000000, scale, 2000), 103);
}

// One block at a time, of one size for a while: the shortest path there is.
static uint64_t pingpong(unsigned scale) {
  static const size_t sizes[] = {16, 64, 256, 1024};
  size_t rounds = scaled(4000000, scale, 20000);
  uint64_t sum = 0;
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
    for (size_t i = 0; i < rounds; i++) {
      uint64_t* p = must_malloc(sizes[k]);
      *p = i;
      (void)keep(p);
      sum += *p;
      free(p);
    }
  }
  return sum;
}

// Fills many slots and empties them again, last block first or first block first.
static uint64_t bulk(unsigned scale, bool last_first, uint64_t seed) {
  static size_mix_t mix;
  mix_uniform(&mix, 16, 128);
  rng_t r = {seed};
  size_t rounds = scaled(400, scale, 2);
  uint64_t sum = 0;
  for (size_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < MAX_SLOTS; i++) {
      slot_t* s = &slots[i];
      s->tag = rng_next(&r);
      s->size = mix_draw(&mix, s->tag);
      s->block = must_malloc(s->size);
      mark(s->block, s->size, s->tag);
    }
    for (size_t i = 0; i < MAX_SLOTS; i++) {
      slot_t* s = &slots[last_first ? MAX_SLOTS - 1 - i : i];
      sum += s->size;
      checked_free(s->block, s->size, s->tag);
      s->block = NULL;
    }
  }
  return sum;
}

static uint64_t bulk_lifo(unsigned scale) { return bulk(scale, true, 104); }
static uint64_t bulk_fifo(unsigned scale) { return bulk(scale, false, 105); }

const workload_t churn_workloads[] = {
    {"churn-small", churn_small, "random replacement among 8192 slots, 16-128 B"},
    {"churn-mixed", churn_mixed, "random replacement among 8192 slots, 16 B-4 KiB log-uniform"},
    {"churn-medium", churn_medium, "random replacement among 512 slots, 4-64 KiB log-uniform"},
    {"pingpong", pingpong, "malloc and free of one block at a time, 16, 64, 256 and 1024 B"},
    {"bulk-lifo", bulk_lifo, "16384 blocks of 16-128 B, freed last first, repeated"},
    {"bulk-fifo", bulk_fifo, "16384 blocks of 16-128 B, freed first first, repeated"},
    {NULL, NULL, NULL},
};
