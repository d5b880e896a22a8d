// Owns: tests of heap/heap: heaps made, deleted and destroyed, by one thread and while others use them.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test makes it ends, so that counts return to where they were.
#include "src/heap/heap.h"

#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

enum { ROUNDS = 300,
       THREADS = 8,
       BLOCKS = 400 };

static const size_t mi_heap_test_sizes[] = {1, 16, 100, 1024, 5000, 40000, 300000, 700000};
enum { SIZES = sizeof(mi_heap_test_sizes) / sizeof(mi_heap_test_sizes[0]) };

static int64_t mi_heap_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

static size_t mi_heap_test_chain(void) {
  size_t n = 0;
  for (const mi_theap_t* theap = _mi_tls.own; theap != NULL; theap = theap->next_in_thread) {
    n++;
  }
  return n;
}

static void* mi_heap_test_alloc(mi_heap_t* heap, size_t size) {
  mi_theap_t* const theap = _mi_heap_theap(heap);
  MI_REQUIRE(theap != NULL);
  void* const p = _mi_theap_alloc(theap, size, false);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, size, size);
  return p;
}

MI_TEST(main_heap_stays) {
  _mi_heap_delete(NULL);
  _mi_heap_destroy(NULL);
  _mi_heap_delete(_mi_heap_main());
  _mi_heap_destroy(_mi_heap_main());
  void* const p = _mi_alloc(10);
  MI_CHECK(p != NULL);
  _mi_free(p);
}

MI_TEST(deleted_blocks_live_on) {
  void* blocks[SIZES];
  mi_heap_t* const heap = _mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (size_t i = 0; i < SIZES; i++) {
    blocks[i] = mi_heap_test_alloc(heap, mi_heap_test_sizes[i]);
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(blocks[i])->heap), heap);
  }
  _mi_heap_delete(heap);
  for (size_t i = 0; i < SIZES; i++) {
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(blocks[i])->heap), _mi_heap_main());
    MI_CHECK(mi_test_filled(blocks[i], mi_heap_test_sizes[i], mi_heap_test_sizes[i]));
    _mi_free(blocks[i]);
  }
}

MI_TEST(destroy_releases_everything) {
  _mi_collect(true);
  const int64_t pages = mi_heap_test_current(&_mi_stats.pages);
  const int64_t heaps = mi_heap_test_current(&_mi_stats.heaps);
  for (int round = 0; round < ROUNDS; round++) {
    mi_heap_t* const heap = _mi_heap_new();
    for (size_t i = 0; i < SIZES; i++) {
      (void)mi_heap_test_alloc(heap, mi_heap_test_sizes[i]);
    }
    _mi_heap_destroy(heap);
  }
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.pages), pages);
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.heaps), heaps);
  MI_CHECK(mi_heap_test_chain() <= 2);
}

// A program that makes and deletes heaps for ever must not gather what served them.
MI_TEST(delete_leaves_no_theaps_behind) {
  _mi_collect(true);
  const int64_t pages = mi_heap_test_current(&_mi_stats.pages);
  const int64_t theaps = mi_heap_test_current(&_mi_stats.theaps);
  for (int round = 0; round < ROUNDS; round++) {
    mi_heap_t* const heap = _mi_heap_new();
    void* const p = mi_heap_test_alloc(heap, 100);
    _mi_heap_delete(heap);
    _mi_free(p);
  }
  _mi_collect(true);
  MI_CHECK_MSG(mi_heap_test_current(&_mi_stats.theaps) <= theaps + 2, "%lld theaps were %lld before %d heaps came and went",
               (long long)mi_heap_test_current(&_mi_stats.theaps), (long long)theaps, (int)ROUNDS);
  MI_CHECK(mi_heap_test_chain() <= 3);
  MI_CHECK(mi_heap_test_current(&_mi_stats.pages) <= pages + 2);
}

// Frees of other threads into a heap that ends

typedef struct mi_heap_test_job_s {
  void* blocks[BLOCKS];
  pthread_barrier_t* barrier;
} mi_heap_test_job_t;

static void* mi_heap_test_free_all(void* arg) {
  mi_heap_test_job_t* const job = arg;
  pthread_barrier_wait(job->barrier);
  for (int i = 0; i < BLOCKS; i++) {
    _mi_free(job->blocks[i]);
  }
  return NULL;
}

MI_TEST(delete_while_others_free) {
  static mi_heap_test_job_t jobs[4];
  _mi_collect(true);
  const int64_t pages = mi_heap_test_current(&_mi_stats.pages);
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 60);
  for (long round = 0; round < rounds; round++) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 5);
    mi_heap_t* const heap = _mi_heap_new();
    uint64_t seed = (uint64_t)round;
    for (int i = 0; i < BLOCKS; i++) {
      for (int t = 0; t < 4; t++) {
        jobs[t].barrier = &barrier;
        jobs[t].blocks[i] = _mi_theap_alloc(_mi_heap_theap(heap), 16 + mi_test_random(&seed) % 3000, false);
      }
    }
    pthread_t threads[4];
    for (int t = 0; t < 4; t++) {
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_heap_test_free_all, &jobs[t]) == 0);
    }
    pthread_barrier_wait(&barrier);
    _mi_heap_delete(heap);
    for (int t = 0; t < 4; t++) {
      pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&barrier);
  }
  // A new heap makes this thread drop what belonged to those that ended.
  mi_heap_t* const last = _mi_heap_new();
  (void)_mi_heap_theap(last);
  _mi_heap_destroy(last);
  _mi_collect(true);
  MI_CHECK_MSG(mi_heap_test_current(&_mi_stats.pages) <= pages + 2, "%lld pages, %lld before",
               (long long)mi_heap_test_current(&_mi_stats.pages), (long long)pages);
  MI_CHECK(mi_heap_test_current(&_mi_stats.pages_abandoned) >= 0);
}

// One heap, used by many threads, destroyed by the first

static mi_heap_t* mi_heap_test_shared;
static pthread_barrier_t mi_heap_test_gate;

static void* mi_heap_test_use_shared(void* arg) {
  (void)arg;
  for (int round = 0; round < 40; round++) {
    pthread_barrier_wait(&mi_heap_test_gate);
    for (size_t i = 0; i < SIZES; i++) {
      mi_heap_test_alloc(mi_heap_test_shared, mi_heap_test_sizes[i]);
    }
    void* const own = _mi_alloc(48);
    pthread_barrier_wait(&mi_heap_test_gate);
    _mi_free(own);
  }
  return NULL;
}

MI_TEST(destroyed_by_the_first_of_many) {
  const int64_t theaps = mi_heap_test_current(&_mi_stats.theaps);
  const int64_t threads_before = mi_heap_test_current(&_mi_stats.threads);
  pthread_t threads[THREADS];
  pthread_barrier_init(&mi_heap_test_gate, NULL, THREADS + 1);
  for (int t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_heap_test_use_shared, NULL) == 0);
  }
  for (int round = 0; round < 40; round++) {
    mi_heap_test_shared = _mi_heap_new();
    pthread_barrier_wait(&mi_heap_test_gate);
    pthread_barrier_wait(&mi_heap_test_gate);
    _mi_heap_destroy(mi_heap_test_shared);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  pthread_barrier_destroy(&mi_heap_test_gate);
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.theaps), theaps);
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.threads), threads_before);
}

// Threads that end while a heap ends

static void* mi_heap_test_short_life(void* arg) {
  mi_heap_t* const heap = arg;
  void* const p = mi_heap_test_alloc(heap, 200);
  pthread_barrier_wait(&mi_heap_test_gate);
  _mi_free(p);
  _mi_thread_done();
  return NULL;
}

MI_TEST(delete_while_threads_end) {
  _mi_collect(true);
  const int64_t pages = mi_heap_test_current(&_mi_stats.pages);
  const int64_t theaps = mi_heap_test_current(&_mi_stats.theaps);
  for (int round = 0; round < 60; round++) {
    mi_heap_t* const heap = _mi_heap_new();
    pthread_t threads[4];
    pthread_barrier_init(&mi_heap_test_gate, NULL, 5);
    for (int t = 0; t < 4; t++) {
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_heap_test_short_life, heap) == 0);
    }
    pthread_barrier_wait(&mi_heap_test_gate);
    _mi_heap_delete(heap);
    for (int t = 0; t < 4; t++) {
      pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&mi_heap_test_gate);
  }
  _mi_collect(true);
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.theaps), theaps);
  MI_CHECK(mi_heap_test_current(&_mi_stats.pages) <= pages + 1);
}

// What ends is not to be used

static void mi_heap_test_report_only(void) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  mi_violation_message[0] = 0;
}

static bool mi_heap_test_said(const char* word, const char* text) {
  const bool said = strstr(mi_violation_message, word) != NULL && strstr(mi_violation_message, text) != NULL;
  mi_violation_message[0] = 0;
  return said;
}

MI_TEST(an_ended_heap_is_reported) {
  const long before = _mi_option_get(mi_option_on_violation);
  mi_heap_test_report_only();
  const int64_t heaps = mi_heap_test_current(&_mi_stats.heaps);
  mi_heap_t* const gone = _mi_heap_new();
  mi_heap_t* const other = _mi_heap_new();
  void* const p = mi_heap_test_alloc(gone, 100);
  _mi_heap_delete(gone);
  MI_CHECK(mi_violation_message[0] == 0);
  _mi_heap_delete(gone);
  MI_CHECK(mi_heap_test_said("double-free", "deleted again"));
  _mi_heap_destroy(gone);
  MI_CHECK(mi_heap_test_said("double-free", "destroyed again"));
  MI_CHECK_PTR_EQ(_mi_heap_theap(gone), _mi_tls.own);
  MI_CHECK(mi_heap_test_said("use-after-free", "is used"));
  _mi_free(p);
  _mi_heap_destroy(other);
  _mi_heap_destroy(other);
  MI_CHECK(mi_heap_test_said("double-free", "destroyed again"));
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.heaps), heaps);
  _mi_option_set(mi_option_on_violation, before);
}

MI_TEST(not_to_be_destroyed) {
  const mi_heap_config_t config = {.tag = 3};
  mi_heap_t* const heap = _mi_heap_new_as(&config);
  MI_CHECK_EQ(heap->tag, 3);
  void* const p = mi_heap_test_alloc(heap, 100);
  _mi_heap_destroy(heap);
  MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(p)->heap), _mi_heap_main());
  _mi_free(p);
}

// The pages of a heap are in its list as long as they are its pages.
MI_TEST(list_of_pages) {
  void* blocks[SIZES];
  mi_heap_t* const heap = _mi_heap_new();
  for (size_t i = 0; i < SIZES; i++) {
    blocks[i] = mi_heap_test_alloc(heap, mi_heap_test_sizes[i]);
  }
  blocks[0] = _mi_realloc(_mi_heap_theap(heap), blocks[0], 5000000, false);
  blocks[0] = _mi_realloc(_mi_heap_theap(heap), blocks[0], 50000000, false);
  for (size_t i = 0; i < SIZES; i++) {
    mi_page_t* const page = _mi_page_map_find(blocks[i]);
    const mi_page_t* at = heap->pages;
    while (at != NULL && at != page) {
      MI_CHECK(at->heap_next == NULL || at->heap_next->heap_prev == at);
      at = at->heap_next;
    }
    MI_CHECK_PTR_EQ(at, page);
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&page->heap), heap);
  }
  for (size_t i = 0; i < SIZES; i++) {
    _mi_free(blocks[i]);
  }
  _mi_heap_collect(heap, true);
  MI_CHECK_PTR_EQ(heap->pages, NULL);
  _mi_heap_delete(heap);
}

// Threads whose default heap is deleted while they allocate

enum { DEFAULT_BLOCKS = 3000 };
typedef struct mi_heap_test_default_s {
  void* blocks[DEFAULT_BLOCKS];
  bool moved;
} mi_heap_test_default_t;

static void* mi_heap_test_use_default(void* arg) {
  mi_heap_test_default_t* const job = arg;
  _mi_theap_choose_default(_mi_heap_theap(mi_heap_test_shared));
  pthread_barrier_wait(&mi_heap_test_gate);
  uint64_t seed = (uintptr_t)arg;
  for (int i = 0; i < DEFAULT_BLOCKS; i++) {
    const uint64_t r = mi_test_random(&seed);
    // Some of no bytes, and some that stand alone.
    const size_t size = r % 32 == 0 ? 0 : r % 1024 == 1 ? 600000
                                                        : (r >> 16) % 4000;
    job->blocks[i] = _mi_alloc(size);
    mi_test_fill(job->blocks[i], size, (uint64_t)i);
  }
  pthread_barrier_wait(&mi_heap_test_gate);
  job->moved = _mi_theap_default() == _mi_tls.own;
  return NULL;
}

MI_TEST(deleted_while_it_is_a_default) {
  static mi_heap_test_default_t jobs[4];
  MI_REQUIRE(_mi_theap_own() != NULL);
  const int64_t theaps = mi_heap_test_current(&_mi_stats.theaps);
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 60);
  for (long round = 0; round < rounds; round++) {
    pthread_t threads[4];
    mi_heap_test_shared = _mi_heap_new();
    pthread_barrier_init(&mi_heap_test_gate, NULL, 5);
    for (int t = 0; t < 4; t++) {
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_heap_test_use_default, &jobs[t]) == 0);
    }
    pthread_barrier_wait(&mi_heap_test_gate);
    for (volatile long spin = round * 2000; spin > 0; spin--) {
    }
    _mi_heap_delete(mi_heap_test_shared);
    pthread_barrier_wait(&mi_heap_test_gate);
    int lost = 0;
    for (int t = 0; t < 4; t++) {
      pthread_join(threads[t], NULL);
      MI_CHECK(jobs[t].moved);
      for (int i = 0; i < DEFAULT_BLOCKS; i++) {
        lost += mi_atomic_load_relaxed(&_mi_page_map_find(jobs[t].blocks[i])->heap) != _mi_heap_main();
        _mi_free(jobs[t].blocks[i]);
      }
    }
    MI_CHECK_MSG(lost == 0, "%d blocks are left with a heap that is gone", lost);
    pthread_barrier_destroy(&mi_heap_test_gate);
  }
  MI_CHECK_EQ(mi_heap_test_current(&_mi_stats.theaps), theaps);
}

MI_TEST_MAIN()
