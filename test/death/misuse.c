// Owns: one misuse of a pointer a run, chosen by the arguments; nothing happens after it but "went on" and a check of what is alive.
// May include: test/lib, POSIX.
// Called by: rows of test/death/rows.txt: misuse CASE [SIZE] [HOW].
// Invariants: prints `pointer 0x...` of the misused address before the misuse; ends with 0 when the misuse went unnoticed or was allowed.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test/lib/test.h"

#include "test/lib/plain.h"

static size_t size = 24;
static char static_bytes[4096];
static const char constant_bytes[4096] = "constant";

// Says which address is misused; the runner looks for it in the report.
static void* announce(const volatile void* p) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)p);
  mi_test_write(1, line, (size_t)n);
  return mi_test_hide(p);
}

static void* get(size_t n) {
  void* p = malloc(mi_test_hide_size(n));
  MI_REQUIRE(p != NULL);
  return mi_test_hide(p);
}

// Operations between two frees. Blocks of the size under test are only freed, never allocated: a block that is handed out
// again is live, and freeing it once is no misuse that anyone could see.
static void operate(int steps) {
  enum { N = 500 };
  static void* p[N];
  uint64_t seed = 2;
  for (int i = 0; i < steps; i++) {
    const uint64_t r = mi_test_random(&seed);
    size_t n = (size_t)(r >> 20) % (r % 64 == 0 ? 200000 : 3000);
    // Far from the class of the block under test.
    if (n >= size / 2 && n <= size * 2) n = size * 3;
    if (n > 4000000) n = 7;
    free(p[r % N]);
    p[r % N] = malloc(n);
  }
  for (size_t i = 0; i < N; i++) {
    free(p[i]);
    p[i] = NULL;
  }
}

static void* free_in_thread(void* p) {
  free(p);
  return NULL;
}

static void* alloc_in_thread(void* unused) {
  (void)unused;
  return get(size);
}

static void* alloc_and_free_in_thread(void* unused) {
  (void)unused;
  void* p = get(size);
  free(p);
  return p;
}

static void* run_thread(void* (*fn)(void*), void* arg, size_t stack) {
  pthread_t t;
  void* result = NULL;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (stack != 0) pthread_attr_setstacksize(&attr, stack);
  MI_REQUIRE(pthread_create(&t, &attr, fn, arg) == 0);
  pthread_join(t, &result);
  return result;
}

static void twice(const char* how) {
  // Neighbours keep the page in use, so that the block's state and not a missing page is what is judged.
  void* left = get(size);
  void* p = get(size);
  void* right = get(size);
  if (strcmp(how, "alone") == 0) {
    free(left);
    free(right);
    left = right = NULL;
  }
  announce(p);
  if (strcmp(how, "same-thread") == 0 || strcmp(how, "alone") == 0) {
    free(p);
    free(mi_test_hide(p));
  } else if (strcmp(how, "with-one-between") == 0) {
    // What defeats a check of the list's head only.
    free(p);
    free(left);
    left = NULL;
    free(mi_test_hide(p));
  } else if (strcmp(how, "other-thread") == 0) {
    free(p);
    run_thread(free_in_thread, mi_test_hide(p), 0);
  } else if (strcmp(how, "both-in-other-threads") == 0) {
    run_thread(free_in_thread, mi_test_hide(p), 0);
    run_thread(free_in_thread, mi_test_hide(p), 0);
  } else if (strcmp(how, "first-in-other-thread") == 0) {
    run_thread(free_in_thread, mi_test_hide(p), 0);
    free(mi_test_hide(p));
  } else if (strcmp(how, "small-stack") == 0) {
    free(p);
    run_thread(free_in_thread, mi_test_hide(p), (size_t)sysconf(_SC_THREAD_STACK_MIN));
  } else if (strcmp(how, "after-operations") == 0) {
    free(p);
    operate(50000);
    free(mi_test_hide(p));
  } else if (strcmp(how, "after-a-while") == 0) {
    free(p);
    const struct timespec nap = {0, 400000000L};
    nanosleep(&nap, NULL);
    operate(2000);
    free(mi_test_hide(p));
  } else if (strcmp(how, "overwritten-zero") == 0 || strcmp(how, "overwritten-ones") == 0 || strcmp(how, "overwritten-pointers") == 0) {
    free(p);
    // A block whose memory was given back would fault; only what stays mapped is written.
    unsigned char* b = (unsigned char*)mi_test_hide(p);
    if (strcmp(how, "overwritten-zero") == 0) {
      memset(b, 0, size < 64 ? size : 64);
    } else if (strcmp(how, "overwritten-ones") == 0) {
      memset(b, 0xff, size < 64 ? size : 64);
    } else {
      for (size_t i = 0; i + 8 <= size && i < 64; i += 8) memcpy(b + i, &left, 8);
    }
    free(mi_test_hide(p));
  } else if (strcmp(how, "after-thread-exit") == 0) {
    // The block's thread is gone when it is freed for the second time.
    void* q = run_thread(alloc_and_free_in_thread, NULL, 0);
    announce(q);
    free(mi_test_hide(q));
  } else if (strcmp(how, "of-a-dead-thread") == 0) {
    void* q = run_thread(alloc_in_thread, NULL, 0);
    announce(q);
    free(q);
    free(mi_test_hide(q));
  } else if (strcmp(how, "in-child") == 0) {
    free(p);
    const pid_t pid = fork();
    if (pid == 0) {
      free(mi_test_hide(p));
      _exit(0);
    }
    // The child's end is passed on as this process's own.
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    _exit(WEXITSTATUS(status));
  } else if (strcmp(how, "by-realloc") == 0) {
    void* q = realloc(p, size * 40 + 4000);
    MI_REQUIRE(q != NULL);
    free(mi_test_hide(p));
  } else if (strcmp(how, "zero-realloc") == 0) {
    free(p);
    p = realloc(mi_test_hide(p), 0);
  } else {
    mi_test_say("no way %s", how);
    _exit(2);
  }
  free(left);
  free(right);
}

static void* mapping(size_t n) {
  void* p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  return p;
}

// Addresses that were never allocated.
static void* foreign(const char* which, char* stack_bytes) {
  const uintptr_t live = (uintptr_t)get(64);
  if (strcmp(which, "stack") == 0) return stack_bytes + 64;
  if (strcmp(which, "stack-unaligned") == 0) return stack_bytes + 65;
  if (strcmp(which, "static") == 0) return static_bytes + 32;
  if (strcmp(which, "constant") == 0) return mi_test_hide(constant_bytes + 16);
  if (strcmp(which, "code") == 0) return (void*)(uintptr_t)&run_thread;
  if (strcmp(which, "mmap") == 0) return mapping(1 << 20);
  if (strcmp(which, "mmap-inside") == 0) return (char*)mapping(16 << 20) + (8 << 20) + 4096;
  if (strcmp(which, "unmapped") == 0) {
    void* p = mapping(1 << 20);
    munmap(p, 1 << 20);
    return p;
  }
  if (strcmp(which, "no-access") == 0) {
    char* p = (char*)mapping(1 << 20);
    mprotect(p, 1 << 20, PROT_NONE);
    return p + 16;
  }
  if (strcmp(which, "non-canonical") == 0) return (void*)(live | ((uintptr_t)0x5a << 56));
  if (strcmp(which, "kernel") == 0) return (void*)(uintptr_t)0xffff888000001000;
  if (strcmp(which, "first-non-canonical") == 0) return (void*)(uintptr_t)0x0000800000000000;
  if (strcmp(which, "last-user") == 0) return (void*)(uintptr_t)0x00007ffffffff000;
  if (strcmp(which, "57-bit") == 0) return (void*)(uintptr_t)0x00f0123456789000;
  if (strcmp(which, "one") == 0) return (void*)(uintptr_t)1;
  if (strcmp(which, "sixteen") == 0) return (void*)(uintptr_t)16;
  if (strcmp(which, "first-page") == 0) return (void*)(uintptr_t)4096;
  if (strcmp(which, "all-ones") == 0) return (void*)UINTPTR_MAX;
  if (strcmp(which, "minus-16") == 0) return (void*)(UINTPTR_MAX - 15);
  if (strcmp(which, "ascii") == 0) return (void*)(uintptr_t)0x4141414141414140;
  mi_test_say("no address %s", which);
  _exit(2);
}

// Addresses inside live blocks.
static void* inside(const char* which) {
  char* p = (char*)get(size);
  if (strcmp(which, "middle") == 0) return p + (size / 2 & ~(size_t)15);
  if (strcmp(which, "next-granule") == 0) return p + 16;
  if (strcmp(which, "unaligned") == 0) return p + 1;
  if (strcmp(which, "plus-8") == 0) return p + 8;
  if (strcmp(which, "last-byte") == 0) return p + size - 1;
  if (strcmp(which, "minus-16") == 0) return p - 16;
  if (strcmp(which, "second-page") == 0) return p + 4096;
  if (strcmp(which, "second-slice") == 0) return p + 65536;
  if (strcmp(which, "aligned-block") == 0) return (char*)aligned_alloc(4096, size) + 16;
  if (strcmp(which, "aligned-huge") == 0) return (char*)aligned_alloc(1 << 22, size) + 4096;
  mi_test_say("no place %s", which);
  _exit(2);
}

// Uses the allocator after a misuse that was allowed; a block that is handed out twice shows here.
static void still_sound(const void* misused) {
  enum { N = 3000 };
  static unsigned char* p[N];
  static size_t lens[N];
  for (size_t i = 0; i < N; i++) {
    lens[i] = i % 2 ? size : 8 + i % 1500;
    if (lens[i] > 100000 && i > 20) lens[i] = 300;
    p[i] = (unsigned char*)malloc(lens[i]);
    MI_REQUIRE(p[i] != NULL);
    MI_CHECK_MSG((uintptr_t)misused < (uintptr_t)p[i] || (uintptr_t)misused >= (uintptr_t)p[i] + lens[i] || p[i] == misused, "%p lies in a block that was given out",
                 misused);
    mi_test_fill(p[i], lens[i], i);
  }
  for (size_t i = 0; i < N; i++) MI_CHECK_MSG(mi_test_filled(p[i], lens[i], i), "block %zu is shared with another", i);
  for (size_t i = 0; i < N; i++) free(p[i]);
}

static void* reader;  // where a query that went unnoticed leaves its answer

static void query(const char* call, void* p) {
  if (strcmp(call, "usable") == 0) {
    reader = (void*)malloc_usable_size(p);
  } else if (strcmp(call, "realloc") == 0) {
    reader = realloc(p, size + 100);
  } else if (strcmp(call, "realloc-smaller") == 0) {
    reader = realloc(p, size / 2 + 1);
  } else if (strcmp(call, "free") == 0) {
    free(p);
  } else {
    mi_test_say("no call %s", call);
    _exit(2);
  }
}

int main(int argc, char** argv) {
  char stack_bytes[256];
  memset(stack_bytes, 7, sizeof(stack_bytes));
  const char* kind = argc > 1 ? argv[1] : "";
  if (argc > 3) size = (size_t)strtoull(argv[3], NULL, 10);
  mi_test_current = kind;
  const void* misused = NULL;
  if (strcmp(kind, "twice") == 0 && argc > 3) {
    twice(argv[2]);
  } else if (strcmp(kind, "free-foreign") == 0 && argc > 2) {
    void* p = foreign(argv[2], stack_bytes);
    free(announce(p));
    misused = p;
  } else if (strcmp(kind, "free-foreign-in-thread") == 0 && argc > 2) {
    void* p = foreign(argv[2], stack_bytes);
    run_thread(free_in_thread, announce(p), 0);
    misused = p;
  } else if (strcmp(kind, "free-inside") == 0 && argc > 3) {
    free(announce(inside(argv[2])));
  } else if (strcmp(kind, "query-foreign") == 0 && argc > 4) {
    query(argv[4], announce(foreign(argv[2], stack_bytes)));
  } else if (strcmp(kind, "query-freed") == 0 && argc > 4) {
    void* keep = get(size);
    void* p = get(size);
    announce(p);
    free(p);
    query(argv[4], mi_test_hide(p));
    free(keep);
  } else if (strcmp(kind, "query-inside") == 0 && argc > 4) {
    query(argv[4], announce(inside(argv[2])));
  } else if (strcmp(kind, "nothing") == 0) {
    announce(static_bytes);
  } else {
    mi_test_say("usage: misuse twice HOW SIZE | free-foreign ADDRESS | free-inside PLACE SIZE | query-foreign ADDRESS SIZE CALL | query-freed - SIZE CALL");
    return 2;
  }
  mi_test_write(1, "went on\n", 8);
  still_sound(misused);
  MI_CHECK(mi_test_all_bytes(stack_bytes, sizeof(stack_bytes), 7));
  MI_CHECK(mi_test_all_bytes(static_bytes, sizeof(static_bytes), 0));
  return mi_test_status();
}
