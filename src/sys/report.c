// Owns: the one place that decides what follows bad use, and the message that a core dump shows.
// May include: policy, base, prim, sys/lock.h, sys/log.h, sys/options.h, sys/report-file.h, sys/sealed.h.
// Called by: through report.h.
// Invariants: waits for no lock beyond some milliseconds; uses less than 5 KiB of stack; a report inside a report ends the
// same way.
#include "src/sys/report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/base/geometry.h"
#include "src/prim/prim.h"
#include "src/sys/lock.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/report-file.h"
#include "src/sys/sealed.h"

char mi_violation_message[MI_LOG_LINE_MAX];

_Static_assert((int)MI_LOG_LINE_MAX == (int)MI_REPORT_LINE_MAX, "a line is kept back whole");

typedef struct mi_violation_row_s {
  const char* word;
  int err;
  mi_violation_action_t action;
} mi_violation_row_t;

static const mi_violation_row_t mi_violation_rows[MI_VIOLATION_COUNT] = {
#define V(symbol, word, err, lenient, hardened, meaning) \
  [MI_VIOLATION_##symbol] = {word, err, MI_VIOLATION_ABORTS ? MI_ACTION_##hardened : MI_ACTION_##lenient},
#include "policy/violations.def"
#undef V
};

const char* _mi_violation_word(mi_violation_t kind) { return mi_violation_rows[kind].word; }

int _mi_violation_errno(mi_violation_t kind) { return mi_violation_rows[kind].err; }

mi_violation_action_t _mi_violation_action(mi_violation_t kind) { return mi_violation_rows[kind].action; }

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

// Calls

enum { MI_REPORT_CALLS_MAX = 64,
       // A fault without its calls says little, so that these are listed whatever option backtrace says of other reports.
       MI_REPORT_FAULT_CALLS = 16,
       // A few lines: they are written together where there is room.
       MI_REPORT_BLOCK = 512 };

static size_t mi_report_depth(void) { return (size_t)_mi_option_get_clamp(mi_option_backtrace, 0, MI_REPORT_CALLS_MAX); }

// "    #0 0x… file+0x…", one line a call, the latest first.
mi_noinline void _mi_report_list(const uintptr_t* calls, size_t count, size_t least, bool thorough, mi_report_write_t* write) {
  const size_t depth = _mi_max(mi_report_depth(), least);
  mi_prim_module_t module;
  char block[MI_REPORT_BLOCK];
  size_t len = 0;
  for (size_t i = 0; i < count && i < depth; i++) {
    // A line is shorter than what is kept free for it.
    if (len + MI_PRIM_MODULE_PATH + 64 > sizeof(block)) {
      write(block, len);
      len = 0;
    }
    len += _mi_fmt(block + len, sizeof(block) - len, "    #%zu %p", i, (void*)calls[i]);
    if (_mi_prim_module_of(calls[i], thorough, &module)) {
      len += _mi_fmt(block + len, sizeof(block) - len, " %s+0x%zx", module.path, (size_t)module.offset);
    }
    len += _mi_fmt(block + len, sizeof(block) - len, "\n");
  }
  if (len > 0) {
    write(block, len);
  }
}

static mi_noinline void mi_report_calls(const void* frame, bool thorough, mi_report_write_t* write) {
  uintptr_t calls[MI_REPORT_CALLS_MAX];
  const size_t found = _mi_prim_backtrace(frame, calls, mi_report_depth());
  _mi_report_list(calls, _mi_prim_calls_plausible(calls, found), 0, thorough, write);
}

// Notes

void _mi_report_set_notes(mi_report_notes_t* notes) { mi_atomic_store_relaxed(&_mi_fixed.report_notes, (uintptr_t)notes); }

// The first address of a line; 0: there is none.
static uintptr_t mi_report_address(const char* line) {
  while (*line != 0 && !(line[0] == ' ' && line[1] == '0' && line[2] == 'x')) {
    line++;
  }
  uintptr_t address = 0;
  for (line += *line == 0 ? 0 : 3; (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f'); line++) {
    address = address * 16 + (uintptr_t)(*line - (*line <= '9' ? '0' : 'a' - 10));
  }
  return address;
}

static void mi_report_notes(const char* line, bool thorough, mi_report_write_t* write) {
  const uintptr_t notes = mi_atomic_load_relaxed(&_mi_fixed.report_notes);
  if (notes != 0) {
    ((mi_report_notes_t*)notes)(mi_report_address(line), thorough, write);
  }
}

// What follows

enum { MI_REPORT_LOCK_TRIES = 16 };

// Keeps the lines of two reports apart. Nobody waits longer than some milliseconds: the holder may have been interrupted
// for good, or be the caller itself.
static mi_lock_t mi_report_lock;

static bool mi_report_lock_try(void) {
  for (int i = 0; i < MI_REPORT_LOCK_TRIES; i++) {
    if (_mi_lock_acquire_bounded(&mi_report_lock)) {
      return true;
    }
  }
  return false;
}

static bool mi_report_ends(mi_violation_t kind) {
  const mi_violation_action_t action = mi_violation_rows[kind].action;
  const long option = mi_report_action(kind);
  return action == MI_ACTION_ABORT ||
      (action == MI_ACTION_OPTION && option != MI_ON_VIOLATION_REPORT && option != MI_ON_VIOLATION_IGNORE);
}

// What is known of one case of bad use.
typedef struct mi_report_case_s {
  const char* line;
  size_t len;
  // Where the calls are to be had: from the frame of the report, else from the fault, else with what was kept back.
  const void* frame;
  const mi_prim_fault_t* fault;
  const mi_report_held_t* held;
} mi_report_case_t;

static mi_noinline void mi_report_fault_calls(const mi_prim_fault_t* fault, bool thorough, mi_report_write_t* write) {
  uintptr_t calls[MI_REPORT_CALLS_MAX];
  const size_t depth = _mi_max(mi_report_depth(), MI_REPORT_FAULT_CALLS);
  _mi_report_list(calls, _mi_prim_fault_calls(fault, calls, depth), depth, thorough, write);
}

static void mi_report_rest(const mi_report_case_t* what, bool thorough, mi_report_write_t* write) {
  if (what->fault != NULL) {
    mi_report_fault_calls(what->fault, thorough, write);
  } else if (what->held != NULL) {
    const mi_report_held_t* const held = what->held;
    _mi_report_list(held->calls, _mi_prim_calls_plausible(held->calls, held->call_count), 0, thorough, write);
  } else {
    mi_report_calls(what->frame, thorough, write);
  }
  mi_report_notes(what->line, thorough, write);
}

// Reports of many processes in one file do not mix where each is one write. Under the report's lock.
static mi_far char mi_report_text[16 * MI_KIB];
static size_t mi_report_text_len;

static void mi_report_out(const char* text, size_t len) {
  if (!_mi_report_file_write(text, len)) {
    _mi_prim_write_stderr(text, len);
  }
}

static void mi_report_gather(const char* text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    if (mi_report_text_len == sizeof(mi_report_text)) {
      mi_report_out(mi_report_text, mi_report_text_len);
      mi_report_text_len = 0;
    }
    mi_report_text[mi_report_text_len++] = text[i];
  }
}

// To stderr, or to the file. What a person waits for is not held back by what takes longer.
static void mi_report_say(const mi_report_case_t* what, bool thorough, bool locked) {
  if (!locked || !_mi_report_file_is_open()) {
    mi_report_out(what->line, what->len);
    mi_report_rest(what, thorough, &mi_report_out);
    return;
  }
  mi_report_text_len = 0;
  mi_report_gather(what->line, what->len);
  mi_report_rest(what, thorough, &mi_report_gather);
  mi_report_out(mi_report_text, mi_report_text_len);
}

static void mi_report_tell_output(const mi_report_case_t* what, bool thorough) {
  _mi_log_write(what->line, what->len);
  mi_report_rest(what, thorough, &_mi_log_write);
}

// The process ends, and this has to be out before. The lock is given back only where the end is not for us: reports of other
// threads come behind this one, if there is time for them.
static void mi_report_say_first(const mi_report_case_t* what) {
  const bool locked = mi_report_lock_try();
  mi_report_say(what, true, locked);
  if (locked && what->fault != NULL) {
    _mi_lock_release(&mi_report_lock);
  }
}

// It has been said. Whatever the functions do, also if they do not return.
static void mi_report_tell_end(mi_violation_t kind, const mi_report_case_t* what, bool is_told) {
  if (!is_told) {
    _mi_log_call_error(_mi_violation_errno(kind));
  }
  if (_mi_log_has_output()) {
    mi_report_tell_output(what, true);
  }
}

static _Noreturn void mi_report_end(mi_violation_t kind, const mi_report_case_t* what, bool is_told) {
  mi_report_tell_end(kind, what, is_told);
  _mi_prim_abort();
}

static void mi_report_write(const mi_report_case_t* what) {
  // A function of the program may take its time, or never return.
  const bool has_output = _mi_log_has_output();
  const bool to_file = _mi_report_file_is_open();
  const bool locked = (!has_output || to_file) && mi_report_lock_try();
  if (to_file) {
    mi_report_say(what, false, locked);
  } else if (!has_output) {
    mi_report_tell_output(what, false);
  }
  if (locked) {
    _mi_lock_release(&mi_report_lock);
  }
  if (has_output) {
    mi_report_tell_output(what, false);
  }
}

static mi_thread_local bool mi_report_running;

bool _mi_report_is_running(void) { return mi_report_running; }

// The process goes on, unless the error function has chosen the end; the other way round it comes too late.
static void mi_report_go_on(mi_violation_t kind, const mi_report_case_t* what) {
  const bool never = mi_violation_rows[kind].action == MI_ACTION_NEVER;
  const bool outer = mi_report_running;
  mi_report_running = true;
  _mi_log_call_error(_mi_violation_errno(kind));
  if (mi_report_ends(kind)) {
    mi_report_say_first(what);
    mi_report_end(kind, what, true);
  }
  const bool quiet = never ? !_mi_option_is_enabled(mi_option_show_errors) && !_mi_option_is_enabled(mi_option_verbose)
                           : mi_report_action(kind) == MI_ON_VIOLATION_IGNORE;
  if (!quiet && _mi_log_count_error()) {
    if (never) {
      _mi_log_write(what->line, what->len);
    } else {
      mi_report_write(what);
    }
  }
  mi_report_running = outer;
}

void _mi_report_fault(mi_violation_t kind, const mi_prim_fault_t* fault, bool ends, const char* fmt, ...) {
  char line[MI_LOG_LINE_MAX];
  va_list args;
  va_start(args, fmt);
  const mi_report_case_t what = {.line = line, .len = mi_report_build(line, kind, fmt, args), .fault = fault};
  va_end(args);
  _mi_report_keep(line);
  const bool outer = mi_report_running;
  mi_report_running = true;
  if (ends) {
    mi_report_say_first(&what);
    mi_report_tell_end(kind, &what, false);
  } else {
    _mi_log_call_error(_mi_violation_errno(kind));
    if (mi_report_action(kind) != MI_ON_VIOLATION_IGNORE && _mi_log_count_error()) {
      mi_report_write(&what);
    }
  }
  mi_report_running = outer;
}

// Keeping back

static mi_thread_local mi_report_hold_t* mi_report_holder;

void _mi_report_hold(mi_report_hold_t* hold) {
  if (mi_report_holder == NULL) {
    mi_report_holder = hold;
  }
}

// What checks of blocks say, which run under locks. A bad pointer is no such thing: a signal handler may free one that has
// interrupted the holder of a lock, and is to end there.
static bool mi_report_may_wait(mi_violation_t kind) {
  return mi_report_holder != NULL && (_mi_log_has_error() || _mi_log_has_output()) &&
      (kind == MI_VIOLATION_free_list_corruption || kind == MI_VIOLATION_overflow || kind == MI_VIOLATION_underflow ||
       kind == MI_VIOLATION_write_after_free);
}

static void mi_report_keep_back(mi_violation_t kind, const mi_report_case_t* what) {
  mi_report_hold_t* const hold = mi_report_holder;
  if (hold->count == MI_REPORT_HELD_MAX) {
    hold->more[kind]++;
    return;
  }
  mi_report_held_t* const held = &hold->reports[hold->count++];
  held->kind = kind;
  held->ends = mi_report_ends(kind);
  held->len = what->len;
  memcpy(held->line, what->line, what->len + 1);
  held->call_count = _mi_prim_backtrace(what->frame, held->calls, _mi_min(mi_report_depth(), MI_REPORT_HELD_CALLS));
  // Of several the first ends the process, and the others are not heard of.
  if (held->ends && hold->count == 1) {
    mi_report_say_first(what);
  }
}

static mi_noinline void mi_report_tell(const mi_report_hold_t* hold) {
  for (uint32_t i = 0; i < hold->count; i++) {
    const mi_report_held_t* const held = &hold->reports[i];
    const mi_report_case_t what = {.line = held->line, .len = held->len, .held = held};
    if (held->ends) {
      mi_report_end(held->kind, &what, false);
    }
    mi_report_go_on(held->kind, &what);
  }
  for (int kind = 0; kind < MI_VIOLATION_COUNT; kind++) {
    for (uint32_t i = 0; i < hold->more[kind]; i++) {
      _mi_log_call_error(_mi_violation_errno((mi_violation_t)kind));
    }
  }
}

static mi_noinline mi_cold void mi_report_release_and_tell(mi_report_hold_t* hold, mi_lock_t* lock) {
  const mi_report_hold_t told = *hold;
  hold->count = 0;
  memset(hold->more, 0, sizeof(hold->more));
  _mi_lock_release(lock);
  mi_report_tell(&told);
}

void _mi_report_release(mi_report_hold_t* hold, mi_lock_t* lock) {
  if (mi_report_holder == hold) {
    mi_report_holder = NULL;
    if (mi_unlikely(hold->count > 0)) {
      mi_report_release_and_tell(hold, lock);
      return;
    }
  }
  _mi_lock_release(lock);
}

void _mi_report(mi_violation_t kind, const char* fmt, ...) {
  char line[MI_LOG_LINE_MAX];
  const void* const frame = __builtin_frame_address(0);
  va_list args;
  va_start(args, fmt);
  const mi_report_case_t what = {.line = line, .len = mi_report_build(line, kind, fmt, args), .frame = frame};
  va_end(args);
  if (mi_violation_rows[kind].action != MI_ACTION_NEVER) {
    _mi_report_keep(line);
  }
  if (mi_report_may_wait(kind)) {
    mi_report_keep_back(kind, &what);
  } else if (mi_report_ends(kind)) {
    mi_report_say_first(&what);
    mi_report_end(kind, &what, false);
  } else {
    mi_report_go_on(kind, &what);
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
