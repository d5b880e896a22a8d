// Owns: sub-processes in a program whose malloc is replaced: what the C library and the program allocate in them, and forks.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt; the names are looked up in whatever library is preloaded.
// Invariants: declares what it uses by itself, so that it also checks the binary interface.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>

#include "test/lib/child.h"
#include "test/lib/test.h"

enum { WORKERS = 4,
       SLOTS = 128,
       ROUNDS = 12,
       STEPS = 700,
       CHILD_MS = 10000 };

typedef struct subproc_s {
  void* id;
} subproc_t;

typedef void deferred_t(bool force, unsigned long long heartbeat, void* arg);

extern subproc_t mi_subproc_new(void) __attribute__((weak));
extern subproc_t mi_subproc_main(void) __attribute__((weak));
extern subproc_t mi_subproc_current(void) __attribute__((weak));
extern void mi_subproc_add_current_thread(subproc_t subproc) __attribute__((weak));
extern void mi_subproc_delete(subproc_t subproc) __attribute__((weak));
extern void mi_subproc_destroy(subproc_t subproc) __attribute__((weak));
extern bool mi_subproc_visit_heaps(subproc_t subproc, bool (*visit)(void* heap, void* arg), void* arg) __attribute__((weak));
extern void* mi_malloc(size_t size) __attribute__((weak));
extern void mi_register_deferred_free(deferred_t* fun, void* arg) __attribute__((weak));

static void* shared[SLOTS];  // exchanged atomically, by threads of all sub-processes

static void churn(uint64_t* seed, int steps) {
  for (int i = 0; i < steps; i++) {
    const uint64_t r = mi_test_random(seed);
    const size_t n = 1 + (size_t)(r >> 16) % (r % 200 == 0 ? 1500000 : (r % 16 == 0 ? 40000 : 900));
    void* p = malloc(n);
    MI_REQUIRE(p != NULL);
    memset(p, 1, n < 64 ? n : 64);
    free(__atomic_exchange_n(&shared[r % SLOTS], p, __ATOMIC_ACQ_REL));
  }
}

static pthread_key_t key;

static void free_late(void* p) {
  free(p);
  free(malloc(100));
}

static void* work_in_one(void* arg) {
  const subproc_t id = {arg};
  uint64_t seed = (uintptr_t)arg;
  mi_subproc_add_current_thread(id);
  MI_CHECK_PTR_EQ(mi_subproc_current().id, id.id);
  pthread_setspecific(key, malloc(1000));
  char* s = strdup("a string");
  FILE* f = fopen("/dev/null", "w");
  MI_REQUIRE(s != NULL && f != NULL);
  fprintf(f, "%s %d", s, 1);
  fclose(f);
  free(s);
  churn(&seed, STEPS);
  return NULL;
}

static bool exists(void* heap, void* arg) {
  *(bool*)arg = heap != NULL;
  return false;
}

// Threads come and go in sub-processes and free each other's blocks; in the end nothing is left and they can be deleted.
MI_TEST(threads_in_many) {
  MI_REQUIRE(pthread_key_create(&key, &free_late) == 0);
  for (int round = 0; round < ROUNDS; round++) {
    subproc_t ids[WORKERS / 2];
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS / 2; i++) MI_REQUIRE((ids[i] = mi_subproc_new()).id != NULL);
    for (int i = 0; i < WORKERS; i++) {
      MI_REQUIRE(pthread_create(&threads[i], NULL, &work_in_one, ids[i / 2].id) == 0);
    }
    for (int i = 0; i < WORKERS; i++) MI_REQUIRE(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++) free(__atomic_exchange_n(&shared[i], NULL, __ATOMIC_ACQ_REL));
    for (int i = 0; i < WORKERS / 2; i++) {
      bool there = false;
      // This thread holds blocks of them back where freed blocks wait; destroyed, they are gone all the same.
      mi_subproc_destroy(ids[i]);
      (void)mi_subproc_visit_heaps(ids[i], &exists, &there);
      MI_CHECK(!there);
    }
  }
}

static void child(void* arg) {
  const subproc_t* const id = arg;
  uint64_t seed = 7;
  MI_CHECK_PTR_EQ(mi_subproc_current().id, id->id);
  churn(&seed, STEPS);
  work_in_one(id->id);
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &work_in_one, mi_subproc_main().id) == 0);
  pthread_join(thread, NULL);
}

static void* fork_in_one(void* arg) {
  subproc_t id = {arg};
  mi_subproc_add_current_thread(id);
  for (int i = 0; i < 5; i++) MI_CHECK_IN_CHILD(&child, &id, CHILD_MS);
  return NULL;
}

static volatile bool stop;

static void* churn_on(void* arg) {
  const subproc_t id = {arg};
  uint64_t seed = 3;
  mi_subproc_add_current_thread(id);
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) churn(&seed, 50);
  return NULL;
}

// A thread forks in a sub-process while others allocate in this and another one.
MI_TEST(forks) {
  const subproc_t a = mi_subproc_new(), b = mi_subproc_new();
  pthread_t churners[2], forker;
  if (key == 0) MI_REQUIRE(pthread_key_create(&key, &free_late) == 0);
  MI_REQUIRE(pthread_create(&churners[0], NULL, &churn_on, a.id) == 0);
  MI_REQUIRE(pthread_create(&churners[1], NULL, &churn_on, b.id) == 0);
  MI_REQUIRE(pthread_create(&forker, NULL, &fork_in_one, a.id) == 0);
  pthread_join(forker, NULL);
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  pthread_join(churners[0], NULL);
  pthread_join(churners[1], NULL);
}

static void* stay_without(void* arg) {
  pthread_barrier_t* const barrier = (pthread_barrier_t*)arg;
  const subproc_t id = mi_subproc_new();
  mi_subproc_add_current_thread(id);
  for (size_t n = 1; n < 5000000; n *= 3) MI_CHECK(mi_malloc(n) != NULL);
  mi_subproc_destroy(id);
  pthread_barrier_wait(barrier);
  // It ends in the main sub-process, having allocated there or not.
  return NULL;
}

MI_TEST(threads_outlive_theirs) {
  for (int i = 0; i < 50; i++) {
    pthread_barrier_t barrier;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    MI_REQUIRE(pthread_create(&thread, NULL, &stay_without, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
  }
}

// A program that puts its frees off until it is asked.

static void* put_off[SLOTS];
static unsigned long long last_heartbeat;

static void free_what_was_put_off(bool force, unsigned long long heartbeat, void* arg) {
  (void)arg;
  MI_CHECK_EQ(heartbeat, last_heartbeat + 1);
  last_heartbeat = heartbeat;
  for (int i = 0; i < (force ? SLOTS : SLOTS / 4); i++) {
    free(put_off[i]);
    put_off[i] = NULL;
  }
}

MI_TEST(deferred_frees) {
  uint64_t seed = 5;
  mi_register_deferred_free(&free_what_was_put_off, NULL);
  for (int i = 0; i < 20000; i++) {
    void** const slot = &put_off[mi_test_random(&seed) % SLOTS];
    if (*slot == NULL) MI_REQUIRE((*slot = malloc(1 + mi_test_random(&seed) % 20000)) != NULL);
    free(malloc(1 + mi_test_random(&seed) % 1000000));
  }
  MI_CHECK_MSG(last_heartbeat > 20, "called %llu times", last_heartbeat);
  mi_register_deferred_free(NULL, NULL);
}

MI_TEST_MAIN()
