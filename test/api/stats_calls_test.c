// Owns: that the statistics say what the system says, what calls are known to do, and nothing that a call cannot have done.
// May include: test/lib, mimalloc.h, mimalloc-stats.h, POSIX threads.
// Called by: the tests stats_calls of each variant.
// Invariants: the program's own malloc is the library's; nothing else allocates between two readings that are compared.
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "mimalloc-stats.h"
#include "test/lib/test.h"

enum { MIB = 1024 * 1024 };

static mi_stats_t stats_now(void) {
  mi_stats_t_decl(stats);
  MI_CHECK(mi_stats_get(&stats));
  return stats;
}

// The addresses that the process has mapped, in bytes.
static int64_t mapped(void) {
  char text[128] = "";
  const int fd = open("/proc/self/statm", O_RDONLY);
  MI_REQUIRE(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
  close(fd);
  return (int64_t)strtoll(text, NULL, 10) * sysconf(_SC_PAGESIZE);
}

// A block that is too large for an arena has a mapping of its own: what is counted is what the system maps.
MI_TEST(reserved_is_what_is_mapped) {
  const size_t size = sizeof(void*) > 4 ? (size_t)3 << 30 : (size_t)400 << 20;
  // What serves such blocks is made by the first one.
  mi_free(mi_malloc(size));
  for (int i = 0; i < 3; i++) {
    const mi_stats_t before = stats_now();
    const int64_t before_mapped = mapped();
    void* const p = mi_malloc(size);
    if (p == NULL) MI_TEST_SKIP("no addresses for %zu bytes", size);
    const mi_stats_t with = stats_now();
    const int64_t with_mapped = mapped();
    MI_CHECK_MSG(with.reserved.current - before.reserved.current == with_mapped - before_mapped, "%lld bytes counted, %lld mapped",
                 (long long)(with.reserved.current - before.reserved.current), (long long)(with_mapped - before_mapped));
    MI_CHECK(with.reserved.current - before.reserved.current >= (int64_t)size);
    MI_CHECK(with.committed.current - before.committed.current >= (int64_t)size);
    MI_CHECK_EQ(with.malloc_huge_count.total, before.malloc_huge_count.total + 1);
    MI_CHECK(with.malloc_huge.current - before.malloc_huge.current >= (int64_t)size);
    MI_CHECK(with.mmap_calls.total > before.mmap_calls.total && with.mmap_calls.total <= before.mmap_calls.total + 4);
    mi_free(p);
    const mi_stats_t after = stats_now();
    MI_CHECK_EQ(after.reserved.current, before.reserved.current);
    MI_CHECK_EQ(after.committed.current, before.committed.current);
    MI_CHECK_EQ(mapped(), before_mapped);
  }
  const mi_stats_t now = stats_now();
  MI_CHECK(now.reserved.current <= mapped() && now.committed.current <= now.reserved.current);
}

static void purge_is_counted(bool decommits) {
  mi_option_set_enabled(mi_option_purge_decommits, decommits);
  mi_collect(true);
  const mi_stats_t before = stats_now();
  char* p = (char*)mi_malloc(40 * MIB);
  MI_REQUIRE(p != NULL);
  memset(p, 1, 40 * MIB);
  const mi_stats_t with = stats_now();
  MI_CHECK(with.page_committed.current >= before.page_committed.current + 40 * MIB);
  mi_free(p);
  mi_collect(true);
  const mi_stats_t after = stats_now();
  MI_CHECK_EQ(after.page_committed.current, before.page_committed.current);
  const int64_t purged = after.purged.total - before.purged.total, purges = after.purge_calls.total - before.purge_calls.total;
  const int64_t reset = after.reset.total - before.reset.total, resets = after.reset_calls.total - before.reset_calls.total;
  // What a variant does at a free beside that is counted as well.
  if (decommits) {
    MI_CHECK_MSG(purged >= 40 * MIB && purges >= 1 && reset == 0 && resets == 0, "purged %lld in %lld, reset %lld in %lld", (long long)purged,
                 (long long)purges, (long long)reset, (long long)resets);
  } else {
    MI_CHECK_MSG(reset + purged >= 40 * MIB && (resets >= 1 || purged >= 40 * MIB), "purged %lld in %lld, reset %lld in %lld", (long long)purged, (long long)purges,
                 (long long)reset, (long long)resets);
  }
  MI_CHECK(after.arena_purges.total > before.arena_purges.total);
}

MI_TEST(purges_are_counted) {
  purge_is_counted(true);
  purge_is_counted(false);
  mi_option_set_enabled(mi_option_purge_decommits, true);
}

// The bins of the program's own malloc.
MI_TEST(bins_of_known_calls) {
  enum { BLOCKS = 700 };
  static void* blocks[BLOCKS];
  for (size_t size = 1; size <= 400000; size = size * 2 + 1) {
    const size_t count = size < 5000 ? BLOCKS : 20;
    const mi_stats_t before = stats_now();
    for (size_t i = 0; i < count; i++) MI_REQUIRE((blocks[i] = malloc(size)) != NULL);
    const mi_stats_t with = stats_now();
    // Debug and strict add a few bytes to a request.
    size_t bin = 1;
    while (mi_stats_get_bin_size(bin) < size) bin++;
    const int64_t here = with.malloc_bins[bin].current - before.malloc_bins[bin].current;
    const int64_t next = with.malloc_bins[bin + 1].current - before.malloc_bins[bin + 1].current;
    MI_CHECK_MSG(here + next == (int64_t)count && (here == 0 || next == 0), "%zu bytes: %lld and %lld of %zu blocks", size, (long long)here,
                 (long long)next, count);
    MI_CHECK_EQ(with.malloc_normal_count.total - before.malloc_normal_count.total, count);
    MI_CHECK(with.malloc_normal.current - before.malloc_normal.current >= (int64_t)(count * size));
    for (size_t i = 0; i < count; i++) free(blocks[i]);
    const mi_stats_t after = stats_now();
    MI_CHECK_EQ(after.malloc_normal.current, before.malloc_normal.current);
    MI_CHECK_EQ(after.malloc_normal_count.total, with.malloc_normal_count.total);
    MI_CHECK(after.malloc_normal.peak >= with.malloc_normal.current);
  }
}

MI_TEST(heaps_come_and_go) {
  mi_heap_t* const first = mi_heap_new();
  MI_REQUIRE(first != NULL && mi_heap_malloc(first, 10) != NULL);
  mi_heap_destroy(first);
  // What earlier tests left goes now, and not at some deadline.
  mi_collect(true);
  const mi_stats_t before = stats_now();
  for (int i = 0; i < 1000; i++) {
    mi_heap_t* const heap = mi_heap_new();
    MI_REQUIRE(heap != NULL && mi_heap_malloc(heap, 100) != NULL && mi_heap_malloc(heap, 700000) != NULL);
    mi_stats_t_decl(of_heap);
    MI_CHECK(mi_heap_stats_get(heap, &of_heap));
    MI_CHECK(of_heap.malloc_normal_count.total == 1 && of_heap.malloc_huge_count.total == 1 && of_heap.pages.current == 2);
    mi_heap_destroy(heap);
  }
  const mi_stats_t after = stats_now();
  MI_CHECK_EQ(after.heaps.current, before.heaps.current);
  MI_CHECK_EQ(after.heaps.total, before.heaps.total + 1000);
  MI_CHECK_EQ(after.malloc_normal.current, before.malloc_normal.current);
  MI_CHECK_EQ(after.malloc_huge.current, before.malloc_huge.current);
  MI_CHECK_EQ(after.malloc_normal_count.total, before.malloc_normal_count.total + 1000);
  MI_CHECK_EQ(after.malloc_huge_count.total, before.malloc_huge_count.total + 1000);
  MI_CHECK_EQ(after.pages.current, before.pages.current);
}

static void* thread_work(void* arg) {
  (void)arg;
  for (size_t i = 0; i < 100; i++) free(malloc(i * 10));
  return NULL;
}

MI_TEST(threads_are_counted) {
  const mi_stats_t before = stats_now();
  for (int i = 0; i < 20; i++) {
    pthread_t t;
    MI_REQUIRE(pthread_create(&t, NULL, thread_work, NULL) == 0 && pthread_join(t, NULL) == 0);
  }
  const mi_stats_t after = stats_now();
  MI_CHECK_EQ(after.threads.current, before.threads.current);
  MI_CHECK_EQ(after.threads.total, before.threads.total + 20);
  MI_CHECK_EQ(after.theaps.current, before.theaps.current);
  // What the C library allocates for a thread is ours, too.
  MI_CHECK(after.malloc_normal_count.total >= before.malloc_normal_count.total + 20 * 99);
}

MI_TEST_MAIN()
