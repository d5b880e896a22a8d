// Owns: tests of region/arena-purge: deadlines, purging while others claim, and that what is pending is purged in the end.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: whenever nothing runs, a free pending slice has a deadline.
#include "src/region/arena-purge.h"

#include <pthread.h>
#include <sched.h>

#include "src/heap/process.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { THREADS = 3 };

static size_t mi_arena_purge_test_pending(const mi_arena_t* arena) {
  size_t n = 0;
  for (size_t i = 0; i < arena->slice_count; i++) {
    n += _mi_bitmap_count(arena->purge, i, 1) & _mi_bitmap_count(arena->free, i, 1);
  }
  return n;
}

static void mi_arena_purge_test_check_deadlines(const char* when) {
  mi_arena_t* arena;
  bool any = false;
  for (size_t i = 0; (arena = _mi_arena_at(i)) != NULL; i++) {
    const size_t pending = mi_arena_purge_test_pending(arena);
    const bool deadline = mi_atomic_load_relaxed(&arena->purge_deadline) != 0;
    any = any || deadline;
    MI_CHECK_MSG(pending == 0 || deadline, "%s: %zu slices of arena %zu are pending without a deadline", when, pending, i);
  }
  MI_CHECK_MSG(!any || mi_atomic_load_relaxed(&_mi_arena_purge_due) != 0, "%s: a deadline that nobody looks for", when);
}

static bool mi_arena_purge_test_units(void) { return !_mi_os_config.thp_always; }

MI_TEST(due_and_done) {
  MI_REQUIRE(_mi_process_init());
  _mi_option_set(mi_option_purge_delay, 50);
  _mi_arenas_purge(0, true);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_arena_purge_due), 0);
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(16, MI_SLICE_SIZE, false, &run));
  memset(run.start, 1, 16 * MI_SLICE_SIZE);
  _mi_arena_release(run.arena, run.index, 16, false);
  const int64_t due = mi_atomic_load_relaxed(&_mi_arena_purge_due);
  const int64_t now = _mi_prim_clock_ms();
  MI_CHECK(due > now - 50 && due <= now + 50);
  _mi_arenas_purge(due - 1, false);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_arena_purge_due), due);
  MI_CHECK(_mi_bitmap_count(run.arena->purge, run.index, 16) == 16);
  _mi_arenas_purge(due, false);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_arena_purge_due), 0);
  if (mi_arena_purge_test_units() || run.arena->is_first) {
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->purge, run.index, 16), 0);
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->dirty, run.index, 16), 0);
  }
}

static const struct {
  long delay;
  bool scheduled;
  bool purged;
} mi_arena_purge_test_delays[] = {{-1, false, false}, {0, false, true}, {1000, true, false}};

MI_TEST(delays) {
  for (size_t i = 0; i < sizeof(mi_arena_purge_test_delays) / sizeof(mi_arena_purge_test_delays[0]); i++) {
    _mi_arenas_purge(0, true);
    _mi_option_set(mi_option_purge_delay, mi_arena_purge_test_delays[i].delay);
    mi_run_t run;
    MI_REQUIRE(_mi_arena_claim(1, MI_SLICE_SIZE, false, &run));
    run.start[0] = 1;
    _mi_arena_release(run.arena, run.index, 1, false);
    MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_arena_purge_due) != 0, mi_arena_purge_test_delays[i].scheduled);
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->dirty, run.index, 1) == 0, mi_arena_purge_test_delays[i].purged);
  }
  _mi_option_set(mi_option_purge_delay, 50);
}

MI_TEST(released_purged_is_clean_at_once) {
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(3, MI_SLICE_SIZE, false, &run));
  memset(run.start, 1, 3 * MI_SLICE_SIZE);
  _mi_arena_release_purged(run.arena, run.index, 3);
  MI_CHECK_EQ(_mi_bitmap_count(run.arena->free, run.index, 3), 3);
  if (mi_arena_purge_test_units() || run.arena->is_first) {
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->dirty, run.index, 3), 0);
  }
}

// Threads that claim and release while others purge

static void* mi_arena_purge_test_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 3000);
  for (long i = 0; i < rounds; i++) {
    mi_run_t runs[6];
    for (int k = 0; k < 6; k++) {
      MI_REQUIRE(_mi_arena_claim(1 + mi_test_random(&seed) % 8, MI_SLICE_SIZE, false, &runs[k]));
      runs[k].start[0] = 1;
    }
    for (int k = 0; k < 6; k++) {
      MI_CHECK_EQ(runs[k].start[0], 1);
      _mi_arena_release(runs[k].arena, runs[k].index, runs[k].slices, false);
    }
    if (mi_test_random(&seed) % 4 == 0) {
      _mi_arenas_purge(_mi_prim_clock_ms() + 100, false);
    }
  }
  return NULL;
}

MI_TEST(no_purge_is_lost) {
  _mi_option_set(mi_option_purge_delay, 1);
  for (int round = 0; round < 40 && mi_test_failure_count() == 0; round++) {
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_arena_purge_test_churn, (void*)(t + 1 + 10 * (uintptr_t)round)) == 0);
    }
    for (int t = 0; t < THREADS; t++) {
      pthread_join(threads[t], NULL);
    }
    mi_arena_purge_test_check_deadlines("after threads claimed and purged");
  }
}

// A claim in the middle of a pending run that is just being purged must not make the purger forget the rest.

enum { RUN = 256,
       TAKEN = 4 };

static _Atomic(long) mi_arena_purge_test_round;
static _Atomic(long) mi_arena_purge_test_taken;
static mi_run_t mi_arena_purge_test_runs[TAKEN];

static void* mi_arena_purge_test_taker(void* arg) {
  const long rounds = *(const long*)arg;
  for (long round = 1; round <= rounds; round++) {
    while (mi_atomic_load_acquire(&mi_arena_purge_test_round) < round) {
      sched_yield();
    }
    for (long spin = round % 64 * 8; spin > 0; spin--) {
      _mi_atomic_pause();
    }
    for (int i = 0; i < TAKEN; i++) {
      MI_REQUIRE(_mi_arena_claim(1, MI_SLICE_SIZE, false, &mi_arena_purge_test_runs[i]));
    }
    mi_atomic_store_release(&mi_arena_purge_test_taken, round);
  }
  return NULL;
}

MI_TEST(a_claim_does_not_stop_the_purge_around_it) {
  long rounds = mi_test_scale("MI_TEST_ROUNDS", 3000);
  _mi_option_set(mi_option_purge_delay, 10000);
  _mi_arenas_purge(0, true);
  pthread_t taker;
  MI_REQUIRE(pthread_create(&taker, NULL, &mi_arena_purge_test_taker, &rounds) == 0);
  long lost = 0;
  for (long round = 1; round <= rounds; round++) {
    mi_run_t run;
    MI_REQUIRE(_mi_arena_claim(RUN, MI_SLICE_SIZE, false, &run));
    _mi_arena_release(run.arena, run.index, RUN, false);
    mi_atomic_store_release(&mi_arena_purge_test_round, round);
    _mi_arenas_purge(0, true);
    while (mi_atomic_load_acquire(&mi_arena_purge_test_taken) < round) {
      sched_yield();
    }
    lost += mi_atomic_load_relaxed(&run.arena->purge_deadline) == 0 && mi_arena_purge_test_pending(run.arena) > 0;
    for (int i = 0; i < TAKEN; i++) {
      _mi_arena_release(mi_arena_purge_test_runs[i].arena, mi_arena_purge_test_runs[i].index, 1, false);
    }
  }
  pthread_join(taker, NULL);
  MI_CHECK_MSG(lost == 0, "in %ld of %ld rounds pending slices were left without a deadline", lost, rounds);
}

MI_TEST_MAIN()
