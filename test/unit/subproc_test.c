// Owns: tests of heap/subproc: sub-processes made and ended, threads in them, what they share and what not, forks.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test makes it ends, so that counts return to where they were.
#include "src/heap/subproc.h"

#include <pthread.h>
#include <sched.h>

#include "mimalloc.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { BLOCKS = 300,
       THREADS = 4,
       CHILD_MS = 20000 };

static const size_t mi_subproc_test_sizes[] = {0, 16, 100, 1024, 5000, 40000, 300000, 700000, 3000000};
enum { SIZES = sizeof(mi_subproc_test_sizes) / sizeof(mi_subproc_test_sizes[0]) };

static bool mi_subproc_test_same(mi_subproc_id_t a, mi_subproc_id_t b) { return a._mi_subproc_id == b._mi_subproc_id; }

static int64_t mi_subproc_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

static mi_subproc_id_t mi_subproc_test_new(void) {
  const mi_subproc_id_t id = mi_subproc_new();
  MI_REQUIRE(id._mi_subproc_id != NULL);
  return id;
}

static mi_heap_t* mi_subproc_test_heap_of(const void* p) {
  const mi_page_t* const page = _mi_page_of_any(p);
  return page == NULL ? NULL : mi_atomic_load_relaxed(&page->heap);
}

// Runs `run` in a thread and waits for its end.
static void mi_subproc_test_in_thread(void* (*run)(void*), void* arg) {
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, run, arg) == 0);
  MI_REQUIRE(pthread_join(thread, NULL) == 0);
}

// Warnings

static char mi_subproc_test_said[4096];

static void mi_subproc_test_note(const char* msg, void* arg) {
  (void)arg;
  if (strlen(mi_subproc_test_said) + strlen(msg) < sizeof(mi_subproc_test_said)) {
    strcat(mi_subproc_test_said, msg);
  }
}

static void mi_subproc_test_listen(void) {
  mi_subproc_test_said[0] = 0;
  mi_option_set(mi_option_show_errors, 1);
  mi_option_set(mi_option_max_warnings, -1);
  mi_register_output(&mi_subproc_test_note, NULL);
}

static bool mi_subproc_test_heard(const char* what) {
  const bool heard = strstr(mi_subproc_test_said, what) != NULL;
  mi_subproc_test_said[0] = 0;
  return heard;
}

// Making and ending

MI_TEST(ids) {
  const mi_subproc_id_t main_id = mi_subproc_main();
  MI_CHECK(main_id._mi_subproc_id != NULL);
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), main_id));
  const mi_subproc_id_t a = mi_subproc_test_new();
  const mi_subproc_id_t b = mi_subproc_test_new();
  MI_CHECK(!mi_subproc_test_same(a, b) && !mi_subproc_test_same(a, main_id) && !mi_subproc_test_same(b, main_id));
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), main_id));
  mi_subproc_delete(a);
  // The memory is used again, the id is not.
  const mi_subproc_id_t c = mi_subproc_test_new();
  MI_CHECK(!mi_subproc_test_same(c, a) && !mi_subproc_test_same(c, b));
  mi_subproc_test_listen();
  mi_subproc_delete(a);
  MI_CHECK(mi_subproc_test_heard("cannot be deleted: there is none"));
  mi_subproc_destroy(a);
  MI_CHECK(mi_subproc_test_heard("cannot be destroyed: there is none"));
  mi_subproc_add_current_thread(a);
  MI_CHECK(mi_subproc_test_heard("stays where it is"));
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), main_id));
  mi_subproc_delete(main_id);
  MI_CHECK(mi_subproc_test_heard("cannot be deleted: it is the main one"));
  mi_subproc_destroy(main_id);
  MI_CHECK(mi_subproc_test_heard("cannot be destroyed: it is the main one"));
  const mi_subproc_id_t none = {NULL};
  mi_subproc_delete(none);
  mi_subproc_destroy(none);
  mi_subproc_delete(c);
  mi_subproc_destroy(b);
  MI_CHECK_STREQ(mi_subproc_test_said, "");
  mi_register_output(NULL, NULL);
}

MI_TEST(many) {
  for (int i = 0; i < 100; i++) {
    mi_subproc_delete(mi_subproc_test_new());
  }
  const int64_t committed = mi_subproc_test_current(&_mi_stats.committed);
  const int64_t heaps = mi_subproc_test_current(&_mi_stats.heaps);
  for (int i = 0; i < 20000; i++) {
    const mi_subproc_id_t id = mi_subproc_test_new();
    if (i % 2 == 0) {
      mi_subproc_delete(id);
    } else {
      mi_subproc_destroy(id);
    }
  }
  MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.committed), committed);
  MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.heaps), heaps);
}

// Threads in them

typedef struct mi_subproc_test_visit_s {
  mi_heap_t* seen[8];
  int count;
  int stop_at;
  mi_heap_t* end;  // to be ended by the first call
} mi_subproc_test_visit_t;

static bool mi_subproc_test_visit(mi_heap_t* heap, void* arg) {
  mi_subproc_test_visit_t* const visit = arg;
  visit->seen[visit->count++ % 8] = heap;
  if (visit->end != NULL) {
    mi_heap_delete(visit->end);
    visit->end = NULL;
  }
  return visit->count != visit->stop_at;
}

typedef struct mi_subproc_test_job_s {
  mi_subproc_id_t id;
  void* blocks[BLOCKS];  // allocated in the sub-process
  void* foreign;         // allocated outside of it
} mi_subproc_test_job_t;

static void* mi_subproc_test_live(void* arg) {
  mi_subproc_test_job_t* const job = arg;
  mi_heap_t* const outside = mi_heap_main();
  void* const before = mi_malloc(100);
  mi_subproc_add_current_thread(job->id);
  mi_subproc_add_current_thread(job->id);
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), job->id));
  mi_heap_t* const main = mi_heap_main();
  MI_CHECK(main != outside);
  for (size_t i = 0; i < SIZES; i++) {
    job->blocks[i] = mi_malloc(mi_subproc_test_sizes[i]);
    MI_REQUIRE(job->blocks[i] != NULL);
    memset(job->blocks[i], 1, mi_subproc_test_sizes[i]);
    MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(job->blocks[i]), main);
  }
  // What it had stays, and is freed as before.
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(before), outside);
  mi_free(before);
  mi_free(job->foreign);
  // A heap made here is one of the sub-process; one of elsewhere can be allocated from, and stays elsewhere.
  mi_heap_t* const heap = mi_heap_new();
  mi_heap_t* const second = mi_heap_new();
  MI_REQUIRE(heap != NULL && second != NULL);
  MI_CHECK_PTR_EQ(_mi_heap_main_of(heap), main);
  void* const p = mi_heap_malloc(heap, 100);
  void* const q = mi_heap_malloc(outside, 100);
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(p), heap);
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(q), outside);
  mi_free(q);
  mi_subproc_test_visit_t visit = {.stop_at = -1};
  MI_CHECK(mi_subproc_visit_heaps(job->id, &mi_subproc_test_visit, &visit));
  MI_CHECK(visit.count == 3 && visit.seen[0] == main && visit.seen[1] == second && visit.seen[2] == heap);
  visit = (mi_subproc_test_visit_t){.stop_at = 2};
  MI_CHECK(!mi_subproc_visit_heaps(job->id, &mi_subproc_test_visit, &visit));
  MI_CHECK_EQ(visit.count, 2);
  // A visitor may end the others.
  visit = (mi_subproc_test_visit_t){.stop_at = -1, .end = second};
  MI_CHECK(mi_subproc_visit_heaps(job->id, &mi_subproc_test_visit, &visit));
  MI_CHECK(visit.count == 2 && visit.seen[1] == heap);
  // The blocks of a heap that ends become the sub-process's.
  mi_heap_delete(heap);
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(p), main);
  mi_free(p);
  // Main heaps stay.
  mi_heap_delete(main);
  mi_heap_destroy(main);
  MI_CHECK_PTR_EQ(mi_heap_main(), main);
  void* const grown = mi_realloc(mi_malloc(50), 5000);
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(grown), main);
  mi_free(grown);
  mi_collect(true);
  return NULL;
}

MI_TEST(a_thread_in_one) {
  mi_subproc_test_job_t job = {.id = mi_subproc_test_new(), .foreign = mi_malloc(500)};
  mi_subproc_test_in_thread(&mi_subproc_test_live, &job);
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), mi_subproc_main()));
  mi_subproc_test_listen();
  mi_subproc_delete(job.id);
  MI_CHECK(mi_subproc_test_heard("cannot be deleted: live blocks left: 9"));
  for (size_t i = 0; i < SIZES; i++) {
    MI_CHECK(mi_test_all_bytes(job.blocks[i], mi_subproc_test_sizes[i], 1));
    mi_free(job.blocks[i]);
  }
  mi_subproc_delete(job.id);
  MI_CHECK_STREQ(mi_subproc_test_said, "");
  mi_register_output(NULL, NULL);
  mi_subproc_test_visit_t visit = {.stop_at = -1};
  MI_CHECK(!mi_subproc_visit_heaps(job.id, &mi_subproc_test_visit, &visit) && visit.count == 0);
}

static pthread_barrier_t mi_subproc_test_barrier;

static void* mi_subproc_test_wait_inside(void* arg) {
  mi_subproc_test_job_t* const job = arg;
  mi_subproc_add_current_thread(job->id);
  void* const p = mi_malloc(100);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  mi_free(p);
  // A thread that is done is in no sub-process but the main one.
  mi_thread_done();
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), mi_subproc_main()));
  mi_thread_init();
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), mi_subproc_main()));
  pthread_barrier_wait(&mi_subproc_test_barrier);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  return NULL;
}

MI_TEST(delete_waits_for_nobody) {
  mi_subproc_test_job_t job = {.id = mi_subproc_test_new()};
  pthread_t thread;
  pthread_barrier_init(&mi_subproc_test_barrier, NULL, 2);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_subproc_test_wait_inside, &job) == 0);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  mi_subproc_test_listen();
  mi_subproc_delete(job.id);
  MI_CHECK(mi_subproc_test_heard("cannot be deleted: threads left: 1"));
  pthread_barrier_wait(&mi_subproc_test_barrier);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  mi_subproc_delete(job.id);
  MI_CHECK_STREQ(mi_subproc_test_said, "");
  mi_register_output(NULL, NULL);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&mi_subproc_test_barrier);
}

// Pages that an ended thread left

enum { SHARED_SIZE = 1000 };

static void* mi_subproc_test_leave(void* arg) {
  mi_subproc_test_job_t* const job = arg;
  mi_subproc_add_current_thread(job->id);
  for (int i = 0; i < 3; i++) {
    job->blocks[i] = mi_malloc(SHARED_SIZE);
    MI_REQUIRE(job->blocks[i] != NULL);
  }
  return NULL;
}

static void* mi_subproc_test_take(void* arg) {
  mi_subproc_test_job_t* const job = arg;
  mi_subproc_add_current_thread(job->id);
  job->foreign = mi_malloc(SHARED_SIZE);
  return NULL;
}

MI_TEST(pages_stay_inside) {
  mi_subproc_test_job_t job = {.id = mi_subproc_test_new()};
  mi_subproc_test_job_t other = {.id = mi_subproc_test_new()};
  mi_subproc_test_job_t outside = {.id = mi_subproc_main()};
  mi_subproc_test_in_thread(&mi_subproc_test_leave, &job);
  const mi_page_t* const page = _mi_page_map_find(job.blocks[0]);
  mi_subproc_test_in_thread(&mi_subproc_test_take, &other);
  mi_subproc_test_in_thread(&mi_subproc_test_take, &outside);
  MI_CHECK(_mi_page_map_find(other.foreign) != page && _mi_page_map_find(outside.foreign) != page);
  mi_subproc_test_in_thread(&mi_subproc_test_take, &job);
  MI_CHECK_PTR_EQ(_mi_page_map_find(job.foreign), page);
  mi_free(other.foreign);
  mi_free(outside.foreign);
  mi_subproc_destroy(job.id);
  mi_subproc_delete(other.id);
}

// Destroying

static void* mi_subproc_test_fill(void* arg) {
  mi_subproc_test_job_t* const job = arg;
  mi_subproc_add_current_thread(job->id);
  mi_heap_t* const heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (size_t i = 0; i < BLOCKS; i++) {
    job->blocks[i] = mi_heap_malloc(i % 3 == 0 ? heap : mi_heap_main(), mi_subproc_test_sizes[i % SIZES]);
    MI_REQUIRE(job->blocks[i] != NULL);
  }
  // Some are free, or wait to be.
  for (size_t i = 0; i < BLOCKS; i += 5) {
    mi_free(job->blocks[i]);
    job->blocks[i] = NULL;
  }
  mi_free(job->foreign);
  return NULL;
}

static void* mi_subproc_test_outlive(void* arg) {
  mi_subproc_test_fill(arg);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  // Here it is destroyed.
  pthread_barrier_wait(&mi_subproc_test_barrier);
  char* const p = mi_malloc(100);
  MI_REQUIRE(p != NULL);
  memset(p, 1, 100);
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), mi_subproc_main()));
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(p), _mi_heap_main());
  mi_collect(true);
  mi_free(p);
  return NULL;
}

// The pages of ended sub-processes are gone, and those of others are as they were.
MI_TEST(destroy_frees_all) {
  for (int round = 0; round < 20; round++) {
    mi_collect(true);
    const int64_t pages = mi_subproc_test_current(&_mi_stats.pages);
    const int64_t heaps = mi_subproc_test_current(&_mi_stats.heaps);
    const int64_t theaps = mi_subproc_test_current(&_mi_stats.theaps);
    mi_subproc_test_job_t job = {.id = mi_subproc_test_new(), .foreign = mi_malloc(5000)};
    pthread_t thread;
    pthread_barrier_init(&mi_subproc_test_barrier, NULL, 2);
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_subproc_test_outlive, &job) == 0);
    pthread_barrier_wait(&mi_subproc_test_barrier);
    // One with threads, one whose threads have ended.
    mi_subproc_test_job_t second = {.id = mi_subproc_test_new()};
    mi_subproc_test_in_thread(&mi_subproc_test_fill, &second);
    mi_subproc_destroy(job.id);
    mi_subproc_destroy(second.id);
    for (size_t i = 0; i < BLOCKS; i++) {
      MI_CHECK(job.blocks[i] == NULL || mi_subproc_test_heap_of(job.blocks[i]) == NULL);
      MI_CHECK(second.blocks[i] == NULL || mi_subproc_test_heap_of(second.blocks[i]) == NULL);
    }
    pthread_barrier_wait(&mi_subproc_test_barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&mi_subproc_test_barrier);
    mi_collect(true);
    MI_CHECK_MSG(mi_subproc_test_current(&_mi_stats.pages) <= pages, "%lld pages more",
                 (long long)(mi_subproc_test_current(&_mi_stats.pages) - pages));
    MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.heaps), heaps);
    MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.theaps), theaps);
  }
}

static void* mi_subproc_test_end_own(void* arg) {
  mi_subproc_test_fill(arg);
  mi_subproc_destroy(mi_subproc_current());
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), mi_subproc_main()));
  mi_free(mi_malloc(100));
  return NULL;
}

MI_TEST(a_thread_destroys_its_own) {
  mi_subproc_test_job_t job = {.id = mi_subproc_test_new(), .foreign = mi_malloc(5000)};
  mi_subproc_test_in_thread(&mi_subproc_test_end_own, &job);
}

static void mi_subproc_test_free_late(void* arg) {
  mi_subproc_test_job_t* const job = arg;
  mi_option_set(mi_option_on_violation, 1);
  mi_free(job->blocks[1]);
  mi_free(job->blocks[7]);
}

// A block that went with its sub-process is freed too late. Nothing else has its place: the memory is not used again yet.
MI_TEST(late_frees_are_found) {
  static mi_test_child_t child;
  mi_subproc_test_job_t job = {.id = mi_subproc_test_new()};
  mi_subproc_test_in_thread(&mi_subproc_test_fill, &job);
  mi_subproc_destroy(job.id);
  mi_test_child_run(&child, &mi_subproc_test_free_late, &job, CHILD_MS);
  MI_CHECK_CHILD_OK(&child, "late frees");
  const char* const first = strstr(child.err, "-free: pointer");
  MI_CHECK_MSG(first != NULL && strstr(first + 1, "-free: pointer") != NULL, "%s", child.err);
}

// Moving

MI_TEST(back_and_forth) {
  const mi_subproc_id_t ids[] = {mi_subproc_test_new(), mi_subproc_test_new(), mi_subproc_main()};
  uint64_t seed = 1;
  void* blocks[64] = {NULL};
  const int64_t theaps = mi_subproc_test_current(&_mi_stats.theaps);
  for (int i = 0; i < 20000; i++) {
    const uint64_t r = mi_test_random(&seed);
    if (r % 8 == 0) {
      mi_subproc_add_current_thread(ids[(r >> 8) % 3]);
      MI_CHECK(mi_subproc_test_same(mi_subproc_current(), ids[(r >> 8) % 3]));
    }
    const size_t slot = (r >> 16) % 64;
    mi_free(blocks[slot]);
    blocks[slot] = mi_malloc((r >> 24) % 3000);
    MI_REQUIRE(blocks[slot] != NULL);
  }
  for (size_t i = 0; i < 64; i++) {
    mi_free(blocks[i]);
  }
  mi_subproc_add_current_thread(mi_subproc_main());
  MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.theaps), theaps);
  mi_subproc_test_listen();
  mi_subproc_delete(ids[0]);
  mi_subproc_delete(ids[1]);
  MI_CHECK_STREQ(mi_subproc_test_said, "");
  mi_register_output(NULL, NULL);
}

static void* mi_subproc_test_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  for (int round = 0; round < 200; round++) {
    const mi_subproc_id_t id = mi_subproc_test_new();
    void* blocks[50];
    mi_subproc_add_current_thread(id);
    for (int i = 0; i < 50; i++) {
      blocks[i] = mi_malloc(mi_test_random(&seed) % (i % 10 == 0 ? 100000 : 1000));
      MI_REQUIRE(blocks[i] != NULL);
    }
    mi_subproc_add_current_thread(mi_subproc_main());
    for (int i = 0; round % 2 == 0 && i < 50; i++) {
      mi_free(blocks[i]);
    }
    if (round % 2 == 0) {
      mi_subproc_delete(id);
    } else {
      mi_subproc_destroy(id);
    }
  }
  return NULL;
}

MI_TEST(threads_make_and_end) {
  const int64_t heaps = mi_subproc_test_current(&_mi_stats.heaps);
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_subproc_test_churn, (void*)t) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.heaps), heaps);
}

// The last block of a sub-process is freed while another thread deletes it.
static _Atomic(uintptr_t) mi_subproc_test_last;
static _Atomic(bool) mi_subproc_test_over;

static void* mi_subproc_test_free_last(void* arg) {
  while (!mi_atomic_load_relaxed(&mi_subproc_test_over)) {
    void* const p = (void*)mi_atomic_exchange_acq_rel(&mi_subproc_test_last, (uintptr_t)0);
    if (p != NULL) {
      mi_free(p);
    } else {
      sched_yield();
    }
  }
  return arg;
}

MI_TEST(last_free_races_with_delete) {
  const int64_t heaps = mi_subproc_test_current(&_mi_stats.heaps);
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 300);
  pthread_t thread;
  // What waits in the other thread's quarantine lives on.
  mi_option_set(mi_option_quarantine_blocks, 0);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_subproc_test_free_last, NULL) == 0);
  for (long i = 0; i < rounds; i++) {
    const mi_subproc_id_t id = mi_subproc_test_new();
    mi_subproc_add_current_thread(id);
    void* const p = mi_malloc(i % 2 == 0 ? 100 : 1000000);
    MI_REQUIRE(p != NULL);
    mi_subproc_add_current_thread(mi_subproc_main());
    mi_atomic_store_release(&mi_subproc_test_last, (uintptr_t)p);
    mi_subproc_test_visit_t visit = {.stop_at = 1};
    do {
      mi_subproc_delete(id);
      visit.count = 0;
      (void)mi_subproc_visit_heaps(id, &mi_subproc_test_visit, &visit);
      sched_yield();
    } while (visit.count != 0);
  }
  mi_atomic_store_relaxed(&mi_subproc_test_over, true);
  pthread_join(thread, NULL);
  MI_CHECK_EQ(mi_subproc_test_current(&_mi_stats.heaps), heaps);
}

// Forks

static void mi_subproc_test_child(void* arg) {
  const mi_subproc_test_job_t* const jobs = arg;
  // The one with the thread that forks, and the one whose thread is not here.
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), jobs[0].id));
  MI_CHECK_PTR_EQ(mi_subproc_test_heap_of(jobs[1].blocks[1]), _mi_subproc_find((uintptr_t)jobs[1].id._mi_subproc_id));
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; i < BLOCKS; i++) {
      mi_free(jobs[k].blocks[i]);
    }
  }
  mi_collect(true);
  mi_subproc_test_listen();
  mi_subproc_delete(jobs[1].id);
  MI_CHECK_STREQ(mi_subproc_test_said, "");
  mi_subproc_destroy(jobs[0].id);
  MI_CHECK_STREQ(mi_subproc_test_said, "");
  MI_CHECK(mi_subproc_test_same(mi_subproc_current(), mi_subproc_main()));
  mi_subproc_test_job_t job = {.id = mi_subproc_test_new(), .foreign = mi_malloc(100)};
  mi_subproc_test_in_thread(&mi_subproc_test_fill, &job);
  mi_subproc_destroy(job.id);
}

static void* mi_subproc_test_stay(void* arg) {
  mi_subproc_test_fill(arg);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  return NULL;
}

MI_TEST(fork) {
  mi_subproc_test_job_t jobs[2] = {{.id = mi_subproc_test_new()}, {.id = mi_subproc_test_new()}};
  pthread_t thread;
  pthread_barrier_init(&mi_subproc_test_barrier, NULL, 2);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_subproc_test_stay, &jobs[1]) == 0);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  mi_subproc_test_fill(&jobs[0]);
  MI_CHECK_IN_CHILD(&mi_subproc_test_child, jobs, CHILD_MS);
  pthread_barrier_wait(&mi_subproc_test_barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&mi_subproc_test_barrier);
  mi_subproc_destroy(jobs[0].id);
  mi_subproc_destroy(jobs[1].id);
}

MI_TEST_MAIN()
