// Owns: the registered functions, message building, the caps on messages, and the end of a failed assertion.
// May include: base, prim, sys/options.h, sys/sealed.h, sys/sink.h, sys/report.h.
// Called by: through log.h and base/assert.h.
// Invariants: what is written while no function is registered is kept for the first one, as far as there is room; nothing
// waits for it.
#include "src/sys/log.h"

#include <errno.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/atomic.h"
#include "src/base/fmt.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/sealed.h"
#include "src/sys/sink.h"

// Registered functions

// This thread is inside a registered function.
static mi_thread_local bool mi_inside_output;
static mi_thread_local bool mi_inside_error;

static void mi_call_output(mi_output_fun* out, void* arg, const char* text) {
  const int saved = errno;
  mi_inside_output = true;
  out(text, arg);
  mi_inside_output = false;
  errno = saved;
}

// What was written while no function was registered, for the first one that is: the messages of the start, which come before
// a program can register any. Each is a word with its length, which is stored last, and its text with the zero.
static mi_far struct {
  _Atomic(bool) closed;
  _Atomic(uint32_t) used;
  _Atomic(uint32_t) words[MI_LOG_KEPT_SIZE / sizeof(uint32_t)];
} mi_log_kept;

static char* mi_log_kept_text(uint32_t at) { return (char*)(uintptr_t)&mi_log_kept.words[at + 1]; }

static uint32_t mi_log_kept_words(size_t len) { return 1 + (uint32_t)(len / sizeof(uint32_t) + 1); }

static void mi_log_keep(const char* text, size_t len) {
  const uint32_t count = MI_LOG_KEPT_SIZE / sizeof(uint32_t);
  const uint32_t needed = mi_log_kept_words(len);
  uint32_t at = mi_atomic_load_relaxed(&mi_log_kept.used);
  do {
    if (mi_atomic_load_relaxed(&mi_log_kept.closed) || needed > count - at) {
      return;
    }
  } while (!mi_atomic_cas_weak_acq_rel(&mi_log_kept.used, &at, at + needed));
  memcpy(mi_log_kept_text(at), text, len);
  // Release: who sees the length sees the text.
  mi_atomic_store_release(&mi_log_kept.words[at], (uint32_t)len);
}

// A text that another thread is just writing, and what comes behind it, is left out: it is on stderr.
static void mi_log_hand_over(mi_output_fun* out, void* arg) {
  if (mi_atomic_exchange_acq_rel(&mi_log_kept.closed, true)) {
    return;
  }
  const uint32_t used = mi_atomic_load_relaxed(&mi_log_kept.used);
  uint32_t len;
  for (uint32_t at = 0; at < used && (len = mi_atomic_load_acquire(&mi_log_kept.words[at])) != 0; at += mi_log_kept_words(len)) {
    mi_call_output(out, arg, mi_log_kept_text(at));
  }
}

void _mi_log_register_output(mi_output_fun* out, void* arg) {
  if (_mi_sink_register(&_mi_settings.output, (uintptr_t)out, (uintptr_t)arg) && out != NULL) {
    mi_log_hand_over(out, arg);
  }
}

void _mi_log_register_error(mi_error_fun* fun, void* arg) {
  (void)_mi_sink_register(&_mi_settings.error, (uintptr_t)fun, (uintptr_t)arg);
}

void _mi_log_call_error(int err) {
  uintptr_t arg;
  const uintptr_t fun = _mi_sink_read(&_mi_settings.error, &arg);
  if (fun == 0 || mi_inside_error) {
    return;
  }
  const int saved = errno;
  mi_inside_error = true;
  ((mi_error_fun*)fun)(err, (void*)arg);
  mi_inside_error = false;
  errno = saved;
}

bool _mi_log_has_error(void) {
  uintptr_t arg;
  return _mi_sink_read(&_mi_settings.error, &arg) != 0 && !mi_inside_error;
}

bool _mi_log_has_output(void) {
  uintptr_t arg;
  return _mi_sink_read(&_mi_settings.output, &arg) != 0 && !mi_inside_output;
}

void _mi_log_write(const char* line, size_t len) {
  uintptr_t arg;
  const uintptr_t fun = _mi_sink_read(&_mi_settings.output, &arg);
  if (fun == 0 || mi_inside_output) {
    _mi_prim_write_stderr(line, len);
    if (fun == 0) {
      mi_log_keep(line, len);
    }
  } else {
    mi_call_output((mi_output_fun*)fun, (void*)arg, line);
  }
}

// Messages

static _Atomic(long) mi_warning_count;
static _Atomic(long) mi_error_count;

// A line, zero terminated; one that is cut still ends with a newline if it is a line at all. Returns its length.
static size_t mi_log_build(char* line, const char* prefix, const char* fmt, va_list args) {
  const size_t start = _mi_fmt(line, MI_LOG_LINE_MAX, "%s", prefix);
  const size_t needed = start + _mi_fmt_va(line + start, MI_LOG_LINE_MAX - start, fmt, args);
  if (needed < MI_LOG_LINE_MAX) {
    return needed;
  }
  line[MI_LOG_LINE_MAX - 2] = '\n';
  return MI_LOG_LINE_MAX - 1;
}

static void mi_log_line(const char* prefix, const char* fmt, va_list args) {
  char line[MI_LOG_LINE_MAX];
  const size_t len = mi_log_build(line, prefix, fmt, args);
  _mi_log_write(line, len);
}

// Takes one off what the option allows.
static bool mi_log_take(_Atomic(long)* count, mi_option_t max_option) {
  const long max = _mi_option_get(max_option);
  // Looked at first, so that the count cannot wrap.
  return max < 0 || (mi_atomic_load_relaxed(count) < max && mi_atomic_add_relaxed(count, 1) < max);
}

bool _mi_log_count_error(void) { return mi_log_take(&mi_error_count, mi_option_max_errors); }

static bool mi_log_shows_errors(void) {
  return _mi_option_is_enabled(mi_option_show_errors) || _mi_option_is_enabled(mi_option_verbose);
}

void _mi_log_message(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  mi_log_line(MI_PROFILE_NAME ": ", fmt, args);
  va_end(args);
}

void _mi_log_raw(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  mi_log_line("", fmt, args);
  va_end(args);
}

void _mi_log_verbose(const char* fmt, ...) {
  if (_mi_option_get(mi_option_verbose) < 1) {
    return;
  }
  va_list args;
  va_start(args, fmt);
  mi_log_line(MI_PROFILE_NAME ": ", fmt, args);
  va_end(args);
}

void _mi_log_trace(const char* fmt, ...) {
  if (_mi_option_get(mi_option_verbose) < 2) {
    return;
  }
  va_list args;
  va_start(args, fmt);
  mi_log_line(MI_PROFILE_NAME ": ", fmt, args);
  va_end(args);
}

void _mi_log_warning(const char* fmt, ...) {
  if (!mi_log_shows_errors() || !mi_log_take(&mi_warning_count, mi_option_max_warnings)) {
    return;
  }
  va_list args;
  va_start(args, fmt);
  mi_log_line(MI_PROFILE_NAME ": warning: ", fmt, args);
  va_end(args);
}

void _mi_log_config_warning(const char* fmt, ...) {
  if (!mi_log_take(&mi_warning_count, mi_option_max_warnings)) {
    return;
  }
  va_list args;
  va_start(args, fmt);
  mi_log_line(MI_PROFILE_NAME ": warning: ", fmt, args);
  va_end(args);
}

void _mi_log_error(const char* fmt, ...) {
  if (!mi_log_shows_errors() || !_mi_log_count_error()) {
    return;
  }
  va_list args;
  va_start(args, fmt);
  mi_log_line(MI_PROFILE_NAME ": error: ", fmt, args);
  va_end(args);
}

void _mi_log_print_to(mi_output_fun* out, void* arg, const char* fmt, ...) {
  char text[MI_LOG_LINE_MAX];
  va_list args;
  va_start(args, fmt);
  const size_t len = mi_log_build(text, "", fmt, args);
  va_end(args);
  if (out == NULL) {
    _mi_log_write(text, len);
  } else {
    mi_call_output(out, arg, text);
  }
}

// Assertions

void _mi_assert_fail(const char* expression, const char* file, int line, const char* function) {
  char text[MI_LOG_LINE_MAX];
  const size_t needed = _mi_fmt(text, sizeof(text), MI_PROFILE_NAME ": assertion failed: %s:%d, %s: %s\n", file, line,
                                function, expression);
  size_t len = needed;
  if (needed >= sizeof(text)) {
    text[sizeof(text) - 2] = '\n';
    len = sizeof(text) - 1;
  }
  _mi_report_keep(text);
  if (_mi_log_has_output()) {
    _mi_log_write(text, len);
  }
  // Also where another output exists: the process ends, and nobody may come to read what that has buffered.
  _mi_prim_write_stderr(text, len);
  _mi_prim_abort();
}
