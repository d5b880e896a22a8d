// Owns: the ways to touch what is not a guarded block's own, and what a program does around that.
// May include: the C library only.
// Called by: guarded.txt: sampled WHAT SIZE ALIGNMENT [AROUND]...
// Invariants: every allocation is sampled (MIMALLOC_GUARDED_SAMPLE_RATE=1). The address that is touched is printed before.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OS_PAGE = 4096,
       TRIES = 2000 };

static char stack[64 * 1024];

static bool has(char** words, const char* word) {
  for (; *words != NULL; words++) {
    if (strcmp(*words, word) == 0) {
      return true;
    }
  }
  return false;
}

// As the rows read it. Nothing is allocated for it.
static void announce(const volatile void* p) {
  char line[40];
  const int length = snprintf(line, sizeof(line), "pointer %p\n", (void*)(uintptr_t)p);
  if (write(1, line, (size_t)length) != length) {
    _exit(99);
  }
}

static void say(const char* text) {
  if (write(2, text, strlen(text)) < 0) {
    _exit(99);
  }
}

// Handlers of the program

static void on_plain(int sig) {
  say(sig == SIGSEGV ? "handler: SIGSEGV\n" : "handler: other\n");
  _exit(40);
}

static void on_info(int sig, siginfo_t* info, void* context) {
  char line[128];
  snprintf(line, sizeof(line), "handler: %d at %p, %s, on %s stack\n", sig, info->si_addr, context == NULL ? "nothing" : "context",
           (char*)&line >= stack && (char*)&line < stack + sizeof(stack) ? "another" : "the same");
  say(line);
  _exit(41);
}

static void install(char** around) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  if (has(around, "stack")) {
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    sigaltstack(&other, NULL);
    action.sa_flags = SA_ONSTACK;
  }
  if (has(around, "signal")) {
    signal(SIGSEGV, &on_plain);
  } else if (has(around, "info")) {
    action.sa_sigaction = &on_info;
    action.sa_flags |= SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
  }
}

// Before the constructors of all libraries, the allocator's too.
static char** all_arguments;

static void early(int argc, char** argv, char** environment) {
  (void)environment;
  all_arguments = argv;
  if (argc > 4 && has(argv + 4, "early")) {
    install(argv + 4);
  }
}

__attribute__((section(".preinit_array"), used)) static void (*const early_entry)(int, char**, char**) = &early;

// Blocks

// At the right edge of its slot: what is behind the block, with the padding that its alignment asks for, is a guard. Or at the
// left one.
static uint8_t* block(size_t size, size_t alignment, bool left, bool precise) {
  const size_t unit = precise ? 1 : alignment > 16 ? alignment
                                                   : 16;
  for (int i = 0; i < TRIES; i++) {
    uint8_t* const p = alignment <= 16 ? malloc(size) : aligned_alloc(alignment, size);
    if (p == NULL) {
      break;
    }
    const uintptr_t end = ((uintptr_t)p + size + unit - 1) / unit * unit;
    // One that is aligned to OS pages begins at one at either edge.
    if (left ? (uintptr_t)p % OS_PAGE == 0 && (unit >= OS_PAGE || end % OS_PAGE != 0) : end % OS_PAGE == 0) {
      memset(p, 'x', size);
      return p;
    }
  }
  say("no block\n");
  _exit(98);
}

static __attribute__((noinline)) void touch(volatile uint8_t* at, bool writes) {
  announce(at);
  if (writes) {
    *at = 1;
  } else {
    (void)*at;
  }
}

// Each alignment with sizes around it; a block that does not keep to it is no use to anybody.
static void align_all(void) {
  for (size_t alignment = 16; alignment <= (size_t)1 << 22; alignment *= 2) {
    for (size_t size = 1; size < 300000; size = size * 3 + 7) {
      for (int i = 0; i < 8; i++) {
        uint8_t* const p = aligned_alloc(alignment, size);
        if (p == NULL || (uintptr_t)p % alignment != 0) {
          char line[96];
          snprintf(line, sizeof(line), "%p of %zu bytes is not at a multiple of %zu\n", (void*)p, size, alignment);
          say(line);
          _exit(96);
        }
        memset(p, 'x', size);
        free(p);
      }
    }
  }
}

static __attribute__((noinline)) void release(uint8_t* p) { free(p); }

// For who may not allocate where it happens.
static uint8_t* prepared;

static uint8_t* prepare(char** words) {
  return block(strtoul(words[1], NULL, 0), strtoul(words[2], NULL, 0), strncmp(words[0], "under", 5) == 0, has(words + 3, "precise"));
}

static void misuse(char** words) {
  const char* const what = words[0];
  const size_t size = strtoul(words[1], NULL, 0);
  const size_t alignment = strtoul(words[2], NULL, 0);
  // A block that is aligned to more than an OS page ends anywhere, and the guard begins with the next.
  const size_t unit = alignment > OS_PAGE ? OS_PAGE : alignment > 16 ? alignment
                                                                     : 16;
  const size_t slack = has(words + 3, "precise") ? 0 : (unit - size % unit) % unit;
  const bool writes = strstr(what, "write") != NULL;
  if (strcmp(what, "aligned") == 0) {
    align_all();
    return;
  }
  uint8_t* const p = prepared != NULL ? prepared : prepare(words);
  if (strncmp(what, "over", 4) == 0) {
    touch(p + size + slack, writes);
  } else if (strncmp(what, "far", 3) == 0) {
    touch(p + size + slack + 2000, writes);
  } else if (strncmp(what, "under", 5) == 0) {
    touch(p - 1, writes);
  } else if (strncmp(what, "after", 5) == 0) {
    release(p);
    touch(p + size / 2, writes);
  } else if (strcmp(what, "copy") == 0) {
    announce(p + size + slack);
    static char source[65536];
    void* (*volatile copy)(void*, const void*, size_t) = &memcpy;
    copy(p, source, size + slack + 8);
  } else if (strcmp(what, "twice") == 0) {
    announce(p);
    release(p);
    release(p);
  }
}

// What is around

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void* in_thread(void* arg) {
  misuse(arg);
  return NULL;
}

static void* churns(void* arg) {
  for (;;) {
    free(malloc((size_t)(uintptr_t)arg));
  }
  return NULL;
}

// Whatever the thread of the fault has interrupted: mostly it is in the allocator.
static void on_alarm(int sig) {
  (void)sig;
  misuse(all_arguments + 1);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    return 97;
  }
  char** const around = argv + 4;
  if (!has(around, "early")) {
    install(around);
  }
  if (has(around, "busy")) {
    pthread_t thread;
    for (uintptr_t i = 0; i < 3; i++) {
      pthread_create(&thread, NULL, &churns, (void*)(100 * (i + 1)));
    }
    usleep(20000);
  }
  if (has(around, "thread")) {
    pthread_t thread;
    pthread_mutex_lock(&held);
    pthread_create(&thread, NULL, &in_thread, argv + 1);
    pthread_join(thread, NULL);
  } else if (has(around, "alarm")) {
    prepared = prepare(argv + 1);
    signal(SIGALRM, &on_alarm);
    ualarm(30000, 0);
    churns((void*)(uintptr_t)24);
  } else if (has(around, "child")) {
    if (fork() == 0) {
      misuse(argv + 1);
      _exit(0);
    }
    int status;
    if (wait(&status) > 0 && WIFSIGNALED(status)) {
      raise(WTERMSIG(status));
    }
  } else {
    misuse(argv + 1);
  }
  say("went on\n");
  return 0;
}
