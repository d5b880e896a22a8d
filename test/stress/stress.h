// Owns: the stress that every set of names is put to: many threads, frees across threads, contents checked, threads coming and going.
// May include: test/lib, POSIX threads.
// Called by: test/stress/plain.c and test/stress/mi.c, each with its table of names.
// Invariants: free of data races by itself: a block passes from thread to thread only by acquire-release exchange, so it runs under ThreadSanitizer.
#pragma once

#include <pthread.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

typedef struct stress_names_s {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  void* (*aligned)(size_t align, size_t size);
  size_t (*usable)(void*);
} stress_names_t;

// The program's table.
static const stress_names_t stress_names;

enum { STRESS_THREADS = 8,
       STRESS_SLOTS = 1024,
       STRESS_RING = 256 };

// What begins every block: enough to check the rest.
typedef struct stress_block_s {
  uint64_t key;
  size_t size;
} stress_block_t;

static stress_block_t* stress_slots[STRESS_SLOTS];
static int stress_stop;

static uint64_t stress_deadline(void) { return mi_test_now_ms() + (uint64_t)mi_test_scale("MI_TEST_MS", 1200); }

// Mostly small, some medium, a few large.
static size_t stress_size(uint64_t r) {
  const size_t n = (size_t)(r >> 16);
  switch (r % 64) {
    case 0: return sizeof(stress_block_t) + n % 1500000;
    case 1:
    case 2: return sizeof(stress_block_t) + n % 100000;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7: return sizeof(stress_block_t) + n % 9000;
    default: return sizeof(stress_block_t) + n % 600;
  }
}

// A large block is checked at its ends only, to leave time for operations.
static size_t stress_checked(size_t size) { return (size > 8192 ? 2048 : size) - sizeof(stress_block_t); }

static void stress_fill(stress_block_t* b, size_t size, uint64_t key) {
  b->key = key;
  b->size = size;
  mi_test_fill(b + 1, stress_checked(size), key);
  ((unsigned char*)b)[size - 1] = (unsigned char)(size > 8192 ? key : ((unsigned char*)b)[size - 1]);
}

static void stress_verify(const stress_block_t* b) {
  const size_t size = b->size;
  MI_CHECK_MSG(mi_test_filled(b + 1, stress_checked(size), b->key), "block %p of %zu bytes was spoiled", (const void*)b, size);
  if (size > 8192) MI_CHECK(((const unsigned char*)b)[size - 1] == (unsigned char)b->key);
}

static stress_block_t* stress_new(uint64_t* seed) {
  const uint64_t r = mi_test_random(seed);
  const size_t size = stress_size(mi_test_random(seed));
  stress_block_t* b = NULL;
  switch (r % 8) {
    case 0:
      b = (stress_block_t*)stress_names.calloc(1, size);
      if (b != NULL) MI_CHECK(mi_test_all_bytes(b, size < 8192 ? size : 8192, 0) && b->key == 0);
      break;
    case 1: {
      const size_t align = (size_t)8 << (r >> 8) % 10;
      b = (stress_block_t*)stress_names.aligned(align, size);
      MI_CHECK(((uintptr_t)b & (align - 1)) == 0);
      break;
    }
    case 2:
      b = (stress_block_t*)stress_names.realloc(stress_names.malloc(size / 2 + 1), size);
      break;
    default:
      b = (stress_block_t*)stress_names.malloc(size);
      break;
  }
  MI_REQUIRE(b != NULL);
  stress_fill(b, size, r);
  return b;
}

static void stress_delete(stress_block_t* b) {
  if (b == NULL) return;
  stress_verify(b);
  MI_CHECK(stress_names.usable(b) >= b->size);
  stress_names.free(b);
}

static void stress_some_steps(uint64_t* seed, int steps) {
  for (int i = 0; i < steps; i++) {
    stress_block_t* b = stress_new(seed);
    const uint64_t r = mi_test_random(seed);
    b = __atomic_exchange_n(&stress_slots[r % STRESS_SLOTS], b, __ATOMIC_ACQ_REL);
    if (b != NULL && (r >> 32) % 16 == 0) {
      // Another thread's block grows or shrinks here.
      stress_verify(b);
      const uint64_t key = b->key;
      const size_t old = b->size, size = stress_size(mi_test_random(seed));
      b = (stress_block_t*)stress_names.realloc(b, size);
      MI_REQUIRE(b != NULL);
      const size_t kept = old < size ? old : size;
      if (old <= 8192 && kept >= sizeof(stress_block_t) + 8) MI_CHECK(mi_test_filled(b + 1, (kept - sizeof(stress_block_t)) & ~(size_t)7, key));
      stress_fill(b, size, key + 1);
    }
    stress_delete(b);
  }
}

static void stress_clear(void) {
  for (size_t i = 0; i < STRESS_SLOTS; i++) stress_delete(__atomic_exchange_n(&stress_slots[i], NULL, __ATOMIC_ACQ_REL));
}

static void* stress_exchanger(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!__atomic_load_n(&stress_stop, __ATOMIC_RELAXED)) stress_some_steps(&seed, 64);
  return NULL;
}

static void* stress_short(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  stress_some_steps(&seed, 200);
  return NULL;
}

MI_TEST(exchange) {
  pthread_t t[STRESS_THREADS];
  __atomic_store_n(&stress_stop, 0, __ATOMIC_RELAXED);
  for (uintptr_t i = 0; i < STRESS_THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, stress_exchanger, (void*)(i + 1)) == 0);
  const uint64_t end = stress_deadline();
  while (mi_test_now_ms() < end) mi_test_sleep_ms(20);
  __atomic_store_n(&stress_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < STRESS_THREADS; i++) pthread_join(t[i], NULL);
  stress_clear();
}

MI_TEST(threads_come_and_go) {
  // Every thread leaves blocks in the slots that later ones check and free.
  const uint64_t end = stress_deadline();
  for (uintptr_t round = 0; mi_test_now_ms() < end; round++) {
    pthread_t t[STRESS_THREADS];
    for (uintptr_t i = 0; i < STRESS_THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, stress_short, (void*)(round * 100 + i)) == 0);
    for (int i = 0; i < STRESS_THREADS; i++) pthread_join(t[i], NULL);
  }
  stress_clear();
}

// One slot each way between neighbours in a circle: all blocks are freed by the next thread.
typedef struct stress_ring_s {
  stress_block_t* cell[STRESS_RING];
} stress_ring_t;
static stress_ring_t stress_rings[STRESS_THREADS];

static void* stress_neighbour(void* arg) {
  const uintptr_t me = (uintptr_t)arg;
  uint64_t seed = me + 77;
  stress_ring_t* mine = &stress_rings[me];
  stress_ring_t* next = &stress_rings[(me + 1) % STRESS_THREADS];
  for (size_t i = 0; !__atomic_load_n(&stress_stop, __ATOMIC_RELAXED); i++) {
    stress_block_t* b = stress_new(&seed);
    // What could not be handed on, because the neighbour is slow, is freed here.
    stress_delete(__atomic_exchange_n(&next->cell[i % STRESS_RING], b, __ATOMIC_ACQ_REL));
    for (size_t k = 0; k < 2; k++) stress_delete(__atomic_exchange_n(&mine->cell[(i * 2 + k) % STRESS_RING], NULL, __ATOMIC_ACQ_REL));
  }
  return NULL;
}

MI_TEST(ring) {
  pthread_t t[STRESS_THREADS];
  __atomic_store_n(&stress_stop, 0, __ATOMIC_RELAXED);
  for (uintptr_t i = 0; i < STRESS_THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, stress_neighbour, (void*)i) == 0);
  const uint64_t end = stress_deadline();
  while (mi_test_now_ms() < end) mi_test_sleep_ms(20);
  __atomic_store_n(&stress_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < STRESS_THREADS; i++) pthread_join(t[i], NULL);
  for (size_t i = 0; i < STRESS_THREADS; i++) {
    for (size_t k = 0; k < STRESS_RING; k++) stress_delete(__atomic_exchange_n(&stress_rings[i].cell[k], NULL, __ATOMIC_ACQ_REL));
  }
}

// One thread makes, all others free the same size: the hot spot of a page's remote free list.
static void* stress_remote(void* arg) {
  (void)arg;
  while (!__atomic_load_n(&stress_stop, __ATOMIC_RELAXED)) {
    for (size_t i = 0; i < STRESS_SLOTS; i++) stress_delete(__atomic_exchange_n(&stress_slots[i], NULL, __ATOMIC_ACQ_REL));
  }
  return NULL;
}

MI_TEST(one_page_freed_by_all) {
  pthread_t t[STRESS_THREADS - 1];
  __atomic_store_n(&stress_stop, 0, __ATOMIC_RELAXED);
  for (uintptr_t i = 0; i < STRESS_THREADS - 1; i++) MI_REQUIRE(pthread_create(&t[i], NULL, stress_remote, (void*)i) == 0);
  const uint64_t end = stress_deadline();
  for (size_t i = 0; mi_test_now_ms() < end;) {
    for (int k = 0; k < 1000; k++, i++) {
      stress_block_t* b = (stress_block_t*)stress_names.malloc(64);
      MI_REQUIRE(b != NULL);
      stress_fill(b, 64, i);
      stress_delete(__atomic_exchange_n(&stress_slots[i % STRESS_SLOTS], b, __ATOMIC_ACQ_REL));
    }
  }
  __atomic_store_n(&stress_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < STRESS_THREADS - 1; i++) pthread_join(t[i], NULL);
  stress_clear();
}
