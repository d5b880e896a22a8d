// Owns: the handler of SIGSEGV and SIGBUS, and what the program has installed for them, which runs behind it.
// May include: prim, base, the C library's headers.
// Called by: through prim.h, and by the kernel.
// Invariants: async-signal-safe: no lock, no allocation, nothing that waits. A program without the hook sees no difference.
#define _GNU_SOURCE  // REG_ERR
#include <signal.h>
#include <ucontext.h>
#undef _GNU_SOURCE

#include "src/prim/linux/syscall.h"
#include "src/prim/prim.h"

// The C library's sigaction by a name that programs and other libraries do not replace.
extern int __sigaction(int sig, const struct sigaction* action, struct sigaction* old);

enum {
  MI_FAULT_SIGNALS = 2,
  // What the program installs is written to the next of these, so that who reads the latest one is not disturbed.
  MI_FAULT_ACTIONS = 16,
  MI_FAULT_SET_WORDS = 8 / sizeof(long),
};

// The kernel's sigset_t, which the C library's begins with.
typedef struct mi_fault_set_s {
  unsigned long words[MI_FAULT_SET_WORDS];
} mi_fault_set_t;

typedef struct mi_fault_action_s {
  _Atomic(uint32_t) version;  // odd: being written
  struct sigaction action;
} mi_fault_action_t;

// What the program has installed for a signal, as far as it knows.
typedef struct mi_fault_signal_s {
  _Atomic(uint32_t) next;
  _Atomic(uintptr_t) current;  // of the table
  mi_fault_action_t actions[MI_FAULT_ACTIONS];
} mi_fault_signal_t;

static mi_far mi_fault_signal_t mi_fault_signals[MI_FAULT_SIGNALS];
static bool (*mi_fault_hook)(const mi_prim_fault_t* fault);
static _Atomic(long) mi_fault_pid;  // of the process that the table is true for; 0: there is no hook

static mi_fault_signal_t* mi_fault_signal_of(int sig) {
  return sig == SIGSEGV ? &mi_fault_signals[0] : sig == SIGBUS ? &mi_fault_signals[1]
                                                               : NULL;
}

// Copies between structures that change under way. An action that is torn is not used.
static void mi_fault_copy(volatile struct sigaction* to, const volatile struct sigaction* from) {
  volatile unsigned char* const t = (volatile unsigned char*)to;
  const volatile unsigned char* const f = (const volatile unsigned char*)from;
  for (size_t i = 0; i < sizeof(*to); i++) {
    t[i] = f[i];
  }
}

static mi_cold mi_fault_action_t* mi_fault_write(mi_fault_signal_t* entry, const struct sigaction* action) {
  mi_fault_action_t* const node = &entry->actions[mi_atomic_add_relaxed(&entry->next, 1) % MI_FAULT_ACTIONS];
  const uint32_t version = mi_atomic_load_relaxed(&node->version) | 1;
  mi_atomic_store_relaxed(&node->version, version);
  // Who reads a byte of the new action sees the odd version at its second look.
  atomic_thread_fence(memory_order_release);
  mi_fault_copy(&node->action, action);
  mi_atomic_store_release(&node->version, version + 1);
  return node;
}

// The latest action, and which it is. There is a new one where this has to look twice, so it does not do so for ever.
static mi_fault_action_t* mi_fault_read(mi_fault_signal_t* entry, struct sigaction* action) {
  for (;;) {
    // Acquire pairs with the exchange that made it the latest.
    mi_fault_action_t* const node = (mi_fault_action_t*)mi_atomic_load_acquire(&entry->current);
    const uint32_t version = mi_atomic_load_acquire(&node->version);
    mi_fault_copy(action, &node->action);
    atomic_thread_fence(memory_order_acquire);
    if (version % 2 == 0 && mi_atomic_load_relaxed(&node->version) == version) {
      return node;
    }
  }
}

// The handler

static bool mi_fault_is_default(const struct sigaction* action) {
  return (action->sa_flags & SA_SIGINFO) == 0 && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

static void mi_fault_handler(int sig, siginfo_t* info, void* context);

// What the kernel is told: our handler, on the stack and with the restarts that the program's own would have. `old`: what it
// was told before, or NULL.
static mi_cold void mi_fault_install(int sig, const struct sigaction* action, struct sigaction* old) {
  struct sigaction ours = {.sa_sigaction = &mi_fault_handler};
  ours.sa_flags = SA_SIGINFO | (mi_fault_is_default(action) ? SA_ONSTACK : action->sa_flags & (SA_ONSTACK | SA_RESTART));
  (void)sigfillset(&ours.sa_mask);
  (void)__sigaction(sig, &ours, old);
}

static mi_prim_access_t mi_fault_access(const ucontext_t* context) {
#if defined(__x86_64__) || defined(__i386__)
  const unsigned long error = (unsigned long)context->uc_mcontext.gregs[REG_ERR];
  // The bits of a page fault's error code.
  return (error & 16) != 0 ? MI_PRIM_ACCESS_EXECUTE : (error & 2) != 0 ? MI_PRIM_ACCESS_WRITE
                                                                       : MI_PRIM_ACCESS_READ;
#elif defined(__aarch64__)
  // A list of records behind the registers, of which one is the fault's syndrome.
  typedef struct mi_fault_esr_s {
    uint32_t magic;
    uint32_t size;
    uint64_t esr;
  } mi_fault_esr_t;
  enum { MAGIC = 0x45535201 };
  const unsigned char* at = (const unsigned char*)context->uc_mcontext.__reserved;
  const unsigned char* const end = at + sizeof(context->uc_mcontext.__reserved);
  while ((size_t)(end - at) >= sizeof(mi_fault_esr_t)) {
    const mi_fault_esr_t* const record = (const mi_fault_esr_t*)(const void*)at;
    if (record->magic == MAGIC) {
      const unsigned class = (unsigned)(record->esr >> 26) & 0x3f;
      const bool is_data = class == 0x24 || class == 0x25;
      return class == 0x20 || class == 0x21 ? MI_PRIM_ACCESS_EXECUTE : !is_data ? MI_PRIM_ACCESS_UNKNOWN
          : (record->esr & 64) != 0                                             ? MI_PRIM_ACCESS_WRITE
                                                                                : MI_PRIM_ACCESS_READ;
    }
    if (record->size < 8) {
      break;
    }
    at += record->size;
  }
  return MI_PRIM_ACCESS_UNKNOWN;
#else
  (void)context;
  return MI_PRIM_ACCESS_UNKNOWN;
#endif
}

static void mi_fault_registers(const ucontext_t* context, mi_prim_fault_t* fault) {
#if defined(__x86_64__)
  fault->code = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
  fault->stack = (const uintptr_t*)(uintptr_t)context->uc_mcontext.gregs[REG_RSP];
  fault->frame = (const void*)(uintptr_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__i386__)
  fault->code = (uintptr_t)context->uc_mcontext.gregs[REG_EIP];
  fault->stack = (const uintptr_t*)(uintptr_t)context->uc_mcontext.gregs[REG_ESP];
  fault->frame = (const void*)(uintptr_t)context->uc_mcontext.gregs[REG_EBP];
#elif defined(__aarch64__)
  fault->code = (uintptr_t)context->uc_mcontext.pc;
  fault->stack = (const uintptr_t*)(uintptr_t)context->uc_mcontext.sp;
  fault->frame = (const void*)(uintptr_t)context->uc_mcontext.regs[29];
  fault->link = (uintptr_t)context->uc_mcontext.regs[30];
#else
  (void)context;
  (void)fault;
#endif
}

// Not sent by anybody, and with an address in it.
static bool mi_fault_is_access(const siginfo_t* info) { return info->si_code > 0 && info->si_code != SI_KERNEL; }

static void mi_fault_set_mask(const mi_fault_set_t* set) {
  (void)mi_syscall6(SYS_rt_sigprocmask, SIG_SETMASK, mi_syscall_arg(set), 0, sizeof(*set), 0, 0);
}

// What the kernel would block while the program's handler runs.
static mi_fault_set_t mi_fault_mask(int sig, const struct sigaction* action, const ucontext_t* context) {
  mi_fault_set_t set;
  __builtin_memcpy(&set, &context->uc_sigmask, sizeof(set));
  mi_fault_set_t more;
  __builtin_memcpy(&more, &action->sa_mask, sizeof(more));
  const unsigned bits = 8 * sizeof(long);
  if ((action->sa_flags & SA_NODEFER) == 0) {
    more.words[(unsigned)(sig - 1) / bits] |= 1UL << (unsigned)(sig - 1) % bits;
  }
  for (size_t i = 0; i < MI_FAULT_SET_WORDS; i++) {
    set.words[i] |= more.words[i];
  }
  return set;
}

// The end by the signal, where the program has not asked for anything else. What the kernel found runs into it again and ends
// there, so that a core dump has the registers of that place; what comes without is sent once more.
static void mi_fault_default(int sig, siginfo_t* info, const struct sigaction* action) {
  // No instruction is to blame for memory that breaks by itself.
  const bool was_sent = info->si_code <= 0 || (sig == SIGBUS && info->si_code == BUS_MCEERR_AO);
  if (was_sent && action->sa_handler == SIG_IGN) {
    return;
  }
  const struct sigaction none = {.sa_handler = SIG_DFL};
  (void)__sigaction(sig, &none, NULL);
  if (was_sent) {
    const long pid = mi_syscall3(SYS_getpid, 0, 0, 0);
    const long tid = mi_syscall3(SYS_gettid, 0, 0, 0);
    (void)mi_syscall6(SYS_rt_tgsigqueueinfo, pid, tid, sig, mi_syscall_arg(info), 0, 0);
  }
}

static void mi_fault_pass_on(int sig, siginfo_t* info, void* context) {
  mi_fault_signal_t* const entry = mi_fault_signal_of(sig);
  struct sigaction action;
  uintptr_t node = (uintptr_t)mi_fault_read(entry, &action);
  if ((action.sa_flags & (int)SA_RESETHAND) != 0 && !mi_fault_is_default(&action)) {
    struct sigaction reset = action;
    reset.sa_handler = SIG_DFL;
    reset.sa_flags &= ~SA_SIGINFO;
    // Another action that has come meanwhile stays.
    (void)mi_atomic_cas_strong_acq_rel(&entry->current, &node, (uintptr_t)mi_fault_write(entry, &reset));
  }
  if (mi_fault_is_default(&action)) {
    mi_fault_default(sig, info, &action);
    return;
  }
  const mi_fault_set_t mask = mi_fault_mask(sig, &action, context);
  mi_fault_set_mask(&mask);
  // The kernel hands all three to either kind.
  action.sa_sigaction(sig, info, context);
}

static void mi_fault_handler(int sig, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (mi_fault_is_access(info)) {
    mi_prim_fault_t fault = {.address = (uintptr_t)info->si_addr, .access = mi_fault_access(context)};
    mi_fault_registers(context, &fault);
    const bool again = mi_fault_hook(&fault);
    errno = saved_errno;
    if (again) {
      return;
    }
  }
  mi_fault_pass_on(sig, info, context);
}

// Installing

// Enters what a signal leads to. Release pairs with the acquire of who reads it.
static mi_cold void mi_fault_enter(mi_fault_signal_t* entry, const struct sigaction* action) {
  mi_atomic_store_release(&entry->current, (uintptr_t)mi_fault_write(entry, action));
}

// One call for a signal that leads to nothing of the program's, in a process of one thread; another thread's fault could find
// the table without what the program has installed.
static mi_cold bool mi_fault_hook_signal(int sig, mi_fault_signal_t* entry) {
  struct sigaction old = {.sa_handler = SIG_DFL};
  struct sigaction ours = old;
  if (!_mi_prim_is_single_threaded() && __sigaction(sig, NULL, &ours) != 0) {
    return false;
  }
  mi_fault_enter(entry, &ours);
  mi_fault_install(sig, &ours, &old);
  if (!mi_fault_is_default(&old) || old.sa_handler != ours.sa_handler || old.sa_flags != ours.sa_flags) {
    mi_fault_enter(entry, &old);
    mi_fault_install(sig, &old, NULL);
  }
  return true;
}

mi_cold bool _mi_prim_fault_hook(bool (*on_fault)(const mi_prim_fault_t* fault)) {
  const int saved_errno = errno;
  mi_fault_hook = on_fault;
  const bool done = mi_fault_hook_signal(SIGSEGV, &mi_fault_signals[0]) && mi_fault_hook_signal(SIGBUS, &mi_fault_signals[1]);
  if (done) {
    // What the program installs from here on goes to the table.
    mi_atomic_store_release(&mi_fault_pid, mi_syscall3(SYS_getpid, 0, 0, 0));
  }
  errno = saved_errno;
  return done;
}

void _mi_prim_fault_fork_child(void) {
  if (mi_atomic_load_relaxed(&mi_fault_pid) != 0) {
    mi_atomic_store_relaxed(&mi_fault_pid, mi_syscall3(SYS_getpid, 0, 0, 0));
  }
}

bool _mi_prim_fault_action(int sig, const void* action, void* old) {
  mi_fault_signal_t* const entry = mi_fault_signal_of(sig);
  // Acquire pairs with the release that says that the table is there. A child of vfork has another number: what it installs is
  // for itself, and the table is its parent's.
  const long pid = entry == NULL ? 0 : mi_atomic_load_acquire(&mi_fault_pid);
  if (pid == 0 || pid != mi_syscall3(SYS_getpid, 0, 0, 0)) {
    return false;
  }
  if (action == NULL) {
    if (old != NULL) {
      (void)mi_fault_read(entry, old);
    }
    return true;
  }
  struct sigaction wanted;
  mi_fault_copy(&wanted, action);
  // The kernel lets nobody block these.
  (void)sigdelset(&wanted.sa_mask, SIGKILL);
  (void)sigdelset(&wanted.sa_mask, SIGSTOP);
  const uintptr_t latest = (uintptr_t)mi_fault_write(entry, &wanted);
  struct sigaction before;
  uintptr_t node;
  do {
    node = (uintptr_t)mi_fault_read(entry, &before);
    // Whoever has the old action has it as it was when the new one came.
  } while (!mi_atomic_cas_weak_acq_rel(&entry->current, &node, latest));
  if (old != NULL) {
    mi_fault_copy(old, &before);
  }
  // Another thread's may come between; then its stack and restarts are told last.
  do {
    mi_fault_install(sig, &wanted, NULL);
    node = (uintptr_t)mi_fault_read(entry, &wanted);
  } while (mi_atomic_load_relaxed(&entry->current) != node);
  return true;
}
