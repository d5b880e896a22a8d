// Owns: tests of sys/log: prefixes, caps, registered functions, truncation, assertions.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: options and registered functions are put back.
#include "src/sys/log.h"

#include <pthread.h>

#include "src/base/assert.h"
#include "src/base/atomic.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

typedef struct mi_log_test_sink_s {
  char text[2048];
  size_t len;
  int calls;
} mi_log_test_sink_t;

static void mi_log_test_out(const char* text, void* arg) {
  mi_log_test_sink_t* const sink = arg;
  const size_t n = strlen(text);
  sink->calls++;
  if (sink->len + n < sizeof(sink->text)) {
    memcpy(sink->text + sink->len, text, n + 1);
    sink->len += n;
  }
  errno = EIO;
}

static void mi_log_test_clear(mi_log_test_sink_t* sink) { memset(sink, 0, sizeof(*sink)); }

// What was written before is handed to the first function that is registered, once, in order; stderr has it, too.
static void mi_log_test_kept(void* arg) {
  (void)arg;
  static mi_log_test_sink_t sink, other;
  _mi_log_message("one\n");
  _mi_log_print_to(NULL, NULL, "two\n");
  _mi_log_register_output(NULL, NULL);
  errno = 12345;
  _mi_log_register_output(&mi_log_test_out, &sink);
  MI_CHECK_EQ(errno, 12345);
  MI_CHECK_STREQ(sink.text, MI_PROFILE_NAME ": one\ntwo\n");
  MI_CHECK_EQ(sink.calls, 2);
  _mi_log_message("three\n");
  _mi_log_register_output(NULL, NULL);
  _mi_log_message("four\n");
  _mi_log_register_output(&mi_log_test_out, &other);
  MI_CHECK_STREQ(sink.text, MI_PROFILE_NAME ": one\ntwo\n" MI_PROFILE_NAME ": three\n");
  MI_CHECK_EQ(other.calls, 0);
}

// First of all, before any other test has registered a function.
MI_TEST(kept) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_log_test_kept, NULL, 10000);
  MI_CHECK_CHILD_OK(&child, "kept");
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": one\ntwo\n" MI_PROFILE_NAME ": four\n");
}

static size_t mi_log_test_kept_bytes;

static void mi_log_test_count(const char* text, void* arg) {
  (void)arg;
  mi_log_test_kept_bytes += strlen(text);
}

static void* mi_log_test_write_many(void* arg) {
  for (int i = 0; i < 200; i++) {
    _mi_log_message("a message of some length, number %d\n", i);
  }
  return arg;
}

// Four threads write more than is kept.
static void mi_log_test_kept_limit(void* arg) {
  (void)arg;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_log_test_write_many, NULL) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  _mi_log_register_output(&mi_log_test_count, NULL);
  MI_CHECK_MSG(mi_log_test_kept_bytes > MI_LOG_KEPT_SIZE * 3 / 4 && mi_log_test_kept_bytes <= MI_LOG_KEPT_SIZE, "%zu bytes",
               mi_log_test_kept_bytes);
}

MI_TEST(kept_limit) { MI_CHECK_IN_CHILD(&mi_log_test_kept_limit, NULL, 10000); }

MI_TEST(messages) {
  static mi_log_test_sink_t sink;
  const long show_errors = _mi_option_get(mi_option_show_errors);
  const long verbose = _mi_option_get(mi_option_verbose);
  _mi_option_set(mi_option_show_errors, 0);
  _mi_option_set(mi_option_verbose, 0);
  _mi_log_register_output(&mi_log_test_out, &sink);
  errno = 12345;
  _mi_log_message("a %d\n", 1);
  _mi_log_raw("b %s\n", "2");
  _mi_log_verbose("no\n");
  _mi_log_trace("no\n");
  _mi_log_warning("no\n");
  _mi_log_error("no\n");
  _mi_option_set(mi_option_verbose, 1);
  _mi_log_verbose("c\n");
  _mi_log_trace("no\n");
  _mi_option_set(mi_option_verbose, 2);
  _mi_log_trace("d\n");
  _mi_option_set(mi_option_verbose, 0);
  _mi_option_set(mi_option_show_errors, 1);
  _mi_log_warning("e\n");
  _mi_log_error("f\n");
  MI_CHECK_EQ(errno, 12345);
  _mi_log_register_output(NULL, NULL);
  MI_CHECK_STREQ(sink.text, MI_PROFILE_NAME ": a 1\nb 2\n" MI_PROFILE_NAME ": c\n" MI_PROFILE_NAME ": d\n" MI_PROFILE_NAME ": warning: e\n" MI_PROFILE_NAME ": error: f\n");
  MI_CHECK_EQ(sink.calls, 6);
  _mi_option_set(mi_option_verbose, verbose);
  _mi_option_set(mi_option_show_errors, show_errors);
}

MI_TEST(print_to) {
  static mi_log_test_sink_t sink, other;
  _mi_log_register_output(&mi_log_test_out, &sink);
  _mi_log_print_to(&mi_log_test_out, &other, "x%d", 1);
  _mi_log_print_to(NULL, NULL, "y%d", 2);
  _mi_log_register_output(NULL, NULL);
  MI_CHECK_STREQ(other.text, "x1");
  MI_CHECK_STREQ(sink.text, "y2");
}

MI_TEST(truncation) {
  static mi_log_test_sink_t sink;
  char text[1024];
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = 0;
  const size_t prefix = strlen(MI_PROFILE_NAME ": ");
  // Just fits, one too long, much too long: text, newline and the zero.
  const size_t fits = MI_LOG_LINE_MAX - 2 - prefix;
  const size_t lengths[] = {fits, fits + 1, sizeof(text) - 1};
  for (size_t i = 0; i < 3; i++) {
    mi_log_test_clear(&sink);
    _mi_log_register_output(&mi_log_test_out, &sink);
    _mi_log_message("%s\n", text + sizeof(text) - 1 - lengths[i]);
    _mi_log_register_output(NULL, NULL);
    MI_CHECK_EQ(sink.len, MI_LOG_LINE_MAX - 1);
    MI_CHECK_EQ(sink.text[sink.len - 1], '\n');
    MI_CHECK_EQ(sink.text[sink.len - 2], 'x');
  }
}

static void mi_log_test_caps(void* arg) {
  (void)arg;
  static mi_log_test_sink_t sink;
  _mi_log_register_output(&mi_log_test_out, &sink);
  _mi_option_set(mi_option_show_errors, 1);
  // Messages may have been written before: the first that comes out again tells how many.
  long errors = 0;
  long warnings = 0;
  while (sink.calls == 0) {
    _mi_option_set(mi_option_max_errors, ++errors);
    _mi_log_error("e\n");
  }
  while (sink.calls == 1) {
    _mi_option_set(mi_option_max_warnings, ++warnings);
    _mi_log_warning("w\n");
  }
  sink.calls = 0;
  _mi_option_set(mi_option_max_errors, errors + 3);
  _mi_option_set(mi_option_max_warnings, warnings + 2);
  for (int i = 0; i < 50; i++) {
    _mi_log_error("e\n");
    _mi_log_warning("w\n");
    _mi_log_config_warning("c\n");
  }
  MI_CHECK_EQ(sink.calls, 5);
  _mi_option_set(mi_option_max_errors, errors + 4);
  _mi_log_error("e\n");
  _mi_log_error("e\n");
  MI_CHECK_EQ(sink.calls, 6);
  _mi_option_set(mi_option_max_errors, -1);
  for (int i = 0; i < 10; i++) {
    _mi_log_error("e\n");
  }
  MI_CHECK_EQ(sink.calls, 16);
}

MI_TEST(caps) { MI_CHECK_IN_CHILD(&mi_log_test_caps, NULL, 10000); }

static void mi_log_test_talks(const char* text, void* arg) {
  (void)text;
  (void)arg;
  _mi_log_message("from inside\n");
}

static void mi_log_test_nested(void* arg) {
  (void)arg;
  _mi_log_register_output(&mi_log_test_talks, NULL);
  _mi_log_message("outside\n");
  _mi_log_message("outside\n");
}

// What a registered function causes goes to stderr instead of back to it.
MI_TEST(nested) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_log_test_nested, NULL, 10000);
  MI_CHECK_CHILD_OK(&child, "nested");
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": from inside\n" MI_PROFILE_NAME ": from inside\n");
}

static int mi_log_test_errors[4];
static int mi_log_test_error_calls;

static void mi_log_test_error(int err, void* arg) {
  MI_CHECK_PTR_EQ(arg, mi_log_test_errors);
  mi_log_test_errors[mi_log_test_error_calls++ % 4] = err;
  errno = EIO;
  // Not called again from inside.
  _mi_log_call_error(EDOM);
}

MI_TEST(error_function) {
  _mi_log_call_error(EINVAL);
  _mi_log_register_error(&mi_log_test_error, mi_log_test_errors);
  errno = 12345;
  _mi_log_call_error(EAGAIN);
  _mi_log_call_error(EFAULT);
  MI_CHECK_EQ(errno, 12345);
  _mi_log_register_error(NULL, NULL);
  _mi_log_call_error(EINVAL);
  MI_CHECK_EQ(mi_log_test_error_calls, 2);
  MI_CHECK_EQ(mi_log_test_errors[0], EAGAIN);
  MI_CHECK_EQ(mi_log_test_errors[1], EFAULT);
}

// A function never gets the argument of another, however often they change.

static _Atomic(bool) mi_log_test_stop;
static _Atomic(long) mi_log_test_received;

static void mi_log_test_a(const char* text, void* arg) {
  (void)text;
  mi_atomic_add_relaxed(&mi_log_test_received, 1);
  MI_CHECK_PTR_EQ(arg, &mi_log_test_a);
}

static void mi_log_test_b(const char* text, void* arg) {
  (void)text;
  mi_atomic_add_relaxed(&mi_log_test_received, 1);
  MI_CHECK_PTR_EQ(arg, &mi_log_test_b);
}

static void* mi_log_test_talker(void* arg) {
  (void)arg;
  while (!mi_atomic_load_relaxed(&mi_log_test_stop)) {
    _mi_log_raw("x\n");
  }
  return NULL;
}

MI_TEST(pairs) {
  pthread_t talkers[2];
  _mi_log_register_output(&mi_log_test_a, (void*)(uintptr_t)&mi_log_test_a);
  for (int i = 0; i < 2; i++) {
    MI_REQUIRE(pthread_create(&talkers[i], NULL, &mi_log_test_talker, NULL) == 0);
  }
  for (long i = 0; i < 100000 || mi_atomic_load_relaxed(&mi_log_test_received) < 1000; i++) {
    if (i % 2 == 0) {
      _mi_log_register_output(&mi_log_test_b, (void*)(uintptr_t)&mi_log_test_b);
    } else {
      _mi_log_register_output(&mi_log_test_a, (void*)(uintptr_t)&mi_log_test_a);
    }
  }
  mi_atomic_store_relaxed(&mi_log_test_stop, true);
  for (int i = 0; i < 2; i++) {
    pthread_join(talkers[i], NULL);
  }
  _mi_log_register_output(NULL, NULL);
}

static void mi_log_test_assert(void* arg) {
  (void)arg;
  _mi_assert_fail("x == 1", "some/file.c", 42, "some_function");
}

MI_TEST(assertion) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_log_test_assert, NULL, 10000);
  MI_CHECK_EQ(child.signal, SIGABRT);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": assertion failed: some/file.c:42, some_function: x == 1\n");
}

MI_TEST_MAIN()
