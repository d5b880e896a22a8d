// Owns: a call of every function of mimalloc-stats.h, the layout of its structs, and how its callers are told apart.
// May include: test/lib, mimalloc-stats.h.
// Called by: header_test.c and header_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11.
#pragma once

#include "mimalloc-stats.h"
#include "test/api/header_calls.h"

#if defined(__cplusplus)
#define STATS_ASSERT(what) static_assert(what, #what)
#else
#define STATS_ASSERT(what) _Static_assert(what, #what)
#endif

// Offsets on 64 bits; on 32 bits the two numbers at the head are four bytes each.
#define STATS_HEAD (2 * sizeof(size_t))
#define STATS_AT(field, offset) STATS_ASSERT(offsetof(mi_stats_t, field) == (offset)-16 + STATS_HEAD)
STATS_ASSERT(sizeof(mi_stat_count_t) == 24 && sizeof(mi_stat_counter_t) == 8);
STATS_ASSERT(offsetof(mi_stat_count_t, peak) == 8 && offsetof(mi_stat_count_t, current) == 16);
STATS_ASSERT(sizeof(mi_stats_t) == 4368 - 16 + STATS_HEAD);
STATS_ASSERT(MI_STAT_VERSION == 5 && MI_BIN_HUGE == 73);
STATS_ASSERT(MI_CBIN_SMALL == 0 && MI_CBIN_OTHER == 1 && MI_CBIN_MEDIUM == 2 && MI_CBIN_LARGE == 3 && MI_CBIN_HUGE == 4 &&
             MI_CBIN_NONE == 5 && MI_CBIN_COUNT == 6);
STATS_ASSERT(offsetof(mi_stats_t, size) == 0 && offsetof(mi_stats_t, version) == sizeof(size_t));
STATS_AT(pages, 16);
STATS_AT(reserved, 40);
STATS_AT(committed, 64);
STATS_AT(reset, 88);
STATS_AT(purged, 96);
STATS_AT(page_committed, 104);
STATS_AT(pages_abandoned, 128);
STATS_AT(threads, 152);
STATS_AT(malloc_normal, 176);
STATS_AT(malloc_huge, 200);
STATS_AT(malloc_requested, 224);
STATS_AT(mmap_calls, 248);
STATS_AT(segments, 360);
STATS_AT(heaps, 456);
STATS_AT(pages_reclaim_on_alloc, 504);
STATS_AT(_stat_reserved, 544);
STATS_AT(_stat_counter_reserved, 640);
STATS_AT(malloc_bins, 672);
STATS_AT(page_bins, 2448);
STATS_AT(chunk_bins, 4224);

// What older programs give: the layout of version 4 with 4168 bytes, as far as it differs.
#define STATS_V4_SIZE (4168 - 16 + STATS_HEAD)
#define STATS_V4_RECLAIM (456 - 16 + STATS_HEAD)
#define STATS_V4_MALLOC_BINS (616 - 16 + STATS_HEAD)
#define STATS_V4_PAGE_BINS (2392 - 16 + STATS_HEAD)

static void stats_keep(const char* msg, void* arg) {
  char* const text = (char*)arg;
  const size_t len = strlen(text);
  if (len + strlen(msg) < 32768) strcpy(text + len, msg);
}

static bool stats_same_count(const void* a, const void* b) { return memcmp(a, b, sizeof(mi_stat_count_t)) == 0; }

MI_TEST(stats_struct) {
  // Another test has ended the thread.
  mi_thread_init();
  void* p = mi_malloc(100);
  mi_stats_t_decl(stats);
  MI_CHECK_EQ(stats.size, sizeof(stats));
  MI_CHECK_EQ(stats.version, MI_STAT_VERSION);
  MI_CHECK_EQ(stats.pages.current, 0);
  MI_CHECK(mi_stats_get(&stats));
  MI_CHECK_EQ(stats.size, sizeof(stats));
  MI_CHECK(stats.pages.current > 0 && stats.reserved.current > 0 && stats.threads.current > 0 && stats.malloc_normal.current >= 100);
  MI_CHECK(mi_heap_stats_get(mi_heap_main(), &stats));
  MI_CHECK(stats.pages.current > 0 && stats.reserved.total == 0);
  MI_CHECK(mi_heap_stats_get(NULL, &stats));
  mi_stats_init(&stats);
  MI_CHECK(stats.pages.current == 0 && stats.size == sizeof(stats));
  memset(&stats, 0x55, sizeof(stats));
  mi_stats_header_init(&stats);
  MI_CHECK(stats.size == sizeof(stats) && stats.version == MI_STAT_VERSION && stats.pages.current == 0x5555555555555555);
  mi_free(p);
}

MI_TEST(stats_other_layouts) {
  static union {
    unsigned char bytes[8192];
    mi_stats_t v5;
  } old;
  static const struct {
    size_t size, version;
    bool known;
  } rows[] = {{sizeof(mi_stats_t), 5, true}, {STATS_V4_SIZE, 4, true}, {sizeof(mi_stats_t), 4, false}, {STATS_V4_SIZE, 5, false}, {sizeof(mi_stats_t), 6, false}, {sizeof(mi_stats_t) + 8, 5, false}, {0, 0, false}, {STATS_V4_SIZE, 3, false}, {SIZE_MAX, 5, false}};
  void* p = mi_malloc(1000);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    memset(&old, 0x77, sizeof(old));
    old.v5.size = rows[i].size;
    old.v5.version = rows[i].version;
    MI_CHECK_MSG(mi_stats_get(&old.v5) == rows[i].known, "row %zu", i);
    MI_CHECK(old.v5.size == rows[i].size && old.v5.version == rows[i].version);
    // Not a byte more than there is, and none where the layout is not known.
    const size_t written = rows[i].known ? rows[i].size : STATS_HEAD;
    MI_CHECK_MSG(mi_test_all_bytes(old.bytes + written, sizeof(old) - written, 0x77), "row %zu", i);
    MI_CHECK(mi_heap_stats_get(mi_heap_main(), &old.v5) == rows[i].known);
    char* const text = mi_stats_as_json(&old.v5, 0, NULL);
    MI_CHECK((text != NULL) == rows[i].known);
    mi_free(text);
  }
  MI_CHECK(!mi_stats_get(NULL) && !mi_heap_stats_get(NULL, NULL) && mi_stats_as_json(NULL, 0, NULL) == NULL);
  mi_stats_t_decl(stats);
  MI_CHECK(mi_stats_get(&stats));
  old.v5.size = STATS_V4_SIZE;
  old.v5.version = 4;
  MI_CHECK(mi_stats_get(&old.v5));
  MI_CHECK(stats_same_count(&old.v5.threads, &stats.threads));
  MI_CHECK_EQ(old.v5.page_searches.total >= stats.page_searches.total, 1);
  MI_CHECK(memcmp(old.bytes + STATS_V4_RECLAIM, &stats.pages_reclaim_on_alloc, 4 * sizeof(mi_stat_counter_t)) == 0);
  MI_CHECK(memcmp(old.bytes + STATS_V4_MALLOC_BINS, stats.malloc_bins, sizeof(stats.malloc_bins)) == 0);
  MI_CHECK(memcmp(old.bytes + STATS_V4_PAGE_BINS, stats.page_bins, sizeof(stats.page_bins)) == 0);
  MI_CHECK(mi_test_all_bytes(old.bytes + STATS_V4_RECLAIM + 32, STATS_V4_MALLOC_BINS - STATS_V4_RECLAIM - 32, 0));
  mi_free(p);
}

MI_TEST(stats_bin_sizes) {
  size_t before = 0;
  MI_CHECK_EQ(mi_stats_get_bin_size(0), 0);
  for (size_t bin = 1; bin < MI_BIN_HUGE; bin++) {
    MI_CHECK(mi_stats_get_bin_size(bin) > before);
    before = mi_stats_get_bin_size(bin);
  }
  MI_CHECK_EQ(before, 512 * 1024);
  MI_CHECK_EQ(mi_stats_get_bin_size(MI_BIN_HUGE), 0);
  MI_CHECK_EQ(mi_stats_get_bin_size(SIZE_MAX), 0);
}

MI_TEST(stats_json_and_buffers) {
  char* const whole = mi_stats_get_json(0, NULL);
  MI_REQUIRE(whole != NULL);
  MI_CHECK(mi_check_owned(whole) && whole[0] == '{' && whole[strlen(whole) - 1] == '}');
  MI_CHECK(strstr(whole, "\"malloc_bins\": [") != NULL && strstr(whole, "\"stat_version\": 5") != NULL);
  mi_free(whole);
  mi_stats_t_decl(stats);
  MI_CHECK(mi_stats_get(&stats));
  static char text[65536];
  // The figures of the system change in length now and then.
  for (int tries = 0; tries < 100; tries++) {
    char* const all = mi_stats_as_json(&stats, 0, NULL);
    MI_REQUIRE(all != NULL);
    const size_t len = strlen(all);
    mi_free(all);
    memset(text, 'x', sizeof(text));
    char* const fits = mi_stats_as_json(&stats, len + 1, text);
    if (fits == NULL || strlen(fits) != len) continue;
    MI_CHECK_PTR_EQ(fits, text);
    MI_CHECK(text[len] == 0 && text[len + 1] == 'x');
    memset(text, 'x', sizeof(text));
    char* const less = mi_stats_as_json(&stats, len - 64, text);
    MI_CHECK_PTR_EQ(less, NULL);
    MI_CHECK(text[0] == 0 && text[len - 64] == 'x');
    break;
  }
  MI_CHECK_PTR_EQ(mi_stats_as_json(&stats, 0, text), NULL);
  MI_CHECK_PTR_EQ(mi_stats_get_json(1, text), NULL);
  MI_CHECK_PTR_EQ(mi_stats_get_json(sizeof(text), text), text);
  MI_CHECK_PTR_EQ(mi_heap_stats_get_json(NULL, sizeof(text), text), text);
  MI_CHECK_PTR_EQ(mi_heap_stats_get_json(mi_heap_main(), 100, text), NULL);
}

MI_TEST(stats_of_theaps_and_sub_processes) {
  mi_thread_init();
  mi_stats_t_decl(stats);
  mi_theap_stats_merge_to_heap(NULL);
  MI_CHECK(mi_theap_stats_get(NULL, &stats));
  const int64_t before = stats.malloc_normal_count.total;
  void* p[10];
  for (int i = 0; i < 10; i++) use(p[i] = mi_malloc(100), 100, 1);
  MI_CHECK(mi_theap_stats_get(mi_theap_get_default(), &stats));
  MI_CHECK_EQ(stats.malloc_normal_count.total, before + 10);
  for (int i = 0; i < 10; i++) mi_free(p[i]);
  mi_theap_stats_merge_to_heap(mi_theap_get_default());
  MI_CHECK(mi_theap_stats_get(NULL, &stats));
  int64_t left = 0;
  for (size_t i = 0; i < MI_BIN_HUGE; i++) left += stats.malloc_bins[i].current;
  MI_CHECK_EQ(stats.malloc_normal_count.total, left);
  // What a heap has merged counts where no heap counts.
  MI_CHECK(mi_subproc_stats_get_exclusive(mi_subproc_main(), &stats));
  const int64_t exclusive = stats.malloc_normal_count.total;
  mi_heap_t* const heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (int i = 0; i < 10; i++) mi_free(mi_heap_malloc(heap, 100));
  MI_CHECK(mi_subproc_stats_get_exclusive(mi_subproc_main(), &stats));
  MI_CHECK_EQ(stats.malloc_normal_count.total, exclusive);
  mi_heap_stats_merge_to_subproc(heap);
  MI_CHECK(mi_heap_stats_get(heap, &stats) && stats.malloc_normal_count.total == 0);
  MI_CHECK(mi_subproc_stats_get_exclusive(mi_subproc_main(), &stats));
  MI_CHECK_EQ(stats.malloc_normal_count.total, exclusive + 10);
  for (int i = 0; i < 10; i++) mi_free(mi_heap_malloc(heap, 100));
  mi_heap_destroy(heap);
  MI_CHECK(mi_subproc_stats_get_exclusive(mi_subproc_main(), &stats));
  MI_CHECK_EQ(stats.malloc_normal_count.total, exclusive + 20);
  MI_CHECK(mi_subproc_stats_get(mi_subproc_main(), &stats) && stats.reserved.current > 0);
  // Another sub-process has what its heaps have, and takes it away with it.
  const int64_t all = stats.malloc_normal_count.total;
  const mi_subproc_id_t other = mi_subproc_new();
  MI_CHECK(mi_subproc_stats_get(other, &stats) && stats.malloc_normal_count.total == 0 && stats.reserved.total == 0);
  MI_CHECK(mi_subproc_stats_get(mi_subproc_main(), &stats) && stats.malloc_normal_count.total >= all);
  mi_subproc_destroy(other);
  MI_CHECK(!mi_subproc_stats_get(other, &stats) && !mi_subproc_stats_get_exclusive(other, &stats));
  MI_CHECK_PTR_EQ(mi_subproc_stats_get_json(other, 0, NULL), NULL);
  static char text[65536];
  MI_CHECK_PTR_EQ(mi_subproc_stats_get_json(mi_subproc_main(), sizeof(text), text), text);
  text[0] = 0;
  mi_subproc_stats_print_out(mi_subproc_main(), stats_keep, text);
  MI_CHECK(strstr(text, "arenas:") != NULL && strstr(text, "of heap") == NULL);
  text[0] = 0;
  mi_subproc_heap_stats_print_out(mi_subproc_main(), stats_keep, text);
  MI_CHECK(strstr(text, "statistics of a heap") != NULL);
}

MI_TEST(stats_text) {
  static char text[32768];
  mi_stats_print_out(stats_keep, text);
  MI_CHECK(strstr(text, "statistics of the process") != NULL && strstr(text, "total#") != NULL && strstr(text, "arenas:") != NULL &&
           strstr(text, "process:") != NULL);
  text[0] = 0;
  mi_heap_stats_print_out(NULL, stats_keep, text);
  MI_CHECK(strstr(text, "statistics of a heap") != NULL && strstr(text, "arenas:") == NULL);
  text[0] = 0;
  mi_thread_stats_print_out(stats_keep, text);
  MI_CHECK(strstr(text, "statistics of this thread") != NULL);
  mi_stats_merge();
}
