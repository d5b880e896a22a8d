// Owns: the options: what they mean, and how the environment and the program set them. Their values stand in sealed.h.
// May include: policy, base, prim, sys/sealed.h; the public header for mi_option_t and mi_output_fun.
// Called by: everyone above base.
// Invariants: a value is a plain atomic that may be read at any time by any thread: its default is there before any code
// runs. policy/options.def is the only list of options.
#pragma once

#include "mimalloc.h"
#include "src/base/atomic.h"
#include "src/sys/sealed.h"

// What an option's text may be. All kinds but ACTION and PATH also take words, in any case: an empty text, true, yes and on mean 1;
// false, no and off mean 0.
typedef enum mi_option_kind_e {
  MI_OPTION_BOOL,    // a whole number; 0 is off
  MI_OPTION_LONG,    // a whole number
  MI_OPTION_KIB,     // bytes, or a number with K, M, G or T, each also with B or iB; held in KiB, rounded up
  MI_OPTION_ACTION,  // abort, report, ignore or their numbers 0, 1, 2
  MI_OPTION_PATH,    // any text; whoever needs it reads it from the environment. The value is whether there is one
} mi_option_kind_t;

// What an option does.
typedef enum mi_option_effect_e {
  MI_OPTION_WORKS,
  MI_OPTION_NONE,  // nothing: it is accepted for programs and environments that set it
} mi_option_effect_t;

// What on_violation may hold. Any other value acts as abort.
enum { MI_ON_VIOLATION_ABORT = 0,
       MI_ON_VIOLATION_REPORT = 1,
       MI_ON_VIOLATION_IGNORE = 2 };

// The value in the option's unit; 0 for a number that is no option.
mi_inline long _mi_option_get(mi_option_t option) {
  // Relaxed: an option orders nothing else.
  return (unsigned)option < (unsigned)_mi_option_last ? mi_atomic_load_relaxed(&_mi_settings.option_values[option]) : 0;
}

mi_inline bool _mi_option_is_enabled(mi_option_t option) { return _mi_option_get(option) != 0; }

// The value in bytes where the unit is KiB, as it is otherwise; a negative one is 0, one too large is the largest size.
size_t _mi_option_get_size(mi_option_t option);

// The value, or the nearer of the bounds when it lies outside of them.
long _mi_option_get_clamp(mi_option_t option, long min, long max);

// Sets the value, which the environment then no longer changes. Ignored for a number that is no option, and, with a line,
// where the configuration cannot be opened.
void _mi_option_set(mi_option_t option, long value);

// Sets the value unless the environment or the program has; the environment may still override it.
void _mi_option_set_default(mi_option_t option, long value);

// Whether the environment or _mi_option_set has set the value.
bool _mi_option_is_set(mi_option_t option);

// Reads the environment, once. Called at process start and again by the constructor and by whoever asks for an option, as the
// environment may not be there the first time; once it was read further calls do nothing. Warns of unknown, old and
// ineffective names and malformed values. In a process that runs with its file's rights (AT_SECURE) the environment is not
// looked at.
void _mi_options_load(void);

// Reads it now, as that does the first time.
void _mi_options_read(void);

// One line an option, "option 'name': value (who set it)", in the order of their numbers. NULL: to the registered output.
void _mi_options_print(mi_output_fun* out, void* arg);

// The option of that name or old name, without prefix and in any case; false when there is none.
bool _mi_option_find(const char* name, mi_option_t* option);

// The name of an option as in the documentation, or NULL.
const char* _mi_option_name(mi_option_t option);

// Parses the text of a value of a kind. False: malformed, *value is untouched.
bool _mi_option_parse(const char* text, mi_option_kind_t kind, long* value);
