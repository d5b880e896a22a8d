// Owns: bad use in a signal handler, at any instruction of the code it interrupts: the report comes out and the process ends in time.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt.
// Invariants: each trial is a child with a second to end in; what it says is read through a pipe.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <sys/time.h>

#include "test/lib/child.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { TRIALS = 60,
       SECOND_MS = 1000,
       HANG_MS = 30000 };

// Found in whatever library is preloaded.
typedef struct mi_heap_s mi_heap_t;
extern mi_heap_t* mi_heap_new(void) __attribute__((weak));
extern void* mi_heap_malloc(mi_heap_t* heap, size_t n) __attribute__((weak));
extern void mi_heap_delete(mi_heap_t* heap) __attribute__((weak));
extern void mi_collect(bool force) __attribute__((weak));

static int static_word;
static volatile sig_atomic_t caught;

static void free_badly(int sig) {
  (void)sig;
  free(mi_test_hide(&static_word));
  // Where the report lets it go on, the interrupted code does so too.
  caught = 1;
}

// Code that spends its time under our locks.
static void busy(void) {
  for (size_t i = 0; !caught; i++) {
    mi_heap_t* heap = mi_heap_new();
    void* p = mi_heap_malloc(heap, 100);
    void* q = malloc((size_t)(1 + i % 8) << 20);
    mi_heap_delete(heap);
    free(p);
    free(q);
    if (i % 16 == 0) mi_collect(true);
  }
}

static void handler_while_busy(void* arg) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = &free_badly;
  MI_REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
  const struct itimerval timer = {{0, 0}, {0, 1000 + (long)(uintptr_t)arg * 137}};
  MI_REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
  busy();
}

// Runs a child that is to end within a second. A machine that is busy elsewhere may be slower, but not each time.
static void run_within_a_second(mi_test_child_t* child, void (*fn)(void*), uintptr_t arg) {
  uint64_t took = SECOND_MS + 1;
  for (int i = 0; i < 10 && took > SECOND_MS; i++) {
    const uint64_t start = mi_test_now_ms();
    mi_test_child_run(child, fn, (void*)arg, HANG_MS);
    took = child->timed_out ? 0 : mi_test_now_ms() - start;
  }
  MI_CHECK_MSG(took <= SECOND_MS, "trial %zu took %zu ms", (size_t)arg, (size_t)took);
}

// Each trial interrupts somewhere else. `status` is what the profile makes of bad use: an end by SIGABRT, or 0.
MI_TEST(report_from_a_handler) {
  static mi_test_child_t child;
  MI_REQUIRE(&mi_heap_new != NULL && &mi_collect != NULL);
  for (uintptr_t i = 0; i < TRIALS; i++) {
    run_within_a_second(&child, &handler_while_busy, i);
    MI_CHECK_MSG(!child.timed_out, "trial %zu hung", (size_t)i);
    MI_CHECK_MSG(child.signal == SIGABRT || (child.signal == 0 && child.status == 0), "trial %zu: signal %d, status %d", (size_t)i, child.signal, child.status);
    MI_CHECK_MSG(mi_test_child_said(&child, "^mimalloc[a-z-]*: foreign-free: pointer 0x"), "trial %zu said: %s", (size_t)i, child.err);
  }
}

static void say(const char* text) { mi_test_write(2, text, strlen(text)); }

static void on_abort(int sig) {
  (void)sig;
  say("the program's own handler\n");
  _exit(3);
}

static void on_fault(int sig, siginfo_t* info, void* context) {
  (void)sig;
  (void)context;
  say(info->si_addr == (void*)8 ? "the program's own fault handler\n" : "a fault elsewhere\n");
  _exit(4);
}

static void abort_handler(void* arg) {
  (void)arg;
  // Before the first report and after the allocator has started.
  free(malloc(100));
  signal(SIGABRT, &on_abort);
  free(mi_test_hide(&static_word));
  _exit(0);
}

static void fault_handler(void* arg) {
  (void)arg;
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO;
  MI_REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
  free(malloc(100));
  *(volatile int*)mi_test_hide((void*)8) = 1;
}

// The handlers that a program has are called: by an end of ours, and by a fault of its own.
MI_TEST(handlers_are_chained) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &abort_handler, NULL, HANG_MS);
  MI_CHECK(!child.timed_out && child.signal == 0);
  // Where bad use does not end the process, no handler is due.
  MI_CHECK_MSG((child.status == 3) == mi_test_child_said(&child, "^the program's own handler"), "status %d: %s", child.status, child.err);
  MI_CHECK(child.status == 3 || child.status == 0);
  mi_test_child_run(&child, &fault_handler, NULL, HANG_MS);
  MI_CHECK_MSG(child.status == 4 && mi_test_child_said(&child, "^the program's own fault handler"), "signal %d, status %d: %s", child.signal, child.status, child.err);
}

// No signal is taken from a program that has asked for the default action or none.
MI_TEST(no_signal_is_taken) {
  free(malloc(100));
  for (int sig = 1; sig < 32; sig++) {
    struct sigaction action;
    if (sigaction(sig, NULL, &action) != 0) continue;
    MI_CHECK_MSG(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN, "signal %d has a handler", sig);
  }
}

MI_TEST_MAIN()
