// Owns: the life of threads: destructor order games, many short threads, small stacks, frees after the allocator's own teardown.
// May include: test/lib, POSIX threads.
// Called by: rows of test/contract/rows.txt.
// Invariants: keys made first are destroyed first in glibc, so keys are made both before and after the first allocation.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <limits.h>
#include <malloc.h>
#include <pthread.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { KEYS = 24 };
static pthread_key_t keys[KEYS];

typedef struct slot_s {
  int rounds;  // how often the destructor has run
  int index;
  void* blocks[8];
} slot_t;

// Every destructor frees what the value holds, allocates anew and comes back until the rounds are used up.
static void destructor(void* value) {
  slot_t* s = (slot_t*)value;
  uint64_t seed = (uint64_t)s->index * 100 + (uint64_t)s->rounds;
  for (size_t i = 0; i < 8; i++) {
    free(s->blocks[i]);
    s->blocks[i] = malloc(1 + mi_test_random(&seed) % (i == 7 ? 100000 : 2000));
    MI_CHECK(s->blocks[i] != NULL);
    memset(s->blocks[i], s->index, 1);
  }
  s->rounds++;
  if (s->rounds < PTHREAD_DESTRUCTOR_ITERATIONS && s->index % 3 != 0) {
    pthread_setspecific(keys[s->index], s);
    return;
  }
  for (size_t i = 0; i < 8; i++) {
    s->blocks[i] = realloc(s->blocks[i], 3000);
    free(s->blocks[i]);
  }
  free(s);
  free(calloc(10, 10));
}

static void* thread_with_keys(void* arg) {
  const uintptr_t n = (uintptr_t)arg;
  // Some threads allocate before they set a value, some after, some never outside the destructors.
  if (n % 3 == 0) free(malloc(100));
  for (int i = 0; i < KEYS; i++) {
    slot_t* s = (slot_t*)calloc(1, sizeof(slot_t));
    MI_REQUIRE(s != NULL);
    s->index = i;
    pthread_setspecific(keys[i], s);
  }
  if (n % 3 == 1) free(malloc(100000));
  return NULL;
}

static void run_batch(void* (*fn)(void*), size_t from, int count, size_t stack) {
  pthread_t t[64];
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (stack != 0) MI_REQUIRE(pthread_attr_setstacksize(&attr, stack) == 0);
  for (int i = 0; i < count; i++) MI_REQUIRE(pthread_create(&t[i], &attr, fn, (void*)(from + (uintptr_t)i)) == 0);
  for (int i = 0; i < count; i++) pthread_join(t[i], NULL);
  pthread_attr_destroy(&attr);
}

// Runs batches up to `end`; returns the most resident memory there was after one. A single look may come just behind a purge.
static size_t run_to(void* (*fn)(void*), size_t* done, size_t end, int batch) {
  size_t most = 0;
  while (*done < end) {
    run_batch(fn, *done, batch, 0);
    *done += (size_t)batch;
    const size_t rss = mi_test_rss();
    most = rss > most ? rss : most;
  }
  return most;
}

// Runs batches and checks that memory and mappings are flat between the first and the last part.
static void flat(void* (*fn)(void*), size_t total, int batch, size_t rss_slack, const char* what) {
  size_t done = 0;
  const size_t rss = run_to(fn, &done, total / 10 * 2, batch);
  const size_t maps = mi_test_mappings(), space = mi_test_address_space();
  (void)run_to(fn, &done, total / 10 * 8, batch);
  const size_t rss2 = run_to(fn, &done, total, batch);
  const size_t maps2 = mi_test_mappings(), space2 = mi_test_address_space();
  MI_CHECK_MSG(rss2 <= rss + rss_slack, "%s: RSS from %zu to %zu KiB", what, rss >> 10, rss2 >> 10);
  MI_CHECK_MSG(maps2 <= maps + 24, "%s: mappings from %zu to %zu", what, maps, maps2);
  MI_CHECK_MSG(space2 <= space + (256 << 20), "%s: address space from %zu to %zu MiB", what, space >> 20, space2 >> 20);
}

MI_TEST(tsd_destructors) {
  // Half of the keys are older than this program's first allocation through us, half younger.
  for (int i = 0; i < KEYS / 2; i++) MI_REQUIRE(pthread_key_create(&keys[i], destructor) == 0);
  free(malloc(1));
  for (int i = KEYS / 2; i < KEYS; i++) MI_REQUIRE(pthread_key_create(&keys[i], destructor) == 0);
  flat(thread_with_keys, 1500, 6, 8 << 20, "keys");
  for (int i = 0; i < KEYS; i++) pthread_key_delete(keys[i]);
}

static void* all_keys_thread(void* arg) {
  (void)arg;
  void* p = malloc(100);
  MI_CHECK(p != NULL);
  free(p);
  return NULL;
}

MI_TEST(no_key_is_left) {
  // The program has taken every key that there is; threads still work.
  static pthread_key_t all[PTHREAD_KEYS_MAX];
  int n = 0;
  while (n < PTHREAD_KEYS_MAX && pthread_key_create(&all[n], NULL) == 0) n++;
  for (uintptr_t i = 0; i < 100; i++) run_batch(all_keys_thread, i, 4, 0);
  for (int i = 0; i < n; i++) pthread_key_delete(all[i]);
}

static void* short_thread(void* arg) {
  const uintptr_t n = (uintptr_t)arg;
  void* p = malloc(16 + n % 500);
  void* q = calloc(1, 2000 + n % 3000);
  MI_CHECK(p && q);
  memset(p, 1, 16);
  p = realloc(p, 700);
  free(p);
  free(q);
  return NULL;
}

MI_TEST(many_short_threads) {
  const size_t n = (size_t)mi_test_scale("MI_TEST_THREADS", 20000);
  flat(short_thread, n, 8, 6 << 20, "short threads");
}

static void* volatile handed[64];

static void* leaving_thread(void* arg) {
  // Leaves live blocks behind, which others free: the pages of the dead must be found again.
  const uintptr_t n = (uintptr_t)arg;
  for (size_t i = 0; i < 64; i++) {
    void* mine = malloc(24 + (n * 7 + i * 131) % 4000);
    MI_CHECK(mine != NULL);
    memset(mine, 1, 24);
    void* old = __atomic_exchange_n(&handed[i], mine, __ATOMIC_ACQ_REL);
    free(old);
  }
  return NULL;
}

MI_TEST(threads_that_leave_blocks) {
  flat(leaving_thread, 6000, 6, 12 << 20, "blocks left behind");
  for (size_t i = 0; i < 64; i++) free(handed[i]);
}

static void* passive_thread(void* arg) {
  // Only frees: never allocates by itself.
  free(arg);
  return NULL;
}

MI_TEST(threads_that_only_free) {
  for (int round = 0; round < 2; round++) {
    const size_t rss = mi_test_rss(), maps = mi_test_mappings();
    for (int i = 0; i < 3000; i++) {
      pthread_t t;
      void* p = malloc(1000);
      MI_REQUIRE(p != NULL);
      memset(p, 1, 1000);
      MI_REQUIRE(pthread_create(&t, NULL, passive_thread, p) == 0);
      pthread_join(t, NULL);
    }
    // The first round warms up.
    if (round == 0) continue;
    MI_CHECK_MSG(mi_test_rss() <= rss + (4 << 20), "RSS from %zu to %zu KiB", rss >> 10, mi_test_rss() >> 10);
    MI_CHECK_MSG(mi_test_mappings() <= maps + 16, "mappings from %zu to %zu", maps, mi_test_mappings());
  }
}

static void* small_stack_thread(void* arg) {
  (void)arg;
  static const size_t sizes[] = {1, 100, 5000, 70000, 600000, 5000000, 50000000};
  for (int round = 0; round < 3; round++) {
    void* kept[7];
    for (int i = 0; i < 7; i++) {
      char* p = (char*)malloc(mi_test_hide_size(sizes[i]));
      char* q = (char*)calloc(1, mi_test_hide_size(sizes[i]));
      char* r = (char*)aligned_alloc(4096, mi_test_hide_size(sizes[i]));
      MI_CHECK(p && q && r);
      p[0] = q[0] = r[0] = 1;
      p = (char*)realloc(p, sizes[i] * 2);
      MI_CHECK(p != NULL);
      MI_CHECK(malloc_usable_size(p) >= sizes[i] * 2);
      free(q);
      free(r);
      kept[i] = p;
    }
    for (int i = 0; i < 7; i++) free(kept[i]);
  }
  MI_CHECK(malloc(mi_test_hide_size(SIZE_MAX / 2)) == NULL);
  malloc_trim(0);
  return NULL;
}

MI_TEST(small_stack) {
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  run_batch(small_stack_thread, 0, 1, least > 0 ? (size_t)least : (size_t)PTHREAD_STACK_MIN);
  run_batch(small_stack_thread, 0, 4, least > 0 ? (size_t)least : (size_t)PTHREAD_STACK_MIN);
}

static void* canceled_thread(void* arg) {
  (void)arg;
  for (;;) {
    free(malloc(100));
    pthread_testcancel();
  }
  return NULL;
}

MI_TEST(canceled_threads) {
  // No cancellation point stands inside the allocator, so a deferred cancel never leaves it half way.
  for (int i = 0; i < 200; i++) {
    pthread_t t;
    MI_REQUIRE(pthread_create(&t, NULL, canceled_thread, NULL) == 0);
    pthread_cancel(t);
    void* result = NULL;
    pthread_join(t, &result);
    MI_CHECK(result == PTHREAD_CANCELED);
  }
  free(malloc(100));
}

MI_TEST_MAIN()
