// Owns: tests of hardening/zero-size and of heap/zero-size: which places come out, and the life of their pages.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: where blocks of no bytes are ordinary ones, what any block owes is tested.
#include "hardening/zero-size.h"

#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/heap/zero-size.h"
#include "test/lib/test.h"

static mi_live_word_t mi_zero_size_test_words[MI_LIVE_META_SIZE / sizeof(mi_live_word_t)];

MI_TEST(pick) {
  static const struct {
    size_t first, step;
  } rows[] = {{0, 1}, {0, 4}, {3, 4}, {0, 256}, {255, 256}, {0, MI_PAGE_GRANULES}};
  uint64_t seed = 3;
  for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
    memset((void*)(uintptr_t)mi_zero_size_test_words, 0, sizeof(mi_zero_size_test_words));
    for (size_t n = 0; n < MI_PAGE_GRANULES / rows[r].step; n++) {
      const size_t index =
          _mi_hard_zero_size_pick(mi_zero_size_test_words, mi_test_random(&seed) % MI_PAGE_GRANULES, rows[r].first, rows[r].step);
      MI_CHECK(index < MI_PAGE_GRANULES && index % rows[r].step == rows[r].first);
      MI_CHECK(_mi_hard_live_set(mi_zero_size_test_words, index));
    }
    MI_CHECK_EQ(_mi_hard_zero_size_pick(mi_zero_size_test_words, 7, rows[r].first, rows[r].step), MI_PAGE_GRANULES);
  }
}

enum { MANY = 20000 };
static void* mi_zero_size_test_blocks[MANY];

static void* mi_zero_size_test_free_all(void* arg) {
  for (size_t i = 0; i < MANY; i++) {
    _mi_free(mi_zero_size_test_blocks[i]);
  }
  return arg;
}

MI_TEST(unique_and_freed_anywhere) {
  mi_heap_t* const heap = _mi_heap_new();
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < MANY; i++) {
      const size_t align = (size_t)1 << i % 13;
      void* const p = i % 3 == 0 ? _mi_alloc(0) : i % 3 == 1 ? _mi_alloc_aligned(NULL, 0, align, 0, true)
                                                             : _mi_theap_alloc(_mi_heap_theap(heap), 0, false);
      MI_REQUIRE(p != NULL);
      MI_CHECK(i % 3 != 1 || _mi_is_aligned(p, align));
      MI_CHECK(!MI_HAS_PADDING || _mi_usable_size(p) == 0);
      mi_zero_size_test_blocks[i] = p;
    }
    for (size_t i = 0; i + 1 < MANY; i += 97) {
      for (size_t k = i + 1; k < MANY; k++) {
        MI_CHECK(mi_zero_size_test_blocks[i] != mi_zero_size_test_blocks[k]);
      }
    }
    MI_CHECK_EQ(_mi_zero_size_in_use(), MI_HAS_ZERO_SIZE);
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_zero_size_test_free_all, NULL) == 0);
    pthread_join(thread, NULL);
    MI_CHECK(!_mi_zero_size_in_use());
  }
  _mi_heap_delete(heap);
}

MI_TEST(heaps_end) {
  for (int destroy = 0; destroy < 2; destroy++) {
    mi_heap_t* const heap = _mi_heap_new();
    void* const p = _mi_theap_alloc(_mi_heap_theap(heap), 0, false);
    MI_REQUIRE(p != NULL);
    if (destroy) {
      _mi_heap_destroy(heap);
    } else {
      _mi_heap_delete(heap);
      MI_CHECK(!MI_HAS_PADDING || _mi_usable_size(p) == 0);
      _mi_free(p);
    }
    MI_CHECK(!_mi_zero_size_in_use());
  }
}

MI_TEST(realloc_from_and_to) {
  for (int zero = 0; zero < 2; zero++) {
    unsigned char* p = _mi_alloc(0);
    p = _mi_realloc(NULL, p, 1000, zero != 0);
    MI_REQUIRE(p != NULL);
    MI_CHECK(!zero || !MI_HAS_PADDING || mi_test_all_bytes(p, 1000, 0));
    memset(p, 1, 1000);
    p = _mi_realloc(NULL, p, 0, zero != 0);
    MI_REQUIRE(p != NULL);
    MI_CHECK(!MI_HAS_ZERO_SIZE || (_mi_realloc(NULL, p, 0, false) == p && _mi_expand(p, 1) == NULL && _mi_expand(p, 0) == p));
    _mi_free(p);
  }
}

MI_TEST_MAIN()
