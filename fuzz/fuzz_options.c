// Owns: the target that has texts of options and environments read, against a second reading of the documentation.
// May include: fuzz/lib, src/sys, src/prim.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: no option is set; the environment of the process is put back.
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fuzz/lib/fuzz.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"

enum { TEXT_MAX = 120,
       VARIABLES = 12 };

static bool mi_is_one_of(const char* text, const char* const* words) {
  for (; *words != NULL; words++) {
    if (strcasecmp(text, *words) == 0) {
      return true;
    }
  }
  return false;
}

// Digits as a number that stays at the largest.
static const char* mi_digits(const char* text, unsigned __int128* number) {
  *number = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    if (*number <= (unsigned __int128)UINT64_MAX) {
      *number = *number * 10 + (unsigned)(*text - '0');
    }
  }
  return text;
}

// What a text means: a second reading of the kinds in src/sys/options.h.
static bool mi_meaning(const char* text, mi_option_kind_t kind, long* value) {
  static const char* const yes[] = {"", "1", "true", "yes", "on", NULL};
  static const char* const no[] = {"0", "false", "no", "off", NULL};
  static const char* const actions[] = {"abort", "report", "ignore", NULL};
  if (kind == MI_OPTION_ACTION) {
    for (long i = 0; actions[i] != NULL; i++) {
      if (strcasecmp(text, actions[i]) == 0 || (text[0] == (char)('0' + i) && text[1] == 0)) {
        *value = i;
        return true;
      }
    }
    return false;
  }
  if (mi_is_one_of(text, yes) && (kind != MI_OPTION_KIB || strcmp(text, "1") != 0)) {
    *value = 1;
    return true;
  }
  if (mi_is_one_of(text, no)) {
    *value = 0;
    return true;
  }
  const bool negative = *text == '-';
  text += *text == '-' || *text == '+';
  if (*text < '0' || *text > '9') {
    return false;
  }
  unsigned __int128 number;
  const char* rest = mi_digits(text, &number);
  if (kind != MI_OPTION_KIB) {
    if (*rest != 0 || number > (unsigned __int128)LONG_MAX) {
      return false;
    }
    *value = negative ? -(long)number : (long)number;
    return true;
  }
  static const char units[] = "kmgt";
  const char* const unit = *rest == 0 ? NULL : strchr(units, *rest | 32);
  if (unit != NULL) {
    number = number > (unsigned __int128)UINT64_MAX ? number : number << (10 * (unit - units + 1));
    rest++;
    rest += strcasecmp(rest, "iB") == 0 ? 2 : strcasecmp(rest, "B") == 0 ? 1
                                                                         : 0;
  }
  if (*rest != 0) {
    return false;
  }
  const unsigned __int128 most = (unsigned __int128)PTRDIFF_MAX;
  number = number > most ? most : number;
  *value = negative ? 0 : (long)((number + 1023) / 1024);
  return true;
}

static void mi_check_text(const char* text) {
  static const mi_option_kind_t kinds[] = {MI_OPTION_BOOL, MI_OPTION_LONG, MI_OPTION_KIB, MI_OPTION_ACTION};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    long expected = 4711;
    long value = 4711;
    const bool meant = mi_meaning(text, kinds[i], &expected);
    const bool parsed = _mi_option_parse(text, kinds[i], &value);
    MI_FUZZ_CHECK(meant == parsed && value == expected, "kind %zu: \"%s\" is %d %ld instead of %d %ld", i, text, parsed, value, meant, expected);
  }
}

static void mi_check_name(const char* text) {
  mi_option_t option;
  if (_mi_option_find(text, &option)) {
    MI_FUZZ_CHECK(_mi_option_name(option) != NULL, "\"%s\" is an option without a name", text);
  }
}

// The first variable of that name, in any case.
static const char* mi_value_of(char** variables, const char* name) {
  const size_t length = strlen(name);
  for (; *variables != NULL; variables++) {
    if (strncasecmp(*variables, name, length) == 0 && (*variables)[length] == '=') {
      return *variables + length + 1;
    }
  }
  return NULL;
}

// The environment as the input has it: names and values with anything in them, entries without a sign, twice the same.
static void mi_check_environment(char** variables, size_t count) {
  extern char** environ;
  char** const before = environ;
  environ = variables;
  for (size_t i = 0; i < count; i++) {
    char name[TEXT_MAX];
    char text[64];
    memset(text, 'x', sizeof(text));
    const size_t length = strcspn(variables[i], "=");
    memcpy(name, variables[i], length);
    name[length] = 0;
    const size_t room = 1 + strlen(variables[i]) % sizeof(text);
    const char* const expected = length == 0 ? NULL : mi_value_of(variables, name);
    const int found = _mi_prim_getenv(name, text, room);
    if (length > 0) {
      MI_FUZZ_CHECK((found > 0) == (expected != NULL), "variable \"%s\": found is %d", name, found);
      if (expected != NULL) {
        const size_t cut = strlen(expected) < room ? strlen(expected) : room - 1;
        MI_FUZZ_CHECK((found == 2) == (strlen(expected) >= room) && strncmp(text, expected, cut) == 0 && text[cut] == 0,
                      "variable \"%s\": \"%s\" (%d) instead of \"%s\"", name, text, found, expected);
      }
    }
    MI_FUZZ_CHECK(room == sizeof(text) || text[room] == 'x', "variable \"%s\": written beyond %zu bytes", name, room);
  }
  char name[20];
  for (size_t i = 0; i < count + 2; i++) {
    if (_mi_prim_env_name(i, name, sizeof(name)) == 1) {
      MI_FUZZ_CHECK(strlen(name) < sizeof(name) && i < count, "name %zu", i);
    }
  }
  environ = before;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char texts[VARIABLES][TEXT_MAX];
  char* variables[VARIABLES + 1];
  size_t count = 0;
  mi_fuzz_input_t input = {data, size};
  // Texts end at line ends.
  while (input.left > 0 && count < VARIABLES) {
    size_t n = 0;
    for (char c = 1; input.left > 0 && c != 0;) {
      c = (char)mi_fuzz_take(&input, 1);
      c = c == '\n' ? 0 : c;
      if (n < TEXT_MAX - 1) {
        texts[count][n++] = c;
      }
    }
    texts[count][n] = 0;
    mi_check_text(texts[count]);
    const char* const value = strchr(texts[count], '=');
    if (value != NULL) {
      mi_check_text(value + 1);
    }
    mi_check_name(texts[count]);
    variables[count] = texts[count];
    count++;
  }
  variables[count] = NULL;
  mi_check_environment(variables, count);
  return 0;
}
