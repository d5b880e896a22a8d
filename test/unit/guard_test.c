// Owns: tests of sys/guard: each means of guards, its effect on an address, and the budget of mappings.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the means is chosen once in a process, so each test runs in a child that has not chosen yet.
#include "src/sys/guard.h"

#include <signal.h>

#include "src/sys/options.h"
#include "src/sys/os.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/probe.h"
#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { PAGES = 64 };

static uint8_t* mi_guard_test_memory(void) {
  void* p;
  MI_REQUIRE(_mi_prim_reserve(PAGES * _mi_os_page_size(), true, &p) == 0);
  memset(p, 7, PAGES * _mi_os_page_size());
  return p;
}

static int64_t mi_guard_test_skipped(void) { return _mi_counter_view(&_mi_stats.guards_skipped); }

static void mi_guard_test_none(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_guard_pages, 0);
  uint8_t* const p = mi_guard_test_memory();
  MI_CHECK(!_mi_guard_set(p, _mi_os_page_size(), 1));
  MI_CHECK(!_mi_guard_is_enabled() && !_mi_guard_are_mappings() && _mi_guard_units() == 0);
  MI_CHECK_EQ(mi_guard_test_skipped(), 0);
  MI_CHECK_EQ(p[0], 7);
  MI_CHECK(_mi_guard_clear(p, _mi_os_page_size(), 0));
  MI_CHECK_EQ(p[0], 7);
}

// Every second OS page is guarded, and what the others hold stays; cleared in one call they read zero where they are light.
static void mi_guard_test_there_and_back(void* arg) {
  const long option = *(const long*)arg;
  _mi_option_set(mi_option_guard_pages, option);
  const size_t page = _mi_os_page_size();
  uint8_t* const p = mi_guard_test_memory();
  const size_t mappings = mi_test_mappings();
  const bool light = option == 1 && _mi_os_config.has_light_guards;
  for (size_t i = 1; i < PAGES; i += 2) {
    MI_CHECK(_mi_guard_set(p + i * page, page, 1));
  }
  MI_CHECK_EQ(_mi_guard_are_mappings(), !light);
  MI_CHECK_EQ(_mi_guard_units(), light ? 0 : PAGES / 2);
  MI_CHECK_MSG(light ? mi_test_mappings() == mappings : mi_test_mappings() >= mappings + PAGES - 2, "%zu mappings, %zu before",
               mi_test_mappings(), mappings);
  // A purge and a fork keep them.
  bool is_zero;
  MI_CHECK(_mi_prim_purge(p, PAGES / 2 * page, &is_zero) == 0);
  MI_CHECK(_mi_prim_reset(p + PAGES / 2 * page, PAGES / 2 * page) == 0);
  for (size_t i = 0; i < PAGES; i++) {
    MI_CHECK_MSG(mi_test_is_readable(p + i * page) == (i % 2 == 0), "OS page %zu", i);
  }
  MI_CHECK(p[0] == 0);
  MI_CHECK(_mi_guard_clear(p, PAGES * page, PAGES / 2));
  MI_CHECK_EQ(_mi_guard_units(), 0);
  for (size_t i = 0; i < PAGES; i++) {
    MI_CHECK(mi_test_is_readable(p + i * page));
    MI_CHECK(i % 2 == 0 || !light || p[i * page] == 0);
    p[i * page] = 1;
  }
  MI_CHECK_EQ(mi_guard_test_skipped(), 0);
}

static void mi_guard_test_write(void* arg) {
  long option = *(const long*)arg;
  _mi_option_set(mi_option_guard_pages, option);
  volatile uint8_t* const p = mi_guard_test_memory();
  MI_REQUIRE(_mi_guard_set((void*)(uintptr_t)p, _mi_os_page_size(), 1));
  // A sanitizer of the compiler may have a handler of its own.
  signal(SIGSEGV, SIG_DFL);
  p[5] = 1;
}

// A quarter of the mappings, two for each guard.
static void mi_guard_test_budget(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_guard_pages, 2);
  _mi_option_set(mi_option_show_errors, 1);
  const size_t page = _mi_os_page_size();
  uint8_t* const p = mi_guard_test_memory();
  _mi_os_config.max_mappings = 80;
  for (size_t i = 0; i < 10; i++) {
    MI_CHECK(_mi_guard_set(p + (2 * i + 1) * page, page, 1));
  }
  for (size_t i = 10; i < 20; i++) {
    MI_CHECK(!_mi_guard_set(p + (2 * i + 1) * page, page, 1));
    MI_CHECK_EQ(p[(2 * i + 1) * page], 7);
  }
  MI_CHECK_EQ(mi_guard_test_skipped(), 10);
  MI_CHECK(_mi_guard_clear(p, 4 * page, 2));
  MI_CHECK(!_mi_guard_set(p, 3 * page, 3));
  MI_CHECK(_mi_guard_set(p, 3 * page, 2));
  _mi_guard_forget(10);
  MI_CHECK_EQ(_mi_guard_units(), 0);
}

MI_TEST(none) { MI_CHECK_IN_CHILD(mi_guard_test_none, NULL, 10000); }

static long mi_guard_test_means[] = {1, 2};

MI_TEST(there_and_back) {
  for (size_t i = 0; i < 2; i++) {
    MI_CHECK_IN_CHILD(mi_guard_test_there_and_back, &mi_guard_test_means[i], 10000);
    mi_test_child_t r;
    mi_test_child_run(&r, mi_guard_test_write, &mi_guard_test_means[i], 10000);
    MI_CHECK_EQ(r.signal, SIGSEGV);
  }
}

MI_TEST(budget) {
  mi_test_child_t r;
  mi_test_child_run(&r, mi_guard_test_budget, NULL, 10000);
  MI_CHECK_CHILD_OK(&r, "budget");
  // One line for ten refusals.
  MI_CHECK(mi_test_child_said(&r, "^" MI_PROFILE_NAME ": .*a guard page was refused"));
  const char* const first = strstr(r.err, "refused");
  MI_CHECK(first != NULL && strstr(first + 1, "refused") == NULL);
}

MI_TEST_MAIN()
