// Owns: the setting of options and what their texts mean.
// May include: policy, base, prim, sys/log.h.
// Called by: through options.h.
// Invariants: every table here is made from policy/options.def; what the program has set, the environment does not change.
#include "src/sys/options.h"

#include <limits.h>

#include "src/base/geometry.h"
#include "src/prim/prim.h"
#include "src/sys/log.h"

typedef struct mi_option_row_s {
  const char* name;
  const char* old_name;  // "" when there is none
  mi_option_kind_t kind;
} mi_option_row_t;

// A number without a row has a NULL name.
static const mi_option_row_t mi_option_rows[_mi_option_last] = {
#define OPTION(number, name, default, kind, old_name, documentation) [number] = {#name, old_name, MI_OPTION_##kind},
#include "policy/options.def"
#undef OPTION
};

#define OPTION(number, name, default, kind, old_name, documentation) \
  _Static_assert((number) == (int)mi_option_##name, "options.def and mi_option_t number " #name " differently");
#include "policy/options.def"
#undef OPTION

// Who set a value last; a lower one gives way to a higher one.
enum { MI_OPTION_BY_NOBODY,
       MI_OPTION_BY_DEFAULT,
       MI_OPTION_BY_ENVIRONMENT,
       MI_OPTION_BY_PROGRAM };

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
  for (size_t i = 0; i < _mi_option_last; i++) {
    if (mi_option_rows[i].name != NULL) {
      _mi_log_print_to(out, arg, "option '%s': %ld%s\n", mi_option_rows[i].name, _mi_option_get((mi_option_t)i),
                       mi_option_rows[i].kind == MI_OPTION_KIB ? " KiB" : "");
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

bool _mi_option_find(const char* name, mi_option_t* option) {
  for (size_t i = 0; i < _mi_option_last; i++) {
    if (mi_option_rows[i].name != NULL && mi_same_word(name, mi_option_rows[i].name)) {
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
  if (kind == MI_OPTION_ACTION) {
    return mi_parse_word(text, actions, sizeof(actions) / sizeof(actions[0]), value);
  }
  return mi_parse_word(text, switches, sizeof(switches) / sizeof(switches[0]), value) ||
      (kind == MI_OPTION_KIB ? mi_parse_kib(text, value) : mi_parse_long(text, value));
}

// The environment

enum { MI_ENV_NAME_SIZE = 64,
       MI_ENV_TEXT_SIZE = 64 };

static const char mi_env_prefix[] = "MIMALLOC_";

static void mi_env_name(char name[MI_ENV_NAME_SIZE], const char* option_name) {
  size_t n = 0;
  for (const char* c = mi_env_prefix; *c != 0; c++) {
    name[n++] = *c;
  }
  for (const char* c = option_name; *c != 0 && n < MI_ENV_NAME_SIZE - 1; c++) {
    name[n++] = mi_upper(*c);
  }
  name[n] = 0;
}

// What the environment says of an option, under its name or else its old one. `name` is what was looked up last.
static bool mi_env_read(const mi_option_row_t* row, char name[MI_ENV_NAME_SIZE], char text[MI_ENV_TEXT_SIZE],
                        bool* is_old) {
  *is_old = false;
  mi_env_name(name, row->name);
  if (_mi_prim_getenv(name, text, MI_ENV_TEXT_SIZE) == 1) {
    return true;
  }
  if (row->old_name[0] == 0) {
    return false;
  }
  *is_old = true;
  mi_env_name(name, row->old_name);
  return _mi_prim_getenv(name, text, MI_ENV_TEXT_SIZE) == 1;
}

static void mi_env_set_option(mi_option_t option) {
  char name[MI_ENV_NAME_SIZE];
  char text[MI_ENV_TEXT_SIZE];
  bool is_old;
  long value;
  if (mi_env_read(&mi_option_rows[option], name, text, &is_old) &&
      _mi_option_parse(text, mi_option_rows[option].kind, &value)) {
    mi_option_store(option, value, MI_OPTION_BY_ENVIRONMENT);
  }
}

// Control characters of foreign text would reach a terminal.
static void mi_env_clean(char* text) {
  for (; *text != 0; text++) {
    *text = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
  }
}

static void mi_env_warn_of_option(mi_option_t option) {
  char name[MI_ENV_NAME_SIZE];
  char text[MI_ENV_TEXT_SIZE];
  bool is_old;
  long value;
  const mi_option_row_t* const row = &mi_option_rows[option];
  if (!mi_env_read(row, name, text, &is_old)) {
    return;
  }
  if (is_old) {
    _mi_log_config_warning("environment variable %s is an old name of the option %s\n", name, row->name);
  }
  if (!_mi_option_parse(text, row->kind, &value)) {
    mi_env_clean(text);
    _mi_log_config_warning("environment variable %s has a value that is not understood: %s\n", name, text);
  }
}

static bool mi_env_is_known(const char* option_name) {
  mi_option_t option;
  if (_mi_option_find(option_name, &option)) {
    return true;
  }
  for (size_t i = 0; i < _mi_option_last; i++) {
    if (mi_option_rows[i].name != NULL && mi_option_rows[i].old_name[0] != 0 &&
        mi_same_word(option_name, mi_option_rows[i].old_name)) {
      return true;
    }
  }
  return false;
}

static void mi_env_warn_of_unknown(void) {
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

void _mi_options_load(void) {
  static _Atomic(bool) mi_options_loaded;
  char text[MI_ENV_TEXT_SIZE];
  if (_mi_prim_getenv("MIMALLOC_VERBOSE", text, sizeof(text)) < 0 ||
      mi_atomic_exchange_acq_rel(&mi_options_loaded, true)) {
    return;
  }
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
