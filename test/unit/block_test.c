// Owns: tests of heap/block and heap/quarantine: neighbours that are freed by different threads at once, blocks that wait
// while their page changes hands, and that memory comes back.
// May include: everything.
// Called by: the test runner, under every variant; under ThreadSanitizer by hand, with longer rounds.
// Invariants: nothing here is bad use, so no report may come.
#include "src/heap/block.h"

#include <pthread.h>

#include "hardening/fill.h"
#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

enum { MANY = 512 };
static const size_t mi_block_test_sizes[] = {1, 8, 24, 120, 1000, 5000};
enum { SIZES = sizeof(mi_block_test_sizes) / sizeof(mi_block_test_sizes[0]) };

static _Atomic(void*) mi_block_test_blocks[MANY];
static _Atomic(long) mi_block_test_round;

// Frees what it can get of the even places, or changes its size in place, while the owner frees its neighbours.
static void* mi_block_test_other(void* arg) {
  while (mi_atomic_load_acquire(&mi_block_test_round) >= 0) {
    for (size_t i = 0; i < MANY; i += 2) {
      void* const p = mi_atomic_exchange_acq_rel(&mi_block_test_blocks[i], NULL);
      if (p != NULL) {
        void* const q = i % 4 == 0 ? _mi_expand(p, _mi_usable_size(p) + 1) : NULL;
        (void)q;
        _mi_free(p);
      }
    }
  }
  return arg;
}

MI_TEST(neighbours_of_two_threads) {
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 150);
  mi_atomic_store_relaxed(&mi_block_test_round, 0);
  pthread_t threads[2];
  for (int t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_block_test_other, NULL) == 0);
  }
  for (long round = 0; round < rounds; round++) {
    const size_t size = mi_block_test_sizes[(size_t)round % SIZES];
    void* mine[MANY];
    for (size_t i = 0; i < MANY; i++) {
      mine[i] = _mi_alloc(size);
      MI_REQUIRE(mine[i] != NULL);
      memset(mine[i], 0x5a, size);
    }
    for (size_t i = 0; i < MANY; i += 2) {
      _mi_free(mi_atomic_exchange_acq_rel(&mi_block_test_blocks[i], mine[i]));
    }
    for (size_t i = 1; i < MANY; i += 2) {
      _mi_free(mine[i]);
    }
  }
  mi_atomic_store_release(&mi_block_test_round, -1);
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  for (size_t i = 0; i < MANY; i++) {
    _mi_free(mi_atomic_exchange_acq_rel(&mi_block_test_blocks[i], NULL));
  }
}

// Full pages are let go of while their blocks wait; another thread has them when the blocks leave, or nobody.
static void* mi_block_test_filler(void* arg) {
  const size_t size = *(const size_t*)arg;
  static void* kept[64 * MANY];
  enum { COUNT = 64 * MANY };
  const size_t count = size > 500 ? COUNT / 32 : COUNT;
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < count; i++) {
      kept[i] = _mi_alloc(size);
      MI_REQUIRE(kept[i] != NULL);
      if (i % 5 == 4) {
        _mi_free(kept[i - 2]);
        kept[i - 2] = NULL;
      }
    }
    for (size_t i = 0; i < count; i++) {
      _mi_free(kept[i]);
    }
  }
  return NULL;
}

MI_TEST(pages_change_hands_meanwhile) {
  _mi_option_set(mi_option_page_full_retain, 0);
  for (size_t s = 0; s < SIZES; s++) {
    _mi_collect(true);
    const int64_t pages = _mi_stat_view(&_mi_stats.pages).current;
    size_t size = mi_block_test_sizes[s];
    (void)mi_block_test_filler(&size);
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_block_test_filler, &size) == 0);
    pthread_join(thread, NULL);
    _mi_collect(true);
    MI_CHECK_MSG(_mi_stat_view(&_mi_stats.pages).current <= pages, "blocks of %zu bytes hold %lld pages", size,
                 (long long)(_mi_stat_view(&_mi_stats.pages).current - pages));
  }
}

// A heap ends while blocks of it wait, here and with another thread.
static void* mi_block_test_free_one(void* p) {
  _mi_free(p);
  return NULL;
}

MI_TEST(heaps_end_meanwhile) {
  for (int round = 0; round < 40; round++) {
    mi_heap_t* const heap = _mi_heap_new();
    void* blocks[40];
    for (size_t i = 0; i < 40; i++) {
      blocks[i] = _mi_theap_alloc(_mi_heap_theap(heap), 100, false);
      MI_REQUIRE(blocks[i] != NULL);
    }
    for (size_t i = 0; i < 20; i++) {
      _mi_free(blocks[i]);
    }
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_block_test_free_one, blocks[20]) == 0);
    pthread_join(thread, NULL);
    if (round % 2 == 0) {
      _mi_heap_destroy(heap);
    } else {
      _mi_heap_delete(heap);
      for (size_t i = 21; i < 40; i++) {
        _mi_free(blocks[i]);
      }
    }
    for (size_t i = 0; i < 100; i++) {
      _mi_free(_mi_alloc(100));
    }
  }
}

// What lies between two requests of one block reads zero for whoever asked for zeroes.
MI_TEST(zero_tails) {
  static const size_t sizes[] = {10, 100, 3000, 50000, 300000, 900000};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
    const size_t n = sizes[s];
    for (int by_plain = 0; by_plain < 2; by_plain++) {
      unsigned char* p = _mi_alloc_zero(n);
      MI_REQUIRE(p != NULL);
      memset(p, 0xee, n);
      p = _mi_realloc(NULL, p, n - n / 3, by_plain == 0);
      MI_REQUIRE(p != NULL);
      memset(p, 0xee, n - n / 3);
      const size_t usable = _mi_usable_size(p);
      p = _mi_realloc(NULL, p, n + n / 20, true);
      MI_REQUIRE(p != NULL);
      MI_CHECK(usable >= n - n / 3);
      if (MI_HAS_PADDING || by_plain == 0) {
        MI_CHECK_MSG(mi_test_all_bytes(p + n - n / 3, n / 3 + n / 20, 0), "%zu bytes", n);
      }
      _mi_free(p);
    }
  }
}

// Freed blocks keep what their heap asks for, but for the link, and that is not taken for a write to them.
MI_TEST(preserved_bytes) {
  mi_heap_t* const heap = _mi_heap_new();
  mi_atomic_store_relaxed(&heap->fill_preserve, 64);
  for (size_t size = 32; size < 3000; size *= 3) {
    uint8_t* const p = _mi_theap_alloc(_mi_heap_theap(heap), size, false);
    MI_REQUIRE(p != NULL);
    memset(p, 0x77, size);
    _mi_free(p);
    const uint8_t* const freed = mi_test_hide(p);
    if (MI_HAS_FILL) {
      const size_t kept = size < 64 ? size & ~(size_t)7 : 64;
      MI_CHECK(mi_test_all_bytes(freed + 8, kept - 8, 0x77) && mi_test_all_bytes(freed + kept, size - kept, MI_FILL_FREED));
    }
    mi_violation_message[0] = 0;
    for (int i = 0; i < 100; i++) {
      MI_CHECK(_mi_theap_alloc(_mi_heap_theap(heap), size, i % 2 == 0) != NULL);
    }
    MI_CHECK_STREQ(mi_violation_message, "");
  }
  _mi_heap_destroy(heap);
}

// Where blocks come and go in bulk more of them are kept ready, each still comes out once, and with the purge delay that ends. What
// is freed once is not kept.
MI_TEST(ready_in_bulk) {
  enum { SIZE = 40,
         IN_BULK = 1500,
         ROUNDS = 4 };
  static uint32_t* blocks[IN_BULK];
  mi_theap_t* const theap = _mi_theap_own();
  if (!MI_HAS_QUARANTINE || _mi_option_get(mi_option_quarantine_blocks) == 0) {
    return;
  }
  // No deadline of before ends it meanwhile.
  _mi_option_set(mi_option_purge_delay, 1000000);
  theap->retire_due = 0;
  mi_quarantine_t* const* const quarantine = &theap->quarantines[_mi_bin_of_size(SIZE + MI_BLOCK_EXTRA)];
  mi_violation_message[0] = 0;
  for (int round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < IN_BULK; i++) {
      blocks[i] = _mi_alloc(SIZE);
      MI_REQUIRE(blocks[i] != NULL && blocks[i][0] == 0);
      *blocks[i] = i + 1;
    }
    for (uint32_t i = 0; i < IN_BULK; i++) {
      MI_REQUIRE(*blocks[i] == i + 1);
      _mi_free(blocks[i]);
    }
    const size_t bound = _mi_hard_quarantine_bound_of(*quarantine);
    const size_t ready = (size_t)(*quarantine)->ready;
    MI_CHECK_MSG(ready <= _mi_hard_quarantine_limit(bound) << (2 * round), "%zu are ready in round %d", ready, round);
    MI_CHECK_MSG(round < ROUNDS - 1 || ready >= IN_BULK - 2 * bound, "%zu are ready", ready);
  }
  MI_CHECK(theap->retire_due != 0);
  _mi_quarantine_settle_down(theap);
  MI_CHECK((*quarantine)->ready <= (int32_t)_mi_hard_quarantine_limit(_mi_hard_quarantine_bound_of(*quarantine)));
  MI_CHECK_STREQ(mi_violation_message, "");
}

// The first free into a full page that its thread has let go of takes it back: the block is not marked as another thread's.
MI_TEST(full_page_is_taken_back) {
  enum { SIZE = 900,
         BLOCKS = 2000 };
  static void* blocks[BLOCKS];
  _mi_option_set(mi_option_page_full_retain, 2);
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = _mi_alloc(SIZE);
    MI_REQUIRE(blocks[i] != NULL);
  }
  size_t taken = 0;
  for (size_t i = 0; i < BLOCKS; i++) {
    mi_page_t* const page = _mi_page_map_get(blocks[i]);
    const bool unowned = mi_atomic_load_relaxed(&page->owner) == MI_TID_NONE;
    const uint64_t index = _mi_page_live_index(page, blocks[i]);
    _mi_free(blocks[i]);
    if (MI_HAS_QUARANTINE && MI_HAS_LIVE_BITS && unowned) {
      taken++;
      MI_CHECK(mi_atomic_load_relaxed(&page->owner) == _mi_theap_own()->tid);
      MI_CHECK(_mi_hard_live_is_free(page->live, index));
    }
  }
  MI_CHECK(!MI_HAS_QUARANTINE || !MI_HAS_LIVE_BITS || taken > 5);
}

MI_TEST_MAIN()
