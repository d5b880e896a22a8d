// Owns: tests of memory events: what is told and counted of each call, in which thread, and that none is missed.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: events are off and no function is registered at the end of each test.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mimalloc.h"
#include "src/heap/theap.h"
#include "test/lib/test.h"

enum {
  MI_EVENTS_KEPT = 64,
  MI_EVENTS_THREADS = 8,
  MI_EVENTS_LARGE = 3 * 1024 * 1024,
};

typedef struct mi_events_test_s {
  size_t count;
  mi_memory_change_t events[MI_EVENTS_KEPT];
  pthread_t thread;
} mi_events_test_t;

static mi_events_test_t mi_events_seen;

// Allocates too: that is neither told nor counted, and does not come here again.
static void mi_events_test_note(const mi_memory_change_t* change, void* arg) {
  MI_CHECK_PTR_EQ(arg, &mi_events_seen);
  void* p = mi_malloc(100);
  p = mi_realloc(p, 100000);
  mi_free(p);
  MI_CHECK(!mi_memory_visit_live_allocations((mi_memory_allocation_visit_fun*)(uintptr_t)1, NULL));
  mi_events_seen.events[mi_events_seen.count++ % MI_EVENTS_KEPT] = *change;
  mi_events_seen.thread = pthread_self();
  errno = EIO;
}

static mi_memory_snapshot_t mi_events_test_snapshot(void) {
  mi_memory_snapshot_t_decl(snapshot);
  MI_CHECK(mi_memory_snapshot(&snapshot));
  return snapshot;
}

static void mi_events_test_begin(void) {
  mi_memory_callbacks_t callbacks;
  for (size_t i = 0; i < MI_MEMORY_CHANGE_COUNT; i++) {
    callbacks.handlers[i] = &mi_events_test_note;
    callbacks.args[i] = &mi_events_seen;
  }
  MI_REQUIRE(mi_memory_set_callbacks(&callbacks));
  MI_REQUIRE(mi_memory_tracking_set_enabled(true));
  mi_events_seen.count = 0;
}

static void mi_events_test_end(void) {
  MI_CHECK(mi_memory_tracking_set_enabled(false));
  MI_CHECK(mi_memory_set_callbacks(NULL));
  MI_CHECK(!mi_memory_tracking_is_enabled());
}

// Exactly one event since the last look, and what it says.
static void mi_events_test_one(const char* what, mi_memory_change_kind_t kind, int64_t delta, size_t request) {
  const mi_memory_change_t* const event = &mi_events_seen.events[0];
  MI_CHECK_MSG(mi_events_seen.count == 1, "%s: %zu events", what, mi_events_seen.count);
  MI_CHECK_MSG(event->kind == kind, "%s: kind %d", what, (int)event->kind);
  MI_CHECK_MSG(event->delta_bytes == delta, "%s: %lld bytes, not %lld", what, (long long)event->delta_bytes, (long long)delta);
  MI_CHECK_MSG(event->request_size == request, "%s: request %llu", what, (unsigned long long)event->request_size);
  MI_CHECK_MSG(event->total_bytes == mi_events_test_snapshot().live_bytes, "%s: total", what);
  mi_events_seen.count = 0;
}

static int64_t mi_events_test_usable(const void* p) { return (int64_t)mi_usable_size(p); }

MI_TEST(layouts) {
  MI_CHECK_EQ(MI_MEMORY_ALLOCATE, 0);
  MI_CHECK_EQ(MI_MEMORY_FREE, 1);
  MI_CHECK_EQ(MI_MEMORY_RESIZE, 2);
  MI_CHECK_EQ(MI_MEMORY_CHANGE_COUNT, 3);
  MI_CHECK_EQ(sizeof(mi_memory_change_t), sizeof(void*) == 8 ? 32 : 28);
  MI_CHECK_EQ(sizeof(mi_memory_callbacks_t), 6 * sizeof(void*));
  MI_CHECK_EQ(sizeof(mi_memory_snapshot_t), sizeof(void*) == 8 ? 48 : 40);
}

MI_TEST(snapshot_wants_its_version) {
  mi_memory_snapshot_t_decl(snapshot);
  MI_CHECK(mi_memory_snapshot(&snapshot));
  snapshot.version++;
  MI_CHECK(!mi_memory_snapshot(&snapshot));
  snapshot.version--;
  snapshot.size--;
  MI_CHECK(!mi_memory_snapshot(&snapshot));
  MI_CHECK(!mi_memory_snapshot(NULL));
}

MI_TEST(each_call_is_one_event) {
  static const size_t sizes[] = {0, 1, 16, 100, 1024, 5000, 100000, 600000, MI_EVENTS_LARGE};
  mi_events_test_begin();
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    const size_t size = sizes[i];
    const mi_memory_snapshot_t before = mi_events_test_snapshot();
    errno = 12345;
    void* p = mi_malloc(size);
    MI_REQUIRE(p != NULL);
    MI_CHECK_EQ(errno, 12345);
    mi_events_test_one("malloc", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), size);
    const mi_memory_snapshot_t between = mi_events_test_snapshot();
    MI_CHECK_EQ(between.live_count, before.live_count + 1);
    MI_CHECK_EQ(between.accum_count, before.accum_count + 1);
    MI_CHECK_EQ(between.accum_bytes, before.accum_bytes + mi_usable_size(p));
    // A block that moves is resized, and nothing else.
    int64_t usable = mi_events_test_usable(p);
    p = mi_realloc(p, 3 * size + 50);
    MI_REQUIRE(p != NULL);
    mi_events_test_one("realloc", MI_MEMORY_RESIZE, mi_events_test_usable(p) - usable, 3 * size + 50);
    usable = mi_events_test_usable(p);
    p = mi_rezalloc(p, size + 1);
    mi_events_test_one("rezalloc", MI_MEMORY_RESIZE, mi_events_test_usable(p) - usable, size + 1);
    usable = mi_events_test_usable(p);
    if (mi_expand(p, size) != NULL) {
      mi_events_test_one("expand", MI_MEMORY_RESIZE, mi_events_test_usable(p) - usable, size);
    }
    MI_CHECK_EQ(mi_events_test_snapshot().live_count, between.live_count);
    usable = mi_events_test_usable(p);
    mi_free(p);
    MI_CHECK_EQ(errno, 12345);
    mi_events_test_one("free", MI_MEMORY_FREE, -usable, 0);
    const mi_memory_snapshot_t after = mi_events_test_snapshot();
    MI_CHECK_EQ(after.live_count, before.live_count);
    MI_CHECK_EQ(after.live_bytes, before.live_bytes);
  }
  mi_events_test_end();
}

MI_TEST(each_family_is_told) {
  mi_events_test_begin();
  void* p = mi_calloc(3, 50);
  mi_events_test_one("calloc", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), 150);
  int64_t usable = mi_events_test_usable(p);
  mi_free_size(p, 150);
  mi_events_test_one("free_size", MI_MEMORY_FREE, -usable, 0);
  p = mi_malloc_aligned(100, 4096);
  mi_events_test_one("aligned", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), 100);
  usable = mi_events_test_usable(p);
  p = mi_realloc_aligned(p, 9000, 8192);
  mi_events_test_one("realloc_aligned", MI_MEMORY_RESIZE, mi_events_test_usable(p) - usable, 9000);
  usable = mi_events_test_usable(p);
  mi_free(p);
  mi_events_test_one("free of aligned", MI_MEMORY_FREE, -usable, 0);
  p = mi_malloc_aligned_at(100, 256, 8);
  mi_events_test_one("offset", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), 100);
  usable = mi_events_test_usable(p);
  mi_free(p);
  mi_events_test_one("free of offset", MI_MEMORY_FREE, -usable, 0);
  p = mi_strdup("words");
  mi_events_test_one("strdup", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), 6);
  p = mi_reallocf(p, 77);
  mi_events_seen.count = 0;
  mi_free(p);
  mi_events_seen.count = 0;
  mi_heap_t* const heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (int i = 0; i < 3; i++) {
    p = mi_heap_malloc(heap, 100);
    mi_events_test_one("heap_malloc", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), 100);
  }
  p = mi_heap_zalloc_aligned(heap, 1000, 64);
  mi_events_test_one("heap_zalloc_aligned", MI_MEMORY_ALLOCATE, mi_events_test_usable(p), 1000);
  p = mi_heap_realloc(mi_heap_main(), p, 5000);
  mi_events_seen.count = 0;
  mi_free(p);
  mi_events_seen.count = 0;
  // What fails is no event, nor is nothing.
  MI_CHECK(mi_malloc(SIZE_MAX / 2) == NULL);
  p = mi_malloc(10);
  mi_events_seen.count = 0;
  MI_CHECK(mi_realloc(p, SIZE_MAX / 2) == NULL);
  mi_free(NULL);
  MI_CHECK_EQ(mi_events_seen.count, 0);
  mi_free(p);
  mi_events_seen.count = 0;
  // The blocks of a heap that goes go as one.
  const mi_memory_snapshot_t before = mi_events_test_snapshot();
  p = mi_heap_malloc(heap, MI_EVENTS_LARGE);
  usable = mi_events_test_usable(p);
  mi_events_seen.count = 0;
  mi_heap_destroy(heap);
  MI_CHECK_EQ(mi_events_seen.count, 1);
  MI_CHECK_EQ(mi_events_seen.events[0].kind, MI_MEMORY_FREE);
  MI_CHECK_EQ(mi_events_test_snapshot().live_count, before.live_count - 3);
  MI_CHECK_EQ(mi_events_seen.events[0].total_bytes, mi_events_test_snapshot().live_bytes);
  mi_events_test_end();
}

MI_TEST(off_is_silent_and_fast) {
  mi_events_test_begin();
  mi_events_test_end();
  const mi_memory_snapshot_t before = mi_events_test_snapshot();
  void* const p = mi_malloc(100);
  mi_free(mi_realloc(p, 10000));
  MI_CHECK_EQ(mi_events_seen.count, 0);
  MI_CHECK_EQ(mi_events_test_snapshot().accum_count, before.accum_count);
  // Armed again: requests find their page in the table.
  for (int i = 0; i < 100 && _mi_thread_theap() == NULL; i++) {
    mi_free(mi_malloc(100));
  }
  MI_CHECK(_mi_thread_theap() != NULL);
  mi_events_test_begin();
  mi_free(mi_malloc(100));
  MI_CHECK(_mi_thread_theap() == NULL);
  mi_events_test_end();
}

static void* mi_events_deferred;
static void mi_events_test_let_go(bool force, unsigned long long heartbeat, void* arg) {
  (void)force;
  (void)heartbeat;
  (void)arg;
  mi_free(mi_events_deferred);
  mi_events_deferred = NULL;
}

// The program's own function is no part of the call that leads to it.
MI_TEST(deferred_frees_are_told) {
  mi_events_test_begin();
  mi_register_deferred_free(&mi_events_test_let_go, NULL);
  void* p = mi_malloc(10);
  for (int i = 0; i < 300; i++) {
    mi_events_deferred = mi_events_deferred != NULL ? mi_events_deferred : mi_malloc(100);
    p = mi_realloc_aligned(p, (size_t)(i + 1) * 1000, 64);
    MI_REQUIRE(p != NULL);
  }
  mi_register_deferred_free(NULL, NULL);
  mi_free(p);
  mi_free(mi_events_deferred);
  mi_events_deferred = NULL;
  const mi_memory_snapshot_t after = mi_events_test_snapshot();
  mi_events_test_end();
  MI_CHECK(after.accum_count > 2);
  p = NULL;
  mi_events_test_begin();
  MI_CHECK_EQ(mi_events_test_snapshot().live_bytes, after.live_bytes);
  mi_events_test_end();
}

// Threads

static _Atomic(size_t) mi_events_allocated;
static _Atomic(size_t) mi_events_freed;
static _Atomic(int64_t) mi_events_sum;

static void mi_events_test_count(const mi_memory_change_t* change, void* arg) {
  (void)arg;
  atomic_fetch_add(&mi_events_sum, change->delta_bytes);
  if (change->kind != MI_MEMORY_RESIZE) {
    atomic_fetch_add(change->kind == MI_MEMORY_ALLOCATE ? &mi_events_allocated : &mi_events_freed, 1);
  }
}

enum { MI_EVENTS_ROUNDS = 4000,
       MI_EVENTS_SLOTS = 64 };

static _Atomic(void*) mi_events_slots[MI_EVENTS_SLOTS];
static _Atomic(size_t) mi_events_calls;

// Blocks go from thread to thread through the slots.
static void* mi_events_test_churn(void* arg) {
  uint32_t seed = (uint32_t)(uintptr_t)arg;
  size_t calls = 0;
  for (int i = 0; i < MI_EVENTS_ROUNDS; i++) {
    seed = seed * 1664525 + 1013904223;
    void* p = mi_malloc((seed >> 8) % (i % 100 == 0 ? 1000000 : 3000));
    MI_CHECK(p != NULL);
    calls++;
    if (i % 7 == 0) {
      p = mi_realloc(p, (seed >> 16) % 5000);
    }
    void* const other = atomic_exchange(&mi_events_slots[(seed >> 4) % MI_EVENTS_SLOTS], p);
    mi_free(other);
  }
  atomic_fetch_add(&mi_events_calls, calls);
  return NULL;
}

MI_TEST(threads_are_told_of_exactly) {
  const mi_memory_callbacks_t callbacks = {
      .handlers = {&mi_events_test_count, &mi_events_test_count, &mi_events_test_count}};
  MI_REQUIRE(mi_memory_set_callbacks(&callbacks));
  MI_REQUIRE(mi_memory_tracking_set_enabled(true));
  const mi_memory_snapshot_t before = mi_events_test_snapshot();
  atomic_store(&mi_events_allocated, 0);
  atomic_store(&mi_events_freed, 0);
  atomic_store(&mi_events_sum, 0);
  pthread_t threads[MI_EVENTS_THREADS];
  for (size_t i = 0; i < MI_EVENTS_THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_events_test_churn, (void*)(i + 1)) == 0);
  }
  for (size_t i = 0; i < MI_EVENTS_THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  size_t left = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < MI_EVENTS_SLOTS; i++) {
    void* const p = atomic_load(&mi_events_slots[i]);
    left += p != NULL;
    bytes += mi_events_test_usable(p);
  }
  MI_CHECK_EQ(atomic_load(&mi_events_allocated), atomic_load(&mi_events_calls));
  MI_CHECK_EQ(atomic_load(&mi_events_freed), atomic_load(&mi_events_calls) - left);
  MI_CHECK_EQ(atomic_load(&mi_events_sum), bytes);
  const mi_memory_snapshot_t after = mi_events_test_snapshot();
  MI_CHECK_EQ(after.live_count - before.live_count, left);
  MI_CHECK_EQ(after.live_bytes - before.live_bytes, bytes);
  for (size_t i = 0; i < MI_EVENTS_SLOTS; i++) {
    mi_free(atomic_exchange(&mi_events_slots[i], NULL));
  }
  MI_CHECK_EQ(mi_events_test_snapshot().live_count, before.live_count);
  MI_CHECK_EQ(mi_events_test_snapshot().live_bytes, before.live_bytes);
  mi_events_test_end();
}

static _Atomic(bool) mi_events_stop;

static void* mi_events_test_run(void* arg) {
  (void)arg;
  while (!atomic_load(&mi_events_stop)) {
    mi_free(mi_malloc(100));
  }
  return NULL;
}

// A thread whose calls are all on the fast path is told of as soon as events are on.
MI_TEST(threads_that_run_are_reached) {
  const mi_memory_callbacks_t callbacks = {.handlers = {&mi_events_test_count, &mi_events_test_count, NULL}};
  pthread_t thread;
  atomic_store(&mi_events_stop, false);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_events_test_run, NULL) == 0);
  MI_REQUIRE(mi_memory_set_callbacks(&callbacks));
  for (int i = 0; i < 50; i++) {
    atomic_store(&mi_events_allocated, 0);
    MI_REQUIRE(mi_memory_tracking_set_enabled(true));
    for (int k = 0; k < 10000 && atomic_load(&mi_events_allocated) < 10; k++) {
      usleep(100);
    }
    MI_CHECK(atomic_load(&mi_events_allocated) >= 10);
    MI_REQUIRE(mi_memory_tracking_set_enabled(false));
    usleep(100);
  }
  atomic_store(&mi_events_stop, true);
  pthread_join(thread, NULL);
  mi_events_test_end();
}

// Visits

typedef struct mi_events_visit_test_s {
  void* const* wanted;
  size_t found;
  size_t seen;
  size_t limit;
} mi_events_visit_test_t;

static bool mi_events_test_visit(void* p, size_t size, void* arg) {
  mi_events_visit_test_t* const visit = arg;
  visit->seen++;
  for (size_t i = 0; i < MI_EVENTS_SLOTS; i++) {
    if (visit->wanted[i] == p) {
      visit->found++;
      MI_CHECK_EQ(size, mi_usable_size(p));
    }
  }
  mi_free(mi_malloc(50));
  return visit->seen < visit->limit;
}

static void* mi_events_test_visit_other(void* arg) {
  mi_events_visit_test_t visit = {arg, 0, 0, SIZE_MAX};
  void* const own = mi_malloc(10);
  MI_CHECK(mi_memory_visit_live_allocations(&mi_events_test_visit, &visit));
  MI_CHECK_EQ(visit.found, 0);
  MI_CHECK(visit.seen >= 1);
  mi_free(own);
  return NULL;
}

MI_TEST(visits_the_callers_blocks) {
  void* wanted[MI_EVENTS_SLOTS];
  mi_heap_t* const heap = mi_heap_new();
  for (size_t i = 0; i < MI_EVENTS_SLOTS; i++) {
    const size_t size = i % 16 == 0 ? MI_EVENTS_LARGE : 20 + i * 100;
    wanted[i] = i % 2 == 0 ? mi_malloc(size) : mi_heap_malloc(heap, size);
    MI_REQUIRE(wanted[i] != NULL);
  }
  pthread_t runner;
  atomic_store(&mi_events_stop, false);
  MI_REQUIRE(pthread_create(&runner, NULL, &mi_events_test_run, NULL) == 0);
  mi_events_visit_test_t visit = {wanted, 0, 0, SIZE_MAX};
  MI_CHECK(mi_memory_visit_live_allocations(&mi_events_test_visit, &visit));
  MI_CHECK_EQ(visit.found, MI_EVENTS_SLOTS);
  visit = (mi_events_visit_test_t){wanted, 0, 0, 3};
  MI_CHECK(mi_memory_visit_live_allocations(&mi_events_test_visit, &visit));
  MI_CHECK_EQ(visit.seen, 3);
  MI_CHECK(!mi_memory_visit_live_allocations(NULL, NULL));
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_events_test_visit_other, wanted) == 0);
  pthread_join(thread, NULL);
  atomic_store(&mi_events_stop, true);
  pthread_join(runner, NULL);
  for (size_t i = 0; i < MI_EVENTS_SLOTS; i++) {
    mi_free(wanted[i]);
  }
  mi_heap_destroy(heap);
}

// Start

static int mi_events_test_child(const char* value, const char* arg) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("MIMALLOC_MEMORY_EVENTS", value, 1);
    execl("/proc/self/exe", "events", arg, NULL);
    _exit(99);
  }
  int status = 0;
  MI_REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// In a child: what was decided before the first test, and what is counted.
MI_TEST(child_tells) {
  if (getenv("MI_EVENTS_CHILD") == NULL) {
    return;
  }
  mi_free(mi_malloc(10));
  _exit(mi_memory_tracking_is_enabled() && mi_events_test_snapshot().accum_count > 0 ? 10 : 11);
}

MI_TEST(on_from_the_start) {
  if (getenv("MI_EVENTS_CHILD") != NULL) {
    return;
  }
  setenv("MI_EVENTS_CHILD", "1", 1);
  MI_CHECK_EQ(mi_events_test_child("1", "child_tells"), 10);
  MI_CHECK_EQ(mi_events_test_child("0", "child_tells"), 11);
  unsetenv("MI_EVENTS_CHILD");
}

MI_TEST_MAIN()
