// Owns: tests of region/arena: claims, alignment, growth in place, lazy commit and its counts, claims by many threads.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test claims it gives back.
#include "src/region/arena.h"

#include <pthread.h>

#include "src/heap/process.h"
#include "src/region/arena-program.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { THREADS = 4,
       HELD = 24 };

static const struct {
  size_t slices;
  size_t align;
} mi_arena_test_claims[] = {
    {1, MI_SLICE_SIZE},
    {2, MI_SLICE_SIZE},
    {3, MI_SLICE_SIZE},
    {8, MI_SLICE_SIZE},
    {64, MI_SLICE_SIZE},
    {65, MI_SLICE_SIZE},
    {129, MI_SLICE_SIZE},
    {1, 2 * MI_SLICE_SIZE},
    {5, 1 * MI_MIB},
    {100, 4 * (size_t)MI_MIB},
    {1, 32 * (size_t)MI_MIB},
    {700, 32 * (size_t)MI_MIB},
};

// The count of committed bytes of lazily committed arenas: as many as there are bits. First of all, while there is no arena yet.

static size_t mi_arena_test_committed_slices(void) {
  size_t n = 0;
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    n += _mi_bitmap_count(arena->committed, 0, arena->slice_count);
  }
  return n;
}

static void mi_arena_test_lazy_commit(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_arena_eager_commit, 0);
  MI_REQUIRE(_mi_process_init());
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(1, MI_SLICE_SIZE, false, &run));
  mi_arena_t* const arena = run.arena;
  MI_REQUIRE(arena->commit_lazily);
  _mi_arena_release(arena, run.index, 1, false);
  _mi_arenas_purge(0, true);
  const int64_t before = _mi_stat_view(&_mi_stats.committed).current;
  const size_t slices_before = mi_arena_test_committed_slices();
  for (int round = 0; round < 10; round++) {
    // Half of the run is committed when the whole is claimed.
    mi_run_t half;
    MI_REQUIRE(_mi_arena_claim(8, MI_SLICE_SIZE, false, &half));
    _mi_arena_release(half.arena, half.index, 8, false);
    MI_REQUIRE(_mi_arena_claim(16, 1 * MI_MIB, false, &run));
    memset(run.start, 1, 16 * MI_SLICE_SIZE);
    _mi_arena_release(run.arena, run.index, 16, false);
    _mi_arenas_purge(0, true);
  }
  MI_CHECK_EQ(mi_arena_test_committed_slices(), slices_before);
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.committed).current, before);
}

MI_TEST(lazy_commit_is_counted_right) { MI_CHECK_IN_CHILD(&mi_arena_test_lazy_commit, NULL, 20000); }

// Slices that are said to hold zeroes do.
static void mi_arena_test_zero_slices(const mi_run_t* run) {
  for (size_t i = 0; i < run->slices && i < MI_RUN_KNOWN_SLICES; i++) {
    const bool is_zero = (run->zero_slices >> i & 1) != 0;
    MI_CHECK(!is_zero || mi_test_all_bytes(run->start + i * MI_SLICE_SIZE, MI_SLICE_SIZE, 0));
  }
}

MI_TEST(claims) {
  MI_REQUIRE(_mi_process_init());
  for (size_t i = 0; i < sizeof(mi_arena_test_claims) / sizeof(mi_arena_test_claims[0]); i++) {
    const size_t slices = mi_arena_test_claims[i].slices;
    mi_run_t run;
    MI_REQUIRE(_mi_arena_claim(slices, mi_arena_test_claims[i].align, false, &run));
    MI_CHECK_EQ(run.slices, slices);
    MI_CHECK(_mi_is_aligned(run.start, mi_arena_test_claims[i].align));
    MI_CHECK_PTR_EQ(run.start, run.arena->base + run.index * MI_SLICE_SIZE);
    MI_CHECK_PTR_EQ(_mi_arena_of(run.start + slices * MI_SLICE_SIZE - 1), run.arena);
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->free, run.index, slices), 0);
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->committed, run.index, slices), slices);
    if (run.is_zero) {
      MI_CHECK(mi_test_all_bytes(run.start, slices * MI_SLICE_SIZE, 0));
    }
    mi_arena_test_zero_slices(&run);
    memset(run.start, 0xa5, slices * MI_SLICE_SIZE);
    _mi_arena_release(run.arena, run.index, slices, false);
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->free, run.index, slices), slices);
  }
}

MI_TEST(zero_is_told_truly) {
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(4, MI_SLICE_SIZE, false, &run));
  memset(run.start, 0xa5, 4 * MI_SLICE_SIZE);
  const size_t index = run.index;
  _mi_arena_release(run.arena, index, 4, false);
  MI_REQUIRE(_mi_arena_claim(4, MI_SLICE_SIZE, false, &run));
  if (run.index == index) {
    MI_CHECK(!run.is_zero);
  }
  _mi_arena_release(run.arena, run.index, 4, false);
  _mi_arenas_purge(0, true);
  MI_REQUIRE(_mi_arena_claim(4, MI_SLICE_SIZE, false, &run));
  if (run.is_zero) {
    MI_CHECK(mi_test_all_bytes(run.start, 4 * MI_SLICE_SIZE, 0));
  }
  _mi_arena_release(run.arena, run.index, 4, false);
}

// Of a run that was used in part it is told of each slice. All of an arena is a run that comes again.
MI_TEST(zero_is_told_of_each_slice) {
  MI_REQUIRE(_mi_process_init());
  mi_arena_t* const arena = _mi_arena_reserve(100 * (size_t)MI_SLICE_SIZE, true, false, true);
  MI_REQUIRE(arena != NULL && arena->slice_count > MI_RUN_KNOWN_SLICES);
  const mi_arena_source_t source = {arena, -1, false};
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim_from(&source, arena->slice_count, 0, MI_SLICE_SIZE, false, &run));
  MI_CHECK(run.is_zero && run.zero_slices == UINT64_MAX);
  uint64_t untouched = 0;
  for (size_t i = 0; i < run.slices; i++) {
    const bool touched = i % 3 == 0;
    untouched |= i < MI_RUN_KNOWN_SLICES && !touched ? UINT64_C(1) << i : 0;
    memset(run.start + i * MI_SLICE_SIZE, 0xa5, touched ? MI_SLICE_SIZE : 0);
    _mi_arena_release(arena, run.index + i, 1, !touched);
  }
  MI_REQUIRE(_mi_arena_claim_from(&source, arena->slice_count, 0, MI_SLICE_SIZE, false, &run));
  MI_CHECK(!run.is_zero);
  MI_CHECK_EQ(run.zero_slices, untouched);
  mi_arena_test_zero_slices(&run);
  _mi_arena_release(arena, run.index, run.slices, false);
}

MI_TEST(claim_behind) {
  mi_run_t run;
  bool is_zero;
  MI_REQUIRE(_mi_arena_claim(16, 1 * MI_MIB, false, &run));
  _mi_arena_release(run.arena, run.index + 4, 12, false);
  MI_CHECK(_mi_arena_claim_behind(run.arena, run.index + 4, 4, &is_zero));
  MI_CHECK(!_mi_arena_claim_behind(run.arena, run.index + 4, 1, &is_zero));
  MI_CHECK(!_mi_arena_claim_behind(run.arena, run.index, 4, &is_zero));
  MI_CHECK(!_mi_arena_claim_behind(run.arena, run.arena->slice_count, 1, &is_zero));
  MI_CHECK(!_mi_arena_claim_behind(run.arena, run.index + 8, run.arena->slice_count, &is_zero));
  MI_CHECK_EQ(_mi_bitmap_count(run.arena->free, run.index + 8, 8), 8);
  _mi_arena_release(run.arena, run.index, 8, false);
}

MI_TEST(metadata_is_distinct) {
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(2, MI_SLICE_SIZE, false, &run));
  uint8_t* const a = _mi_arena_page_meta(run.arena, run.index);
  uint8_t* const b = _mi_arena_page_meta(run.arena, run.index + 1);
  uint8_t* const c = _mi_arena_live_meta(run.arena, run.index);
  MI_CHECK(b >= a + MI_PAGE_META_SIZE || a >= b + MI_PAGE_META_SIZE);
  MI_CHECK(c >= a + MI_PAGE_META_SIZE || a >= c + MI_LIVE_META_SIZE);
  MI_CHECK(_mi_arena_of(a) == NULL && _mi_arena_of(c) == NULL);
  _mi_arena_release(run.arena, run.index, 2, true);
}

// Claims by many threads

static _Atomic(uint8_t) mi_arena_test_owner[8][65536];

static void mi_arena_test_mark(const mi_run_t* run, uint8_t from, uint8_t to) {
  size_t number = 0;
  while (_mi_arena_at(number) != run->arena) {
    number++;
  }
  for (size_t i = 0; number < 8 && i < run->slices && run->index + i < 65536; i++) {
    MI_CHECK_EQ(atomic_exchange(&mi_arena_test_owner[number][run->index + i], to), from);
  }
}

static void* mi_arena_test_churn(void* arg) {
  const uint8_t self = (uint8_t)(uintptr_t)arg;
  uint64_t seed = self;
  mi_run_t held[HELD];
  memset(held, 0, sizeof(held));
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 20000);
  for (long i = 0; i < rounds; i++) {
    const uint64_t r = mi_test_random(&seed);
    mi_run_t* const run = &held[r % HELD];
    if (run->arena != NULL) {
      mi_arena_test_mark(run, self, 0);
      _mi_arena_release(run->arena, run->index, run->slices, false);
      run->arena = NULL;
    } else {
      const size_t slices = (r >> 8) % 8 == 0 ? 1 + (r >> 16) % 200 : 1 + (r >> 16) % 6;
      MI_REQUIRE(_mi_arena_claim(slices, (r >> 32) % 16 == 0 ? (size_t)MI_MIB : (size_t)MI_SLICE_SIZE, false, run));
      mi_arena_test_mark(run, 0, self);
    }
    if (i % 1000 == 0) {
      _mi_arenas_purge(0, self == 1);
    }
  }
  for (int i = 0; i < HELD; i++) {
    if (held[i].arena != NULL) {
      mi_arena_test_mark(&held[i], self, 0);
      _mi_arena_release(held[i].arena, held[i].index, held[i].slices, false);
    }
  }
  return NULL;
}

MI_TEST(claims_of_threads_never_overlap) {
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_arena_test_churn, (void*)(t + 1)) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  mi_arena_t* arena;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    MI_CHECK_EQ(_mi_bitmap_count(arena->free, 0, arena->slice_count), arena->slice_count);
  }
}

// "No free slice lies below the hint": after any interleaving, or what lies there is never given out again.

static _Atomic(bool) mi_arena_test_stop;

static void* mi_arena_test_small_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!mi_atomic_load_relaxed(&mi_arena_test_stop)) {
    mi_run_t runs[4];
    for (int i = 0; i < 4; i++) {
      MI_REQUIRE(_mi_arena_claim(1 + mi_test_random(&seed) % 3, MI_SLICE_SIZE, false, &runs[i]));
    }
    for (int i = 0; i < 4; i++) {
      _mi_arena_release(runs[i].arena, runs[i].index, runs[i].slices, false);
    }
  }
  return NULL;
}

static size_t mi_arena_test_arenas(void) {
  size_t count = 0;
  while (_mi_arena_at(count) != NULL) {
    count++;
  }
  return count;
}

// The hint may be late after races, but what is free is found wherever it lies: no arena is added while one has room.
MI_TEST(free_slices_are_found_wherever_the_hint_is) {
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 100);
  for (long round = 0; round < rounds; round++) {
    pthread_t threads[THREADS];
    mi_atomic_store_relaxed(&mi_arena_test_stop, false);
    for (uintptr_t t = 0; t < THREADS; t++) {
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_arena_test_small_churn, (void*)(t + 1 + (uintptr_t)round)) == 0);
    }
    usleep(2000);
    mi_atomic_store_relaxed(&mi_arena_test_stop, true);
    for (int t = 0; t < THREADS; t++) {
      pthread_join(threads[t], NULL);
    }
  }
  const size_t arenas = mi_arena_test_arenas();
  mi_arena_t* const first = _mi_arena_at(0);
  const size_t room = _mi_bitmap_count(first->free, 0, first->slice_count);
  static mi_run_t runs[16384];
  const size_t count = room < 16384 ? room : 16384;
  for (size_t i = 0; i < count; i++) {
    MI_REQUIRE(_mi_arena_claim(1, MI_SLICE_SIZE, false, &runs[i]));
    MI_CHECK_PTR_EQ(runs[i].arena, first);
  }
  MI_CHECK_EQ(mi_arena_test_arenas(), arenas);
  for (size_t i = 0; i < count; i++) {
    _mi_arena_release(runs[i].arena, runs[i].index, runs[i].slices, true);
  }
}

MI_TEST_MAIN()
