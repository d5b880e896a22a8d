// Owns: the tests of prim's waiting, yielding, and hooks for thread end and fork.
// May include: base, prim, test/lib, the C library's headers.
// Called by: the build.
// Invariants: hooks are installed once in a process, so what needs fresh ones runs in a child.
#include <pthread.h>
#include <sys/wait.h>

#include "src/prim/prim.h"
#include "test/lib/child.h"
#include "test/lib/deny.h"
#include "test/lib/test.h"

static pthread_t start(void* (*fn)(void*), void* arg) {
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, fn, arg) == 0);
  return thread;
}

static void run(void* (*fn)(void*), void* arg) { MI_REQUIRE(pthread_join(start(fn, arg), NULL) == 0); }

// Waiting

MI_TEST(wait_for_another_value) {
  _Atomic(uint32_t) word = 7;
  errno = 1234;
  MI_CHECK_EQ(_mi_prim_wait(&word, 8), EAGAIN);
  // A value with the highest bit is one like any other.
  word = UINT32_MAX;
  MI_CHECK_EQ(_mi_prim_wait(&word, 0), EAGAIN);
  _mi_prim_wake(&word, false);
  _mi_prim_wake(&word, true);
  _mi_prim_yield();
  MI_CHECK_EQ(errno, 1234);
}

enum { WAITERS = 4 };
static _Atomic(uint32_t) gate;
static _Atomic(int) waiting, through;

static void* pass_gate(void* arg) {
  waiting++;
  while (gate == UINT32_MAX) {
    const int err = _mi_prim_wait(&gate, UINT32_MAX);
    MI_CHECK(err == 0 || err == EAGAIN || err == EINTR);
  }
  through++;
  return arg;
}

MI_TEST(wake) {
  for (int all = 0; all < 2; all++) {
    pthread_t threads[WAITERS];
    gate = UINT32_MAX;
    waiting = through = 0;
    for (int i = 0; i < WAITERS; i++) threads[i] = start(&pass_gate, NULL);
    while (waiting < WAITERS) _mi_prim_yield();
    // Time to fall asleep; a waiter that is late sees the new value instead.
    usleep(20000);
    MI_CHECK_EQ(through, 0);
    gate = 0;
    if (all == 1) {
      _mi_prim_wake(&gate, true);
    } else {
      for (int i = 0; i < WAITERS; i++) _mi_prim_wake(&gate, false);
    }
    for (int i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
    MI_CHECK_EQ(through, WAITERS);
  }
}

static void yield_in_sandbox(void* arg) {
  (void)arg;
  if (!mi_test_deny(SYS_sched_yield, MI_TEST_ANY, 0, EIO)) _exit(MI_TEST_SKIPPED);
  const int64_t before = _mi_prim_clock_ms();
  for (int i = 0; i < 100; i++) _mi_prim_yield();
  // Hundred short naps, on a machine that has other things to do.
  MI_CHECK(_mi_prim_clock_ms() - before < 5000);
}

MI_TEST(yield) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &yield_in_sandbox, NULL, 20000);
  if (child.status != MI_TEST_SKIPPED) MI_CHECK_CHILD_OK(&child, "yield");
}

static void* store_id(void* id) {
  *(uintptr_t*)id = _mi_prim_os_thread_id();
  return NULL;
}

MI_TEST(thread_id) {
  uintptr_t other = 0;
  run(&store_id, &other);
  MI_CHECK_EQ(_mi_prim_os_thread_id(), getpid());
  MI_CHECK(other != 0 && other != _mi_prim_os_thread_id());
}

// Thread end

static _Atomic(int) hook_calls;
static _Atomic(void*) hook_arg;
static bool hook_rearms;

static void on_exit_hook(void* arg) {
  hook_calls++;
  hook_arg = arg;
  if (hook_rearms) _mi_prim_thread_on_exit_set(arg);
}

static void* arm(void* arg) {
  errno = 1234;
  _mi_prim_thread_on_exit_set(arg);
  MI_CHECK_EQ(errno, 1234);
  return NULL;
}

static void* arm_and_disarm(void* arg) {
  _mi_prim_thread_on_exit_set(arg);
  _mi_prim_thread_on_exit_set(NULL);
  return NULL;
}

static void* do_nothing(void* arg) { return arg; }

static void* wait_at_gate(void* arg) {
  _mi_prim_thread_on_exit_set(arg);
  return pass_gate(NULL);
}

static void thread_end(void* with_late_key) {
  int mark = 0;
  // A key behind the C library's built-in room, whose first value in a thread is allocated.
  pthread_key_t keys[40];
  for (int i = 0; with_late_key != NULL && i < 40; i++) MI_REQUIRE(pthread_key_create(&keys[i], NULL) == 0);

  // Without a hook arming does nothing.
  run(&arm, &mark);
  errno = 1234;
  MI_REQUIRE(_mi_prim_thread_on_exit_init(&on_exit_hook));
  MI_CHECK_EQ(errno, 1234);

  run(&do_nothing, &mark);
  run(&arm_and_disarm, &mark);
  MI_CHECK_EQ(hook_calls, 0);

  run(&arm, &mark);
  MI_CHECK_EQ(hook_calls, 1);
  MI_CHECK_PTR_EQ(hook_arg, &mark);

  hook_calls = 0;
  hook_rearms = true;
  run(&arm, &mark);
  MI_CHECK(hook_calls >= 1);

  // A thread that was armed before the end of the hook, one that is armed after it, and the end once more.
  hook_calls = 0;
  waiting = 0;
  gate = UINT32_MAX;
  const pthread_t thread = start(&wait_at_gate, &mark);
  while (waiting == 0) _mi_prim_yield();
  _mi_prim_thread_on_exit_done();
  gate = 0;
  _mi_prim_wake(&gate, true);
  pthread_join(thread, NULL);
  run(&arm, &mark);
  _mi_prim_thread_on_exit_done();
  MI_CHECK_EQ(hook_calls, 0);
}

MI_TEST(thread_end) {
  int yes = 1;
  MI_CHECK_IN_CHILD(&thread_end, NULL, 20000);
  MI_CHECK_IN_CHILD(&thread_end, &yes, 20000);
}

static void no_keys_left(void* arg) {
  pthread_key_t key;
  (void)arg;
  while (pthread_key_create(&key, NULL) == 0) {
  }
  MI_CHECK(!_mi_prim_thread_on_exit_init(&on_exit_hook));
  run(&arm, &key);
  _mi_prim_thread_on_exit_done();
  MI_CHECK_EQ(hook_calls, 0);
}

MI_TEST(thread_end_without_keys) { MI_CHECK_IN_CHILD(&no_keys_left, NULL, 10000); }

// Fork

static char fork_trace[16];
static size_t fork_steps;

static void trace(char c) {
  if (fork_steps < sizeof(fork_trace) - 1) fork_trace[fork_steps++] = c;
}
static void on_prepare(void) { trace('b'); }
static void on_parent(void) { trace('p'); }
static void on_child(void) { trace('c'); }

static void fork_hooks(void* arg) {
  (void)arg;
  errno = 1234;
  MI_REQUIRE(_mi_prim_fork_hooks(&on_prepare, &on_parent, &on_child));
  MI_CHECK_EQ(errno, 1234);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    _exit(strcmp(fork_trace, "bc") == 0 ? 0 : 1);
  }
  int status = -1;
  MI_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  MI_CHECK_STREQ(fork_trace, "bp");
}

MI_TEST(fork_hooks) { MI_CHECK_IN_CHILD(&fork_hooks, NULL, 10000); }

MI_TEST_MAIN()
