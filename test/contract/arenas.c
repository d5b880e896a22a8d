// Owns: arenas and their options as a program sees them: what is reserved at start, limits on addresses, huge pages of the system.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt; the mi_ names are looked up in whatever library is preloaded.
// Invariants: an argument of a row stands in the environment as MI_TEST_…; what the machine cannot do is skipped with a line.
// Flags: -ldl -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test/lib/names.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { MIB = 1024 * 1024 };

// X(return type, name, parameters)
#define CALLS(X)                                                                        \
  X(int, mi_reserve_os_memory_ex, (size_t, bool, bool, bool, void**))                   \
  X(int, mi_reserve_huge_os_pages_at_ex, (size_t, int, size_t, bool, void**))           \
  X(bool, mi_manage_os_memory_ex, (void*, size_t, bool, bool, bool, int, bool, void**)) \
  X(void*, mi_arena_area, (void*, size_t*))                                             \
  X(bool, mi_arena_contains, (void*, const void*))                                      \
  X(void, mi_collect, (bool))

CALLS(MI_TEST_NAME)

MI_TEST(names_are_there) {
  CALLS(MI_TEST_LOOK_UP)
  if (mi_test_failure_count() > 0) _exit(1);
}

static const size_t sizes[] = {1, 100, 1000, 9000, 40000, 300000, 1000000, 5000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

// With so many MiB reserved and nothing else from the system: most of it can be had, then ENOMEM, and again after frees.
MI_TEST(no_more_than_what_was_reserved) {
  const size_t limit = (size_t)mi_test_scale("MI_TEST_MIB", 64) * MIB;
  for (int round = 0; round < 3; round++) {
    size_t sum = 0;
    void* list = NULL;
    for (;;) {
      const size_t size = sizes[sum / 7 % 6] + sizeof(void*);
      errno = 0;
      void** const p = (void**)malloc(size);
      if (p == NULL) break;
      memset(p, 1, size);
      *p = list;
      list = p;
      sum += size;
      MI_REQUIRE(sum <= limit + 8 * MIB);
    }
    MI_CHECK_EQ(errno, ENOMEM);
    MI_CHECK_MSG(sum > limit / 2, "%zu of %zu bytes in round %d", sum, limit, round);
    while (list != NULL) {
      void* const next = *(void**)list;
      free(list);
      list = next;
    }
  }
}

static void* address_of_a_thread(void* arg) {
  void* p[SIZES];
  for (size_t i = 0; i < SIZES; i++) p[i] = malloc(sizes[i]);
  for (size_t i = 0; i < SIZES; i++) {
    MI_REQUIRE(p[i] != NULL);
    if ((uintptr_t)p[i] + sizes[i] > *(uintptr_t*)arg) *(uintptr_t*)arg = (uintptr_t)p[i] + sizes[i];
    free(p[i]);
  }
  return NULL;
}

// All blocks, also those with mappings of their own and those of other threads, lie below so many bits.
MI_TEST(addresses_are_low) {
  const unsigned bits = (unsigned)mi_test_scale("MI_TEST_BITS", 47);
  uintptr_t highest = 0;
  void* kept[40];
  for (int i = 0; i < 40; i++) {
    const size_t size = i < 20 ? sizes[i % (int)SIZES] : (size_t)(i - 19) * 40 * MIB;
    char* const p = (char*)malloc(size);
    MI_REQUIRE(p != NULL);
    p[0] = p[size - 1] = 1;
    if ((uintptr_t)p + size > highest) highest = (uintptr_t)p + size;
    kept[i] = p;
  }
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, address_of_a_thread, &highest) == 0);
    pthread_join(thread, NULL);
  }
  void* const aligned = aligned_alloc((size_t)64 * MIB, 100);
  MI_CHECK(aligned != NULL && (uintptr_t)aligned >> bits == 0);
  free(aligned);
  for (int i = 0; i < 40; i++) free(kept[i]);
  MI_CHECK_MSG(highest >> bits == 0, "a block ends at %p", (void*)highest);
}

// In a process that may map only so much.
MI_TEST(under_a_limit) {
  void* id = NULL;
  MI_CHECK_EQ(mi_reserve_os_memory_ex((size_t)4096 * MIB, true, false, true, &id), ENOMEM);
  MI_CHECK(id == NULL);
  MI_CHECK_EQ(mi_reserve_os_memory_ex(20 * MIB, false, false, false, &id), 0);
  MI_CHECK(id != NULL);
  void* const lent = mmap(NULL, 10 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(lent != MAP_FAILED);
  void* lent_id = NULL;
  MI_CHECK(mi_manage_os_memory_ex(lent, 10 * MIB, true, false, true, -1, false, &lent_id));
  bool served = false;
  void* p[2000];
  for (int round = 0; round < 5; round++) {
    int n = 0;
    while (n < 2000 && (p[n] = malloc(60000)) != NULL) {
      served = served || mi_arena_contains(id, p[n]) || mi_arena_contains(lent_id, p[n]);
      n++;
    }
    MI_CHECK(n > 0);
    while (n > 0) free(p[--n]);
  }
  MI_CHECK(served);
  mi_collect(true);
  // Unlike arenas of our own these stay.
  MI_CHECK(mi_arena_contains(id, mi_arena_area(id, NULL)) && mi_arena_contains(lent_id, mi_arena_area(lent_id, NULL)));
  *(volatile char*)lent = 1;
}

// Huge pages that the machine really has: rows set them aside, and keep other arenas small.

static size_t page_size_at(const void* p) {
  char line[512];
  size_t found = 0;
  bool inside = false;
  FILE* const f = fopen("/proc/self/smaps", "re");
  MI_REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f) != NULL) {
    unsigned long from, to, kib;
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = (uintptr_t)p >= from && (uintptr_t)p < to;
    if (inside && sscanf(line, "KernelPageSize: %lu kB", &kib) == 1) found = kib * 1024;
  }
  fclose(f);
  return found;
}

// `is_spare`: a forked child finds free pages to copy to.
static void use_all_of(void* id, bool is_pinned, bool is_spare) {
  size_t size;
  char* const base = (char*)mi_arena_area(id, &size);
  MI_REQUIRE(base != NULL);
  // Blocks are from there until it is full; then the process makes an ordinary arena.
  void* list = NULL;
  size_t sum = 0;
  for (int i = 0; i < 100000 && sum < size / 2; i++) {
    const size_t n = sizes[i % 6] + sizeof(void*);
    char* const p = (char*)malloc(n);
    MI_REQUIRE(p != NULL);
    memset(p, 1, n);
    sum += mi_arena_contains(id, p) ? n : 0;
    *(void**)(void*)p = list;
    list = p;
  }
  MI_CHECK_MSG(sum >= size / 2, "%zu of %zu bytes", sum, size);
  if (is_spare) {
    const pid_t child = fork();
    MI_REQUIRE(child >= 0);
    if (child == 0) {
      for (void* p = list; p != NULL; p = *(void**)p) {
        *((char*)p + sizeof(void*)) = 2;
      }
      _exit(0);
    }
    int status = -1;
    MI_REQUIRE(waitpid(child, &status, 0) == child);
    MI_CHECK_EQ(status, 0);
  }
  while (list != NULL) {
    void* const next = *(void**)list;
    free(list);
    list = next;
  }
  mi_collect(true);
  // It is there after a purge, without a guard.
  for (size_t at = 0; is_pinned && at < size; at += 4096) {
    base[at] = 1;
  }
}

MI_TEST(large_pages) {
  void* id = NULL;
  MI_CHECK_EQ(mi_reserve_os_memory_ex(32 * MIB, true, true, false, &id), 0);
  MI_REQUIRE(id != NULL);
  MI_CHECK_EQ(page_size_at(mi_arena_area(id, NULL)), 2 * MIB);
  use_all_of(id, true, true);
}

// More than there is, page by page: what can be had, or smaller ones, and never a signal.
MI_TEST(huge_pages) {
  void* id = NULL;
  const int err = mi_reserve_huge_os_pages_at_ex(1, 0, 60000, false, &id);
  if (err != 0) {
    MI_CHECK(err == ENOMEM && id == NULL);
    MI_TEST_SKIP("the machine has no huge page in one piece");
    return;
  }
  const size_t size = page_size_at(mi_arena_area(id, NULL));
  MI_CHECK(size == (size_t)1024 * MIB || size == 2 * MIB);
  use_all_of(id, true, false);
}

MI_TEST(too_few_large_pages) {
  void* id = NULL;
  MI_CHECK_EQ(mi_reserve_os_memory_ex(128 * MIB, true, true, false, &id), 0);
  MI_REQUIRE(id != NULL);
  MI_CHECK(page_size_at(mi_arena_area(id, NULL)) < 2 * MIB);
  use_all_of(id, false, true);
}

MI_TEST_MAIN()
