// Owns: life under a limit of address space or of data: memory is used up in many sizes, refused with ENOMEM, freed, and had again.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt, which set the limit: limits LEAST_MIB CEILING_MIB.
// Invariants: the limit stands before the program starts, so start-up itself runs under it.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/resource.h>

#include "test/lib/test.h"

enum { MAX_BLOCKS = 1 << 20 };
static size_t least, ceiling;
// The list of blocks is static so that it does not count on the allocator.
static void* blocks[MAX_BLOCKS];

// Takes blocks of about n bytes until they are refused, or the ceiling is reached; returns bytes had.
static size_t fill_up(size_t n, size_t* count, bool aligned) {
  size_t total = 0;
  *count = 0;
  while (*count < MAX_BLOCKS && total < ceiling) {
    errno = 0;
    char* p = (char*)(aligned ? aligned_alloc(4096, n) : malloc(n));
    if (p == NULL) {
      MI_CHECK_EQ(errno, ENOMEM);
      break;
    }
    // Touched at both ends: memory that is given must be there.
    p[0] = (char)*count;
    p[n - 1] = (char)*count;
    blocks[(*count)++] = p;
    total += n;
  }
  return total;
}

static void release(size_t n, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char* p = (const char*)blocks[i];
    if (n > 1) MI_CHECK(p[0] == (char)i);
    MI_CHECK(p[n - 1] == (char)i);
    free(blocks[i]);
  }
}

static const size_t sizes[] = {200, 4000, 65536, 300000, 4000000};

static void sweep(const char* what) {
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
    for (int aligned = 0; aligned < 2; aligned++) {
      size_t count = 0;
      const size_t n = sizes[k] + (aligned ? 4096 - sizes[k] % 4096 : 0);
      const size_t total = fill_up(n, &count, aligned);
      // A bigger one is refused or given, and nothing that is held suffers.
      errno = 0;
      void* more = realloc(mi_test_hide(NULL), mi_test_hide_size(PTRDIFF_MAX / 2));
      MI_CHECK(more == NULL && errno == ENOMEM);
      release(n, count);
      MI_CHECK_MSG(total >= least || count == MAX_BLOCKS, "%s: only %zu MiB in blocks of %zu bytes, at least %zu MiB expected", what, total >> 20, n, least >> 20);
    }
  }
}

static void* in_thread(void* arg) {
  for (int i = 0; i < 200; i++) {
    for (size_t n = 10; n < 300000; n *= 5) free(calloc(1, n));
  }
  return arg;
}

MI_TEST(used_up_and_had_again) {
  sweep("first");
  sweep("second");
}

MI_TEST(threads_under_the_limit) {
  // Thread stacks need their part of the limit.
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 256 * 1024);
  for (int round = 0; round < 20; round++) {
    pthread_t t[4];
    int started = 0;
    for (int i = 0; i < 4; i++) started += (pthread_create(&t[started], &attr, in_thread, NULL) == 0);
    MI_CHECK(started > 0);
    for (int i = 0; i < started; i++) pthread_join(t[i], NULL);
  }
}

MI_TEST(grows_to_the_limit) {
  // A block that grows by realloc until it is refused stays whole.
  size_t n = 1000;
  unsigned char* p = (unsigned char*)malloc(n);
  MI_REQUIRE(p != NULL);
  memset(p, 0x77, n);
  while (n < ceiling) {
    const size_t m = n + n / 2;
    unsigned char* q = (unsigned char*)realloc(mi_test_hide(p), m);
    if (q == NULL) break;
    MI_CHECK(q[0] == 0x77 && q[n - 1] == 0x77 && q[n / 2] == 0x77);
    memset(q + n, 0x77, m - n);
    p = q;
    n = m;
  }
  MI_CHECK_MSG(n >= least / 4, "grew to %zu MiB", n >> 20);
  MI_CHECK(mi_test_all_bytes(p, n, 0x77));
  free(p);
}

// The limit comes down while the program runs, as `prlimit --as` does it, and is lifted again.
static void limit_to(rlim_t bytes) {
  struct rlimit limit;
  MI_REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  MI_REQUIRE(prlimit(getpid(), RLIMIT_AS, &limit, NULL) == 0);
}

MI_TEST(limit_that_changes) {
  static const size_t some[] = {100, 5000, 70000, 3 << 20};
  for (size_t round = 0; round < 8; round++) {
    char* before = (char*)malloc(5 << 20);
    MI_REQUIRE(before != NULL);
    memset(before, 0x55, 5 << 20);
    // Less than there is: nothing more can be reserved.
    limit_to((rlim_t)1 << 20);
    size_t count = 0;
    (void)fill_up(some[round % 4], &count, false);
    for (size_t i = 0; i < count; i++) free(blocks[i]);
    MI_CHECK(mi_test_all_bytes(before, 5 << 20, 0x55));
    free(before);
    limit_to(RLIM_INFINITY);
    char* after = (char*)malloc((size_t)64 << 20);
    MI_CHECK(after != NULL);
    if (after != NULL) after[0] = after[((size_t)64 << 20) - 1] = 1;
    free(after);
  }
}

static char used[] = "used_up_and_had_again", threads[] = "threads_under_the_limit", grows[] = "grows_to_the_limit";

int main(int argc, char** argv) {
  if (argc < 3) {
    mi_test_say("usage: limits LEAST_MIB CEILING_MIB");
    return 2;
  }
  least = (size_t)atol(argv[1]) << 20;
  ceiling = (size_t)atol(argv[2]) << 20;
  // The limit as it is when the program starts, unless a test is named.
  if (argc > 3) return mi_test_main(argc - 2, argv + 2);
  char* own[] = {argv[0], used, threads, grows, NULL};
  return mi_test_main(4, own);
}
