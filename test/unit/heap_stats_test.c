// Owns: tests of heap/heap-stats: what is counted of blocks and pages, against what the test did.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: counts are compared with what they were before, as earlier tests leave some.
#include "src/heap/heap-stats.h"

#include <pthread.h>
#include <sys/wait.h>

#include "src/alloc/alloc.h"
#include "src/heap/query.h"
#include "test/lib/test.h"

enum { SLOTS = 3000,
       STEPS = 60000,
       THREADS = 4 };

// What the test did, by bin.
typedef struct mi_shadow_s {
  int64_t current[MI_STAT_BINS];
  int64_t total[MI_STAT_BINS];
  int64_t bytes, bytes_total;          // in blocks of classes
  int64_t requested, requested_total;  // in all
} mi_shadow_t;

typedef struct mi_slot_s {
  void* p;
  size_t size;
} mi_slot_t;

static unsigned mi_shadow_bin(size_t size, size_t* block_size) {
  *block_size = 0;
  if (MI_HAS_ZERO_SIZE && size == 0) {
    return MI_STAT_BIN_ZERO_SIZE;
  }
  if (size + MI_BLOCK_EXTRA > MI_LARGE_BLOCK_MAX) {
    return MI_STAT_BIN_HUGE;
  }
  const unsigned bin = _mi_bin_of_size(size + MI_BLOCK_EXTRA);
  *block_size = _mi_bin_block_size(bin);
  return _mi_stat_bin(bin);
}

static void mi_shadow_alloc(mi_shadow_t* shadow, size_t size) {
  size_t block_size;
  const unsigned bin = mi_shadow_bin(size, &block_size);
  shadow->current[bin]++;
  shadow->total[bin]++;
  shadow->bytes += (int64_t)block_size;
  shadow->bytes_total += (int64_t)block_size;
  shadow->requested += (int64_t)size;
  shadow->requested_total += (int64_t)size;
}

static void mi_shadow_free(mi_shadow_t* shadow, size_t size) {
  size_t block_size;
  const unsigned bin = mi_shadow_bin(size, &block_size);
  shadow->current[bin]--;
  shadow->bytes -= (int64_t)block_size;
  shadow->requested -= (int64_t)size;
}

static void mi_shadow_check(const mi_shadow_t* shadow, const mi_stats_t* before, mi_heap_t* heap, const char* when) {
  mi_stats_t now;
  _mi_heap_stats_read(heap, &now);
  for (unsigned i = 0; i < MI_STAT_BINS; i++) {
    const mi_stat_count_t* const bin = &now.malloc_bins[i];
    MI_CHECK_MSG(bin->current - before->malloc_bins[i].current == shadow->current[i], "%s: bin %u has %lld, not %lld", when, i,
                 (long long)(bin->current - before->malloc_bins[i].current), (long long)shadow->current[i]);
    MI_CHECK_MSG(bin->total - before->malloc_bins[i].total == shadow->total[i], "%s: bin %u had %lld, not %lld", when, i,
                 (long long)(bin->total - before->malloc_bins[i].total), (long long)shadow->total[i]);
    MI_CHECK_MSG(0 <= bin->current && bin->current <= bin->peak && bin->peak <= bin->total, "%s: bin %u: %lld, %lld, %lld", when, i,
                 (long long)bin->current, (long long)bin->peak, (long long)bin->total);
  }
  MI_CHECK_EQ(now.malloc_normal.current - before->malloc_normal.current, shadow->bytes);
  MI_CHECK_EQ(now.malloc_normal.total - before->malloc_normal.total, shadow->bytes_total);
  if (MI_STATS_LEVEL >= 2) {
    MI_CHECK_EQ(now.malloc_requested.current - before->malloc_requested.current, shadow->requested);
    MI_CHECK_EQ(now.malloc_requested.total - before->malloc_requested.total, shadow->requested_total);
  } else {
    MI_CHECK_EQ(now.malloc_requested.current, now.malloc_normal.current + now.malloc_huge.current);
  }
}

static size_t mi_heap_stats_test_size(uint64_t* seed) {
  const uint64_t r = mi_test_random(seed);
  const size_t limits[] = {16, 200, 1024, 3000, 9000, 70000, 600000, 2000000};
  // Small ones more often.
  const unsigned which = (unsigned)(r % 64);
  const size_t limit = limits[which < 20 ? 0 : which < 40 ? 1
                                  : which < 50            ? 2
                                  : which < 57            ? 3
                                  : which < 60            ? 4
                                  : which < 62            ? 5
                                  : which < 63            ? 6
                                                          : 7];
  return (size_t)(r >> 20) % (limit + 1);
}

static mi_slot_t mi_heap_stats_test_slots[SLOTS];

static void mi_heap_stats_test_churn(mi_heap_t* heap, mi_shadow_t* shadow, const mi_stats_t* before, uint64_t seed) {
  for (int i = 0; i < STEPS; i++) {
    mi_slot_t* const slot = &mi_heap_stats_test_slots[mi_test_random(&seed) % SLOTS];
    if (slot->p != NULL) {
      _mi_free(slot->p);
      mi_shadow_free(shadow, slot->size);
      slot->p = NULL;
    } else {
      slot->size = mi_heap_stats_test_size(&seed);
      slot->p = _mi_theap_alloc(_mi_heap_theap(heap), slot->size, i % 3 == 0);
      MI_REQUIRE(slot->p != NULL);
      mi_shadow_alloc(shadow, slot->size);
    }
    if (i % 4999 == 0) {
      mi_shadow_check(shadow, before, heap, "in between");
    }
    if (i % 20011 == 0) {
      _mi_collect(i % 2 == 0);
    }
  }
}

static void mi_heap_stats_test_free_all(mi_shadow_t* shadow) {
  for (int i = 0; i < SLOTS; i++) {
    if (mi_heap_stats_test_slots[i].p != NULL) {
      _mi_free(mi_heap_stats_test_slots[i].p);
      mi_shadow_free(shadow, mi_heap_stats_test_slots[i].size);
      mi_heap_stats_test_slots[i].p = NULL;
    }
  }
}

MI_TEST(one_thread_is_exact) {
  static mi_shadow_t shadow;
  static mi_stats_t before;
  _mi_free(_mi_alloc(1));
  _mi_heap_stats_read(NULL, &before);
  mi_heap_stats_test_churn(NULL, &shadow, &before, 1);
  mi_shadow_check(&shadow, &before, NULL, "after the churn");
  mi_heap_stats_test_free_all(&shadow);
  mi_shadow_check(&shadow, &before, NULL, "when all is free");
  _mi_collect(true);
  mi_shadow_check(&shadow, &before, NULL, "collected");
}

MI_TEST(peaks) {
  enum { BLOCKS = 5000 };
  static void* blocks[BLOCKS];
  static const size_t sizes[] = {1, 48, 100, 1000, 5000, 20000};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
    size_t block_size;
    const unsigned bin = mi_shadow_bin(sizes[s], &block_size);
    const int count = sizes[s] > 1000 ? 300 : BLOCKS;
    _mi_collect(true);
    _mi_heap_stats_reset();
    mi_stats_t stats;
    _mi_heap_stats_read(NULL, &stats);
    const int64_t base = stats.malloc_bins[bin].current;
    for (int i = 0; i < count; i++) {
      MI_REQUIRE((blocks[i] = _mi_alloc(sizes[s])) != NULL);
    }
    for (int i = 0; i < count; i++) {
      _mi_free(blocks[i]);
    }
    _mi_heap_stats_read(NULL, &stats);
    const int64_t peak = stats.malloc_bins[bin].peak - base;
    // One extension may be missing: 4 KiB, or 8 blocks.
    const int64_t missing = MI_STATS_LEVEL >= 2 ? 0 : (int64_t)_mi_max(4096 / block_size, 8) + 1;
    MI_CHECK_MSG(peak <= count && peak >= count - missing, "%lld of %d blocks of %zu bytes", (long long)peak, count, sizes[s]);
    MI_CHECK_EQ(stats.malloc_bins[bin].total - base, count);
    MI_CHECK_EQ(stats.malloc_bins[bin].current, base);
    MI_CHECK(stats.malloc_normal.peak >= (count - missing) * (int64_t)block_size);
  }
}

MI_TEST(pages_by_bin_and_kind) {
  static const struct {
    size_t size;
    mi_chunkbin_t kind;
  } rows[] = {{100, MI_CBIN_SMALL}, {20000, MI_CBIN_MEDIUM}, {200000, MI_CBIN_LARGE}, {3000000, MI_CBIN_HUGE}};
  mi_heap_t* const heap = _mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    size_t block_size;
    const unsigned bin = mi_shadow_bin(rows[i].size, &block_size);
    MI_REQUIRE(_mi_theap_alloc(_mi_heap_theap(heap), rows[i].size, false) != NULL);
    mi_stats_t stats;
    _mi_heap_stats_read(heap, &stats);
    MI_CHECK_EQ(stats.pages.current, i + 1);
    MI_CHECK_EQ(stats.page_bins[bin].current, 1);
    MI_CHECK_EQ(stats.chunk_bins[rows[i].kind].current, 1);
    MI_CHECK_EQ(stats.reserved.total, 0);
  }
  mi_stats_t stats;
  _mi_heap_stats_read(heap, &stats);
  MI_CHECK(stats.malloc_huge.current >= 3000000 && stats.malloc_huge_count.total == 1 && stats.malloc_normal_count.total == 3);
  MI_CHECK(stats.pages_extended.total == 3 && stats.page_searches_count.total >= 3 && stats.theaps.current == 1);
  _mi_heap_destroy(heap);
}

// Everything that a heap counts of what there is, summed over two heaps.
static int64_t mi_heap_stats_test_blocks(mi_heap_t* heap) {
  mi_stats_t stats;
  _mi_heap_stats_read(heap, &stats);
  int64_t sum = 0;
  for (unsigned i = 0; i < MI_STAT_BINS; i++) {
    sum += stats.malloc_bins[i].current;
  }
  return sum;
}

MI_TEST(heaps_are_exact_and_apart) {
  static mi_shadow_t shadow, none;
  static mi_stats_t before, before_main;
  _mi_free(_mi_alloc(1));
  mi_heap_t* const heap = _mi_heap_new();
  MI_REQUIRE(heap != NULL);
  _mi_heap_stats_read(heap, &before);
  MI_CHECK_EQ(before.malloc_normal_count.total, 0);
  _mi_heap_stats_read(_mi_heap_main(), &before_main);
  memset(&shadow, 0, sizeof(shadow));
  mi_heap_stats_test_churn(heap, &shadow, &before, 2);
  mi_shadow_check(&shadow, &before, heap, "of its own");
  mi_shadow_check(&none, &before_main, _mi_heap_main(), "the main heap");
  mi_heap_stats_test_free_all(&shadow);
  mi_shadow_check(&shadow, &before, heap, "when all is free");
  _mi_heap_destroy(heap);
  mi_shadow_check(&none, &before_main, _mi_heap_main(), "the main heap, alone");
}

MI_TEST(a_deleted_heap_leaves_its_counts_to_the_main_one) {
  for (int destroy = 0; destroy < 2; destroy++) {
    mi_stats_t before, after;
    mi_stats_t main_before;
    _mi_heap_stats_read(NULL, &before);
    _mi_heap_stats_read(_mi_heap_main(), &main_before);
    const int64_t of_main = mi_heap_stats_test_blocks(_mi_heap_main());
    mi_heap_t* const heap = _mi_heap_new();
    MI_REQUIRE(heap != NULL);
    static void* blocks[400];
    for (int i = 0; i < 400; i++) {
      MI_REQUIRE((blocks[i] = _mi_theap_alloc(_mi_heap_theap(heap), i % 50 == 0 ? 700000 : (size_t)i * 20, false)) != NULL);
    }
    MI_CHECK_EQ(mi_heap_stats_test_blocks(heap), 400);
    if (destroy != 0) {
      _mi_heap_destroy(heap);
    } else {
      _mi_heap_delete(heap);
      MI_CHECK_EQ(mi_heap_stats_test_blocks(_mi_heap_main()), of_main + 400);
      // Each block that it has from now on is one of its total, and is so once.
      mi_stats_t main_after;
      _mi_heap_stats_read(_mi_heap_main(), &main_after);
      MI_CHECK(main_after.malloc_normal_count.total <= main_before.malloc_normal_count.total + 392);
      for (int i = 0; i < 400; i++) {
        _mi_free(blocks[i]);
      }
    }
    MI_CHECK_EQ(mi_heap_stats_test_blocks(_mi_heap_main()), of_main);
    _mi_collect(true);
    _mi_heap_stats_read(NULL, &after);
    MI_CHECK_EQ(after.malloc_normal.current, before.malloc_normal.current);
    MI_CHECK_EQ(after.malloc_huge.current, before.malloc_huge.current);
    MI_CHECK_EQ(after.malloc_requested.current, before.malloc_requested.current);
    MI_CHECK_EQ(after.malloc_normal_count.total, before.malloc_normal_count.total + 392);
    MI_CHECK_EQ(after.malloc_huge_count.total, before.malloc_huge_count.total + 8);
    MI_CHECK_EQ(after.malloc_bins[MI_STAT_BIN_HUGE].current, before.malloc_bins[MI_STAT_BIN_HUGE].current);
    // A new heap in the same place begins at nothing.
    mi_heap_t* const next = _mi_heap_new();
    MI_REQUIRE(next != NULL);
    mi_stats_t fresh;
    _mi_heap_stats_read(next, &fresh);
    MI_CHECK(fresh.malloc_normal_count.total == 0 && fresh.pages.total == 0 && fresh.malloc_normal.peak == 0);
    _mi_heap_delete(next);
  }
}

// Blocks that are live when their heap is destroyed are not counted once more as it goes.
MI_TEST(a_destroyed_heap_raises_no_peak) {
  enum { BLOCKS = 4000,
         SIZE = 1000 };
  static void* blocks[BLOCKS];
  mi_heap_t* const heap = _mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (int i = 0; i < BLOCKS; i++) {
    MI_REQUIRE((blocks[i] = _mi_theap_alloc(_mi_heap_theap(heap), SIZE, false)) != NULL);
  }
  _mi_collect(true);
  _mi_heap_stats_reset();
  mi_stats_t before, after;
  _mi_heap_stats_read(NULL, &before);
  MI_CHECK(before.malloc_normal.current >= BLOCKS * SIZE);
  _mi_heap_destroy(heap);
  _mi_heap_stats_read(NULL, &after);
  MI_CHECK(after.malloc_normal.current <= before.malloc_normal.current - BLOCKS * SIZE);
  MI_CHECK_EQ(after.malloc_normal.peak, before.malloc_normal.peak);
}

// Large blocks that grow into a heap that is named, and have neighbours, count there, also where their OS pages are moved.
MI_TEST(blocks_that_move_count_in_their_new_heap) {
  enum { COUNT = 10 };
  mi_heap_t* const heaps[] = {_mi_heap_new(), _mi_heap_new()};
  mi_stats_t stats;
  void* blocks[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = _mi_theap_alloc(_mi_heap_theap(heaps[0]), 1 << 20, false);
  }
  int64_t live[2] = {0, 0};
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = _mi_realloc(_mi_heap_theap(heaps[1]), blocks[i], 3 << 20, false);
    MI_REQUIRE(blocks[i] != NULL);
    live[_mi_heap_of(blocks[i]) == heaps[1]]++;
  }
  for (size_t i = 0; i < 2; i++) {
    _mi_heap_stats_read(heaps[i], &stats);
    MI_CHECK_EQ(stats.malloc_bins[MI_STAT_BIN_HUGE].current, live[i]);
    MI_CHECK_EQ(stats.pages.current, live[i]);
    MI_CHECK(stats.malloc_huge.current >= live[i] * (3 << 20) && (live[i] > 0 || stats.malloc_huge.current == 0));
    MI_CHECK(!MI_HAS_PADDING || stats.malloc_requested.current >= live[i] * (3 << 20));
  }
  for (size_t i = 0; i < COUNT; i++) {
    _mi_free(blocks[i]);
  }
  for (size_t i = 0; i < 2; i++) {
    _mi_heap_stats_read(heaps[i], &stats);
    MI_CHECK(stats.malloc_bins[MI_STAT_BIN_HUGE].current == 0 && stats.malloc_huge.current == 0 && stats.pages.current == 0);
    MI_CHECK_EQ(stats.malloc_requested.current, 0);
    _mi_heap_delete(heaps[i]);
  }
}

static void* mi_heap_stats_test_thread(void* arg) {
  static void* kept[THREADS][100];
  const size_t n = (size_t)(uintptr_t)arg;
  for (int round = 0; round < 50; round++) {
    for (size_t i = 0; i < 100; i++) {
      MI_CHECK((kept[n][i] = _mi_alloc(i * 30)) != NULL);
    }
    for (size_t i = 0; i < 100; i++) {
      _mi_free(kept[n][i]);
    }
  }
  for (size_t i = 0; i < 100; i++) {
    MI_CHECK((kept[n][i] = _mi_alloc(i * 30)) != NULL);
  }
  return kept[n];
}

MI_TEST(ended_threads_are_exact) {
  static mi_shadow_t shadow;
  static mi_stats_t before;
  _mi_free(_mi_alloc(1));
  _mi_heap_stats_read(NULL, &before);
  pthread_t threads[THREADS];
  void** kept[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_heap_stats_test_thread, (void*)i) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], (void**)&kept[i]);
  }
  for (int t = 0; t < THREADS; t++) {
    for (size_t i = 0; i < 100; i++) {
      for (int round = 0; round < 50; round++) {
        mi_shadow_alloc(&shadow, i * 30);
        mi_shadow_free(&shadow, i * 30);
      }
      mi_shadow_alloc(&shadow, i * 30);
    }
  }
  mi_shadow_check(&shadow, &before, NULL, "threads that ended");
  // Freed by another thread than theirs: seen at once.
  for (int t = 0; t < THREADS; t++) {
    for (size_t i = 0; i < 100; i++) {
      _mi_free(kept[t][i]);
      mi_shadow_free(&shadow, i * 30);
    }
  }
  mi_shadow_check(&shadow, &before, NULL, "freed by another");
}

// Slots that all threads exchange blocks in, while one of them reads.
static _Atomic(void*) mi_heap_stats_test_shared[512];
static _Atomic(bool) mi_heap_stats_test_done;

static void* mi_heap_stats_test_hammer(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!mi_atomic_load_relaxed(&mi_heap_stats_test_done)) {
    const uint64_t r = mi_test_random(&seed);
    void* const p = _mi_alloc((size_t)(r >> 30) % 3000);
    _mi_free(mi_atomic_exchange_acq_rel(&mi_heap_stats_test_shared[r % 512], p));
  }
  return NULL;
}

MI_TEST(sound_while_threads_hammer) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_heap_stats_test_hammer, (void*)(i + 1)) == 0);
  }
  static mi_stats_t last, now;
  _mi_heap_stats_read(NULL, &last);
  for (int round = 0; round < 300; round++) {
    _mi_heap_stats_read(NULL, &now);
    const mi_stat_count_t* const counts[] = {&now.malloc_normal, &now.malloc_huge, &now.malloc_requested, &now.pages, &now.page_committed, &now.committed, &now.reserved, &now.pages_abandoned};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
      MI_CHECK_MSG(0 <= counts[i]->current && counts[i]->current <= counts[i]->peak && counts[i]->peak <= counts[i]->total, "row %zu", i);
    }
    for (unsigned i = 0; i < MI_STAT_BINS; i++) {
      const mi_stat_count_t* const bin = &now.malloc_bins[i];
      MI_CHECK(0 <= bin->current && bin->current <= bin->peak && bin->peak <= bin->total);
      MI_CHECK(bin->total >= last.malloc_bins[i].total && bin->peak >= last.malloc_bins[i].peak);
      // There are never more than in all slots and hands.
      MI_CHECK_MSG(bin->current <= 512 + 2 * THREADS + (MI_HAS_QUARANTINE ? 4096 : 0), "%lld blocks", (long long)bin->current);
    }
    last = now;
  }
  mi_atomic_store_relaxed(&mi_heap_stats_test_done, true);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < 512; i++) {
    _mi_free(mi_atomic_exchange_acq_rel(&mi_heap_stats_test_shared[i], NULL));
  }
}

MI_TEST(this_thread) {
  void* blocks[50];
  mi_stats_t before, stats;
  _mi_theap_stats_read(NULL, &before);
  for (int i = 0; i < 50; i++) {
    MI_REQUIRE((blocks[i] = _mi_alloc(333)) != NULL);
  }
  size_t block_size;
  const unsigned bin = mi_shadow_bin(333, &block_size);
  _mi_theap_stats_read(NULL, &stats);
  MI_CHECK_EQ(stats.malloc_bins[bin].current, before.malloc_bins[bin].current + 50);
  MI_CHECK_EQ(stats.malloc_bins[bin].total, before.malloc_bins[bin].total + 50);
  MI_CHECK(stats.pages.current > 0 && stats.theaps.current >= 1);
  for (int i = 0; i < 50; i++) {
    _mi_free(blocks[i]);
  }
  _mi_theap_stats_read(_mi_tls.own, &stats);
  MI_CHECK_EQ(stats.malloc_bins[bin].current, before.malloc_bins[bin].current);
}

MI_TEST(reset) {
  void* const p = _mi_alloc(5000);
  void* const q = _mi_alloc(700000);
  MI_REQUIRE(p != NULL && q != NULL);
  _mi_free(_mi_alloc(5000));
  _mi_heap_stats_reset();
  mi_stats_t stats;
  _mi_heap_stats_read(NULL, &stats);
  for (unsigned i = 0; i < MI_STAT_BINS; i++) {
    MI_CHECK(stats.malloc_bins[i].current == stats.malloc_bins[i].peak && stats.malloc_bins[i].peak == stats.malloc_bins[i].total);
  }
  MI_CHECK(stats.malloc_normal.total == stats.malloc_normal.current && stats.malloc_huge.total == stats.malloc_huge.current);
  MI_CHECK(stats.malloc_normal.current > 0 && stats.malloc_huge.current > 0 && stats.malloc_huge_count.total == 0);
  MI_CHECK(stats.pages.peak == stats.pages.current && stats.pages_extended.total == 0 && stats.mmap_calls.total == 0);
  _mi_free(p);
  _mi_free(q);
  _mi_heap_stats_read(NULL, &stats);
  MI_CHECK(stats.malloc_huge.current == 0 && stats.malloc_huge.peak >= 700000);
}

// A child counts what it does, and what the threads that it does not have left.
MI_TEST(fork) {
  void* const p = _mi_alloc(444);
  MI_REQUIRE(p != NULL);
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_heap_stats_test_thread, NULL) == 0);
  void* kept;
  pthread_join(thread, &kept);
  const int64_t blocks = mi_heap_stats_test_blocks(NULL);
  const pid_t child = (fork)();
  if (child == 0) {
    MI_CHECK_EQ(mi_heap_stats_test_blocks(NULL), blocks);
    void* const q = _mi_alloc(444);
    MI_CHECK_EQ(mi_heap_stats_test_blocks(NULL), blocks + 1);
    _mi_free(q);
    _mi_free(p);
    _mi_collect(true);
    MI_CHECK_EQ(mi_heap_stats_test_blocks(NULL), blocks - 1);
    mi_stats_t stats;
    _mi_heap_stats_read(NULL, &stats);
    MI_CHECK(stats.threads.current == 1);
    _exit(mi_test_failure_count() != 0);
  }
  int status = 0;
  MI_CHECK(waitpid(child, &status, 0) == child && status == 0);
  _mi_free(p);
}

MI_TEST_MAIN()
