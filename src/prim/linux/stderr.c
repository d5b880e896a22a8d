// Owns: last words: raw writes to stderr, and the end of the process.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: works in any state of the process: no lock, no allocation, no buffer.
#include <signal.h>

#include "src/prim/linux/syscall.h"
#include "src/prim/prim.h"

enum {
  // The kernel's sigset_t and the room that its struct sigaction takes on any machine; all zero is the default action.
  MI_ABORT_SIGSET_WORDS = 128 / 8 / sizeof(long),
  MI_ABORT_ACTION_WORDS = 16,
  // How often a write that would block is tried: a nonblocking stderr must not lose a report, nor hang the process.
  MI_WRITE_TRIES = 100,
};

#if defined(__mips__)
enum { MI_ABORT_SIGSET_SIZE = 16 };
#else
enum { MI_ABORT_SIGSET_SIZE = 8 };
#endif

void _mi_prim_write_stderr(const char* msg, size_t len) {
  int tries = 0;
  while (len > 0) {
    const long n = mi_syscall3(SYS_write, STDERR_FILENO, mi_syscall_arg(msg), (long)len);
    if (n == -EINTR) {
      continue;
    }
    if (n == -EAGAIN && ++tries < MI_WRITE_TRIES) {
      _mi_prim_yield();
      continue;
    }
    if (n <= 0) {
      return;
    }
    msg += n;
    len -= (size_t)n;
  }
}

static void mi_abort_raise(void) {
  const long pid = mi_syscall3(SYS_getpid, 0, 0, 0);
  const long tid = mi_syscall3(SYS_gettid, 0, 0, 0);
  (void)mi_syscall3(SYS_tgkill, pid, tid, SIGABRT);
}

// The C library's abort takes a lock, which a thread that was stopped in there, or did not survive a fork, may hold.
_Noreturn void _mi_prim_abort(void) {
  unsigned long set[MI_ABORT_SIGSET_WORDS] = {0};
  const unsigned long action[MI_ABORT_ACTION_WORDS] = {0};
  const unsigned bit = SIGABRT - 1;
  set[bit / (8 * sizeof(long))] |= 1UL << bit % (8 * sizeof(long));
  (void)mi_syscall6(SYS_rt_sigprocmask, SIG_UNBLOCK, mi_syscall_arg(set), 0, MI_ABORT_SIGSET_SIZE, 0, 0);
  mi_abort_raise();
  // A handler returned, or the signal was ignored.
  (void)mi_syscall6(SYS_rt_sigaction, SIGABRT, mi_syscall_arg(action), 0, MI_ABORT_SIGSET_SIZE, 0, 0);
  (void)mi_syscall6(SYS_rt_sigprocmask, SIG_UNBLOCK, mi_syscall_arg(set), 0, MI_ABORT_SIGSET_SIZE, 0, 0);
  mi_abort_raise();
  // The first process of a container gets no signal from itself that it does not handle.
  for (;;) {
    (void)mi_syscall3(SYS_exit_group, 128 + SIGABRT, 0, 0);
    __builtin_trap();
  }
}
