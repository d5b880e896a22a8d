// Owns: tests of a registered error function that allocates, frees and makes heaps, wherever a report comes from.
// May include: everything.
// Called by: the test runner, under every variant; without live bits only the reports that this profile makes.
// Invariants: each case in a child that must end in time; the function has run, and everything works afterwards.
#include <pthread.h>
#include <setjmp.h>

#include "mimalloc.h"
#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { CHILD_MS = 5000,
       SIZE = 200 };

static int mi_error_test_calls;
static bool mi_error_test_jumps;
static jmp_buf mi_error_test_back;
static mi_heap_t* mi_error_test_heap;

static void mi_error_test_use(void) {
  for (size_t n = 1; n < 3000000; n *= 7) {
    char* const p = mi_malloc(n);
    MI_CHECK(p != NULL);
    char* const q = mi_realloc(mi_calloc(1, n), 2 * n);
    MI_CHECK(q != NULL);
    if (p != NULL && q != NULL) {
      p[0] = q[n - 1] = 1;
    }
    mi_free(q);
    mi_free(p);
  }
  mi_free(mi_malloc_aligned(100, 4096));
  mi_free(mi_heap_malloc(mi_error_test_heap, 50));
}

static void mi_error_test_function(int err, void* arg) {
  (void)err;
  (void)arg;
  mi_error_test_calls++;
  mi_error_test_use();
  // No lock of ours is held: a heap can be made and ended.
  mi_heap_t* const heap = mi_heap_new();
  MI_CHECK(heap != NULL);
  mi_free(mi_heap_malloc(heap, 10));
  mi_heap_delete(heap);
  if (mi_error_test_jumps) {
    longjmp(mi_error_test_back, 1);
  }
}

// A registered output may do as much.
static int mi_error_test_lines;

static void mi_error_test_output(const char* line, void* arg) {
  (void)arg;
  mi_error_test_lines += strstr(line, ": free-list-corruption: ") != NULL || strstr(line, ": overflow: ") != NULL;
  mi_heap_t* const heap = mi_heap_new();
  MI_CHECK(heap != NULL);
  mi_free(mi_heap_malloc(heap, 10));
  mi_heap_destroy(heap);
}

static void mi_error_test_begin(void) {
  // What is freed is to be in a list at once.
  _mi_option_set(mi_option_quarantine_blocks, 0);
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  mi_error_test_heap = mi_heap_new();
  MI_REQUIRE(mi_error_test_heap != NULL);
  mi_register_error(&mi_error_test_function, NULL);
}

static void mi_error_test_end(int calls) {
  MI_CHECK_MSG(mi_error_test_calls >= calls, "%d calls", mi_error_test_calls);
  mi_register_error(NULL, NULL);
  mi_error_test_use();
}

static void mi_error_test_foreign(void* arg) {
  static int word;
  (void)arg;
  mi_error_test_begin();
  mi_free(mi_test_hide(&word));
  MI_CHECK_EQ(mi_usable_size(mi_test_hide(&word)), 0);
  mi_error_test_end(2);
}

static void mi_error_test_no_memory(void* arg) {
  (void)arg;
  mi_error_test_begin();
  MI_CHECK(mi_malloc(mi_test_hide_size(PTRDIFF_MAX)) == NULL);
  MI_CHECK(mi_malloc_aligned(mi_test_hide_size(PTRDIFF_MAX - 100), 4096) == NULL);
  mi_error_test_end(1);
}

// A thread leaves a page whose free list has been overwritten; one that has no theap any more allocates from it.
static void* mi_error_test_leave_page(void* arg) {
  void** const kept = arg;
  void* const a = mi_malloc(SIZE);
  *kept = mi_malloc(SIZE);
  void* const b = mi_malloc(SIZE);
  mi_free(b);
  mi_free(a);
  memset(mi_test_hide(a), 0x41, 16);
  return NULL;
}

static void mi_error_test_late(void* arg) {
  (void)arg;
  mi_error_test_begin();
  void* kept = NULL;
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_error_test_leave_page, &kept) == 0);
  pthread_join(thread, NULL);
  _mi_thread_done();
  for (int i = 0; i < 500; i++) {
    char* const p = mi_malloc(SIZE);
    MI_REQUIRE(p != NULL);
    p[0] = 1;
  }
  mi_error_test_end(1);
}

// Frees of others are pending in a page, and the list of them has been overwritten, when its thread ends or collects.
static pthread_barrier_t mi_error_test_barrier;

static void* mi_error_test_owner(void* arg) {
  void** const blocks = arg;
  for (int i = 0; i < 4; i++) {
    blocks[i] = mi_malloc(SIZE);
  }
  pthread_barrier_wait(&mi_error_test_barrier);
  pthread_barrier_wait(&mi_error_test_barrier);
  return NULL;
}

static void mi_error_test_thread_end(void* arg) {
  (void)arg;
  mi_error_test_begin();
  pthread_barrier_init(&mi_error_test_barrier, NULL, 2);
  void* blocks[4];
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_error_test_owner, blocks) == 0);
  pthread_barrier_wait(&mi_error_test_barrier);
  for (int i = 0; i < 3; i++) {
    mi_free(blocks[i]);
  }
  memset(mi_test_hide(blocks[2]), 0x42, 16);
  pthread_barrier_wait(&mi_error_test_barrier);
  pthread_join(thread, NULL);
  mi_error_test_end(1);
}

static void* mi_error_test_free_three(void* arg) {
  void** const blocks = arg;
  for (int i = 0; i < 3; i++) {
    mi_free(blocks[i]);
  }
  return NULL;
}

// Frees of others into a heap's page, whose list has been overwritten.
static void mi_error_test_spoil(void) {
  void* blocks[4];
  for (int i = 0; i < 4; i++) {
    blocks[i] = mi_heap_malloc(mi_error_test_heap, SIZE);
  }
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_error_test_free_three, blocks) == 0);
  pthread_join(thread, NULL);
  memset(mi_test_hide(blocks[2]), 0x43, 16);
}

static void mi_error_test_collect(void* arg) {
  (void)arg;
  mi_error_test_begin();
  mi_register_output(&mi_error_test_output, NULL);
  mi_error_test_spoil();
  mi_collect(true);
  MI_CHECK(mi_error_test_lines >= 1);
  mi_error_test_end(1);
  mi_register_output(NULL, NULL);
}

// The function does not come back, and nothing is held for it.
static void mi_error_test_jump(void* arg) {
  (void)arg;
  mi_error_test_begin();
  mi_error_test_spoil();
  mi_error_test_jumps = true;
  if (setjmp(mi_error_test_back) == 0) {
    mi_collect(true);
    MI_CHECK(false);
  }
  mi_error_test_jumps = false;
  mi_error_test_function(0, NULL);
  mi_error_test_end(2);
}

// The line is out, once, before the function runs; the process ends when that has returned.
static void mi_error_test_ends_child(void* arg) {
  (void)arg;
  mi_error_test_begin();
  mi_error_test_spoil();
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_ABORT);
  mi_collect(true);
}

// A heap that is destroyed has more bad blocks than lines are kept back for: the function is told of each.
static void mi_error_test_destroy(void* arg) {
  (void)arg;
  enum { BAD = 7 };
  mi_error_test_begin();
  mi_register_output(&mi_error_test_output, NULL);
  mi_heap_t* const heap = mi_heap_new();
  for (int i = 0; i < BAD; i++) {
    char* const p = mi_heap_malloc(heap, SIZE);
    MI_REQUIRE(p != NULL);
    p[mi_test_hide_size(SIZE)] ^= 1;
  }
  mi_heap_destroy(heap);
  MI_CHECK_EQ(mi_error_test_calls, BAD);
  MI_CHECK_EQ(mi_error_test_lines, MI_REPORT_HELD_MAX);
  mi_register_output(NULL, NULL);
  mi_error_test_end(BAD);
}

MI_TEST(report_of_a_foreign_pointer) { MI_CHECK_IN_CHILD(&mi_error_test_foreign, NULL, CHILD_MS); }

MI_TEST(report_of_no_memory) { MI_CHECK_IN_CHILD(&mi_error_test_no_memory, NULL, CHILD_MS); }

// A profile without live bits takes a list as it is, and where lists are out of line the owner's has no links.
MI_TEST(report_under_the_late_lock) {
  if (MI_HAS_LIVE_BITS && !MI_HAS_OUTLINE_LISTS) {
    MI_CHECK_IN_CHILD(&mi_error_test_late, NULL, CHILD_MS);
  }
}

MI_TEST(report_under_the_lock_of_heaps_at_thread_end) {
  if (MI_HAS_LIVE_BITS) {
    MI_CHECK_IN_CHILD(&mi_error_test_thread_end, NULL, CHILD_MS);
  }
}

MI_TEST(report_under_the_lock_of_heaps_in_a_collection) {
  if (MI_HAS_LIVE_BITS) {
    MI_CHECK_IN_CHILD(&mi_error_test_collect, NULL, CHILD_MS);
  }
}

MI_TEST(report_that_is_jumped_out_of) {
  if (MI_HAS_LIVE_BITS) {
    MI_CHECK_IN_CHILD(&mi_error_test_jump, NULL, CHILD_MS);
  }
}

MI_TEST(report_that_ends_the_process) {
  if (MI_HAS_LIVE_BITS) {
    static mi_test_child_t child;
    mi_test_child_run(&child, &mi_error_test_ends_child, NULL, CHILD_MS);
    MI_CHECK_EQ(child.signal, SIGABRT);
    MI_CHECK(mi_test_child_said(&child, "^" MI_PROFILE_NAME ": free-list-corruption: "));
    const char* const first = strstr(child.err, ": free-list-corruption: ");
    MI_CHECK(first != NULL && strstr(first + 1, ": free-list-corruption: ") == NULL && strstr(child.err, "failed") == NULL);
  }
}

MI_TEST(reports_when_a_heap_is_destroyed) {
  if (MI_HAS_PADDING && MI_HAS_LIVE_BITS) {
    MI_CHECK_IN_CHILD(&mi_error_test_destroy, NULL, CHILD_MS);
  }
}

// The number that stands for each kind of error, however the process goes on. A block by itself is checked in every profile.
static int mi_error_test_last;

static void mi_error_test_note(int err, void* arg) {
  MI_CHECK_PTR_EQ(arg, &mi_error_test_last);
  mi_error_test_last = err;
}

static int mi_error_test_taken(void) {
  const int err = mi_error_test_last;
  mi_error_test_last = 0;
  return err;
}

static void mi_error_test_numbers(void* arg) {
  (void)arg;
  static int word;
  enum { BIG = 2000000 };
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  mi_register_error(&mi_error_test_note, &mi_error_test_last);
  MI_CHECK(mi_malloc(mi_test_hide_size(SIZE_MAX)) == NULL);
  MI_CHECK_EQ(mi_error_test_taken(), EOVERFLOW);
  MI_CHECK(mi_calloc(mi_test_hide_size(SIZE_MAX / 2), 4) == NULL);
  MI_CHECK_EQ(mi_error_test_taken(), EOVERFLOW);
  MI_CHECK(mi_malloc(mi_test_hide_size(PTRDIFF_MAX / 2)) == NULL);
  MI_CHECK_EQ(mi_error_test_taken(), ENOMEM);
  mi_free(mi_test_hide(&word));
  MI_CHECK_EQ(mi_error_test_taken(), EINVAL);
  char* const p = mi_malloc(BIG);
  MI_REQUIRE(p != NULL);
  mi_free(mi_test_hide(p + 64));
  MI_CHECK_EQ(mi_error_test_taken(), EINVAL);
  MI_CHECK_EQ(mi_usable_size(mi_test_hide(p + 64)), 0);
  MI_CHECK_EQ(mi_error_test_taken(), EINVAL);
  mi_free(p);
  MI_CHECK_EQ(mi_error_test_taken(), 0);
  mi_free(mi_test_hide(p));
  MI_CHECK_EQ(mi_error_test_taken(), EAGAIN);
  if (MI_HAS_LIVE_BITS) {
    char* const q = mi_malloc(SIZE);
    mi_free(q);
    mi_free(mi_test_hide(q));
    MI_CHECK_EQ(mi_error_test_taken(), EAGAIN);
    MI_CHECK_EQ(mi_usable_size(mi_test_hide(q)), 0);
    MI_CHECK_EQ(mi_error_test_taken(), EFAULT);
  }
  if (MI_HAS_PADDING) {
    char* const q = mi_malloc(SIZE);
    q[mi_test_hide_size(SIZE)] ^= 1;
    mi_free(q);
    MI_CHECK_EQ(mi_error_test_taken(), EFAULT);
  }
  mi_register_error(NULL, NULL);
  mi_free(mi_test_hide(&word));
  MI_CHECK_EQ(mi_error_test_taken(), 0);
}

MI_TEST(numbers) { MI_CHECK_IN_CHILD(&mi_error_test_numbers, NULL, CHILD_MS); }

MI_TEST_MAIN()
