// Owns: what the allocator says, other than reports of bad use: messages, warnings, and where they go.
// May include: base, prim, sys/options.h.
// Called by: everyone above prim.
// Invariants: nothing is allocated, no lock is taken by a message, errno is untouched; a message is one call of the output
// function or one write. While a thread is inside a registered function, what it causes to be said goes to stderr.
#pragma once

#include <stdarg.h>

#include "mimalloc.h"
#include "src/base/compiler.h"

// A message, prefix and end included, is cut at this length; its buffer is on the stack.
enum { MI_LOG_LINE_MAX = 512 };

// So many bytes of what was written before a function was registered are kept for it.
enum { MI_LOG_KEPT_SIZE = 16 * 1024 };

// Each ends its text with \n itself, except where said. The prefix is the profile's name, a colon and a space.

// Always, with the prefix.
mi_cold void _mi_log_message(const char* fmt, ...) mi_printf_like(1, 2);

// Always, without the prefix.
mi_cold void _mi_log_raw(const char* fmt, ...) mi_printf_like(1, 2);

// With option verbose; trace: verbose of at least 2.
mi_cold void _mi_log_verbose(const char* fmt, ...) mi_printf_like(1, 2);
mi_cold void _mi_log_trace(const char* fmt, ...) mi_printf_like(1, 2);

// With show_errors or verbose, at most max_warnings of them (negative: no limit).
mi_cold void _mi_log_warning(const char* fmt, ...) mi_printf_like(1, 2);

// Always, but within max_warnings: what is wrong with the configuration, which show_errors itself is part of.
mi_cold void _mi_log_config_warning(const char* fmt, ...) mi_printf_like(1, 2);

// With show_errors or verbose, at most max_errors of them (negative: no limit).
mi_cold void _mi_log_error(const char* fmt, ...) mi_printf_like(1, 2);

// To `out`, or to the registered output when it is NULL; no prefix. For tables.
mi_cold void _mi_log_print_to(mi_output_fun* out, void* arg, const char* fmt, ...) mi_printf_like(3, 4);

// Registers where messages go; NULL restores stderr. Any thread, any time; a message under way may still use the old one. The
// first function also gets, at once, what was written so far, as far as it was kept.
void _mi_log_register_output(mi_output_fun* out, void* arg);

// Registers who is told of error numbers; NULL: nobody.
void _mi_log_register_error(mi_error_fun* fun, void* arg);

// For sys/report: writes a finished line, zero terminated, of `len` bytes to the registered output, else to stderr.
void _mi_log_write(const char* line, size_t len);

// For sys/report: true as often as max_errors allows.
bool _mi_log_count_error(void);

// For sys/report: whether the registered output is another than stderr, for this thread now.
bool _mi_log_has_output(void);

// For sys/report: calls the registered error function, if there is one and this thread is not inside one already.
void _mi_log_call_error(int err);

// Whether there is such a function, which would be called.
bool _mi_log_has_error(void);
