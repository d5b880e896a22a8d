// Owns: tests of heap/visit and heap/pin: what a visit tells against a model of what is live, alone and beside other threads.
// May include: everything.
// Called by: the test runner, under every variant; under ThreadSanitizer by hand.
// Invariants: a test ends its heaps, and leaves no pin.
#include "src/heap/visit.h"

#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/heap/pin.h"
#include "src/heap/process.h"
#include "src/heap/zero-size.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { BLOCKS = 1500,
       THREADS = 4,
       TABLE = 1 << 14 };

// The model: blocks by address, with how often they were told of.
typedef struct mi_visit_test_block_s {
  void* p;  // what the visitor is to be told
  size_t size;
  unsigned told;
} mi_visit_test_block_t;

typedef struct mi_visit_test_model_s {
  mi_visit_test_block_t table[TABLE];
  const mi_heap_t* heap;
  int tag;
  size_t areas;
  size_t used;     // as areas say
  size_t blocks;   // told of
  size_t unknown;  // of them not in the model
  size_t wrong;    // with another size, or outside of their area
  bool free_them;
} mi_visit_test_model_t;

static mi_visit_test_block_t* mi_visit_test_slot(mi_visit_test_model_t* model, const void* p) {
  size_t i = (((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> 50;
  while (model->table[i].p != NULL && model->table[i].p != p) {
    i = (i + 1) % TABLE;
  }
  return &model->table[i];
}

static void mi_visit_test_expect(mi_visit_test_model_t* model, void* p) {
  // A block that was handed out at an address inside it is told from its beginning.
  const mi_page_t* const page = _mi_page_map_find(p);
  void* const start = _mi_page_is_single(page) || _mi_page_is_zero_size(page) ? p : _mi_page_block_of(page, p);
  mi_visit_test_block_t* const slot = mi_visit_test_slot(model, start);
  MI_CHECK(slot->p == NULL);
  slot->p = start;
  slot->size = _mi_page_usable_size(page, start);
}

static bool mi_visit_test_visitor(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  mi_visit_test_model_t* const model = arg;
  model->wrong += (model->heap != NULL && heap != model->heap) || area->heap_tag != model->tag;
  if (block == NULL) {
    model->areas++;
    model->used += area->used;
    model->wrong += size != area->block_size || area->committed > area->reserved || area->block_size > area->full_block_size ||
        (area->used * area->full_block_size > area->reserved);
    return true;
  }
  model->blocks++;
  model->wrong += (uint8_t*)block < (uint8_t*)area->blocks || (uint8_t*)block + size > (uint8_t*)area->blocks + area->reserved ||
      size > area->full_block_size;
  mi_visit_test_block_t* const slot = mi_visit_test_slot(model, block);
  if (slot->p == NULL) {
    model->unknown++;
  } else {
    slot->told++;
    model->wrong += slot->size != size;
  }
  if (model->free_them) {
    _mi_free(block);
  }
  return true;
}

// Whether each block of the model was told of once; how many blocks it has.
static size_t mi_visit_test_check(const mi_visit_test_model_t* model, const char* what) {
  size_t expected = 0;
  size_t missed = 0;
  size_t twice = 0;
  for (size_t i = 0; i < TABLE; i++) {
    expected += model->table[i].p != NULL;
    missed += model->table[i].p != NULL && model->table[i].told == 0;
    twice += model->table[i].told > 1;
  }
  MI_CHECK_MSG(missed == 0 && twice == 0 && model->wrong == 0, "%s: of %zu blocks %zu were missed, %zu told twice, %zu told wrong", what,
               expected, missed, twice, model->wrong);
  return expected;
}

static void mi_visit_test_exact(const mi_visit_test_model_t* model, const char* what) {
  const size_t expected = mi_visit_test_check(model, what);
  MI_CHECK_MSG(model->unknown == 0 && model->blocks == expected && model->used == expected,
               "%s: %zu blocks were told that are not live; areas say %zu, %zu were told, %zu are live", what, model->unknown,
               model->used, model->blocks, expected);
}

static mi_visit_test_model_t mi_visit_test_model;

static mi_visit_test_model_t* mi_visit_test_fresh(const mi_heap_t* heap) {
  memset(&mi_visit_test_model, 0, sizeof(mi_visit_test_model));
  mi_visit_test_model.heap = heap;
  mi_visit_test_model.tag = heap == NULL ? 0 : heap->tag;
  return &mi_visit_test_model;
}

static mi_visit_t mi_visit_test_all(const mi_heap_t* heap) {
  return (mi_visit_t){.heap = heap, .tag = -1, .blocks = true, .visitor = &mi_visit_test_visitor, .arg = &mi_visit_test_model};
}

static bool mi_visit_test_run(mi_visit_t visit) {
  const bool done = _mi_visit(&visit);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_pins_taken), 0);
  return done;
}

// Any size, in any way.
static void* mi_visit_test_alloc(mi_theap_t* theap, uint64_t* seed) {
  const uint64_t r = mi_test_random(seed);
  const size_t n = (size_t)(r >> 20);
  const size_t size = r % 40 == 0 ? 0
      : r % 40 == 1               ? n % 6000000
      : r % 40 < 4                ? n % 700000
      : r % 40 < 12               ? n % 20000
                                  : n % 1100;
  const size_t align = (size_t)16 << ((r >> 8) % 9);
  void* p = NULL;
  switch ((r >> 12) % 8) {
    case 0: p = _mi_alloc_aligned(theap, size, align, 0, false); break;
    case 1: p = _mi_alloc_aligned(theap, size, align, 8, true); break;
    case 2: p = _mi_realloc(theap, _mi_theap_alloc(theap, size / 2, false), size, false); break;
    case 3: p = _mi_alloc_aligned(theap, size % 10000, 4 * MI_MIB, 0, false); break;
    default: p = _mi_theap_alloc(theap, size, false); break;
  }
  MI_REQUIRE(p != NULL);
  return p;
}

static void mi_visit_test_churn(mi_theap_t* theap, void** blocks, size_t count, uint64_t* seed, int steps) {
  for (int i = 0; i < steps; i++) {
    void** const slot = &blocks[mi_test_random(seed) % count];
    const uint64_t r = mi_test_random(seed);
    if (*slot != NULL && r % 4 == 0) {
      *slot = _mi_realloc(theap, *slot, (size_t)(r >> 32) % 3000, false);
    } else if (*slot != NULL) {
      _mi_free(*slot);
      *slot = NULL;
    } else {
      *slot = mi_visit_test_alloc(theap, seed);
    }
  }
}

static void mi_visit_test_expect_all(void** blocks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (blocks[i] != NULL) {
      mi_visit_test_expect(&mi_visit_test_model, blocks[i]);
    }
  }
}

// Alone: exactly what the model has, after each of many steps.
MI_TEST(what_is_live) {
  static void* blocks[BLOCKS];
  static void* others[50];
  uint64_t seed = 1;
  const mi_heap_config_t config = {.tag = 9, .allow_destroy = true};
  mi_heap_t* const heap = _mi_heap_new_as(&config);
  mi_theap_t* const theap = _mi_heap_theap(heap);
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 25);
  for (long round = 0; round < rounds; round++) {
    mi_visit_test_churn(theap, blocks, BLOCKS, &seed, 600);
    mi_visit_test_churn(_mi_tls.own, others, 50, &seed, 50);
    mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
    mi_visit_test_expect_all(blocks, BLOCKS);
    MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
    mi_visit_test_exact(model, "heap");
    mi_visit_test_fresh(_mi_heap_main());
    mi_visit_test_expect_all(others, 50);
    MI_CHECK(mi_visit_test_run(mi_visit_test_all(_mi_heap_main())));
    mi_visit_test_exact(model, "main heap");
  }
  // After collecting, and in areas alone.
  _mi_heap_collect(heap, true);
  mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
  mi_visit_t visit = mi_visit_test_all(heap);
  visit.blocks = false;
  MI_CHECK(mi_visit_test_run(visit));
  size_t live = 0;
  for (size_t i = 0; i < BLOCKS; i++) {
    live += blocks[i] != NULL;
  }
  MI_CHECK(model->blocks == 0 && model->used == live && model->areas > 1);
  _mi_heap_destroy(heap);
  mi_visit_test_fresh(heap);
  MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)) && model->areas == 0);
  for (size_t i = 0; i < 50; i++) {
    _mi_free(others[i]);
  }
}

// The visitor ends the visit.
static bool mi_visit_test_stop(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap;
  (void)area;
  (void)block;
  (void)size;
  return --*(int*)arg > 0;
}

// Pages whose blocks are all free are kept for a while, without the lists that they had: empty, and when they serve again.
MI_TEST(pages_kept_for_later) {
  static void* blocks[BLOCKS];
  mi_heap_t* const heap = _mi_heap_new();
  mi_theap_t* const theap = _mi_heap_theap(heap);
  for (size_t size = 16; size <= 2048; size += size / 2) {
    for (size_t again = 0; again < 4; again++) {
      const size_t count = again % 2 == 0 ? 400 : 3;
      for (size_t i = 0; i < count; i++) {
        blocks[i] = _mi_theap_alloc(theap, size, false);
      }
      mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
      mi_visit_test_expect_all(blocks, count);
      MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
      mi_visit_test_exact(model, "some live");
      for (size_t i = 0; i < count; i++) {
        _mi_free(blocks[i]);
        blocks[i] = NULL;
      }
      mi_visit_test_fresh(heap);
      MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
      mi_visit_test_exact(model, "none live");
    }
  }
  _mi_heap_destroy(heap);
}

MI_TEST(stops_when_told) {
  mi_heap_t* const heap = _mi_heap_new();
  for (int i = 0; i < 100; i++) {
    MI_REQUIRE(_mi_theap_alloc(_mi_heap_theap(heap), i % 7 == 0 ? 3 * MI_MIB : i % 5 == 0 ? 0
                                                                                          : 100,
                               false) != NULL);
  }
  for (int stop = 1; stop < 100; stop++) {
    int left = stop;
    mi_visit_t visit = mi_visit_test_all(heap);
    visit.visitor = &mi_visit_test_stop;
    visit.arg = &left;
    MI_CHECK(!mi_visit_test_run(visit));
    MI_CHECK_EQ(left, 0);
  }
  _mi_heap_destroy(heap);
}

// The visitor frees each block that it is told of, so that all pages go while they are visited.
MI_TEST(visitor_frees) {
  uint64_t seed = 5;
  _mi_collect(true);
  const int64_t pages = _mi_stat_view(&_mi_stats.pages).current;
  for (int round = 0; round < 20; round++) {
    mi_heap_t* const heap = _mi_heap_new();
    mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
    for (int i = 0; i < 300; i++) {
      mi_visit_test_expect(model, mi_visit_test_alloc(_mi_heap_theap(heap), &seed));
    }
    model->free_them = true;
    MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
    mi_visit_test_exact(model, "freed");
    mi_visit_test_fresh(heap);
    MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
    MI_CHECK(model->blocks == 0 && model->used == 0);
    _mi_heap_delete(heap);
  }
  _mi_collect(true);
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.pages).current, pages);
}

// A visitor that visits, to the depth that there is room for.
static bool mi_visit_test_nested(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)area;
  (void)size;
  int* const depth = arg;
  if (block == NULL) {
    return true;
  }
  (*depth)++;
  const mi_visit_t visit = {.heap = heap, .tag = -1, .blocks = true, .visitor = &mi_visit_test_nested, .arg = arg};
  return _mi_visit(&visit);
}

MI_TEST(nested) {
  mi_heap_t* const heap = _mi_heap_new();
  MI_REQUIRE(_mi_theap_alloc(_mi_heap_theap(heap), 100, false) != NULL);
  int depth = 0;
  mi_visit_t visit = mi_visit_test_all(heap);
  visit.visitor = &mi_visit_test_nested;
  visit.arg = &depth;
  MI_CHECK(!mi_visit_test_run(visit));
  MI_CHECK_EQ(depth, MI_PINS_MAX / 2);
  _mi_heap_destroy(heap);
}

// Blocks of threads that live, that wait, and that have ended

static pthread_barrier_t mi_visit_test_gate;

typedef struct mi_visit_test_job_s {
  mi_heap_t* heap;
  void* blocks[300];
  bool stays;
  uintptr_t tid;
} mi_visit_test_job_t;

static void* mi_visit_test_thread(void* arg) {
  mi_visit_test_job_t* const job = arg;
  uint64_t seed = (uintptr_t)arg;
  mi_visit_test_churn(_mi_heap_theap(job->heap), job->blocks, 300, &seed, 1000);
  job->tid = _mi_tls.own_tid;
  if (job->stays) {
    pthread_barrier_wait(&mi_visit_test_gate);
    pthread_barrier_wait(&mi_visit_test_gate);
  }
  return NULL;
}

MI_TEST(blocks_of_other_threads) {
  static mi_visit_test_job_t jobs[THREADS];
  pthread_t threads[THREADS];
  const mi_heap_config_t config = {.tag = 200, .allow_destroy = true};
  for (int round = 0; round < 10; round++) {
    mi_heap_t* const heap = _mi_heap_new_as(&config);
    memset(jobs, 0, sizeof(jobs));
    pthread_barrier_init(&mi_visit_test_gate, NULL, THREADS / 2 + 1);
    for (int t = 0; t < THREADS; t++) {
      jobs[t].heap = heap;
      jobs[t].stays = t % 2 == 0;
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_visit_test_thread, &jobs[t]) == 0);
    }
    pthread_barrier_wait(&mi_visit_test_gate);
    for (int t = 1; t < THREADS; t += 2) {
      pthread_join(threads[t], NULL);
    }
    // Some of their blocks are freed here: those that wait to be collected are not live.
    for (int t = 0; t < THREADS; t++) {
      for (int i = 0; i < 300; i += 3) {
        _mi_free(jobs[t].blocks[i]);
        jobs[t].blocks[i] = NULL;
      }
    }
    mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
    for (int t = 0; t < THREADS; t++) {
      mi_visit_test_expect_all(jobs[t].blocks, 300);
    }
    MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
    mi_visit_test_exact(model, "all threads");
    // With the right tag, and with another.
    mi_visit_test_fresh(heap);
    for (int t = 0; t < THREADS; t++) {
      mi_visit_test_expect_all(jobs[t].blocks, 300);
    }
    mi_visit_t tagged = mi_visit_test_all(NULL);
    tagged.tag = 200;
    tagged.main = _mi_heap_main();
    MI_CHECK(mi_visit_test_run(tagged));
    mi_visit_test_exact(model, "tag");
    mi_visit_test_fresh(heap);
    tagged.tag = 201;
    MI_CHECK(mi_visit_test_run(tagged) && model->areas == 0);
    // Nobody owns what threads have left that have ended, unless one that lives has taken it over.
    mi_visit_test_fresh(heap);
    for (int t = 0; t < THREADS; t++) {
      for (int i = 0; i < 300; i++) {
        void* const p = jobs[t].blocks[i];
        if (p != NULL && mi_atomic_load_relaxed(&_mi_page_map_find(p)->owner) == MI_TID_NONE) {
          mi_visit_test_expect(model, p);
        }
      }
    }
    mi_visit_t abandoned = mi_visit_test_all(heap);
    abandoned.abandoned = true;
    MI_CHECK(mi_visit_test_run(abandoned));
    mi_visit_test_exact(model, "abandoned");
    pthread_barrier_wait(&mi_visit_test_gate);
    for (int t = 0; t < THREADS; t += 2) {
      pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&mi_visit_test_gate);
    _mi_heap_destroy(heap);
  }
}

// By theap: what this thread allocated, and nothing of another's.
MI_TEST(blocks_of_one_thread) {
  static mi_visit_test_job_t job;
  static void* blocks[300];
  uint64_t seed = 77;
  mi_heap_t* const heap = _mi_heap_new();
  memset(&job, 0, sizeof(job));
  job.heap = heap;
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_visit_test_thread, &job) == 0);
  pthread_join(thread, NULL);
  for (size_t i = 0; i < 300; i++) {
    blocks[i] = _mi_theap_alloc(_mi_heap_theap(heap), 1 + mi_test_random(&seed) % (i % 50 == 0 ? 5000000 : 2000), false);
  }
  mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
  mi_visit_test_expect_all(blocks, 300);
  mi_visit_t mine = mi_visit_test_all(heap);
  mine.tid = _mi_tls.own_tid;
  MI_CHECK(mi_visit_test_run(mine));
  // Pages that this thread took over from the other have blocks of both.
  mi_visit_test_check(model, "mine");
  mi_visit_test_fresh(heap);
  mine.tid = job.tid;
  MI_CHECK(mi_visit_test_run(mine));
  for (size_t i = 0; i < 300; i++) {
    MI_CHECK(mi_visit_test_slot(model, blocks[i])->told == 0);
  }
  _mi_heap_destroy(heap);
}

// Beside threads that allocate and free all the time: what is live throughout is told once.

static _Atomic(bool) mi_visit_test_is_over;

static void* mi_visit_test_busy(void* arg) {
  mi_visit_test_job_t* const job = arg;
  uint64_t seed = (uintptr_t)arg;
  while (!mi_atomic_load_relaxed(&mi_visit_test_is_over)) {
    mi_visit_test_churn(_mi_heap_theap(job->heap), job->blocks, 300, &seed, 100);
    if (mi_test_random(&seed) % 64 == 0) {
      _mi_heap_collect(job->heap, true);
    }
  }
  for (int i = 0; i < 300; i++) {
    _mi_free(job->blocks[i]);
  }
  return NULL;
}

MI_TEST(beside_busy_threads) {
  static mi_visit_test_job_t jobs[THREADS];
  static void* stable[BLOCKS];
  uint64_t seed = 3;
  mi_heap_t* const heap = _mi_heap_new();
  pthread_t threads[THREADS];
  memset(jobs, 0, sizeof(jobs));
  mi_atomic_store_relaxed(&mi_visit_test_is_over, false);
  for (int t = 0; t < THREADS; t++) {
    jobs[t].heap = heap;
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_visit_test_busy, &jobs[t]) == 0);
  }
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 30);
  for (long round = 0; round < rounds; round++) {
    mi_visit_test_churn(_mi_heap_theap(heap), stable, BLOCKS, &seed, 300);
    mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
    mi_visit_test_expect_all(stable, BLOCKS);
    MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
    if (MI_HAS_LIVE_BITS) {
      // Blocks of others may change their size while they are told of; these do not.
      mi_visit_test_check(model, "busy");
    }
  }
  mi_atomic_store_relaxed(&mi_visit_test_is_over, true);
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  mi_visit_test_model_t* const model = mi_visit_test_fresh(heap);
  mi_visit_test_expect_all(stable, BLOCKS);
  MI_CHECK(mi_visit_test_run(mi_visit_test_all(heap)));
  mi_visit_test_exact(model, "afterwards");
  memset(stable, 0, sizeof(stable));
  _mi_heap_destroy(heap);
}

// Pins

// A page that is given back while it is pinned, by several, keeps its memory until the last of them lets go.
MI_TEST(pinned_pages_stay) {
  static const size_t sizes[] = {100, 700000, 5000000};
  for (int s = 0; s < 3; s++) {
    mi_heap_t* const heap = _mi_heap_new();
    uint8_t* const p = _mi_theap_alloc(_mi_heap_theap(heap), sizes[s], false);
    mi_page_t* const page = _mi_page_map_find(p);
    mi_pin_t* const a = _mi_pin_take();
    mi_pin_t* const b = _mi_pin_take();
    MI_REQUIRE(a != NULL && b != NULL && a != b);
    _mi_pin_set(a, page);
    _mi_pin_set(b, page);
    memset(p, 0x42, sizes[s]);
    _mi_heap_destroy(heap);
    MI_CHECK(_mi_page_map_find(p) == NULL);
    MI_CHECK(page->arena == NULL || _mi_bitmap_count(page->arena->free, page->slice_index, 1) == 0);
    const uint8_t* const freed = mi_test_hide(p);
    MI_CHECK(mi_test_all_bytes(freed, sizes[s], 0x42));
    _mi_pin_clear(a);
    MI_CHECK(mi_test_all_bytes(freed, sizes[s], 0x42));
    mi_arena_t* const arena = page->arena;
    const size_t index = page->slice_index;
    _mi_pin_clear(b);
    if (arena != NULL && !(MI_HAS_LARGE_QUARANTINE && s > 0)) {
      MI_CHECK(_mi_bitmap_count(arena->free, index, 1) == 1);
    }
    _mi_pin_give(a);
    _mi_pin_give(b);
    MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_pins_taken), 0);
  }
}

// Threads that give pages back while others pin them.
static mi_page_t* mi_visit_test_page;

static void* mi_visit_test_pinner(void* arg) {
  mi_pin_t* const pin = _mi_pin_take();
  MI_REQUIRE(pin != NULL);
  while (!mi_atomic_load_relaxed(&mi_visit_test_is_over)) {
    _mi_pin_set(pin, mi_visit_test_page);
    _mi_pin_clear(pin);
  }
  _mi_pin_give(pin);
  return arg;
}

MI_TEST(pins_race_with_release) {
  pthread_t threads[2];
  mi_heap_t* const heap = _mi_heap_new();
  void* p = _mi_theap_alloc(_mi_heap_theap(heap), 8000, false);
  mi_visit_test_page = _mi_page_map_find(p);
  const int64_t pages = _mi_stat_view(&_mi_stats.pages).current;
  mi_atomic_store_relaxed(&mi_visit_test_is_over, false);
  for (int t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_visit_test_pinner, NULL) == 0);
  }
  for (int i = 0; i < 20000; i++) {
    _mi_free(p);
    _mi_heap_collect(heap, true);
    p = _mi_theap_alloc(_mi_heap_theap(heap), 8000, false);
    MI_REQUIRE(p != NULL);
  }
  mi_atomic_store_relaxed(&mi_visit_test_is_over, true);
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.pages).current, pages);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_pins_taken), 0);
  _mi_heap_destroy(heap);
}

// A child is forked while another thread visits, and while this one does.
static void mi_visit_test_in_child(void* arg) {
  const uint32_t mine = *(uint32_t*)arg;
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_pins_taken), mine);
  for (int i = 0; i < 100; i++) {
    _mi_free(_mi_alloc(100000));
  }
  _mi_collect(true);
}

static bool mi_visit_test_fork(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap;
  (void)area;
  (void)block;
  (void)size;
  MI_CHECK_IN_CHILD(&mi_visit_test_in_child, arg, 20000);
  return false;
}

MI_TEST(forked_while_visiting) {
  pthread_t thread;
  mi_heap_t* const heap = _mi_heap_new();
  void* const p = _mi_theap_alloc(_mi_heap_theap(heap), 8000, false);
  mi_visit_test_page = _mi_page_map_find(p);
  mi_atomic_store_relaxed(&mi_visit_test_is_over, false);
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_visit_test_pinner, NULL) == 0);
  while (mi_atomic_load_relaxed(&_mi_pins_taken) == 0) {
  }
  uint32_t mine = 0;
  MI_CHECK_IN_CHILD(&mi_visit_test_in_child, &mine, 20000);
  mine = 2;
  mi_visit_t visit = mi_visit_test_all(heap);
  visit.visitor = &mi_visit_test_fork;
  visit.arg = &mine;
  MI_CHECK(!_mi_visit(&visit));
  mi_atomic_store_relaxed(&mi_visit_test_is_over, true);
  pthread_join(thread, NULL);
  _mi_heap_destroy(heap);
}

MI_TEST_MAIN()
