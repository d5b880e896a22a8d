// Owns: the one place that decides what follows bad use, and the message that a core dump shows.
// May include: policy, base, prim, sys/log.h, sys/options.h.
// Called by: through report.h.
// Invariants: takes no lock; uses about a kilobyte of stack; a report inside a report ends the same way.
#include "src/sys/report.h"

#include <errno.h>
#include <stdarg.h>

#include "src/base/atomic.h"
#include "src/base/fmt.h"
#include "src/base/geometry.h"
#include "src/prim/prim.h"
#include "src/sys/log.h"
#include "src/sys/options.h"

char mi_violation_message[MI_LOG_LINE_MAX];

typedef struct mi_violation_row_s {
  const char* word;
  int err;
  mi_violation_action_t action;
} mi_violation_row_t;

static const mi_violation_row_t mi_violation_rows[MI_VIOLATION_COUNT] = {
#define V(symbol, word, err, action) [MI_VIOLATION_##symbol] = {word, err, MI_ACTION_##action},
#include "policy/violations.def"
#undef V
};

const char* _mi_violation_word(mi_violation_t kind) { return mi_violation_rows[kind].word; }

int _mi_violation_errno(mi_violation_t kind) { return mi_violation_rows[kind].err; }

void _mi_report_keep(const char* line) {
  static _Atomic(bool) mi_violation_message_busy;
  // Acquire and release keep the copy inside, for the next one that comes.
  if (mi_atomic_exchange_acq_rel(&mi_violation_message_busy, true)) {
    return;
  }
  size_t i = 0;
  for (; i < sizeof(mi_violation_message) - 1 && line[i] != 0; i++) {
    mi_violation_message[i] = line[i];
  }
  mi_violation_message[i] = 0;
  mi_atomic_store_release(&mi_violation_message_busy, false);
}

// What follows a report of this kind: what on_violation says, unless an option of the kind itself says less.
static long mi_report_action(mi_violation_t kind) {
  const long of_kind = kind == MI_VIOLATION_family_mismatch ? _mi_option_get(mi_option_family_check) : 0;
  return of_kind != MI_ON_VIOLATION_ABORT ? of_kind : _mi_option_get(mi_option_on_violation);
}

// "<profile>: <kind>: <text>\n", whatever the text holds. Returns the length.
static size_t mi_report_build(char* line, mi_violation_t kind, const char* fmt, va_list args) {
  const size_t start = _mi_fmt(line, MI_LOG_LINE_MAX, MI_PROFILE_NAME ": %s: ", _mi_violation_word(kind));
  // One byte less, for the newline.
  const size_t room = MI_LOG_LINE_MAX - 1 - start;
  const size_t needed = _mi_fmt_va(line + start, room, fmt, args);
  size_t len = start + (needed < room ? needed : room - 1);
  for (size_t i = start; i < len; i++) {
    if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
      line[i] = '?';
    }
  }
  line[len++] = '\n';
  line[len] = 0;
  return len;
}

void _mi_report(mi_violation_t kind, const char* fmt, ...) {
  char line[MI_LOG_LINE_MAX];
  va_list args;
  va_start(args, fmt);
  const size_t len = mi_report_build(line, kind, fmt, args);
  va_end(args);
  const bool never = mi_violation_rows[kind].action == MI_ACTION_NEVER;
  if (!never) {
    _mi_report_keep(line);
  }
  _mi_log_call_error(_mi_violation_errno(kind));
  const long action = mi_report_action(kind);
  const bool returns = never || action == MI_ON_VIOLATION_REPORT || action == MI_ON_VIOLATION_IGNORE;
  if (!returns) {
    if (_mi_log_has_output()) {
      _mi_log_write(line, len);
    }
    // Also where another output exists: the process ends, and nobody may come to read what that has buffered.
    _mi_prim_write_stderr(line, len);
    _mi_prim_abort();
  }
  const bool quiet = never ? !_mi_option_is_enabled(mi_option_show_errors) && !_mi_option_is_enabled(mi_option_verbose)
                           : action == MI_ON_VIOLATION_IGNORE;
  if (!quiet && _mi_log_count_error()) {
    _mi_log_write(line, len);
  }
}

void _mi_report_oom(size_t size) {
  _mi_log_call_error(size > MI_ALLOC_SIZE_MAX ? EOVERFLOW : ENOMEM);
  if (_mi_option_is_enabled(mi_option_show_errors) || _mi_option_is_enabled(mi_option_verbose)) {
    if (_mi_log_count_error()) {
      _mi_log_message("%s: no memory for %zu bytes\n", _mi_violation_word(MI_VIOLATION_out_of_memory), size);
    }
  }
}
