// Owns: tests of the statistics of sub-processes: what their heaps that have ended had counted stays theirs.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: none.
#include <pthread.h>

#include "mimalloc-stats.h"
#include "mimalloc.h"
#include "test/lib/test.h"

static mi_stats_t mi_subproc_test_read(mi_subproc_id_t id, bool exclusive) {
  mi_stats_t stats;
  mi_stats_init(&stats);
  MI_CHECK(exclusive ? mi_subproc_stats_get_exclusive(id, &stats) : mi_subproc_stats_get(id, &stats));
  return stats;
}

enum { MI_COUNTED = 1000,
       MI_COUNTED_SIZE = 200 };

static void* mi_subproc_test_counted(void* arg) {
  const mi_subproc_id_t id = *(const mi_subproc_id_t*)arg;
  mi_subproc_add_current_thread(id);
  const mi_stats_t process = mi_subproc_test_read(mi_subproc_main(), false);
  int64_t last = mi_subproc_test_read(id, false).malloc_normal_count.total;
  for (int destroy = 0; destroy < 2; destroy++) {
    mi_heap_t* const heap = mi_heap_new();
    MI_REQUIRE(heap != NULL);
    for (int i = 0; i < MI_COUNTED; i++) {
      MI_REQUIRE(mi_heap_malloc(heap, MI_COUNTED_SIZE) != NULL);
    }
    MI_REQUIRE(mi_heap_malloc(heap, 3 * 1024 * 1024) != NULL);
    const mi_stats_t with = mi_subproc_test_read(id, false);
    MI_CHECK(with.malloc_normal_count.total >= last + MI_COUNTED);
    if (destroy) {
      mi_heap_destroy(heap);
    } else {
      mi_heap_delete(heap);
    }
    const mi_stats_t after = mi_subproc_test_read(id, false);
    MI_CHECK_EQ(after.malloc_normal_count.total, with.malloc_normal_count.total);
    MI_CHECK_EQ(after.malloc_normal.total, with.malloc_normal.total);
    MI_CHECK_EQ(after.malloc_huge_count.total, with.malloc_huge_count.total);
    MI_CHECK_EQ(after.malloc_huge.total, with.malloc_huge.total);
    MI_CHECK(after.pages.total >= with.pages.total);
    MI_CHECK(after.malloc_normal.current <= with.malloc_normal.current);
    MI_CHECK(mi_subproc_test_read(id, true).malloc_normal.current == 0);
    last = after.malloc_normal_count.total;
  }
  MI_CHECK(mi_subproc_test_read(id, true).malloc_normal_count.total >= MI_COUNTED);
  // None of it is the main one's.
  const mi_stats_t now = mi_subproc_test_read(mi_subproc_main(), false);
  MI_CHECK_MSG(now.malloc_normal_count.total < process.malloc_normal_count.total + MI_COUNTED, "%lld more",
               (long long)(now.malloc_normal_count.total - process.malloc_normal_count.total));
  return NULL;
}

MI_TEST(ended_heaps_stay_counted) {
  mi_subproc_id_t id = mi_subproc_new();
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_subproc_test_counted, &id) == 0);
  pthread_join(thread, NULL);
  mi_subproc_destroy(id);
}

MI_TEST_MAIN()
