// Owns: tests of sys/stats: what may be read of counts, and the table.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: counts of the process are compared with what they were, as the allocator may be in use.
#include "src/sys/stats.h"

#include <pthread.h>

#include "test/lib/test.h"

enum { THREADS = 4,
       ROUNDS = 20000 };

MI_TEST(count) {
  static mi_stat_t stat;
  _mi_stat_increase(&stat, 10);
  _mi_stat_increase(&stat, 5);
  _mi_stat_decrease(&stat, 12);
  _mi_stat_increase(&stat, 1);
  const mi_stat_view_t view = _mi_stat_view(&stat);
  MI_CHECK_EQ(view.total, 16);
  MI_CHECK_EQ(view.peak, 15);
  MI_CHECK_EQ(view.current, 4);
  _mi_stat_decrease(&stat, 100);
  MI_CHECK_EQ(_mi_stat_view(&stat).current, 0);
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
    MI_CHECK(view.current >= 0 && view.current <= view.peak && view.peak <= 3 * THREADS);
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

// The numbers behind a label; how many there are.
static int mi_stats_test_row(const char* label, long long* a, long long* b, long long* c) {
  char start[64];
  snprintf(start, sizeof(start), " %s :", label);
  const char* const row = strstr(mi_stats_test_text, start);
  return row == NULL ? -1 : sscanf(row + strlen(start), "%lld %lld %lld", a, b, c);
}

MI_TEST(print) {
  mi_stat_view_t before = _mi_stat_view(&_mi_stats.pages_abandoned);
  _mi_stat_increase(&_mi_stats.pages_abandoned, 7);
  _mi_stat_decrease(&_mi_stats.pages_abandoned, 3);
  errno = 12345;
  _mi_stats_print(&mi_stats_test_out, &mi_stats_test_len);
  MI_CHECK_EQ(errno, 12345);
  long long peak = 0, total = 0, current = 0;
  MI_CHECK_EQ(mi_stats_test_row("abandoned", &peak, &total, &current), 3);
  MI_CHECK_EQ(total, before.total + 7);
  MI_CHECK_EQ(current, before.current + 4);
  MI_CHECK(peak >= current);
  _mi_stat_decrease(&_mi_stats.pages_abandoned, 4);
#define MI_STATS_TEST_ROW(field, unit, label) MI_CHECK_MSG(mi_stats_test_row(label, &peak, &total, &current) == 3, "%s", label);
  MI_STATS_COUNTS(MI_STATS_TEST_ROW)
#undef MI_STATS_TEST_ROW
#define MI_STATS_TEST_ROW(field, unit, label) MI_CHECK_MSG(mi_stats_test_row(label, &peak, &total, &current) >= 1, "%s", label);
  MI_STATS_COUNTERS(MI_STATS_TEST_ROW)
#undef MI_STATS_TEST_ROW
  MI_CHECK(strstr(mi_stats_test_text, " process : elapsed ") != NULL);
  MI_CHECK(strstr(mi_stats_test_text, "  peak ") != NULL);
}

MI_TEST(reset) {
  _mi_stat_increase(&_mi_stats.theaps, 9);
  _mi_stat_decrease(&_mi_stats.theaps, 9);
  _mi_counter_add(&_mi_stats.pages_retire, 2);
  _mi_stats_reset();
  const mi_stat_view_t view = _mi_stat_view(&_mi_stats.theaps);
  MI_CHECK(view.peak <= view.current + 8);
  MI_CHECK_EQ(_mi_counter_view(&_mi_stats.pages_retire), 0);
}

MI_TEST(elapsed) {
  const int64_t first = _mi_stats_elapsed_ms();
  usleep(30000);
  const int64_t passed = _mi_stats_elapsed_ms() - first;
  MI_CHECK_MSG(passed >= 10 && passed < 30000, "%lld ms", (long long)passed);
}

MI_TEST_MAIN()
