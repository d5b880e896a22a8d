// Owns: the text of the list of what is active.
// May include: policy, base, sys.
// Called by: through hardening.h.
// Invariants: a row that is added to policy/features.def or policy/entropy.def appears by itself.
#include "src/sys/hardening.h"

#include "src/base/fmt.h"
#include "src/sys/guard.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/random.h"
#include "src/sys/sealed.h"

enum { MI_HARDENING_NAME_MAX = 64 };

typedef struct mi_hardening_row_s {
  const char* constant;
  const char* name;
  bool is_on;
} mi_hardening_row_t;

static const mi_hardening_row_t mi_hardening_rows[] = {
#define F(constant, name, unit, test) {#constant, name, constant != 0},
#include "policy/features.def"
#undef F
};

typedef struct mi_hardening_entropy_s {
  const char* constant;
  unsigned bits;
} mi_hardening_entropy_t;

static const mi_hardening_entropy_t mi_hardening_entropy[] = {
#define E(constant, bits) {#constant, bits},
#include "policy/entropy.def"
#undef E
};

static bool mi_hardening_same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

// The bits of a mitigation that keeps a secret, else 0.
static unsigned mi_hardening_bits(const char* constant) {
  for (size_t i = 0; i < sizeof(mi_hardening_entropy) / sizeof(mi_hardening_entropy[0]); i++) {
    if (mi_hardening_same(mi_hardening_entropy[i].constant, constant)) {
      return mi_hardening_entropy[i].bits;
    }
  }
  return 0;
}

// "Live bits" as "live-bits": one word, so that a line is split at its colons.
static void mi_hardening_word(char word[MI_HARDENING_NAME_MAX], const char* name) {
  size_t n = 0;
  for (; n < MI_HARDENING_NAME_MAX - 1 && name[n] != 0; n++) {
    const char c = name[n];
    word[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == ' ' || c == ':' || c == ',' ? '-'
                                                                                              : c;
  }
  word[n] = 0;
}

static void mi_hardening_line(const char* name, const char* value) {
  _mi_log_message("hardening: %s: %s\n", name, value);
}

// How guard pages are made: by their own mappings, or within one.
static const char* mi_hardening_guards(void) {
  return !_mi_guard_is_enabled() ? "none" : _mi_guard_are_mappings() ? "mappings"
                                                                     : "light";
}

static const char* mi_hardening_configuration(void) {
  static const char* const words[] = {
      [MI_SEALED_NOT_YET] = "open (the process is starting)",
      [MI_SEALED] = "sealed",
      [MI_SEALED_PAGES] = "open (the system's pages are too large)",
      [MI_SEALED_REFUSED] = "open (the system refused)",
  };
  return words[_mi_sealed_state()];
}

static const char* mi_hardening_mseal(void) {
  static const char* const words[] = {
      [MI_MSEAL_NOT_YET] = "off (the process is starting)",
      [MI_MSEAL_ON] = "on",
      [MI_MSEAL_ALWAYS] = "on, also later",
      [MI_MSEAL_UNAVAILABLE] = "off (the system has none)",
      [MI_MSEAL_UNLOADABLE] = "off (this copy can be unloaded)",
      [MI_MSEAL_DESTROY] = "off (destroy_on_exit)",
      [MI_MSEAL_OFF] = "off (option mseal)",
  };
  return words[_mi_sealed_mseal_state()];
}

static const char* mi_hardening_action(void) {
  const long action = _mi_option_get(mi_option_on_violation);
  return action == MI_ON_VIOLATION_REPORT ? "report" : action == MI_ON_VIOLATION_IGNORE ? "ignore"
                                                                                        : "abort";
}

static const char* mi_hardening_random(void) {
  return _mi_random_generation() == 0 ? "unused" : _mi_random_is_weak() ? "weak"
                                                                        : "system";
}

void _mi_hardening_print(void) {
  char name[MI_HARDENING_NAME_MAX];
  char value[MI_HARDENING_NAME_MAX];
  for (size_t i = 0; i < sizeof(mi_hardening_rows) / sizeof(mi_hardening_rows[0]); i++) {
    const mi_hardening_row_t* const row = &mi_hardening_rows[i];
    const unsigned bits = row->is_on ? mi_hardening_bits(row->constant) : 0;
    mi_hardening_word(name, row->name);
    if (bits > 0) {
      _mi_fmt(value, sizeof(value), "on, %u bits", bits);
      mi_hardening_line(name, value);
    } else {
      mi_hardening_line(name, row->is_on ? "on" : "off");
    }
  }
  mi_hardening_line("guards", mi_hardening_guards());
  mi_hardening_line("configuration", mi_hardening_configuration());
  mi_hardening_line("mseal", mi_hardening_mseal());
  mi_hardening_line("random", mi_hardening_random());
  mi_hardening_line("on-violation", mi_hardening_action());
  _mi_fmt(value, sizeof(value), "%ld", _mi_option_get(mi_option_backtrace));
  mi_hardening_line("backtrace", value);
}
