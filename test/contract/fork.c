// Owns: fork at any time: with threads that allocate, in any thread, two at once, in handlers, again in the child, without handlers.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt.
// Invariants: a child that does not end in time is a hang and is killed; children leave by _exit.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/syscall.h>

#include "test/lib/child.h"
#include "test/lib/pace.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { WORKERS = 4,
       SLOTS = 256,
       CHILD_MS = 30000 };

static volatile int stop;
static void* shared[WORKERS][SLOTS];  // blocks of the workers; each slot is exchanged atomically

static void churn(uint64_t* seed, int steps) {
  for (int i = 0; i < steps; i++) {
    const size_t w = mi_test_random(seed) % WORKERS, s = mi_test_random(seed) % SLOTS;
    const uint64_t r = mi_test_random(seed);
    const size_t n = 16 + (size_t)(r >> 8) % (r % 256 == 0 ? 2000000 : (r % 16 == 0 ? 50000 : 800));
    void* p = malloc(n);
    if (p == NULL) continue;
    memset(p, 1, 16);
    // Also another worker's blocks: frees cross threads.
    free(__atomic_exchange_n(&shared[w][s], p, __ATOMIC_ACQ_REL));
  }
}

static void* worker(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) churn(&seed, 100);
  return NULL;
}

// What every child does at once: allocate all sizes, free what the parent's threads left, start a thread, leave.
static void child_work(bool with_thread) {
  uint64_t seed = (uint64_t)getpid();
  churn(&seed, 300);
  for (size_t n = 1; n < 5000000; n *= 3) {
    char* p = (char*)malloc(n);
    if (p == NULL) _exit(10);
    p[0] = p[n - 1] = 1;
    p = (char*)realloc(p, n * 2);
    if (p == NULL) _exit(11);
    free(p);
  }
  for (size_t w = 0; w < WORKERS; w++) {
    for (size_t s = 0; s < SLOTS; s++) free(__atomic_exchange_n(&shared[w][s], NULL, __ATOMIC_ACQ_REL));
  }
  if (with_thread) {
    pthread_t t;
    stop = 1;
    if (pthread_create(&t, NULL, worker, (void*)1) != 0) _exit(12);
    pthread_join(t, NULL);
  }
}

static void check_child(pid_t pid, const char* what) {
  if (!MI_CHECK_MSG(pid > 0, "%s: fork", what)) return;
  int status = 0;
  for (int ms = 0; ms < CHILD_MS; ms++) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) {
      MI_CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child ended with status 0x%x", what, (unsigned)status);
      return;
    }
    mi_test_sleep_ms(1);
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  MI_CHECK_MSG(false, "%s: the child hung", what);
}

static void fork_and_check(const char* what, bool with_thread) {
  const pid_t pid = fork();
  if (pid == 0) {
    child_work(with_thread);
    _exit(0);
  }
  check_child(pid, what);
}

static pthread_t workers[WORKERS];

static void start_workers(void) {
  stop = 0;
  for (uintptr_t i = 0; i < WORKERS; i++) MI_REQUIRE(pthread_create(&workers[i], NULL, worker, (void*)(i + 5)) == 0);
}

static void stop_workers(void) {
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
}

MI_TEST(alone) {
  for (int i = 0; i < 20; i++) fork_and_check("no threads", i % 2 == 0);
}

MI_TEST(beside_threads) {
  start_workers();
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; mi_test_goes_on(i, 100, deadline); i++) fork_and_check("beside threads", i % 4 == 0);
  stop_workers();
}

static void* forking_thread(void* arg) {
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; mi_test_goes_on(i, 25, deadline); i++) fork_and_check((const char*)arg, i % 4 == 0);
  return NULL;
}

MI_TEST(two_at_once) {
  start_workers();
  pthread_t t[3];
  for (int i = 0; i < 3; i++) {
    char* name = strdup("several forks at once");
    MI_REQUIRE(pthread_create(&t[i], NULL, forking_thread, name) == 0);
  }
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  stop_workers();
}

static void grandchildren(int depth) {
  const pid_t pid = fork();
  if (pid == 0) {
    child_work(depth % 2 == 0);
    if (depth > 0) grandchildren(depth - 1);
    _exit(mi_test_failure_count() > 0);
  }
  check_child(pid, "a fork in a forked child");
}

MI_TEST(again_in_the_child) {
  start_workers();
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; mi_test_goes_on(i, 10, deadline); i++) grandchildren(3);
  stop_workers();
}

static int handler_runs;
static bool handlers_on;
static void* handler_block;

static void use_in_handler(void) {
  if (!handlers_on) return;
  __atomic_fetch_add(&handler_runs, 1, __ATOMIC_RELAXED);
  for (size_t n = 8; n < 3000000; n *= 4) {
    char* p = (char*)malloc(n);
    MI_CHECK(p != NULL);
    if (p != NULL) p[0] = 1;
    free(p);
  }
  // Two threads that fork at once run their handlers at the same time: each block is freed by the one that took it out.
  free(__atomic_exchange_n(&handler_block, malloc(100), __ATOMIC_ACQ_REL));
}

// As a library would that is loaded before us: its prepare handler runs after ours, its child handler before.
__attribute__((constructor(101))) static void register_early(void) { pthread_atfork(use_in_handler, use_in_handler, use_in_handler); }

MI_TEST(handlers_that_allocate) {
  // And one that is registered late: its prepare handler runs before ours.
  pthread_atfork(use_in_handler, use_in_handler, use_in_handler);
  handlers_on = true;
  fork_and_check("handlers that allocate", true);
  start_workers();
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; mi_test_goes_on(i, 50, deadline); i++) fork_and_check("handlers that allocate, beside threads", i % 4 == 0);
  pthread_t t[2];
  for (int i = 0; i < 2; i++) {
    char* name = strdup("handlers that allocate, two forks at once");
    MI_REQUIRE(pthread_create(&t[i], NULL, forking_thread, name) == 0);
  }
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  stop_workers();
  handlers_on = false;
  MI_CHECK(handler_runs > 0);
}

MI_TEST(without_handlers) {
  // A raw clone runs no handler. With one thread the child must be whole all the same.
  for (int i = 0; i < 20; i++) {
    void* p = malloc(1000);
    mi_test_fill(p, 1000, 8);
#if defined(SYS_fork)
    const pid_t pid = (pid_t)syscall(SYS_fork);
#else
    const pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
    if (pid == 0) {
      if (!mi_test_filled(p, 1000, 8)) _exit(20);
      child_work(false);
      free(p);
      _exit(0);
    }
    check_child(pid, "a raw fork");
    free(p);
  }
}

MI_TEST(child_frees_and_exits) {
  // The child leaves through exit: handlers, destructors and the allocator's own end run in it.
  start_workers();
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; mi_test_goes_on(i, 20, deadline); i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      child_work(false);
      exit(0);
    }
    check_child(pid, "exit in the child");
  }
  stop_workers();
}

// Found in whatever library is preloaded.
typedef struct mi_heap_s mi_heap_t;
extern mi_heap_t* mi_heap_new(void) __attribute__((weak));
extern void* mi_heap_malloc(mi_heap_t* heap, size_t n) __attribute__((weak));
extern void mi_heap_destroy(mi_heap_t* heap) __attribute__((weak));
extern void mi_heap_delete(mi_heap_t* heap) __attribute__((weak));

static void use_heap(uint64_t seed) {
  mi_heap_t* heap = mi_heap_new();
  if (!MI_CHECK(heap != NULL)) return;
  void* p[20];
  for (size_t i = 0; i < 20; i++) {
    p[i] = mi_heap_malloc(heap, 10 + (size_t)mi_test_random(&seed) % (i == 0 ? 2000000 : 3000));
    MI_CHECK(p[i] != NULL);
  }
  if (mi_test_random(&seed) % 2 == 0) {
    mi_heap_destroy(heap);
    return;
  }
  mi_heap_delete(heap);
  for (size_t i = 0; i < 20; i++) free(p[i]);
}

static void* heap_worker(void* arg) {
  for (uint64_t i = (uintptr_t)arg; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i += 10) use_heap(i);
  return NULL;
}

MI_TEST(beside_threads_with_heaps) {
  stop = 0;
  for (uintptr_t i = 0; i < WORKERS; i++) MI_REQUIRE(pthread_create(&workers[i], NULL, heap_worker, (void*)(i + 5)) == 0);
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; mi_test_goes_on(i, 60, deadline); i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (uint64_t k = 0; k < 20; k++) use_heap(k);
      child_work(i % 8 == 0);
      _exit(mi_test_failure_count() > 0);
    }
    check_child(pid, "beside threads that make and end heaps");
  }
  stop_workers();
}

// A process that forks, goes on in the child with threads of its own, and forks again: what the threads of each generation
// left must serve the next ones. Each process waits for its child, so the last one tells: where the machine is slow, LOOK
// generations after the first look.
static void generation(int left, size_t early_rss, size_t early_maps, uint64_t deadline) {
  start_workers();
  mi_test_sleep_ms(2);
  enum { LOOK = 40 };
  const pid_t pid = fork();
  if (pid == 0) {
    for (size_t w = 0; w < WORKERS; w++) {
      for (size_t s = 0; s < SLOTS; s++) free(__atomic_exchange_n(&shared[w][s], NULL, __ATOMIC_ACQ_REL));
    }
    uint64_t seed = (uint64_t)left;
    churn(&seed, 2000);
    const size_t rss = mi_test_rss(), maps = mi_test_mappings();
    if (left == 0 || (left % LOOK == 0 && early_rss != 0 && mi_test_now_ms() >= deadline)) {
      // A child keeps a page for each thread that was in the middle of an operation: at the very most each of 440, of 64 KiB or,
      // one in sixteen, 512 KiB, which is 42 MiB. glibc grows by 30 MiB here; without the pages of threads left behind it were
      // over 500.
      MI_CHECK_MSG(rss <= early_rss + (64 << 20), "RSS from %zu to %zu KiB", early_rss >> 10, rss >> 10);
      MI_CHECK_MSG(maps <= early_maps + 200, "mappings from %zu to %zu", early_maps, maps);
    } else if (left % LOOK == 0 && early_rss == 0) {
      generation(left - 1, rss, maps, deadline);
    } else {
      generation(left - 1, early_rss, early_maps, deadline);
    }
    _exit(mi_test_failure_count() > 0);
  }
  stop_workers();
  MI_REQUIRE(pid > 0);
  int status = 0;
  while (waitpid(pid, &status, 0) != pid) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
    // It has been said what failed.
    _exit(1);
  }
  MI_CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a generation ended with status 0x%x", (unsigned)status);
}

MI_TEST(many_generations) { generation((int)mi_test_scale("MI_TEST_GENERATIONS", 150), 0, 0, mi_test_deadline()); }

// What a child's allocator makes of its random numbers: where new blocks lie, or what it writes into freed ones.
static uint64_t drawn_in_child(bool raw) {
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
#if defined(SYS_fork)
  const pid_t pid = raw ? (pid_t)syscall(SYS_fork) : fork();
#else
  const pid_t pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
#endif
  if (pid == 0) {
    enum { DRAWN = 400 };
    static char* p[DRAWN];
    uint64_t sum = 0;
    for (size_t i = 0; i < DRAWN; i++) {
      p[i] = (char*)malloc(3500);
      sum = sum * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t)p[i];
    }
    for (size_t i = 0; i < DRAWN; i += 2) free(p[i]);
    for (size_t i = 0; i < DRAWN; i += 2) {
      const volatile uint64_t* word = (const volatile uint64_t*)mi_test_hide(p[i]);
      sum = sum * UINT64_C(0x9e3779b97f4a7c15) + word[0] + word[1];
    }
    _exit(write(fds[1], &sum, sizeof(sum)) == (ssize_t)sizeof(sum) ? 0 : 1);
  }
  check_child(pid, "a child that draws");
  uint64_t sum = 0;
  MI_REQUIRE(read(fds[0], &sum, sizeof(sum)) == (ssize_t)sizeof(sum));
  close(fds[0]);
  close(fds[1]);
  return sum;
}

MI_TEST(children_differ) {
  free(malloc(10));
  enum { CHILDREN = 6 };
  uint64_t sums[CHILDREN];
  for (size_t i = 0; i < CHILDREN; i++) sums[i] = drawn_in_child(i % 2 == 1);
  for (size_t i = 0; i < CHILDREN; i++) {
    for (size_t k = 0; k < i; k++) MI_CHECK_MSG(sums[i] != sums[k], "children %zu and %zu drew the same", k, i);
  }
}

MI_TEST(parent_is_whole_afterwards) {
  const size_t rss = mi_test_rss();
  for (int i = 0; i < 30; i++) fork_and_check("flat", false);
  MI_CHECK_MSG(mi_test_rss() <= rss + (4 << 20), "RSS from %zu to %zu KiB", rss >> 10, mi_test_rss() >> 10);
  child_work(true);
}

MI_TEST_MAIN()
