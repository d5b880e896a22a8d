// Owns: tests of the function for deferred frees: when it is called, with what, and what it may do.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the function is unregistered at the end of each test.
#include "src/sys/deferred.h"

#include <pthread.h>

#include "mimalloc.h"
#include "src/heap/theap.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { LARGE = 1024 * 1024 };

typedef struct mi_deferred_test_s {
  int calls;
  int forced;
  unsigned long long heartbeat;
  void* held;  // freed by the next forced call
} mi_deferred_test_t;

static void mi_deferred_test_note(bool force, unsigned long long heartbeat, void* arg) {
  mi_deferred_test_t* const test = arg;
  MI_CHECK(test->calls == 0 || heartbeat == test->heartbeat + 1);
  test->heartbeat = heartbeat;
  test->calls++;
  test->forced += force;
  errno = EIO;
}

// Each of these is off the fast path.
static void mi_deferred_test_allocate(int count) {
  for (int i = 0; i < count; i++) {
    void* const p = mi_malloc(LARGE);
    MI_REQUIRE(p != NULL);
    mi_free(p);
  }
}

MI_TEST(called_once_in_a_while) {
  mi_deferred_test_t test = {0};
  mi_deferred_test_allocate(MI_DEFERRED_TICKS);
  mi_register_deferred_free(&mi_deferred_test_note, &test);
  errno = 12345;
  mi_deferred_test_allocate(10 * MI_DEFERRED_TICKS);
  MI_CHECK_EQ(errno, 12345);
  MI_CHECK_EQ(test.calls, 10);
  MI_CHECK_EQ(test.forced, 0);
  // Small blocks count when a page has no more of them.
  void* first = NULL;
  for (int i = 0; i < 100000 && test.calls == 10; i++) {
    void** const p = mi_malloc(100);
    MI_REQUIRE(p != NULL);
    *p = first;
    first = p;
  }
  MI_CHECK_EQ(test.calls, 11);
  mi_register_deferred_free(NULL, NULL);
  while (first != NULL) {
    void* const next = *(void**)first;
    mi_free(first);
    first = next;
  }
  mi_deferred_test_allocate(2 * MI_DEFERRED_TICKS);
  MI_CHECK_EQ(test.calls, 11);
}

MI_TEST(called_by_collect) {
  mi_deferred_test_t test = {0};
  mi_register_deferred_free(&mi_deferred_test_note, &test);
  mi_collect(false);
  MI_CHECK(test.calls == 1 && test.forced == 0);
  mi_collect(true);
  MI_CHECK(test.calls == 2 && test.forced == 1);
  mi_heap_collect(mi_heap_main(), true);
  MI_CHECK(test.calls == 3 && test.forced == 2);
  mi_register_deferred_free(NULL, NULL);
}

static void mi_deferred_test_recurse(bool force, unsigned long long heartbeat, void* arg) {
  int* const depth = arg;
  (void)force;
  (void)heartbeat;
  MI_CHECK_EQ(++*depth, 1);
  mi_deferred_test_allocate(3 * MI_DEFERRED_TICKS);
  mi_collect(true);
  --*depth;
}

MI_TEST(not_from_inside_itself) {
  int depth = 0;
  mi_register_deferred_free(&mi_deferred_test_recurse, &depth);
  mi_deferred_test_allocate(2 * MI_DEFERRED_TICKS);
  mi_collect(false);
  mi_register_deferred_free(NULL, NULL);
}

// A function that frees what it holds when it is forced to.
static void mi_deferred_test_let_go(bool force, unsigned long long heartbeat, void* arg) {
  mi_deferred_test_t* const test = arg;
  (void)heartbeat;
  test->forced += force;
  if (force && test->held != NULL) {
    mi_free(test->held);
    test->held = NULL;
  }
}

static void mi_deferred_test_out_of_memory(void* arg) {
  (void)arg;
  mi_deferred_test_t test = {0};
  mi_register_deferred_free(&mi_deferred_test_let_go, &test);
  MI_CHECK(mi_malloc(mi_test_hide_size(SIZE_MAX / 4)) == NULL);
  MI_CHECK_EQ(test.forced, 1);
}

MI_TEST(forced_when_memory_runs_out) { MI_CHECK_IN_CHILD(&mi_deferred_test_out_of_memory, NULL, 10000); }

// Every thread has a heartbeat of its own, and all call the function at once.
static _Atomic(int) mi_deferred_test_total;

static void mi_deferred_test_count(bool force, unsigned long long heartbeat, void* arg) {
  static mi_thread_local unsigned long long last;
  (void)force;
  (void)arg;
  MI_CHECK(heartbeat == last + 1);
  last = heartbeat;
  mi_atomic_add_relaxed(&mi_deferred_test_total, 1);
}

static void* mi_deferred_test_thread(void* arg) {
  mi_deferred_test_allocate(5 * MI_DEFERRED_TICKS);
  return arg;
}

MI_TEST(threads) {
  pthread_t threads[4];
  mi_register_deferred_free(&mi_deferred_test_count, NULL);
  for (int i = 0; i < 4; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_deferred_test_thread, NULL) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  mi_register_deferred_free(NULL, NULL);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_deferred_test_total), 4 * 5);
}

MI_TEST_MAIN()
