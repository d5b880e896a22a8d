// Owns: what happens on bad use of memory: one line for people and scrapers, and the action that follows.
// May include: policy, base, prim, sys.
// Called by: heap, alloc, api: whoever holds a verdict of a check.
// Invariants: async-signal-safe and bounded: no lock is waited for beyond some milliseconds and nothing is allocated, so a report
// comes out even from a signal handler that interrupted a holder of our locks; errno is untouched. policy/violations.def is
// the only list of kinds.
#pragma once

#include "src/prim/prim.h"

// MI_VIOLATION_double_free and so on.
typedef enum mi_violation_e {
#define V(symbol, word, err, lenient, hardened, meaning) MI_VIOLATION_##symbol,
#include "policy/violations.def"
#undef V
  MI_VIOLATION_COUNT
} mi_violation_t;

// What a kind's row says may follow its report.
typedef enum mi_violation_action_e {
  MI_ACTION_OPTION,  // what option on_violation says
  MI_ACTION_ABORT,   // the end, whatever the option says
  MI_ACTION_NEVER,   // the call fails as documented; nothing is bad use about it
} mi_violation_action_t;

// The line of the violation that ended the process, or the latest one that did not. Zero terminated; found in core dumps.
extern char mi_violation_message[512];

// Writes text, zero terminated, of `len` bytes.
typedef void mi_report_write_t(const char* text, size_t len);

// What is known of an address besides, to be written below a report that names it first. `thorough`: as for
// _mi_prim_module_of. Set once, at the start of the process.
typedef void mi_report_notes_t(uintptr_t address, bool thorough, mi_report_write_t* write);
void _mi_report_set_notes(mi_report_notes_t* notes);

// Reports "<profile>: <kind>: <text>" on one line, with as many lines of calls below it as option backtrace says; the
// format is that of policy/messages.md. What follows is what the kind's row says, mostly option on_violation:
//   abort: the line is kept in mi_violation_message and written to stderr, or to the file of option guarded_log, with its
//     calls and notes, always and before any function of the program runs; then the registered error function gets the kind's errno value, the registered output, if there is
//     one, the same lines, and the process ends with SIGABRT. That it ends is decided before those functions run.
//   report: the line is kept, the error function is called, the lines are written to the registered output and the file (else
//     stderr), within max_errors; returns, and the caller does without the offending operation.
//   ignore: as report, but nothing is written.
// The text has no newline; control characters in it are replaced. It is cut where the line exceeds 511 bytes.
mi_cold void _mi_report(mi_violation_t kind, const char* fmt, ...) mi_printf_like(2, 3);

// Reports a fault that is bad use, from the handler of its signal: the lines are as above, with the calls of the fault. What
// follows is not for this function: with `ends` the process is about to end, and the order is that of abort, without the
// end; else it goes on, and the order is that of report, or ignore.
mi_cold void _mi_report_fault(mi_violation_t kind, const mi_prim_fault_t* fault, bool ends, const char* fmt, ...) mi_printf_like(4, 5);

// Writes "    #0 0x… file+0x…", one line a call, so many as option backtrace says, but at least `least` if there are any.
mi_cold void _mi_report_list(const uintptr_t* calls, size_t count, size_t least, bool thorough, mi_report_write_t* write);

// No memory for a request of `size` bytes. The error function gets ENOMEM, or EOVERFLOW when no allocator could serve the
// size; a line is written with option show_errors or verbose. Returns always; errno is the caller's to set.
mi_cold void _mi_report_oom(size_t size);

// Whether the calling thread is in a report, and so in a function of the program that it calls: what was reported may be in
// the middle of something, which is not to be touched by what that function allocates and frees. Stays true if the function
// jumps out.
bool _mi_report_is_running(void);

// The stable word of a kind, as in the line.
const char* _mi_violation_word(mi_violation_t kind);

// The errno value of a kind.
int _mi_violation_errno(mi_violation_t kind);

// What may follow a kind in this profile.
mi_violation_action_t _mi_violation_action(mi_violation_t kind);

// Keeps a line in mi_violation_message; skipped while another thread, or interrupted code, is at it.
void _mi_report_keep(const char* line);
