// Owns: the registered functions, message building, the caps on messages, and the end of a failed assertion.
// May include: base, prim, sys/options.h, sys/sealed.h, sys/report.h.
// Called by: through log.h and base/assert.h.
// Invariants: a registered function and its argument are always read as the pair that was registered.
#include "src/sys/log.h"

#include <errno.h>

#include "src/base/assert.h"
#include "src/base/atomic.h"
#include "src/base/fmt.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/sealed.h"

// Registered functions

// This thread is inside a registered function.
static mi_thread_local bool mi_inside_output;
static mi_thread_local bool mi_inside_error;

static void mi_sink_register(mi_sink_t* sink, uintptr_t fun, uintptr_t arg) {
  // One thread at a time is past this.
  if (!_mi_sealed_open("the registered function")) {
    return;
  }
  const uint32_t next = mi_atomic_load_relaxed(&sink->current) + 1;
  // Release: a reader that meets these too early, in a slot it still reads, also sees that `current` has gone on.
  mi_atomic_store_release(&sink->slots[next % MI_SINK_SLOTS].fun, fun);
  mi_atomic_store_release(&sink->slots[next % MI_SINK_SLOTS].arg, arg);
  // Release: pairs with the acquire in mi_sink_read, which then finds the pair complete.
  mi_atomic_store_release(&sink->current, next);
  _mi_sealed_close();
}

static uintptr_t mi_sink_read(mi_sink_t* sink, uintptr_t* arg) {
  for (;;) {
    const uint32_t current = mi_atomic_load_acquire(&sink->current);
    const uintptr_t fun = mi_atomic_load_acquire(&sink->slots[current % MI_SINK_SLOTS].fun);
    *arg = mi_atomic_load_acquire(&sink->slots[current % MI_SINK_SLOTS].arg);
    // The slot is written again only after SLOTS - 1 further registrations.
    if (mi_atomic_load_relaxed(&sink->current) - current < MI_SINK_SLOTS - 1) {
      return fun;
    }
  }
}

void _mi_log_register_output(mi_output_fun* out, void* arg) {
  mi_sink_register(&_mi_settings.output, (uintptr_t)out, (uintptr_t)arg);
}

void _mi_log_register_error(mi_error_fun* fun, void* arg) {
  mi_sink_register(&_mi_settings.error, (uintptr_t)fun, (uintptr_t)arg);
}

void _mi_log_call_error(int err) {
  uintptr_t arg;
  const uintptr_t fun = mi_sink_read(&_mi_settings.error, &arg);
  if (fun == 0 || mi_inside_error) {
    return;
  }
  const int saved = errno;
  mi_inside_error = true;
  ((mi_error_fun*)fun)(err, (void*)arg);
  mi_inside_error = false;
  errno = saved;
}

static void mi_call_output(mi_output_fun* out, void* arg, const char* text) {
  const int saved = errno;
  mi_inside_output = true;
  out(text, arg);
  mi_inside_output = false;
  errno = saved;
}

bool _mi_log_has_output(void) {
  uintptr_t arg;
  return mi_sink_read(&_mi_settings.output, &arg) != 0 && !mi_inside_output;
}

void _mi_log_write(const char* line, size_t len) {
  uintptr_t arg;
  const uintptr_t fun = mi_sink_read(&_mi_settings.output, &arg);
  if (fun == 0 || mi_inside_output) {
    _mi_prim_write_stderr(line, len);
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
