// Owns: tests of heap/check: the walk finds nothing in a heap that works, and each kind of damage in one that does not.
// May include: everything.
// Called by: the test runner, under every variant; where no expensive assertions run only that the option does nothing.
// Invariants: damage is done in children.
#include "src/heap/check.h"

#include <pthread.h>

#include "mimalloc.h"
#include "src/heap/heap.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { SIZE = 48,
       BLOCKS = 60 };

static mi_theap_t* mi_check_test_theap;
static mi_page_t* mi_check_test_page;
static uint8_t* mi_check_test_blocks[BLOCKS];

// A page with live blocks, and free ones in both lists.
static void mi_check_test_begin(void) {
  mi_option_set(mi_option_guarded_sample_rate, 0);
  mi_option_set(mi_option_backtrace, 0);
  for (size_t i = 0; i < BLOCKS; i++) {
    mi_check_test_blocks[i] = mi_malloc(SIZE);
    MI_REQUIRE(mi_check_test_blocks[i] != NULL);
  }
  for (size_t i = 1; i < BLOCKS; i += 2) {
    mi_free(mi_check_test_blocks[i]);
  }
  mi_check_test_page = _mi_page_map_find(mi_check_test_blocks[0]);
  mi_check_test_theap = _mi_theap_own();
  MI_REQUIRE(mi_check_test_page != NULL && mi_check_test_page->theap == mi_check_test_theap);
}

static mi_page_queue_t* mi_check_test_queue(void) { return &mi_check_test_theap->queues[mi_check_test_page->bin]; }

static void mi_check_test_count(void) { mi_check_test_queue()->count++; }
static void mi_check_test_retired(void) { mi_check_test_queue()->retired++; }
static void mi_check_test_last(void) { mi_check_test_queue()->last = &_mi_page_empty; }
static void mi_check_test_prev(void) { mi_check_test_page->prev = mi_check_test_page; }
static void mi_check_test_circle(void) { mi_check_test_queue()->last->next = mi_check_test_queue()->first; }
static void mi_check_test_slices(void) { mi_check_test_theap->slices--; }
static void mi_check_test_direct(void) {
  mi_check_test_theap->direct[mi_check_test_page->block_size / MI_BLOCK_ALIGN] = &_mi_page_empty;
}
static void mi_check_test_used(void) { mi_check_test_page->used--; }
static void mi_check_test_capacity(void) { mi_check_test_page->capacity--; }
static void mi_check_test_owner(void) { mi_atomic_store_relaxed(&mi_check_test_page->owner, MI_TID_NONE); }
static void mi_check_test_remote(void) { mi_atomic_store_relaxed(&mi_check_test_page->remote, 0); }
static void mi_check_test_more_freed(void) {
  const uint64_t more = _mi_page_in_use(mi_check_test_page) + 1;
  mi_atomic_store_relaxed(&mi_check_test_page->remote, MI_REMOTE_OWNED | more << MI_REMOTE_COUNT_SHIFT);
}
static void mi_check_test_beyond(void) { mi_check_test_page->capacity = mi_check_test_page->reserved + 1; }
static void mi_check_test_bin(void) { mi_check_test_page->bin++; }
static void mi_check_test_other_theap(void) { mi_check_test_page->theap = NULL; }
static void mi_check_test_place(void) { mi_check_test_page->slice_index++; }
static void mi_check_test_committed(void) {
  (void)_mi_bitmap_clear(mi_check_test_page->arena->committed, mi_check_test_page->slice_index, 1);
}
static void mi_check_test_lost(void) {
  mi_block_t* const first = mi_check_test_page->local_free;
  mi_check_test_page->local_free = _mi_block_next(mi_check_test_page, first);
}
static void mi_check_test_twice(void) {
  _mi_block_set_next(mi_check_test_page, mi_check_test_page->local_free, mi_check_test_page->local_free);
}
static void mi_check_test_live_lost(void) {
  (void)_mi_hard_live_clear(mi_check_test_page->live, _mi_page_live_index(mi_check_test_page, mi_check_test_blocks[2]));
}
static void mi_check_test_live_more(void) {
  // Beyond what was ever listed, where both bits are set.
  const uint32_t beyond = mi_check_test_page->reserved - 1;
  const uint64_t index = _mi_page_live_index(mi_check_test_page, mi_check_test_page->start + beyond * mi_check_test_page->block_size);
  mi_atomic_and_acq_rel(mi_live_remote_word(mi_check_test_page->live, index), ~mi_live_bit(index));
}
static void mi_check_test_free_slices(void) {
  (void)_mi_bitmap_set(mi_check_test_page->arena->free, mi_check_test_page->slice_index, 1);
}
static void mi_check_test_purge(void) {
  (void)_mi_bitmap_set(mi_check_test_page->arena->purge, mi_check_test_page->slice_index, 1);
}
static void mi_check_test_heads(void) {
  (void)_mi_bitmap_clear(mi_check_test_page->arena->heads, mi_check_test_page->slice_index, 1);
}
static void mi_check_test_map(void) { _mi_page_map_unregister(mi_check_test_page->start, 1); }
static void mi_check_test_write(void) { mi_check_test_blocks[1][20] = 1; }
static void mi_check_test_overflow(void) { memset(mi_check_test_blocks[0] + SIZE, 'x', 16); }
static void mi_check_test_link(void) { memset(mi_check_test_blocks[BLOCKS - 1], 'x', 8); }

typedef struct mi_check_case_s {
  const char* name;
  void (*damage)(void);
  const char* said;  // a regular expression
  bool collects;     // it is found when the thread collects, else by an allocation
} mi_check_case_t;

static const mi_check_case_t mi_check_cases[] = {
    {"count", &mi_check_test_count, "assertion failed: .*check\\.c:.*queue->count == count", false},
    {"retired", &mi_check_test_retired, "assertion failed: .*check\\.c:.*queue->retired == retired", false},
    {"last", &mi_check_test_last, "assertion failed: .*check\\.c:.*queue->last == before", false},
    {"prev", &mi_check_test_prev, "assertion failed: .*check\\.c:.*page->prev == before", false},
    {"circle", &mi_check_test_circle, "assertion failed: .*check\\.c:.*page->prev == before", false},
    {"slices", &mi_check_test_slices, "assertion failed: .*check\\.c:.*theap->slices == slices", true},
    {"direct", &mi_check_test_direct, "assertion failed: .*check\\.c:.*mi_check_direct: ", false},
    {"used", &mi_check_test_used, "assertion failed: .*check\\.c:.*mi_check_page: .*free == page->capacity - in_use", false},
    {"capacity", &mi_check_test_capacity, "assertion failed: .*check\\.c:.*mi_check_page: ", false},
    {"owner", &mi_check_test_owner, "assertion failed: .*check\\.c:.*mi_check_page: .*owner", false},
    {"remote", &mi_check_test_remote, "assertion failed: .*check\\.c:.*mi_check_page: .*remote &", false},
    {"more-freed", &mi_check_test_more_freed, "assertion failed: .*check\\.c:.*mi_check_page: .*_mi_remote_count", false},
    {"beyond", &mi_check_test_beyond, "assertion failed: .*check\\.c:.*mi_check_page: .*page->capacity <= page->reserved", false},
    {"bin", &mi_check_test_bin, "assertion failed: .*check\\.c:.*mi_check_page: .*page->bin == bin", false},
    {"theap", &mi_check_test_other_theap, "assertion failed: .*check\\.c:.*mi_check_page: .*page->theap == theap", false},
    {"place", &mi_check_test_place, "assertion failed: .*check\\.c:.*mi_check_place: .*page->start == ", false},
    {"committed", &mi_check_test_committed, "assertion failed: .*check\\.c:.*mi_check_place: .*arena->committed", false},
    {"lost", &mi_check_test_lost, "assertion failed: .*check\\.c:.*mi_check_page: .*free == page->capacity - in_use", false},
    {"twice", &mi_check_test_twice, "assertion failed: .*check\\.c:.*mi_check_list: ", false},
    {"live-lost", &mi_check_test_live_lost, "assertion failed: .*check\\.c:.*mi_check_page: .*live == in_use", false},
    {"live-more", &mi_check_test_live_more, "assertion failed: .*check\\.c:.*mi_check_blocks: ", false},
    {"free-slices", &mi_check_test_free_slices, "assertion failed: .*check\\.c:.*mi_check_place: .*arena->free", false},
    {"purge", &mi_check_test_purge, "assertion failed: .*check\\.c:.*mi_check_place: .*arena->purge", false},
    {"heads", &mi_check_test_heads, "assertion failed: .*check\\.c:.*mi_check_place: .*arena->heads", false},
    {"map", &mi_check_test_map, "assertion failed: .*check\\.c:.*mi_check_place: .*_mi_page_map_find", false},
    {"write", &mi_check_test_write, "write-after-free: block 0x[0-9a-f]+ of .*its byte 20 holds 0x01 instead of 0x", false},
    {"overflow", &mi_check_test_overflow, "overflow: block 0x[0-9a-f]+ of .*its byte [0-9]+ holds 0x78", false},
    {"link", &mi_check_test_link, "free-list-corruption: ", false},
};

enum { CASES = sizeof(mi_check_cases) / sizeof(mi_check_cases[0]) };

// What leads to the walk, and to nothing else that would see the damage.
static void mi_check_test_look(bool collects) {
  if (collects) {
    mi_collect(false);
  } else {
    mi_free(mi_malloc(300 * 1024));
  }
}

static void mi_check_test_case(void* arg) {
  const mi_check_case_t* const c = arg;
  mi_check_test_begin();
  mi_option_set(mi_option_check_heap, 1);
  mi_check_test_look(c->collects);
  c->damage();
  mi_check_test_look(c->collects);
}

MI_TEST(damage) {
  for (size_t i = 0; i < CASES && MI_ASSERT_LEVEL >= 3; i++) {
    static mi_test_child_t child;
    mi_test_child_run(&child, &mi_check_test_case, (void*)(uintptr_t)&mi_check_cases[i], 20000);
    MI_CHECK_MSG(child.signal == SIGABRT && mi_test_child_said(&child, mi_check_cases[i].said), "%s: signal %d: %s", mi_check_cases[i].name,
                 child.signal, child.err);
  }
}

// Off, as it is by default, nobody looks; and where no expensive assertions run the option changes nothing.
static void mi_check_test_off(void* arg) {
  mi_check_test_begin();
  MI_CHECK_EQ(mi_option_get(mi_option_check_heap), 0);
  mi_option_set(mi_option_check_heap, arg != NULL);
  mi_check_test_look(false);
  mi_check_test_count();
  mi_check_test_look(false);
  mi_check_test_look(true);
  mi_check_test_queue()->count--;
}

MI_TEST(off) {
  MI_CHECK_IN_CHILD(&mi_check_test_off, NULL, 20000);
  if (MI_ASSERT_LEVEL < 3) {
    MI_CHECK_IN_CHILD(&mi_check_test_off, &mi_check_test_page, 20000);
  }
}

// At one of so many slow calls.
static void mi_check_test_seldom(void* arg) {
  (void)arg;
  mi_check_test_begin();
  mi_option_set(mi_option_check_heap, 4);
  mi_check_test_theap->slow_calls = 1;
  mi_check_test_count();
  for (int i = 0; i < 3; i++) {
    mi_check_test_look(false);
  }
  static const char text[] = "three passed\n";
  mi_test_write(2, text, sizeof(text) - 1);
  mi_check_test_look(false);
}

MI_TEST(seldom) {
  static mi_test_child_t child;
  if (MI_ASSERT_LEVEL < 3) {
    return;
  }
  mi_test_child_run(&child, &mi_check_test_seldom, NULL, 20000);
  MI_CHECK_MSG(child.signal == SIGABRT && mi_test_child_said(&child, "^three passed$") && mi_test_child_said(&child, "queue->count == count"),
               "signal %d: %s", child.signal, child.err);
}

// Work of all kinds, in which threads free each other's blocks and change their sizes.

enum { THREADS = 3,
       SLOTS = 400,
       ROUNDS = 6000 };

static _Atomic(uintptr_t) mi_check_test_slots[SLOTS];

static void* mi_check_test_work(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t slot = (size_t)(r >> 8) % SLOTS;
    const size_t size = (r & 15) == 0 ? (size_t)(r >> 20) % 200000 : (size_t)(r >> 20) % 1200;
    void* const old = (void*)mi_atomic_exchange_acq_rel(&mi_check_test_slots[slot], 0);
    void* p = NULL;
    if ((r & 48) == 0) {
      p = mi_realloc(old, size);
    } else {
      mi_free(old);
      p = (r & 48) == 16 ? mi_malloc_aligned(size, (size_t)64 << (r >> 16 & 3)) : mi_calloc(1, size);
    }
    if (MI_CHECK(p != NULL)) {
      memset(p, (int)r, size);
      mi_free((void*)mi_atomic_exchange_acq_rel(&mi_check_test_slots[slot], (uintptr_t)p));
    }
    if (i % 500 == 0) {
      mi_collect((r & 64) != 0);
    }
  }
  return NULL;
}

static void mi_check_test_all(void* arg) {
  (void)arg;
  // What takes no step beside the threads' own is checked all the time.
  mi_option_set(mi_option_check_heap, 8);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_check_test_work, (void*)(i + 1)) == 0);
  }
  (void)mi_check_test_work((void*)(uintptr_t)THREADS);
  for (uintptr_t i = 0; i < THREADS; i++) {
    MI_CHECK(pthread_join(threads[i], NULL) == 0);
  }
  mi_heap_t* const heap = mi_heap_new();
  for (int i = 0; i < 2000; i++) {
    MI_CHECK(mi_heap_malloc(heap, (size_t)i) != NULL);
  }
  mi_heap_delete(heap);
  mi_collect(true);
}

MI_TEST(nothing_is_found) { MI_CHECK_IN_CHILD(&mi_check_test_all, NULL, 60000); }

MI_TEST_MAIN()
