// Owns: tests of prim/linux/signal: the order of hook and handler, what a handler is told and under which mask, and the ends.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: each case runs in a child, as there is one hook in a process.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/base/atomic.h"
#include "src/prim/prim.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { MS = 10000 };

static mi_test_child_t mi_signal_test_child;
static char* mi_signal_test_page;  // inaccessible
static bool mi_signal_test_opens;
static _Atomic(int) mi_signal_test_hooked;
static _Atomic(int) mi_signal_test_handled;

static void mi_signal_test_say(const char* text) { mi_test_write(2, text, strlen(text)); }

static void mi_signal_test_touch(size_t offset) { *(volatile char*)(mi_signal_test_page + offset) = 1; }

static bool mi_signal_test_hook(const mi_prim_fault_t* fault) {
  mi_atomic_add_relaxed(&mi_signal_test_hooked, 1);
  if (fault->address - (uintptr_t)mi_signal_test_page < 4096) {
    MI_CHECK(fault->access == MI_PRIM_ACCESS_WRITE || fault->access == MI_PRIM_ACCESS_UNKNOWN);
  }
  return mi_signal_test_opens && mprotect(mi_signal_test_page, 4096, PROT_READ | PROT_WRITE) == 0;
}

static void mi_signal_test_start(void) {
  mi_signal_test_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(mi_signal_test_page != MAP_FAILED && _mi_prim_fault_hook(&mi_signal_test_hook));
}

static void mi_signal_test_action(int sig, struct sigaction* action) {
  MI_REQUIRE(_mi_prim_fault_action(sig, action, NULL));
}

static bool mi_signal_test_is_blocked(int sig) {
  sigset_t set;
  MI_REQUIRE(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
  return sigismember(&set, sig) == 1;
}

static void mi_signal_test_run(void (*fn)(void*), int signal, int status, const char* said) {
  mi_test_child_run(&mi_signal_test_child, fn, NULL, MS);
  MI_CHECK_EQ(mi_signal_test_child.signal, signal);
  MI_CHECK_EQ(mi_signal_test_child.status, status);
  MI_CHECK_STREQ(mi_signal_test_child.err, said);
}

// Before and after

static void mi_signal_test_informed(int sig, siginfo_t* info, void* context) {
  const ucontext_t* const registers = context;
  MI_CHECK(sig == SIGSEGV && info->si_signo == SIGSEGV && info->si_code == SEGV_ACCERR);
  MI_CHECK_PTR_EQ(info->si_addr, mi_signal_test_page + 8);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_signal_test_hooked), 1);
  MI_CHECK(registers != NULL && sigismember(&registers->uc_sigmask, SIGSEGV) == 0);
  mi_signal_test_say("handler\n");
  _exit(mi_test_failure_count() > 0 ? 1 : 7);
}

static void mi_signal_test_before(void* arg) {
  (void)arg;
  const struct sigaction action = {.sa_sigaction = &mi_signal_test_informed, .sa_flags = SA_SIGINFO};
  MI_REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
  mi_signal_test_start();
  mi_signal_test_touch(8);
}

static void mi_signal_test_after(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_sigaction = &mi_signal_test_informed, .sa_flags = SA_SIGINFO};
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  mi_signal_test_touch(8);
}

MI_TEST(handler_before_and_after) {
  mi_signal_test_run(&mi_signal_test_before, 0, 7, "handler\n");
  mi_signal_test_run(&mi_signal_test_after, 0, 7, "handler\n");
}

// No handler

static void mi_signal_test_none(void* arg) {
  (void)arg;
  mi_signal_test_start();
  mi_signal_test_touch(8);
}

// Ignoring a fault is not in anybody's power.
static void mi_signal_test_ignored_fault(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = SIG_IGN};
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  mi_signal_test_touch(8);
}

static void mi_signal_test_sent(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = SIG_IGN};
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  raise(SIGSEGV);
  mi_signal_test_say("ignored\n");
  MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_signal_test_hooked), 0);
  action.sa_handler = SIG_DFL;
  mi_signal_test_action(SIGSEGV, &action);
  raise(SIGSEGV);
  mi_signal_test_say("survived\n");
}

static void mi_signal_test_bus(void* arg) {
  (void)arg;
  mi_signal_test_start();
  FILE* const file = tmpfile();
  MI_REQUIRE(file != NULL);
  char* const p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  MI_REQUIRE(p != MAP_FAILED);
  *(volatile char*)p = 1;
}

MI_TEST(no_handler) {
  mi_signal_test_run(&mi_signal_test_none, SIGSEGV, -1, "");
  mi_signal_test_run(&mi_signal_test_ignored_fault, SIGSEGV, -1, "");
  mi_signal_test_run(&mi_signal_test_sent, SIGSEGV, -1, "ignored\n");
  mi_signal_test_run(&mi_signal_test_bus, SIGBUS, -1, "");
}

// The hook makes the access possible.

static void mi_signal_test_opened(void* arg) {
  (void)arg;
  mi_signal_test_opens = true;
  mi_signal_test_start();
  errno = 99;
  mi_signal_test_touch(8);
  MI_CHECK_EQ(errno, 99);
  MI_CHECK(mi_signal_test_page[8] == 1 && mi_atomic_load_relaxed(&mi_signal_test_hooked) == 1);
}

MI_TEST(tried_again) { mi_signal_test_run(&mi_signal_test_opened, 0, 0, ""); }

// Flags and masks

static sigjmp_buf mi_signal_test_back;

static void mi_signal_test_jump(int sig) {
  MI_CHECK_EQ(mi_signal_test_is_blocked(sig), true);
  MI_CHECK(mi_signal_test_is_blocked(SIGUSR1) && mi_signal_test_is_blocked(SIGUSR2) && !mi_signal_test_is_blocked(SIGTERM));
  mi_atomic_add_relaxed(&mi_signal_test_handled, 1);
  siglongjmp(mi_signal_test_back, 1);
}

// The program's own mask, that of the handler, the signal; nothing else, and nothing is left of it.
static void mi_signal_test_masks(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = &mi_signal_test_jump};
  sigset_t own;
  MI_REQUIRE(sigaddset(&action.sa_mask, SIGUSR1) == 0 && sigemptyset(&own) == 0 && sigaddset(&own, SIGUSR2) == 0);
  MI_REQUIRE(pthread_sigmask(SIG_SETMASK, &own, NULL) == 0);
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  for (volatile int i = 0; i < 100; i++) {
    if (sigsetjmp(mi_signal_test_back, 1) == 0) {
      mi_signal_test_touch(8);
    }
    MI_CHECK(!mi_signal_test_is_blocked(SIGSEGV) && !mi_signal_test_is_blocked(SIGUSR1) && mi_signal_test_is_blocked(SIGUSR2));
  }
  MI_CHECK(mi_atomic_load_relaxed(&mi_signal_test_handled) == 100 && mi_atomic_load_relaxed(&mi_signal_test_hooked) == 100);
}

// The handler's mask is taken off again where it returns.
static void mi_signal_test_opens_late(int sig) {
  (void)sig;
  MI_CHECK(mi_signal_test_is_blocked(SIGUSR1));
  MI_REQUIRE(mprotect(mi_signal_test_page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void mi_signal_test_returns(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = &mi_signal_test_opens_late};
  MI_REQUIRE(sigaddset(&action.sa_mask, SIGUSR1) == 0);
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  mi_signal_test_touch(8);
  MI_CHECK(!mi_signal_test_is_blocked(SIGSEGV) && !mi_signal_test_is_blocked(SIGUSR1) && !mi_signal_test_is_blocked(SIGTERM));
}

// With SA_NODEFER a fault in the handler comes to the handler.
static void mi_signal_test_nested(int sig) {
  MI_CHECK(!mi_signal_test_is_blocked(sig));
  if (mi_atomic_add_relaxed(&mi_signal_test_handled, 1) == 0) {
    mi_signal_test_touch(9);
  }
  _exit(mi_test_failure_count() > 0 ? 1 : 8);
}

static void mi_signal_test_nodefer(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = &mi_signal_test_nested, .sa_flags = SA_NODEFER};
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  mi_signal_test_touch(8);
}

static void mi_signal_test_once(int sig) {
  (void)sig;
  struct sigaction action;
  mi_signal_test_say("once\n");
  MI_CHECK(_mi_prim_fault_action(SIGSEGV, NULL, &action) && action.sa_handler == SIG_DFL);
}

static void mi_signal_test_resethand(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = &mi_signal_test_once, .sa_flags = (int)SA_RESETHAND};
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  mi_signal_test_touch(8);
}

MI_TEST(flags_and_masks) {
  mi_signal_test_run(&mi_signal_test_masks, 0, 0, "");
  mi_signal_test_run(&mi_signal_test_returns, 0, 0, "");
  mi_signal_test_run(&mi_signal_test_nodefer, 0, 8, "");
  mi_signal_test_run(&mi_signal_test_resethand, SIGSEGV, -1, "once\n");
}

// Stacks: that of sigaltstack with SA_ONSTACK, where the program has set one; the one that was in use without.

static char mi_signal_test_stack[64 * 1024];

static void mi_signal_test_where(int sig) {
  (void)sig;
  const char* const here = __builtin_frame_address(0);
  const bool is_apart = here >= mi_signal_test_stack && here < mi_signal_test_stack + sizeof(mi_signal_test_stack);
  mi_signal_test_say(is_apart ? "apart\n" : "same\n");
  _exit(0);
}

static void mi_signal_test_on_stack(int flags) {
  const stack_t stack = {.ss_sp = mi_signal_test_stack, .ss_size = sizeof(mi_signal_test_stack)};
  struct sigaction action = {.sa_handler = &mi_signal_test_where, .sa_flags = flags};
  MI_REQUIRE(sigaltstack(&stack, NULL) == 0);
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &action);
  mi_signal_test_touch(8);
}

static void mi_signal_test_stack_apart(void* arg) {
  (void)arg;
  mi_signal_test_on_stack(SA_ONSTACK);
}

static void mi_signal_test_stack_same(void* arg) {
  (void)arg;
  mi_signal_test_on_stack(0);
}

MI_TEST(stacks) {
  mi_signal_test_run(&mi_signal_test_stack_apart, 0, 0, "apart\n");
  mi_signal_test_run(&mi_signal_test_stack_same, 0, 0, "same\n");
}

// Who asks finds what was installed last; a child of vfork, which has its parent's memory, changes nothing of it.

static void mi_signal_test_queries(void* arg) {
  (void)arg;
  struct sigaction action = {.sa_handler = &mi_signal_test_jump, .sa_flags = SA_RESTART};
  struct sigaction old;
  MI_CHECK(!_mi_prim_fault_action(SIGSEGV, NULL, &old));
  MI_REQUIRE(sigaction(SIGBUS, &action, NULL) == 0);
  mi_signal_test_start();
  MI_CHECK(_mi_prim_fault_action(SIGSEGV, NULL, &old) && old.sa_handler == SIG_DFL);
  MI_CHECK(_mi_prim_fault_action(SIGBUS, NULL, &old) && old.sa_handler == &mi_signal_test_jump);
  for (int i = 0; i < 100; i++) {
    action.sa_handler = i % 2 == 0 ? &mi_signal_test_once : &mi_signal_test_jump;
    MI_CHECK(_mi_prim_fault_action(SIGBUS, &action, &old));
    MI_CHECK(old.sa_handler == (i % 2 == 0 ? &mi_signal_test_jump : &mi_signal_test_once));
  }
  MI_CHECK(!_mi_prim_fault_action(SIGTERM, NULL, &old));
  const pid_t pid = vfork();
  if (pid == 0) {
    _exit(_mi_prim_fault_action(SIGBUS, NULL, NULL) ? 1 : 0);
  }
  int status;
  MI_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

// The memory sanitizer gives the kernel a handler of its own for each of the program's.
MI_TEST(queries) {
  if (MI_MSAN_BUILD) {
    return;
  }
  mi_signal_test_run(&mi_signal_test_queries, 0, 0, "");
}

// A fault in the hook ends the process.

static bool mi_signal_test_bad_hook(const mi_prim_fault_t* fault) {
  mi_signal_test_touch(16);
  return fault != NULL;
}

static void mi_signal_test_bad(void* arg) {
  (void)arg;
  mi_signal_test_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(_mi_prim_fault_hook(&mi_signal_test_bad_hook));
  mi_signal_test_touch(8);
}

MI_TEST(fault_in_the_hook) { mi_signal_test_run(&mi_signal_test_bad, SIGSEGV, -1, ""); }

// Threads that install, while others have faults: each of these comes to one of the handlers, whole.

static __thread sigjmp_buf mi_signal_test_thread_back;

static void mi_signal_test_plain(int sig) {
  MI_CHECK_EQ(sig, SIGSEGV);
  siglongjmp(mi_signal_test_thread_back, 1);
}

static void mi_signal_test_full(int sig, siginfo_t* info, void* context) {
  MI_CHECK(sig == SIGSEGV && info->si_addr == mi_signal_test_page + 8 && context != NULL);
  siglongjmp(mi_signal_test_thread_back, 1);
}

static _Atomic(bool) mi_signal_test_done;

static void* mi_signal_test_faults(void* arg) {
  for (volatile int i = 0; i < 5000; i++) {
    if (sigsetjmp(mi_signal_test_thread_back, 1) == 0) {
      mi_signal_test_touch(8);
    }
  }
  return arg;
}

static void* mi_signal_test_installs(void* arg) {
  struct sigaction plain = {.sa_handler = &mi_signal_test_plain};
  struct sigaction full = {.sa_sigaction = &mi_signal_test_full, .sa_flags = SA_SIGINFO};
  while (!mi_atomic_load_relaxed(&mi_signal_test_done)) {
    mi_signal_test_action(SIGSEGV, &plain);
    mi_signal_test_action(SIGSEGV, &full);
  }
  return arg;
}

static void mi_signal_test_race(void* arg) {
  (void)arg;
  struct sigaction plain = {.sa_handler = &mi_signal_test_plain};
  mi_signal_test_start();
  mi_signal_test_action(SIGSEGV, &plain);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, i < 2 ? &mi_signal_test_faults : &mi_signal_test_installs, NULL) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    mi_atomic_store_relaxed(&mi_signal_test_done, i >= 1);
  }
}

MI_TEST(races) { mi_signal_test_run(&mi_signal_test_race, 0, 0, ""); }

MI_TEST_MAIN()
