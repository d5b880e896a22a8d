// Owns: legal programs that look like misuse; none may be reported.
// May include: test/lib, POSIX threads.
// Called by: rows of test/death/rows.txt, which demand that stderr stays empty.
// Invariants: every free here is the first of its block.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>

#include "test/lib/test.h"

static const size_t sizes[] = {8, 16, 24, 48, 100, 500, 1000, 4096, 10000, 40000, 65536, 262144, 600000, 3 << 20};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

MI_TEST(contents_like_list_pointers) {
  // Blocks full of other blocks' addresses, live and freed, and of their own.
  for (size_t k = 0; k < COUNT(sizes); k++) {
    enum { N = 64 };
    void** p[N];
    const size_t words = sizes[k] / sizeof(void*);
    for (int round = 0; round < 4; round++) {
      for (size_t i = 0; i < N; i++) {
        p[i] = (void**)malloc(sizes[k]);
        MI_REQUIRE(p[i] != NULL);
      }
      for (size_t i = 0; i < N; i++) {
        for (size_t w = 0; w < words && w < 64; w++) p[i][w] = round == 0 ? p[i] : (round == 1 ? p[(i + 1) % N] : (round == 2 ? (void*)((uintptr_t)p[i] + sizes[k]) : NULL));
      }
      for (size_t i = 0; i < N; i += 2) free(p[i]);
      for (size_t i = 1; i < N; i += 2) {
        // Points to freed blocks now, and is freed with that in it.
        for (size_t w = 0; w < words && w < 64; w++) p[i][w] = p[i - 1];
        free(p[i]);
      }
    }
  }
}

enum { THREADS = 16,
       EACH = 3000 };
static void* handed[THREADS][EACH];
static pthread_barrier_t barrier;

static void* delayed(void* arg) {
  const uintptr_t me = (uintptr_t)arg;
  for (int round = 0; round < 4; round++) {
    for (size_t i = 0; i < EACH; i++) {
      handed[me][i] = malloc(sizes[i % 7]);
      MI_REQUIRE(handed[me][i] != NULL);
      memset(handed[me][i], (int)me, sizes[i % 7]);
    }
    pthread_barrier_wait(&barrier);
    // Each frees the blocks of all others, in slices, while all others do so.
    for (size_t i = me; i < EACH; i += THREADS) {
      for (size_t t = 0; t < THREADS; t++) free(handed[t][i]);
    }
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

MI_TEST(delayed_frees_by_16_threads) {
  pthread_t t[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (uintptr_t i = 0; i < THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, delayed, (void*)i) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

MI_TEST(freed_and_had_again) {
  // The same address, freed many times, each time as a new block.
  for (size_t k = 0; k < COUNT(sizes); k++) {
    for (int i = 0; i < 2000; i++) {
      char* p = (char*)malloc(sizes[k]);
      MI_REQUIRE(p != NULL);
      p[0] = 1;
      free(p);
    }
  }
}

MI_TEST(aligned_blocks) {
  for (size_t align = 8; align <= 1 << 22; align *= 2) {
    for (size_t k = 0; k < COUNT(sizes); k++) {
      void* p[8];
      for (int i = 0; i < 8; i++) {
        p[i] = memalign(align, sizes[k]);
        MI_REQUIRE(p[i] != NULL);
        memset(p[i], 0xff, sizes[k] < 5000 ? sizes[k] : 5000);
      }
      for (int i = 0; i < 4; i++) {
        MI_CHECK(malloc_usable_size(p[i]) >= sizes[k]);
        p[i] = realloc(p[i], sizes[k] * 2);
        MI_REQUIRE(p[i] != NULL);
      }
      for (int i = 7; i >= 0; i--) free(p[i]);
    }
  }
}

MI_TEST(all_usable_bytes_written) {
  for (size_t k = 0; k < COUNT(sizes); k++) {
    for (int i = 0; i < 50; i++) {
      void* p = i % 2 ? calloc(1, sizes[k]) : malloc(sizes[k]);
      MI_REQUIRE(p != NULL);
      memset(p, 0xa5, malloc_usable_size(p));
      if (i % 3 == 0) p = realloc(p, malloc_usable_size(p));
      free(p);
    }
  }
}

static void* in_thread(void* p) {
  free(p);
  return malloc(5000);
}

MI_TEST(blocks_wander_between_threads) {
  void* p = malloc(5000);
  for (int i = 0; i < 500; i++) {
    pthread_t t;
    void* next = NULL;
    MI_REQUIRE(pthread_create(&t, NULL, in_thread, p) == 0);
    pthread_join(t, &next);
    MI_REQUIRE(next != NULL);
    p = next;
  }
  free(p);
}

MI_TEST_MAIN()
