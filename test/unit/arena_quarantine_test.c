// Owns: tests of region/arena-quarantine: what is held is bounded, is nobody's, loses its memory in time, and is given up.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: blocks are singles in arenas, made and freed as the program does.
#include "src/region/arena-quarantine.h"

#include "hardening/large-quarantine.h"
#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/region/arena-guard.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "test/lib/child.h"
#include "test/lib/probe.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { SIZE = 600000 };

static uint8_t* mi_quarantine_test_new(size_t size) {
  uint8_t* const p = _mi_theap_alloc(NULL, size, false);
  MI_REQUIRE(p != NULL);
  memset(p, 1, size);
  return p;
}

MI_TEST(bounded) {
  MI_REQUIRE(_mi_process_init());
  _mi_option_set(mi_option_purge_delay, 100);
  for (int i = 0; i < 200; i++) {
    _mi_free(mi_quarantine_test_new((size_t)600000 + (size_t)i * 40000));
    MI_CHECK(_mi_arena_held_slices() <= MI_LARGE_HELD_SLICES_MAX);
  }
  MI_CHECK_EQ(_mi_arena_held_slices() > 0, MI_HAS_LARGE_QUARANTINE);
  _mi_arena_held_release();
  MI_CHECK_EQ(_mi_arena_held_slices(), 0);
}

// Held addresses are not handed out, whatever the block's memory has become.
MI_TEST(not_handed_out) {
  if (!MI_HAS_LARGE_QUARANTINE) {
    return;
  }
  _mi_arena_held_release();
  uint8_t* const p = mi_quarantine_test_new(SIZE);
  _mi_free(p);
  MI_CHECK(_mi_arena_held_slices() >= SIZE / MI_SLICE_SIZE);
  uint8_t* others[20];
  for (int i = 0; i < 20; i++) {
    others[i] = mi_quarantine_test_new(SIZE);
    MI_CHECK((uintptr_t)others[i] - (uintptr_t)p >= SIZE && (uintptr_t)p - (uintptr_t)others[i] >= SIZE);
  }
  for (int i = 0; i < 20; i++) {
    _mi_free(others[i]);
  }
}

// Memory goes back by the deadline, whether the block became inaccessible at once or not.
MI_TEST(memory_returns) {
  _mi_option_set(mi_option_purge_delay, 100);
  _mi_collect(true);
  const size_t before = mi_test_rss() / 1024;
  for (int i = 0; i < 50; i++) {
    _mi_free(mi_quarantine_test_new((size_t)700000));
  }
  mi_test_sleep_ms(250);
  for (int i = 0; i < 5; i++) {
    _mi_free(_mi_theap_alloc(NULL, 100000, false));
  }
  const size_t after = mi_test_rss() / 1024;
  MI_CHECK_MSG(after <= before + 1024, "%zu KiB, %zu before", after, before);
}

// Beyond the budget, and where freed memory is zeroed: a block is cleared, and looked through when its slices serve again.
typedef struct mi_quarantine_test_wiped_s {
  size_t size;
  bool write;
} mi_quarantine_test_wiped_t;

static void mi_quarantine_test_wiped(void* arg) {
  enum { BLOCKS = 64,
         FEW = 8 };
  const size_t size = ((const mi_quarantine_test_wiped_t*)arg)->size;
  const bool write = ((const mi_quarantine_test_wiped_t*)arg)->write;
  MI_REQUIRE(_mi_process_init());
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  // Nothing is given back to the system before it serves again.
  _mi_option_set(mi_option_purge_delay, 1000000);
  uint8_t* wiped[BLOCKS];
  size_t count = 0;
  for (size_t i = 0; i < BLOCKS; i++) {
    wiped[i] = mi_quarantine_test_new(size);
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    _mi_free(wiped[i]);
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    if (mi_test_is_readable(wiped[i] + size / 2)) {
      wiped[count++] = wiped[i];
    }
  }
  MI_REQUIRE(count > FEW);
  for (size_t i = 0; i < count; i++) {
    uint8_t* const p = wiped[i];
    MI_CHECK_MSG(!mi_test_is_readable(p), "the first OS page of %p is accessible", (void*)p);
    MI_CHECK(mi_test_all_bytes((uint8_t*)_mi_align_up_ptr((uintptr_t)p + 1, _mi_os_page_size()), size - 2 * _mi_os_page_size(), 0));
    p[size / 2] = write ? 7 : 0;
  }
  mi_violation_message[0] = 0;
  for (int i = 0; i < 300 && mi_violation_message[0] == 0; i++) {
    uint8_t* const next = _mi_theap_alloc(NULL, size, true);
    MI_REQUIRE(next != NULL);
    MI_CHECK(mi_test_all_bytes(next, size, 0));
    memset(next, 1, size);
    _mi_free(next);
  }
  bool named = false;
  for (size_t i = 0; i < count && !named; i++) {
    char wanted[80];
    snprintf(wanted, sizeof(wanted), "address %p holds 0x07", (void*)(wiped[i] + size / 2));
    named = strstr(mi_violation_message, wanted) != NULL;
  }
  MI_CHECK_MSG(!write || named, "the report is: %s", mi_violation_message);
  MI_CHECK_MSG(write || mi_violation_message[0] == 0, "reported without reason: %s", mi_violation_message);
}

MI_TEST(wiped) {
  static const size_t sizes[] = {SIZE, (size_t)3 * MI_MIB};
  for (size_t i = 0; MI_HAS_LARGE_QUARANTINE && MI_HAS_ZERO_ON_FREE && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    mi_quarantine_test_wiped_t wiped = {sizes[i], false};
    MI_CHECK_IN_CHILD(mi_quarantine_test_wiped, &wiped, 20000);
    wiped.write = true;
    MI_CHECK_IN_CHILD(mi_quarantine_test_wiped, &wiped, 20000);
  }
}

// Of blocks of which little is written, all but one in sixteen become inaccessible as a whole, whatever the budget.
static void mi_quarantine_test_sparse(void* arg) {
  (void)arg;
  enum { BLOCKS = 160,
         BEFORE = 32 };
  MI_REQUIRE(_mi_process_init());
  int by_hand = 0;
  for (int i = 0; i < BLOCKS; i++) {
    uint8_t* const p = _mi_theap_alloc(NULL, SIZE, false);
    MI_REQUIRE(p != NULL);
    p[0] = 1;
    _mi_free(p);
    by_hand += i >= BEFORE && mi_test_is_readable(p + SIZE / 2);
  }
  MI_CHECK_MSG(by_hand <= (BLOCKS - BEFORE) / MI_LARGE_SPARSE_TURNS, "%d of %d", by_hand, BLOCKS - BEFORE);
}

MI_TEST(sparse) {
  if (MI_HAS_LARGE_QUARANTINE && MI_HAS_ZERO_ON_FREE) {
    MI_CHECK_IN_CHILD(mi_quarantine_test_sparse, NULL, 20000);
  }
}

static void mi_quarantine_test_in_child(void* arg) {
  const uint8_t* const p = arg;
  MI_CHECK(!mi_test_is_readable(p));
  for (int i = 0; i < 100; i++) {
    _mi_free(mi_quarantine_test_new(MI_MIB));
  }
}

MI_TEST(held_in_a_forked_child) {
  if (!MI_HAS_LARGE_QUARANTINE) {
    return;
  }
  uint8_t* const p = mi_quarantine_test_new((size_t)3 * MI_MIB);
  _mi_free(p);
  MI_CHECK(!mi_test_is_readable(p));
  MI_CHECK_IN_CHILD(mi_quarantine_test_in_child, p, 20000);
}

MI_TEST_MAIN()
