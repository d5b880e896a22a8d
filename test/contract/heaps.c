// Owns: the contract of heaps: used by many threads, ended by any, memory flat, every live block visited once.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt; the names are looked up in whatever library is preloaded.
// Invariants: declares what it uses by itself, so that it also checks the binary interface.
// Flags: -ldl -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <pthread.h>

#include "test/lib/child.h"
#include "test/lib/names.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

typedef struct area_s {
  void* blocks;
  size_t reserved;
  size_t committed;
  size_t used;
  size_t block_size;
  size_t full_block_size;
  int tag;
} area_t;

typedef bool visitor_t(const void* heap, const area_t* area, void* block, size_t size, void* arg);

// X(return type, name, parameters)
#define CALLS(X)                                                  \
  X(void*, mi_heap_new, (void))                                   \
  X(void*, mi_heap_new_ex, (int, bool, void*))                    \
  X(void, mi_heap_delete, (void*))                                \
  X(void, mi_heap_destroy, (void*))                               \
  X(void*, mi_heap_malloc, (void*, size_t))                       \
  X(void*, mi_heap_malloc_aligned, (void*, size_t, size_t))       \
  X(void*, mi_heap_realloc, (void*, void*, size_t))               \
  X(void*, mi_heap_of, (const void*))                             \
  X(void*, mi_heap_main, (void))                                  \
  X(void*, mi_heap_get_default, (void))                           \
  X(void*, mi_heap_set_default, (void*))                          \
  X(bool, mi_heap_visit_blocks, (void*, bool, visitor_t*, void*)) \
  X(void, mi_collect, (bool))                                     \
  X(size_t, mi_usable_size, (const void*))

CALLS(MI_TEST_NAME)

MI_TEST(names_are_there) {
  CALLS(MI_TEST_LOOK_UP)
  if (mi_test_failure_count() > 0) _exit(1);
}

enum { THREADS = 32,
       BATCH = 20 };

static pthread_barrier_t gate;
static void* heaps[BATCH];
static void* blocks[THREADS][BATCH];
static bool is_over;

static size_t size_of(size_t thread, size_t i) { return 1 + (thread * 131 + i * 977) % (i % 10 == 9 ? 70000 : 3000); }

// Makes heaps, some of them here, and uses those of all.
static void* user(void* arg) {
  const size_t me = (uintptr_t)arg;
  for (;;) {
    pthread_barrier_wait(&gate);
    if (is_over) return NULL;
    for (size_t i = 0; i < BATCH; i++) {
      unsigned char* const p = mi_heap_malloc(heaps[i], size_of(me, i));
      MI_REQUIRE(p != NULL);
      p[0] = (unsigned char)me;
      p[size_of(me, i) - 1] = (unsigned char)me;
      blocks[me][i] = p;
    }
    pthread_barrier_wait(&gate);
  }
}

// 100,000 heaps, each used by 32 threads that live on: what served them is used again.
MI_TEST(come_and_go) {
  const size_t rounds = (size_t)mi_test_scale("MI_TEST_HEAPS", 20000) / BATCH;
  pthread_t threads[THREADS];
  // What is resident in a round depends on when the last purge was, so the most of early rounds stands against the least of late ones.
  size_t rss = 0, late_rss = SIZE_MAX, maps = 0, space = 0;
  pthread_barrier_init(&gate, NULL, THREADS + 1);
  for (uintptr_t t = 0; t < THREADS; t++) MI_REQUIRE(pthread_create(&threads[t], NULL, &user, (void*)t) == 0);
  for (size_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < BATCH; i++) {
      heaps[i] = mi_heap_new();
      MI_REQUIRE(heaps[i] != NULL);
    }
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    for (size_t i = 0; i < BATCH; i++) {
      const bool keep = i % 5 == 0;
      for (size_t t = 0; t < THREADS; t++) {
        const unsigned char* const p = blocks[t][i];
        MI_CHECK(mi_heap_of(p) == heaps[i] && p[0] == t && p[size_of(t, i) - 1] == t);
      }
      (keep ? mi_heap_delete : mi_heap_destroy)(heaps[i]);
      for (size_t t = 0; keep && t < THREADS; t++) {
        MI_CHECK(mi_heap_of(blocks[t][i]) == mi_heap_main());
        free(blocks[t][i]);
      }
    }
    const size_t now = mi_test_rss();
    if (round >= rounds / 20 && round <= rounds / 5) rss = now > rss ? now : rss;
    if (round >= rounds - rounds / 5) late_rss = now < late_rss ? now : late_rss;
    if (round == rounds / 10) {
      maps = mi_test_mappings();
      space = mi_test_address_space();
    }
  }
  is_over = true;
  pthread_barrier_wait(&gate);
  MI_CHECK_MSG(late_rss <= rss + (12 << 20), "RSS from at most %zu to at least %zu KiB", rss >> 10, late_rss >> 10);
  MI_CHECK_MSG(mi_test_mappings() <= maps + 64, "mappings from %zu to %zu", maps, mi_test_mappings());
  MI_CHECK_MSG(mi_test_address_space() <= space + (64 << 20), "address space from %zu to %zu KiB", space >> 10, mi_test_address_space() >> 10);
  for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
}

// A heap that its own thread made, used and left, ended by another.

static void* maker(void* arg) {
  void** const made = arg;
  made[0] = mi_heap_new();
  for (size_t i = 1; i < BATCH; i++) {
    made[i] = mi_heap_malloc(made[0], i * 3000);
    memset(made[i], (int)i, i * 3000);
  }
  return NULL;
}

MI_TEST(of_ended_threads) {
  for (int round = 0; round < 200; round++) {
    pthread_t t;
    void* made[BATCH];
    MI_REQUIRE(pthread_create(&t, NULL, &maker, made) == 0);
    pthread_join(t, NULL);
    // Goes on to be used.
    made[1] = mi_heap_realloc(made[0], made[1], 70000);
    MI_CHECK(mi_heap_of(made[1]) == made[0]);
    for (size_t i = 2; i < BATCH; i++) MI_CHECK(mi_test_all_bytes(made[i], i * 3000, (int)i) && mi_heap_of(made[i]) == made[0]);
    if (round % 2 == 0) {
      mi_heap_destroy(made[0]);
      MI_CHECK(mi_heap_of(made[2]) != made[0]);
    } else {
      mi_heap_delete(made[0]);
      for (size_t i = 1; i < BATCH; i++) free(made[i]);
    }
  }
}

// Deleting a heap while another thread frees into it loses nothing.

enum { MANY = 4000 };
static void* many[MANY];

static void* freer(void* arg) {
  pthread_barrier_wait(&gate);
  for (size_t i = (uintptr_t)arg; i < MANY; i += 2) free(many[i]);
  return NULL;
}

MI_TEST(deleted_while_others_free) {
  size_t rss = 0;
  for (int round = 0; round < 100; round++) {
    pthread_t threads[2];
    void* const heap = mi_heap_new();
    pthread_barrier_init(&gate, NULL, 3);
    for (size_t i = 0; i < MANY; i++) {
      many[i] = mi_heap_malloc(heap, 1 + i % 2000);
      memset(many[i], 1, 1 + i % 2000);
    }
    for (uintptr_t t = 0; t < 2; t++) MI_REQUIRE(pthread_create(&threads[t], NULL, &freer, (void*)t) == 0);
    pthread_barrier_wait(&gate);
    mi_heap_delete(heap);
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&gate);
    mi_collect(true);
    if (round == 10) rss = mi_test_rss();
  }
  MI_CHECK_MSG(mi_test_rss() <= rss + (8 << 20), "RSS from %zu to %zu KiB", rss >> 10, mi_test_rss() >> 10);
}

// malloc of this thread, and of it alone, comes from the heap of its choice; in a forked child, too.

static void* plain_thread(void* arg) {
  (void)arg;
  void* const p = malloc(100);
  MI_CHECK(mi_heap_of(p) == mi_heap_main() && mi_heap_get_default() == mi_heap_main());
  free(p);
  return NULL;
}

static void child(void* heap) {
  void* const p = malloc(100);
  MI_CHECK(mi_heap_of(p) == heap && mi_heap_get_default() == heap);
  free(p);
  mi_heap_set_default(NULL);
  mi_heap_destroy(heap);
  free(malloc(100));
}

static void* choosing_thread(void* heap) {
  mi_heap_set_default(heap);
  return malloc(50);
}

MI_TEST(default_heap) {
  void* const heap = mi_heap_new();
  MI_CHECK(mi_heap_set_default(heap) == mi_heap_main());
  void* p[5] = {malloc(1), calloc(3, 1000), aligned_alloc(256, 512), realloc(NULL, 100000), malloc(5000000)};
  p[0] = realloc(p[0], 20000);
  pthread_t t;
  MI_REQUIRE(pthread_create(&t, NULL, &plain_thread, NULL) == 0);
  pthread_join(t, NULL);
  MI_CHECK_IN_CHILD(&child, heap, 20000);
  MI_CHECK(mi_heap_set_default(NULL) == heap);
  for (int i = 0; i < 5; i++) {
    MI_CHECK(mi_heap_of(p[i]) == heap);
    free(p[i]);
  }
  for (int i = 0; i < 100; i++) {
    void* left;
    MI_REQUIRE(pthread_create(&t, NULL, &choosing_thread, heap) == 0);
    pthread_join(t, &left);
    MI_CHECK(mi_heap_of(left) == heap);
  }
  mi_heap_destroy(heap);
  free(malloc(10));
}

// A visitor sees every live block once, of every size.

static bool see(const void* heap, const area_t* area, void* block, size_t size, void* arg) {
  if (block != NULL) {
    MI_CHECK(mi_heap_of(block) == heap && area->tag == 77 && size == mi_usable_size(block));
    // The first bytes say which it is; there is room for that in all but those of no bytes.
    if (size >= 4) ((unsigned*)arg)[*(unsigned*)block]++;
    else ((unsigned*)arg)[0]++;
  }
  return true;
}

MI_TEST(visits) {
  static unsigned seen[MANY];
  static const size_t sizes[] = {4, 8, 16, 24, 100, 1024, 5000, 8192, 30000, 65536, 300000, 600000, 2100000};
  void* const heap = mi_heap_new_ex(77, true, NULL);
  size_t live = 0;
  memset(many, 0, sizeof(many));
  for (unsigned i = 1; i < MANY; i++) {
    const size_t size = sizes[i % (i < 100 ? 13 : 9)];
    many[i] = i % 16 == 3 ? mi_heap_malloc_aligned(heap, size, (size_t)8 << i % 12) : mi_heap_malloc(heap, size);
    MI_REQUIRE(many[i] != NULL);
    *(unsigned*)many[i] = i;
  }
  for (unsigned i = 1; i < MANY; i++) {
    if (i % 3 == 0) free(many[i]);
    live += i % 3 != 0;
  }
  MI_CHECK(mi_heap_visit_blocks(heap, true, &see, seen));
  size_t wrong = 0;
  for (unsigned i = 0; i < MANY; i++) wrong += seen[i] != (i != 0 && i % 3 != 0);
  MI_CHECK_MSG(wrong == 0, "%zu of %zu live blocks were not seen once", wrong, live);
  mi_heap_destroy(heap);
}

MI_TEST_MAIN()
