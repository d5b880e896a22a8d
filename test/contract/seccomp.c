// Owns: after start-up no system call is made but the memory calls, write, futex and exit.
// May include: test/lib, Linux headers.
// Called by: rows of test/contract/rows.txt: seccomp [WAIT_MS]; glibc's own malloc is the control that must die.
// Invariants: the filter kills the process (SIGSYS) at any other call; the program itself only spins and writes.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "test/lib/test.h"

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void install(void) {
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
      ALLOW(SYS_mmap),
      ALLOW(SYS_munmap),
      ALLOW(SYS_mremap),
      ALLOW(SYS_madvise),
      ALLOW(SYS_mprotect),
      ALLOW(SYS_write),
      ALLOW(SYS_futex),
      ALLOW(SYS_exit),
      ALLOW(SYS_exit_group),
      ALLOW(SYS_rt_sigreturn),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  MI_REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  // On all threads: those that were started before are under it too.
  MI_REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

// The clock comes from the vdso and makes no system call.
static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000U + (uint64_t)t.tv_nsec / 1000000U;
}

enum { SLOTS = 500,
       THREADS = 3 };
static void* slots[SLOTS];
static int go, done, ready;

static void churn(uint64_t seed, int steps) {
  for (int i = 0; i < steps; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t n = (r % 200 == 0) ? (size_t)(r >> 20) % 6000000 : ((r % 16 == 0) ? (size_t)(r >> 20) % 100000 : (size_t)(r >> 20) % 1500);
    void* p;
    switch ((r >> 8) % 5) {
      case 0: p = calloc(1, n); break;
      case 1: p = aligned_alloc((size_t)1 << (r >> 12) % 18, n); break;
      case 2: p = realloc(malloc(n / 2), n); break;
      default: p = malloc(n); break;
    }
    if (p == NULL) {
      mi_test_say("no memory for %zu bytes", n);
      _exit(1);
    }
    if (malloc_usable_size(p) < n) _exit(1);
    if (n > 0) ((char*)p)[0] = ((char*)p)[n - 1] = 1;
    free(__atomic_exchange_n(&slots[(r >> 40) % SLOTS], p, __ATOMIC_ACQ_REL));
  }
}

static void* thread(void* arg) {
  // Has not called the allocator before the filter stands: its first call is under it. The C library's own calls at
  // thread start are over by now.
  __atomic_fetch_add(&ready, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE)) {
  }
  churn((uintptr_t)arg, 20000);
  __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
  for (;;) syscall(SYS_futex, &done, 0, 1000, NULL);
  return NULL;
}

int main(int argc, char** argv) {
  const uint64_t wait_ms = argc > 1 ? (uint64_t)atol(argv[1]) : 300;
  const bool with_threads = argc > 2 && strcmp(argv[2], "threads") == 0;
  mi_test_current = "seccomp";
  if (with_threads) {
    for (uintptr_t i = 0; i < THREADS; i++) {
      pthread_t t;
      MI_REQUIRE(pthread_create(&t, NULL, thread, (void*)(i + 1)) == 0);
    }
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < THREADS) {
    }
  }
  install();
  __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
  churn(99, 50000);
  // 1.2 GiB in large blocks, so that a further arena is needed.
  static char* large[20];
  for (int i = 0; i < 20; i++) {
    large[i] = (char*)malloc(60 << 20);
    if (large[i] == NULL) _exit(1);
    large[i][0] = 1;
  }
  for (int i = 0; i < 20; i++) free(large[i]);
  if (with_threads) {
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < THREADS) {
    }
  }
  for (int i = 0; i < SLOTS; i++) {
    free(slots[i]);
    slots[i] = NULL;
  }
  // Past the purge delay: what gives memory back uses no other call either.
  const uint64_t end = now_ms() + wait_ms;
  while (now_ms() < end) {
    free(malloc(70000));
  }
  churn(98, 20000);
  malloc_trim(0);
  errno = 0;
  if (malloc(mi_test_hide_size(SIZE_MAX / 2)) != NULL || errno != ENOMEM) _exit(1);
  churn(97, 1000);
  _exit(0);
}
