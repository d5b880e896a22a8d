// Owns: the stress of test/stress/stress.h on the mi_ names, so that it also runs under a sanitizer, which keeps malloc for itself.
// May include: test/stress/stress.h, mimalloc.h.
// Called by: the stress targets; MI_TEST_MS sets the time of each test.
// Invariants: linked with a variant's archive.
// Flags: -pthread -Iinclude
#include "mi-profile.h"
#include "mimalloc-stats.h"
#include "mimalloc.h"

#include "test/stress/stress.h"

static void* aligned(size_t align, size_t size) { return mi_malloc_aligned(size, align); }
static size_t usable(void* p) { return mi_usable_size(p); }

static const stress_names_t stress_names = {mi_malloc, mi_calloc, mi_realloc, mi_free, aligned, usable};

// Collections from every thread, and reads of all that is counted, beside the rest.
static void* collector(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  mi_stats_t_decl(stats);
  while (!__atomic_load_n(&stress_stop, __ATOMIC_RELAXED)) {
    stress_some_steps(&seed, 100);
    mi_collect(mi_test_random(&seed) % 4 == 0);
    MI_CHECK(mi_stats_get(&stats) && stats.pages.current >= 0 && stats.malloc_normal.current >= 0);
  }
  return NULL;
}

MI_TEST(collecting) {
  pthread_t t[STRESS_THREADS];
  __atomic_store_n(&stress_stop, 0, __ATOMIC_RELAXED);
  for (uintptr_t i = 0; i < STRESS_THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, i % 4 == 0 ? collector : stress_exchanger, (void*)(i + 1)) == 0);
  const uint64_t end = stress_deadline();
  while (mi_test_now_ms() < end) mi_test_sleep_ms(20);
  __atomic_store_n(&stress_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < STRESS_THREADS; i++) pthread_join(t[i], NULL);
  stress_clear();
  mi_collect(true);
}

// Heaps that are deleted and replaced while their blocks go from thread to thread, while threads have them for default
// heaps, and between visits.

enum { STRESS_HEAPS = 6 };
static struct {
  pthread_rwlock_t lock;  // who allocates by the heap's name keeps it from being ended
  mi_heap_t* heap;
} stress_heaps[STRESS_HEAPS];

static void* heap_user(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  mi_stats_t_decl(stats);
  while (!__atomic_load_n(&stress_stop, __ATOMIC_RELAXED)) {
    const size_t k = mi_test_random(&seed) % STRESS_HEAPS;
    const uint64_t r = mi_test_random(&seed);
    pthread_rwlock_rdlock(&stress_heaps[k].lock);
    mi_heap_t* const heap = stress_heaps[k].heap;
    if (r % 4 == 0) {
      mi_heap_set_default(heap);
    } else if (r % 64 == 5) {
      MI_CHECK(mi_heap_stats_get(heap, &stats) && stats.malloc_normal.current >= 0);
    } else {
      for (int i = 0; i < 20; i++) {
        const size_t size = stress_size(mi_test_random(&seed));
        stress_block_t* const b = (stress_block_t*)(i % 2 == 0 ? mi_heap_malloc(heap, size) : mi_theap_malloc(mi_heap_theap(heap), size));
        MI_REQUIRE(b != NULL);
        stress_fill(b, size, r + (uint64_t)i);
        stress_delete(__atomic_exchange_n(&stress_slots[mi_test_random(&seed) % STRESS_SLOTS], b, __ATOMIC_ACQ_REL));
      }
    }
    pthread_rwlock_unlock(&stress_heaps[k].lock);
    // From the default heap, which may be deleted just now.
    stress_some_steps(&seed, 20);
    if (r % 16 == 1) mi_heap_set_default(NULL);
    if (r % 64 == 2) mi_collect_reduce(1 << 20);
  }
  return NULL;
}

static bool heap_count(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap;
  MI_CHECK(block == NULL || ((char*)block >= (char*)area->blocks && (char*)block + size <= (char*)area->blocks + area->reserved));
  ++*(size_t*)arg;
  return true;
}

static void* heap_visitor(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!__atomic_load_n(&stress_stop, __ATOMIC_RELAXED)) {
    const size_t k = mi_test_random(&seed) % STRESS_HEAPS;
    size_t count = 0;
    pthread_rwlock_rdlock(&stress_heaps[k].lock);
    mi_heap_visit_blocks(stress_heaps[k].heap, true, heap_count, &count);
    mi_heap_visit_abandoned_blocks(NULL, true, heap_count, &count);
    pthread_rwlock_unlock(&stress_heaps[k].lock);
  }
  return NULL;
}

MI_TEST(heaps) {
  pthread_t t[STRESS_THREADS];
  uint64_t seed = 9;
  for (size_t k = 0; k < STRESS_HEAPS; k++) {
    pthread_rwlock_init(&stress_heaps[k].lock, NULL);
    stress_heaps[k].heap = mi_heap_new();
  }
  __atomic_store_n(&stress_stop, 0, __ATOMIC_RELAXED);
  // What is told of blocks beside their threads is read from live bits; without them that would be a race.
  void* (*const visitor)(void*) = MI_HAS_LIVE_BITS && !MI_HAS_PADDING ? heap_visitor : heap_user;
  for (uintptr_t i = 0; i < STRESS_THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, i == 0 ? visitor : heap_user, (void*)(i + 1)) == 0);
  const uint64_t end = stress_deadline();
  while (mi_test_now_ms() < end) {
    const size_t k = mi_test_random(&seed) % STRESS_HEAPS;
    mi_heap_t* const next = mi_heap_new();
    MI_REQUIRE(next != NULL);
    pthread_rwlock_wrlock(&stress_heaps[k].lock);
    mi_heap_t* const last = stress_heaps[k].heap;
    stress_heaps[k].heap = next;
    pthread_rwlock_unlock(&stress_heaps[k].lock);
    mi_heap_delete(last);
  }
  __atomic_store_n(&stress_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < STRESS_THREADS; i++) pthread_join(t[i], NULL);
  stress_clear();
  for (size_t k = 0; k < STRESS_HEAPS; k++) {
    mi_heap_destroy(stress_heaps[k].heap);
    pthread_rwlock_destroy(&stress_heaps[k].lock);
  }
}

MI_TEST_MAIN()
