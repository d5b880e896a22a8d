// Owns: tests of heap/theap: made on first use, found, ended, with arming and disarming of the fast paths.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: theaps and threads are as many after a test as before.
#include "src/heap/block.h"
#include "src/heap/theap.h"

#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { THREADS = 8,
       HEAPS = 20 };

static int64_t mi_theap_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

static bool mi_theap_test_is_armed(void) {
  const bool armed = _mi_thread_theap() != NULL;
  MI_CHECK(armed ? _mi_thread_theap() == _mi_tls.own && _mi_thread_tid() == _mi_tls.own_tid : _mi_thread_tid() == MI_TID_DISARMED);
  const size_t largest = MI_DIRECT_SIZE_MAX - MI_BLOCK_EXTRA;
  MI_CHECK(_mi_thread_is_direct(1) == armed && _mi_thread_is_direct(largest) == armed);
  MI_CHECK(_mi_thread_is_direct(0) == (armed && !MI_HAS_ZERO_SIZE));
  MI_CHECK(!_mi_thread_is_direct(largest + 1) && !_mi_thread_is_direct(SIZE_MAX));
  return armed;
}

MI_TEST(first_use) {
  MI_CHECK(_mi_tls.own == NULL && !mi_theap_test_is_armed());
  MI_CHECK(_mi_theap_find(_mi_heap_main()) == NULL);
  mi_theap_t* const theap = _mi_theap_default();
  MI_REQUIRE(theap != NULL);
  MI_CHECK(mi_theap_test_is_armed());
  MI_CHECK_PTR_EQ(_mi_theap_default(), theap);
  MI_CHECK_PTR_EQ(_mi_heap_theap(NULL), theap);
  MI_CHECK_PTR_EQ(_mi_heap_theap(_mi_heap_main()), theap);
  MI_CHECK_PTR_EQ(_mi_theap_find(_mi_heap_main()), theap);
  MI_CHECK(theap->tid >= MI_TID_FIRST && (theap->tid & MI_OWNER_FLAGS) == 0);
  for (size_t i = 0; i < MI_DIRECT_ENTRIES; i++) {
    MI_CHECK_PTR_EQ(theap->direct[i], &_mi_page_empty);
  }
}

// Disarmed, everything still works, and arms again.
MI_TEST(disarmed) {
  for (size_t size = 1; size < 100000; size *= 3) {
    void* const p = _mi_alloc(size);
    void* const q = _mi_alloc(size);
    _mi_thread_disarm();
    MI_CHECK(!mi_theap_test_is_armed());
    _mi_free(p);
    _mi_thread_disarm();
    void* const r = _mi_alloc_zero(size);
    MI_CHECK(r != NULL && r != q && mi_test_all_bytes(r, size, 0));
    _mi_free(q);
    _mi_free(r);
  }
  _mi_collect(true);
  MI_CHECK_EQ(mi_theap_test_current(&_mi_stats.pages), 0);
  _mi_thread_arm();
  MI_CHECK(mi_theap_test_is_armed());
}

MI_TEST(theap_of_each_heap) {
  const int64_t theaps = mi_theap_test_current(&_mi_stats.theaps);
  mi_heap_t* heaps[HEAPS];
  mi_theap_t* made[HEAPS];
  for (int i = 0; i < HEAPS; i++) {
    heaps[i] = _mi_heap_new();
    MI_CHECK(_mi_theap_find(heaps[i]) == NULL);
    made[i] = _mi_heap_theap(heaps[i]);
    MI_REQUIRE(made[i] != NULL);
    MI_CHECK(made[i]->tid == _mi_tls.own_tid && made[i]->tls == &_mi_tls);
    MI_CHECK_PTR_EQ(_mi_theap_find(heaps[i]), made[i]);
  }
  MI_CHECK_EQ(mi_theap_test_current(&_mi_stats.theaps), theaps + HEAPS);
  for (int i = 0; i < HEAPS; i++) {
    MI_CHECK_PTR_EQ(_mi_heap_theap(heaps[i]), made[i]);
    // A block of it belongs to it, and is freed by the plain free.
    void* const p = _mi_theap_alloc(made[i], 100, true);
    MI_CHECK_PTR_EQ(_mi_page_map_find(p)->theap, made[i]);
    _mi_free(p);
  }
  for (int i = 0; i < HEAPS; i += 2) {
    _mi_heap_destroy(heaps[i]);
    // The structure may be another heap's next: that one has no theap yet.
    mi_heap_t* const next = _mi_heap_new();
    MI_CHECK(_mi_theap_find(next) == NULL);
    _mi_heap_destroy(next);
  }
  for (int i = 1; i < HEAPS; i += 2) {
    MI_CHECK_PTR_EQ(_mi_theap_find(heaps[i]), made[i]);
    _mi_heap_delete(heaps[i]);
  }
}

static uintptr_t mi_theap_test_tids[THREADS];

static void* mi_theap_test_thread(void* arg) {
  const size_t self = (size_t)(uintptr_t)arg;
  MI_CHECK(_mi_tls.own == NULL && !mi_theap_test_is_armed());
  _mi_thread_init();
  _mi_thread_init();
  MI_CHECK(mi_theap_test_is_armed());
  mi_theap_test_tids[self] = _mi_tls.own_tid;
  _mi_thread_done();
  MI_CHECK(_mi_tls.own == NULL && !mi_theap_test_is_armed());
  MI_CHECK(_mi_theap_default() == NULL);
  // It says that it begins again.
  _mi_thread_init();
  MI_CHECK(_mi_theap_default() != NULL && mi_theap_test_is_armed());
  MI_CHECK(_mi_tls.own_tid != mi_theap_test_tids[self]);
  return NULL;
}

MI_TEST(threads) {
  const int64_t theaps = mi_theap_test_current(&_mi_stats.theaps);
  const int64_t count = mi_theap_test_current(&_mi_stats.threads);
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_theap_test_thread, (void*)t) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  for (int t = 0; t < THREADS; t++) {
    for (int k = 0; k < t; k++) {
      MI_CHECK(mi_theap_test_tids[t] != mi_theap_test_tids[k]);
    }
  }
  MI_CHECK_EQ(mi_theap_test_current(&_mi_stats.theaps), theaps);
  MI_CHECK_EQ(mi_theap_test_current(&_mi_stats.threads), count);
}

static int mi_theap_test_visits;

static void mi_theap_test_visit(mi_theap_t* theap) {
  MI_CHECK(mi_atomic_load_relaxed(&theap->heap) != NULL);
  mi_theap_test_visits++;
}

MI_TEST(each_theap) {
  mi_heap_t* const a = _mi_heap_new();
  mi_heap_t* const b = _mi_heap_new();
  (void)_mi_heap_theap(a);
  mi_theap_test_visits = 0;
  _mi_thread_each_theap(&mi_theap_test_visit);
  const int with_one = mi_theap_test_visits;
  (void)_mi_heap_theap(b);
  mi_theap_test_visits = 0;
  _mi_thread_each_theap(&mi_theap_test_visit);
  MI_CHECK_EQ(mi_theap_test_visits, with_one + 1);
  _mi_heap_destroy(b);
  mi_theap_test_visits = 0;
  _mi_thread_each_theap(&mi_theap_test_visit);
  MI_CHECK_EQ(mi_theap_test_visits, with_one);
  _mi_heap_destroy(a);
}

// The default theap

static void mi_theap_test_in_child(void* arg) {
  MI_CHECK_PTR_EQ(_mi_theap_default(), arg);
  void* const p = _mi_alloc(40);
  MI_CHECK_PTR_EQ(_mi_page_map_find(p)->theap, arg);
  _mi_free(p);
  _mi_theap_choose_default(_mi_tls.own);
  void* const q = _mi_alloc(40);
  MI_CHECK_PTR_EQ(_mi_page_map_find(q)->theap, _mi_tls.own);
  _mi_free(q);
}

MI_TEST(default_theap) {
  mi_heap_t* const heap = _mi_heap_new();
  mi_theap_t* const theap = _mi_heap_theap(heap);
  _mi_theap_choose_default(theap);
  MI_CHECK(_mi_theap_default() == theap && _mi_thread_theap() == theap && _mi_theap_own() == _mi_tls.own);
  static const size_t sizes[] = {0, 1, 100, 1024, 20000, 600000, 5000000};
  void* blocks[7];
  for (int i = 0; i < 7; i++) {
    blocks[i] = _mi_alloc(sizes[i]);
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(blocks[i])->heap), heap);
    _mi_thread_disarm();
  }
  // Armed again, it is the chosen one again.
  _mi_thread_arm();
  MI_CHECK_PTR_EQ(_mi_thread_theap(), theap);
  MI_CHECK_IN_CHILD(&mi_theap_test_in_child, theap, 20000);
  _mi_theap_choose_default(_mi_tls.own);
  for (int i = 0; i < 7; i++) {
    void* const p = _mi_alloc(sizes[i]);
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(p)->heap), _mi_heap_main());
    _mi_free(p);
    _mi_free(blocks[i]);
  }
  // Its end, and that of its heap.
  _mi_theap_choose_default(theap);
  _mi_thread_end_theap(theap);
  MI_CHECK(_mi_theap_default() == _mi_tls.own && _mi_theap_find(heap) == NULL && _mi_thread_theap() != theap);
  _mi_theap_choose_default(_mi_heap_theap(heap));
  _mi_heap_destroy(heap);
  MI_CHECK(_mi_theap_default() == _mi_tls.own && _mi_thread_theap() == NULL);
  void* const p = _mi_alloc(10);
  MI_CHECK_PTR_EQ(_mi_page_map_find(p)->theap, _mi_tls.own);
  _mi_free(p);
}

// A thread ends with another default.
static void* mi_theap_test_end_with_default(void* arg) {
  _mi_theap_choose_default(_mi_heap_theap(arg));
  return _mi_alloc(100);
}

MI_TEST(thread_ends_with_another_default) {
  const int64_t theaps = mi_theap_test_current(&_mi_stats.theaps);
  mi_heap_t* const heap = _mi_heap_new();
  for (int i = 0; i < 100; i++) {
    pthread_t thread;
    void* p;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_theap_test_end_with_default, heap) == 0);
    pthread_join(thread, &p);
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(p)->heap), heap);
    _mi_free(p);
  }
  MI_CHECK_EQ(mi_theap_test_current(&_mi_stats.theaps), theaps);
  _mi_heap_destroy(heap);
}

// What was found lately is not found when its heap has ended and its place is another heap's.
MI_TEST(recent_theaps) {
  for (int round = 0; round < 100; round++) {
    mi_heap_t* const heap = _mi_heap_new();
    mi_theap_t* const theap = _mi_heap_theap(heap);
    MI_CHECK(_mi_theap_find(heap) == theap && _mi_theap_find(_mi_heap_main()) == _mi_tls.own);
    _mi_heap_destroy(heap);
    mi_heap_t* const next = _mi_heap_new();
    MI_CHECK(next == heap && _mi_theap_find(next) == NULL);
    _mi_heap_destroy(next);
  }
}

MI_TEST_MAIN()
