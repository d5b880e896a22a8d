// Owns: last words: raw writes to stderr and to a file for reports, and the end of the process.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: works in any state of the process: no lock, no allocation, no buffer.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "src/prim/linux/syscall.h"
#include "src/prim/prim.h"

enum {
  // The kernel's sigset_t and the room that its struct sigaction takes on any machine; all zero is the default action.
  MI_ABORT_SIGSET_WORDS = 128 / 8 / sizeof(long),
  MI_ABORT_ACTION_WORDS = 16,
  // How often a write that would block is tried: a nonblocking stderr must not lose a report, nor hang the process.
  MI_WRITE_TRIES = 100,
  MI_LOG_FILE_MIN = 200,
};

#if defined(__mips__)
enum { MI_ABORT_SIGSET_SIZE = 16 };
#else
enum { MI_ABORT_SIGSET_SIZE = 8 };
#endif

static bool mi_write_all(int file, const char* msg, size_t len) {
  int tries = 0;
  while (len > 0) {
    const long n = mi_syscall3(SYS_write, file, mi_syscall_arg(msg), (long)len);
    if (n == -EINTR) {
      continue;
    }
    if (n == -EAGAIN && ++tries < MI_WRITE_TRIES) {
      _mi_prim_yield();
      continue;
    }
    if (n <= 0) {
      return false;
    }
    msg += n;
    len -= (size_t)n;
  }
  return true;
}

void _mi_prim_write_stderr(const char* msg, size_t len) { (void)mi_write_all(STDERR_FILENO, msg, len); }

// fstat keeps to the C library's structure, whatever the kernel's is; it is one system call.
static bool mi_log_identity(int file, uint64_t* device, uint64_t* node) {
  const int saved_errno = errno;
  struct stat status;
  const bool is_open = fstat(file, &status) == 0;
  errno = saved_errno;
  if (is_open) {
    *device = (uint64_t)status.st_dev;
    *node = (uint64_t)status.st_ino;
  }
  return is_open;
}

int _mi_prim_log_open(const char* path, mi_prim_log_t* log) {
  if (_mi_prim_is_secure_exec()) {
    return EPERM;
  }
  // Not waiting for a reader, where it is a pipe.
  const long file = mi_syscall6(SYS_openat, AT_FDCWD, mi_syscall_arg(path),
                                O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600, 0, 0);
  if (mi_syscall_failed(file)) {
    return mi_syscall_error(file);
  }
  // Out of the way of programs that count on the lowest numbers.
  const long away = mi_syscall3(SYS_fcntl, file, F_DUPFD_CLOEXEC, MI_LOG_FILE_MIN);
  if (!mi_syscall_failed(away)) {
    (void)mi_syscall3(SYS_close, file, 0, 0);
  }
  log->file = (int)(mi_syscall_failed(away) ? file : away);
  return mi_log_identity(log->file, &log->device, &log->node) ? 0 : EBADF;
}

bool _mi_prim_log_write(const mi_prim_log_t* log, const char* msg, size_t len) {
  uint64_t device;
  uint64_t node;
  return mi_log_identity(log->file, &device, &node) && device == log->device && node == log->node &&
      mi_write_all(log->file, msg, len);
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
