// Owns: tests of heap/orphan: what a forked child makes of the pages of threads that exist in its parent only.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: children leave by _exit with the number of failed checks as status; the parent is as before.
#include "src/heap/orphan.h"

#include <pthread.h>
#include <sched.h>

#include "src/alloc/alloc.h"
#include "src/heap/heap.h"
#include "src/heap/process.h"
#include "src/heap/visit.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/pace.h"
#include "test/lib/test.h"

enum { BLOCKS = 3000,
       THREADS = 3,
       CHILD_MS = 20000 };

static void* mi_orphan_test_blocks[BLOCKS];
static pthread_barrier_t mi_orphan_test_ready;
static pthread_barrier_t mi_orphan_test_over;

static int64_t mi_orphan_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

static size_t mi_orphan_test_size(size_t i) { return 16 + i * 37 % 3000; }

// Fills the table, frees a third of it, and waits with its lists full.
static void* mi_orphan_test_fill(void* arg) {
  for (size_t i = 0; i < BLOCKS; i++) {
    mi_orphan_test_blocks[i] = _mi_alloc(mi_orphan_test_size(i));
    MI_REQUIRE(mi_orphan_test_blocks[i] != NULL);
    mi_test_fill(mi_orphan_test_blocks[i], 16, i);
  }
  for (size_t i = 0; i < BLOCKS; i += 3) {
    _mi_free(mi_orphan_test_blocks[i]);
    mi_orphan_test_blocks[i] = NULL;
  }
  pthread_barrier_wait(&mi_orphan_test_ready);
  pthread_barrier_wait(&mi_orphan_test_over);
  return arg;
}

static void mi_orphan_test_free_all(void) {
  for (size_t i = 0; i < BLOCKS; i++) {
    if (mi_orphan_test_blocks[i] != NULL) {
      MI_CHECK(mi_test_filled(mi_orphan_test_blocks[i], 16, i));
      _mi_free(mi_orphan_test_blocks[i]);
      mi_orphan_test_blocks[i] = NULL;
    }
  }
}

static void mi_orphan_test_adopts(void* arg) {
  const int64_t own_pages = *(const int64_t*)arg;
  MI_CHECK(_mi_orphans_pending());
  MI_CHECK_EQ(mi_orphan_test_current(&_mi_stats.threads), 1);
  const int64_t before = mi_orphan_test_current(&_mi_stats.pages);
  MI_CHECK(before > own_pages);
  _mi_collect(true);
  MI_CHECK(!_mi_orphans_pending());
  MI_CHECK_EQ(mi_orphan_test_current(&_mi_stats.theaps), 1);
  MI_CHECK(mi_orphan_test_current(&_mi_stats.pages_abandoned) > 0);
  // What was free in them is used before there is a new page.
  void* const p = _mi_alloc(mi_orphan_test_size(0));
  MI_CHECK(p != NULL && mi_orphan_test_current(&_mi_stats.pages) <= before);
  _mi_free(p);
  // The last block takes its page along.
  mi_orphan_test_free_all();
  _mi_collect(true);
  MI_CHECK_MSG(mi_orphan_test_current(&_mi_stats.pages) <= own_pages, "%lld pages are left, %lld of them ours",
               (long long)mi_orphan_test_current(&_mi_stats.pages), (long long)own_pages);
  MI_CHECK_EQ(mi_orphan_test_current(&_mi_stats.pages_abandoned), 0);
}

static void mi_orphan_test_make_ready(mi_page_t* page, void* block) {
  if (!MI_HAS_OUTLINE_LISTS) {
    page->free = block;
    return;
  }
  // As if it had been in use, and is stocked. Where no block is the number is one of no place.
  const uint64_t index = _mi_page_live_index(page, block);
  _mi_page_stock(page)[page->stocked++] = (uint16_t)_mi_min((size_t)index, UINT16_MAX);
  page->used++;
}

static void mi_orphan_test_make_ready_twice(mi_page_t* page) {
  if (!MI_HAS_OUTLINE_LISTS) {
    page->local_free = page->free;
    return;
  }
  MI_REQUIRE(page->stocked > 1);
  _mi_page_stock(page)[0] = _mi_page_stock(page)[1];
}

// The page that block i lies in: its lists or counts are made to look as in the middle of an operation.
static void mi_orphan_test_leaves(void* arg) {
  const size_t how = (size_t)(uintptr_t)arg;
  mi_page_t* const page = _mi_page_map_find(mi_orphan_test_blocks[1]);
  MI_REQUIRE(page != NULL && !_mi_page_is_single(page));
  const uintptr_t owner = mi_atomic_load_relaxed(&page->owner);
  switch (how) {
    case 0: page->used++; break;
    case 1: page->used--; break;
    case 2: mi_orphan_test_make_ready(page, mi_orphan_test_blocks[1]); break;
    case 3: mi_orphan_test_make_ready_twice(page); break;
    case 4: page->capacity++; break;
    case 5: mi_orphan_test_make_ready(page, page->start + 1); break;
    case 6: page->unlisted ^= 1; break;
    default: (void)mi_atomic_add_relaxed(&page->remote, UINT64_C(1) << MI_REMOTE_COUNT_SHIFT); break;
  }
  _mi_collect(true);
  MI_CHECK(!_mi_orphans_pending());
  MI_CHECK_MSG(mi_atomic_load_relaxed(&page->owner) == owner, "way %zu", how);
  if (how != 7) {
    mi_orphan_test_free_all();
    MI_CHECK(_mi_page_map_find(page->start) == page);
  }
}

MI_TEST(pages_of_a_parked_thread) {
  MI_REQUIRE(_mi_theap_default() != NULL);
  pthread_barrier_init(&mi_orphan_test_ready, NULL, 2);
  pthread_barrier_init(&mi_orphan_test_over, NULL, 2);
  _mi_collect(true);
  int64_t pages = mi_orphan_test_current(&_mi_stats.pages);
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_orphan_test_fill, NULL) == 0);
  pthread_barrier_wait(&mi_orphan_test_ready);
  // Frees of this thread are pending in the other's pages.
  for (size_t i = 0; i < BLOCKS; i += 3) {
    _mi_free(mi_orphan_test_blocks[i + 2]);
    mi_orphan_test_blocks[i + 2] = NULL;
  }
  MI_CHECK_IN_CHILD(&mi_orphan_test_adopts, &pages, CHILD_MS);
  for (uintptr_t how = 0; how < 8; how++) {
    if (how == 6 && !MI_HAS_RANDOM_ORDER) continue;
    MI_CHECK_IN_CHILD(&mi_orphan_test_leaves, (void*)how, CHILD_MS);
  }
  MI_CHECK(!_mi_orphans_pending());
  pthread_barrier_wait(&mi_orphan_test_over);
  pthread_join(thread, NULL);
  mi_orphan_test_free_all();
  _mi_collect(true);
  MI_CHECK_EQ(mi_orphan_test_current(&_mi_stats.pages), pages);
}

// Threads that are stopped anywhere.

static _Atomic(uintptr_t) mi_orphan_test_slots[64];
static _Atomic(bool) mi_orphan_test_stop;

static void mi_orphan_test_step(uint64_t* seed) {
  const uint64_t r = mi_test_random(seed);
  const size_t size = 16 + (size_t)(r >> 16) % 1500;
  void* const p = _mi_alloc(size);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, 16, (uintptr_t)p);
  void* const old = (void*)mi_atomic_exchange_acq_rel(&mi_orphan_test_slots[r % 64], (uintptr_t)p);
  if (old != NULL) {
    MI_CHECK(mi_test_filled(old, 16, (uintptr_t)old));
    _mi_free(old);
  }
}

static void* mi_orphan_test_churn(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!mi_atomic_load_relaxed(&mi_orphan_test_stop)) {
    mi_orphan_test_step(&seed);
  }
  return NULL;
}

static bool mi_orphan_test_count(mi_page_t* page, void* count) {
  const uintptr_t owner = mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS;
  *(size_t*)count += owner >= MI_TID_FIRST && owner != _mi_tls.own_tid;
  return true;
}

static void mi_orphan_test_goes_on(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  // What cannot be taken over: a page for each thread that was in the middle of an operation, and no more.
  _mi_collect(true);
  MI_CHECK(!_mi_orphans_pending());
  size_t lost = 0;
  _mi_visit_arena_pages(NULL, &mi_orphan_test_count, &lost);
  MI_CHECK_MSG(lost <= THREADS, "%zu pages are lost with %d threads", lost, (int)THREADS);
  for (int i = 0; i < 3000; i++) {
    mi_orphan_test_step(&seed);
  }
  // Threads of its own, and a child of its own with theirs as orphans.
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_orphan_test_churn, (void*)(t + 100)) == 0);
  }
  sched_yield();
  mi_atomic_store_relaxed(&mi_orphan_test_stop, true);
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  _mi_collect(true);
  MI_CHECK(!_mi_orphans_pending());
  for (int i = 0; i < 3000; i++) {
    mi_orphan_test_step(&seed);
  }
}

MI_TEST(threads_stopped_anywhere) {
  mi_atomic_store_relaxed(&mi_orphan_test_stop, false);
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_orphan_test_churn, (void*)(t + 1)) == 0);
  }
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 60);
  const uint64_t deadline = mi_test_deadline();
  for (uintptr_t i = 0; mi_test_goes_on((long)i, rounds, deadline); i++) {
    MI_CHECK_IN_CHILD(&mi_orphan_test_goes_on, (void*)(i + 7), CHILD_MS);
  }
  mi_atomic_store_relaxed(&mi_orphan_test_stop, true);
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
}

MI_TEST_MAIN()
