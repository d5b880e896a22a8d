// Owns: tests of heap/process: thread ends in any order, fork with threads at work, and calls after the end.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what ends the process, or might hang it, runs in a child.
#include "src/heap/process.h"

#include <pthread.h>
#include <sched.h>

#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

// The end, first, as it is another one once there was a second thread.

static void* mi_process_test_leave_blocks(void* arg) {
  void** const kept = arg;
  for (int i = 0; i < 20; i++) {
    kept[i] = _mi_alloc((size_t)(i + 1) * 50);
  }
  return NULL;
}

static void mi_process_test_end(void* arg) {
  (void)arg;
  static void* kept[21];
  (void)mi_process_test_leave_blocks(kept);
  kept[20] = _mi_alloc(30);
  _mi_option_set(mi_option_destroy_on_exit, 1);
  _mi_process_done();
  MI_CHECK(_mi_process_is_closed());
  // What was freed by then is ignored; what is allocated now works or fails, and never falls over the memory that is gone.
  for (int i = 0; i < 21; i++) {
    _mi_free(kept[i]);
    (void)_mi_usable_size(kept[i]);
  }
  for (size_t size = 10; size < 3000000; size *= 3) {
    void* const p = _mi_alloc(size);
    if (p != NULL) {
      memset(p, 1, size);
      _mi_free(p);
    }
  }
}

MI_TEST(allocation_after_destroy_on_exit) { MI_CHECK_IN_CHILD(&mi_process_test_end, NULL, 20000); }

static int64_t mi_process_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

// A thread whose first allocation is made by a destructor of round `arg`, counted from 1.

static pthread_key_t mi_process_test_key;

static void mi_process_test_destructor(void* arg) {
  const uintptr_t left = (uintptr_t)arg;
  if (left > 1) {
    pthread_setspecific(mi_process_test_key, (void*)(left - 1));
    return;
  }
  void* const p = _mi_alloc(100);
  MI_CHECK(p != NULL);
  _mi_free(p);
}

static void* mi_process_test_late_first(void* arg) {
  pthread_setspecific(mi_process_test_key, arg);
  return NULL;
}

static void mi_process_test_run_threads(int count, void* (*run)(void*), void* arg) {
  for (int i = 0; i < count; i++) {
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, run, arg) == 0);
    pthread_join(thread, NULL);
  }
}

MI_TEST(first_allocation_in_a_destructor) {
  MI_REQUIRE(_mi_process_init());
  MI_REQUIRE(pthread_key_create(&mi_process_test_key, &mi_process_test_destructor) == 0);
  void* const keep = _mi_alloc(100);
  // The last round cannot be helped: no hook runs after it.
  for (uintptr_t round = 1; round <= 3; round++) {
    const int64_t theaps = mi_process_test_current(&_mi_stats.theaps);
    const int64_t threads = mi_process_test_current(&_mi_stats.threads);
    const int64_t pages = mi_process_test_current(&_mi_stats.pages);
    mi_process_test_run_threads(50, &mi_process_test_late_first, (void*)round);
    MI_CHECK_MSG(mi_process_test_current(&_mi_stats.theaps) == theaps, "round %zu: %lld theaps, %lld before", (size_t)round,
                 (long long)mi_process_test_current(&_mi_stats.theaps), (long long)theaps);
    MI_CHECK_EQ(mi_process_test_current(&_mi_stats.threads), threads);
    MI_CHECK(mi_process_test_current(&_mi_stats.pages) <= pages + 1);
  }
  _mi_free(keep);
}

static void* mi_process_test_short(void* arg) {
  void* blocks[32];
  for (size_t i = 0; i < 32; i++) {
    blocks[i] = _mi_alloc(1 + i * i * 40);
    MI_CHECK(blocks[i] != NULL);
  }
  for (size_t i = 0; i < 32; i++) {
    _mi_free(blocks[i]);
  }
  return arg;
}

MI_TEST(short_threads_leave_nothing) {
  _mi_collect(true);
  mi_process_test_run_threads(10, &mi_process_test_short, NULL);
  const int64_t pages = mi_process_test_current(&_mi_stats.pages);
  const int64_t theaps = mi_process_test_current(&_mi_stats.theaps);
  const int64_t reserved = mi_process_test_current(&_mi_stats.reserved);
  mi_process_test_run_threads((int)mi_test_scale("MI_TEST_ROUNDS", 500), &mi_process_test_short, NULL);
  MI_CHECK_EQ(mi_process_test_current(&_mi_stats.pages), pages);
  MI_CHECK_EQ(mi_process_test_current(&_mi_stats.theaps), theaps);
  MI_CHECK_EQ(mi_process_test_current(&_mi_stats.reserved), reserved);
}

static void* mi_process_test_after_done(void* arg) {
  void* const early = _mi_alloc(200);
  _mi_thread_done();
  _mi_thread_done();
  for (size_t size = 1; size < 2000000; size = size * 3 + 1) {
    void* const p = _mi_alloc_zero(size);
    MI_CHECK(p != NULL && mi_test_all_bytes(p, size, 0));
    memset(p, 7, size);
    void* const q = _mi_realloc(NULL, p, size * 2, false);
    MI_CHECK(q != NULL && mi_test_all_bytes(q, size, 7));
    _mi_free(q);
  }
  _mi_free(early);
  return arg;
}

MI_TEST(a_thread_that_is_done_still_allocates) {
  const int64_t theaps = mi_process_test_current(&_mi_stats.theaps);
  mi_process_test_run_threads(5, &mi_process_test_after_done, NULL);
  MI_CHECK_EQ(mi_process_test_current(&_mi_stats.theaps), theaps);
}

// Fork

static _Atomic(bool) mi_process_test_stop;

static void* mi_process_test_work(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  void* held[64] = {NULL};
  while (!mi_atomic_load_relaxed(&mi_process_test_stop)) {
    const uint64_t r = mi_test_random(&seed);
    void** const slot = &held[r % 64];
    _mi_free(*slot);
    *slot = _mi_alloc((r >> 8) % 16 == 0 ? (r >> 16) % 900000 : (r >> 16) % 900);
    if ((r >> 40) % 64 == 0) {
      mi_heap_t* const heap = _mi_heap_new();
      void* const p = _mi_theap_alloc(_mi_heap_theap(heap), 64, false);
      (r >> 50) % 2 == 0 ? _mi_heap_delete(heap) : _mi_heap_destroy(heap);
      if ((r >> 50) % 2 == 0) {
        _mi_free(p);
      }
    }
    if ((r >> 40) % 256 == 1) {
      _mi_collect(true);
    }
  }
  for (int i = 0; i < 64; i++) {
    _mi_free(held[i]);
  }
  return NULL;
}

static void mi_process_test_in_child(void* arg) {
  void* const inherited = arg;
  for (size_t size = 1; size < 3000000; size = size * 2 + 1) {
    void* const p = _mi_alloc_zero(size);
    MI_CHECK(p != NULL && mi_test_all_bytes(p, size, 0));
    _mi_free(p);
  }
  mi_heap_t* const heap = _mi_heap_new();
  MI_CHECK(_mi_theap_alloc(_mi_heap_theap(heap), 10, false) != NULL);
  _mi_heap_destroy(heap);
  _mi_free(inherited);
  _mi_collect(true);
}

MI_TEST(fork_while_threads_work) {
  pthread_t threads[3];
  mi_atomic_store_relaxed(&mi_process_test_stop, false);
  for (uintptr_t t = 0; t < 3; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_process_test_work, (void*)(t + 1)) == 0);
  }
  for (int i = 0; i < 60; i++) {
    void* const p = _mi_alloc(100);
    MI_CHECK_IN_CHILD(&mi_process_test_in_child, p, 20000);
    _mi_free(p);
  }
  mi_atomic_store_relaxed(&mi_process_test_stop, true);
  for (int t = 0; t < 3; t++) {
    pthread_join(threads[t], NULL);
  }
}

// A forked child has none of the other threads; their storage is not reached through the theaps they leave.

static _Atomic(int) mi_process_test_stage;

static void* mi_process_test_stay(void* arg) {
  void* const p = _mi_alloc(100);
  mi_atomic_store_release(&mi_process_test_stage, 1);
  while (mi_atomic_load_acquire(&mi_process_test_stage) < 2) {
    sched_yield();
  }
  _mi_free(p);
  return arg;
}

static void mi_process_test_count_threads(void* arg) {
  (void)arg;
  int others = 0;
  for (const mi_theap_t* theap = _mi_heap_main()->theaps; theap != NULL; theap = theap->next_in_heap) {
    others += theap->tls != NULL && theap->tls != &_mi_tls;
  }
  MI_CHECK_EQ(others, 0);
  MI_CHECK_PTR_EQ(_mi_tls.own->tls, &_mi_tls);
}

MI_TEST(a_child_forgets_the_threads_of_its_parent) {
  _mi_free(_mi_alloc(10));
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_process_test_stay, NULL) == 0);
  while (mi_atomic_load_acquire(&mi_process_test_stage) < 1) {
    sched_yield();
  }
  MI_CHECK_IN_CHILD(&mi_process_test_count_threads, NULL, 20000);
  mi_atomic_store_release(&mi_process_test_stage, 2);
  pthread_join(thread, NULL);
}

MI_TEST_MAIN()
