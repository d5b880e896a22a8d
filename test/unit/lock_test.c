// Owns: tests of sys/lock: exclusion, sleeping and waking, bounded attempts, and the thread that forks.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: a hang is a failure: what might hang runs in a child with a deadline.
#include "src/sys/lock.h"

#include <pthread.h>
#include <sched.h>

#include "test/lib/child.h"
#include "test/lib/test.h"

enum { THREADS = 8 };

static mi_lock_t mi_lock_test_lock;
static long mi_lock_test_value;
static long mi_lock_test_rounds;

static void* mi_lock_test_count(void* arg) {
  (void)arg;
  for (long i = 0; i < mi_lock_test_rounds; i++) {
    _mi_lock_acquire(&mi_lock_test_lock);
    const long value = mi_lock_test_value;
    if (i % 64 == 0) {
      sched_yield();
    }
    mi_lock_test_value = value + 1;
    _mi_lock_release(&mi_lock_test_lock);
  }
  return NULL;
}

static void mi_lock_test_exclusion(void* arg) {
  (void)arg;
  mi_lock_test_rounds = mi_test_scale("MI_TEST_ROUNDS", 20000);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_lock_test_count, NULL) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  MI_CHECK_EQ(mi_lock_test_value, THREADS * mi_lock_test_rounds);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_lock_test_lock.word), 0);
}

MI_TEST(exclusion) { MI_CHECK_IN_CHILD(&mi_lock_test_exclusion, NULL, 120000); }

MI_TEST(try_acquire) {
  mi_lock_t lock = {0};
  errno = 12345;
  MI_CHECK(_mi_lock_try_acquire(&lock));
  MI_CHECK(!_mi_lock_try_acquire(&lock));
  _mi_lock_release(&lock);
  MI_CHECK(_mi_lock_try_acquire(&lock));
  _mi_lock_reset(&lock);
  MI_CHECK(_mi_lock_try_acquire(&lock));
  _mi_lock_release(&lock);
  MI_CHECK_EQ(errno, 12345);
}

static void* mi_lock_test_bounded_thread(void* arg) {
  mi_lock_t* const lock = arg;
  MI_CHECK(!_mi_lock_acquire_bounded(lock));
  return NULL;
}

static void mi_lock_test_bounded(void* arg) {
  (void)arg;
  mi_lock_t lock = {0};
  MI_CHECK(_mi_lock_acquire_bounded(&lock));
  MI_CHECK(!_mi_lock_acquire_bounded(&lock));
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_lock_test_bounded_thread, &lock) == 0);
  pthread_join(thread, NULL);
  _mi_lock_release(&lock);
}

MI_TEST(bounded) { MI_CHECK_IN_CHILD(&mi_lock_test_bounded, NULL, 20000); }

static _Atomic(int) mi_lock_test_entered;

static void* mi_lock_test_enter(void* arg) {
  mi_lock_t* const lock = arg;
  _mi_lock_acquire(lock);
  mi_atomic_add_relaxed(&mi_lock_test_entered, 1);
  _mi_lock_release(lock);
  return NULL;
}

// The forking thread passes its own locks, as often as it likes; others wait until the fork is over.
static void mi_lock_test_forking(void* arg) {
  (void)arg;
  static mi_lock_t lock;
  static mi_lock_t free_lock;
  _mi_lock_acquire(&lock);
  _mi_lock_fork_begin();
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_lock_test_enter, &lock) == 0);
  for (int i = 0; i < 3; i++) {
    _mi_lock_acquire(&lock);
    MI_CHECK(_mi_lock_acquire_bounded(&lock));
    _mi_lock_acquire(&free_lock);
    _mi_lock_release(&free_lock);
    usleep(10000);
    _mi_lock_release(&lock);
    _mi_lock_release(&lock);
    MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_lock_test_entered), 0);
    MI_CHECK(!_mi_lock_try_acquire(&lock));
  }
  const pid_t child = fork();
  MI_REQUIRE(child >= 0);
  if (child == 0) {
    // A handler that runs before ours allocates.
    _mi_lock_acquire(&lock);
    _mi_lock_release(&lock);
    _mi_lock_fork_end();
    _mi_lock_reset(&lock);
    _mi_lock_acquire(&lock);
    _mi_lock_release(&lock);
    _exit(mi_test_failure_count() > 0);
  }
  _mi_lock_fork_end();
  _mi_lock_release(&lock);
  pthread_join(thread, NULL);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_lock_test_entered), 1);
  int status = -1;
  waitpid(child, &status, 0);
  MI_CHECK_EQ(status, 0);
}

MI_TEST(forking) { MI_CHECK_IN_CHILD(&mi_lock_test_forking, NULL, 10000); }

static void mi_lock_test_recursion(void* arg) {
  mi_lock_t* const lock = arg;
  _mi_lock_acquire(lock);
  _mi_lock_acquire(lock);
}

// Where assertions run, waiting for oneself is said rather than done.
MI_TEST(recursion) {
  if (!MI_ASSERT_LEVEL) {
    return;
  }
  static mi_lock_t lock;
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_lock_test_recursion, &lock, 10000);
  MI_CHECK_EQ(child.signal, SIGABRT);
  MI_CHECK(mi_test_child_said(&child, "assertion failed: .*lock\\.c:[0-9]+, _mi_lock_acquire_slow: "));
}

MI_TEST_MAIN()
