// Owns: tests of heap/single: blocks that are pages, in arenas and in memory of their own: freed, resized, moved, looked up.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what the counts and the page map say of a single is so before and after every change.
#include "src/heap/single.h"

#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

static int64_t mi_single_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

static const struct {
  const char* name;
  size_t size;
  size_t align;
  bool own_memory;
} mi_single_test_kinds[] = {
    {"small in an arena", 3 * MI_SLICE_SIZE, 2 * MI_SLICE_SIZE, false},
    {"large in an arena", 3 * (size_t)MI_MIB, MI_SLICE_SIZE, false},
    {"beyond the map's entries", 9 * (size_t)MI_MIB, MI_SLICE_SIZE, false},
    {"own memory", 300 * (size_t)MI_MIB, MI_SLICE_SIZE, true},
    {"own memory, aligned", MI_SLICE_SIZE, 64 * (size_t)MI_MIB, true},
};
enum { KINDS = sizeof(mi_single_test_kinds) / sizeof(mi_single_test_kinds[0]) };

static mi_page_t* mi_single_test_new(size_t kind, bool zero) {
  MI_REQUIRE(_mi_process_init());
  mi_page_t* const page = _mi_page_new_single(NULL, mi_single_test_kinds[kind].size, mi_single_test_kinds[kind].align, false, zero);
  MI_REQUIRE(page != NULL);
  return page;
}

// How long a run of the block's size is at least and at most, with what is kept inaccessible around it.
static bool mi_single_test_fits(const mi_page_t* page, size_t size) {
  const size_t usable = _mi_page_single_usable(page);
  const size_t guards = MI_HAS_GUARD_PAGES || MI_HAS_RANDOM_LARGE ? 2 * MI_SLICE_SIZE : 0;
  const size_t run = page->slice_count * MI_SLICE_SIZE;
  return usable >= size && usable < size + MI_SLICE_SIZE && run >= page->block_size && run <= _mi_align_up(size, MI_SLICE_SIZE) + guards;
}

// Offsets are those in the block. The ends and every slice's first and last byte.
static bool mi_single_test_reads_zero(const mi_page_t* page, size_t from, size_t to) {
  for (size_t at = from; at < to; at += MI_SLICE_SIZE / 2) {
    if (page->single_start[at] != 0) {
      return false;
    }
  }
  return from == to || page->single_start[to - 1] == 0;
}

static void mi_single_test_touch(const mi_page_t* page, size_t from, size_t to) {
  for (size_t at = from; at < to; at += MI_SLICE_SIZE / 2) {
    page->single_start[at] = (uint8_t)(1 + at / MI_SLICE_SIZE % 250);
  }
}

static bool mi_single_test_touched(const mi_page_t* page, size_t from, size_t to) {
  for (size_t at = from; at < to; at += MI_SLICE_SIZE / 2) {
    if (page->single_start[at] != (uint8_t)(1 + at / MI_SLICE_SIZE % 250)) {
      return false;
    }
  }
  return true;
}

// The map knows the first slices, the slow look-up all of them, and neither knows what lies behind.
static void mi_single_test_check_found(mi_page_t* page, const char* name) {
  for (size_t slice = 0; slice < page->slice_count; slice++) {
    const uint8_t* const p = page->start + slice * MI_SLICE_SIZE;
    mi_page_t* const expected = slice < MI_PAGE_MAP_SLICES_MAX ? page : NULL;
    if (!MI_CHECK_MSG(_mi_page_map_find(p) == expected, "%s: slice %zu of %zu", name, slice, page->slice_count)) {
      return;
    }
  }
  const uint8_t* const end = page->start + page->slice_count * MI_SLICE_SIZE;
  MI_CHECK_PTR_EQ(_mi_page_of_any(page->start), page);
  MI_CHECK_PTR_EQ(_mi_page_of_any(end - 1), page);
  MI_CHECK(_mi_page_map_find(end) != page);
  MI_CHECK(_mi_page_of_any(end) != page);
  MI_CHECK(_mi_page_of_any(page->start - 1) != page);
}

MI_TEST(made_and_freed) {
  for (size_t k = 0; k < KINDS; k++) {
    const int64_t pages = mi_single_test_current(&_mi_stats.pages);
    const int64_t huge = mi_single_test_current(&_mi_stats.malloc_huge);
    const int64_t bytes = mi_single_test_current(&_mi_stats.page_committed);
    for (int round = 0; round < 3; round++) {
      mi_page_t* const page = mi_single_test_new(k, round > 0);
      const char* const name = mi_single_test_kinds[k].name;
      uint8_t* const start = page->single_start;
      MI_CHECK_MSG((page->arena == NULL) == mi_single_test_kinds[k].own_memory, "%s", name);
      const size_t usable = _mi_page_single_usable(page);
      MI_CHECK(_mi_is_aligned(start, mi_single_test_kinds[k].align));
      MI_CHECK(_mi_page_is_single(page) && mi_single_test_fits(page, mi_single_test_kinds[k].size));
      MI_CHECK_MSG(round == 0 || mi_single_test_reads_zero(page, 0, usable), "%s is not zero", name);
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.pages), pages + 1);
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.malloc_huge), huge + (int64_t)page->block_size);
      mi_single_test_check_found(page, name);
      mi_single_test_touch(page, 0, usable);
      MI_CHECK(!_mi_page_was_block(start + 16));
      MI_CHECK(_mi_single_free(page));
      MI_CHECK(_mi_page_map_find(start) == NULL && _mi_page_of_any(start) == NULL);
      MI_CHECK_MSG(_mi_page_was_block(start), "%s is forgotten", name);
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.pages), pages);
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.malloc_huge), huge);
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.page_committed), bytes);
    }
  }
}

// Sizes in slices, one after the other: grown and shrunk in place where that is possible, and unchanged where not.
static const size_t mi_single_test_sizes[] = {20, 40, 63, 64, 65, 66, 130, 64, 63, 20, 150, 16, 16};

MI_TEST(resized_in_place) {
  for (size_t k = 0; k < KINDS; k++) {
    bool is_zero;
    mi_page_t* const page = mi_single_test_new(k, false);
    const char* const name = mi_single_test_kinds[k].name;
    const int64_t committed = mi_single_test_current(&_mi_stats.page_committed) - (int64_t)(page->slice_count * MI_SLICE_SIZE);
    const int64_t huge = mi_single_test_current(&_mi_stats.malloc_huge) - (int64_t)page->block_size;
    uint8_t* const start = page->start;
    const size_t offset = page->block_size - _mi_page_single_usable(page);
    mi_single_test_touch(page, 0, _mi_page_single_usable(page));
    for (size_t i = 0; i < sizeof(mi_single_test_sizes) / sizeof(mi_single_test_sizes[0]); i++) {
      const size_t old = _mi_page_single_usable(page);
      const size_t size = mi_single_test_sizes[i] * MI_SLICE_SIZE - i % 2;
      const bool done = _mi_page_single_resize(page, offset + size, &is_zero);
      const size_t usable = _mi_page_single_usable(page);
      MI_CHECK_MSG(done ? usable >= size && usable < size + 2 * MI_SLICE_SIZE : usable == old, "%s: %zu slices", name,
                   mi_single_test_sizes[i]);
      MI_CHECK(page->block_size <= page->slice_count * MI_SLICE_SIZE);
      MI_CHECK(page->start == start && page->single_start == start + offset);
      MI_CHECK_MSG(mi_single_test_touched(page, 0, _mi_min(old, usable)), "%s: content", name);
      if (usable > old) {
        MI_CHECK_MSG(!is_zero || mi_single_test_reads_zero(page, _mi_align_up(old, MI_SLICE_SIZE / 2), usable), "%s: not zero", name);
      }
      mi_single_test_touch(page, 0, usable);
      mi_single_test_check_found(page, name);
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.page_committed), committed + (int64_t)(page->slice_count * MI_SLICE_SIZE));
      MI_CHECK_EQ(mi_single_test_current(&_mi_stats.malloc_huge), huge + (int64_t)page->block_size);
    }
    MI_CHECK(_mi_single_free(page));
    MI_CHECK_EQ(mi_single_test_current(&_mi_stats.page_committed), committed);
    MI_CHECK_EQ(mi_single_test_current(&_mi_stats.malloc_huge), huge);
    for (size_t slice = 0; slice < 150; slice++) {
      MI_CHECK(_mi_page_map_find(start + slice * MI_SLICE_SIZE) == NULL);
    }
  }
}

// What is moved is all there, and nothing else is.
MI_TEST(moved) {
  for (size_t k = 0; k < KINDS; k++) {
    mi_page_t* const page = mi_single_test_new(k, false);
    const size_t old = _mi_page_single_usable(page);
    const int64_t pages = mi_single_test_current(&_mi_stats.pages);
    mi_single_test_touch(page, 0, old);
    MI_CHECK(_mi_single_move(page, old) == NULL && _mi_single_move(page, old - 1) == NULL);
    mi_page_t* larger = _mi_single_move(page, old + 5 * MI_SLICE_SIZE + 1);
    MI_CHECK(larger == NULL || old >= MI_SINGLE_MOVE_MIN);
    if (larger != NULL) {
      MI_CHECK(mi_single_test_fits(larger, old + 5 * MI_SLICE_SIZE + 1));
      MI_CHECK(mi_single_test_reads_zero(larger, _mi_align_up(old, MI_SLICE_SIZE / 2), _mi_page_single_usable(larger)));
      MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&larger->heap), _mi_heap_main());
    } else {
      larger = page;
    }
    MI_CHECK_EQ(mi_single_test_current(&_mi_stats.pages), pages);
    MI_CHECK_MSG(mi_single_test_touched(larger, 0, old), "%s", mi_single_test_kinds[k].name);
    mi_single_test_check_found(larger, mi_single_test_kinds[k].name);
    MI_CHECK(_mi_single_free(larger));
  }
}

// A block handed out far inside its page is found by its own address.
MI_TEST(handed_out_inside) {
  static const size_t offsets[] = {16, MI_SLICE_SIZE, 63 * MI_SLICE_SIZE + 16, 64 * MI_SLICE_SIZE, 100 * MI_SLICE_SIZE + 8};
  for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
    mi_page_t* const page = mi_single_test_new(2, false);
    const size_t offset = (size_t)(page->single_start - page->start) + offsets[i];
    uint8_t* const p = page->start + offset;
    MI_CHECK(_mi_page_mark_interior(page, p));
    MI_CHECK_PTR_EQ(_mi_page_map_find(p), page);
    MI_CHECK_EQ(_mi_usable_size(p), page->block_size - offset);
    _mi_free(p);
    MI_CHECK(_mi_page_map_find(p) == NULL && _mi_page_of_any(p) == NULL);
    // What is gone is looked for as far back as a large page is long.
    MI_CHECK_EQ(_mi_page_was_block(p), offset < MI_LARGE_PAGE_SLICES * MI_SLICE_SIZE);
  }
}

// Two threads free the same block: exactly one does.

static pthread_barrier_t mi_single_test_gate;
static mi_page_t* mi_single_test_page;
static _Atomic(int) mi_single_test_frees;

enum { RACES = 300 };

static void* mi_single_test_race(void* arg) {
  for (int i = 0; i < RACES; i++) {
    pthread_barrier_wait(&mi_single_test_gate);
    if (_mi_single_free(mi_single_test_page)) {
      atomic_fetch_add(&mi_single_test_frees, 1);
    }
    pthread_barrier_wait(&mi_single_test_gate);
  }
  return arg;
}

MI_TEST(freed_once) {
  pthread_t threads[2];
  pthread_barrier_init(&mi_single_test_gate, NULL, 3);
  for (int t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_single_test_race, NULL) == 0);
  }
  for (int i = 0; i < RACES; i++) {
    mi_single_test_page = mi_single_test_new(1, false);
    mi_atomic_store_relaxed(&mi_single_test_frees, 0);
    pthread_barrier_wait(&mi_single_test_gate);
    pthread_barrier_wait(&mi_single_test_gate);
    MI_CHECK_EQ(mi_atomic_load_relaxed(&mi_single_test_frees), 1);
  }
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  pthread_barrier_destroy(&mi_single_test_gate);
}

// Queries of any address while singles come, go, and change their size.

static _Atomic(bool) mi_single_test_stop;

static void* mi_single_test_resize_all_the_time(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!mi_atomic_load_relaxed(&mi_single_test_stop)) {
    bool is_zero;
    mi_page_t* const page = mi_single_test_new(3, false);
    for (int i = 0; i < 20; i++) {
      (void)_mi_page_single_resize(page, (1 + mi_test_random(&seed) % 300) * MI_SLICE_SIZE, &is_zero);
    }
    MI_CHECK(_mi_single_free(page));
  }
  return NULL;
}

MI_TEST(queries_beside_resizing) {
  pthread_t threads[2];
  static int foreign;
  mi_atomic_store_relaxed(&mi_single_test_stop, false);
  for (uintptr_t t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_single_test_resize_all_the_time, (void*)(t + 1)) == 0);
  }
  for (int i = 0; i < 3000; i++) {
    MI_CHECK(!_mi_is_in_heap(&foreign));
  }
  mi_atomic_store_relaxed(&mi_single_test_stop, true);
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
}

// A heap is deleted while another thread's block of it moves: the block becomes the main heap's, wherever it is by then.

static void* mi_single_test_move_up(void* arg) {
  for (int i = 0; i < RACES; i++) {
    pthread_barrier_wait(&mi_single_test_gate);
    for (int k = 0; k < 3; k++) {
      mi_page_t* const larger = _mi_single_move(mi_single_test_page, mi_single_test_page->block_size + MI_SLICE_SIZE);
      mi_single_test_page = larger != NULL ? larger : mi_single_test_page;
    }
    pthread_barrier_wait(&mi_single_test_gate);
  }
  return arg;
}

MI_TEST(moved_while_its_heap_is_deleted) {
  pthread_t thread;
  int lost = 0;
  pthread_barrier_init(&mi_single_test_gate, NULL, 2);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_single_test_move_up, NULL) == 0);
  for (int i = 0; i < RACES; i++) {
    mi_heap_t* const heap = _mi_heap_new();
    MI_REQUIRE(heap != NULL);
    mi_single_test_page = _mi_page_new_single(_mi_heap_theap(heap), MI_MIB, MI_SLICE_SIZE, false, false);
    MI_REQUIRE(mi_single_test_page != NULL);
    pthread_barrier_wait(&mi_single_test_gate);
    for (volatile int spin = i * 20; spin > 0; spin--) {
    }
    _mi_heap_delete(heap);
    pthread_barrier_wait(&mi_single_test_gate);
    lost += mi_atomic_load_relaxed(&mi_single_test_page->heap) != _mi_heap_main();
    MI_CHECK(_mi_single_free(mi_single_test_page));
  }
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&mi_single_test_gate);
  MI_CHECK_MSG(lost == 0, "%d of %d blocks are left with a heap that is gone", lost, (int)RACES);
}

MI_TEST_MAIN()
