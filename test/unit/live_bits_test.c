// Owns: tests of hardening/live-bits: the index, and what each order of frees by owner and others is told.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the words of a page stand alone; nothing is allocated.
#include "hardening/live-bits.h"

#include <pthread.h>
#include <sched.h>

#include "test/lib/test.h"

static mi_live_word_t mi_live_bits_test_words[MI_LIVE_META_SIZE / sizeof(mi_live_word_t)];

static void mi_live_bits_test_clear(void) { memset((void*)(uintptr_t)mi_live_bits_test_words, 0, sizeof(mi_live_bits_test_words)); }

static const struct {
  uint64_t offset;
  unsigned shift;
  uint64_t index;  // UINT64_MAX: none
} mi_live_bits_test_indices[] = {
    {0, 4, 0},
    {16, 4, 1},
    {65520, 4, 4095},
    {8, 4, UINT64_MAX},
    {1, 4, UINT64_MAX},
    {65536, 4, UINT64_MAX},
    {128, 7, 1},
    {64, 7, UINT64_MAX},
    {524288 - 128, 7, 4095},
    {524288, 7, UINT64_MAX},
    {1024, 10, 1},
    {512, 10, UINT64_MAX},
    {4194304 - 1024, 10, 4095},
    {4194304, 10, UINT64_MAX},
    {UINT64_MAX, 4, UINT64_MAX},
    {UINT64_MAX - 15, 4, UINT64_MAX},
};

MI_TEST(index) {
  for (size_t i = 0; i < sizeof(mi_live_bits_test_indices) / sizeof(mi_live_bits_test_indices[0]); i++) {
    const uint64_t index = _mi_hard_live_index(mi_live_bits_test_indices[i].offset, mi_live_bits_test_indices[i].shift);
    if (mi_live_bits_test_indices[i].index == UINT64_MAX) {
      MI_CHECK_MSG(index >= MI_PAGE_GRANULES, "row %zu", i);
    } else {
      MI_CHECK_EQ(index, mi_live_bits_test_indices[i].index);
    }
  }
}

MI_TEST(out_of_range) {
  static const uint64_t bad[] = {MI_PAGE_GRANULES, MI_PAGE_GRANULES + 1, UINT64_MAX, UINT64_C(1) << 60};
  mi_live_bits_test_clear();
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    MI_CHECK(!_mi_hard_live_set(mi_live_bits_test_words, bad[i]));
    MI_CHECK(!_mi_hard_live_clear(mi_live_bits_test_words, bad[i]));
    MI_CHECK(!_mi_hard_live_mark_remote(mi_live_bits_test_words, bad[i]));
    MI_CHECK(!_mi_hard_live_collect(mi_live_bits_test_words, bad[i]));
    MI_CHECK(!_mi_hard_live_test(mi_live_bits_test_words, bad[i]));
    MI_CHECK(!_mi_hard_live_is_free(mi_live_bits_test_words, bad[i]));
  }
}

// Each step is a letter: s set, c clear by the owner, r mark by another, k collect, t test,
// q mark what waited here, w or m that what waited here or was marked meanwhile is unchanged, i is marked; upper case where
// it must fail.
static const char* const mi_live_bits_test_orders[] = {
    "Tstc",
    "sS",
    "C",
    "scC",
    "scR",
    "scK",
    "srR",
    "srC",
    "srTk",
    "srkTC",
    "srkR",
    "srkstc",
    "scstrk",
    "K",
    "sK",
    "R",
    "sQ",
    "scq",
    "scqQ",
    "scqTRCS",
    "srQ",
    "scwstc",
    "sWM",
    "srWmw",
    "srmM",
    "scM",
    "srikI",
    "sIcI",
    "scqW",
    MI_HAS_QUARANTINE ? "scqkstc" : "scqKstc",
    "srmstc",
};

MI_TEST(orders) {
  static const uint64_t places[] = {0, 1, 63, 64, 2048, MI_PAGE_GRANULES - 1};
  for (size_t i = 0; i < sizeof(mi_live_bits_test_orders) / sizeof(mi_live_bits_test_orders[0]); i++) {
    for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
      mi_live_bits_test_clear();
      for (const char* step = mi_live_bits_test_orders[i]; *step != 0; step++) {
        const char c = (char)(*step | 0x20);
        const bool done = c == 's' ? _mi_hard_live_set(mi_live_bits_test_words, places[k])
            : c == 'c'             ? _mi_hard_live_clear(mi_live_bits_test_words, places[k])
            : c == 'r'             ? _mi_hard_live_mark_remote(mi_live_bits_test_words, places[k])
            : c == 'k'             ? _mi_hard_live_collect(mi_live_bits_test_words, places[k])
            : c == 'q'             ? _mi_hard_live_mark_waited(mi_live_bits_test_words, places[k])
            : c == 'w'             ? _mi_hard_live_waited(mi_live_bits_test_words, places[k], false)
            : c == 'm'             ? _mi_hard_live_waited(mi_live_bits_test_words, places[k], true)
            : c == 'i'             ? _mi_hard_live_is_marked(mi_live_bits_test_words, places[k])
                                   : _mi_hard_live_test(mi_live_bits_test_words, places[k]);
        MI_CHECK_MSG(done == (*step >= 'a'), "order %s, step %zu, place %zu", mi_live_bits_test_orders[i],
                     (size_t)(step - mi_live_bits_test_orders[i]), (size_t)places[k]);
      }
    }
  }
}

MI_TEST(neighbours_are_left_alone) {
  mi_live_bits_test_clear();
  for (uint64_t i = 0; i < MI_PAGE_GRANULES; i += 2) {
    MI_CHECK(_mi_hard_live_set(mi_live_bits_test_words, i));
  }
  for (uint64_t i = 0; i < MI_PAGE_GRANULES; i++) {
    MI_CHECK_EQ(_mi_hard_live_test(mi_live_bits_test_words, i), i % 2 == 0);
  }
  for (uint64_t i = 0; i < MI_PAGE_GRANULES; i += 4) {
    MI_CHECK(_mi_hard_live_mark_remote(mi_live_bits_test_words, i));
  }
  for (uint64_t i = 0; i < MI_PAGE_GRANULES; i++) {
    MI_CHECK_EQ(_mi_hard_live_test(mi_live_bits_test_words, i), i % 4 == 2);
  }
}

// Every number of live blocks there may be is counted, wherever they are.
MI_TEST(live_blocks_are_counted) {
  mi_live_bits_test_clear();
  MI_CHECK_EQ(_mi_hard_live_count(mi_live_bits_test_words), 0);
  // An odd step comes to each place once.
  for (uint64_t i = 0, place = 0; i < MI_PAGE_GRANULES; i++, place = (place + 1001) % MI_PAGE_GRANULES) {
    MI_CHECK(_mi_hard_live_set(mi_live_bits_test_words, place));
    MI_CHECK_EQ(_mi_hard_live_count(mi_live_bits_test_words), i + 1);
  }
  for (uint64_t i = 0; i < MI_PAGE_GRANULES; i++) {
    MI_CHECK(i % 3 == 0 ? _mi_hard_live_mark_remote(mi_live_bits_test_words, i) : _mi_hard_live_clear(mi_live_bits_test_words, i));
    MI_CHECK_EQ(_mi_hard_live_count(mi_live_bits_test_words), MI_PAGE_GRANULES - i - 1);
  }
}

// Two threads free the same block at once. The owner has looked at the remote word, the other thread at the owner's word,
// and then both write: what both took for the first free is in two lists. It must not be handed out like that.
MI_TEST(marked_block_is_not_handed_out) {
  mi_live_bits_test_clear();
  MI_CHECK(_mi_hard_live_set(mi_live_bits_test_words, 5));
  MI_CHECK(_mi_hard_live_clear(mi_live_bits_test_words, 5));
  // The other thread's second half.
  mi_atomic_or_acq_rel(mi_live_remote_word(mi_live_bits_test_words, 5), mi_live_bit(5));
  MI_CHECK(!_mi_hard_live_set(mi_live_bits_test_words, 5));
}

// One block, freed twice by another thread while the owner collects: exactly one free is told that it was the first.

static _Atomic(long) mi_live_bits_test_first;
static _Atomic(long) mi_live_bits_test_round;
static _Atomic(long) mi_live_bits_test_answers;

static void* mi_live_bits_test_free(void* arg) {
  const long rounds = *(const long*)arg;
  for (long round = 1; round <= rounds; round++) {
    while (mi_atomic_load_acquire(&mi_live_bits_test_round) < round) {
      sched_yield();
    }
    if (_mi_hard_live_mark_remote(mi_live_bits_test_words, 70)) {
      atomic_fetch_add(&mi_live_bits_test_first, 1);
    }
    atomic_fetch_add(&mi_live_bits_test_answers, 1);
  }
  return NULL;
}

MI_TEST(two_remote_frees_and_a_collect) {
  long rounds = mi_test_scale("MI_TEST_ROUNDS", 20000);
  mi_live_bits_test_clear();
  pthread_t threads[2];
  for (int t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_live_bits_test_free, &rounds) == 0);
  }
  long twice = 0;
  for (long round = 1; round <= rounds; round++) {
    mi_atomic_store_relaxed(&mi_live_bits_test_first, 0);
    MI_CHECK(_mi_hard_live_set(mi_live_bits_test_words, 70));
    mi_atomic_store_release(&mi_live_bits_test_round, round);
    while (mi_atomic_load_acquire(&mi_live_bits_test_first) == 0) {
      sched_yield();
    }
    MI_CHECK(_mi_hard_live_collect(mi_live_bits_test_words, 70));
    while (mi_atomic_load_acquire(&mi_live_bits_test_answers) < 2 * round) {
      sched_yield();
    }
    twice += mi_atomic_load_relaxed(&mi_live_bits_test_first) != 1;
    // What a second mark left behind does not belong to the next round.
    mi_live_bits_test_clear();
  }
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  MI_CHECK_MSG(twice == 0, "%ld of %ld double frees went unseen", twice, rounds);
}

MI_TEST_MAIN()
