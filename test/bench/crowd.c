// Owns: workloads of threads that meet: hand-over of blocks with work on both sides, and crowds of threads over shared slots.
// May include: bench.h, libc, pthread.
// Called by: main.c through crowd_workloads.
// Invariants: sums are commutative and each piece of work has its own random state, so that the checksum does not depend on the schedule; what two threads write lies on cache lines of its own, so that what is measured is the allocator's sharing.
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { LINE = 128,  // two cache lines: processors fetch them in pairs
       MAX_CROWD = 64 };

static size_mix_t mix_of_crowd;

static void start(pthread_t* thread, void* (*run)(void*), void* arg) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 128 * 1024);
  if (pthread_create(thread, &attr, run, arg) != 0) die("no thread could be started");
  pthread_attr_destroy(&attr);
}

// Waits a little without the system, then with it, so that a machine with fewer processors than threads gets on.
static void wait_turn(unsigned* tries) {
  const struct timespec nap = {0, 20000};
  if (++*tries % 4096 == 0) nanosleep(&nap, NULL);
#if defined(__x86_64__) || defined(__i386__)
  else __builtin_ia32_pause();
#endif
}

// ---- hand-over: one side makes a block and works on what goes into it, the other works on what it finds and frees it. The work is
// some 100 ns on each side, as in a program whose stages pass messages: without any, what a second processor takes over costs
// less than the transfer of the block's cache lines to it, and no allocator can gain ----
enum { PARCEL = 256,
       RING = 16,
       WORK = 20 };

typedef struct parcel_s {
  void* block[PARCEL];
  uint32_t size[PARCEL];
} parcel_t;

static struct {
  _Alignas(LINE) atomic_size_t made;
  _Alignas(LINE) atomic_size_t taken;
  _Alignas(LINE) size_t count;
  parcel_t ring[RING];
  uint64_t sum;
} belt;

static uint64_t work(uint64_t x) {
  for (int i = 0; i < WORK; i++) x = mix64(x + 1);
  return x;
}

static void parcel_make(parcel_t* parcel, rng_t* r) {
  for (size_t k = 0; k < PARCEL; k++) {
    uint64_t random = rng_next(r);
    size_t size = mix_draw(&mix_of_crowd, random);
    parcel->size[k] = (uint32_t)size;
    parcel->block[k] = must_malloc(size);
    mark(parcel->block[k], size, work(random));
  }
}

static uint64_t parcel_take(const parcel_t* parcel) {
  uint64_t sum = 0;
  for (size_t k = 0; k < PARCEL; k++) {
    uint64_t tag;
    __builtin_memcpy(&tag, parcel->block[k], sizeof(tag));
    checked_free(parcel->block[k], parcel->size[k], tag);
    sum += work(tag);
  }
  return sum;
}

static void* belt_make(void* arg) {
  rng_t r = {601};
  unsigned tries = 0;
  (void)arg;
  for (size_t i = 0; i < belt.count; i++) {
    while (i - atomic_load_explicit(&belt.taken, memory_order_acquire) == RING) wait_turn(&tries);
    parcel_make(&belt.ring[i % RING], &r);
    atomic_store_explicit(&belt.made, i + 1, memory_order_release);
  }
  return NULL;
}

static void* belt_take(void* arg) {
  uint64_t sum = 0;
  unsigned tries = 0;
  (void)arg;
  for (size_t i = 0; i < belt.count; i++) {
    while (atomic_load_explicit(&belt.made, memory_order_acquire) == i) wait_turn(&tries);
    sum += parcel_take(&belt.ring[i % RING]);
    atomic_store_explicit(&belt.taken, i + 1, memory_order_release);
  }
  belt.sum = sum;
  return NULL;
}

static uint64_t handover_2(unsigned scale) {
  pthread_t maker, taker;
  mix_log_uniform(&mix_of_crowd, 16, 512);
  belt.count = scaled(5000, scale, 40);
  start(&maker, belt_make, NULL);
  start(&taker, belt_take, NULL);
  pthread_join(maker, NULL);
  pthread_join(taker, NULL);
  return belt.sum;
}

// The same work of both sides by one thread.
static uint64_t handover_1(unsigned scale) {
  rng_t r = {601};
  mix_log_uniform(&mix_of_crowd, 16, 512);
  const size_t count = scaled(5000, scale, 40);
  uint64_t sum = 0;
  for (size_t i = 0; i < count + RING; i++) {
    if (i >= RING) sum += parcel_take(&belt.ring[i % RING]);
    if (i < count) parcel_make(&belt.ring[i % RING], &r);
  }
  return sum;
}

// ---- crowds: each thread replaces blocks among its own slots, and one time in eight leaves a block in a slot that all share and
// frees what another left there ----
enum { OWN_SLOTS = 256,
       SHARED_SLOTS = 1024 };

typedef struct crowd_s {
  _Alignas(LINE) pthread_t thread;
  uint64_t seed, sum;
  size_t steps;
  void* block[OWN_SLOTS];
  uint32_t size[OWN_SLOTS];
} crowd_t;

static crowd_t crowd[MAX_CROWD];
static _Alignas(LINE) _Atomic(uint64_t*) shared[SHARED_SLOTS];

// A block that anybody may free says its size itself.
static void shared_free(uint64_t* p) {
  if (p != NULL) checked_free(p, p[0], p[0]);
}

static void* crowd_run(void* arg) {
  crowd_t* c = arg;
  rng_t r = {c->seed};
  uint64_t sum = 0;
  for (size_t i = 0; i < c->steps; i++) {
    uint64_t random = rng_next(&r);
    size_t size = mix_draw(&mix_of_crowd, random);
    void* p = must_malloc(size);
    sum += size ^ random;
    if (random >> 61 == 0) {
      mark(p, size, size);
      shared_free(atomic_exchange_explicit(&shared[(random >> 32) % SHARED_SLOTS], p, memory_order_acq_rel));
      continue;
    }
    size_t k = (random >> 32) % OWN_SLOTS;
    if (c->block[k] != NULL) checked_free(c->block[k], c->size[k], k);
    c->block[k] = p;
    c->size[k] = (uint32_t)size;
    mark(p, size, k);
  }
  for (size_t k = 0; k < OWN_SLOTS; k++) free(c->block[k]);
  c->sum = sum;
  return NULL;
}

static uint64_t crowd_of(unsigned scale, size_t threads) {
  mix_log_uniform(&mix_of_crowd, 16, 1024);
  for (size_t t = 0; t < threads; t++) {
    crowd[t].seed = 611 + t;
    crowd[t].steps = scaled(6400000 / threads, scale, 2000);
    start(&crowd[t].thread, crowd_run, &crowd[t]);
  }
  uint64_t sum = 0;
  for (size_t t = 0; t < threads; t++) {
    pthread_join(crowd[t].thread, NULL);
    sum += crowd[t].sum;
  }
  for (size_t k = 0; k < SHARED_SLOTS; k++) shared_free(shared[k]);
  return sum;
}

static uint64_t crowd_16(unsigned scale) { return crowd_of(scale, 16); }
static uint64_t crowd_64(unsigned scale) { return crowd_of(scale, 64); }

const workload_t crowd_workloads[] = {
    {"handover-1", handover_1, "blocks of 16-512 B made, worked on, worked on again and freed by one thread"},
    {"handover-2", handover_2, "the same work, by one thread up to the hand-over and by another from there on"},
    {"crowd-16", crowd_16, "16 threads replace blocks of 16 B-1 KiB, one in eight through 1024 slots that all share"},
    {"crowd-64", crowd_64, "as much work by 64 threads"},
    {NULL, NULL, NULL},
};
