// Owns: the C library's functions that install a handler of a signal, for the signals that the crash report takes.
// May include: prim; the C library's headers.
// Called by: programs, in place of the C library's.
// Invariants: a static program takes no object of the C library that defines one of these names by itself, where all of them are
// defined here. For all other signals, and as long as there is no crash report, each does what the C library's does.
// Async-signal-safe.
#define _GNU_SOURCE  // sigset, sighandler_t
#include <errno.h>
#include <signal.h>
#undef _GNU_SOURCE

#include "src/prim/prim.h"

_Static_assert(MI_HAS_GUARDED != 0, "policy/variants.bzl gives this part to a variant without guarded sampling");

// The C library's own, by names that stay its: sigaction, and signal.
extern int __sigaction(int sig, const struct sigaction* action, struct sigaction* old);
extern __sighandler_t ssignal(int sig, __sighandler_t handler) __attribute__((weak));

// What the functions here call of each other has names of their own, which nobody else can bind to something else.
static int mi_signal_action(int sig, const struct sigaction* action, struct sigaction* old) {
  return _mi_prim_fault_action(sig, action, old) ? 0 : __sigaction(sig, action, old);
}

mi_exported int sigaction(int sig, const struct sigaction* action, struct sigaction* old) {
  return mi_signal_action(sig, action, old);
}

// SIG_ERR: errno says why.
static __sighandler_t mi_signal_set(int sig, __sighandler_t handler, int flags, bool masks_itself) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  struct sigaction old;
  if (handler == SIG_ERR || sigemptyset(&action.sa_mask) != 0 || (masks_itself && sigaddset(&action.sa_mask, sig) != 0)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return mi_signal_action(sig, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

// The C library's knows of siginterrupt, which nobody wants for the signals of faults.
static __sighandler_t mi_signal(int sig, __sighandler_t handler) {
  const bool is_ours = _mi_prim_fault_action(sig, NULL, NULL);
  return is_ours || &ssignal == NULL ? mi_signal_set(sig, handler, SA_RESTART, true) : ssignal(sig, handler);
}

mi_exported __sighandler_t signal(int sig, __sighandler_t handler) { return mi_signal(sig, handler); }

mi_exported __sighandler_t bsd_signal(int sig, __sighandler_t handler);
mi_exported __sighandler_t bsd_signal(int sig, __sighandler_t handler) { return mi_signal(sig, handler); }

static __sighandler_t mi_signal_once(int sig, __sighandler_t handler) {
  return mi_signal_set(sig, handler, (int)SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, false);
}

mi_exported __sighandler_t sysv_signal(int sig, __sighandler_t handler) { return mi_signal_once(sig, handler); }

// What signal means in programs for the X/Open system.
mi_exported __sighandler_t __sysv_signal(int sig, __sighandler_t handler) { return mi_signal_once(sig, handler); }

mi_exported int sigignore(int sig) { return mi_signal_set(sig, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0; }

mi_exported __sighandler_t sigset(int sig, __sighandler_t disposition) {
  const bool holds = disposition == SIG_HOLD;
  struct sigaction old;
  sigset_t own;
  sigset_t before;
  if (sigemptyset(&own) != 0 || sigaddset(&own, sig) != 0 || mi_signal_action(sig, NULL, &old) != 0 ||
      (!holds && mi_signal_set(sig, disposition, 0, false) == SIG_ERR) ||
      sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &own, &before) != 0) {
    return SIG_ERR;
  }
  return sigismember(&before, sig) == 1 ? SIG_HOLD : old.sa_handler;
}
