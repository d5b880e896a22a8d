// Owns: tests of region/meta: objects of every size, reuse, zeroes, many threads.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test takes it gives back.
#include "src/region/meta.h"

#include <pthread.h>
#include <sys/mman.h>

#include "src/heap/process.h"
#include "src/sys/os.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

enum { HELD = 64,
       THREADS = 4 };

static const size_t mi_meta_test_sizes[] = {1, 8, 63, 64, 65, 128, 129, 1000, 1024, 1025, 8192, 8193, MI_META_SIZE_MAX - 1, MI_META_SIZE_MAX};
enum { SIZES = sizeof(mi_meta_test_sizes) / sizeof(mi_meta_test_sizes[0]) };

MI_TEST(zeroed_aligned_apart) {
  MI_REQUIRE(_mi_process_init());
  static void* held[SIZES][HELD];
  MI_CHECK(!_mi_meta_may_be(held) && !_mi_meta_may_be(NULL) && !_mi_meta_may_be((void*)(uintptr_t)64));
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < SIZES; i++) {
      for (size_t k = 0; k < HELD; k++) {
        void* const p = _mi_meta_zalloc(mi_meta_test_sizes[i]);
        MI_REQUIRE(p != NULL);
        MI_CHECK((uintptr_t)p % 64 == 0 && mi_test_all_bytes(p, mi_meta_test_sizes[i], 0));
        // None of it is the program's.
        MI_CHECK(_mi_page_map_find(p) == NULL && _mi_arena_of(p) == NULL);
        MI_CHECK(_mi_meta_may_be(p) && !_mi_meta_may_be((uint8_t*)p + 8));
        mi_test_fill(p, mi_meta_test_sizes[i], (uintptr_t)p);
        held[i][k] = p;
      }
    }
    for (size_t i = 0; i < SIZES; i++) {
      for (size_t k = 0; k < HELD; k++) {
        MI_CHECK(mi_test_filled(held[i][k], mi_meta_test_sizes[i], (uintptr_t)held[i][k]));
        _mi_meta_free(held[i][k], mi_meta_test_sizes[i]);
      }
    }
  }
}

MI_TEST(reused) {
  for (size_t i = 0; i < SIZES; i++) {
    void* const p = _mi_meta_zalloc(mi_meta_test_sizes[i]);
    memset(p, 0xff, mi_meta_test_sizes[i]);
    _mi_meta_free(p, mi_meta_test_sizes[i]);
    const int64_t reserved = _mi_stat_view(&_mi_stats.reserved).current;
    for (int round = 0; round < 100; round++) {
      void* const q = _mi_meta_zalloc(mi_meta_test_sizes[i]);
      MI_CHECK_PTR_EQ(q, p);
      MI_CHECK(mi_test_all_bytes(q, mi_meta_test_sizes[i], 0));
      _mi_meta_free(q, mi_meta_test_sizes[i]);
    }
    MI_CHECK_EQ(_mi_stat_view(&_mi_stats.reserved).current, reserved);
  }
}

static bool mi_meta_test_is_touched(const uint8_t* p) {
  unsigned char resident = 0;
  MI_REQUIRE(mincore((void*)(uintptr_t)p, 1, &resident) == 0);
  return (resident & 1) != 0;
}

enum { TRIES = 4 * HELD };

static uint8_t* mi_meta_test_held[TRIES];
static size_t mi_meta_test_held_count;

// Memory of a class of 16 KiB whose OS pages from `at` on nobody has touched: of what was given back some was used as a whole.
static uint8_t* mi_meta_test_fresh(size_t size, size_t at) {
  mi_meta_test_held_count = 0;
  for (;;) {
    MI_REQUIRE(mi_meta_test_held_count < TRIES);
    uint8_t* const p = _mi_meta_zalloc(size);
    MI_REQUIRE(p != NULL);
    if (!mi_meta_test_is_touched(p + at)) {
      return p;
    }
    mi_meta_test_held[mi_meta_test_held_count++] = p;
  }
}

static void mi_meta_test_free_held(size_t size) {
  while (mi_meta_test_held_count > 0) {
    _mi_meta_free(mi_meta_test_held[--mi_meta_test_held_count], size);
  }
}

// What lies in a class of 16 KiB and is smaller costs no page at its end, the first time or when its memory serves again.
MI_TEST(reuse_touches_no_more_than_is_asked_for) {
  enum { SIZE = 9 * 1024 };
  MI_REQUIRE(_mi_process_init());
  if (_mi_os_page_size() != 4096) {
    MI_TEST_SKIP("the sizes are of pages of 4096 bytes");
  }
  uint8_t* const fresh = mi_meta_test_fresh(SIZE, 3 * 4096);
  for (int round = 0; round < 2; round++) {
    memset(fresh, 0xff, SIZE);
    MI_CHECK(mi_meta_test_is_touched(fresh + 2 * 4096) && !mi_meta_test_is_touched(fresh + 3 * 4096));
    _mi_meta_free(fresh, SIZE);
    MI_CHECK_PTR_EQ(_mi_meta_zalloc(SIZE), fresh);
    MI_CHECK(mi_test_all_bytes(fresh, SIZE, 0) && !mi_meta_test_is_touched(fresh + 3 * 4096));
  }
  _mi_meta_free(fresh, SIZE);
  mi_meta_test_free_held(SIZE);
}

// What was given back with a part of it never touched stays so for the next owner; and is all zeroes, whoever had it before.
MI_TEST(a_part_stays_untouched) {
  enum { SIZE = 12 * 1024,
         PART = 4 * 1024 + 64 };
  MI_REQUIRE(_mi_process_init());
  if (_mi_os_page_size() != 4096) {
    MI_TEST_SKIP("the sizes are of pages of 4096 bytes");
  }
  uint8_t* const fresh = mi_meta_test_fresh(SIZE, 2 * 4096);
  memset(fresh, 0xff, PART);
  _mi_meta_free_part(fresh, SIZE, PART);
  MI_CHECK_PTR_EQ(_mi_meta_zalloc(MI_META_SIZE_MAX), fresh);
  MI_CHECK(!mi_meta_test_is_touched(fresh + 2 * 4096));
  MI_CHECK(mi_test_all_bytes(fresh, MI_META_SIZE_MAX, 0));
  // One that was used as a whole, by the next one in part, is clean for a third.
  memset(fresh, 0xff, MI_META_SIZE_MAX);
  _mi_meta_free(fresh, MI_META_SIZE_MAX);
  MI_CHECK_PTR_EQ(_mi_meta_zalloc(SIZE), fresh);
  _mi_meta_free_part(fresh, SIZE, 64);
  MI_CHECK_PTR_EQ(_mi_meta_zalloc(MI_META_SIZE_MAX), fresh);
  MI_CHECK(mi_test_all_bytes(fresh, MI_META_SIZE_MAX, 0));
  _mi_meta_free(fresh, MI_META_SIZE_MAX);
  mi_meta_test_free_held(SIZE);
}

static void* mi_meta_test_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  void* held[HELD] = {NULL};
  size_t sizes[HELD];
  for (int i = 0; i < 5000; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t k = r % HELD;
    if (held[k] != NULL) {
      MI_CHECK(mi_test_filled(held[k], sizes[k], (uintptr_t)held[k]));
      _mi_meta_free(held[k], sizes[k]);
      held[k] = NULL;
    } else {
      sizes[k] = mi_meta_test_sizes[(r >> 8) % 8];
      held[k] = _mi_meta_zalloc(sizes[k]);
      MI_REQUIRE(held[k] != NULL);
      MI_CHECK(mi_test_all_bytes(held[k], sizes[k], 0));
      mi_test_fill(held[k], sizes[k], (uintptr_t)held[k]);
    }
  }
  for (size_t k = 0; k < HELD; k++) {
    if (held[k] != NULL) {
      _mi_meta_free(held[k], sizes[k]);
    }
  }
  return NULL;
}

MI_TEST(many_threads) {
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_meta_test_churn, (void*)(t + 1)) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
}

MI_TEST_MAIN()
