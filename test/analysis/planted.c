// Owns: that each check by the compiler is on in what its tests are linked with: a fault of each kind, which must be reported.
// May include: test/lib, base.
// Called by: the build, for the instrumented variants that clang compiles, and for gcc's ThreadSanitizer.
// Invariants: a fault lies in a call of the allocator's code, compiled as for all other tests; a report is known by its header.
#include <pthread.h>

#include "src/base/atomic.h"
#include "src/base/bitmap.h"
#include "src/base/fmt.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define MI_PLANTED_UBSAN 1
#endif
#endif
#ifndef MI_PLANTED_UBSAN
#define MI_PLANTED_UBSAN 0
#endif

enum { MI_PLANTED_MS = 60000 };

// Seen by no compiler.
static volatile size_t mi_planted_zero;

static void mi_planted_is_reported(void (*fault)(void*), const char* header) {
  mi_test_child_t child;
  mi_test_child_run(&child, fault, NULL, MI_PLANTED_MS);
  MI_CHECK_MSG(!child.timed_out && strstr(child.err, header) != NULL, "no `%s` in what the child said: %s", header, child.err);
}

// Two threads, of which one writes a word of a bitmap plainly and one counts its bits.

static mi_bitmap_word_t mi_planted_words[1];
static size_t mi_planted_count;

static void* mi_planted_counter(void* arg) {
  mi_planted_count = _mi_bitmap_count(mi_planted_words, 0, 64);
  return arg;
}

static void mi_planted_race(void* arg) {
  pthread_t thread;
  (void)arg;
  MI_REQUIRE(pthread_create(&thread, NULL, mi_planted_counter, NULL) == 0);
  *(uint64_t*)(uintptr_t)mi_planted_words = 1;
  pthread_join(thread, NULL);
}

// A claim, and no more than a relaxed one, of what guards plain data.

static int mi_planted_data;

static void* mi_planted_claimer(void* arg) {
  if (_mi_bitmap_try_claim(mi_planted_words, 0, 1)) {
    mi_planted_data++;
    // Instead of _mi_bitmap_set, which releases.
    mi_atomic_or_relaxed(&mi_planted_words[0], 1);
  }
  return arg;
}

static void mi_planted_order(void* arg) {
  pthread_t threads[2];
  (void)arg;
  _mi_bitmap_set(mi_planted_words, 0, 1);
  // One after the other, as far as the clock goes: what is missing is that the second is told of the first.
  MI_REQUIRE(pthread_create(&threads[0], NULL, mi_planted_claimer, NULL) == 0);
  while (mi_atomic_load_relaxed(&mi_planted_words[0]) == 1 && mi_atomic_peek(&mi_planted_data) == 0) {
  }
  while (mi_atomic_load_relaxed(&mi_planted_words[0]) == 0) {
  }
  MI_REQUIRE(pthread_create(&threads[1], NULL, mi_planted_claimer, NULL) == 0);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}

MI_TEST(race) {
  if (MI_TSAN_BUILD) {
    mi_planted_is_reported(mi_planted_race, "WARNING: ThreadSanitizer: data race");
  }
}

MI_TEST(order) {
  if (MI_TSAN_BUILD) {
    mi_planted_is_reported(mi_planted_order, "WARNING: ThreadSanitizer: data race");
  }
}

// The formatter is handed what nobody has written.

static void mi_planted_uninitialised(void* arg) {
  char out[64];
  unsigned number[8];
  (void)arg;
  __asm__ volatile("" ::"r"(number));
  (void)_mi_fmt(out, sizeof(out), "%u", number[mi_planted_zero]);
}

MI_TEST(uninitialised) {
  if (MI_MSAN_BUILD) {
    mi_planted_is_reported(mi_planted_uninitialised, "WARNING: MemorySanitizer: use-of-uninitialized-value");
  }
}

// The lowest of no bits, and a phase that wraps around.

static size_t mi_planted_first(size_t x) { return _mi_bits_ctz64(x); }

static void mi_planted_undefined(void* arg) {
  (void)arg;
  mi_planted_count = mi_planted_first(mi_planted_zero);
}

static void mi_planted_wrap(void* arg) {
  (void)arg;
  mi_atomic_store_relaxed(&mi_planted_words[0], 2);
  // The search adds its phase to where the bit is.
  (void)_mi_bitmap_find(mi_planted_words, 64, 0, 1, 1, mi_planted_zero - 1, &mi_planted_count);
}

MI_TEST(undefined) {
  if (MI_PLANTED_UBSAN) {
    mi_planted_is_reported(mi_planted_undefined, "runtime error: passing zero to ctz()");
    mi_planted_is_reported(mi_planted_wrap, "runtime error: unsigned integer overflow");
  }
}

MI_TEST_MAIN()
