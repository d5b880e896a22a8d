// Owns: tests of the heap profiler as a whole: what is sampled, what follows a block's life, estimates, seeds, refusals, forks.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: where all allocations are to be sampled the interval is one byte; statistics are of fixed seeds.
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "mimalloc.h"
#include "src/base/compiler.h"
#include "test/lib/test.h"

static mi_prof_stats_t mi_profile_test_stats(void) {
  mi_prof_stats_t_decl(stats);
  MI_REQUIRE(mi_prof_stats_get(&stats));
  return stats;
}

static size_t mi_profile_test_samples(void) { return mi_profile_test_stats().live_samples; }

// What malloc could do with a block that nobody uses.
static void* mi_profile_test_keep(void* p) {
  __asm__ volatile("" ::"r"(p)
                   : "memory");
  MI_REQUIRE(p != NULL);
  return p;
}

// The numbers of the sampled allocations of a run, in a child.
static size_t mi_profile_test_run(uint64_t seed, uint16_t* sampled, size_t max) {
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    size_t before = 0;
    bool good = mi_prof_start_seeded(1000, seed);
    for (uint16_t i = 0; i < 2000; i++) {
      (void)mi_profile_test_keep(mi_malloc(1 + (i * 37u) % 300));
      const size_t now = mi_profile_test_samples();
      good = good && (now == before || write(fds[1], &i, sizeof(i)) == sizeof(i));
      before = now;
    }
    _exit(good ? 0 : 1);
  }
  (void)close(fds[1]);
  size_t count = 0;
  while (count < max && read(fds[0], &sampled[count], sizeof(sampled[0])) == sizeof(sampled[0])) {
    count++;
  }
  (void)close(fds[0]);
  int status;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid);
  MI_CHECK_EQ(status, 0);
  return count;
}

// First, as in strict what waits in a quarantine decides which countdown an allocation is of, and that is random.
MI_TEST(seeds) {
  static uint16_t runs[3][2000];
  const size_t first = mi_profile_test_run(42, runs[0], 2000);
  const size_t again = mi_profile_test_run(42, runs[1], 2000);
  const size_t other = mi_profile_test_run(43, runs[2], 2000);
  MI_CHECK(first > 100 && other > 100);
  MI_CHECK(first == again && memcmp(runs[0], runs[1], first * sizeof(runs[0][0])) == 0);
  MI_CHECK(first != other || memcmp(runs[0], runs[2], first * sizeof(runs[0][0])) != 0);
}

// Every block of every way to allocate is sampled at an interval of a byte, with the size that was asked for; it is aligned and
// zeroed as it should be; and its record goes with it.
MI_TEST(all_sampled) {
  static const size_t sizes[] = {1, 8, 16, 24, 100, 1000, 1024, 4096, 10000, 65536, 300000, 1 << 20, 5 << 20};
  MI_REQUIRE(mi_prof_start(1));
  MI_CHECK(mi_prof_is_enabled());
  mi_heap_t* const heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  const mi_prof_stats_t before = mi_profile_test_stats();
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    const size_t size = sizes[i];
    void* const blocks[] = {mi_malloc(size), mi_zalloc(size), mi_calloc(1, size), mi_heap_malloc(heap, size), mi_new_nothrow(size)};
    enum { BLOCKS = sizeof(blocks) / sizeof(blocks[0]) };
    const mi_prof_stats_t stats = mi_profile_test_stats();
    MI_CHECK_MSG(stats.live_samples == before.live_samples + BLOCKS, "%zu bytes: %zu samples", size, stats.live_samples);
    MI_CHECK_MSG(stats.live_bytes == before.live_bytes + BLOCKS * size, "%zu bytes: %zu", size, stats.live_bytes);
    for (size_t k = 0; k < BLOCKS; k++) {
      MI_REQUIRE(blocks[k] != NULL);
      MI_CHECK(mi_usable_size(blocks[k]) >= size && (uintptr_t)blocks[k] % 16 == 0);
      for (size_t at = 0; (k == 1 || k == 2) && at < size; at++) {
        MI_REQUIRE(((const char*)blocks[k])[at] == 0);
      }
      memset(blocks[k], 0xa5, size);
    }
    for (size_t k = 0; k < BLOCKS; k++) {
      mi_free(blocks[k]);
    }
    MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples);
    for (size_t align = 1; align <= (4 << 20); align *= 2) {
      void* const p = mi_malloc_aligned(size, align);
      void* const q = mi_malloc_aligned_at(size, align, 8);
      MI_CHECK_MSG((uintptr_t)p % align == 0 && ((uintptr_t)q + 8) % align == 0, "%zu bytes at %zu", size, align);
      MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples + 2);
      mi_free(p);
      mi_free(q);
    }
    MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples);
  }
  // Blocks that go with their heap.
  for (size_t i = 0; i < 100; i++) {
    (void)mi_profile_test_keep(mi_heap_malloc(heap, 100));
  }
  MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples + 100);
  mi_heap_destroy(heap);
  MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples);
  // A block of no bytes has none to sample.
  void* const nothing = mi_malloc(0);
  MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples);
  mi_free(nothing);
  mi_prof_stop();
  MI_CHECK(!mi_prof_is_enabled());
}

// The size of a record follows its block, wherever that goes.
MI_TEST(resizes) {
  MI_REQUIRE(mi_prof_start(1));
  const size_t sizes[] = {100, 200, 4000, 4100, 70000, 600000, 1 << 20, (1 << 20) + 1, 9 << 20, 64 << 20, 3 << 20, 50, 10};
  void* p = NULL;
  const mi_prof_stats_t before = mi_profile_test_stats();
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    p = mi_realloc(p, sizes[i]);
    MI_REQUIRE(p != NULL);
    const mi_prof_stats_t stats = mi_profile_test_stats();
    MI_CHECK_MSG(stats.live_samples == before.live_samples + 1, "%zu: %zu samples", sizes[i], stats.live_samples);
    MI_CHECK_MSG(stats.live_bytes == before.live_bytes + sizes[i], "%zu: %zu bytes", sizes[i], stats.live_bytes);
  }
  mi_free(p);
  MI_CHECK_EQ(mi_profile_test_samples(), before.live_samples);
  mi_prof_stop();
  // A block that was not sampled is, where it grows by what is sampled for certain.
  p = mi_malloc(1 << 20);
  MI_REQUIRE(mi_prof_start(1 << 20));
  p = mi_realloc(p, 4 << 20);
  MI_CHECK_EQ(mi_profile_test_samples(), 1);
  MI_CHECK_EQ(mi_profile_test_stats().live_bytes, 4 << 20);
  mi_free(p);
  MI_CHECK_EQ(mi_profile_test_samples(), 0);
  mi_prof_stop();
}

static void* mi_profile_test_free_all(void* blocks) {
  for (size_t i = 0; i < 1000; i++) {
    mi_free(((void**)blocks)[i]);
  }
  return NULL;
}

static void* mi_profile_test_fill(void* blocks) {
  for (size_t i = 0; i < 1000; i++) {
    ((void**)blocks)[i] = mi_profile_test_keep(mi_malloc(48));
  }
  return NULL;
}

// Blocks that are freed by other threads, and those of threads that have ended.
MI_TEST(other_threads) {
  static void* blocks[1000];
  MI_REQUIRE(mi_prof_start(1));
  const size_t before = mi_profile_test_samples();
  pthread_t thread;
  (void)mi_profile_test_fill(blocks);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_profile_test_free_all, blocks) == 0 && pthread_join(thread, NULL) == 0);
  MI_CHECK_EQ(mi_profile_test_samples(), before);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_profile_test_fill, blocks) == 0 && pthread_join(thread, NULL) == 0);
  MI_CHECK_EQ(mi_profile_test_samples(), before + 1000);
  (void)mi_profile_test_free_all(blocks);
  MI_CHECK_EQ(mi_profile_test_samples(), before);
  mi_prof_stop();
}

static _Atomic(int) mi_profile_test_step;

static void mi_profile_test_wait(int step) {
  while (mi_profile_test_step != step) {
    (void)sched_yield();
  }
}

static void* mi_profile_test_steady(void* heap) {
  for (size_t i = 0; i < 100000; i++) {
    mi_free(mi_profile_test_keep(mi_malloc(48)));
    mi_free(mi_profile_test_keep(mi_heap_malloc(heap, 48)));
    mi_free(mi_profile_test_keep(mi_malloc(5000)));
  }
  mi_profile_test_step = 1;
  mi_profile_test_wait(2);
  void* const blocks[] = {mi_malloc(48), mi_heap_malloc(heap, 48), mi_malloc(5000)};
  const size_t samples = mi_profile_test_samples();
  for (size_t i = 0; i < 3; i++) {
    mi_free(mi_profile_test_keep(blocks[i]));
  }
  return (void*)samples;
}

// Where what is freed serves again at once, as in strict, a thread's call may find a block at hand for good. It notices the start
// of a profile all the same.
MI_TEST(steady_threads) {
  mi_heap_t* const heap = mi_heap_new();
  pthread_t thread;
  mi_profile_test_step = 0;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_profile_test_steady, heap) == 0);
  mi_profile_test_wait(1);
  MI_REQUIRE(mi_prof_start(1));
  mi_profile_test_step = 2;
  void* samples;
  MI_REQUIRE(pthread_join(thread, &samples) == 0);
  MI_CHECK((size_t)samples == 3 || !MI_HAS_QUARANTINE);
  mi_prof_stop();
  mi_heap_delete(heap);
}

// Blocks of a profile that has ended are no blocks of the next.
MI_TEST(stop_and_start) {
  static void* blocks[1000];
  MI_REQUIRE(mi_prof_start(1) && !mi_prof_start(1));
  (void)mi_profile_test_fill(blocks);
  mi_prof_stop();
  mi_prof_stop();
  mi_prof_stats_t stats = mi_profile_test_stats();
  MI_CHECK(!stats.enabled && stats.live_samples == 0 && stats.arena_committed == 0 && stats.unique_stacks == 0);
  MI_CHECK(!mi_prof_dump_proto("/nowhere") && mi_prof_snapshot_new() == NULL);
  mi_prof_snapshot_free(NULL);
  MI_REQUIRE(mi_prof_start(1));
  static void* more[1000];
  (void)mi_profile_test_fill(more);
  MI_CHECK_EQ(mi_profile_test_samples(), 1000);
  blocks[0] = mi_realloc(blocks[0], 3 << 20);
  MI_CHECK_EQ(mi_profile_test_samples(), 1001);
  (void)mi_profile_test_free_all(blocks);
  MI_CHECK_EQ(mi_profile_test_samples(), 1000);
  mi_prof_stop();
  (void)mi_profile_test_free_all(more);
}

// With a budget, or too little of it, allocation goes on and samples are dropped.
MI_TEST(budget) {
  enum { BLOCKS = 20000 };
  static void* blocks[BLOCKS];
  mi_prof_config_t_decl(config);
  config.mode = MI_PROF_CONFIG_OVERRIDE;
  config.sample_interval = 1;
  config.max_profiler_bytes = 256 * 1024;
  config.max_stack_depth = 1000;
  config.accum = true;
  MI_REQUIRE(mi_prof_start_ex(&config));
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = mi_profile_test_keep(mi_malloc(16));
  }
  const mi_prof_stats_t stats = mi_profile_test_stats();
  MI_CHECK(stats.arena_committed <= config.max_profiler_bytes && stats.dropped_samples > 0 && stats.accum && stats.sample_rate == 1);
  MI_CHECK_EQ(stats.live_samples + stats.dropped_samples, BLOCKS);
  MI_CHECK_EQ(stats.accum_samples, stats.live_samples);
  MI_CHECK_EQ(mi_option_get(mi_option_prof_bt_max), 128);
  for (size_t i = 0; i < BLOCKS; i++) {
    mi_free(blocks[i]);
  }
  MI_CHECK_EQ(mi_profile_test_stats().accum_samples, stats.accum_samples);
  mi_prof_reset();
  MI_CHECK_EQ(mi_profile_test_stats().accum_samples, 0);
  MI_CHECK_EQ(mi_profile_test_samples(), 0);
  mi_prof_stop();
  mi_option_set(mi_option_prof_max_bytes, 0);
  mi_option_set(mi_option_prof_accum, 0);
  mi_option_set(mi_option_prof_bt_max, 32);
  config.version = 2;
  MI_CHECK(!mi_prof_start_ex(&config));
  config.version = MI_PROF_CONFIG_VERSION;
  config.size--;
  MI_CHECK(!mi_prof_start_ex(&config));
}

static double mi_profile_test_estimate;
static size_t mi_profile_test_rate;

static bool mi_profile_test_sum(const mi_prof_sample_info_t* info, void* arg) {
  (void)arg;
  const double mean = (double)info->live_bytes / (double)info->live_objects;
  mi_profile_test_estimate += (double)info->live_bytes / -expm1(-mean / (double)mi_profile_test_rate);
  return true;
}

// What is estimated from the samples is what there is, within five standard deviations, whatever the size.
MI_TEST(estimates) {
  static const size_t sizes[] = {16, 17, 40, 100, 129, 513, 1025, 5000, 20000, 100000};
  enum { BLOCKS_MAX = 400000 };
  static void* blocks[BLOCKS_MAX];
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    const size_t size = sizes[i];
    const size_t total = 40 << 20;
    const size_t count = total / size < BLOCKS_MAX ? total / size : BLOCKS_MAX;
    mi_profile_test_rate = 32 * 1024;
    MI_REQUIRE(mi_prof_start_seeded(mi_profile_test_rate, 7 + i));
    // Some are freed and allocated again, so that lists of all kinds serve.
    for (size_t k = 0; k < count; k++) {
      blocks[k] = mi_profile_test_keep(mi_malloc(size));
      if (k % 3 == 1) {
        mi_free(blocks[k - 1]);
        blocks[k - 1] = mi_profile_test_keep(mi_malloc(size));
      }
    }
    mi_profile_test_estimate = 0;
    MI_REQUIRE(mi_prof_visit(&mi_profile_test_sum, NULL));
    const double there = (double)(count * size);
    const double chance = -expm1(-(double)size / (double)mi_profile_test_rate);
    const double deviation = there * sqrt((1 - chance) / (chance * (double)count));
    // From twice the interval on everything is sampled, and the estimate is high by what that formula expects to be missed.
    const double bias = size + 1 >= 2 * mi_profile_test_rate ? there / chance - there : 0;
    MI_CHECK_MSG(fabs(mi_profile_test_estimate - there - bias) <= 5 * deviation, "%zu bytes: %.0f of %.0f, deviation %.0f", size,
                 mi_profile_test_estimate, there, deviation);
    for (size_t k = 0; k < count; k++) {
      mi_free(blocks[k]);
    }
    MI_CHECK_EQ(mi_profile_test_samples(), 0);
    mi_prof_stop();
  }
}

static void mi_profile_test_no_write(void* arg, const char* buf, size_t len) {
  (void)buf;
  *(size_t*)arg += len;
  // A writer may allocate, and use the profile.
  mi_free(mi_malloc(100));
  MI_CHECK(mi_prof_is_enabled());
}

static bool mi_profile_test_module(const mi_prof_module_info_t* info, void* arg) {
  const uintptr_t here = (uintptr_t)&mi_profile_test_module;
  MI_CHECK(info->path[0] != 0 && info->size > 0);
  *(bool*)arg = *(bool*)arg || here - info->base < info->size;
  return true;
}

static bool mi_profile_test_refused(const mi_prof_sample_info_t* info, void* arg) {
  bool found = false;
  size_t written = 0;
  MI_CHECK(info->depth > 0 && info->stack[0] != NULL);
  MI_CHECK(!mi_prof_start(1) && !mi_prof_visit(&mi_profile_test_refused, arg) && mi_prof_snapshot_new() == NULL);
  MI_CHECK(!mi_prof_dump("/tmp/profile_test") && !mi_prof_dump_proto("/tmp/profile_test"));
  MI_CHECK(!mi_prof_dump_writer(&mi_profile_test_no_write, &written) && !mi_prof_dump_proto_writer(&mi_profile_test_no_write, &written));
  MI_CHECK(!mi_prof_modules_visit(&mi_profile_test_module, &found));
  mi_prof_stop();
  mi_prof_reset();
  MI_CHECK(mi_prof_is_enabled());
  const size_t samples = mi_profile_test_samples();
  void* const p = mi_malloc(1000);
  MI_CHECK_EQ(mi_profile_test_samples(), samples);
  mi_free(p);
  void** const block = arg;
  if (*block != NULL) {
    *block = mi_realloc(*block, 40);
    MI_CHECK(mi_profile_test_samples() <= samples);
    mi_free(*block);
    *block = NULL;
    MI_CHECK_EQ(mi_profile_test_samples(), samples - 1);
  }
  return false;
}

MI_TEST(refusals) {
  MI_REQUIRE(mi_prof_start(1));
  void* block = mi_profile_test_keep(mi_malloc(48));
  MI_CHECK(mi_prof_visit(&mi_profile_test_refused, &block));
  MI_CHECK(block == NULL);
  MI_CHECK(!mi_prof_visit(NULL, NULL) && !mi_prof_snapshot_visit(NULL, &mi_profile_test_refused, NULL));
  bool found = false;
  MI_CHECK(mi_prof_modules_visit(&mi_profile_test_module, &found) && found && !mi_prof_modules_visit(NULL, NULL));
  size_t written = 0;
  MI_CHECK(mi_prof_dump_writer(&mi_profile_test_no_write, &written) && written > 100);
  MI_CHECK(mi_prof_dump_proto_writer(&mi_profile_test_no_write, &written) && !mi_prof_dump_proto_writer(NULL, NULL));
  block = mi_profile_test_keep(mi_malloc(77));
  mi_prof_snapshot_t* const snapshot = mi_prof_snapshot_new();
  MI_REQUIRE(snapshot != NULL);
  mi_free(block);
  mi_prof_stop();
  mi_profile_test_estimate = 0;
  mi_profile_test_rate = 1;
  MI_CHECK(mi_prof_snapshot_visit(snapshot, &mi_profile_test_sum, NULL) && mi_profile_test_estimate >= 77);
  mi_prof_snapshot_free(snapshot);
}

// Each released layout is filled up to its end, and no other one.
MI_TEST(layouts) {
  enum { WORD = sizeof(size_t) };
  static const struct {
    int version;
    size_t size;
  } rows[] = {{1, 9 * WORD + 8}, {2, 10 * WORD + 8}, {3, 19 * WORD + 8}};
  for (size_t i = 0; i < 3; i++) {
    mi_prof_stats_t stats;
    memset(&stats, 0xee, sizeof(stats));
    stats.version = rows[i].version;
    for (size_t size = 0; size <= sizeof(stats); size++) {
      stats.size = size;
      MI_CHECK_EQ(mi_prof_stats_get(&stats), size == rows[i].size);
    }
    const unsigned char* const bytes = (const unsigned char*)&stats;
    for (size_t at = rows[i].size; at < sizeof(stats); at++) {
      MI_CHECK_EQ(bytes[at], 0xee);
    }
    stats.version = 4;
    stats.size = sizeof(stats);
    MI_CHECK(!mi_prof_stats_get(&stats));
  }
  MI_CHECK(!mi_prof_stats_get(NULL));
  size_t a = 1;
  size_t b = 1;
  size_t c = 1;
  mi_prof_debug_stats(&a, &b, &c);
  MI_CHECK(a == 0 && b == 0 && c == 0);
  mi_prof_debug_stats(NULL, NULL, NULL);
}

static _Atomic(bool) mi_profile_test_over;

static void* mi_profile_test_churn(void* arg) {
  enum { HELD = 200 };
  void* held[HELD] = {NULL};
  uint32_t random = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
  while (!mi_profile_test_over) {
    random = random * 1664525 + 1013904223;
    void** const p = &held[random / 65536 % HELD];
    const size_t size = 1 + (random >> 8) % (random % 64 == 0 ? 200000 : 500);
    if (random % 5 == 0) {
      *p = mi_realloc(*p, size);
    } else {
      mi_free(*p);
      *p = mi_malloc(size);
    }
    MI_REQUIRE(*p != NULL);
    memset(*p, 1, size < 64 ? size : 64);
  }
  for (size_t i = 0; i < HELD; i++) {
    mi_free(held[i]);
  }
  return NULL;
}

// Threads that allocate, free, start, stop, read, and fork, all at once. A child goes on with its profile.
MI_TEST(together) {
  enum { THREADS = 4,
         ROUNDS = 60 };
  pthread_t threads[THREADS];
  mi_profile_test_over = false;
  for (size_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_profile_test_churn, (void*)(i + 1)) == 0);
  }
  for (size_t i = 0; i < ROUNDS; i++) {
    MI_REQUIRE(mi_prof_start_seeded(i % 2 == 0 ? 1000 : 64, i));
    size_t written = 0;
    MI_CHECK(mi_prof_dump_proto_writer(&mi_profile_test_no_write, &written));
    MI_CHECK(mi_prof_dump_writer(&mi_profile_test_no_write, &written));
    MI_CHECK(mi_prof_visit(&mi_profile_test_sum, NULL));
    if (i % 4 == 0) {
      const pid_t pid = fork();
      MI_REQUIRE(pid >= 0);
      if (pid == 0) {
        (void)alarm(20);
        const size_t before = mi_profile_test_samples();
        void* const p = mi_malloc(1 << 20);
        const bool good = p != NULL && mi_profile_test_samples() == before + 1 && mi_prof_dump_writer(&mi_profile_test_no_write, &written);
        mi_free(p);
        mi_prof_stop();
        _exit(good && mi_prof_start(1) ? 0 : 1);
      }
      int status;
      MI_REQUIRE(waitpid(pid, &status, 0) == pid);
      MI_CHECK_EQ(status, 0);
    }
    mi_prof_stop();
  }
  mi_profile_test_over = true;
  for (size_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_join(threads[i], NULL) == 0);
  }
  // Nothing is left of blocks that are gone.
  MI_REQUIRE(mi_prof_start(1));
  MI_CHECK_EQ(mi_profile_test_samples(), 0);
  mi_prof_stop();
}

MI_TEST_MAIN()
