// Owns: tests of sys/report: every kind under every action, the order of what happens, and reports in hard places.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: reports are made in children, as they may end the process.
#include "src/sys/report.h"

#include <pthread.h>
#include <setjmp.h>

#include "src/base/atomic.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

typedef struct mi_report_test_s {
  mi_violation_t kind;
  long action;
} mi_report_test_t;

static void mi_report_test_one(void* arg) {
  const mi_report_test_t* const t = arg;
  _mi_option_set(mi_option_on_violation, t->action);
  _mi_option_set(mi_option_backtrace, 0);
  errno = 12345;
  _mi_report(t->kind, "pointer %p is %s", (void*)(uintptr_t)0x1230, "bad");
  MI_CHECK_EQ(errno, 12345);
}

static const struct {
  const char* word;
  int err;
  bool never;
} mi_report_test_rows[MI_VIOLATION_COUNT] = {
    [MI_VIOLATION_double_free] = {"double-free", EAGAIN, false},
    [MI_VIOLATION_invalid_free] = {"invalid-free", EINVAL, false},
    [MI_VIOLATION_interior_free] = {"interior-free", EINVAL, false},
    [MI_VIOLATION_foreign_free] = {"foreign-free", EINVAL, false},
    [MI_VIOLATION_size_mismatch] = {"size-mismatch", EINVAL, false},
    [MI_VIOLATION_alignment_mismatch] = {"alignment-mismatch", EINVAL, false},
    [MI_VIOLATION_family_mismatch] = {"family-mismatch", EINVAL, false},
    [MI_VIOLATION_free_list_corruption] = {"free-list-corruption", EFAULT, false},
    [MI_VIOLATION_overflow] = {"overflow", EFAULT, false},
    [MI_VIOLATION_underflow] = {"underflow", EFAULT, false},
    [MI_VIOLATION_use_after_free] = {"use-after-free", EFAULT, false},
    [MI_VIOLATION_write_after_free] = {"write-after-free", EFAULT, false},
    [MI_VIOLATION_metadata_corruption] = {"metadata-corruption", EFAULT, false},
    [MI_VIOLATION_out_of_memory] = {"out-of-memory", ENOMEM, true},
};

MI_TEST(kinds) {
  static const long actions[] = {MI_ON_VIOLATION_ABORT, MI_ON_VIOLATION_REPORT, MI_ON_VIOLATION_IGNORE, 3, -1};
  for (int kind = 0; kind < MI_VIOLATION_COUNT; kind++) {
    const char* const word = mi_report_test_rows[kind].word;
    const bool never = mi_report_test_rows[kind].never;
    MI_CHECK_STREQ(_mi_violation_word((mi_violation_t)kind), word);
    MI_CHECK_EQ(_mi_violation_errno((mi_violation_t)kind), mi_report_test_rows[kind].err);
    char line[128];
    snprintf(line, sizeof(line), "%s: %s: pointer 0x1230 is bad\n", MI_PROFILE_NAME, word);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
      static mi_test_child_t child;
      mi_report_test_t t = {(mi_violation_t)kind, actions[i]};
      mi_test_child_run(&child, &mi_report_test_one, &t, 10000);
      const bool fatal = kind == MI_VIOLATION_metadata_corruption && MI_VIOLATION_ABORTS;
      const bool returns = never || (!fatal && (actions[i] == MI_ON_VIOLATION_REPORT || actions[i] == MI_ON_VIOLATION_IGNORE));
      const bool quiet = never ? !_mi_option_is_enabled(mi_option_show_errors) : !fatal && actions[i] == MI_ON_VIOLATION_IGNORE;
      MI_CHECK_MSG(child.signal == (returns ? 0 : SIGABRT) && !child.timed_out, "%s, %ld: %d", word, actions[i], child.signal);
      MI_CHECK(!returns || child.status == 0);
      MI_CHECK_STREQ(child.err, quiet ? "" : line);
    }
  }
}

static void mi_report_test_default_child(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_backtrace, 0);
  _mi_report(MI_VIOLATION_double_free, "x");
}

MI_TEST(profile_default) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_report_test_default_child, NULL, 10000);
  MI_CHECK_EQ(child.signal, MI_VIOLATION_ABORTS ? SIGABRT : 0);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": double-free: x\n");
}

// The registered function finds the message where a core dump shows it. Where the process ends the line is out before.

static void mi_report_test_error(int err, void* arg) {
  const bool kept = strcmp(mi_violation_message, MI_PROFILE_NAME ": overflow: block 7\n") == 0;
  char line[64];
  snprintf(line, sizeof(line), "told %d %d %s\n", err, kept, (const char*)arg);
  mi_test_write(2, line, strlen(line));
  errno = EIO;
  // A report from inside reaches stderr and does not call back.
  if (strcmp(arg, "nested") == 0) {
    _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
    _mi_report(MI_VIOLATION_underflow, "inner");
    _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_ABORT);
  }
}

static void mi_report_test_order_child(void* arg) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_ABORT);
  _mi_option_set(mi_option_backtrace, 0);
  _mi_log_register_error(&mi_report_test_error, arg);
  _mi_report(MI_VIOLATION_overflow, "block %d", 7);
}

MI_TEST(order) {
  static mi_test_child_t child;
  char line[256];
  char plain[] = "plain";
  char nested[] = "nested";
  mi_test_child_run(&child, &mi_report_test_order_child, plain, 10000);
  MI_CHECK_EQ(child.signal, SIGABRT);
  snprintf(line, sizeof(line), "%s: overflow: block 7\ntold %d 1 plain\n", MI_PROFILE_NAME, EFAULT);
  MI_CHECK_STREQ(child.err, line);
  mi_test_child_run(&child, &mi_report_test_order_child, nested, 10000);
  MI_CHECK_EQ(child.signal, SIGABRT);
  snprintf(line, sizeof(line), "%s: overflow: block 7\ntold %d 1 nested\n%s: underflow: inner\n", MI_PROFILE_NAME, EFAULT,
           MI_PROFILE_NAME);
  MI_CHECK_STREQ(child.err, line);
}

static void mi_report_test_out(const char* text, void* arg) {
  mi_test_write(2, "out: ", 5);
  mi_test_write(2, text, strlen(text));
  (void)arg;
}

static void mi_report_test_output_child(void* arg) {
  const long* const action = arg;
  _mi_option_set(mi_option_on_violation, *action);
  _mi_option_set(mi_option_backtrace, 0);
  _mi_log_register_output(&mi_report_test_out, NULL);
  _mi_report(MI_VIOLATION_overflow, "x");
}

MI_TEST(other_output) {
  static mi_test_child_t child;
  long action = MI_ON_VIOLATION_REPORT;
  mi_test_child_run(&child, &mi_report_test_output_child, &action, 10000);
  MI_CHECK_STREQ(child.err, "out: " MI_PROFILE_NAME ": overflow: x\n");
  action = MI_ON_VIOLATION_ABORT;
  mi_test_child_run(&child, &mi_report_test_output_child, &action, 10000);
  MI_CHECK_EQ(child.signal, SIGABRT);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: x\nout: " MI_PROFILE_NAME ": overflow: x\n");
}

static void mi_report_test_one_line_child(void* arg) {
  _mi_option_set(mi_option_backtrace, 0);
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  _mi_report(MI_VIOLATION_overflow, "%s", (const char*)arg);
}

// Whatever the text is, it is one line.
MI_TEST(one_line) {
  static mi_test_child_t child;
  char text[2000] = "a\nb\x1b[1mc\x7f";
  mi_test_child_run(&child, &mi_report_test_one_line_child, text, 10000);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: a?b?[1mc?\n");
  memset(text, 'x', sizeof(text) - 1);
  text[sizeof(text) - 1] = 0;
  mi_test_child_run(&child, &mi_report_test_one_line_child, text, 10000);
  MI_CHECK_EQ(child.err_len, sizeof(mi_violation_message) - 1);
  MI_CHECK_EQ(child.err[child.err_len - 1], '\n');
  MI_CHECK_EQ(child.err[child.err_len - 2], 'x');
}

static void mi_report_test_cap_child(void* arg) {
  const long* const action = arg;
  _mi_option_set(mi_option_backtrace, 0);
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  _mi_option_set(mi_option_max_errors, 2);
  for (int i = 0; i < 10; i++) {
    _mi_report(MI_VIOLATION_overflow, "%d", i);
  }
  _mi_option_set(mi_option_on_violation, *action);
  _mi_report(MI_VIOLATION_overflow, "last");
}

// The cap is for a process that goes on; one that ends always says why.
MI_TEST(cap) {
  static mi_test_child_t child;
  long action = MI_ON_VIOLATION_REPORT;
  mi_test_child_run(&child, &mi_report_test_cap_child, &action, 10000);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: 0\n" MI_PROFILE_NAME ": overflow: 1\n");
  action = MI_ON_VIOLATION_ABORT;
  mi_test_child_run(&child, &mi_report_test_cap_child, &action, 10000);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: 0\n" MI_PROFILE_NAME ": overflow: 1\n" MI_PROFILE_NAME ": overflow: last\n");
}

static void mi_report_test_oom_child(void* arg) {
  (void)arg;
  char plain[] = "oom";
  _mi_log_register_error(&mi_report_test_error, plain);
  _mi_option_set(mi_option_show_errors, 0);
  errno = 12345;
  _mi_report_oom(100);
  _mi_report_oom(SIZE_MAX);
  _mi_option_set(mi_option_show_errors, 1);
  _mi_report_oom(100);
  MI_CHECK_EQ(errno, 12345);
}

MI_TEST(oom) {
  static mi_test_child_t child;
  char text[256];
  mi_test_child_run(&child, &mi_report_test_oom_child, NULL, 10000);
  MI_CHECK_CHILD_OK(&child, "oom");
  snprintf(text, sizeof(text), "told %d 0 oom\ntold %d 0 oom\ntold %d 0 oom\n%s: out-of-memory: no memory for 100 bytes\n",
           ENOMEM, EOVERFLOW, ENOMEM, MI_PROFILE_NAME);
  MI_CHECK_STREQ(child.err, text);
}

// Reports from a signal handler that interrupts reports, on a small stack.

static _Atomic(int) mi_report_test_signals;

static void mi_report_test_handler(int sig) {
  (void)sig;
  _mi_report(MI_VIOLATION_underflow, "in a handler");
  mi_atomic_add_relaxed(&mi_report_test_signals, 1);
}

static void mi_report_test_handler_child(void* arg) {
  (void)arg;
  static char stack[16 * 1024];
  const stack_t alt = {.ss_sp = stack, .ss_size = sizeof(stack)};
  MI_REQUIRE(sigaltstack(&alt, NULL) == 0);
  struct sigaction action = {.sa_handler = &mi_report_test_handler, .sa_flags = SA_ONSTACK | SA_RESTART};
  MI_REQUIRE(sigaction(SIGPROF, &action, NULL) == 0);
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  _mi_option_set(mi_option_max_errors, 20);
  const struct itimerspec every = {{0, 200000}, {0, 200000}};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
  timer_t timer;
  MI_REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &every, NULL) == 0);
  while (mi_atomic_load_relaxed(&mi_report_test_signals) < 300) {
    _mi_report(MI_VIOLATION_overflow, "outside");
  }
}

MI_TEST(signal_handler) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_report_test_handler_child, NULL, 30000);
  MI_CHECK_CHILD_OK(&child, "handler");
  MI_CHECK(mi_test_child_said(&child, "^" MI_PROFILE_NAME ": (overflow: outside|underflow: in a handler)$"));
}

static void* mi_report_test_thread(void* arg) {
  for (int i = 0; i < 100; i++) {
    _mi_report(MI_VIOLATION_overflow, "%s", (const char*)arg);
  }
  return NULL;
}

static void mi_report_test_threads_child(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  _mi_option_set(mi_option_max_errors, 100);
  _mi_option_set(mi_option_backtrace, 0);
  pthread_t threads[4];
  char text[] = "0123456789";
  for (int i = 0; i < 4; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_report_test_thread, text) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  MI_CHECK_STREQ(mi_violation_message, MI_PROFILE_NAME ": overflow: 0123456789\n");
}

MI_TEST(threads) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_report_test_threads_child, NULL, 30000);
  MI_CHECK_CHILD_OK(&child, "threads");
  const char* const line = MI_PROFILE_NAME ": overflow: 0123456789\n";
  MI_CHECK_EQ(child.err_len, 100 * strlen(line));
  for (size_t i = 0; i < child.err_len; i += strlen(line)) {
    MI_CHECK(strncmp(child.err + i, line, strlen(line)) == 0);
  }
}

// The error function chooses otherwise: the end can be chosen late, and not be taken back.

static void mi_report_test_choose(int err, void* arg) {
  (void)err;
  _mi_option_set(mi_option_on_violation, *(const long*)arg);
}

static void mi_report_test_choose_child(void* arg) {
  const long* const action = arg;
  long other = *action == MI_ON_VIOLATION_ABORT ? MI_ON_VIOLATION_IGNORE : MI_ON_VIOLATION_ABORT;
  _mi_option_set(mi_option_backtrace, 0);
  _mi_option_set(mi_option_on_violation, *action);
  _mi_log_register_error(&mi_report_test_choose, &other);
  _mi_report(MI_VIOLATION_overflow, "x");
}

MI_TEST(error_function_chooses) {
  static mi_test_child_t child;
  static const long actions[] = {MI_ON_VIOLATION_ABORT, MI_ON_VIOLATION_REPORT, MI_ON_VIOLATION_IGNORE};
  for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
    long action = actions[i];
    mi_test_child_run(&child, &mi_report_test_choose_child, &action, 10000);
    MI_CHECK_MSG(child.signal == SIGABRT, "%ld: %d", action, child.signal);
    MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: x\n");
  }
}

// It cannot make an end silent by not coming back.

static jmp_buf mi_report_test_back;

static void mi_report_test_leave(int err, void* arg) {
  (void)err;
  if (arg == NULL) {
    _exit(0);
  }
  longjmp(mi_report_test_back, 1);
}

static void mi_report_test_leave_child(void* arg) {
  _mi_option_set(mi_option_backtrace, 0);
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_ABORT);
  _mi_log_register_error(&mi_report_test_leave, arg);
  if (setjmp(mi_report_test_back) == 0) {
    _mi_report(MI_VIOLATION_overflow, "x");
  }
}

MI_TEST(error_function_leaves) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_report_test_leave_child, NULL, 10000);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: x\n");
  mi_test_child_run(&child, &mi_report_test_leave_child, &child, 10000);
  MI_CHECK_STREQ(child.err, MI_PROFILE_NAME ": overflow: x\n");
}

// Calls

// Asking for the frame's address gives the function a frame pointer, whatever the flags are.
static void* volatile mi_report_test_frame;

static mi_noinline void mi_report_test_deep(int depth) {
  mi_report_test_frame = __builtin_frame_address(0);
  if (depth > 0) {
    mi_report_test_deep(depth - 1);
  } else {
    _mi_report(MI_VIOLATION_overflow, "x");
  }
  mi_report_test_frame = NULL;
}

static void mi_report_test_calls_child(void* arg) {
  const long* const depth = arg;
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  _mi_option_set(mi_option_backtrace, *depth);
  mi_report_test_deep(100);
}

static size_t mi_report_test_count_lines(const char* text) {
  size_t lines = 0;
  for (; *text != 0; text++) {
    lines += *text == '\n';
  }
  return lines;
}

MI_TEST(calls) {
  static mi_test_child_t child;
  static const long depths[] = {0, 1, 3, -5, 1000};
  for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
    long depth = depths[i];
    mi_test_child_run(&child, &mi_report_test_calls_child, &depth, 10000);
    MI_CHECK_CHILD_OK(&child, "calls");
    const size_t lines = mi_report_test_count_lines(child.err);
    MI_CHECK_EQ(lines, 1 + (size_t)(depth < 0 ? 0 : depth > 64 ? 64
                                                               : depth));
    MI_CHECK(depth <= 0 || mi_test_child_said(&child, "^    #0 0x[0-9a-f]+ .*/report.*[+]0x[0-9a-f]+$"));
  }
}

// Two threads that report at once: each report comes out in one piece.

static void* mi_report_test_calls_thread(void* arg) {
  for (int i = 0; i < 20; i++) {
    _mi_report(MI_VIOLATION_overflow, "%s", (const char*)arg);
  }
  return NULL;
}

static void mi_report_test_calls_threads_child(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_REPORT);
  _mi_option_set(mi_option_max_errors, -1);
  _mi_option_set(mi_option_backtrace, 2);
  pthread_t threads[2];
  char text[] = "0123456789";
  for (int i = 0; i < 2; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_report_test_calls_thread, text) == 0);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
}

MI_TEST(calls_of_threads) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_report_test_calls_threads_child, NULL, 30000);
  MI_CHECK_CHILD_OK(&child, "threads");
  // Each line of a report is followed by its own calls, the first of them number 0.
  int expected = 0;
  for (char* line = strtok(child.err, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    if (strncmp(line, MI_PROFILE_NAME ": overflow: 0123456789", strlen(MI_PROFILE_NAME) + 22) == 0) {
      expected = 0;
    } else {
      char start[32];
      snprintf(start, sizeof(start), "    #%d 0x", expected);
      // The child's output is cut, maybe within its last line.
      MI_CHECK_MSG(strncmp(line, start, strlen(start)) == 0 || line + strlen(line) == child.err + child.err_len, "%s", line);
      expected++;
    }
  }
}

// A process that ends while another thread reports ends soon.
static void mi_report_test_race_child(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_ABORT);
  pthread_t thread;
  char text[] = "0123456789";
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_report_test_calls_thread, text) == 0);
  _mi_report(MI_VIOLATION_overflow, "%s", text);
}

MI_TEST(two_ends) {
  static mi_test_child_t child;
  for (int i = 0; i < 50; i++) {
    mi_test_child_run(&child, &mi_report_test_race_child, NULL, 2000);
    MI_CHECK_EQ(child.signal, SIGABRT);
    MI_CHECK(!child.timed_out);
    MI_CHECK(mi_test_child_said(&child, "^" MI_PROFILE_NAME ": overflow: 0123456789$"));
  }
}

MI_TEST_MAIN()
