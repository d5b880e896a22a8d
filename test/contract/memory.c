// Owns: what is freed comes back: resident memory after frees, producers and consumers, alternating sizes, addresses once used.
// May include: test/lib, POSIX threads.
// Called by: rows of test/contract/rows.txt, most with MIMALLOC_PURGE_DELAY=100.
// Invariants: figures are the kernel's; a bound is the contract's and not what the allocator happens to reach.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { MIB = 1 << 20 };

static long delay_ms(void) { return mi_test_scale("MIMALLOC_PURGE_DELAY", 1000); }

static void touch(void* p, size_t n) {
  for (size_t i = 0; i < n; i += 4096) ((char*)p)[i] = 1;
  if (n > 0) ((char*)p)[n - 1] = 1;
}

static void* one_call(void* arg) {
  free(malloc(100));
  free(malloc(100000));
  return arg;
}

static size_t rss_after_purge(bool by_other_thread) {
  // The delay may be counted with a coarse clock.
  mi_test_sleep_ms(delay_ms() + 30);
  if (by_other_thread) {
    pthread_t t;
    MI_REQUIRE(pthread_create(&t, NULL, one_call, NULL) == 0);
    pthread_join(t, NULL);
  } else {
    one_call(NULL);
  }
  return mi_test_rss();
}

// Fills `total` bytes with blocks of n bytes, frees them all and looks what is left.
static void comes_back(size_t n, size_t total, bool by_other_thread) {
  const size_t count = total / n;
  void** p = (void**)malloc(count * sizeof(void*));
  MI_REQUIRE(p != NULL);
  memset(p, 0, count * sizeof(void*));
  const size_t base = mi_test_rss();
  for (size_t i = 0; i < count; i++) {
    p[i] = malloc(n);
    MI_REQUIRE(p[i] != NULL);
    touch(p[i], n);
  }
  const size_t peak = mi_test_rss();
  MI_CHECK_MSG(peak >= base + total / 2, "blocks of %zu: peak %zu KiB over base %zu KiB", n, peak >> 10, base >> 10);
  for (size_t i = 0; i < count; i++) free(p[i]);
  const size_t left = rss_after_purge(by_other_thread);
  MI_CHECK_MSG(left <= base + total / 16 + 2 * MIB, "blocks of %zu: %zu KiB remain over the base of %zu (peak %zu)%s", n, (left - base) >> 10, base >> 10, peak >> 10,
               by_other_thread ? ", after a call of another thread" : "");
  free(p);
}

MI_TEST(freed_memory_returns) {
  static const size_t sizes[] = {48, 1000, 4096, 10000, 40000, 100000, 300000, 1000000, 8 * MIB, 64 * MIB};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) comes_back(sizes[i], 128 * MIB, false);
}

MI_TEST(freed_memory_returns_by_another_thread) {
  comes_back(300, 64 * MIB, true);
  comes_back(100000, 64 * MIB, true);
  comes_back(5 * MIB, 64 * MIB, true);
}

static void* filling_thread(void* arg) {
  (void)arg;
  enum { COUNT = 20000 };
  void** p = (void**)calloc(COUNT, sizeof(void*));
  MI_REQUIRE(p != NULL);
  for (size_t i = 0; i < COUNT; i++) {
    p[i] = malloc(3000);
    MI_REQUIRE(p[i] != NULL);
    touch(p[i], 3000);
  }
  return p;
}

MI_TEST(memory_of_ended_threads_returns) {
  // The blocks outlive their thread; main frees them.
  free(malloc(100));
  for (int round = 0; round < 3; round++) {
    const size_t base = mi_test_rss();
    pthread_t t;
    void* result = NULL;
    MI_REQUIRE(pthread_create(&t, NULL, filling_thread, NULL) == 0);
    pthread_join(t, &result);
    void** p = (void**)result;
    for (size_t i = 0; i < 20000; i++) free(p[i]);
    free(p);
    const size_t left = rss_after_purge(false);
    MI_CHECK_MSG(left <= base + 8 * MIB, "round %d: %zu KiB remain over %zu", round, (left - base) >> 10, base >> 10);
  }
}

// ---- producer and consumer

enum { QUEUE = 8192 };
typedef struct pipe_s {
  pthread_mutex_t lock;
  pthread_cond_t room, work;
  void* items[QUEUE];
  size_t count;
  size_t live_bytes, live_peak;  // counted by the producer and the consumer, of what was asked for
  bool random_order, consumer_allocates, over;
  size_t size;
} pipe_t;

static size_t block_size(void* p) { return *(size_t*)p; }

static void* consumer(void* arg) {
  pipe_t* q = (pipe_t*)arg;
  uint64_t seed = 5;
  if (q->consumer_allocates) free(malloc(1));
  for (;;) {
    pthread_mutex_lock(&q->lock);
    // Frees in random order need a full queue to choose from.
    const size_t least = q->random_order ? QUEUE / 2 : 1;
    while (q->count < least && !q->over) pthread_cond_wait(&q->work, &q->lock);
    if (q->count == 0) {
      pthread_mutex_unlock(&q->lock);
      return NULL;
    }
    const size_t i = q->random_order ? mi_test_random(&seed) % q->count : q->count - 1;
    void* p = q->items[i];
    q->items[i] = q->items[--q->count];
    q->live_bytes -= block_size(p);
    pthread_cond_signal(&q->room);
    pthread_mutex_unlock(&q->lock);
    free(p);
  }
}

static void produce(pipe_t* q, size_t blocks, const char* what) {
  memset(q->items, 0, sizeof(q->items));
  q->count = q->live_bytes = q->live_peak = 0;
  q->over = false;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->room, NULL);
  pthread_cond_init(&q->work, NULL);
  free(malloc(100));
  const size_t base = mi_test_rss();
  size_t peak = 0;
  uint64_t seed = 11;
  pthread_t t;
  MI_REQUIRE(pthread_create(&t, NULL, consumer, q) == 0);
  for (size_t i = 0; i < blocks; i++) {
    const size_t n = q->size / 2 + mi_test_random(&seed) % q->size;
    void* p = malloc(n);
    MI_REQUIRE(p != NULL);
    touch(p, n);
    *(size_t*)p = n;
    pthread_mutex_lock(&q->lock);
    while (q->count == QUEUE) pthread_cond_wait(&q->room, &q->lock);
    q->items[q->count++] = p;
    q->live_bytes += n;
    if (q->live_bytes > q->live_peak) q->live_peak = q->live_bytes;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    if (i % (blocks / 20) == 0) {
      const size_t now = mi_test_rss();
      if (now > peak) peak = now;
    }
  }
  pthread_mutex_lock(&q->lock);
  q->over = true;
  pthread_cond_broadcast(&q->work);
  pthread_mutex_unlock(&q->lock);
  pthread_join(t, NULL);
  const size_t held = peak > base ? peak - base : 0;
  // The live set is what the queue can hold; it may be more than the peak that was seen, but never less.
  MI_CHECK_MSG(held <= q->live_peak + q->live_peak / 2 + 4 * MIB, "%s: %zu KiB held for a live set of %zu KiB", what, held >> 10, q->live_peak >> 10);
}

MI_TEST(producer_and_consumer) {
  static pipe_t q;
  static const size_t sizes[] = {200, 3000, 20000};
  static const size_t blocks[] = {600000, 300000, 60000};
  for (int order = 0; order < 2; order++) {
    for (int allocates = 0; allocates < 2; allocates++) {
      for (size_t i = 0; i < 3; i++) {
        q.size = sizes[i];
        q.random_order = order;
        q.consumer_allocates = allocates;
        produce(&q, blocks[i] / 2, order ? (allocates ? "random order, initialised" : "random order") : (allocates ? "in order, initialised" : "in order"));
      }
    }
  }
}

MI_TEST(huge_and_small_alternate) {
  // Flat over 100 rounds.
  enum { SMALL = 1000 };
  static void* small[SMALL];
  // How much still awaits its purge depends on how fast the rounds are: the most of the first ones stands against the most of
  // the last ones.
  size_t rss = 0, rss2 = 0, maps = 0, space = 0;
  for (int round = 0; round < 100; round++) {
    char* huge = (char*)malloc((size_t)(20 + round % 17) * MIB);
    MI_REQUIRE(huge != NULL);
    touch(huge, 20 * MIB);
    for (size_t i = 0; i < SMALL; i++) {
      small[i] = malloc(50 + (i * 37 + (size_t)round * 11) % 3000);
      MI_REQUIRE(small[i] != NULL);
      memset(small[i], 1, 50);
    }
    free(huge);
    huge = (char*)malloc((size_t)(5 + round % 5) * MIB);
    MI_REQUIRE(huge != NULL);
    touch(huge, 5 * MIB);
    for (size_t i = 0; i < SMALL; i++) free(small[i]);
    free(huge);
    const size_t now = mi_test_rss();
    if (round < 50) rss = now > rss ? now : rss;
    if (round >= 50) rss2 = now > rss2 ? now : rss2;
    if (round == 20) maps = mi_test_mappings(), space = mi_test_address_space();
  }
  const size_t maps2 = mi_test_mappings(), space2 = mi_test_address_space();
  // One freed generation more may await its purge.
  MI_CHECK_MSG(rss2 <= rss + 48 * MIB, "RSS from %zu to %zu KiB", rss >> 10, rss2 >> 10);
  MI_CHECK_MSG(maps2 <= maps + 16, "mappings from %zu to %zu", maps, maps2);
  MI_CHECK_MSG(space2 <= space + 1100 * (size_t)MIB, "address space from %zu to %zu MiB", space >> 20, space2 >> 20);
  const size_t end = rss_after_purge(false);
  MI_CHECK_MSG(end <= 24 * MIB, "RSS at the end %zu KiB", end >> 10);
}

MI_TEST(addresses_once_used) {
  // 20,000 times 4 GiB that is never touched.
  const size_t n = (size_t)4 << 30;
  char* p = (char*)malloc(mi_test_hide_size(n));
  if (p == NULL) {
    MI_TEST_SKIP("4 GiB cannot be reserved on this machine");
    return;
  }
  free(p);
  void* small[64] = {NULL};
  size_t rss = 0, maps = 0;
  for (int i = 0; i < 20000; i++) {
    if (i == 2000) rss = mi_test_rss(), maps = mi_test_mappings();
    p = (char*)malloc(mi_test_hide_size(n));
    MI_REQUIRE(p != NULL);
    // A small block now and then moves the place of the next one.
    if (i % 100 == 0) {
      free(small[i / 100 % 64]);
      small[i / 100 % 64] = malloc(70000);
    }
    free(mi_test_hide(p));
  }
  const size_t rss2 = mi_test_rss(), maps2 = mi_test_mappings();
  MI_CHECK_MSG(rss2 <= rss + 6 * MIB, "RSS from %zu to %zu KiB", rss >> 10, rss2 >> 10);
  MI_CHECK_MSG(maps2 <= maps + 16, "mappings from %zu to %zu", maps, maps2);
  for (int i = 0; i < 64; i++) free(small[i]);
}

MI_TEST(many_addresses_at_once) {
  // 200 blocks of 4 GiB live together: mappings follow the blocks, and all goes when they go.
  enum { N = 200 };
  static void* p[N];
  const size_t rss = mi_test_rss(), maps = mi_test_mappings();
  for (int round = 0; round < 3; round++) {
    int had = 0;
    while (had < N && (p[had] = malloc(mi_test_hide_size((size_t)4 << 30))) != NULL) had++;
    MI_CHECK_MSG(mi_test_mappings() <= maps + 4 * (size_t)had + 64, "%zu mappings for %d blocks", mi_test_mappings(), had);
    for (int i = 0; i < had; i++) free(p[i]);
  }
  rss_after_purge(false);
  MI_CHECK_MSG(mi_test_rss() <= rss + 8 * MIB, "RSS from %zu to %zu KiB", rss >> 10, mi_test_rss() >> 10);
  MI_CHECK_MSG(mi_test_mappings() <= maps + 32, "mappings from %zu to %zu", maps, mi_test_mappings());
}

MI_TEST(growth_is_proportional) {
  // Live memory of mixed sizes costs no more than a quarter beyond what is asked for and touched.
  enum { N = 60000 };
  static void* p[N];
  uint64_t seed = 4;
  const size_t base = mi_test_rss();
  size_t asked = 0;
  for (size_t i = 0; i < N; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t n = r % 32 == 0 ? (size_t)(r >> 8) % 20000 : 16 + (size_t)(r >> 8) % 1000;
    p[i] = malloc(n);
    MI_REQUIRE(p[i] != NULL);
    touch(p[i], n);
    asked += n;
  }
  const size_t held = mi_test_rss() - base;
  MI_CHECK_MSG(held <= asked + asked / 4 + 4 * MIB, "%zu KiB resident for %zu KiB", held >> 10, asked >> 10);
  for (size_t i = 0; i < N; i++) free(p[i]);
}

MI_TEST_MAIN()
