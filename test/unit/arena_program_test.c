// Owns: tests of arenas that the program asks for: what is refused, heaps in one arena, threads, options.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test leaves behind is an arena that serves nobody any more; what changes the process has a child.
#include "src/region/arena-program.h"

#include <pthread.h>

#include "mimalloc.h"
#include "src/heap/heap.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/arena.h"
#include "test/lib/child.h"
#include "test/lib/pace.h"
#include "test/lib/rss.h"

enum { THREADS = 4,
       CHILD_MS = 60000 };

MI_TEST(ids_and_areas) {
  mi_arena_id_t id = NULL;
  MI_CHECK_EQ(mi_reserve_os_memory_ex(10 * MIB + 1, false, false, true, &id), 0);
  size_t size = 0;
  uint8_t* const base = mi_arena_area(id, &size);
  MI_CHECK(base != NULL && (uintptr_t)base % mi_arena_min_alignment() == 0);
  MI_CHECK(size > 10 * MIB && size % mi_arena_min_alignment() == 0 && size >= mi_arena_min_size());
  MI_CHECK(mi_arena_contains(id, base) && mi_arena_contains(id, base + size - 1));
  MI_CHECK(!mi_arena_contains(id, base - 1) && !mi_arena_contains(id, base + size) && !mi_arena_contains(id, &id));
  MI_CHECK(!mi_arena_contains(NULL, base) && mi_arena_area(NULL, &size) == NULL && size == 0);
  MI_CHECK(mi_arena_area((mi_arena_id_t)12345, NULL) == NULL && !mi_arena_contains((mi_arena_id_t)12345, base));
  int number = 0;
  MI_CHECK_EQ(mi_reserve_os_memory_ex_v2(MIB, true, false, true, &number), 0);
  MI_CHECK(number > 0 && mi_arena_area_v2(number, &size) != NULL && size == MIB);
  MI_CHECK(mi_arena_area_v2(0, &size) == NULL && mi_arena_area_v2(-1, &size) == NULL && size == 0);
  MI_CHECK_EQ(mi_reserve_os_memory(SIZE_MAX, false, false), ENOMEM);
  MI_CHECK_EQ(mi_reserve_os_memory_ex(SIZE_MAX / 2, false, false, true, &id), ENOMEM);
  MI_CHECK(id == NULL);
  MI_CHECK(mi_arena_max_object_size() >= MI_LARGE_PAGE_SLICES * (size_t)SLICE);
}

// Whole slices of what is handed over are used; what cannot be is refused.

MI_TEST(lent_memory_is_aligned_inward) {
  uint8_t* const p = mi_test_arena_map(MIB, PROT_READ | PROT_WRITE);
  mi_arena_id_t id = NULL;
  MI_CHECK(mi_manage_os_memory_ex(p + 1, MIB - 2, true, false, true, -1, true, &id));
  size_t size;
  MI_CHECK_PTR_EQ(mi_arena_area(id, &size), p + SLICE);
  MI_CHECK_EQ(size, MIB - 2 * SLICE);
}

static void mi_program_test_count_line(const char* text, void* arg) { *(int*)arg += strstr(text, "cannot be managed") != NULL; }

MI_TEST(what_cannot_be_lent_is_refused_with_a_line) {
  uint8_t* const p = mi_test_arena_map(4 * MIB, PROT_READ | PROT_WRITE);
  void* const block = mi_malloc(32 * MIB);
  void* const small = mi_malloc(100);
  (void)mi_test_arena_lend(p + MIB, MIB, false, true);
  const struct {
    void* start;
    size_t size;
  } rows[] = {
      {NULL, MIB},
      {p, 0},
      {p, SLICE - 1},
      {p + 1, SLICE},
      {p + 1, 2 * SLICE - 2},
      {p + MIB, MIB},
      {p, 2 * MIB},
      {p, MIB + SLICE},
      {p + 2 * MIB - SLICE, MIB},
      {p, 4 * MIB},
      {block, 32 * MIB},
      {(void*)((uintptr_t)small & ~(uintptr_t)(SLICE - 1)), SLICE},
      {(void*)(UINTPTR_MAX - 10 * (uintptr_t)SLICE), MIB},
      {(void*)(UINTPTR_MAX - 10 * (uintptr_t)SLICE), 5 * SLICE},
      {p, SIZE_MAX},
      {p, SIZE_MAX / 2},
  };
  int lines = 0;
  mi_option_set(mi_option_show_errors, 1);
  mi_register_output(&mi_program_test_count_line, &lines);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    mi_arena_id_t id = (mi_arena_id_t)1;
    lines = 0;
    MI_CHECK_MSG(!mi_manage_os_memory_ex(rows[i].start, rows[i].size, true, false, true, -1, true, &id), "row %zu", i);
    MI_CHECK_MSG(id == NULL && lines == 1, "row %zu: id %p, %d lines", i, id, lines);
  }
  mi_register_output(NULL, NULL);
  mi_option_set(mi_option_show_errors, 0);
  mi_free(block);
  mi_free(small);
}

// Heaps in an arena

static void mi_program_test_main_avoids(mi_arena_id_t id) {
  for (int i = 0; i < 400; i++) {
    void* const p = mi_malloc(mi_test_arena_sizes[i % SIZES]);
    MI_CHECK(p != NULL && !mi_arena_contains(id, p));
    mi_free(p);
  }
}

MI_TEST(a_heap_in_an_arena_takes_memory_from_it_alone) {
  mi_arena_id_t ids[3];
  MI_REQUIRE(mi_reserve_os_memory_ex(LENT, false, false, true, &ids[0]) == 0);
  MI_REQUIRE(mi_reserve_os_memory_ex(LENT, true, false, true, &ids[1]) == 0);
  ids[2] = mi_test_arena_lend(mi_test_arena_map(LENT, PROT_READ | PROT_WRITE), LENT, false, true);
  for (int i = 0; i < 3; i++) {
    for (int round = 0; round < 3; round++) {
      mi_heap_t* const heap = mi_test_arena_heap(ids[i]);
      mi_test_arena_fill(heap, ids[i]);
      mi_program_test_main_avoids(ids[i]);
      mi_heap_destroy(heap);
      MI_CHECK_MSG(mi_test_arena_is_unused(ids[i]), "arena %d, round %d", i, round);
    }
  }
}

MI_TEST(a_full_arena_is_out_of_memory_and_serves_again) {
  const mi_arena_id_t id = mi_test_arena_lend(mi_test_arena_map(4 * MIB, PROT_READ | PROT_WRITE), 4 * MIB, false, true);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  for (size_t i = 0; i < SIZES - 1; i++) {
    const size_t size = mi_test_arena_sizes[i];
    size_t count[2] = {0, 0};
    for (int round = 0; round < 2; round++) {
      void* list = NULL;
      void* p;
      while ((p = mi_heap_malloc(heap, _mi_max(size, sizeof(void*)))) != NULL) {
        MI_REQUIRE(mi_arena_contains(id, p));
        *(void**)p = list;
        list = p;
        count[round]++;
      }
      MI_CHECK_EQ(errno, ENOMEM);
      while ((p = list) != NULL) {
        list = *(void**)p;
        mi_free(p);
      }
    }
    MI_CHECK_MSG(count[0] > 0 && count[1] * 10 >= count[0] * 7, "%zu bytes: %zu blocks, then %zu", size, count[0], count[1]);
  }
  // What does not fit ever, and what must be aligned more than the arena can.
  MI_CHECK(mi_heap_malloc(heap, 5 * MIB) == NULL && mi_heap_malloc_aligned(heap, 100, mi_test_hide_size((size_t)1 << 34)) == NULL);
  // A block that grows moves within the arena, or stays.
  void* p = mi_heap_malloc(heap, 700000);
  MI_REQUIRE(p != NULL);
  p = mi_heap_realloc(heap, p, 1500000);
  MI_CHECK(p != NULL && mi_arena_contains(id, p) && mi_heap_realloc(heap, p, 8 * MIB) == NULL);
  mi_heap_destroy(heap);
  MI_CHECK(mi_test_arena_is_unused(id));
}

MI_TEST(the_smallest_arena) {
  const size_t size = mi_arena_min_size();
  const mi_arena_id_t id = mi_test_arena_lend(mi_test_arena_map(size, PROT_READ | PROT_WRITE), size, false, true);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  void* const p = mi_heap_malloc(heap, 100);
  MI_CHECK(p != NULL && mi_arena_contains(id, p));
  mi_heap_destroy(heap);
  mi_heap_t* const next = mi_test_arena_heap(id);
  void* const q = mi_heap_malloc(next, 8000);
  MI_CHECK(q != NULL && mi_arena_contains(id, q));
  mi_heap_destroy(next);
}

// Threads

typedef struct mi_program_test_thread_s {
  mi_heap_t* heap;
  mi_arena_id_t id;
  uint64_t seed;
  void* kept[50];
} mi_program_test_thread_t;

static void* mi_program_test_use(void* arg) {
  mi_program_test_thread_t* const t = arg;
  for (int i = 0; i < 3000; i++) {
    const size_t k = mi_test_random(&t->seed) % 50;
    mi_free(t->kept[k]);
    t->kept[k] = mi_heap_malloc(t->heap, mi_test_arena_sizes[mi_test_random(&t->seed) % 7]);
    MI_CHECK(t->kept[k] == NULL || mi_arena_contains(t->id, t->kept[k]));
  }
  return NULL;
}

MI_TEST(threads_share_a_heap_and_its_pages_stay_with_it) {
  const mi_arena_id_t id = mi_test_arena_lend(mi_test_arena_map(LENT, PROT_READ | PROT_WRITE), LENT, false, true);
  for (int round = 0; round < 5; round++) {
    mi_heap_t* const heap = mi_test_arena_heap(id);
    static mi_program_test_thread_t threads[THREADS];
    pthread_t handles[THREADS];
    for (int t = 0; t < THREADS; t++) {
      memset(&threads[t], 0, sizeof(threads[t]));
      threads[t].heap = heap;
      threads[t].id = id;
      threads[t].seed = (uint64_t)(round * THREADS + t);
      MI_REQUIRE(pthread_create(&handles[t], NULL, &mi_program_test_use, &threads[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++) {
      pthread_join(handles[t], NULL);
    }
    // What the ended threads left serves this heap, and no other.
    mi_program_test_main_avoids(id);
    void* const p = mi_heap_malloc(heap, 100);
    MI_CHECK(p != NULL && mi_arena_contains(id, p));
    for (int t = 0; t < THREADS; t++) {
      for (int k = 0; k < 50; k++) {
        mi_free(threads[t].kept[k]);
      }
    }
    mi_heap_destroy(heap);
    MI_CHECK(mi_test_arena_is_unused(id));
  }
}

static void* mi_program_test_leave_blocks(void* arg) {
  mi_program_test_thread_t* const t = arg;
  for (int i = 0; i < 50; i++) {
    t->kept[i] = mi_heap_malloc(t->heap, mi_test_arena_sizes[i % 5]);
  }
  return NULL;
}

// The blocks of a deleted heap live on, but nobody gets more from its arena; the last free gives the memory back.
MI_TEST(after_a_deletion_the_arena_serves_nobody) {
  const mi_arena_id_t id = mi_test_arena_lend(mi_test_arena_map(LENT, PROT_READ | PROT_WRITE), LENT, false, true);
  for (int round = 0; round < 3; round++) {
    mi_heap_t* const heap = mi_test_arena_heap(id);
    static mi_program_test_thread_t t;
    t.heap = heap;
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_program_test_leave_blocks, &t) == 0);
    pthread_join(thread, NULL);
    void* own[200];
    for (int i = 0; i < 200; i++) {
      own[i] = mi_heap_malloc(heap, 600);
      MI_REQUIRE(own[i] != NULL);
    }
    mi_heap_delete(heap);
    for (int i = 0; i < 50; i += 2) {
      mi_free(t.kept[i]);
    }
    for (int i = 0; i < 200; i += 2) {
      mi_free(own[i]);
    }
    for (int i = 0; i < 2000; i++) {
      const size_t size = i % 2 == 0 ? 600 : mi_test_arena_sizes[i % 5];
      MI_CHECK(!mi_arena_contains(id, mi_malloc(size)));
    }
    for (int i = 1; i < 50; i += 2) {
      mi_free(t.kept[i]);
    }
    for (int i = 1; i < 200; i += 2) {
      mi_free(own[i]);
    }
    MI_CHECK(mi_test_arena_is_unused(id));
  }
}

MI_TEST(many_heaps_leave_memory_flat) {
  const mi_arena_id_t id = mi_test_arena_lend(mi_test_arena_map(LENT, PROT_READ | PROT_WRITE), LENT, false, true);
  size_t rss = 0;
  size_t maps = 0;
  const uint64_t deadline = mi_test_deadline();
  for (int i = 0; i < 2500 || mi_test_goes_on(i, 6000, deadline); i++) {
    mi_heap_t* const heap = mi_test_arena_heap(id);
    for (int k = 0; k < 10; k++) {
      void* const p = mi_heap_malloc(heap, mi_test_arena_sizes[(i + k) % 6]);
      MI_REQUIRE(p != NULL);
    }
    mi_heap_destroy(heap);
    if (i == 1000) {
      rss = mi_test_rss();
      maps = mi_test_mappings();
    }
  }
  MI_CHECK_MSG(mi_test_rss() < rss + 2 * MIB, "%zu bytes, then %zu", rss, mi_test_rss());
  MI_CHECK_MSG(mi_test_mappings() < maps + 20, "%zu mappings, then %zu", maps, mi_test_mappings());
}

// A forked child

static void mi_program_test_child(void* arg) {
  mi_heap_t* const heap = arg;
  for (int i = 0; i < 200; i++) {
    void* const p = mi_heap_malloc(heap, mi_test_arena_sizes[i % 8]);
    MI_CHECK(p != NULL && _mi_arena_of(p) == heap->arena);
    mi_free(p);
  }
  mi_heap_destroy(heap);
}

MI_TEST(a_forked_child_goes_on) {
  const mi_arena_id_t id = mi_test_arena_lend(mi_test_arena_map(LENT, PROT_READ | PROT_WRITE), LENT, false, true);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  void* const p = mi_heap_malloc(heap, 1000);
  memset(p, 0x42, 1000);
  MI_CHECK_IN_CHILD(&mi_program_test_child, heap, CHILD_MS);
  MI_CHECK(mi_test_all_bytes((uint8_t*)p + 1, 998, 0x42));
  mi_heap_destroy(heap);
}

// Options

static void mi_program_test_no_os(void* arg) {
  (void)arg;
  uint8_t* const p = mi_test_arena_map(LENT, PROT_READ | PROT_WRITE);
  mi_arena_id_t id = NULL;
  MI_REQUIRE(mi_manage_os_memory_ex(p, LENT, true, false, true, -1, false, &id));
  _mi_option_set(mi_option_disallow_os_alloc, 1);
  const int64_t calls = _mi_counter_view(&_mi_stats.mmap_calls);
  // More than there is: all from what there is already, and then nothing.
  size_t n = 0;
  void* last = NULL;
  for (void* q; n < 10000 && (q = mi_malloc(2 * MIB)) != NULL; n++) {
    last = mi_arena_contains(id, q) ? q : last;
  }
  MI_CHECK(last != NULL && n < 10000 && errno == ENOMEM);
  MI_CHECK(_mi_counter_view(&_mi_stats.mmap_calls) - calls <= 8);
}

static void mi_program_test_no_arena(void* arg) {
  (void)arg;
  mi_arena_id_t ids[2] = {NULL, NULL};
  MI_REQUIRE(mi_manage_os_memory_ex(mi_test_arena_map(LENT, PROT_READ | PROT_WRITE), LENT, true, false, true, -1, false, &ids[0]));
  MI_REQUIRE(mi_reserve_os_memory_ex(LENT, true, false, false, &ids[1]) == 0);
  _mi_option_set(mi_option_disallow_arena_alloc, 1);
  for (int i = 0; i < 500; i++) {
    void* const q = mi_malloc(mi_test_arena_sizes[i % SIZES]);
    MI_CHECK(q != NULL && !mi_arena_contains(ids[0], q) && !mi_arena_contains(ids[1], q));
    MI_CHECK(mi_test_arena_sizes[i % SIZES] < 600000 || _mi_arena_of(q) == NULL);
  }
  for (int i = 0; i < 2; i++) {
    mi_heap_t* const heap = mi_test_arena_heap(ids[i]);
    void* const q = mi_heap_malloc(heap, 1000000);
    MI_CHECK(q != NULL && mi_arena_contains(ids[i], q));
  }
}

static void mi_program_test_immediate(void* arg) {
  (void)arg;
  const size_t pages[2] = {2 * MI_SLICE_SIZE, 20 * MI_SLICE_SIZE};
  if (_mi_os_config.thp_always) {
    return;
  }
  _mi_option_set(mi_option_purge_delay, 1000000);
  _mi_option_set(mi_option_arena_purge_immediate_size, 1024);
  for (int i = 0; i < 2; i++) {
    mi_run_t run;
    MI_REQUIRE(_mi_arena_claim(pages[i] / MI_SLICE_SIZE, MI_SLICE_SIZE, false, &run));
    run.start[0] = 1;
    _mi_arena_release(run.arena, run.index, run.slices, false);
    MI_CHECK_EQ(_mi_bitmap_count(run.arena->purge, run.index, run.slices), i == 0 ? run.slices : 0);
  }
}

static void mi_program_test_mult(void* arg) {
  (void)arg;
  _mi_arenas_purge(0, true);
  _mi_option_set(mi_option_purge_delay, 100000);
  _mi_option_set(mi_option_arena_purge_mult, 7);
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(1, MI_SLICE_SIZE, false, &run));
  const int64_t before = _mi_prim_clock_ms();
  _mi_arena_release(run.arena, run.index, 1, false);
  const int64_t deadline = mi_atomic_load_relaxed(&run.arena->purge_deadline);
  MI_CHECK(deadline >= before + 700000 && deadline < before + 800000);
}

MI_TEST(options) {
  MI_CHECK_IN_CHILD(&mi_program_test_no_os, NULL, CHILD_MS);
  MI_CHECK_IN_CHILD(&mi_program_test_no_arena, NULL, CHILD_MS);
  MI_CHECK_IN_CHILD(&mi_program_test_immediate, NULL, CHILD_MS);
  MI_CHECK_IN_CHILD(&mi_program_test_mult, NULL, CHILD_MS);
}

static void mi_program_test_collect_text(const char* text, void* arg) {
  char* const all = arg;
  if (strlen(all) + strlen(text) < 16384) {
    strcat(all, text);
  }
}

MI_TEST(printed_arenas) {
  static char text[16384 + 1];
  (void)mi_test_arena_lend(mi_test_arena_map(MIB, PROT_READ | PROT_WRITE), MIB, true, true);
  mi_register_output(&mi_program_test_collect_text, text);
  mi_arenas_print();
  mi_debug_show_arenas();
  mi_register_output(NULL, NULL);
  MI_CHECK(strstr(text, "arenas: ") == text && strstr(text, ", exclusive") != NULL && strstr(text, ", lent") != NULL);
  MI_CHECK(strstr(text, ", pinned") != NULL && strstr(text, "arena 1: 0x") != NULL);
}

// Threads past their teardown

typedef struct mi_program_test_late_s {
  mi_heap_t* heap;
  mi_arena_id_t id;
} mi_program_test_late_t;

static void* mi_program_test_late(void* arg) {
  const mi_program_test_late_t* const late = arg;
  mi_free(mi_malloc(100));
  mi_thread_done();
  enum { BLOCKS = 20 };
  void* blocks[BLOCKS];
  size_t count = 0;
  for (; count < BLOCKS; count++) {
    static const size_t sizes[] = {1, 100, 5000, 70000};
    const size_t align = (size_t)16 << (count % 10);
    uint8_t* p = count % 3 == 0 ? mi_heap_zalloc(late->heap, sizes[count % 4])
        : count % 3 == 1        ? mi_heap_malloc_aligned(late->heap, sizes[count % 4], align)
                                : mi_heap_realloc(late->heap, mi_malloc(700000), 800000);
    if (p == NULL) {
      break;
    }
    MI_CHECK(mi_arena_contains(late->id, p) || (count % 3 == 2 && !mi_heap_contains(late->heap, p)));
    MI_CHECK(count % 3 != 1 || (uintptr_t)p % align == 0);
    MI_CHECK(count % 3 == 2 || mi_heap_contains(late->heap, p));
    memset(p, 1, sizes[count % 4]);
    blocks[count] = p;
  }
  // The arena is full, and nothing else serves its heap.
  void* more = NULL;
  size_t in_all = 0;
  while ((more = mi_heap_malloc(late->heap, 100000)) != NULL) {
    MI_CHECK(mi_arena_contains(late->id, more));
    in_all++;
    MI_REQUIRE(in_all < 1000);
  }
  MI_CHECK_EQ(errno, ENOMEM);
  for (size_t i = 0; i < count; i++) {
    mi_free(blocks[i]);
  }
  void* const p = mi_heap_malloc(late->heap, 100);
  MI_CHECK(p != NULL && mi_arena_contains(late->id, p));
  mi_free(p);
  return NULL;
}

MI_TEST(late_threads_stay_in_the_arena) {
  for (int i = 0; i < 3; i++) {
    mi_program_test_late_t late;
    MI_REQUIRE(mi_reserve_os_memory_ex(8 * MIB, i == 0, false, true, &late.id) == 0);
    late.heap = mi_heap_new_in_arena(late.id);
    MI_REQUIRE(late.heap != NULL);
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_program_test_late, &late) == 0);
    pthread_join(thread, NULL);
    mi_heap_delete(late.heap);
  }
}

// A block of another heap that has a mapping of its own does not bring that along.
MI_TEST(realloc_into_the_arena_copies) {
  mi_arena_id_t id;
  MI_REQUIRE(mi_reserve_os_memory_ex(64 * MIB, false, false, true, &id) == 0);
  mi_heap_t* const heap = mi_heap_new_in_arena(id);
  mi_option_set(mi_option_disallow_arena_alloc, 1);
  uint8_t* p = mi_malloc(5 * MIB);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, 5 * MIB, 3);
  // In place it stays where it is.
  uint8_t* const q = mi_heap_realloc(heap, p, 20 * MIB);
  MI_REQUIRE(q != NULL);
  MI_CHECK(mi_test_filled(q, 5 * MIB, 3));
  MI_CHECK_EQ(mi_heap_contains(heap, q), mi_arena_contains(id, q));
  mi_free(q);
  mi_option_set(mi_option_disallow_arena_alloc, 0);
  mi_heap_delete(heap);
}

MI_TEST_MAIN()
