// Owns: tests of api/process: figures of the process, and begin and end of process and thread, called by the program itself.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what ends the process's allocator happens in children.
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "mimalloc.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

// Before main, and before the library's own constructor: any of them may be the first call.
static void* mi_process_test_early;

__attribute__((constructor(101))) static void mi_process_test_construct(void) {
  mi_thread_done();
  mi_thread_init();
  mi_process_init();
  mi_process_init();
  mi_thread_init();
  mi_process_test_early = mi_malloc(100);
  mi_thread_done();
  mi_thread_done();
}

MI_TEST(from_a_constructor) {
  MI_REQUIRE(mi_process_test_early != NULL);
  memset(mi_process_test_early, 1, 100);
  mi_free(mi_process_test_early);
}

static int64_t mi_process_test_threads(void) { return _mi_stat_view(&_mi_stats.threads).current; }

static void* mi_process_test_thread(void* arg) {
  const int64_t others = *(const int64_t*)arg;
  // Nothing to end.
  mi_thread_done();
  MI_CHECK_EQ(mi_process_test_threads(), others);
  mi_thread_init();
  mi_thread_init();
  MI_CHECK_EQ(mi_process_test_threads(), others + 1);
  char* const p = mi_malloc(1000);
  mi_thread_done();
  mi_thread_done();
  MI_CHECK_EQ(mi_process_test_threads(), others);
  // Served like a thread that ends, and freed as by another.
  char* const q = mi_malloc(1000);
  MI_CHECK(p != NULL && q != NULL);
  memset(p, 1, 1000);
  memset(q, 2, 1000);
  mi_free(p);
  MI_CHECK(mi_test_all_bytes(q, 1000, 2));
  mi_free(q);
  MI_CHECK_EQ(mi_process_test_threads(), others);
  mi_thread_init();
  MI_CHECK_EQ(mi_process_test_threads(), others + 1);
  mi_free(mi_malloc(1000));
  return NULL;
}

MI_TEST(thread) {
  mi_free(mi_malloc(1));
  int64_t others = mi_process_test_threads();
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_process_test_thread, &others) == 0);
  pthread_join(thread, NULL);
  MI_CHECK_EQ(mi_process_test_threads(), others);
}

static void mi_process_test_done(void* arg) {
  (void)arg;
  char* const p = mi_malloc(1000);
  mi_option_enable(mi_option_show_stats);
  mi_process_done();
  mi_process_done();
  MI_REQUIRE(p != NULL);
  memset(p, 1, 1000);
  mi_process_init();
  mi_free(p);
  mi_free(mi_realloc(mi_malloc(50), 100000));
  mi_collect(true);
  exit(0);
}

// What is due at the end happens once, at the first call; what is allocated stays usable.
MI_TEST(process_done) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_process_test_done, NULL, 10000);
  MI_CHECK_CHILD_OK(&child, "process_done");
  const char* const first = strstr(child.err, " process: elapsed ");
  MI_CHECK(first != NULL && strstr(first + 1, " process: elapsed ") == NULL);
}

// The C library's malloc serves this program.
MI_TEST(not_redirected) {
  errno = 12345;
  MI_CHECK(!mi_is_redirected());
  MI_CHECK_EQ(errno, 12345);
}

// Figures

enum { BIG = 64 * 1024 * 1024,
       MOST = BIG - BIG / 8 };

typedef struct mi_process_test_info_s {
  size_t elapsed, user, system, rss, peak_rss, commit, peak_commit, faults;
} mi_process_test_info_t;

static mi_process_test_info_t mi_process_test_info(void) {
  mi_process_test_info_t i;
  mi_process_info(&i.elapsed, &i.user, &i.system, &i.rss, &i.peak_rss, &i.commit, &i.peak_commit, &i.faults);
  return i;
}

MI_TEST(memory_figures) {
  _mi_option_set(mi_option_purge_delay, 0);
  mi_collect(true);
  const mi_process_test_info_t before = mi_process_test_info();
  char* const p = mi_malloc(BIG);
  MI_REQUIRE(p != NULL);
  memset(p, 1, BIG);
  const mi_process_test_info_t with = mi_process_test_info();
  mi_free(p);
  mi_collect(true);
  const mi_process_test_info_t after = mi_process_test_info();
  MI_CHECK_MSG(with.rss >= before.rss + MOST, "%zu and %zu", before.rss, with.rss);
  MI_CHECK_MSG(after.rss + MOST <= with.rss, "%zu and %zu", with.rss, after.rss);
  MI_CHECK(with.commit >= BIG);
  // The system's peak is not exact to the page.
  MI_CHECK(with.peak_rss >= with.rss && after.peak_rss + BIG / 64 >= with.peak_rss);
  MI_CHECK(with.peak_commit >= with.commit && after.peak_commit >= with.peak_commit);
}

static size_t mi_process_test_ms(struct timeval t) { return (size_t)t.tv_sec * 1000 + (size_t)t.tv_usec / 1000; }

MI_TEST(times_and_faults) {
  const mi_process_test_info_t before = mi_process_test_info();
  struct rusage usage;
  do {
    MI_REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  } while (mi_process_test_ms(usage.ru_utime) + mi_process_test_ms(usage.ru_stime) < before.user + before.system + 60);
  const mi_process_test_info_t now = mi_process_test_info();
  struct rusage later;
  MI_REQUIRE(getrusage(RUSAGE_SELF, &later) == 0);
  MI_CHECK(now.user >= mi_process_test_ms(usage.ru_utime) && now.user <= mi_process_test_ms(later.ru_utime));
  MI_CHECK(now.system >= mi_process_test_ms(usage.ru_stime) && now.system <= mi_process_test_ms(later.ru_stime));
  MI_CHECK((long)now.faults >= usage.ru_majflt && (long)now.faults <= later.ru_majflt);
  MI_CHECK(now.elapsed >= before.elapsed + 40 && now.elapsed < 600 * 1000);
}

static void mi_process_test_out(const char* msg, void* arg) { strcat(arg, msg); }

MI_TEST(print) {
  static char text[2000];
  mi_process_info_print_out(&mi_process_test_out, text);
  unsigned long long elapsed[2];
  double rss = 0;
  char unit[4] = "";
  const char* const at = strstr(text, "process: elapsed ");
  const char* const resident = strstr(text, "resident ");
  MI_REQUIRE(at != NULL && resident != NULL);
  MI_CHECK_EQ(sscanf(at, "process: elapsed %llu.%llu s", &elapsed[0], &elapsed[1]), 2);
  MI_CHECK_EQ(sscanf(resident, "resident %lf %3s", &rss, unit), 2);
  rss *= unit[0] == 'K' ? 1024 : unit[0] == 'M' ? 1024 * 1024
                                                : 1;
  const mi_process_test_info_t now = mi_process_test_info();
  MI_CHECK(rss > (double)now.rss / 2 && rss < (double)now.rss * 2);
}

// A thread that has not allocated asks about a block in memory that is nobody's: both have the number of no thread.
static void* mi_process_test_leave(void* arg) {
  *(void**)arg = mi_malloc(100);
  return NULL;
}

static mi_heap_t* mi_process_test_heap;

static void* mi_process_test_ask(void* arg) {
  MI_CHECK(!mi_unsafe_heap_page_is_under_utilized(mi_process_test_heap, *(void**)arg, 100));
  return NULL;
}

MI_TEST(question_of_a_thread_without_a_theap) {
  void* left = NULL;
  mi_process_test_heap = mi_heap_main();
  void* (*const steps[])(void*) = {&mi_process_test_leave, &mi_process_test_ask};
  for (size_t i = 0; i < 2; i++) {
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, steps[i], &left) == 0);
    pthread_join(thread, NULL);
  }
  MI_REQUIRE(left != NULL);
  mi_free(left);
}

// Committed memory

MI_TEST(committed_is_what_is_used) {
  enum { SIZE = 10000000 };
  if (!_mi_os_config.has_overcommit) {
    MI_TEST_SKIP("memory is charged when it is committed");
    return;
  }
  mi_free(mi_malloc(100));
  mi_collect(true);
  size_t before = 0;
  size_t with = 0;
  size_t after = 0;
  size_t peak = 0;
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &before, NULL, NULL);
  MI_CHECK_MSG(before < 16 * (size_t)SIZE, "%zu bytes before", before);
  void* const p = mi_malloc(SIZE);
  MI_REQUIRE(p != NULL);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &with, &peak, NULL);
  MI_CHECK(with - before >= SIZE && with - before < 2 * SIZE && peak >= with);
  mi_free(p);
  mi_collect(true);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &after, &peak, NULL);
  MI_CHECK(after < before + SIZE / 2 && peak >= with);
}

// Threads of a pool

enum { MI_POOL_SIZE = 3000,
       MI_POOL_BLOCKS = 2000 };

typedef struct mi_pool_test_s {
  void* blocks[MI_POOL_BLOCKS];
  bool in_pool;
  size_t taken;  // blocks whose page the thread owns after a free into it
} mi_pool_test_t;

// How many of the blocks that stay lie in pages of the thread.
static size_t mi_pool_test_owned(const mi_pool_test_t* test, size_t thread_id) {
  size_t count = 0;
  for (size_t i = 1; i < MI_POOL_BLOCKS; i += 2) {
    count += mi_thread_id_of(test->blocks[i]) == thread_id;
  }
  return count;
}

// Frees every other block of another thread, which has let go of its full pages, while it allocates of that size itself.
static void* mi_pool_test_free(void* arg) {
  mi_pool_test_t* const test = arg;
  if (test->in_pool) {
    mi_thread_set_in_threadpool();
  }
  void* const own = mi_malloc(MI_POOL_SIZE);
  const size_t self = mi_thread_id_of(own);
  MI_CHECK(self != 0);
  // It may have got its own block in a page that was listed.
  const size_t before = mi_pool_test_owned(test, self);
  for (size_t i = 0; i < MI_POOL_BLOCKS; i += 2) {
    mi_free(test->blocks[i]);
  }
  test->taken = mi_pool_test_owned(test, self) - before;
  mi_free(own);
  return NULL;
}

MI_TEST(a_pools_thread_takes_over_no_page) {
  static mi_pool_test_t test;
  mi_option_set(mi_option_quarantine_blocks, 0);
  for (int in_pool = 0; in_pool < 2; in_pool++) {
    test.in_pool = in_pool != 0;
    for (size_t i = 0; i < MI_POOL_BLOCKS; i++) {
      test.blocks[i] = mi_malloc(MI_POOL_SIZE);
      MI_REQUIRE(test.blocks[i] != NULL);
    }
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_pool_test_free, &test) == 0);
    pthread_join(thread, NULL);
    MI_CHECK_MSG((test.taken > 0) == (in_pool == 0), "%s a pool: %zu", in_pool ? "in" : "in no", test.taken);
    // They serve the next thread that needs the class: this one.
    for (size_t i = 1; i < MI_POOL_BLOCKS; i += 2) {
      mi_free(test.blocks[i]);
    }
    mi_collect(true);
  }
}

MI_TEST_MAIN()
