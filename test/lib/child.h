// Owns: running a function in a forked child and seeing how it ended: signal, exit status, what it wrote to stderr.
// May include: test/lib/test.h.
// Called by: tests that expect a death, a limit that must not outlive them, or a possible hang.
// Invariants: a child that does not end in time is killed and reported as such; the parent is never changed by it.
#pragma once

#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#include "test/lib/test.h"

typedef struct mi_test_child_s {
  int signal;      // that ended it, 0 when it exited
  int status;      // exit status, -1 when a signal ended it
  bool timed_out;  // killed by us
  size_t err_len;
  char err[8192];  // the beginning of its stderr, zero terminated
} mi_test_child_t;

static MI_TEST_UNUSED long mi_test_child_ms_left(const struct timespec* end) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)(end->tv_sec - now.tv_sec) * 1000 + (end->tv_nsec - now.tv_nsec) / 1000000;
}

// Runs fn(arg) in a child. The child ends with the status of its checks unless fn ends it otherwise.
static MI_TEST_UNUSED void mi_test_child_run(mi_test_child_t* r, void (*fn)(void*), void* arg, int timeout_ms) {
  int fds[2];
  memset(r, 0, sizeof(*r));
  r->status = -1;
  MI_REQUIRE(pipe(fds) == 0);
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += timeout_ms / 1000;
  end.tv_nsec += (timeout_ms % 1000) * 1000000L;
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    close(fds[0]);
    dup2(fds[1], 2);
    close(fds[1]);
    __atomic_store_n(&mi_test_failures, 0, __ATOMIC_RELAXED);
    fn(arg);
    _exit(mi_test_failure_count() > 0 ? 1 : 0);
  }
  close(fds[1]);
  for (;;) {
    const long left = mi_test_child_ms_left(&end);
    struct pollfd p = {fds[0], POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&p, 1, (int)left);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      r->timed_out = true;
      kill(pid, SIGKILL);
      break;
    }
    char drop[512];
    const bool room = r->err_len + 1 < sizeof(r->err);
    const ssize_t n = room ? read(fds[0], r->err + r->err_len, sizeof(r->err) - 1 - r->err_len) : read(fds[0], drop, sizeof(drop));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (room) r->err_len += (size_t)n;
  }
  close(fds[0]);
  int status = 0;
  // The pipe may be closed long before the child ends, so the deadline is watched here too.
  for (;;) {
    const pid_t got = waitpid(pid, &status, r->timed_out ? 0 : WNOHANG);
    if (got == pid) break;
    if (got < 0 && errno != EINTR) break;
    if (got == 0) {
      if (mi_test_child_ms_left(&end) <= 0) {
        r->timed_out = true;
        kill(pid, SIGKILL);
      } else {
        const struct timespec nap = {0, 2000000L};
        nanosleep(&nap, NULL);
      }
    }
  }
  r->err[r->err_len] = 0;
  if (WIFSIGNALED(status)) r->signal = WTERMSIG(status);
  if (WIFEXITED(status)) r->status = WEXITSTATUS(status);
}

// Whether the child's stderr has a match of an extended regular expression (^ and $ match at lines).
static MI_TEST_UNUSED bool mi_test_child_said(const mi_test_child_t* r, const char* pattern) {
  regex_t re;
  if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0) return false;
  const bool found = (regexec(&re, r->err, 0, NULL, 0) == 0);
  regfree(&re);
  return found;
}

// The child must end well; otherwise what it said is shown.
static MI_TEST_UNUSED bool mi_test_child_ok(const mi_test_child_t* r, const char* file, int line, const char* what) {
  const bool ok = (r->signal == 0 && r->status == 0 && !r->timed_out);
  if (!ok && mi_test_count_failure()) {
    mi_test_say("%s:%d: %s: failed: %s: signal %d, status %d%s, it said:", file, line, mi_test_current, what, r->signal, r->status,
                r->timed_out ? " (hung, killed)" : "");
    mi_test_write(2, r->err, r->err_len);
    mi_test_write(2, "\n", 1);
  }
  return ok;
}

#define MI_CHECK_CHILD_OK(r, what) mi_test_child_ok((r), __FILE__, __LINE__, (what))

// Runs a function in a child that must end well within the time.
#define MI_CHECK_IN_CHILD(fn, arg, timeout_ms)                           \
  do {                                                                   \
    static mi_test_child_t mi_test_child_result;                         \
    mi_test_child_run(&mi_test_child_result, (fn), (arg), (timeout_ms)); \
    MI_CHECK_CHILD_OK(&mi_test_child_result, #fn);                       \
  } while (0)
