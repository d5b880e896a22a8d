// Owns: tests of guarded/record: what is found where, the life of a record, reuse, and look-ups that race with changes.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the slots are addresses only; nothing lies there, since records never look.
#include "src/guarded/record.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/base/atomic.h"
#include "src/base/geometry.h"
#include "src/heap/process.h"
#include "src/prim/prim.h"
#include "src/region/page-map.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { GUARD = 4096,
       THREADS = 4,
       ROUNDS = 20000 };

static const uintptr_t mi_record_test_base = (uintptr_t)0x40 * MI_SLICE_SIZE;

static void* mi_record_test_at(uintptr_t address) { return (void*)address; }

static uintptr_t mi_record_test_slot(size_t index) { return mi_record_test_base + index * 4 * MI_SLICE_SIZE; }

static bool mi_record_test_none(uintptr_t address) {
  mi_guarded_record_t record;
  return !_mi_guarded_find(address, &record);
}

static void mi_record_test_check(uintptr_t address, uintptr_t slot, mi_guarded_state_t state) {
  mi_guarded_record_t record;
  if (MI_CHECK_MSG(_mi_guarded_find(address, &record), "0x%zx", (size_t)address)) {
    MI_CHECK_EQ(record.slot, slot);
    MI_CHECK_EQ(record.state, state);
  }
}

MI_TEST(nothing_yet) {
  MI_CHECK(mi_record_test_none(0) && mi_record_test_none(UINTPTR_MAX) && mi_record_test_none(mi_record_test_base));
  MI_REQUIRE(_mi_process_init());
  MI_CHECK(mi_record_test_none(0) && mi_record_test_none(UINTPTR_MAX) && mi_record_test_none((uintptr_t)&mi_record_test_base));
  _mi_guarded_note_free(mi_record_test_at(mi_record_test_base));
  _mi_guarded_forget(mi_record_test_at(mi_record_test_base));
  MI_CHECK(!_mi_guarded_claim_report(mi_record_test_base));
}

MI_TEST(life) {
  const uintptr_t slot = mi_record_test_slot(0);
  const size_t size = 2 * (size_t)MI_SLICE_SIZE;
  const uintptr_t block = slot + GUARD + 16;
  const size_t before = _mi_guarded_records();
  const mi_guarded_record_t* const made = _mi_guarded_note_alloc(mi_record_test_at(slot), size, mi_record_test_at(block), 100, 77);
  MI_REQUIRE(made != NULL);
  MI_CHECK_EQ(_mi_guarded_records(), before + 1);
  mi_guarded_record_t record;
  MI_REQUIRE(_mi_guarded_find(block + 100, &record));
  MI_CHECK(record.block == block && record.request == 100 && record.seed == 77 && record.slot_size == size);
  MI_CHECK(record.alloc_thread == _mi_prim_os_thread_id() && record.free_thread == 0 && record.free_count == 0);
  // From the guard before to the guard behind, and no further.
  mi_record_test_check(slot, slot, MI_GUARDED_LIVE);
  mi_record_test_check(slot + size - 1, slot, MI_GUARDED_LIVE);
  MI_CHECK(mi_record_test_none(slot - 1) && mi_record_test_none(slot + size));
  MI_CHECK(_mi_guarded_claim_report(slot) && !_mi_guarded_claim_report(block));
  _mi_guarded_note_free(mi_record_test_at(block));
  mi_record_test_check(block, slot, MI_GUARDED_FREED);
  MI_REQUIRE(_mi_guarded_find(block, &record));
  MI_CHECK_EQ(record.free_thread, _mi_prim_os_thread_id());
  MI_CHECK(!_mi_guarded_claim_report(block));
  _mi_guarded_forget(mi_record_test_at(slot));
  MI_CHECK(mi_record_test_none(slot) && mi_record_test_none(block) && mi_record_test_none(slot + size - 1));
  MI_CHECK_EQ(_mi_guarded_records(), before);
  // The record serves again, and the slot may be reported again.
  MI_CHECK_PTR_EQ(_mi_guarded_note_alloc(mi_record_test_at(slot), size, mi_record_test_at(block), 1, 0), made);
  MI_CHECK(_mi_guarded_claim_report(block));
  _mi_guarded_forget(mi_record_test_at(slot));
}

// A mapping of its own begins with a guard before the first slice, where the slot before it may still reach.
MI_TEST(neighbours_in_a_slice) {
  const uintptr_t first = mi_record_test_slot(1);
  const uintptr_t second = first + MI_SLICE_SIZE + 5 * GUARD;
  const uintptr_t end = second + 2 * (uintptr_t)MI_SLICE_SIZE;
  MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(first), second - first, mi_record_test_at(first + GUARD), 1, 0) != NULL);
  MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(second), end - second, mi_record_test_at(first + 2 * MI_SLICE_SIZE), 1, 0) != NULL);
  mi_record_test_check(second - 1, first, MI_GUARDED_LIVE);
  mi_record_test_check(second, second, MI_GUARDED_LIVE);
  mi_record_test_check(end - 1, second, MI_GUARDED_LIVE);
  _mi_guarded_forget(mi_record_test_at(first));
  MI_CHECK(mi_record_test_none(first) && mi_record_test_none(second - 1));
  mi_record_test_check(second, second, MI_GUARDED_LIVE);
  _mi_guarded_forget(mi_record_test_at(second));
  MI_CHECK(mi_record_test_none(second) && mi_record_test_none(end - 1));
}

// Over the border between two parts of the map; and beyond all addresses.
MI_TEST(borders) {
  const uintptr_t border = (uintptr_t)1 << MI_PAGE_MAP_ROOT_SHIFT;
  const uintptr_t slot = border - 2 * (uintptr_t)MI_SLICE_SIZE;
  const size_t size = 4 * (size_t)MI_SLICE_SIZE;
  MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(slot), size, mi_record_test_at(slot), size, 0) != NULL);
  mi_record_test_check(border - 1, slot, MI_GUARDED_LIVE);
  mi_record_test_check(border, slot, MI_GUARDED_LIVE);
  _mi_guarded_forget(mi_record_test_at(slot));
  MI_CHECK(mi_record_test_none(border));
  if (sizeof(void*) > 4) {
    const uintptr_t far = UINTPTR_MAX / 2 + 1;
    MI_CHECK(_mi_guarded_note_alloc(mi_record_test_at(far), size, mi_record_test_at(far), 1, 0) == NULL);
    MI_CHECK(mi_record_test_none(far));
  }
}

// The calls are those of the program, the latest first.
static mi_noinline void* mi_record_test_caller(uintptr_t slot) {
  void* const p = _mi_guarded_note_alloc(mi_record_test_at(slot), MI_SLICE_SIZE, mi_record_test_at(slot), 1, 0);
  __asm__ volatile("");
  return p;
}

MI_TEST(calls) {
  const uintptr_t slot = mi_record_test_slot(2);
  MI_REQUIRE(mi_record_test_caller(slot) != NULL);
  mi_guarded_record_t record;
  MI_REQUIRE(_mi_guarded_find(slot, &record));
  uintptr_t own[1];
  if (_mi_prim_backtrace(__builtin_frame_address(0), own, 1) == 1) {
    MI_REQUIRE(record.alloc_count > 0);
    const uintptr_t start = (uintptr_t)&mi_record_test_caller;
    MI_CHECK(record.alloc_calls[0] - start < 200);
  }
  MI_CHECK(record.alloc_count <= MI_GUARDED_CALLS);
  // This program has the allocator in it, so that nothing is left out.
  MI_CHECK(!_mi_prim_is_own_library((uintptr_t)&mi_record_test_caller));
  _mi_guarded_forget(mi_record_test_at(slot));
}

MI_TEST(many) {
  enum { MANY = 3000 };
  const size_t before = _mi_guarded_records();
  for (size_t i = 0; i < MANY; i++) {
    const uintptr_t slot = mi_record_test_slot(10 + i);
    MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(slot), MI_SLICE_SIZE, mi_record_test_at(slot), i, 0) != NULL);
  }
  MI_CHECK_EQ(_mi_guarded_records(), before + MANY);
  for (size_t i = 0; i < MANY; i++) {
    mi_guarded_record_t record;
    MI_CHECK(_mi_guarded_find(mi_record_test_slot(10 + i), &record) && record.request == i);
    _mi_guarded_forget(mi_record_test_at(mi_record_test_slot(10 + i)));
  }
  MI_CHECK_EQ(_mi_guarded_records(), before);
}

// Whoever looks finds a record of one piece: each member says the same number.

static bool mi_record_test_is_whole(const mi_guarded_record_t* record) {
  const bool is_freed = record->state == MI_GUARDED_FREED;
  return record->seed == record->request && record->block == record->slot + record->request &&
      is_freed == (record->free_thread != 0) && (is_freed || record->free_count == 0);
}

static void mi_record_test_look(void) {
  mi_guarded_record_t record;
  for (size_t thread = 0; thread < THREADS; thread++) {
    if (_mi_guarded_find(mi_record_test_slot(10 + thread), &record)) {
      MI_CHECK(mi_record_test_is_whole(&record));
    }
  }
}

static void mi_record_test_signal(int sig) {
  (void)sig;
  mi_record_test_look();
}

static void* mi_record_test_churn(void* arg) {
  const size_t thread = (size_t)(uintptr_t)arg;
  const uintptr_t slot = mi_record_test_slot(10 + thread);
  for (size_t i = 1; i <= ROUNDS; i++) {
    const size_t n = i % 1000;
    MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(slot), MI_SLICE_SIZE, mi_record_test_at(slot + n), n, n) != NULL);
    mi_record_test_look();
    _mi_guarded_note_free(mi_record_test_at(slot + n));
    mi_record_test_look();
    _mi_guarded_forget(mi_record_test_at(slot));
  }
  return NULL;
}

MI_TEST(races) {
  const struct sigaction action = {.sa_handler = &mi_record_test_signal, .sa_flags = SA_RESTART};
  MI_REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
  const struct itimerval often = {{0, 200}, {0, 200}};
  MI_REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_record_test_churn, (void*)i) == 0);
  }
  // The signals are for those who are in the middle of a change.
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  MI_REQUIRE(pthread_sigmask(SIG_BLOCK, &alarms, NULL) == 0);
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  MI_REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0);
  MI_CHECK_EQ(_mi_guarded_records(), 0);
}

// A child of fork goes on with the records of its parent, whoever was at the lock.

static void mi_record_test_in_child(void* arg) {
  (void)arg;
  const uintptr_t slot = mi_record_test_slot(20);
  MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(slot), MI_SLICE_SIZE, mi_record_test_at(slot), 5, 0) != NULL);
  mi_record_test_check(slot, slot, MI_GUARDED_LIVE);
  mi_record_test_check(mi_record_test_slot(21), mi_record_test_slot(21), MI_GUARDED_LIVE);
  _mi_guarded_forget(mi_record_test_at(mi_record_test_slot(21)));
}

MI_TEST(fork_while_others_write) {
  static mi_test_child_t child;
  const uintptr_t slot = mi_record_test_slot(21);
  MI_REQUIRE(_mi_guarded_note_alloc(mi_record_test_at(slot), MI_SLICE_SIZE, mi_record_test_at(slot), 5, 0) != NULL);
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_record_test_churn, NULL) == 0);
  for (int i = 0; i < 20; i++) {
    mi_test_child_run(&child, &mi_record_test_in_child, NULL, 10000);
    MI_CHECK_CHILD_OK(&child, "child");
  }
  pthread_join(thread, NULL);
  mi_record_test_check(slot, slot, MI_GUARDED_LIVE);
  _mi_guarded_forget(mi_record_test_at(slot));
}

MI_TEST_MAIN()
