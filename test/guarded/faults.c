// Owns: threads that allocate, meet faults of their own and faults at guarded blocks, are interrupted by signals and have the
// handlers of faults changed under their feet, all at once.
// May include: test/lib, POSIX threads.
// Called by: rows of test/guarded/rows.txt: faults TEST; the library is preloaded.
// Invariants: each access beside a guarded block is reported once, whole, and goes on; each other fault comes to a handler of the
// program's, and to nobody else.
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { WORKERS = 4,
       CHANGERS = 2,
       ROUNDS = 1500,
       // Blocks of a worker that are overrun by itself, and by its handler.
       OVERRUN = 30,
       PREPARED = 60,
       BLOCK = 48,
       OS_PAGE = 4096,
       TRIES = 1000,
       STACK = 64 * 1024 };

typedef struct worker_s {
  pthread_t thread;
  volatile char* page;              // inaccessible
  volatile char* blocks[PREPARED];  // each ends where its guard begins
  volatile int used;                // of these, by the handler
  volatile int touched;             // beside guarded blocks
  int handled;                      // faults that came to a handler
} worker_t;

static worker_t workers[WORKERS];
static __thread worker_t* volatile self;
static __thread sigjmp_buf back;
static int ready;
static int go;
static int done;

// Handlers of the program

static void on_fault(int sig) {
  if (sig != SIGSEGV) _exit(51);
  siglongjmp(back, 1);
}

static void on_fault_informed(int sig, siginfo_t* info, void* context) {
  if (sig != SIGSEGV || context == NULL || (uintptr_t)info->si_addr != (uintptr_t)self->page + 8) _exit(52);
  siglongjmp(back, 1);
}

// Wherever the worker is: mostly in the allocator. While a handler of faults runs, another one would be the end.
static void on_interrupt(int sig, siginfo_t* info, void* context) {
  (void)sig;
  (void)info;
  const ucontext_t* const interrupted = context;
  worker_t* const worker = self;
  if (worker != NULL && worker->used < PREPARED && sigismember(&interrupted->uc_sigmask, SIGSEGV) == 0) {
    worker->blocks[worker->used++][BLOCK] = 1;
    worker->touched++;
  }
}

static void* changer(void* arg) {
  struct sigaction informed;
  memset(&informed, 0, sizeof(informed));
  informed.sa_sigaction = &on_fault_informed;
  informed.sa_flags = SA_SIGINFO | SA_ONSTACK;
  while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
    MI_REQUIRE(sigaction(SIGSEGV, &informed, NULL) == 0);
    MI_REQUIRE(signal(SIGSEGV, &on_fault) != SIG_ERR);
    struct sigaction now;
    MI_REQUIRE(sigaction(SIGSEGV, NULL, &now) == 0);
    MI_REQUIRE(now.sa_handler == &on_fault || now.sa_sigaction == &on_fault_informed);
  }
  return arg;
}

// Work

static volatile char* guarded_at_right(void) {
  for (int i = 0; i < TRIES; i++) {
    char* const p = malloc(BLOCK);
    if (p != NULL && (uintptr_t)(p + BLOCK) % OS_PAGE == 0 && malloc_usable_size(p) == BLOCK) return p;
  }
  MI_REQUIRE(!"a guarded block at the right edge");
  return NULL;
}

static void fault(worker_t* worker) {
  if (sigsetjmp(back, 1) == 0) {
    worker->page[8] = 1;
    _exit(53);
  }
  worker->handled++;
}

static void* work(void* arg) {
  worker_t* const worker = arg;
  static char stacks[WORKERS][STACK];
  const stack_t other = {.ss_sp = stacks[worker - workers], .ss_size = STACK};
  MI_REQUIRE(sigaltstack(&other, NULL) == 0);
  worker->page = mmap(NULL, OS_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(worker->page != MAP_FAILED);
  for (int i = 0; i < PREPARED; i++) worker->blocks[i] = guarded_at_right();
  self = worker;
  (void)__atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE)) sched_yield();
  uint64_t seed = (uintptr_t)(worker - workers) + 1;
  for (int i = 0; i < ROUNDS; i++) {
    const size_t size = mi_test_random(&seed) % 3000;
    char* const p = calloc(1, size);
    MI_REQUIRE(p != NULL && mi_test_all_bytes(p, size, 0));
    memset(p, i, size);
    fault(worker);
    char* const q = realloc(p, size + 100);
    MI_REQUIRE(q != NULL && mi_test_all_bytes(q, size, (unsigned char)i));
    free(q);
    if (i % (ROUNDS / OVERRUN) == 0) {
      guarded_at_right()[BLOCK] = 1;
      worker->touched++;
    }
  }
  return NULL;
}

static int all_at_once(void) {
  struct sigaction interrupt;
  memset(&interrupt, 0, sizeof(interrupt));
  interrupt.sa_sigaction = &on_interrupt;
  interrupt.sa_flags = SA_SIGINFO | SA_RESTART;
  MI_REQUIRE(sigaction(SIGUSR1, &interrupt, NULL) == 0 && signal(SIGSEGV, &on_fault) != SIG_ERR);
  pthread_t changers[CHANGERS];
  for (int i = 0; i < WORKERS; i++) MI_REQUIRE(pthread_create(&workers[i].thread, NULL, &work, &workers[i]) == 0);
  for (int i = 0; i < CHANGERS; i++) MI_REQUIRE(pthread_create(&changers[i], NULL, &changer, NULL) == 0);
  while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < WORKERS) mi_test_sleep_ms(1);
  // Each has been interrupted once before any of them goes on, however slow the machine is.
  for (int i = 0; i < PREPARED; i++) {
    for (int k = 0; k < WORKERS; k++) {
      MI_REQUIRE(pthread_kill(workers[k].thread, SIGUSR1) == 0);
      while (i == 0 && workers[k].used == 0) sched_yield();
    }
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    mi_test_sleep_ms(1);
  }
  int touched = 0;
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(workers[i].thread, NULL);
    MI_CHECK_EQ(workers[i].handled, ROUNDS);
    touched += workers[i].touched;
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < CHANGERS; i++) pthread_join(changers[i], NULL);
  return touched;
}

static size_t count(const char* text, const char* what) {
  size_t found = 0;
  for (const char* at = text; (at = strstr(at, what)) != NULL; at++) found++;
  return found;
}

MI_TEST(all_at_once) {
  const char* const again = getenv("MI_TEST_AGAIN");
  if (again != NULL) {
    const int touched = all_at_once();
    dprintf(atoi(again), "%d", touched);
    return;
  }
  // In a process whose reports go to a file.
  static char text[8 << 20];
  char path[256];
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const char* const folder = getenv("TEST_TMPDIR");
  snprintf(path, sizeof(path), "%s/faults-%d.log", folder == NULL ? "/tmp" : folder, (int)getpid());
  const pid_t pid = fork();
  if (pid == 0) {
    snprintf(text, sizeof(text), "%d", fds[1]);
    MI_REQUIRE(setenv("MI_TEST_AGAIN", text, 1) == 0 && setenv("MIMALLOC_GUARDED_LOG", path, 1) == 0);
    execl("/proc/self/exe", "faults", "all_at_once", NULL);
    _exit(54);
  }
  int status = 0;
  MI_REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
  MI_CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", (unsigned)status);
  char number[16] = {0};
  close(fds[1]);
  MI_REQUIRE(read(fds[0], number, sizeof(number) - 1) > 0);
  const size_t touched = (size_t)atoi(number);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  MI_REQUIRE(fd >= 0);
  size_t length = 0;
  for (ssize_t n; (n = read(fd, text + length, sizeof(text) - 1 - length)) > 0;) length += (size_t)n;
  close(fd);
  unlink(path);
  MI_CHECK_MSG(touched >= WORKERS * (OVERRUN + 1), "%zu accesses", touched);
  MI_CHECK_EQ(count(text, ": overflow: pointer 0x"), touched);
  MI_CHECK_EQ(count(text, " is 1 byte beyond the end of a guarded block of 48 bytes at 0x"), touched);
  MI_CHECK_EQ(count(text, "\n  allocated by thread "), touched);
  MI_CHECK_EQ(count(text, "\n  to repeat: MIMALLOC_GUARDED_SAMPLE_RATE=1 "), touched);
}

MI_TEST_MAIN()
