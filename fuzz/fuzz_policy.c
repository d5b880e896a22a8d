// Owns: the target that misuses memory under any settings: what is written, who is told and whether the process ends is held against
// what policy/violations.def, policy/options.def and policy/messages.md say.
// May include: fuzz/lib, policy, mimalloc.h, src/sys, src/prim.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: an input is the life of a process: an environment, settings, functions of the program, bad use. It has a thread of its
// own, which ends where the process would: the linker's --wrap puts that end, and stderr, here.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/fuzz.h"
#include "mi-profile.h"
#include "mimalloc.h"
#include "src/sys/lock.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

enum { TEXT_MAX = 32 * 1024,
       LINE_MAX_BYTES = 511,
       CALLS_MAX = 64,
       ENV_TEXT = 80,
       STEPS_MAX = 24 };

// The policy, a second reading

typedef enum mi_follows_e { OPTION,
                            ABORT,
                            NEVER } mi_follows_t;

typedef struct mi_kind_row_s {
  const char* word;
  int err;
  mi_follows_t follows;
} mi_kind_row_t;

static const mi_kind_row_t mi_kinds[] = {
#define V(symbol, word, err, lenient, hardened, meaning) {word, err, MI_VIOLATION_ABORTS ? hardened : lenient},
#include "policy/violations.def"
#undef V
};

enum { KINDS = sizeof(mi_kinds) / sizeof(mi_kinds[0]) };

// The options that the consequences depend on.
enum { ON_VIOLATION,
       FAMILY_CHECK,
       MAX_ERRORS,
       BACKTRACE,
       SHOW_ERRORS,
       VERBOSE,
       OPTIONS };

static const struct {
  mi_option_t option;
  const char* variable;
  mi_option_kind_t kind;
} mi_options[OPTIONS] = {
    {mi_option_on_violation, "MIMALLOC_ON_VIOLATION", MI_OPTION_ACTION},
    {mi_option_family_check, "MIMALLOC_FAMILY_CHECK", MI_OPTION_ACTION},
    {mi_option_max_errors, "MIMALLOC_MAX_ERRORS", MI_OPTION_LONG},
    {mi_option_backtrace, "MIMALLOC_BACKTRACE", MI_OPTION_LONG},
    {mi_option_show_errors, "MIMALLOC_SHOW_ERRORS", MI_OPTION_BOOL},
    {mi_option_verbose, "MIMALLOC_VERBOSE", MI_OPTION_LONG},
};

static const long mi_defaults[_mi_option_last] = {
#define OPTION(number, name, default, kind, effect, old_names, documentation) [number] = default,
#include "policy/options.def"
#undef OPTION
};

// What the run's process is, and what has happened

static struct {
  long values[OPTIONS];
  bool by_environment[OPTIONS];
  bool by_program[OPTIONS];
  bool has_error;  // functions of the program
  bool has_output;
  unsigned error_does;  // what the function for errors does besides
  long error_value;
  // Since the step began: in which order (S stderr, E the error function, O the output, A the end), and with what.
  char order[64];
  size_t steps;
  int err;
  char said[TEXT_MAX];
  size_t said_len;
  char told[TEXT_MAX];
  size_t told_len;
  jmp_buf end;
} mi_run;

static long mi_counted;  // reports that were written against max_errors, in all runs: the count is the allocator's own

static void mi_note(char what) {
  if (mi_run.steps + 1 < sizeof(mi_run.order) && (mi_run.steps == 0 || mi_run.order[mi_run.steps - 1] != what)) {
    mi_run.order[mi_run.steps++] = what;
    mi_run.order[mi_run.steps] = 0;
  }
}

static void mi_add(char* text, size_t* len, const char* more, size_t more_len) {
  if (more_len < TEXT_MAX - *len) {
    memcpy(text + *len, more, more_len);
    *len += more_len;
    text[*len] = 0;
  }
}

static void mi_forget(void) {
  mi_run.steps = mi_run.said_len = mi_run.told_len = 0;
  mi_run.order[0] = mi_run.said[0] = mi_run.told[0] = 0;
  mi_run.err = 0;
}

void __wrap__mi_prim_write_stderr(const char* msg, size_t len);
_Noreturn void __wrap__mi_prim_abort(void);
bool __wrap__mi_lock_acquire_bounded(mi_lock_t* lock);
bool __real__mi_lock_acquire_bounded(mi_lock_t* lock);

void __wrap__mi_prim_write_stderr(const char* msg, size_t len) {
  mi_note('S');
  mi_add(mi_run.said, &mi_run.said_len, msg, len);
}

_Noreturn void __wrap__mi_prim_abort(void) {
  mi_note('A');
  longjmp(mi_run.end, 1);
}

// The lock that keeps reports apart stays with who has ended the process, and the next run is another process.
bool __wrap__mi_lock_acquire_bounded(mi_lock_t* lock) {
  _mi_lock_reset(lock);
  return __real__mi_lock_acquire_bounded(lock);
}

static void mi_on_output(const char* text, void* arg) {
  MI_FUZZ_CHECK(arg == &mi_run, "policy: the output gets another argument than it was registered with");
  mi_note('O');
  mi_add(mi_run.told, &mi_run.told_len, text, strlen(text));
}

static void mi_set(unsigned which, long value) {
  mi_option_set(mi_options[which].option, value);
  mi_run.values[which] = value;
  mi_run.by_program[which] = true;
}

static void mi_on_error(int err, void* arg) {
  MI_FUZZ_CHECK(arg == &mi_run && mi_run.err == 0, "policy: the error function is called with another argument, or twice");
  mi_note('E');
  mi_run.err = err;
  switch (mi_run.error_does % 5) {
    case 1: mi_set(ON_VIOLATION, mi_run.error_value); break;
    case 2: mi_set(FAMILY_CHECK, mi_run.error_value); break;
    case 3: mi_set(BACKTRACE, mi_run.error_value); break;
    case 4: mi_free(mi_malloc((size_t)(mi_run.error_value & 0xffff))); break;
    default: break;
  }
}

// What must have come of it

static long mi_action(unsigned kind) {
  const long own = kind == MI_VIOLATION_family_mismatch ? mi_run.values[FAMILY_CHECK] : MI_ON_VIOLATION_ABORT;
  return own != MI_ON_VIOLATION_ABORT ? own : mi_run.values[ON_VIOLATION];
}

static bool mi_ends(unsigned kind) {
  const long action = mi_action(kind);
  return mi_kinds[kind].follows == ABORT ||
      (mi_kinds[kind].follows == OPTION && action != MI_ON_VIOLATION_REPORT && action != MI_ON_VIOLATION_IGNORE);
}

static bool mi_is_counted(void) {
  const long max = mi_run.values[MAX_ERRORS];
  if (max >= 0 && mi_counted >= max) {
    return false;
  }
  mi_counted += max >= 0;
  return true;
}

static bool mi_is_call(const char* line, unsigned number) {
  char start[32];
  const int n = snprintf(start, sizeof(start), "    #%u 0x", number);
  if (strncmp(line, start, (size_t)n) != 0) {
    return false;
  }
  line += n;
  const size_t digits = strspn(line, "0123456789abcdef");
  line += digits;
  const char* const end = strchr(line, '\n');
  return digits > 0 && end != NULL && (*line == '\n' || (*line == ' ' && strstr(line, "+0x") != NULL && strstr(line, "+0x") < end));
}

// The line, and as many calls below it as option backtrace says at most.
static void mi_check_text(const char* where, const char* text, const char* line, unsigned kind, long most) {
  const size_t len = strlen(line);
  MI_FUZZ_CHECK(strncmp(text, line, len) == 0, "policy: %s: %s has \"%.200s\" instead of \"%.200s\"", mi_kinds[kind].word, where, text, line);
  most = most < 0 ? 0 : most > CALLS_MAX ? CALLS_MAX
                                         : most;
  unsigned calls = 0;
  for (text += len; *text != 0; text = strchr(text, '\n') + 1) {
    MI_FUZZ_CHECK(mi_is_call(text, calls) && calls < (unsigned)most, "policy: %s: %s has, as number %u of at most %ld calls, \"%.100s\"",
                  mi_kinds[kind].word, where, calls, most, text);
    calls++;
  }
}

// `line` is what a report must be. `calls`: what option backtrace said before, which the error function may have changed.
static void mi_judge(unsigned kind, const char* line, bool ends, long calls) {
  const mi_kind_row_t* const row = &mi_kinds[kind];
  char order[8];
  size_t n = 0;
  bool says = ends;
  bool tells = ends && mi_run.has_output;
  if (row->follows != NEVER && mi_run.values[BACKTRACE] > calls) {
    calls = mi_run.values[BACKTRACE];
  }
  if (ends) {
    order[n++] = 'S';
  }
  if (mi_run.has_error) {
    order[n++] = 'E';
    MI_FUZZ_CHECK(mi_run.err == row->err, "policy: %s: the error function gets %d instead of %d", row->word, mi_run.err, row->err);
  }
  // The function may have chosen the end.
  if (!ends && mi_ends(kind)) {
    ends = says = true;
    tells = mi_run.has_output;
    order[n++] = 'S';
  }
  if (!ends) {
    const bool quiet = row->follows == NEVER ? mi_run.values[SHOW_ERRORS] == 0 && mi_run.values[VERBOSE] == 0
                                             : mi_action(kind) == MI_ON_VIOLATION_IGNORE;
    const bool written = !quiet && mi_is_counted();
    says = written && !mi_run.has_output;
    tells = written && mi_run.has_output;
    if (says) {
      order[n++] = 'S';
    }
  }
  if (tells) {
    order[n++] = 'O';
  }
  if (ends) {
    order[n++] = 'A';
  }
  order[n] = 0;
  MI_FUZZ_CHECK(strcmp(order, mi_run.order) == 0, "policy: %s: order: %s instead of %s (on_violation %ld): %.200s", row->word, mi_run.order, order,
                mi_run.values[ON_VIOLATION], mi_run.said);
  if (says) {
    mi_check_text("stderr", mi_run.said, line, kind, calls);
  }
  if (tells) {
    mi_check_text("the output", mi_run.told, line, kind, calls);
  }
  MI_FUZZ_CHECK(row->follows == NEVER || strcmp(mi_violation_message, line) == 0, "policy: %s: a core dump would show \"%.200s\" instead of \"%.200s\"",
                row->word, mi_violation_message, line);
}

// The line of a report with such a text.
static void mi_expect(char* line, unsigned kind, const char* text) {
  int n = snprintf(line, LINE_MAX_BYTES + 1, MI_PROFILE_NAME ": %s: %s", mi_kinds[kind].word, text);
  n = n > LINE_MAX_BYTES - 1 ? LINE_MAX_BYTES - 1 : n;
  for (size_t i = sizeof(MI_PROFILE_NAME); i < (size_t)n; i++) {
    line[i] = (unsigned char)line[i] < ' ' || line[i] == 0x7f ? '?' : line[i];
  }
  line[n] = '\n';
  line[n + 1] = 0;
}

// What the process does. False: it has ended.

typedef struct mi_bad_use_s {
  unsigned which;
  char* p;
  size_t size;
} mi_bad_use_t;

static bool mi_goes_on(void (*call)(const mi_bad_use_t* use), const mi_bad_use_t* use) {
  mi_forget();
  if (setjmp(mi_run.end) == 0) {
    call(use);
  }
  return strchr(mi_run.order, 'A') == NULL;
}

static void mi_report(const mi_bad_use_t* use) { _mi_report((mi_violation_t)use->which, "%s", use->p); }

static bool mi_do_report(mi_fuzz_input_t* input) {
  char text[600];
  char line[LINE_MAX_BYTES + 2];
  const unsigned kind = (unsigned)mi_fuzz_take(input, 1) % KINDS;
  size_t len = (size_t)mi_fuzz_take(input, 1);
  // Some longer than a line.
  len = len > 250 ? len + 330 : len;
  uint64_t state = len;
  for (size_t i = 0; i < len; i++) {
    const char c = (char)(input->left > 0 ? mi_fuzz_take(input, 1) : mi_fuzz_random(&state));
    text[i] = c != 0 ? c : ' ';
  }
  text[len] = 0;
  mi_expect(line, kind, text);
  const bool ends = mi_ends(kind);
  const long calls = mi_kinds[kind].follows == NEVER ? 0 : mi_run.values[BACKTRACE];
  const bool goes_on = mi_goes_on(&mi_report, &(mi_bad_use_t){kind, text, len});
  mi_judge(kind, line, ends, calls);
  return goes_on;
}

enum { TWICE,
       INTERIOR,
       FOREIGN,
       QUERY,
       SIZE,
       ALIGNMENT,
       BEYOND,
       USES };

static const struct {
  mi_violation_t kind;
  bool seen;
} mi_uses[USES] = {
    [TWICE] = {MI_VIOLATION_double_free, MI_HAS_LIVE_BITS},
    [INTERIOR] = {MI_VIOLATION_interior_free, MI_HAS_LIVE_BITS},
    [FOREIGN] = {MI_VIOLATION_foreign_free, true},
    [QUERY] = {MI_VIOLATION_use_after_free, MI_HAS_LIVE_BITS},
    [SIZE] = {MI_VIOLATION_size_mismatch, MI_HAS_SIZED_FREE >= 1},
    [ALIGNMENT] = {MI_VIOLATION_alignment_mismatch, MI_HAS_SIZED_FREE >= 1},
    [BEYOND] = {MI_VIOLATION_overflow, MI_HAS_PADDING},
};

static char mi_static[64];

static void mi_misuse(const mi_bad_use_t* use) {
  char* const p = use->p;
  const size_t size = use->size;
  switch (use->which) {
    case TWICE: mi_free(p); break;
    case INTERIOR: mi_free(p + size / 2); break;
    case FOREIGN: mi_free(mi_static + size % sizeof(mi_static)); break;
    case QUERY: MI_FUZZ_CHECK(mi_usable_size(p) == 0, "policy: a freed block has a size"); break;
    case SIZE: mi_free_size(p, mi_usable_size(p) * 3 + 1000); break;
    case ALIGNMENT: mi_free_aligned(p, ((uintptr_t)p & (~(uintptr_t)p + 1)) * 2); break;
    default:
      p[size] = (char)(p[size] + 1);
      mi_free(p);
      break;
  }
}

static bool mi_do_misuse(mi_fuzz_input_t* input) {
  const unsigned use = (unsigned)mi_fuzz_take(input, 1) % USES;
  const size_t size = 2 + (size_t)mi_fuzz_take(input, 2) % 5000;
  if (!mi_uses[use].seen) {
    return true;
  }
  // A second block, so that the page of the first is not given back with it.
  void* const other = mi_malloc(size);
  char* const p = mi_malloc(size);
  MI_FUZZ_CHECK(p != NULL && other != NULL, "policy: there is no memory");
  const bool frees_first = use == TWICE || use == QUERY;
  if (frees_first) {
    mi_free(p);
  }
  const unsigned kind = mi_uses[use].kind;
  const bool ends = mi_ends(kind);
  const long calls = mi_run.values[BACKTRACE];
  const bool goes_on = mi_goes_on(&mi_misuse, &(mi_bad_use_t){use, p, size});
  char line[LINE_MAX_BYTES + 2];
  char start[64];
  snprintf(line, sizeof(line), "%s", mi_violation_message);
  const int n = snprintf(start, sizeof(start), MI_PROFILE_NAME ": %s: ", mi_kinds[kind].word);
  MI_FUZZ_CHECK(strncmp(line, start, (size_t)n) == 0 && line[strlen(line) - 1] == '\n', "policy: %s is reported as %.200s", mi_kinds[kind].word,
                line);
  mi_judge(kind, line, ends, calls);
  if (!goes_on) {
    return false;
  }
  if (use == INTERIOR || use == FOREIGN) {
    mi_free(p);
  }
  mi_free(other);
  return true;
}

// Being out of memory is no bad use.
static bool mi_do_out_of_memory(mi_fuzz_input_t* input) {
  const bool too_large = (mi_fuzz_take(input, 1) & 1) != 0;
  const size_t size = too_large ? SIZE_MAX - 100 : (size_t)PTRDIFF_MAX - 4096;
  char line[LINE_MAX_BYTES + 2];
  snprintf(line, sizeof(line), MI_PROFILE_NAME ": out-of-memory: no memory for %zu bytes\n", size);
  mi_forget();
  errno = 0;
  MI_FUZZ_CHECK(mi_malloc(size) == NULL && errno == ENOMEM, "policy: mi_malloc of %zu bytes: errno is %d", size, errno);
  MI_FUZZ_CHECK(!mi_run.has_error || mi_run.err == (too_large ? EOVERFLOW : ENOMEM), "policy: out-of-memory: the error function gets %d", mi_run.err);
  const bool written = (mi_run.values[SHOW_ERRORS] != 0 || mi_run.values[VERBOSE] != 0) && mi_is_counted();
  char order[4];
  snprintf(order, sizeof(order), "%s%s", mi_run.has_error ? "E" : "", !written ? "" : mi_run.has_output ? "O"
                                                                                                        : "S");
  MI_FUZZ_CHECK(strcmp(order, mi_run.order) == 0, "policy: out-of-memory: order: %s instead of %s", mi_run.order, order);
  if (written) {
    mi_check_text("the text", mi_run.has_output ? mi_run.told : mi_run.said, line, MI_VIOLATION_out_of_memory, 0);
  }
  return true;
}

// Mostly what means something. Counts of errors are counted from where earlier runs have left the count.
static long mi_some_value(unsigned which, mi_fuzz_input_t* input) {
  const uint64_t n = mi_fuzz_take(input, 1);
  switch (which) {
    case MAX_ERRORS: return n < 128 ? mi_counted + (long)(n % 4) : n < 200 ? -1
                                                                           : (long)n - 220;
    case BACKTRACE: return (long)n - 8;
    case SHOW_ERRORS:
    case VERBOSE: return (long)(n % 2);
    default: return n < 240 ? (long)(n % 3) : (long)n - 245;
  }
}

static bool mi_do_step(mi_fuzz_input_t* input) {
  const unsigned what = (unsigned)mi_fuzz_take(input, 1);
  switch (what % 8) {
    case 0: {
      const unsigned which = (what >> 3) % OPTIONS;
      mi_set(which, mi_some_value(which, input));
      return true;
    }
    case 1: {
      // What the environment or the program has set stays.
      const unsigned which = (what >> 3) % OPTIONS;
      const long value = mi_some_value(which, input);
      mi_option_set_default(mi_options[which].option, value);
      if (!mi_run.by_environment[which] && !mi_run.by_program[which]) {
        mi_run.values[which] = value;
      }
      return true;
    }
    case 2:
      mi_run.has_error = (what & 8) != 0;
      mi_run.error_does = (what >> 4) % 5;
      mi_run.error_value = mi_some_value(ON_VIOLATION, input);
      mi_register_error(mi_run.has_error ? &mi_on_error : NULL, &mi_run);
      return true;
    case 3:
      mi_run.has_output = (what & 8) != 0;
      mi_register_output(mi_run.has_output ? &mi_on_output : NULL, &mi_run);
      return true;
    case 4: return mi_do_out_of_memory(input);
    case 5: return mi_do_report(input);
    default: return mi_do_misuse(input);
  }
}

// A process begins: no option is set, and its environment is the input's first lines.

static void mi_begin(mi_fuzz_input_t* input) {
  extern char** environ;
  static char texts[OPTIONS][ENV_TEXT];
  static char variables[OPTIONS][ENV_TEXT + 32];
  char* list[OPTIONS + 1];
  size_t count = 0;
  MI_FUZZ_CHECK(_mi_sealed_open("a new run"), "policy: the configuration cannot be opened");
  for (size_t i = 0; i < OPTIONS; i++) {
    mi_atomic_store_relaxed(&_mi_settings.option_values[mi_options[i].option], mi_defaults[mi_options[i].option]);
    mi_atomic_store_relaxed(&_mi_settings.option_setters[mi_options[i].option], (unsigned char)0);
    mi_run.values[i] = mi_defaults[mi_options[i].option];
    mi_run.by_program[i] = mi_run.by_environment[i] = false;
  }
  _mi_sealed_close();
  const unsigned there = (unsigned)mi_fuzz_take(input, 1);
  for (size_t i = 0; i < OPTIONS; i++) {
    if (((there >> i) & 1) == 0) {
      continue;
    }
    size_t n = 0;
    for (char c = 1; input->left > 0 && c != 0;) {
      c = (char)mi_fuzz_take(input, 1);
      c = c == '\n' ? 0 : c;
      texts[i][n] = c;
      n += n < ENV_TEXT - 1;
    }
    texts[i][n] = 0;
    snprintf(variables[i], sizeof(variables[i]), "%s=%s", mi_options[i].variable, texts[i]);
    list[count++] = variables[i];
    long value;
    // What does not fit is not understood.
    if (strlen(texts[i]) < 64 && _mi_option_parse(texts[i], mi_options[i].kind, &value)) {
      mi_run.values[i] = value;
      mi_run.by_environment[i] = true;
    }
  }
  list[count] = NULL;
  char** const before = environ;
  environ = list;
  mi_forget();
  _mi_options_read();
  environ = before;
  for (size_t i = 0; i < OPTIONS; i++) {
    MI_FUZZ_CHECK(mi_option_get(mi_options[i].option) == mi_run.values[i], "policy: %s=%s makes %ld instead of %ld", mi_options[i].variable,
                  texts[i], mi_option_get(mi_options[i].option), mi_run.values[i]);
  }
  for (const char* line = mi_run.said; *line != 0; line = strchr(line, '\n') + 1) {
    MI_FUZZ_CHECK(strncmp(line, MI_PROFILE_NAME ": warning: environment variable MIMALLOC_", sizeof(MI_PROFILE_NAME) + 40) == 0,
                  "policy: the environment leads to: %.200s", line);
  }
}

static void* mi_live(void* arg) {
  mi_fuzz_input_t* const input = arg;
  mi_begin(input);
  for (unsigned i = 0; i < STEPS_MAX && input->left > 0 && mi_do_step(input); i++) {
    for (size_t k = 0; k < OPTIONS; k++) {
      MI_FUZZ_CHECK(mi_option_get(mi_options[k].option) == mi_run.values[k], "policy: %s is %ld instead of %ld", mi_options[k].variable,
                    mi_option_get(mi_options[k].option), mi_run.values[k]);
    }
  }
  mi_register_error(NULL, NULL);
  mi_register_output(NULL, NULL);
  mi_run.has_error = mi_run.has_output = false;
  return NULL;
}

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  mi_option_set(mi_option_guarded_sample_rate, 0);
  // The first output gets what was written before there was one.
  mi_register_output(&mi_on_output, &mi_run);
  mi_register_output(NULL, NULL);
  mi_forget();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  pthread_t thread;
  MI_FUZZ_CHECK(pthread_create(&thread, NULL, &mi_live, &input) == 0, "policy: the system has no thread");
  pthread_join(thread, NULL);
  return 0;
}
