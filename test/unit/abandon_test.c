// Owns: tests of heap/abandon: who owns a page when, the heap's lists, claims by frees, and pages of threads that end.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: when all blocks are freed and all threads have ended no page of them is left.
#include <pthread.h>
#include <sched.h>

#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

enum { THREADS = 4,
       SLOTS = 512,
       MANY = 20000 };

static void* mi_abandon_test_blocks[MANY];

static int64_t mi_abandon_test_current(const mi_stat_t* stat) { return _mi_stat_view(stat).current; }

// How often a page stands in the heap's list of its class; the list's links are checked on the way.
static size_t mi_abandon_test_listed(mi_heap_t* heap, unsigned bin, const mi_page_t* wanted) {
  size_t found = 0;
  const mi_page_t* last = NULL;
  _mi_lock_acquire(&heap->lock);
  for (mi_page_t* page = mi_atomic_load_relaxed(&heap->listed[bin].first); page != NULL; page = page->next) {
    MI_CHECK_PTR_EQ(page->prev, last);
    MI_CHECK_EQ(page->bin, bin);
    MI_CHECK((mi_atomic_load_relaxed(&page->remote) & MI_REMOTE_LISTED) != 0);
    found += page == wanted || wanted == NULL;
    last = page;
  }
  MI_CHECK_PTR_EQ(heap->listed[bin].last, last);
  _mi_lock_release(&heap->lock);
  return found;
}

static uint64_t mi_abandon_test_flags(mi_page_t* page) {
  return mi_atomic_load_relaxed(&page->remote) & (MI_REMOTE_OWNED | MI_REMOTE_LISTED);
}

static uintptr_t mi_abandon_test_owner(mi_page_t* page) {
  return mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS;
}

// Frees blocks[from … to) on a thread of its own, which may hold a block of the class, and may be gone afterwards.
typedef struct mi_abandon_test_job_s {
  size_t from;
  size_t to;
  size_t hold;  // allocates a block of so many bytes first, if not 0
  void* held;
  mi_page_t* page;            // whose owner is to be noted when all is freed
  bool owned_by_this_thread;  // that
} mi_abandon_test_job_t;

static void* mi_abandon_test_free_range(void* arg) {
  mi_abandon_test_job_t* const job = arg;
  job->held = job->hold != 0 ? _mi_alloc(job->hold) : NULL;
  for (size_t i = job->from; i < job->to; i++) {
    _mi_free(mi_abandon_test_blocks[i]);
  }
  job->owned_by_this_thread = job->page != NULL && _mi_tls.own_tid != 0 && mi_abandon_test_owner(job->page) == _mi_tls.own_tid;
  return NULL;
}

static bool mi_abandon_test_elsewhere(size_t from, size_t to, size_t hold, mi_page_t* page) {
  mi_abandon_test_job_t job = {from, to, hold, NULL, page, false};
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_abandon_test_free_range, &job) == 0);
  pthread_join(thread, NULL);
  _mi_free(job.held);
  return job.owned_by_this_thread;
}

// Frees are followed one by one here: none waits.
__attribute__((constructor)) static void mi_abandon_test_no_quarantine(void) { _mi_option_set(mi_option_quarantine_blocks, 0); }

// A block as a program would get it.
static void* mi_abandon_test_pop(mi_page_t* page) {
  void* const p = _mi_page_pop(page);
  return p == NULL ? NULL : _mi_block_hand_out(page, p, page->block_size - MI_BLOCK_EXTRA, false, page->free_is_zero);
}

// A page of its own, in no queue, with every block handed out; blocks [0 … reserved).
static mi_page_t* mi_abandon_test_full_page(unsigned bin) {
  mi_theap_t* const theap = _mi_theap_default();
  MI_REQUIRE(theap != NULL);
  mi_page_t* const page = _mi_page_new(theap, bin);
  MI_REQUIRE(page != NULL && page->reserved <= MANY);
  for (uint32_t i = 0; i < page->reserved; i++) {
    if (page->free == NULL) {
      _mi_page_extend(page);
    }
    mi_abandon_test_blocks[i] = mi_abandon_test_pop(page);
    MI_REQUIRE(mi_abandon_test_blocks[i] != NULL);
  }
  MI_REQUIRE(page->free == NULL && _mi_page_used(page) == page->reserved && page->capacity == page->reserved);
  return page;
}

static const unsigned mi_abandon_test_bins[] = {1, 4, 20, 56, 60, 80, 81, 104};
enum { BINS = sizeof(mi_abandon_test_bins) / sizeof(mi_abandon_test_bins[0]) };

static mi_heap_t* mi_abandon_test_main(void) {
  MI_REQUIRE(_mi_theap_default() != NULL);
  return _mi_heap_main();
}

// A full page without an owner belongs to nobody until the first free into it, which claims it.
MI_TEST(full_page_is_let_go_of) {
  mi_heap_t* const heap = mi_abandon_test_main();
  _mi_option_set(mi_option_page_reclaim_on_free, 1);
  for (size_t b = 0; b < BINS; b++) {
    const unsigned bin = mi_abandon_test_bins[b];
    const int64_t pages = mi_abandon_test_current(&_mi_stats.pages);
    mi_page_t* const page = mi_abandon_test_full_page(bin);
    const uint32_t n = page->reserved;
    MI_CHECK_EQ(mi_abandon_test_owner(page), _mi_tls.own_tid);
    MI_CHECK(_mi_page_try_unown_full(page));
    MI_CHECK_EQ(mi_abandon_test_owner(page) | mi_atomic_load_relaxed(&page->owner), MI_TID_NONE);
    MI_CHECK_EQ(mi_atomic_load_relaxed(&page->remote), 0);
    MI_CHECK_EQ(mi_abandon_test_listed(heap, bin, page), 0);
    // A thread that never allocates in the class does not keep it: it is listed, with what it freed pending or collected.
    MI_CHECK(!mi_abandon_test_elsewhere(0, 1, 0, page));
    MI_CHECK_EQ(mi_abandon_test_flags(page), MI_REMOTE_LISTED);
    MI_CHECK_EQ(mi_abandon_test_listed(heap, bin, page), 1);
    MI_CHECK_EQ(mi_atomic_load_relaxed(&page->remote) >> MI_REMOTE_USED_SHIFT, n - 1);
    // All but one, then the last one: it is gone, and nothing else is.
    (void)mi_abandon_test_elsewhere(1, n - 1, 0, NULL);
    MI_CHECK_EQ(mi_abandon_test_flags(page), MI_REMOTE_LISTED);
    MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages), pages + 1);
    _mi_free(mi_abandon_test_blocks[n - 1]);
    MI_CHECK_EQ(mi_abandon_test_listed(heap, bin, NULL), 0);
    MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages), pages);
    MI_CHECK(_mi_page_map_find(mi_abandon_test_blocks[0]) == NULL);
  }
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages_abandoned), 0);
}

// Frees by others between the last look and letting go: still owned, and nothing is lost.
MI_TEST(full_page_is_kept_when_others_freed) {
  mi_page_t* const page = mi_abandon_test_full_page(20);
  const uint32_t n = page->reserved;
  (void)mi_abandon_test_elsewhere(0, 3, 0, NULL);
  MI_CHECK(!_mi_page_try_unown_full(page));
  MI_CHECK_EQ(mi_atomic_load_relaxed(&page->owner), _mi_tls.own_tid);
  MI_CHECK_EQ(mi_abandon_test_flags(page), MI_REMOTE_OWNED);
  _mi_page_collect(page);
  MI_CHECK_EQ(_mi_page_used(page), n - 3);
  size_t in_list = MI_HAS_OUTLINE_LISTS ? page->capacity - _mi_page_in_use(page) : 0;
  for (const mi_block_t* block = MI_HAS_OUTLINE_LISTS ? NULL : page->free; block != NULL; block = _mi_block_next(page, block)) {
    in_list++;
  }
  MI_CHECK_EQ(in_list, 3);
  // To the lists; then back to this thread, with the blocks.
  _mi_page_abandon(page);
  MI_CHECK_EQ(mi_abandon_test_flags(page), MI_REMOTE_LISTED);
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages_abandoned), 1);
  mi_theap_t* const theap = _mi_theap_default();
  MI_CHECK_PTR_EQ(_mi_heap_take_listed(_mi_heap_main(), 20, theap), page);
  MI_CHECK(_mi_heap_take_listed(_mi_heap_main(), 20, theap) == NULL);
  MI_CHECK_EQ(mi_abandon_test_flags(page), MI_REMOTE_OWNED);
  MI_CHECK_PTR_EQ(page->theap, theap);
  MI_CHECK_EQ(_mi_page_used(page), n - 3);
  _mi_queue_push_back(theap, page);
  for (uint32_t i = 3; i < n; i++) {
    _mi_free(mi_abandon_test_blocks[i]);
  }
  _mi_collect(true);
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages_abandoned), 0);
}

// First in, first out; taking from the middle keeps the links.
MI_TEST(list_order) {
  enum { PAGES = 5 };
  mi_heap_t* const heap = mi_abandon_test_main();
  mi_theap_t* const theap = _mi_theap_default();
  mi_page_t* pages[PAGES];
  void* kept[PAGES];
  for (int i = 0; i < PAGES; i++) {
    pages[i] = _mi_page_new(theap, 30);
    MI_REQUIRE(pages[i] != NULL);
    _mi_page_extend(pages[i]);
    kept[i] = mi_abandon_test_pop(pages[i]);
    _mi_page_abandon(pages[i]);
    MI_CHECK_EQ(mi_abandon_test_listed(heap, 30, NULL), (size_t)i + 1);
  }
  // The only block of the third is freed: it leaves from the middle.
  _mi_free(kept[2]);
  MI_CHECK_EQ(mi_abandon_test_listed(heap, 30, NULL), PAGES - 1);
  static const int order[] = {0, 1, 3, 4};
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
    mi_page_t* const page = _mi_heap_take_listed(heap, 30, theap);
    MI_CHECK_PTR_EQ(page, pages[order[i]]);
    MI_REQUIRE(page != NULL);
    MI_CHECK(page->next == NULL && page->prev == NULL);
    _mi_queue_push_front(theap, page);
    _mi_free(kept[order[i]]);
  }
  MI_CHECK_EQ(mi_abandon_test_listed(heap, 30, NULL), 0);
  _mi_collect(true);
}

// A theap that is about to look for a page may have lost its heap, whose place another heap has by then.
MI_TEST(only_the_heap_of_the_theap_is_looked_at) {
  mi_heap_t* const heap = _mi_heap_new();
  MI_REQUIRE(heap != NULL);
  mi_theap_t* const theap = _mi_heap_theap(heap);
  mi_page_t* const page = _mi_page_new(theap, 30);
  MI_REQUIRE(page != NULL);
  _mi_page_extend(page);
  void* const kept = mi_abandon_test_pop(page);
  _mi_page_abandon(page);
  MI_CHECK_EQ(mi_abandon_test_listed(heap, 30, page), 1);
  MI_CHECK(_mi_heap_take_listed(heap, 30, _mi_theap_default()) == NULL);
  MI_CHECK_EQ(mi_abandon_test_listed(heap, 30, page), 1);
  MI_CHECK_PTR_EQ(_mi_heap_take_listed(heap, 30, theap), page);
  _mi_queue_push_front(theap, page);
  _mi_free(kept);
  _mi_heap_delete(heap);
  _mi_collect(true);
}

// A page with nothing in use is not listed but given back.
MI_TEST(empty_page_is_released) {
  const int64_t pages = mi_abandon_test_current(&_mi_stats.pages);
  mi_page_t* const page = mi_abandon_test_full_page(40);
  const uint32_t n = page->reserved;
  (void)mi_abandon_test_elsewhere(0, n, 0, NULL);
  _mi_page_abandon(page);
  MI_CHECK_EQ(mi_abandon_test_listed(_mi_heap_main(), 40, NULL), 0);
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages), pages);
}

// Who has the page after the first free into a full one.
static const struct {
  long reclaim;
  long max;        // of others' pages
  long max_own;    // of one's own
  bool by_filler;  // the thread that filled it frees, else another one
  bool uses_class;
  bool reclaimed;
} mi_abandon_test_reclaims[] = {
    {-1, 32, -1, true, true, false},
    {0, 32, -1, true, true, true},
    {1, 32, -1, true, false, true},
    {-1, 32, -1, false, true, false},
    {0, 32, -1, false, true, false},
    {1, 32, -1, false, true, true},
    {1, 32, -1, false, false, false},
    {1, 0, -1, false, true, false},
    {1, 32, 0, true, true, false},
    {1, 32, 1, true, true, false},
    {1, 32, 2, true, true, true},
    {1, 32, 0, false, true, true},
};

MI_TEST(reclaim_on_free) {
  for (size_t i = 0; i < sizeof(mi_abandon_test_reclaims) / sizeof(mi_abandon_test_reclaims[0]); i++) {
    _mi_collect(true);
    _mi_option_set(mi_option_page_reclaim_on_free, mi_abandon_test_reclaims[i].reclaim);
    _mi_option_set(mi_option_page_cross_thread_max_reclaim, mi_abandon_test_reclaims[i].max);
    _mi_option_set(mi_option_page_max_reclaim, mi_abandon_test_reclaims[i].max_own);
    mi_page_t* const page = mi_abandon_test_full_page(24);
    const size_t size = page->block_size;
    const size_t hold = mi_abandon_test_reclaims[i].uses_class ? size - MI_BLOCK_EXTRA : 16;
    const uint32_t n = page->reserved;
    MI_REQUIRE(_mi_page_try_unown_full(page));
    if (mi_abandon_test_reclaims[i].by_filler) {
      void* const held = _mi_alloc(hold);
      _mi_free(mi_abandon_test_blocks[0]);
      MI_CHECK_MSG((mi_abandon_test_owner(page) == _mi_tls.own_tid) == mi_abandon_test_reclaims[i].reclaimed, "row %zu", i);
      _mi_free(held);
    } else {
      MI_CHECK_MSG(mi_abandon_test_elsewhere(0, 1, hold, page) == mi_abandon_test_reclaims[i].reclaimed, "row %zu", i);
    }
    // Reclaimed or not, by a thread that lives or not: the rest of the blocks take it with them.
    for (uint32_t k = 1; k < n; k++) {
      _mi_free(mi_abandon_test_blocks[k]);
    }
    _mi_collect(true);
    MI_CHECK_EQ(mi_abandon_test_listed(_mi_heap_main(), 24, NULL), 0);
    MI_CHECK(_mi_page_map_find(mi_abandon_test_blocks[0]) == NULL);
  }
  _mi_option_set(mi_option_page_reclaim_on_free, 1);
  _mi_option_set(mi_option_page_cross_thread_max_reclaim, 32);
  _mi_option_set(mi_option_page_max_reclaim, -1);
}

// Threads that end

static const size_t mi_abandon_test_sizes[] = {16, 48, 200, 1000, 5000, 20000, 100000, 500000};
enum { SIZES = sizeof(mi_abandon_test_sizes) / sizeof(mi_abandon_test_sizes[0]),
       EACH = 40 };

static void* mi_abandon_test_leave(void* arg) {
  (void)arg;
  size_t n = 0;
  for (size_t i = 0; i < SIZES; i++) {
    for (size_t k = 0; k < EACH; k++) {
      void* const p = _mi_alloc(mi_abandon_test_sizes[i]);
      MI_REQUIRE(p != NULL);
      mi_test_fill(p, mi_abandon_test_sizes[i], (uintptr_t)p);
      mi_abandon_test_blocks[n++] = p;
    }
  }
  return NULL;
}

MI_TEST(pages_of_an_ended_thread) {
  _mi_collect(true);
  const int64_t pages = mi_abandon_test_current(&_mi_stats.pages);
  for (int way = 0; way < 3; way++) {
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_abandon_test_leave, NULL) == 0);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < SIZES * EACH; i++) {
      MI_CHECK(mi_test_filled(mi_abandon_test_blocks[i], mi_abandon_test_sizes[i / EACH], (uintptr_t)mi_abandon_test_blocks[i]));
      MI_CHECK_EQ(mi_abandon_test_owner(_mi_page_map_find(mi_abandon_test_blocks[i])) |
                      mi_atomic_load_relaxed(&_mi_page_map_find(mi_abandon_test_blocks[i])->owner),
                  MI_TID_NONE);
    }
    if (way == 1) {
      // This thread takes over what it needs, and overwrites nothing.
      void* mine[SIZES];
      for (size_t i = 0; i < SIZES; i++) {
        mine[i] = _mi_alloc(mi_abandon_test_sizes[i]);
        memset(mine[i], 0x55, mi_abandon_test_sizes[i]);
      }
      for (size_t i = 0; i < SIZES * EACH; i++) {
        MI_CHECK(mi_test_filled(mi_abandon_test_blocks[i], mi_abandon_test_sizes[i / EACH], (uintptr_t)mi_abandon_test_blocks[i]));
      }
      for (size_t i = 0; i < SIZES; i++) {
        _mi_free(mine[i]);
      }
    }
    if (way == 2) {
      (void)mi_abandon_test_elsewhere(0, SIZES * EACH, 0, NULL);
    } else {
      mi_abandon_test_job_t job = {0, SIZES * EACH, 0, NULL, NULL, false};
      (void)mi_abandon_test_free_range(&job);
    }
    _mi_collect(true);
    MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages), pages);
    MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages_abandoned), 0);
  }
}

// Blocks go round between threads that come and go: each is allocated once, freed once, and by anyone.

static _Atomic(uintptr_t) mi_abandon_test_slots[SLOTS];

static void mi_abandon_test_swap(size_t slot, void* p) {
  void* const old = (void*)mi_atomic_exchange_acq_rel(&mi_abandon_test_slots[slot], (uintptr_t)p);
  if (old != NULL) {
    size_t size;
    memcpy(&size, old, sizeof(size));
    MI_CHECK(mi_test_filled((char*)old + 8, size - 8, (uintptr_t)old));
    _mi_free(old);
  }
}

static void* mi_abandon_test_exchange(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  // Few classes with few blocks a page, so that pages fill, empty and change hands all the time.
  static const size_t sizes[] = {32, 3000, 8000, 30000, 60000};
  for (int i = 0; i < 1500; i++) {
    const uint64_t r = mi_test_random(&seed);
    const size_t size = sizes[r % 5];
    void* const p = (r >> 8) % 3 == 0 ? NULL : _mi_alloc(size);
    if (p != NULL) {
      memcpy(p, &size, sizeof(size));
      mi_test_fill((char*)p + 8, size - 8, (uintptr_t)p);
    }
    mi_abandon_test_swap((r >> 16) % SLOTS, p);
  }
  return NULL;
}

static const struct {
  long retain;
  long reclaim;
} mi_abandon_test_modes[] = {{0, 1}, {0, -1}, {2, 0}, {0, 0}, {2, 1}};

MI_TEST(blocks_go_round) {
  _mi_collect(true);
  const int64_t pages = mi_abandon_test_current(&_mi_stats.pages);
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 10);
  for (long round = 0; round < rounds; round++) {
    _mi_option_set(mi_option_page_full_retain, mi_abandon_test_modes[round % 5].retain);
    _mi_option_set(mi_option_page_reclaim_on_free, mi_abandon_test_modes[round % 5].reclaim);
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
      MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_abandon_test_exchange, (void*)((uintptr_t)round * THREADS + t + 1)) == 0);
    }
    (void)mi_abandon_test_exchange((void*)(uintptr_t)(round + 1000));
    for (int t = 0; t < THREADS; t++) {
      pthread_join(threads[t], NULL);
    }
    for (size_t i = 0; i < SLOTS; i++) {
      mi_abandon_test_swap(i, NULL);
    }
    _mi_collect(true);
    MI_CHECK_MSG(mi_abandon_test_current(&_mi_stats.pages) == pages, "round %ld: %lld pages, %lld before, %lld of them listed", round,
                 (long long)mi_abandon_test_current(&_mi_stats.pages), (long long)pages,
                 (long long)mi_abandon_test_current(&_mi_stats.pages_abandoned));
  }
  _mi_option_set(mi_option_page_full_retain, 2);
  _mi_option_set(mi_option_page_reclaim_on_free, 1);
}

// Two threads, a page with two blocks in use, over and over: each step races a free with letting go, listing, taking and releasing.

static _Atomic(uintptr_t) mi_abandon_test_pair[2];
static _Atomic(bool) mi_abandon_test_done;

static void* mi_abandon_test_free_pairs(void* arg) {
  const size_t which = (size_t)(uintptr_t)arg;
  for (;;) {
    void* const p = (void*)mi_atomic_exchange_acq_rel(&mi_abandon_test_pair[which], 0);
    if (p != NULL) {
      _mi_free(p);
    } else if (mi_atomic_load_acquire(&mi_abandon_test_done)) {
      return NULL;
    } else {
      sched_yield();
    }
  }
}

MI_TEST(frees_race_with_letting_go) {
  mi_theap_t* const theap = _mi_theap_default();
  _mi_collect(true);
  const int64_t pages = mi_abandon_test_current(&_mi_stats.pages);
  pthread_t threads[2];
  mi_atomic_store_relaxed(&mi_abandon_test_done, false);
  for (uintptr_t t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_abandon_test_free_pairs, (void*)t) == 0);
  }
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 3000);
  long kept = 0;
  for (long round = 0; round < rounds; round++) {
    mi_page_t* const page = _mi_page_new(theap, 40);
    MI_REQUIRE(page != NULL);
    _mi_page_extend(page);
    void* const a = mi_abandon_test_pop(page);
    void* const b = mi_abandon_test_pop(page);
    MI_REQUIRE(a != NULL && b != NULL);
    mi_atomic_store_release(&mi_abandon_test_pair[0], (uintptr_t)a);
    mi_atomic_store_release(&mi_abandon_test_pair[1], (uintptr_t)b);
    _mi_page_abandon(page);
    mi_page_t* const taken = _mi_heap_take_listed(_mi_heap_main(), 40, theap);
    if (taken != NULL) {
      kept++;
      _mi_page_abandon(taken);
    }
    while (mi_atomic_load_relaxed(&mi_abandon_test_pair[0]) != 0 || mi_atomic_load_relaxed(&mi_abandon_test_pair[1]) != 0) {
      sched_yield();
    }
  }
  mi_atomic_store_release(&mi_abandon_test_done, true);
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  _mi_collect(true);
  MI_CHECK_MSG(mi_abandon_test_current(&_mi_stats.pages) == pages, "%lld pages are left, %ld were taken from the list",
               (long long)(mi_abandon_test_current(&_mi_stats.pages) - pages), kept);
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages_abandoned), 0);
}

// Four blocks of a page that is listed, taken, used and listed again while others free: the same count and the same first
// block come back with another number of blocks in use. Whoever frees the last one must still know that it did.
MI_TEST(frees_race_with_a_page_that_goes_round) {
  mi_theap_t* const theap = _mi_theap_default();
  _mi_collect(true);
  const int64_t pages = mi_abandon_test_current(&_mi_stats.pages);
  pthread_t threads[2];
  mi_atomic_store_relaxed(&mi_abandon_test_done, false);
  for (uintptr_t t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_abandon_test_free_pairs, (void*)t) == 0);
  }
  const long rounds = mi_test_scale("MI_TEST_ROUNDS", 2000);
  for (long round = 0; round < rounds; round++) {
    mi_page_t* page = _mi_page_new(theap, 40);
    MI_REQUIRE(page != NULL);
    _mi_page_extend(page);
    void* const last = mi_abandon_test_pop(page);
    for (int turn = 0; turn < 6 && page != NULL; turn++) {
      for (size_t which = 0; which < 2; which++) {
        if (mi_atomic_load_acquire(&mi_abandon_test_pair[which]) == 0 && (page->free != NULL || _mi_page_refill_freed(page))) {
          mi_atomic_store_release(&mi_abandon_test_pair[which], (uintptr_t)mi_abandon_test_pop(page));
        }
      }
      _mi_page_abandon(page);
      page = _mi_heap_take_listed(_mi_heap_main(), 40, theap);
    }
    if (page != NULL) {
      _mi_page_abandon(page);
    }
    _mi_free(last);
    while (mi_atomic_load_relaxed(&mi_abandon_test_pair[0]) != 0 || mi_atomic_load_relaxed(&mi_abandon_test_pair[1]) != 0) {
      sched_yield();
    }
  }
  mi_atomic_store_release(&mi_abandon_test_done, true);
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  // No collection: none of the pages is this thread's.
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages), pages);
  MI_CHECK_EQ(mi_abandon_test_current(&_mi_stats.pages_abandoned), 0);
}

MI_TEST_MAIN()
