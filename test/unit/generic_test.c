// Owns: tests of heap/generic: retired pages, pages that others emptied, purging by whoever calls next, pages with few free blocks, scarce memory.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: deadlines are short, and waited for.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { DELAY = 50,
       MANY = 4000 };

static int64_t mi_generic_test_pages(void) { return _mi_stat_view(&_mi_stats.pages).current; }

static void mi_generic_test_wait(void) { usleep((DELAY + 20) * 1000); }

static void* mi_generic_test_blocks[MANY];

static void mi_generic_test_alloc(size_t size, int count) {
  for (int i = 0; i < count; i++) {
    mi_generic_test_blocks[i] = _mi_alloc(size);
    MI_REQUIRE(mi_generic_test_blocks[i] != NULL);
  }
}

static void* mi_generic_test_free(void* arg) {
  const int count = *(const int*)arg;
  for (int i = 0; i < count; i++) {
    _mi_free(mi_generic_test_blocks[i]);
  }
  return NULL;
}

static void mi_generic_test_free_elsewhere(int count) {
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_generic_test_free, &count) == 0);
  pthread_join(thread, NULL);
}

static const size_t mi_generic_test_sizes[] = {16, 64, 1000, 1500, 5000, 20000};
enum { SIZES = sizeof(mi_generic_test_sizes) / sizeof(mi_generic_test_sizes[0]) };

static const mi_page_queue_t* mi_generic_test_queue(size_t size) {
  return &_mi_theap_default()->queues[_mi_bin_of_size(size + MI_BLOCK_EXTRA)];
}

// Makes the only page of a class, which is empty and kept.
static const mi_page_queue_t* mi_generic_test_retire(size_t size) {
  const mi_page_queue_t* const queue = mi_generic_test_queue(size);
  MI_REQUIRE(queue->count == 0);
  void* const p = _mi_alloc(size);
  MI_REQUIRE(p != NULL && queue->count == 1);
  _mi_free(p);
  MI_CHECK(queue->count == 1 && queue->retired == 1);
  return queue;
}

// A new page is made after an empty one of another class was given up, where no check is made: of several the smallest, but no small
// one for a larger.
MI_TEST(empty_pages_serve_other_classes) {
  _mi_option_set(mi_option_quarantine_blocks, 0);
  _mi_option_set(mi_option_guarded_sample_rate, 0);
  const long delay = _mi_option_get(mi_option_purge_delay);
  _mi_option_set(mi_option_purge_delay, 1000000);
  _mi_collect(true);
  const mi_page_queue_t* const medium = mi_generic_test_retire(30000);
  const mi_page_queue_t* const small = mi_generic_test_retire(700);
  if (MI_HAS_LIVE_BITS) {
    MI_CHECK(medium->retired == 1 && small->retired == 1);
  } else {
    // It took the place of the other.
    MI_CHECK(medium->count == 0);
    const mi_page_queue_t* const again = mi_generic_test_retire(30000);
    MI_CHECK(again->retired == 1 && small->retired == 1);
    const mi_page_queue_t* const third = mi_generic_test_retire(900);
    MI_CHECK(small->count == 0 && again->retired == 1);
    const mi_page_queue_t* const large = mi_generic_test_retire(200000);
    MI_CHECK(third->retired == 1 && again->count == 0 && large->retired == 1);
  }
  _mi_option_set(mi_option_purge_delay, delay);
  _mi_collect(true);
  _mi_tls.own->retire_due = 0;
}

// The first call after the deadline gives back what has not been reused.
MI_TEST(retired_pages_go_at_their_deadline) {
  // What waits in quarantine keeps its pages.
  _mi_option_set(mi_option_quarantine_blocks, 0);
  _mi_option_set(mi_option_purge_delay, DELAY);
  void* const keep = _mi_alloc(48);
  _mi_collect(true);
  const int64_t pages = mi_generic_test_pages();
  for (size_t i = 0; i < SIZES; i++) {
    mi_generic_test_alloc(mi_generic_test_sizes[i], MANY / 8);
    int count = MANY / 8;
    mi_generic_test_free(&count);
  }
  mi_generic_test_wait();
  _mi_free(_mi_alloc(48));
  MI_CHECK_EQ(mi_generic_test_pages(), pages);
  _mi_free(keep);
}

// A thread that fills pages and empties them finds them as they were, up to a bound; they go when they are not wanted.
MI_TEST(empty_pages_are_kept) {
  enum { SIZE = 4096,
         ROUND = 32,
         TOO_MANY = 4000 };
  _mi_option_set(mi_option_quarantine_blocks, 0);
  _mi_option_set(mi_option_purge_delay, DELAY);
  _mi_collect(true);
  int count = ROUND;
  mi_generic_test_alloc(SIZE, count);
  mi_generic_test_free(&count);
  const int64_t pages = mi_generic_test_pages();
  const int64_t made = _mi_stat_view(&_mi_stats.pages).total;
  for (int i = 0; i < 20; i++) {
    mi_generic_test_alloc(SIZE, count);
    mi_generic_test_free(&count);
  }
  MI_CHECK_EQ(mi_generic_test_pages(), pages);
  // But for those that a deadline took meanwhile.
  MI_CHECK(_mi_stat_view(&_mi_stats.pages).total - made <= 4);
  // Of 4,000 pages' worth no more than a fourth and 128 slices stay.
  count = TOO_MANY;
  mi_generic_test_alloc(SIZE, count);
  mi_generic_test_free(&count);
  MI_CHECK_MSG(mi_generic_test_pages() <= pages + 128, "%lld pages are kept", (long long)(mi_generic_test_pages() - pages));
  _mi_collect(true);
  MI_CHECK(mi_generic_test_pages() < pages);
}

// Another thread frees everything; the owner goes on in the class, and keeps no empty page beyond the deadline.
MI_TEST(pages_that_others_emptied_go_too) {
  for (size_t i = 0; i < SIZES; i++) {
    _mi_collect(true);
    const int64_t pages = mi_generic_test_pages();
    mi_generic_test_alloc(mi_generic_test_sizes[i], MANY);
    mi_generic_test_free_elsewhere(MANY);
    void* kept[8];
    for (int k = 0; k < 8; k++) {
      kept[k] = _mi_alloc(mi_generic_test_sizes[i]);
    }
    // Calls on and off the fast path, before and after the deadline.
    for (int k = 0; k < 4; k++) {
      mi_generic_test_wait();
      _mi_free(_mi_alloc(mi_generic_test_sizes[i]));
      _mi_free(_mi_alloc(100000));
    }
    MI_CHECK_MSG(mi_generic_test_pages() <= pages + 3, "blocks of %zu bytes: %lld pages held by 8 blocks", mi_generic_test_sizes[i],
                 (long long)(mi_generic_test_pages() - pages));
    for (int k = 0; k < 8; k++) {
      _mi_free(kept[k]);
    }
  }
}

// A thread leaves memory pending and ends. The next call of any other thread after the deadline purges it.

// In pages of many blocks: the memory of a large block may go back to the system when it is freed.
static void* mi_generic_test_leave_pending(void* arg) {
  enum { COUNT = 80,
         SIZE = 100000 };
  void* blocks[COUNT];
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = _mi_alloc(SIZE);
    MI_REQUIRE(blocks[i] != NULL);
    memset(blocks[i], 1, SIZE);
  }
  for (int i = 0; i < COUNT; i++) {
    _mi_free(blocks[i]);
  }
  return arg;
}

static void mi_generic_test_thread_leaves_pending(void) {
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_generic_test_leave_pending, NULL) == 0);
  pthread_join(thread, NULL);
  MI_CHECK(mi_atomic_load_relaxed(&_mi_arena_purge_due) != 0);
}

MI_TEST(the_next_call_of_any_thread_purges) {
  _mi_option_set(mi_option_purge_delay, DELAY);
  _mi_collect(true);
  // This thread is armed, with free blocks ready.
  void* const keep = _mi_alloc(48);
  for (int i = 0; i < 10; i++) {
    _mi_free(_mi_alloc(48));
  }
  mi_generic_test_thread_leaves_pending();
  mi_generic_test_wait();
  _mi_free(_mi_alloc(48));
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_arena_purge_due), 0);
  _mi_free(keep);
}

// Calls 10 ms apart on the fast path: what is due is not passed over for more than a few of them.
MI_TEST(a_slow_caller_purges) {
  _mi_collect(true);
  void* const keep = _mi_alloc(64);
  mi_generic_test_thread_leaves_pending();
  int calls = 0;
  while (mi_atomic_load_relaxed(&_mi_arena_purge_due) != 0 && calls < 200) {
    usleep(10000);
    void* const q = _mi_alloc(64);
    calls += _mi_prim_clock_ms() >= mi_atomic_load_relaxed(&_mi_arena_purge_due);
    _mi_free(q);
  }
  MI_CHECK_MSG(calls <= 4, "%d calls after the deadline", calls);
  _mi_free(keep);
}

// Zeroes on every path: fresh, reused, freed by others, purged.
MI_TEST(zeroed_blocks_are_zero) {
  for (int round = 0; round < 4; round++) {
    for (size_t i = 0; i < SIZES; i++) {
      for (int k = 0; k < 300; k++) {
        unsigned char* const p = _mi_alloc_zero(mi_generic_test_sizes[i]);
        MI_REQUIRE(p != NULL);
        MI_CHECK(mi_test_all_bytes(p, _mi_usable_size(p), 0));
        memset(p, 0xee, _mi_usable_size(p));
        mi_generic_test_blocks[k] = p;
      }
      int count = 300;
      if (round % 2 == 0) {
        mi_generic_test_free(&count);
      } else {
        mi_generic_test_free_elsewhere(300);
      }
    }
    if (round == 1) {
      _mi_collect(true);
    }
  }
}

// A request that the system has no memory for is tried again for as long as the option says, while another thread gives
// some back.

// Pages of which two blocks are free are left for later: a search for each second block would cost more than a new page. Where
// freed blocks are looked at when they serve again that is not put off: there such pages serve before a new one is made.
static void mi_generic_test_few(void* arg) {
  (void)arg;
  enum { SIZE = 900,
         BLOCKS = 8000,
         TAKEN = 150,
         SEARCHES_MAX = TAKEN / 3 };
  static void* held[BLOCKS];
  _mi_option_set(mi_option_quarantine_blocks, 0);
  _mi_option_set(mi_option_guarded_sample_rate, 0);
  _mi_option_set(mi_option_page_full_retain, BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++) {
    held[i] = _mi_alloc(SIZE);
  }
  // The last page is not used up.
  const mi_page_t* page = _mi_page_map_find(held[BLOCKS - 1]);
  for (uint32_t left = page->reserved - _mi_page_in_use(page); left > 0; left--) {
    MI_REQUIRE(_mi_page_map_find(_mi_alloc(SIZE)) == page);
  }
  size_t freed = 0;
  for (size_t i = 0; i < BLOCKS; i++) {
    freed = _mi_page_map_find(held[i]) == page ? freed : 0;
    page = _mi_page_map_find(held[i]);
    if (freed++ < 2) {
      _mi_free(held[i]);
    }
  }
  const mi_theap_t* const theap = _mi_theap_own();
  const size_t searches = theap->counts.searches;
  const int64_t pages = mi_generic_test_pages();
  for (size_t i = 0; i < TAKEN; i++) {
    MI_REQUIRE(_mi_alloc(SIZE) != NULL);
  }
  const size_t more = theap->counts.searches - searches;
  if (MI_HAS_QUARANTINE) {
    MI_CHECK_EQ(mi_generic_test_pages(), pages);
  } else {
    MI_CHECK_MSG(more <= SEARCHES_MAX, "%zu searches", more);
  }
}

MI_TEST(few_free_blocks_wait_for_more) {
  if (!MI_HAS_FILL) {
    MI_REQUIRE(_mi_process_init());
    MI_CHECK_IN_CHILD(&mi_generic_test_few, NULL, 20000);
  }
}

enum { SCARCE = 256 * 1024 * 1024 };

static void* mi_generic_test_give_back(void* memory) {
  usleep(100 * 1000);
  MI_CHECK_EQ(munmap(memory, SCARCE), 0);
  return NULL;
}

static void mi_generic_test_scarce(void* arg) {
  const long retry = *(const long*)arg;
  _mi_option_set(mi_option_retry_on_oom, retry);
  // A mapping of its own, whatever is reserved already.
  _mi_option_set(mi_option_arena_max_object_size, 1024);
  _mi_free(_mi_alloc(1));
  void* const memory = mmap(NULL, SCARCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(memory != MAP_FAILED);
  // Only where that is waited for: on a busy machine it might come before the call.
  const bool is_given = retry > 50;
  pthread_t thread;
  MI_REQUIRE(!is_given || pthread_create(&thread, NULL, &mi_generic_test_give_back, memory) == 0);
  // What the process has, and less than is asked for.
  long pages = 0;
  FILE* const statm = fopen("/proc/self/statm", "r");
  MI_REQUIRE(statm != NULL && fscanf(statm, "%ld", &pages) == 1);
  fclose(statm);
  struct rlimit limit = {(rlim_t)pages * (rlim_t)getpagesize() + SCARCE / 4, RLIM_INFINITY};
  MI_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  void* const p = _mi_alloc(SCARCE / 2);
  MI_CHECK_MSG((p != NULL) == is_given, "with %ld ms", retry);
  _mi_free(p);
  if (is_given) {
    pthread_join(thread, NULL);
  }
}

MI_TEST(scarce_memory_is_waited_for) {
  static const long waits[] = {0, 20, 8000};
  for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
    long wait = waits[i];
    MI_CHECK_IN_CHILD(&mi_generic_test_scarce, &wait, 20000);
  }
}

// Many threads that are alive at once and have few blocks each share pages, so that they do not hold one each for a class.

enum { CROWD = 200,
       CROWD_BLOCKS = 3 };

static pthread_barrier_t mi_generic_test_barrier;

static void* mi_generic_test_stay(void* arg) {
  uint8_t* blocks[CROWD_BLOCKS];
  for (int i = 0; i < CROWD_BLOCKS; i++) {
    blocks[i] = _mi_alloc(500);
    MI_REQUIRE(blocks[i] != NULL);
    memset(blocks[i], (int)(uintptr_t)arg, 500);
  }
  pthread_barrier_wait(&mi_generic_test_barrier);
  // The main thread counts.
  pthread_barrier_wait(&mi_generic_test_barrier);
  for (int i = 0; i < CROWD_BLOCKS; i++) {
    for (int k = 0; k < 500; k++) {
      MI_REQUIRE(blocks[i][k] == (uint8_t)(uintptr_t)arg);
    }
    _mi_free(blocks[i]);
  }
  return NULL;
}

MI_TEST(a_crowd_of_threads_shares_pages) {
  pthread_t threads[CROWD];
  pthread_barrier_init(&mi_generic_test_barrier, NULL, CROWD + 1);
  _mi_collect(true);
  const int64_t pages = mi_generic_test_pages();
  for (uintptr_t t = 0; t < CROWD; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_generic_test_stay, (void*)t) == 0);
  }
  pthread_barrier_wait(&mi_generic_test_barrier);
  const int64_t held = mi_generic_test_pages() - pages;
  pthread_barrier_wait(&mi_generic_test_barrier);
  for (int t = 0; t < CROWD; t++) {
    pthread_join(threads[t], NULL);
  }
  pthread_barrier_destroy(&mi_generic_test_barrier);
  // 32 threads may have a page for themselves, and the thread library allocates, too.
  MI_CHECK_MSG(held < CROWD / 2, "%lld pages held by %d threads of one class", (long long)held, CROWD);
  _mi_collect(true);
  MI_CHECK(mi_generic_test_pages() <= pages + 3);
}

MI_TEST_MAIN()
