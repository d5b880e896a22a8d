// Owns: the counts that a program can read: never negative, no current above its peak, and what happens in another thread shows soon.
// May include: test/lib, POSIX threads.
// Called by: rows of test/contract/rows.txt.
// Invariants: the counts are read from the table that is printed, as a program without our headers would.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

// Found in whatever library is preloaded.
extern void mi_stats_print_out(void (*out)(const char* text, void* arg), void* arg) __attribute__((weak));
extern void mi_process_info(size_t* elapsed, size_t* user, size_t* system, size_t* rss, size_t* peak_rss, size_t* commit, size_t* peak_commit, size_t* faults)
    __attribute__((weak));

typedef struct row_s {
  const char* label;
  long long peak, total, current;
  bool found;
} row_t;

static char table[32768];
static size_t table_len;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void gather(const char* text, void* arg) {
  (void)arg;
  const size_t n = strlen(text);
  if (table_len + n < sizeof(table)) {
    memcpy(table + table_len, text, n + 1);
    table_len += n;
  }
}

// The numbers of a row, in bytes or as they are; how many.
static int numbers(const char* text, long long number[5]) {
  static const struct {
    const char* unit;
    double factor;
  } units[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
  int n = 0;
  for (int i = 0; i < 5; i++) number[i] = 0;
  while (n < 5) {
    char* end;
    double value = strtod(text, &end);
    if (end == text) break;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
      if (strncmp(end, units[i].unit, 3) == 0) {
        value *= units[i].factor;
        end += 3;
      }
    }
    if (*end == 'B') end++;
    number[n++] = (long long)value;
    text = end;
  }
  return n;
}

// Reads the table once; checks every line of it; fills the row of that label.
static row_t look(const char* label) {
  row_t wanted = {label, 0, 0, 0, false};
  pthread_mutex_lock(&table_lock);
  table_len = 0;
  mi_stats_print_out(&gather, NULL);
  int rows = 0;
  for (char* line = table; *line != 0;) {
    char* end = strchr(line, '\n');
    if (end == NULL) break;
    *end = 0;
    char* colon = strchr(line, ':');
    if (colon != NULL && strstr(line, "process") == NULL) {
      long long number[5];
      const int n = numbers(colon + 1, number);
      const long long a = number[0], b = number[1], c = number[2];
      MI_CHECK_MSG(n >= 1, "no number in: %s", line);
      MI_CHECK_MSG(a >= 0 && (n < 2 || b >= 0) && (n < 3 || c >= 0), "a negative count: %s", line);
      // In a bin without sizes there is less to see.
      MI_CHECK_MSG(n < 3 || (c <= a && a <= b), "more than the peak, or a peak above the total: %s", line);
      // A count that has wrapped is not negative but absurd.
      MI_CHECK_MSG(a < (1LL << 50) && b < (1LL << 50), "an absurd count: %s", line);
      rows++;
      if (n >= 3 && strstr(line, label) != NULL && strstr(line, label) < colon) wanted = (row_t){label, a, b, c, true};
    }
    line = end + 1;
  }
  pthread_mutex_unlock(&table_lock);
  MI_CHECK_MSG(rows >= 10, "%d rows", rows);
  MI_CHECK_MSG(wanted.found, "no row %s", label);
  return wanted;
}

enum { THREADS = 6,
       SLOTS = 256 };
static void* slots[SLOTS];
static int stop;

static void* churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    const uint64_t r = mi_test_random(&seed);
    const size_t n = (size_t)(r >> 16) % (r % 32 == 0 ? 4000000 : 5000);
    free(__atomic_exchange_n(&slots[r % SLOTS], malloc(n), __ATOMIC_ACQ_REL));
  }
  return NULL;
}

static void* short_thread(void* arg) {
  for (size_t n = 10; n < 100000; n *= 3) free(malloc(n));
  return arg;
}

MI_TEST(never_negative_never_above_the_peak) {
  MI_REQUIRE(&mi_stats_print_out != NULL);
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, churn, (void*)(i + 1)) == 0);
  for (int i = 0; i < 300; i++) {
    pthread_t s;
    if (pthread_create(&s, NULL, short_thread, NULL) == 0) pthread_join(s, NULL);
    (void)look("pages");
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < SLOTS; i++) free(slots[i]);
  MI_CHECK_EQ(look("threads").current, 1);
}

// ---- blocks of one thread, freed by another that makes no other call

enum { BLOCKS = 20000,
       LARGE = 10,
       TENTH = 1 << 20 };  // what a figure in MiB may lack
static void* blocks[BLOCKS];

static void* free_blocks(void* arg) {
  const size_t count = (size_t)(uintptr_t)arg;
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  return NULL;
}

static void in_another_thread(size_t count) {
  pthread_t t;
  MI_REQUIRE(pthread_create(&t, NULL, free_blocks, (void*)count) == 0);
  pthread_join(t, NULL);
}

MI_TEST(frees_of_others_show) {
  // Large ones at once.
  free(malloc(100));
  const long long base = look("huge blocks").current;
  for (size_t i = 0; i < LARGE; i++) MI_REQUIRE((blocks[i] = malloc(8 << 20)) != NULL);
  MI_CHECK(look("huge blocks").current >= base + LARGE * (8LL << 20));
  in_another_thread(LARGE);
  MI_CHECK_MSG(look("huge blocks").current <= base, "%lld bytes, %lld before", look("huge blocks").current, base);
  // Small ones within the purge delay and the owner's next calls.
  const long long pages = look("in pages").current;
  for (size_t i = 0; i < BLOCKS; i++) MI_REQUIRE((blocks[i] = malloc(1000)) != NULL);
  const long long full = look("in pages").current;
  MI_CHECK(full >= pages + BLOCKS * 1000LL - TENTH);
  in_another_thread(BLOCKS);
  mi_test_sleep_ms(mi_test_scale("MIMALLOC_PURGE_DELAY", 1000) + 50);
  for (int i = 0; i < 3; i++) free(malloc(1000)), free(malloc(100000));
  const long long left = look("in pages").current;
  MI_CHECK_MSG(left <= pages + (full - pages) / 8 + (2 << 20), "%lld bytes are counted as in use, %lld before, %lld with the blocks", left, pages, full);
}

MI_TEST(resident_is_the_kernels_figure) {
  MI_REQUIRE(&mi_process_info != NULL);
  for (size_t n = 1 << 20; n <= 64 << 20; n *= 4) {
    char* p = (char*)malloc(n);
    MI_REQUIRE(p != NULL);
    memset(p, 1, n);
    size_t rss = 0, peak = 0, commit = 0, peak_commit = 0;
    mi_process_info(NULL, NULL, NULL, &rss, &peak, &commit, &peak_commit, NULL);
    const size_t own = mi_test_rss();
    MI_CHECK_MSG(rss >= n && rss <= own + (2 << 20) && own <= rss + (2 << 20), "%zu KiB said, %zu KiB by smaps", rss >> 10, own >> 10);
    MI_CHECK(peak + (1 << 20) >= rss && peak_commit >= commit);
    free(p);
  }
}

MI_TEST_MAIN()
