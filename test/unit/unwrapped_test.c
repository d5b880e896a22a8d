// Owns: tests of blocks straight from the system.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what is bad use here is reported and goes on.
#include <errno.h>
#include <pthread.h>

#include "mimalloc.h"
#include "src/sys/os.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { MI_UNWRAPPED_THREADS = 4,
       MI_UNWRAPPED_ROUNDS = 300 };

MI_TEST(sizes_and_alignments) {
  static const size_t sizes[] = {0, 1, 100, 4096, 4097, 1000000};
  static const size_t aligns[] = {0, 1, 8, 64, 4096, 65536, 1u << 21};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
    for (size_t a = 0; a < sizeof(aligns) / sizeof(aligns[0]); a++) {
      errno = 12345;
      uint8_t* const p = mi_unwrapped_malloc(sizes[s], aligns[a]);
      MI_REQUIRE(p != NULL);
      MI_CHECK_EQ(errno, 12345);
      MI_CHECK_EQ((uintptr_t)p % (aligns[a] == 0 ? sizeof(void*) : aligns[a]), 0);
      MI_CHECK(mi_test_all_bytes(p, sizes[s], 0));
      mi_test_fill(p, sizes[s], 7);
      MI_CHECK(!mi_check_owned(p) && !mi_is_in_heap_region(p));
      mi_unwrapped_free(p);
      MI_CHECK_EQ(errno, 12345);
    }
  }
  mi_unwrapped_free(NULL);
}

MI_TEST(what_cannot_be) {
  errno = 0;
  MI_CHECK(mi_unwrapped_malloc(10, 3) == NULL && errno == EINVAL);
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX - 10000};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    errno = 0;
    MI_CHECK(mi_unwrapped_malloc(mi_test_hide_size(sizes[i]), 8) == NULL && errno == ENOMEM);
  }
  errno = 0;
  MI_CHECK(mi_unwrapped_malloc(10, (SIZE_MAX >> 1) + 1) == NULL && errno == ENOMEM);
  uint8_t* const p = mi_unwrapped_malloc(10, 0);
  MI_REQUIRE(p != NULL);
  p[9] = 9;
  errno = 0;
  MI_CHECK(mi_unwrapped_realloc(p, 20, 5) == NULL && errno == EINVAL);
  MI_CHECK(mi_unwrapped_realloc(p, mi_test_hide_size(SIZE_MAX - 1), 0) == NULL && errno == ENOMEM);
  MI_CHECK_EQ(p[9], 9);
  mi_unwrapped_free(p);
}

MI_TEST(resized) {
  uint8_t* p = mi_unwrapped_realloc(NULL, 100, 0);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, 100, 1);
  static const size_t sizes[] = {200, 5000, 300000, 150, 100};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    p = mi_unwrapped_realloc(p, sizes[i], 0);
    MI_REQUIRE(p != NULL);
    MI_CHECK(mi_test_filled(p, 100, 1));
    memset(p + 100, 5, sizes[i] - 100);
  }
  p = mi_unwrapped_realloc(p, 100, 1 << 20);
  MI_REQUIRE(p != NULL);
  MI_CHECK_EQ((uintptr_t)p % (1 << 20), 0);
  MI_CHECK(mi_test_filled(p, 100, 1));
  MI_CHECK(mi_unwrapped_realloc(p, 0, 0) == NULL);
}

// They are between inaccessible pages.
static void mi_unwrapped_test_overflow(void* arg) {
  uint8_t* const p = mi_unwrapped_malloc(100, 0);
  volatile uint8_t* const at = arg == NULL ? p + _mi_os_page_size() : p - 1;
  *at = 1;
}

MI_TEST(guarded) {
  static mi_test_child_t child;
  for (int before = 0; before < 2; before++) {
    mi_test_child_run(&child, &mi_unwrapped_test_overflow, before ? (void*)1 : NULL, 20000);
    MI_CHECK_EQ(child.signal, SIGSEGV);
  }
}

MI_TEST(not_seen) {
  mi_free(mi_malloc(10));
  mi_collect(true);
  const mi_stat_view_t committed = _mi_stat_view(&_mi_stats.committed);
  const mi_stat_view_t reserved = _mi_stat_view(&_mi_stats.reserved);
  MI_CHECK(mi_memory_tracking_set_enabled(true));
  mi_memory_snapshot_t_decl(before);
  mi_memory_snapshot_t_decl(after);
  MI_CHECK(mi_memory_snapshot(&before));
  void* const p = mi_unwrapped_malloc(10000000, 0);
  MI_CHECK(mi_memory_snapshot(&after));
  MI_CHECK_EQ(before.accum_count, after.accum_count);
  MI_CHECK_EQ(before.accum_bytes, after.accum_bytes);
  MI_CHECK(_mi_stat_view(&_mi_stats.committed).current < committed.current + 10000000);
  MI_CHECK(_mi_stat_view(&_mi_stats.reserved).current < reserved.current + 10000000);
  mi_unwrapped_free(p);
  MI_CHECK(mi_memory_tracking_set_enabled(false));
}

// Misuse

static int mi_unwrapped_errors;
static int mi_unwrapped_last_error;
static char mi_unwrapped_text[4096];

static void mi_unwrapped_test_error(int err, void* arg) {
  (void)arg;
  mi_unwrapped_errors++;
  mi_unwrapped_last_error = err;
}

static void mi_unwrapped_test_output(const char* text, void* arg) {
  (void)arg;
  const size_t length = strlen(mi_unwrapped_text);
  snprintf(mi_unwrapped_text + length, sizeof(mi_unwrapped_text) - length, "%s", text);
}

static void mi_unwrapped_test_one(const char* what, int err, const char* text) {
  MI_CHECK_MSG(mi_unwrapped_errors == 1 && mi_unwrapped_last_error == err, "%s: %d reports, error %d", what, mi_unwrapped_errors,
               mi_unwrapped_last_error);
  MI_CHECK_MSG(strstr(mi_unwrapped_text, text) != NULL, "%s: says %s", what, mi_unwrapped_text);
  mi_unwrapped_errors = 0;
  mi_unwrapped_text[0] = 0;
}

MI_TEST(never_mixed) {
  mi_option_set(mi_option_on_violation, 1);
  mi_register_error(&mi_unwrapped_test_error, NULL);
  mi_register_output(&mi_unwrapped_test_output, NULL);
  mi_unwrapped_errors = 0;
  mi_unwrapped_text[0] = 0;
  uint8_t* const p = mi_unwrapped_malloc(100, 0);
  void* const q = mi_malloc(100);
  MI_REQUIRE(p != NULL && q != NULL);
  p[0] = 1;
  mi_free(mi_test_hide(p));
  mi_unwrapped_test_one("mi_free", EINVAL, "is a block of mi_unwrapped_malloc, which other functions do not take");
  MI_CHECK(mi_realloc(mi_test_hide(p), 200) == NULL);
  mi_unwrapped_test_one("mi_realloc", EINVAL, "is a block of mi_unwrapped_malloc, which other functions do not take");
  mi_unwrapped_free(q);
  mi_unwrapped_test_one("of mi_malloc", EINVAL, "is no block of mi_unwrapped_malloc, freed by mi_unwrapped_free");
  mi_unwrapped_free(p + 16);
  mi_unwrapped_test_one("inside", EINVAL, "is no block of mi_unwrapped_malloc, freed by mi_unwrapped_free");
  MI_CHECK(mi_unwrapped_realloc(q, 200, 0) == NULL);
  mi_unwrapped_test_one("realloc of mi_malloc", EINVAL, "is no block of mi_unwrapped_malloc, resized by mi_unwrapped_realloc");
  MI_CHECK_EQ(p[0], 1);
  mi_unwrapped_free(p);
  MI_CHECK_EQ(mi_unwrapped_errors, 0);
  mi_unwrapped_free(mi_test_hide(p));
  mi_unwrapped_test_one("twice", EAGAIN, "is a block of mi_unwrapped_malloc that was freed, freed by mi_unwrapped_free");
  mi_free(q);
  MI_CHECK_EQ(mi_unwrapped_errors, 0);
  mi_register_output(NULL, NULL);
  mi_register_error(NULL, NULL);
}

// Threads and forks

static _Atomic(void*) mi_unwrapped_slots[16];

static void* mi_unwrapped_test_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  for (int i = 0; i < MI_UNWRAPPED_ROUNDS; i++) {
    const uint64_t draw = mi_test_random(&seed);
    const size_t size = 1 + (size_t)(draw % 20000);
    uint8_t* p = mi_unwrapped_malloc(size, draw % 3 == 0 ? 65536 : 0);
    MI_CHECK(p != NULL && mi_test_all_bytes(p, size, 0));
    p = mi_unwrapped_realloc(p, 1 + (size_t)(draw >> 32) % 20000, 0);
    MI_CHECK(p != NULL);
    p[0] = 1;
    mi_unwrapped_free(atomic_exchange(&mi_unwrapped_slots[draw % 16], p));
  }
  return NULL;
}

static void mi_unwrapped_test_in_child(void* arg) {
  (void)arg;
  mi_unwrapped_free(mi_unwrapped_malloc(100, 0));
}

MI_TEST(threads_and_forks) {
  pthread_t threads[MI_UNWRAPPED_THREADS];
  for (size_t i = 0; i < MI_UNWRAPPED_THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_unwrapped_test_churn, (void*)(i + 1)) == 0);
  }
  for (int i = 0; i < 10; i++) {
    MI_CHECK_IN_CHILD(&mi_unwrapped_test_in_child, NULL, 20000);
  }
  for (size_t i = 0; i < MI_UNWRAPPED_THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  for (size_t i = 0; i < 16; i++) {
    mi_unwrapped_free(atomic_exchange(&mi_unwrapped_slots[i], NULL));
  }
}

MI_TEST_MAIN()
