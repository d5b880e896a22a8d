// Owns: the setting of options and what their texts mean.
// May include: policy, base, prim, sys/log.h.
// Called by: through options.h.
// Invariants: every table here is made from policy/options.def; what the program has set, the environment does not change.
#include "src/sys/options.h"

#include <limits.h>
#include <string.h>

#include "src/base/geometry.h"
#include "src/prim/prim.h"
#include "src/sys/log.h"

typedef struct mi_option_row_s {
  const char* name;
  const char* old_names;  // separated by one space, "" when there are none
  mi_option_kind_t kind;
  mi_option_effect_t effect;
} mi_option_row_t;

// A number without a row has a NULL name.
static const mi_option_row_t mi_option_rows[_mi_option_last] = {
#define OPTION(number, name, default, kind, effect, old_names, documentation) [number] = {#name, old_names, MI_OPTION_##kind, MI_OPTION_##effect},
#include "policy/options.def"
#undef OPTION
};

#define OPTION(number, name, default, kind, effect, old_names, documentation) \
  _Static_assert((number) == (int)mi_option_##name, "options.def and mi_option_t number " #name " differently");
#include "policy/options.def"
#undef OPTION

// Who set a value last; a lower one gives way to a higher one.
enum { MI_OPTION_BY_NOBODY,
       MI_OPTION_BY_DEFAULT,
       MI_OPTION_BY_ENVIRONMENT,
       MI_OPTION_BY_PROGRAM };

// Of a name and its zero; a longer name of the environment is none of ours.
enum { MI_OPTION_NAME_SIZE = 48 };

static bool mi_option_exists(mi_option_t option) {
  return (unsigned)option < (unsigned)_mi_option_last && mi_option_rows[option].name != NULL;
}

// Values

static unsigned char mi_option_setter(mi_option_t option) {
  return mi_atomic_load_relaxed(&_mi_settings.option_setters[option]);
}

// Two threads that set one option at once leave the value of either.
static void mi_option_store(mi_option_t option, long value, unsigned char setter) {
  if (!mi_option_exists(option) || mi_option_setter(option) > setter ||
      !_mi_sealed_open(mi_option_rows[option].name)) {
    return;
  }
  // Once more, as another thread may have set it meanwhile.
  if (mi_option_setter(option) <= setter) {
    mi_atomic_store_relaxed(&_mi_settings.option_values[option], value);
    mi_atomic_store_relaxed(&_mi_settings.option_setters[option], setter);
  }
  _mi_sealed_close();
}

void _mi_option_set(mi_option_t option, long value) { mi_option_store(option, value, MI_OPTION_BY_PROGRAM); }

void _mi_option_set_default(mi_option_t option, long value) { mi_option_store(option, value, MI_OPTION_BY_DEFAULT); }

bool _mi_option_is_set(mi_option_t option) {
  return mi_option_exists(option) && mi_option_setter(option) >= MI_OPTION_BY_ENVIRONMENT;
}

size_t _mi_option_get_size(mi_option_t option) {
  const long value = _mi_option_get(option);
  if (value <= 0) {
    return 0;
  }
  if (!mi_option_exists(option) || mi_option_rows[option].kind != MI_OPTION_KIB) {
    return (size_t)value;
  }
  const size_t kib_max = MI_ALLOC_SIZE_MAX / MI_KIB;
  return ((size_t)value < kib_max ? (size_t)value : kib_max) * MI_KIB;
}

long _mi_option_get_clamp(mi_option_t option, long min, long max) {
  const long value = _mi_option_get(option);
  return value < min ? min : value > max ? max
                                         : value;
}

const char* _mi_option_name(mi_option_t option) {
  return mi_option_exists(option) ? mi_option_rows[option].name : NULL;
}

void _mi_options_print(mi_output_fun* out, void* arg) {
  static const char* const setters[] = {"default", "the program's default", "environment", "program"};
  for (size_t i = 0; i < _mi_option_last; i++) {
    const mi_option_row_t* const row = &mi_option_rows[i];
    if (row->name != NULL) {
      _mi_log_print_to(out, arg, "option '%s': %ld%s (%s%s)\n", row->name, _mi_option_get((mi_option_t)i),
                       row->kind == MI_OPTION_KIB ? " KiB" : "", setters[mi_option_setter((mi_option_t)i)],
                       row->effect == MI_OPTION_WORKS ? "" : ", no effect");
    }
  }
}

// Texts

// Letters of ASCII only, whatever the locale.
static char mi_upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c; }

static bool mi_same_word(const char* a, const char* b) {
  while (*a != 0 && mi_upper(*a) == mi_upper(*b)) {
    a++;
    b++;
  }
  return *a == 0 && *b == 0;
}

// Copies the word that begins at `names`, cut at the size, and returns where the next one begins; NULL behind the last.
static mi_cold const char* mi_next_name(const char* names, char* name, size_t size) {
  if (*names == 0) {
    return NULL;
  }
  size_t n = 0;
  for (; *names != 0 && *names != ' '; names++) {
    if (n < size - 1) {
      name[n++] = *names;
    }
  }
  name[n] = 0;
  return names + (*names == ' ');
}

static bool mi_is_old_name(const char* name, const char* old_names) {
  char old[MI_OPTION_NAME_SIZE];
  while ((old_names = mi_next_name(old_names, old, sizeof(old))) != NULL) {
    if (mi_same_word(name, old)) {
      return true;
    }
  }
  return false;
}

bool _mi_option_find(const char* name, mi_option_t* option) {
  for (size_t i = 0; i < _mi_option_last; i++) {
    if (mi_option_rows[i].name != NULL &&
        (mi_same_word(name, mi_option_rows[i].name) || mi_is_old_name(name, mi_option_rows[i].old_names))) {
      *option = (mi_option_t)i;
      return true;
    }
  }
  return false;
}

typedef struct mi_word_s {
  const char* word;
  long value;
} mi_word_t;

static bool mi_parse_word(const char* text, const mi_word_t* words, size_t count, long* value) {
  for (size_t i = 0; i < count; i++) {
    if (mi_same_word(text, words[i].word)) {
      *value = words[i].value;
      return true;
    }
  }
  return false;
}

// A sign and digits; *end is behind them. A number too large for 64 bits is the largest. False: no digit.
static bool mi_parse_digits(const char* text, const char** end, bool* negative, uint64_t* magnitude) {
  *negative = *text == '-';
  text += *text == '-' || *text == '+';
  if (*text < '0' || *text > '9') {
    return false;
  }
  *magnitude = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    if (__builtin_mul_overflow(*magnitude, 10U, magnitude) ||
        __builtin_add_overflow(*magnitude, (unsigned)(*text - '0'), magnitude)) {
      *magnitude = UINT64_MAX;
    }
  }
  *end = text;
  return true;
}

static bool mi_parse_long(const char* text, long* value) {
  bool negative;
  uint64_t magnitude;
  if (!mi_parse_digits(text, &text, &negative, &magnitude) || *text != 0 || magnitude > (uint64_t)LONG_MAX) {
    return false;
  }
  *value = negative ? -(long)magnitude : (long)magnitude;
  return true;
}

static bool mi_parse_kib(const char* text, long* value) {
  static const char units[] = "KMGT";
  bool negative;
  uint64_t bytes;
  if (!mi_parse_digits(text, &text, &negative, &bytes)) {
    return false;
  }
  for (size_t i = 0; i < sizeof(units) - 1; i++) {
    if (mi_upper(*text) == units[i]) {
      text++;
      text += mi_same_word(text, "iB") ? 2 : mi_same_word(text, "B") ? 1
                                                                     : 0;
      if (__builtin_mul_overflow(bytes, UINT64_C(1) << (10 * (i + 1)), &bytes)) {
        bytes = UINT64_MAX;
      }
      break;
    }
  }
  if (*text != 0) {
    return false;
  }
  const uint64_t max = MI_ALLOC_SIZE_MAX;
  const uint64_t magnitude = bytes < max ? bytes : max;
  const uint64_t limited = negative ? 0 : magnitude;
  *value = (long)(limited / MI_KIB + (limited % MI_KIB != 0));
  return true;
}

bool _mi_option_parse(const char* text, mi_option_kind_t kind, long* value) {
  static const mi_word_t switches[] = {{"", 1}, {"true", 1}, {"yes", 1}, {"on", 1}, {"false", 0}, {"no", 0}, {"off", 0}};
  static const mi_word_t actions[] = {
      {"abort", MI_ON_VIOLATION_ABORT},
      {"0", MI_ON_VIOLATION_ABORT},
      {"report", MI_ON_VIOLATION_REPORT},
      {"1", MI_ON_VIOLATION_REPORT},
      {"ignore", MI_ON_VIOLATION_IGNORE},
      {"2", MI_ON_VIOLATION_IGNORE},
  };
  if (kind == MI_OPTION_PATH) {
    *value = text[0] != 0;
    return true;
  }
  if (kind == MI_OPTION_ACTION) {
    return mi_parse_word(text, actions, sizeof(actions) / sizeof(actions[0]), value);
  }
  return mi_parse_word(text, switches, sizeof(switches) / sizeof(switches[0]), value) ||
      (kind == MI_OPTION_KIB ? mi_parse_kib(text, value) : mi_parse_long(text, value));
}

// The environment

enum { MI_ENV_NAME_SIZE = sizeof("MIMALLOC_") + MI_OPTION_NAME_SIZE,
       MI_ENV_TEXT_SIZE = 64 };

static const char mi_env_prefix[] = "MIMALLOC_";

// What the environment says of an option.
typedef struct mi_env_entry_s {
  char name[MI_ENV_NAME_SIZE];  // of the variable
  char text[MI_ENV_TEXT_SIZE];
  bool is_old;  // the name is an old one
  bool is_cut;  // the text did not fit
} mi_env_entry_t;

static mi_cold bool mi_env_look_up(const char* option_name, bool is_old, mi_env_entry_t* entry) {
  size_t n = sizeof(mi_env_prefix) - 1;
  memcpy(entry->name, mi_env_prefix, n);
  for (const char* c = option_name; *c != 0 && n < MI_ENV_NAME_SIZE - 1; c++) {
    entry->name[n++] = mi_upper(*c);
  }
  entry->name[n] = 0;
  const int found = _mi_prim_getenv(entry->name, entry->text, MI_ENV_TEXT_SIZE);
  entry->is_old = is_old;
  entry->is_cut = found == 2;
  return found > 0;
}

// Under the option's name, or else the first of its old ones that is set.
static mi_cold bool mi_env_read(const mi_option_row_t* row, mi_env_entry_t* entry) {
  if (mi_env_look_up(row->name, false, entry)) {
    return true;
  }
  char old[MI_OPTION_NAME_SIZE];
  const char* names = row->old_names;
  while ((names = mi_next_name(names, old, sizeof(old))) != NULL) {
    if (mi_env_look_up(old, true, entry)) {
      return true;
    }
  }
  return false;
}

static bool mi_env_parse(const mi_env_entry_t* entry, mi_option_kind_t kind, long* value) {
  return (!entry->is_cut || kind == MI_OPTION_PATH) && _mi_option_parse(entry->text, kind, value);
}

static mi_cold void mi_env_set_option(mi_option_t option) {
  mi_env_entry_t entry;
  long value;
  if (mi_env_read(&mi_option_rows[option], &entry) && mi_env_parse(&entry, mi_option_rows[option].kind, &value)) {
    mi_option_store(option, value, MI_OPTION_BY_ENVIRONMENT);
  }
}

// Control characters of foreign text would reach a terminal.
static void mi_env_clean(char* text) {
  for (; *text != 0; text++) {
    *text = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
  }
}

// At most one warning for a variable: of what is worst.
static mi_cold void mi_env_warn_of_option(mi_option_t option) {
  mi_env_entry_t entry;
  long value;
  const mi_option_row_t* const row = &mi_option_rows[option];
  if (!mi_env_read(row, &entry)) {
    return;
  }
  if (!mi_env_parse(&entry, row->kind, &value)) {
    mi_env_clean(entry.text);
    _mi_log_config_warning("environment variable %s has a value that is not understood: %s%s\n", entry.name, entry.text,
                           entry.is_cut ? "..." : "");
  } else if (entry.is_old) {
    _mi_log_config_warning("environment variable %s is an old name of the option %s%s\n", entry.name, row->name,
                           row->effect == MI_OPTION_WORKS ? "" : ", which has no effect");
  }
}

// Names that are no options: those of the heap profilers, whose values are texts; and what says something to others than us,
// who share the prefix: the redirection of Windows.
static bool mi_env_is_known(const char* option_name) {
  static const char* const others[] = {"prof_dump_at_exit", "prof_dump_format", "prof_sample_interval", "profile", "disable_redirect"};
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
    if (mi_same_word(option_name, others[i])) {
      return true;
    }
  }
  mi_option_t option;
  return _mi_option_find(option_name, &option);
}

static mi_cold void mi_env_warn_of_unknown(void) {
  const size_t prefix = sizeof(mi_env_prefix) - 1;
  char name[MI_ENV_NAME_SIZE];
  for (size_t i = 0; _mi_prim_env_name(i, name, sizeof(name)) == 1; i++) {
    size_t n = 0;
    while (n < prefix && mi_upper(name[n]) == mi_env_prefix[n]) {
      n++;
    }
    if (n == prefix && !mi_env_is_known(name + prefix)) {
      mi_env_clean(name);
      _mi_log_config_warning("environment variable %s names no option\n", name);
    }
  }
}

mi_cold void _mi_options_load(void) {
  static _Atomic(bool) mi_options_loaded;
  char text[MI_ENV_TEXT_SIZE];
  // Relaxed: who comes while another reads goes on with what there is, as a caller before the environment does.
  if (mi_atomic_load_relaxed(&mi_options_loaded) || _mi_prim_getenv("MIMALLOC_VERBOSE", text, sizeof(text)) < 0 ||
      mi_atomic_exchange_acq_rel(&mi_options_loaded, true)) {
    return;
  }
  _mi_options_read();
}

mi_cold void _mi_options_read(void) {
  for (size_t i = 0; i < _mi_option_last; i++) {
    if (mi_option_rows[i].name != NULL) {
      mi_env_set_option((mi_option_t)i);
    }
  }
  // Only now is it known how many warnings are wanted.
  for (size_t i = 0; i < _mi_option_last; i++) {
    if (mi_option_rows[i].name != NULL) {
      mi_env_warn_of_option((mi_option_t)i);
    }
  }
  mi_env_warn_of_unknown();
}
