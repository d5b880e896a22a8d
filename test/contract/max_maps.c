// Owns: life when the number of mappings (vm.max_map_count) is used up: guards may be missing, memory is still given.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt.
// Invariants: the mappings used up are this program's own, by alternating protection; they end with the process.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/mman.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

static char* area;
static size_t area_pages, page;

// Splits an area until no mapping is left; then gives `spare` of them back.
static void use_up(size_t spare) {
  page = (size_t)sysconf(_SC_PAGESIZE);
  long max = 65530;
  FILE* f = fopen("/proc/sys/vm/max_map_count", "r");
  if (f != NULL) {
    if (fscanf(f, "%ld", &max) != 1) max = 65530;
    fclose(f);
  }
  if (max > 2000000) {
    MI_TEST_SKIP("vm.max_map_count is %ld, too much to use up", max);
    _exit(mi_test_status());
  }
  area_pages = (size_t)max + 100;
  area = (char*)mmap(NULL, area_pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MI_REQUIRE(area != MAP_FAILED);
  size_t i = 1;
  while (i + 1 < area_pages && mprotect(area + i * page, page, PROT_READ) == 0) i += 2;
  MI_REQUIRE(i + 1 < area_pages);
  // One more page next to the last unused one takes the odd mapping that may be left; it may fail.
  for (size_t k = 0; k < spare / 2; k++) {
    i -= 2;
    MI_REQUIRE(mprotect(area + i * page, page, PROT_NONE) == 0);
  }
}

static void give_back(void) { munmap(area, area_pages * page); }

enum { N = 4096 };
static void* blocks[N];
static size_t lens[N];

// Allocates and frees many blocks; returns how many were refused.
static size_t work(uint64_t seed, size_t max_size, int steps) {
  size_t refused = 0;
  for (int i = 0; i < steps; i++) {
    const size_t k = mi_test_random(&seed) % N;
    if (blocks[k] != NULL) {
      MI_CHECK(mi_test_filled(blocks[k], lens[k], k));
      free(blocks[k]);
    }
    lens[k] = mi_test_random(&seed) % max_size;
    errno = 0;
    blocks[k] = malloc(lens[k]);
    if (blocks[k] == NULL) {
      MI_CHECK_EQ(errno, ENOMEM);
      refused++;
      continue;
    }
    mi_test_fill(blocks[k], lens[k], k);
  }
  for (size_t k = 0; k < N; k++) {
    if (blocks[k] != NULL) MI_CHECK(mi_test_filled(blocks[k], lens[k], k));
    free(blocks[k]);
    blocks[k] = NULL;
  }
  return refused;
}

MI_TEST(nearly_used_up) {
  // With a few left everything must be given: guards and commits stay within what there is.
  use_up(200);
  MI_CHECK_EQ(work(1, 2000, 50000), 0);
  MI_CHECK_EQ(work(2, 60000, 10000), 0);
  MI_CHECK_EQ(work(3, 600000, 1500), 0);
  for (size_t n = 1 << 20; n <= 64 << 20; n *= 2) {
    char* p = (char*)malloc(n);
    MI_CHECK_MSG(p != NULL, "%zu", n);
    if (p != NULL) p[0] = p[n - 1] = 1;
    free(p);
  }
  give_back();
}

MI_TEST(used_up) {
  // A block from before, so the first arena is there.
  free(malloc(100));
  use_up(0);
  // Small blocks come from what is reserved already.
  const size_t refused = work(4, 1000, 30000);
  MI_CHECK_MSG(refused == 0, "%zu small blocks were refused", refused);
  // Larger ones may be refused, each with ENOMEM, and nothing is lost.
  work(5, 100000, 3000);
  work(6, 3000000, 300);
  give_back();
  MI_CHECK_EQ(work(7, 100000, 3000), 0);
}

static void* thread_work(void* arg) {
  for (int i = 0; i < 2000; i++) {
    void* p = malloc(200);
    MI_CHECK(p != NULL);
    free(p);
  }
  return arg;
}

MI_TEST(threads_when_nearly_used_up) {
  use_up(200);
  for (int i = 0; i < 20; i++) {
    pthread_t t[4];
    for (int k = 0; k < 4; k++) MI_REQUIRE(pthread_create(&t[k], NULL, thread_work, NULL) == 0);
    for (int k = 0; k < 4; k++) pthread_join(t[k], NULL);
  }
  give_back();
}

// Found in whatever library is preloaded.
typedef struct mi_heap_s mi_heap_t;
extern mi_heap_t* mi_heap_new(void) __attribute__((weak));
extern void* mi_heap_malloc(mi_heap_t* heap, size_t n) __attribute__((weak));
extern void mi_stats_print_out(void (*out)(const char* text, void* arg), void* arg) __attribute__((weak));

static void find_skipped(const char* text, void* arg) {
  const char* at = strstr(text, "guards skipped:");
  if (at != NULL) *(long*)arg = strtol(at + 15, NULL, 10);
}

static long guards_skipped(void) {
  long n = -1;
  mi_stats_print_out(&find_skipped, &n);
  MI_CHECK(n >= 0);
  return n;
}

MI_TEST(guards_are_skipped_and_counted) {
  MI_REQUIRE(&mi_heap_new != NULL && &mi_stats_print_out != NULL);
  enum { HEAPS = 3000 };
  free(malloc(100));
  MI_CHECK_EQ(guards_skipped(), 0);
  // What is between guards needs three mappings, where there are two at most. It is given without them. Heaps and their
  // theaps are made of such memory, once what is reserved at the start is used up.
  use_up(2);
  static mi_heap_t* heaps[HEAPS];
  for (size_t i = 0; i < HEAPS; i++) {
    heaps[i] = mi_heap_new();
    if (heaps[i] == NULL) break;
    char* p = (char*)mi_heap_malloc(heaps[i], 100);
    if (p != NULL) p[0] = p[99] = 1;
  }
  const long skipped = guards_skipped();
  give_back();
  MI_CHECK_MSG(skipped > 0, "%ld guards skipped", skipped);
  MI_CHECK_EQ(work(8, 3000, 20000), 0);
}

MI_TEST(mappings_stay_few) {
  // Freed and purged memory in a checkered order must not leave a mapping for each piece.
  const size_t before = mi_test_mappings();
  enum { M = 20000 };
  static void* p[M];
  for (size_t i = 0; i < M; i++) {
    p[i] = malloc(30000);
    MI_REQUIRE(p[i] != NULL);
    memset(p[i], 1, 30000);
  }
  for (size_t i = 0; i < M; i++) {
    if (i % 8 != 0) free(p[i]);
  }
  mi_test_sleep_ms(300);
  for (int i = 0; i < 100; i++) free(malloc(70000));
  const size_t middle = mi_test_mappings();
  MI_CHECK_MSG(middle <= before + 2500, "%zu mappings, %zu before", middle, before);
  for (size_t i = 0; i < M; i += 8) free(p[i]);
}

static size_t max_mappings(void) {
  size_t max = 65530;
  FILE* f = fopen("/proc/sys/vm/max_map_count", "r");
  if (f != NULL) {
    if (fscanf(f, "%zu", &max) != 1) max = 65530;
    fclose(f);
  }
  return max;
}

// Large blocks, each with guards of its own, more than a process can have as mappings. All of them are given.
static size_t mappings_of_large_blocks(void) {
  const size_t before = mi_test_mappings();
  enum { M = 12000,
         SIZE = 600000 };
  static char* p[M];
  for (size_t i = 0; i < M; i++) {
    p[i] = (char*)malloc(SIZE);
    MI_REQUIRE(p[i] != NULL);
    if (i % 16 == 0) p[i][0] = p[i][SIZE - 1] = 1;
  }
  const size_t after = mi_test_mappings();
  for (size_t i = 0; i < M; i++) {
    if (i % 16 == 0) MI_CHECK(p[i][0] == 1 && p[i][SIZE - 1] == 1);
    free(p[i]);
  }
  return after - before;
}

MI_TEST(guards_take_a_share_of_the_mappings) {
  const size_t max = max_mappings();
  const size_t took = mappings_of_large_blocks();
  MI_CHECK_MSG(took <= max / 4 + 100, "%zu of %zu mappings were taken", took, max);
  // It shows that there were guards, and so that the share was what bounded them.
  MI_CHECK_MSG(took >= 1000, "%zu mappings only", took);
}

MI_TEST(light_guards_take_no_mappings) {
  const size_t took = mappings_of_large_blocks();
  MI_CHECK_MSG(took <= 50, "%zu mappings were taken", took);
}

MI_TEST_MAIN()
