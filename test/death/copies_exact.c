// Owns: that checked copies do what the C library's do: results, bytes, overlaps, and no report of a legal call.
// May include: test/lib, POSIX threads, the C library.
// Called by: rows of test/death/copies.txt.
// Invariants: every call is legal; what it is to do is worked out byte by byte.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#undef _FORTIFY_SOURCE  // the names as they are written
#include <malloc.h>
#include <pthread.h>
#include <strings.h>
#include <wchar.h>

#include "test/lib/test.h"

enum { ROUNDS = 20000,
       THREADS = 8,
       MOST = 5000 };

typedef struct buffers_s {
  unsigned char* to;
  unsigned char* from;
  unsigned char* wanted;
  size_t room;
} buffers_t;

static void fill(unsigned char* p, size_t n, uint64_t* seed) {
  for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(mi_test_random(seed) % 255 + 1);
}

static void copy(unsigned char* to, const unsigned char* from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = from[i];
}

static bool same(const unsigned char* a, const unsigned char* b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// One call of each kind, from places inside of blocks up to their last bytes.
static void round_of(uint64_t* seed, unsigned kind) {
  buffers_t b = {.room = (size_t)(mi_test_random(seed) % MOST) + 1};
  b.to = (unsigned char*)malloc(b.room);
  b.from = (unsigned char*)malloc(b.room);
  MI_REQUIRE(b.to != NULL && b.from != NULL);
  b.room = malloc_usable_size(b.to);
  // The same under ours; other allocators differ.
  if (malloc_usable_size(b.from) < b.room) b.room = malloc_usable_size(b.from);
  b.wanted = (unsigned char*)malloc(b.room);
  MI_REQUIRE(b.wanted != NULL);
  fill(b.to, b.room, seed);
  fill(b.from, b.room, seed);
  copy(b.wanted, b.to, b.room);
  // n bytes that end with the block, or anywhere in it.
  const size_t n = (size_t)(mi_test_random(seed) % b.room) + 1;
  const size_t at = mi_test_random(seed) % 2 ? b.room - n : (size_t)(mi_test_random(seed) % (b.room - n + 1));
  unsigned char* const to = b.to + at;
  unsigned char* const from = b.from + at;
  unsigned char* const wanted = b.wanted + at;
  const int c = (int)(mi_test_random(seed) % 255 + 1);
  const void* result = NULL;
  const void* expected = to;
  // Where the zero of a string of less than n bytes is.
  const size_t length = (size_t)(mi_test_random(seed) % n);
  switch (kind) {
    case 0:
      result = memcpy(to, from, n);
      copy(wanted, from, n);
      break;
    case 1: {
      // Overlapping, in both directions.
      const size_t shift = (size_t)(mi_test_random(seed) % (b.room - n + 1));
      copy(b.from, b.to, b.room);
      result = memmove(b.to + shift, to, n);
      expected = b.to + shift;
      copy(b.wanted + shift, b.from + at, n);
      break;
    }
    case 2:
      result = mempcpy(to, from, n);
      expected = to + n;
      copy(wanted, from, n);
      break;
    case 3: {
      // Says more than there is: what comes after the byte that ends it is not looked at.
      from[length] = 3;
      size_t stop = 0;
      while (from[stop] != 3) stop++;
      result = memccpy(to, from, 3, n + MOST);
      expected = to + stop + 1;
      copy(wanted, from, stop + 1);
      break;
    }
    case 4:
      result = memset(to, c, n);
      for (size_t i = 0; i < n; i++) wanted[i] = (unsigned char)c;
      break;
    case 5:
      from[length] = 0;
      result = strcpy((char*)to, (char*)from);
      copy(wanted, from, length + 1);
      break;
    case 6:
      from[length] = 0;
      result = stpcpy((char*)to, (char*)from);
      expected = to + length;
      copy(wanted, from, length + 1);
      break;
    case 7:
      from[length] = 0;
      result = strncpy((char*)to, (char*)from, n);
      copy(wanted, from, length);
      for (size_t i = length; i < n; i++) wanted[i] = 0;
      break;
    case 8:
      from[length] = 0;
      result = stpncpy((char*)to, (char*)from, n);
      expected = to + length;
      copy(wanted, from, length);
      for (size_t i = length; i < n; i++) wanted[i] = 0;
      break;
    case 9: {
      const size_t before = (size_t)(mi_test_random(seed) % (n - length));
      to[before] = 0;
      from[length] = 0;
      result = strcat((char*)to, (char*)from);
      wanted[before] = 0;
      copy(wanted + before, from, length + 1);
      break;
    }
    case 10: {
      // No zero in what is copied.
      const size_t before = (size_t)(mi_test_random(seed) % (n - length));
      to[before] = 0;
      result = strncat((char*)to, (char*)from, length);
      copy(wanted + before, from, length);
      wanted[before + length] = 0;
      break;
    }
    case 11:
      bcopy(from, to, n);
      copy(wanted, from, n);
      result = to;
      break;
    case 12:
      bzero(to, n);
      for (size_t i = 0; i < n; i++) wanted[i] = 0;
      result = to;
      break;
    case 13:
      // A string that fills its block to the last byte, which has no zero.
      result = strncpy((char*)to, (char*)from, n);
      copy(wanted, from, n);
      break;
    case 14: {
      const size_t wides = b.room / sizeof(wchar_t);
      result = wmemcpy((wchar_t*)(void*)b.to, (const wchar_t*)(const void*)b.from, wides);
      expected = b.to;
      copy(b.wanted, b.from, wides * sizeof(wchar_t));
      break;
    }
    default: {
      const size_t wides = b.room / sizeof(wchar_t);
      const wchar_t w = 0x01020304;
      result = wmemset((wchar_t*)(void*)b.to, w, wides);
      expected = b.to;
      for (size_t i = 0; i < wides * sizeof(wchar_t); i++) b.wanted[i] = ((const unsigned char*)&w)[i % sizeof(wchar_t)];
      break;
    }
  }
  MI_CHECK_MSG(result == expected, "kind %u, %zu bytes at %zu of %zu", kind, n, at, b.room);
  MI_CHECK_MSG(same(b.to, b.wanted, b.room), "kind %u, %zu bytes at %zu of %zu", kind, n, at, b.room);
  free(b.to);
  free(b.from);
  free(b.wanted);
}

MI_TEST(results) {
  uint64_t seed = 1;
  for (unsigned i = 0; i < ROUNDS; i++) round_of(&seed, i % 16);
}

static void* handed[THREADS][64];
static pthread_barrier_t barrier;

// Copies between blocks of other threads, which free them afterwards: their pages change hands all the time.
static void* wander(void* arg) {
  const size_t me = (size_t)(uintptr_t)arg;
  uint64_t seed = me + 1;
  for (int round = 0; round < 60; round++) {
    for (size_t i = 0; i < 64; i++) {
      handed[me][i] = calloc(1, 3000);
      MI_REQUIRE(handed[me][i] != NULL);
    }
    pthread_barrier_wait(&barrier);
    for (size_t i = me; i < 64; i += THREADS) {
      for (size_t t = 0; t < THREADS; t++) {
        char* const p = (char*)handed[t][i];
        memset(p, (int)me, 1000);
        memcpy(p + 1000, p, 1000);
        memmove(p + 1500, p + 1000, 1500);
        free(p);
      }
    }
    round_of(&seed, (unsigned)round % 16);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

MI_TEST(blocks_of_other_threads) {
  pthread_t t[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (size_t i = 0; i < THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, wander, (void*)(uintptr_t)i) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

MI_TEST(aligned_and_grown_blocks) {
  uint64_t seed = 5;
  for (size_t align = 16; align <= 1 << 22; align *= 2) {
    for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
      char* p = (char*)memalign(align, size);
      MI_REQUIRE(p != NULL);
      memset(p, (int)(mi_test_random(&seed) % 256), malloc_usable_size(p));
      p = (char*)realloc(p, size * 2 + 70000);
      MI_REQUIRE(p != NULL);
      const size_t usable = malloc_usable_size(p);
      memset(p, 1, usable);
      memcpy(p + usable - 8, p, 8);
      p = (char*)realloc(p, size);
      MI_REQUIRE(p != NULL);
      memset(p, 1, malloc_usable_size(p));
      free(p);
    }
  }
}

MI_TEST_MAIN()
