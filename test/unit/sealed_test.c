// Owns: tests of sys/sealed: writes to what is closed, the window of the setters, threads and forks in it, refusals.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what kills or is refused happens in children.
#include "src/sys/sealed.h"

#include <pthread.h>
#include <sys/mman.h>

#include "src/heap/process.h"
#include "src/sys/hardening.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/os.h"
#include "src/sys/random.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

MI_TEST(is_sealed) {
  MI_REQUIRE(_mi_process_init());
  MI_CHECK_EQ(_mi_sealed_state(), _mi_os_page_size() <= MI_OS_PAGE_MAX ? MI_SEALED : MI_SEALED_PAGES);
  // The unit is linked with the C library's malloc, so nothing of it stays for good.
  MI_CHECK_EQ(_mi_sealed_mseal_state(), MI_MSEAL_UNLOADABLE);
}

// Nothing else is on the pages.
MI_TEST(pages) {
  MI_CHECK_EQ((uintptr_t)&_mi_settings % MI_OS_PAGE_MAX, 0);
  MI_CHECK_EQ((uintptr_t)&_mi_fixed % MI_OS_PAGE_MAX, 0);
  MI_CHECK_EQ(sizeof(_mi_settings) % MI_OS_PAGE_MAX, 0);
  MI_CHECK_EQ(sizeof(_mi_fixed) % MI_OS_PAGE_MAX, 0);
}

#define MI_SEALED_TEST_AT(part, member) ((char*)&_mi_##part + offsetof(mi_##part##_t, member))

// Each of them is an address that an attacker would like to change.
static void* const mi_sealed_test_targets[] = {
    MI_SEALED_TEST_AT(settings, option_values[mi_option_on_violation]),
    MI_SEALED_TEST_AT(settings, option_values[0]),
    MI_SEALED_TEST_AT(settings, option_values[_mi_option_last - 1]),
    MI_SEALED_TEST_AT(settings, option_setters[mi_option_on_violation]),
    MI_SEALED_TEST_AT(settings, output.current),
    MI_SEALED_TEST_AT(settings, output.slots[0].fun),
    MI_SEALED_TEST_AT(settings, output.slots[1].arg),
    MI_SEALED_TEST_AT(settings, error.slots[0].fun),
    MI_SEALED_TEST_AT(settings, error.slots[MI_SINK_SLOTS - 1].fun),
    MI_SEALED_TEST_AT(settings, deferred.slots[1].fun),
    MI_SEALED_TEST_AT(settings, random_root),
    MI_SEALED_TEST_AT(settings, state),
    MI_SEALED_TEST_AT(settings, mseal),
    MI_SEALED_TEST_AT(fixed, page_map.tables),
    MI_SEALED_TEST_AT(fixed, os_config.page_size),
    MI_SEALED_TEST_AT(fixed, os_config.address_bits),
    MI_SEALED_TEST_AT(fixed, os_ready),
    (char*)&_mi_fixed + sizeof(_mi_fixed) - 1,
    (char*)&_mi_settings + sizeof(_mi_settings) - 1,
};

static void mi_sealed_test_write(void* arg) {
  volatile char* const target = arg;
  // A sanitizer's handler would end the process by an exit.
  signal(SIGSEGV, SIG_DFL);
  *target = (char)(*target + 1);
}

static void mi_sealed_test_each(bool after_setting) {
  static mi_test_child_t child;
  for (size_t i = 0; i < sizeof(mi_sealed_test_targets) / sizeof(mi_sealed_test_targets[0]); i++) {
    if (after_setting) {
      _mi_option_set(mi_option_max_warnings, (long)i);
      _mi_log_register_error(NULL, NULL);
    }
    mi_test_child_run(&child, &mi_sealed_test_write, mi_sealed_test_targets[i], 10000);
    MI_CHECK_MSG(child.signal == SIGSEGV, "target %zu: signal %d", i, child.signal);
  }
}

MI_TEST(writes_die) {
  MI_REQUIRE(_mi_process_init());
  mi_sealed_test_each(false);
}

// The control: what is not closed can be written.
MI_TEST(control) {
  static mi_test_child_t child;
  static char open_byte;
  mi_test_child_run(&child, &mi_sealed_test_write, &open_byte, 10000);
  MI_CHECK_CHILD_OK(&child, "open");
}

MI_TEST(writes_die_after_the_window) { mi_sealed_test_each(true); }

// Setting works, from several threads and across forks, and no value is lost.

enum { MI_SEALED_TEST_THREADS = 4,
       MI_SEALED_TEST_ROUNDS = 300 };

static _Atomic(bool) mi_sealed_test_stop;

static mi_option_t mi_sealed_test_options[MI_SEALED_TEST_THREADS] = {
    mi_option_generic_collect, mi_option_page_full_retain, mi_option_max_warnings, mi_option_arena_reserve};

static void mi_sealed_test_no_output(const char* text, void* arg) {
  (void)text;
  (void)arg;
}

typedef struct mi_sealed_test_sink_s {
  char text[256];
} mi_sealed_test_sink_t;

static void mi_sealed_test_keep(const char* text, void* arg) {
  mi_sealed_test_sink_t* const sink = arg;
  snprintf(sink->text, sizeof(sink->text), "%s", text);
}

static void* mi_sealed_test_setter(void* arg) {
  const mi_option_t option = *(const mi_option_t*)arg;
  const long old = _mi_option_get(option);
  for (long i = 1; i <= MI_SEALED_TEST_ROUNDS; i++) {
    _mi_option_set(option, i);
    MI_CHECK_EQ(_mi_option_get(option), i);
    if (i % 16 == 0) {
      _mi_log_register_output(&mi_sealed_test_no_output, NULL);
      _mi_log_register_output(NULL, NULL);
    }
  }
  _mi_option_set(option, old);
  return NULL;
}

static void* mi_sealed_test_reader(void* arg) {
  (void)arg;
  long sum = 0;
  while (!mi_atomic_load_relaxed(&mi_sealed_test_stop)) {
    sum += _mi_option_get(mi_option_generic_collect) + _mi_log_has_output();
  }
  MI_CHECK(sum != 0);
  return NULL;
}

static void mi_sealed_test_in_child(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_verbose, 0);
  _mi_option_set(mi_option_page_max_candidates, 77);
  MI_CHECK_EQ(_mi_option_get(mi_option_page_max_candidates), 77);
  mi_random_t random = {0};
  _mi_random_init(&random);
  mi_sealed_test_write(mi_sealed_test_targets[0]);
}

MI_TEST(threads_and_forks) {
  MI_REQUIRE(_mi_process_init());
  pthread_t threads[MI_SEALED_TEST_THREADS];
  pthread_t reader;
  static mi_test_child_t child;
  MI_REQUIRE(pthread_create(&reader, NULL, &mi_sealed_test_reader, NULL) == 0);
  for (int i = 0; i < MI_SEALED_TEST_THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_sealed_test_setter, &mi_sealed_test_options[i]) == 0);
  }
  // A fork in the middle of a setting finds the lock open and the pages closed in the child.
  for (int i = 0; i < 20; i++) {
    mi_test_child_run(&child, &mi_sealed_test_in_child, NULL, 10000);
    MI_CHECK_EQ(child.signal, SIGSEGV);
    MI_CHECK_EQ(child.err_len, 0);
  }
  for (int i = 0; i < MI_SEALED_TEST_THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  mi_atomic_store_relaxed(&mi_sealed_test_stop, true);
  pthread_join(reader, NULL);
}

// Setting what stands stays refused by what it always was.
MI_TEST(no_option) {
  _mi_option_set((mi_option_t)62, 1);
  MI_CHECK_EQ(_mi_option_get((mi_option_t)62), 0);
  _mi_option_set(_mi_option_last, 1);
}

// The kernel refuses to open the pages, as a seal of the whole does.
static void mi_sealed_test_refused_child(void* arg) {
  (void)arg;
  if (_mi_prim_seal(&_mi_settings, sizeof(_mi_settings)) != 0) {
    _exit(77);
  }
  _mi_option_set(mi_option_max_errors, 5);
  MI_CHECK(_mi_option_get(mi_option_max_errors) != 5);
  _mi_log_register_output(&mi_sealed_test_no_output, NULL);
  MI_CHECK(!_mi_log_has_output());
  // And no lock stays behind.
  _mi_option_set(mi_option_max_errors, 6);
  MI_CHECK(_mi_option_get(mi_option_max_errors) != 6);
}

MI_TEST(refused) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_sealed_test_refused_child, NULL, 10000);
  if (child.status == 77) {
    // A kernel before 6.10: nothing else refuses.
    return;
  }
  MI_CHECK_CHILD_OK(&child, "refused");
  const char* const what = "stays as it was: the configuration cannot be opened\n";
  char text[512];
  snprintf(text, sizeof(text), "%s: warning: max_errors %s%s: warning: the registered function %s%s: warning: max_errors %s",
           MI_PROFILE_NAME, what, MI_PROFILE_NAME, what, MI_PROFILE_NAME, what);
  MI_CHECK_STREQ(child.err, text);
}

// Start-up once more, in a child that has opened all, where it cannot close: a system with larger pages, and one without
// memory for the page map. All is as if there were no closing, and the list of what is active says so.

typedef struct mi_sealed_test_start_s {
  bool large_pages;
  mi_sealed_state_t state;
} mi_sealed_test_start_t;

static void mi_sealed_test_start_child(void* arg) {
  const mi_sealed_test_start_t* const t = arg;
  MI_REQUIRE(_mi_prim_unprotect(&_mi_settings, sizeof(_mi_settings)) == 0);
  MI_REQUIRE(_mi_prim_unprotect(&_mi_fixed, sizeof(_mi_fixed)) == 0);
  _mi_settings.state = MI_SEALED_NOT_YET;
  const size_t page_size = _mi_fixed.os_config.page_size;
  _mi_fixed.os_config.page_size = t->large_pages ? 2 * sizeof(_mi_fixed) : page_size;
  _mi_sealed_start(t->large_pages, MI_MSEAL_ON);
  _mi_fixed.os_config.page_size = page_size;
  MI_CHECK_EQ(_mi_sealed_state(), t->state);
  MI_CHECK_EQ(_mi_sealed_mseal_state(), MI_MSEAL_UNAVAILABLE);
  _mi_option_set(mi_option_max_errors, 3);
  MI_CHECK_EQ(_mi_option_get(mi_option_max_errors), 3);
  mi_sealed_test_write(mi_sealed_test_targets[0]);
  _mi_hardening_print();
}

MI_TEST(not_closed) {
  static mi_test_child_t child;
  mi_sealed_test_start_t large = {true, MI_SEALED_PAGES};
  mi_sealed_test_start_t incomplete = {false, MI_SEALED_REFUSED};
  mi_test_child_run(&child, &mi_sealed_test_start_child, &large, 10000);
  MI_CHECK_CHILD_OK(&child, "large pages");
  MI_CHECK(mi_test_child_said(&child, "^" MI_PROFILE_NAME ": hardening: configuration: open \\(the system's pages are too large\\)$"));
  mi_test_child_run(&child, &mi_sealed_test_start_child, &incomplete, 10000);
  MI_CHECK_CHILD_OK(&child, "incomplete");
  MI_CHECK(mi_test_child_said(&child, "^" MI_PROFILE_NAME ": hardening: configuration: open \\(the system refused\\)$"));
}

// A signal handler that comes while its own thread has the settings open is refused, and nobody waits for ever.
MI_TEST(handler_in_the_window) {
  const long old = _mi_option_get(mi_option_max_errors);
  static mi_sealed_test_sink_t sink;
  _mi_log_register_output(&mi_sealed_test_keep, &sink);
  MI_REQUIRE(_mi_sealed_open("x"));
  _mi_option_set(mi_option_max_errors, old + 1);
  _mi_sealed_close();
  _mi_log_register_output(NULL, NULL);
  MI_CHECK_EQ(_mi_option_get(mi_option_max_errors), old);
  MI_CHECK_STREQ(sink.text, MI_PROFILE_NAME ": warning: max_errors stays as it was: the configuration cannot be opened\n");
  _mi_option_set(mi_option_max_errors, old + 1);
  MI_CHECK_EQ(_mi_option_get(mi_option_max_errors), old + 1);
  _mi_option_set(mi_option_max_errors, old);
}

// What is fixed: the kernel takes no call that would open it.
static void mi_sealed_test_seal_child(void* arg) {
  (void)arg;
  if (_mi_prim_seal(&_mi_fixed, sizeof(_mi_fixed)) != 0) {
    _exit(77);
  }
  MI_CHECK(mprotect(&_mi_fixed, sizeof(_mi_fixed), PROT_READ | PROT_WRITE) == -1 && errno == EPERM);
  MI_CHECK(munmap(&_mi_fixed, sizeof(_mi_fixed)) == -1 && errno == EPERM);
  MI_CHECK(mmap(&_mi_fixed, sizeof(_mi_fixed), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EPERM);
  mi_sealed_test_write(MI_SEALED_TEST_AT(fixed, page_map.tables));
}

MI_TEST(seal) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_sealed_test_seal_child, NULL, 10000);
  MI_CHECK_EQ(child.err_len, 0);
  MI_CHECK(child.signal == SIGSEGV || child.status == 77);
}

MI_TEST_MAIN()
