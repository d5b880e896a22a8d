// Owns: the stress of test/stress/stress.h on the mi_ names, so that it also runs under a sanitizer, which keeps malloc for itself.
// May include: test/stress/stress.h, mimalloc.h.
// Called by: the stress targets; MI_TEST_MS sets the time of each test.
// Invariants: linked with a variant's archive.
// Flags: -pthread -Iinclude
#include "mimalloc.h"

#include "test/stress/stress.h"

static void* aligned(size_t align, size_t size) { return mi_malloc_aligned(size, align); }
static size_t usable(void* p) { return mi_usable_size(p); }

static const stress_names_t stress_names = {mi_malloc, mi_calloc, mi_realloc, mi_free, aligned, usable};

// Collections from every thread, beside the rest.
static void* collector(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  while (!__atomic_load_n(&stress_stop, __ATOMIC_RELAXED)) {
    stress_some_steps(&seed, 100);
    mi_collect(mi_test_random(&seed) % 4 == 0);
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

MI_TEST_MAIN()
