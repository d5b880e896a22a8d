// Owns: tests of alloc/malloc: every size on every path, zeroes, failures, blocks apart, theaps of other heaps.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test allocates it frees.
#include <errno.h>
#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

enum { HELD = 800,
       THREADS = 3 };

// Small sizes one by one, then in steps.
static size_t mi_malloc_test_next(size_t size) { return size < 1100 ? size + 1 : size + size / 7; }

static void mi_malloc_test_block(unsigned char* p, size_t size, bool zero) {
  MI_REQUIRE(p != NULL);
  const size_t usable = _mi_usable_size(p);
  const size_t good = _mi_good_size(size);
  // Where a large block ends at a guard, the size is all that can be promised; its place gives more.
  const bool is_more = MI_HAS_GUARD_PAGES && size > MI_LARGE_BLOCK_MAX;
  MI_CHECK_MSG(MI_HAS_PADDING ? usable == size : is_more ? usable >= good && good >= size
                                                         : usable == good,
               "%zu bytes: %zu usable", size, usable);
  MI_CHECK(_mi_is_aligned(p, MI_BLOCK_ALIGN));
  MI_CHECK_MSG(!zero || mi_test_all_bytes(p, usable, 0), "%zu bytes are not zero", size);
  memset(p, 0xab, usable);
  _mi_free(p);
}

MI_TEST(every_size) {
  mi_theap_t* const theap = _mi_theap_default();
  // Twice: fresh memory, then such as was written to.
  for (int round = 0; round < 2; round++) {
    for (size_t size = 0; size < 3 * (size_t)MI_MIB; size = mi_malloc_test_next(size)) {
      errno = 77;
      mi_malloc_test_block(_mi_alloc(size), size, false);
      mi_malloc_test_block(_mi_alloc_zero(size), size, true);
      mi_malloc_test_block(_mi_theap_alloc(NULL, size, true), size, true);
      mi_malloc_test_block(_mi_theap_alloc(theap, size, true), size, true);
      mi_malloc_test_block(_mi_theap_alloc(theap, size, false), size, false);
      MI_CHECK_EQ(errno, 77);
    }
  }
}

static const size_t mi_malloc_test_too_large[] = {PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX - 1, (size_t)PTRDIFF_MAX - MI_SLICE_SIZE, SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - MI_SLICE_SIZE, SIZE_MAX / 4};

MI_TEST(too_large) {
  _mi_option_set(mi_option_max_errors, 0);
  const int64_t reserved = _mi_stat_view(&_mi_stats.reserved).current;
  for (size_t i = 0; i < sizeof(mi_malloc_test_too_large) / sizeof(mi_malloc_test_too_large[0]); i++) {
    const size_t size = mi_malloc_test_too_large[i];
    for (int way = 0; way < 4; way++) {
      errno = 0;
      void* const p = way == 0 ? _mi_alloc(size) : way == 1 ? _mi_alloc_zero(size)
          : way == 2                                        ? _mi_theap_alloc(_mi_theap_default(), size, true)
                                                            : _mi_theap_alloc(NULL, size, false);
      MI_CHECK_MSG(p == NULL && errno == ENOMEM, "%zx bytes, way %d", size, way);
    }
  }
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.reserved).current, reserved);
}

// Random sizes held at random, each filled to its end: an overlap spoils one.

static void* mi_malloc_test_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  unsigned char** const held = _mi_alloc_zero(HELD * sizeof(*held));
  MI_REQUIRE(held != NULL);
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 15000);
  for (long i = 0; i < rounds; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t k = r % HELD;
    if (held[k] != NULL) {
      const size_t usable = _mi_usable_size(held[k]);
      MI_CHECK(mi_test_filled(held[k], usable, (uintptr_t)held[k]));
      _mi_free(held[k]);
      held[k] = NULL;
      continue;
    }
    const size_t size = (r >> 16) % ((r >> 8) % 64 == 0 ? 700000 : (r >> 8) % 8 == 0 ? 10000
                                                                                     : 600);
    held[k] = (r >> 14) % 2 == 0 ? _mi_alloc(size) : _mi_alloc_zero(size);
    MI_REQUIRE(held[k] != NULL);
    const size_t usable = _mi_usable_size(held[k]);
    MI_CHECK((r >> 14) % 2 == 0 || mi_test_all_bytes(held[k], usable, 0));
    mi_test_fill(held[k], usable, (uintptr_t)held[k]);
  }
  for (size_t k = 0; k < HELD; k++) {
    _mi_free(held[k]);
  }
  _mi_free(held);
  return NULL;
}

MI_TEST(blocks_lie_apart) {
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_malloc_test_churn, (void*)(t + 1)) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  _mi_collect(true);
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.pages).current, 0);
}

MI_TEST(good_size) {
  for (size_t size = 0; size < 2 * (size_t)MI_MIB; size = mi_malloc_test_next(size)) {
    const size_t good = _mi_good_size(size);
    MI_CHECK(good >= size && good > 0 && _mi_good_size(good) == good);
  }
  MI_CHECK(_mi_good_size(SIZE_MAX) == SIZE_MAX);
}

MI_TEST_MAIN()
