// Owns: tests of sys/stats: what may be read of counts, the bins, the table and the JSON.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: counts of the process are compared with what they were, as the allocator may be in use.
#include "src/sys/stats.h"

#include <pthread.h>

#include "src/sys/json.h"
#include "test/lib/test.h"

enum { THREADS = 4,
       ROUNDS = 20000 };

MI_TEST(count) {
  static mi_stat_t stat;
  _mi_stat_increase(&stat, 10);
  _mi_stat_increase(&stat, 5);
  _mi_stat_decrease(&stat, 12);
  _mi_stat_increase(&stat, 1);
  mi_stat_view_t view = _mi_stat_view(&stat);
  MI_CHECK_EQ(view.total, 16);
  MI_CHECK_EQ(view.peak, 15);
  MI_CHECK_EQ(view.current, 4);
  _mi_stat_reset(&stat);
  view = _mi_stat_view(&stat);
  MI_CHECK(view.total == 4 && view.peak == 4 && view.current == 4);
  _mi_stat_decrease(&stat, 100);
  MI_CHECK_EQ(_mi_stat_view(&stat).current, 0);
}

MI_TEST(tally) {
  static mi_tally_t tally;
  _mi_tally_note(&tally, 5, 8);
  _mi_tally_note(&tally, 2, 2);
  // 5 + 2 at the end, 8 in between.
  mi_stat_view_t view = _mi_tally_view(&tally, 6, 20);
  MI_CHECK(view.current == 6 && view.peak == 8 && view.total == 20);
  // What pages know may be behind for a while; nobody is told less than before.
  view = _mi_tally_view(&tally, 9, 15);
  MI_CHECK(view.current == 9 && view.peak == 9 && view.total == 20);
  view = _mi_tally_view(&tally, -3, 0);
  MI_CHECK(view.current == 0 && view.peak == 9 && view.total == 20);
  view = _mi_tally_view(&tally, 100, 50);
  MI_CHECK(view.current == 100 && view.peak == 100 && view.total == 100);
}

MI_TEST(bins) {
  // Every class is in the bin whose size it does not exceed, and no lower one would do.
  unsigned highest = 0;
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    const unsigned stat_bin = _mi_stat_bin(bin);
    MI_CHECK(stat_bin >= 1 && stat_bin < MI_STAT_BIN_HUGE && stat_bin >= highest && stat_bin <= highest + 1);
    highest = stat_bin;
    MI_CHECK(_mi_bin_block_size(bin) <= _mi_stat_bin_size(stat_bin));
    MI_CHECK(_mi_bin_block_size(bin) > _mi_stat_bin_size(stat_bin - 1));
  }
  MI_CHECK_EQ(highest, MI_STAT_BIN_HUGE - 1);
  MI_CHECK_EQ(_mi_stat_bin(MI_BIN_SINGLE), MI_STAT_BIN_HUGE);
  MI_CHECK_EQ(_mi_stat_bin(MI_BIN_ZERO_SIZE), MI_STAT_BIN_ZERO_SIZE);
}

static mi_stat_t mi_stats_test_shared;
static mi_counter_t mi_stats_test_counter;
static _Atomic(bool) mi_stats_test_done;

static void* mi_stats_test_thread(void* arg) {
  (void)arg;
  for (int i = 0; i < ROUNDS; i++) {
    _mi_stat_increase(&mi_stats_test_shared, 3);
    _mi_counter_add(&mi_stats_test_counter, 1);
    _mi_stat_decrease(&mi_stats_test_shared, 3);
  }
  return NULL;
}

static void* mi_stats_test_reader(void* arg) {
  (void)arg;
  while (!mi_atomic_load_relaxed(&mi_stats_test_done)) {
    const mi_stat_view_t view = _mi_stat_view(&mi_stats_test_shared);
    MI_CHECK(view.current >= 0 && view.current <= view.peak && view.peak <= 3 * THREADS && view.peak <= view.total);
  }
  return NULL;
}

MI_TEST(threads) {
  pthread_t threads[THREADS], reader;
  MI_REQUIRE(pthread_create(&reader, NULL, &mi_stats_test_reader, NULL) == 0);
  for (int i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_stats_test_thread, NULL) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  mi_atomic_store_relaxed(&mi_stats_test_done, true);
  pthread_join(reader, NULL);
  const mi_stat_view_t view = _mi_stat_view(&mi_stats_test_shared);
  MI_CHECK_EQ(view.total, 3 * THREADS * ROUNDS);
  MI_CHECK_EQ(view.current, 0);
  MI_CHECK_EQ(_mi_counter_view(&mi_stats_test_counter), THREADS * ROUNDS);
}

static char mi_stats_test_text[16 * 1024];
static size_t mi_stats_test_len;

static void mi_stats_test_out(const char* text, void* arg) {
  MI_CHECK_PTR_EQ(arg, &mi_stats_test_len);
  const size_t n = strlen(text);
  MI_REQUIRE(mi_stats_test_len + n < sizeof(mi_stats_test_text));
  memcpy(mi_stats_test_text + mi_stats_test_len, text, n + 1);
  mi_stats_test_len += n;
}

// Whether there is a row with that label and these cells, one blank between them.
static bool mi_stats_test_row(const char* label, const char* cells) {
  char start[64];
  snprintf(start, sizeof(start), " %s:", label);
  const char* row = strstr(mi_stats_test_text, start);
  if (row == NULL) {
    return false;
  }
  char found[256];
  size_t n = 0;
  for (row += strlen(start); *row != '\n' && n < sizeof(found) - 1; row++) {
    if (*row != ' ' || (n > 0 && found[n - 1] != ' ')) {
      found[n++] = *row;
    }
  }
  found[n - (n > 0 && found[n - 1] == ' ')] = 0;
  return MI_CHECK_STREQ(found, cells);
}

static void mi_stats_test_fill(mi_stats_t* stats) {
  mi_stats_init(stats);
  stats->malloc_bins[1] = (mi_stat_count_t){.total = 100, .peak = 70, .current = 3};
  stats->malloc_bins[0] = (mi_stat_count_t){.total = 5, .peak = 5, .current = 5};
  stats->malloc_huge = (mi_stat_count_t){.total = INT64_C(3) << 40, .peak = 1048576, .current = 1023};
  stats->malloc_huge_count.total = 12;
  stats->pages = (mi_stat_count_t){.total = 9, .peak = 8, .current = 7};
  stats->committed = (mi_stat_count_t){.total = 1536, .peak = 1024, .current = 1};
  stats->purged.total = 4096;
}

MI_TEST(print) {
  mi_stats_t stats;
  mi_stats_test_fill(&stats);
  errno = 12345;
  _mi_stats_print(&stats, "a test", true, &mi_stats_test_out, &mi_stats_test_len);
  MI_CHECK_EQ(errno, 12345);
  MI_CHECK(strstr(mi_stats_test_text, MI_PROFILE_NAME ": statistics of a test\n") == mi_stats_test_text);
  MI_CHECK(mi_stats_test_row("bin  1", MI_STATS_LEVEL < 2 ? "1.0 KiB 1.5 KiB 48 B 16 B 100" : "1.0 KiB 1.5 KiB 48 B 16 B 100 70 3"));
  MI_CHECK_EQ(strstr(mi_stats_test_text, " peak#") != NULL, MI_STATS_LEVEL >= 2);
  MI_CHECK(mi_stats_test_row("bin  0", MI_STATS_LEVEL < 2 ? "0 B 5" : "0 B 5 5 5"));
  MI_CHECK(strstr(mi_stats_test_text, "bin  2:") == NULL);
  MI_CHECK(mi_stats_test_row("huge blocks", "1.0 MiB 3.0 TiB 1023 B 12"));
  MI_CHECK(mi_stats_test_row("pages", "8 9 7"));
  MI_CHECK(mi_stats_test_row("committed", "1.0 KiB 1.5 KiB 1 B"));
  MI_CHECK(mi_stats_test_row("purged", "4.0 KiB"));
  MI_CHECK(strstr(mi_stats_test_text, "guards skipped:") != NULL && strstr(mi_stats_test_text, " process: elapsed ") != NULL);
#define MI_STATS_TEST_ROW(field, unit, label) MI_CHECK_MSG(strstr(mi_stats_test_text, " " label ":") != NULL, "%s", label);
  MI_STATS_HEAP_COUNTS(MI_STATS_TEST_ROW)
  MI_STATS_HEAP_COUNTERS(MI_STATS_TEST_ROW)
  MI_STATS_COUNTS(MI_STATS_TEST_ROW)
  MI_STATS_COUNTERS(MI_STATS_TEST_ROW)
  mi_stats_test_len = 0;
  _mi_stats_print(&stats, "a heap", false, &mi_stats_test_out, &mi_stats_test_len);
  MI_STATS_HEAP_COUNTS(MI_STATS_TEST_ROW)
#undef MI_STATS_TEST_ROW
#define MI_STATS_TEST_ROW(field, unit, label) MI_CHECK_MSG(strstr(mi_stats_test_text, " " label ":") == NULL, "%s", label);
  MI_STATS_COUNTS(MI_STATS_TEST_ROW)
  MI_STATS_COUNTERS(MI_STATS_TEST_ROW)
#undef MI_STATS_TEST_ROW
}

MI_TEST(json) {
  char buf[256];
  mi_json_t json = {.buf = buf, .size = sizeof(buf)};
  _mi_json_open(&json, NULL, '{');
  _mi_json_number_line(&json, "a", -9223372036854775807LL - 1);
  _mi_json_open(&json, "b", '[');
  _mi_json_open(&json, NULL, '{');
  _mi_json_number(&json, "c", 0);
  _mi_json_text(&json, "d", " ");
  _mi_json_close(&json, '}');
  _mi_json_open(&json, NULL, '{');
  _mi_json_close(&json, '}');
  _mi_json_close(&json, ']');
  _mi_json_close(&json, '}');
  static const char expected[] = "{\n\"a\": -9223372036854775808,\n\"b\": [\n{\"c\": 0, \"d\": \" \"},\n{}]}";
  MI_CHECK_STREQ(buf, expected);
  MI_CHECK_EQ(json.len, strlen(expected));
}

MI_TEST(json_in_any_buffer) {
  mi_stats_t stats;
  mi_stats_test_fill(&stats);
  const mi_stats_process_t process = {.elapsed_ms = 1, .rss = 2};
  static char whole[32768], cut[32768];
  const size_t len = _mi_stats_json(&stats, &process, whole, sizeof(whole));
  MI_CHECK(len == strlen(whole) && len == _mi_stats_json(&stats, &process, NULL, 0));
  for (size_t size = 1; size <= len + 1; size += size < len - 300 ? 97 : 1) {
    memset(cut, 'x', sizeof(cut));
    MI_CHECK_EQ(_mi_stats_json(&stats, &process, cut, size), len);
    MI_CHECK_MSG(strlen(cut) == size - 1 && memcmp(cut, whole, size - 1) == 0 && cut[size] == 'x', "%zu bytes", size);
  }
}

MI_TEST(reset) {
  _mi_stat_increase(&_mi_stats.threads, 9);
  _mi_stat_decrease(&_mi_stats.threads, 9);
  _mi_counter_add(&_mi_stats.purge_calls, 2);
  _mi_stats_reset();
  const mi_stat_view_t view = _mi_stat_view(&_mi_stats.threads);
  MI_CHECK(view.peak <= view.current + 8);
  MI_CHECK_EQ(_mi_counter_view(&_mi_stats.purge_calls), 0);
}

MI_TEST(elapsed) {
  const int64_t first = _mi_stats_elapsed_ms();
  usleep(30000);
  const int64_t passed = _mi_stats_elapsed_ms() - first;
  MI_CHECK_MSG(passed >= 10 && passed < 30000, "%lld ms", (long long)passed);
}

MI_TEST_MAIN()
