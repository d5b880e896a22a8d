// Owns: any entry point as the first call of a process or thread: before every constructor, in one, in a thread, in 64 at once.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt: first_call STAGE CALL.
// Invariants: in the chosen stage the named call is the first one that this program makes.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>

#include "test/lib/test.h"

static int static_word;

// Found in whatever library is preloaded.
typedef struct mi_heap_s mi_heap_t;
extern mi_heap_t* mi_heap_new(void) __attribute__((weak));
extern void* mi_heap_malloc(mi_heap_t* heap, size_t n) __attribute__((weak));
extern void mi_heap_destroy(mi_heap_t* heap) __attribute__((weak));

// One first call, checked as far as it can be this early.
static void call(const char* name) {
  errno = 4242;
  if (strcmp(name, "free-null") == 0) {
    free(mi_test_hide(NULL));
  } else if (strcmp(name, "free-foreign") == 0) {
    // Only in the release variant, which reports and goes on; the others' rows are among the deaths.
    free(mi_test_hide(&static_word));
  } else if (strcmp(name, "realloc-null") == 0) {
    char* p = (char*)realloc(mi_test_hide(NULL), 100);
    MI_CHECK(p != NULL);
    memset(p, 1, 100);
    free(p);
  } else if (strcmp(name, "realloc-zero") == 0) {
    void* p = realloc(mi_test_hide(NULL), 0);
    MI_CHECK(p != NULL);
    free(p);
  } else if (strcmp(name, "usable-null") == 0) {
    MI_CHECK_EQ(malloc_usable_size(mi_test_hide(NULL)), 0);
  } else if (strcmp(name, "memalign") == 0) {
    void* p = memalign(1 << 16, 100);
    MI_CHECK(p != NULL && ((uintptr_t)p & 0xffff) == 0);
    free(p);
  } else if (strcmp(name, "posix-memalign") == 0) {
    void* p = NULL;
    MI_CHECK_EQ(posix_memalign(&p, 4096, 10), 0);
    MI_CHECK(p != NULL && ((uintptr_t)p & 0xfff) == 0);
    free(p);
  } else if (strcmp(name, "aligned-alloc") == 0) {
    void* p = aligned_alloc(1 << 22, 100);
    MI_CHECK(p != NULL && ((uintptr_t)p & 0x3fffff) == 0);
    free(p);
  } else if (strcmp(name, "calloc") == 0) {
    char* p = (char*)calloc(10, 100);
    MI_CHECK(p != NULL && mi_test_all_bytes(p, 1000, 0) && p[0] == 0);
    free(p);
  } else if (strcmp(name, "malloc-zero") == 0) {
    void* p = malloc(mi_test_hide_size(0));
    MI_CHECK(p != NULL);
    free(p);
  } else if (strcmp(name, "malloc-huge") == 0) {
    char* p = (char*)malloc(mi_test_hide_size(100 << 20));
    MI_CHECK(p != NULL);
    p[0] = p[(100 << 20) - 1] = 1;
    free(p);
  } else if (strcmp(name, "malloc-fails") == 0) {
    MI_CHECK(malloc(mi_test_hide_size(SIZE_MAX / 2)) == NULL);
    MI_CHECK_EQ(errno, ENOMEM);
    errno = 4242;
  } else if (strcmp(name, "reallocarray") == 0) {
    void* p = reallocarray(NULL, 10, 10);
    MI_CHECK(p != NULL);
    free(p);
  } else if (strcmp(name, "valloc") == 0) {
    void* p = valloc(1);
    MI_CHECK(p != NULL);
    free(p);
  } else if (strcmp(name, "heap-new") == 0) {
    if (!MI_CHECK(&mi_heap_new != NULL && &mi_heap_malloc != NULL && &mi_heap_destroy != NULL)) return;
    mi_heap_t* heap = mi_heap_new();
    MI_CHECK(heap != NULL);
    char* p = (char*)mi_heap_malloc(heap, 1000);
    MI_CHECK(p != NULL);
    memset(p, 1, 1000);
    mi_heap_destroy(heap);
  } else if (strcmp(name, "strdup") == 0) {
    char* p = strdup("word");
    MI_CHECK_STREQ(p, "word");
    free(p);
  } else {
    mi_test_say("no call %s", name);
    _exit(2);
  }
  MI_CHECK_EQ(errno, 4242);
}

static void* kept;  // a block from the early stage, freed late

static void at_stage(const char* stage, int argc, char** argv) {
  if (argc < 3 || strcmp(argv[1], stage) != 0) return;
  mi_test_current = stage;
  call(argv[2]);
  kept = malloc(1000);
  MI_CHECK(kept != NULL);
  if (kept != NULL) mi_test_fill(kept, 1000, 6);
}

// Runs before the constructors of every shared object, so also before the allocator's own.
static void preinit(int argc, char** argv, char** envp) {
  (void)envp;
  at_stage("preinit", argc, argv);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(int, char**, char**) = &preinit;

__attribute__((constructor(101))) static void early(int argc, char** argv) { at_stage("early", argc, argv); }
__attribute__((constructor)) static void late(int argc, char** argv) { at_stage("late", argc, argv); }

enum { THREADS = 64 };
static pthread_barrier_t barrier;
static const char* const names[] = {"free-null", "realloc-null", "realloc-zero", "usable-null", "memalign", "posix-memalign", "aligned-alloc", "calloc",
                                    "malloc-zero", "malloc-huge", "malloc-fails", "reallocarray", "valloc", "strdup", "heap-new"};

static void* thread_of_all(void* arg) {
  const size_t i = (size_t)(uintptr_t)arg;
  pthread_barrier_wait(&barrier);
  call(names[i % (sizeof(names) / sizeof(names[0]))]);
  for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) call(names[(i + k) % (sizeof(names) / sizeof(names[0]))]);
  return NULL;
}

static void* thread_of_one(void* arg) {
  call((const char*)arg);
  return NULL;
}

int main(int argc, char** argv) {
  const char* stage = argc > 2 ? argv[1] : "";
  if (strcmp(stage, "main") == 0) {
    call(argv[2]);
  } else if (strcmp(stage, "thread") == 0) {
    pthread_t t;
    MI_REQUIRE(pthread_create(&t, NULL, thread_of_one, argv[2]) == 0);
    pthread_join(t, NULL);
  } else if (strcmp(stage, "64-threads") == 0) {
    const int rounds = atoi(argv[2]);
    for (int round = 0; round < rounds; round++) {
      pthread_t t[THREADS];
      pthread_barrier_init(&barrier, NULL, THREADS);
      for (uintptr_t i = 0; i < THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, thread_of_all, (void*)i) == 0);
      for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
      pthread_barrier_destroy(&barrier);
    }
  } else if (strcmp(stage, "preinit") != 0 && strcmp(stage, "early") != 0 && strcmp(stage, "late") != 0) {
    mi_test_say("usage: first_call preinit|early|late|main|thread|64-threads CALL");
    return 2;
  }
  if (kept != NULL) {
    MI_CHECK(mi_test_filled(kept, 1000, 6));
    free(kept);
  }
  // Whatever came first, all calls work afterwards.
  for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) call(names[k]);
  return mi_test_status();
}
