// Owns: bad use in hard places, and what becomes of the report there.
// May include: test/lib, POSIX, Linux headers.
// Called by: rows of test/death/rows.txt: reports CASE.
// Invariants: the bad use is a second free of a block, or a free of static memory where release is to see it too.
// Flags: -pthread -fno-builtin -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "test/lib/child.h"
#include "test/lib/test.h"

#include "test/lib/plain.h"

typedef void error_fun(int err, void* arg);

static void* bad;
static char static_bytes[64];

static void announce(void) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)bad);
  mi_test_write(1, line, (size_t)n);
}

static __attribute__((noinline)) void misuse(void) {
  free(mi_test_hide(bad));
  __asm__ volatile("");
}

static void* function(const char* name) {
  void* const f = dlsym(RTLD_DEFAULT, name);
  if (f == NULL) {
    mi_test_say("no %s in this malloc", name);
    _exit(3);
  }
  return f;
}

static void register_error(error_fun* f) {
  void (*set)(error_fun*, void*);
  *(void**)&set = function("mi_register_error");
  set(f, NULL);
}

static void set_option(int option, long value) {
  void (*set)(int, long);
  *(void**)&set = function("mi_option_set");
  set(option, value);
}

// Error functions

static jmp_buf back;

static void tell(int err, void* arg) {
  (void)arg;
  char line[32];
  const int n = snprintf(line, sizeof(line), "told %d\n", err);
  mi_test_write(2, line, (size_t)n);
}

static void leave(int err, void* arg) {
  (void)err;
  (void)arg;
  _exit(0);
}

static void jump(int err, void* arg) {
  (void)err;
  (void)arg;
  longjmp(back, 1);
}

static void turn_off(int err, void* arg) {
  (void)err;
  (void)arg;
  set_option(64, 2);
  close(2);
}

// Small stacks, between pages that cannot be touched.

enum { STACK = 16 * 1024 };

static char* small_stack(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t size = STACK > page ? STACK : page;
  char* const map = mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(map != MAP_FAILED);
  MI_REQUIRE(mprotect(map, page, PROT_NONE) == 0 && mprotect(map + page + size, page, PROT_NONE) == 0);
  return map + page + size - STACK;
}

static void handler(int sig) {
  (void)sig;
  misuse();
}

static void on_signal(int sig, int flags) {
  const struct sigaction action = {.sa_handler = &handler, .sa_flags = flags};
  MI_REQUIRE(sigaction(sig, &action, NULL) == 0);
}

static void* thread(void* arg) {
  (void)arg;
  misuse();
  return NULL;
}

static void in_thread(size_t stack_size) {
  pthread_attr_t attributes;
  pthread_t t;
  pthread_attr_init(&attributes);
  MI_REQUIRE(pthread_attr_setstacksize(&attributes, stack_size) == 0);
  MI_REQUIRE(pthread_create(&t, &attributes, &thread, NULL) == 0);
  pthread_join(t, NULL);
}

// A signal comes while the allocator is at work, with its locks held or not.

static void interrupted(void* arg) {
  const int round = *(int*)arg;
  const struct itimerval when = {{0, 0}, {0, 200 + round * 37 % 1000}};
  on_signal(SIGALRM, 0);
  setitimer(ITIMER_REAL, &when, NULL);
  for (long i = 0;; i++) {
    // Options are set under a lock, and arenas and blocks with mappings of their own come and go under others.
    set_option(20, i % 7);
    free(malloc(i % 3 == 0 ? (size_t)3 << 20 : (size_t)80 << 20));
    if (i % 64 == 0) malloc_trim(0);
  }
}

static void while_locked(const char* expected) {
  static mi_test_child_t child;
  for (int round = 0; round < 60; round++) {
    mi_test_child_run(&child, &interrupted, &round, 10000);
    MI_CHECK_MSG(child.signal == SIGABRT && !child.timed_out, "round %d: signal %d", round, child.signal);
    MI_CHECK_MSG(mi_test_child_said(&child, expected), "round %d: %.200s", round, child.err);
    MI_CHECK(mi_test_child_said(&child, "^    #0 0x[0-9a-f]+ .*[+]0x[0-9a-f]+$"));
  }
}

// Nothing but calls for memory, writes, locks and the end.
static void sandbox(void) {
#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      ALLOW(SYS_mmap),
      ALLOW(SYS_munmap),
      ALLOW(SYS_mremap),
      ALLOW(SYS_madvise),
      ALLOW(SYS_mprotect),
      ALLOW(SYS_write),
      ALLOW(SYS_futex),
      ALLOW(SYS_exit),
      ALLOW(SYS_exit_group),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  MI_REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  MI_REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  mi_test_current = kind;
  if (argc > 2 && strcmp(argv[2], "foreign") == 0) {
    bad = static_bytes;
  } else {
    // A neighbour stays, so that the page does.
    void* const keep = malloc(40);
    bad = mi_test_hide(malloc(40));
    MI_REQUIRE(keep != NULL && bad != NULL);
    free(bad);
  }
  announce();
  if (strcmp(kind, "plain") == 0) {
    misuse();
  } else if (strcmp(kind, "closed-stderr") == 0) {
    close(2);
    misuse();
  } else if (strcmp(kind, "full-stderr") == 0) {
    // Nobody reads, and the pipe is full.
    static char bytes[4096];
    int fds[2];
    MI_REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
    while (write(fds[1], bytes, sizeof(bytes)) > 0) {
    }
    dup2(fds[1], 2);
    misuse();
  } else if (strcmp(kind, "handler-stack") == 0) {
    const stack_t stack = {.ss_sp = small_stack(), .ss_size = STACK};
    MI_REQUIRE(sigaltstack(&stack, NULL) == 0);
    on_signal(SIGUSR1, SA_ONSTACK);
    raise(SIGUSR1);
  } else if (strcmp(kind, "thread-stack") == 0) {
    in_thread(STACK > PTHREAD_STACK_MIN ? STACK : (size_t)PTHREAD_STACK_MIN);
  } else if (strcmp(kind, "while-locked") == 0 && argc > 3) {
    while_locked(argv[3]);
    return mi_test_status();
  } else if (strcmp(kind, "error-tells") == 0) {
    register_error(&tell);
    misuse();
  } else if (strcmp(kind, "error-exits") == 0) {
    register_error(&leave);
    misuse();
  } else if (strcmp(kind, "error-jumps") == 0) {
    register_error(&jump);
    if (setjmp(back) == 0) misuse();
  } else if (strcmp(kind, "error-turns-off") == 0) {
    register_error(&turn_off);
    misuse();
  } else if (strcmp(kind, "sandbox") == 0) {
    sandbox();
    misuse();
    _exit(0);
  } else if (strcmp(kind, "sandbox-set") == 0) {
    sandbox();
    set_option(64, 1);
    register_error(&tell);
    misuse();
    _exit(0);
  } else if (strcmp(kind, "overwritten") == 0) {
    // All of the heap's free memory is anything.
    static void* blocks[200];
    for (size_t i = 0; i < 200; i++) blocks[i] = malloc(40);
    for (size_t i = 0; i < 200; i++) free(blocks[i]);
    for (size_t i = 0; i < 200; i++) memset(mi_test_hide(blocks[i]), 0x41, 40);
    bad = blocks[7];
    announce();
    misuse();
  } else {
    mi_test_say("unknown case %s", kind);
    return 2;
  }
  mi_test_write(1, "went on\n", 8);
  return mi_test_status();
}
