// Owns: tests of sys/options: the table against the public numbers, texts, who may set what, and the environment.
// May include: everything.
// Called by: the test runner, under every variant; itself, with "print", under an environment.
// Invariants: environments are tried in new processes, as one reads its own only once.
#include "src/sys/options.h"

#include <limits.h>

#include "test/lib/child.h"
#include "test/lib/test.h"

MI_TEST(defaults) {
  int count = 0;
#define OPTION(number, name, default, kind, effect, old_names, documentation) \
  MI_CHECK_EQ(mi_option_##name, number);                                      \
  MI_CHECK_STREQ(_mi_option_name(mi_option_##name), #name);                   \
  MI_CHECK(sizeof(documentation) > 10 && sizeof(#name) <= 48);                \
  if (!_mi_option_is_set(mi_option_##name)) {                                 \
    MI_CHECK_MSG(_mi_option_get(mi_option_##name) == (default), "%s", #name); \
  }                                                                           \
  count++;
#include "policy/options.def"
#undef OPTION
  MI_CHECK(count >= 58);
  MI_CHECK_EQ(_mi_option_get(mi_option_on_violation), MI_VIOLATION_ABORTS ? 0 : 1);
  MI_CHECK_EQ(_mi_option_get_size(mi_option_arena_reserve), sizeof(void*) > 4 ? 1U << 30 : 1U << 27);
}

MI_TEST(no_option) {
  static const int numbers[] = {-1, 62, 63, _mi_option_last, INT_MAX, INT_MIN};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    const mi_option_t option = (mi_option_t)numbers[i];
    _mi_option_set(option, 5);
    _mi_option_set_default(option, 5);
    MI_CHECK_EQ(_mi_option_get(option), 0);
    MI_CHECK_EQ(_mi_option_get_size(option), 0);
    MI_CHECK(!_mi_option_is_set(option));
    MI_CHECK(_mi_option_name(option) == NULL);
  }
}

MI_TEST(setting) {
  const mi_option_t option = mi_option_page_max_candidates;
  MI_CHECK(!_mi_option_is_set(option));
  _mi_option_set_default(option, 6);
  MI_CHECK_EQ(_mi_option_get(option), 6);
  MI_CHECK(!_mi_option_is_set(option));
  _mi_option_set(option, 7);
  MI_CHECK_EQ(_mi_option_get(option), 7);
  MI_CHECK(_mi_option_is_set(option));
  _mi_option_set_default(option, 8);
  MI_CHECK_EQ(_mi_option_get(option), 7);
  MI_CHECK_EQ(_mi_option_get_clamp(option, 1, 3), 3);
  MI_CHECK_EQ(_mi_option_get_clamp(option, 9, 11), 9);
  MI_CHECK_EQ(_mi_option_get_clamp(option, 1, 100), 7);
}

MI_TEST(sizes) {
  const long before = _mi_option_get(mi_option_minimal_purge_size);
  static const struct {
    long value;
    size_t size;
  } rows[] = {{0, 0}, {1, 1024}, {-1, 0}, {LONG_MIN, 0}, {LONG_MAX, (size_t)PTRDIFF_MAX / 1024 * 1024}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    _mi_option_set(mi_option_minimal_purge_size, rows[i].value);
    MI_CHECK_EQ(_mi_option_get_size(mi_option_minimal_purge_size), rows[i].size);
  }
  _mi_option_set(mi_option_minimal_purge_size, before);
  const long retain = _mi_option_get(mi_option_page_full_retain);
  _mi_option_set(mi_option_page_full_retain, -3);
  MI_CHECK_EQ(_mi_option_get_size(mi_option_page_full_retain), 0);
  _mi_option_set(mi_option_page_full_retain, retain);
}

MI_TEST(find) {
  mi_option_t option = mi_option_verbose;
  MI_CHECK(_mi_option_find("Arena_RESERVE", &option));
  MI_CHECK_EQ(option, mi_option_arena_reserve);
  MI_CHECK(_mi_option_find("abandoned_page_reset", &option));
  MI_CHECK_EQ(option, mi_option_deprecated_abandoned_page_purge);
  MI_CHECK(_mi_option_find("Abandoned_Page_Purge", &option));
  MI_CHECK(!_mi_option_find("abandoned_page_purge abandoned_page_reset", &option));
  MI_CHECK(!_mi_option_find("abandoned_page", &option));
  MI_CHECK(!_mi_option_find("arena_reserv", &option));
  MI_CHECK(!_mi_option_find("arena_reserves", &option));
  MI_CHECK(!_mi_option_find("", &option));
}

static const long BAD = -987654;

MI_TEST(texts) {
  static const struct {
    mi_option_kind_t kind;
    const char* text;
    long value;
  } rows[] = {
      {MI_OPTION_BOOL, "", 1},
      {MI_OPTION_BOOL, "1", 1},
      {MI_OPTION_BOOL, "true", 1},
      {MI_OPTION_BOOL, "YES", 1},
      {MI_OPTION_BOOL, "oN", 1},
      {MI_OPTION_BOOL, "0", 0},
      {MI_OPTION_BOOL, "False", 0},
      {MI_OPTION_BOOL, "no", 0},
      {MI_OPTION_BOOL, "OFF", 0},
      {MI_OPTION_BOOL, "maybe", BAD},
      {MI_OPTION_BOOL, "o", BAD},
      {MI_OPTION_BOOL, "onn", BAD},
      {MI_OPTION_LONG, "42", 42},
      {MI_OPTION_LONG, "-1", -1},
      {MI_OPTION_LONG, "+7", 7},
      {MI_OPTION_LONG, "007", 7},
      {MI_OPTION_LONG, "", 1},
      {MI_OPTION_LONG, "off", 0},
      {MI_OPTION_LONG, "0x10", BAD},
      {MI_OPTION_LONG, "1K", BAD},
      {MI_OPTION_LONG, "-", BAD},
      {MI_OPTION_LONG, "--1", BAD},
      {MI_OPTION_LONG, " 1", BAD},
      {MI_OPTION_LONG, "1 ", BAD},
      {MI_OPTION_LONG, "99999999999999999999999", BAD},
      {MI_OPTION_LONG, "18446744073709551617", BAD},
      {MI_OPTION_PATH, "", 0},
      {MI_OPTION_PATH, "0", 1},
      {MI_OPTION_PATH, "/var/log/a b", 1},
      {MI_OPTION_KIB, "0", 0},
      {MI_OPTION_KIB, "1", 1},
      {MI_OPTION_KIB, "1024", 1},
      {MI_OPTION_KIB, "1025", 2},
      {MI_OPTION_KIB, "1K", 1},
      {MI_OPTION_KIB, "64kb", 64},
      {MI_OPTION_KIB, "64KiB", 64},
      {MI_OPTION_KIB, "2M", 2048},
      {MI_OPTION_KIB, "1gib", 1048576},
      {MI_OPTION_KIB, "1GB", 1048576},
      {MI_OPTION_KIB, "-5", 0},
      {MI_OPTION_KIB, "-5G", 0},
      {MI_OPTION_KIB, "1 K", BAD},
      {MI_OPTION_KIB, "K", BAD},
      {MI_OPTION_KIB, "1X", BAD},
      {MI_OPTION_KIB, "1Ki", BAD},
      {MI_OPTION_KIB, "1B", BAD},
      {MI_OPTION_KIB, "1KBs", BAD},
      {MI_OPTION_KIB, "1.5G", BAD},
      {MI_OPTION_KIB, "99999999999999999999T", (long)(PTRDIFF_MAX / 1024) + 1},
      {MI_OPTION_KIB, "17179869184T", (long)(PTRDIFF_MAX / 1024) + 1},
      {MI_OPTION_ACTION, "abort", 0},
      {MI_OPTION_ACTION, "Report", 1},
      {MI_OPTION_ACTION, "IGNORE", 2},
      {MI_OPTION_ACTION, "0", 0},
      {MI_OPTION_ACTION, "1", 1},
      {MI_OPTION_ACTION, "2", 2},
      {MI_OPTION_ACTION, "3", BAD},
      {MI_OPTION_ACTION, "", BAD},
      {MI_OPTION_ACTION, "no", BAD},
      {MI_OPTION_ACTION, "-1", BAD},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    long value = BAD;
    const bool ok = _mi_option_parse(rows[i].text, rows[i].kind, &value);
    MI_CHECK_MSG(ok == (rows[i].value != BAD) && value == rows[i].value, "kind %d, \"%s\" is %ld", (int)rows[i].kind,
                 rows[i].text, value);
  }
}

// Texts that nobody wrote. Whole numbers are what the C library takes them for; other texts are refused and change nothing.
MI_TEST(random_texts) {
  static const char alphabet[] = "0123456789019+-+-KMGTiBkb xoefnru\x01\xff";
  uint64_t seed = (uint64_t)mi_test_scale("MI_OPTIONS_TEST_SEED", 17);
  const long runs = mi_test_scale("MI_OPTIONS_TEST_RUNS", 200000);
  int numbers = 0;
  for (long run = 0; run < runs; run++) {
    char text[24];
    const size_t len = mi_test_random(&seed) % (sizeof(text) - 1);
    // Some of digits alone.
    const size_t letters = run % 3 == 0 ? sizeof(alphabet) - 1 : run % 3 == 1 ? 12
                                                                              : 16;
    for (size_t i = 0; i < len; i++) {
      text[i] = alphabet[mi_test_random(&seed) % letters];
    }
    text[len] = 0;
    for (int kind = MI_OPTION_BOOL; kind <= MI_OPTION_ACTION; kind++) {
      long value = BAD;
      const bool ok = _mi_option_parse(text, (mi_option_kind_t)kind, &value);
      MI_CHECK_MSG(ok || value == BAD, "\"%s\"", text);
      MI_CHECK_MSG(!ok || kind != MI_OPTION_KIB || (value >= 0 && (uint64_t)value <= PTRDIFF_MAX / 1024 + 1), "\"%s\" is %ld", text, value);
      MI_CHECK_MSG(!ok || kind != MI_OPTION_ACTION || (value >= 0 && value <= 2), "\"%s\" is %ld", text, value);
      char* end;
      errno = 0;
      const long number = strtol(text, &end, 10);
      const bool is_number = len > 0 && *end == 0 && errno == 0 && number != LONG_MIN && text[0] != ' ';
      if (kind == MI_OPTION_LONG && is_number) {
        numbers++;
        MI_CHECK_MSG(ok && value == number, "\"%s\" is %ld", text, value);
      }
    }
  }
  MI_CHECK(numbers > runs / 20);
  errno = 0;
}

// Environments. Each runs this program with "print", which writes all options to stderr.

static void mi_options_test_exec(void* arg) {
  char* const* const env = arg;
  char name[] = "options_test";
  char print[] = "print";
  char* const argv[] = {name, print, NULL};
  execve("/proc/self/exe", argv, env);
  _exit(99);
}

MI_TEST(environment) {
  static const struct {
    const char* env[3];
    const char* said;
    const char* not_said;
  } rows[] = {
      {{NULL}, "^option 'purge_delay': 1000 \\(default\\)$", ": warning: "},
      {{"MIMALLOC_PURGE_DELAY=250"}, "^option 'purge_delay': 250 \\(environment\\)$", ": warning: "},
      {{"mimalloc_purge_delay=251"}, "^option 'purge_delay': 251 ", ": warning: "},
      {{"MIMALLOC_RESET_DELAY=252"}, "^option 'purge_delay': 252 ", NULL},
      {{"MIMALLOC_RESET_DELAY=252"}, "warning: environment variable MIMALLOC_RESET_DELAY is an old name of the option purge_delay$", NULL},
      {{"MIMALLOC_RESET_DELAY=252", "MIMALLOC_PURGE_DELAY=253"}, "^option 'purge_delay': 253 ", ": warning: "},
      {{"MIMALLOC_PURGE_DELAY=soon"}, "^option 'purge_delay': 1000 \\(default\\)$", NULL},
      {{"MIMALLOC_PURGE_DELAY=so\x1bon"}, "warning: environment variable MIMALLOC_PURGE_DELAY has a value that is not understood: so\\?on$", NULL},
      {{"MIMALLOC_PURGE_DELAY=000000000000000000000000000000000000000000000000000000000000000000001"},
       "warning: environment variable MIMALLOC_PURGE_DELAY has a value that is not understood: 0{63}\\.\\.\\.$",
       "^option 'purge_delay': [^1]"},
      {{"MIMALLOC_VERBOSE=loud"}, "warning: environment variable MIMALLOC_VERBOSE has ", "^option 'verbose': [1-9]"},
      {{"MIMALLOC_PURGE_DELAY=soon", "MIMALLOC_MAX_WARNINGS=0"}, "^option 'max_warnings': 0 ", ": warning: "},
      {{"MIMALLOC_SHOW_ERRORS="}, "^option 'show_errors': 1 ", ": warning: "},
      {{"MIMALLOC_ARENA_RESERVE=64MiB"}, "^option 'arena_reserve': 65536 KiB ", ": warning: "},
      {{"MIMALLOC_ON_VIOLATION=ignore"}, "^option 'on_violation': 2 ", ": warning: "},
      {{"MIMALLOC_ON_VIOLATION=9"}, "warning: environment variable MIMALLOC_ON_VIOLATION has ", "^option 'on_violation': 9 "},
      {{"MIMALLOC_PURGE_DELYA=1"}, "warning: environment variable MIMALLOC_PURGE_DELYA names no option$", NULL},
      {{"XMIMALLOC_PURGE_DELAY=1", "MIMALLOC=1"}, "^option 'purge_delay': 1000 ", ": warning: "},
      {{"MIMALLOC_DISABLE_REDIRECT=1"}, "^option 'verbose': 0 ", ": warning: "},
      {{"MIMALLOC_EAGER_COMMIT=0"}, "warning: environment variable MIMALLOC_EAGER_COMMIT is an old name of the option deprecated_eager_commit, which has no effect$", NULL},
      {{"MIMALLOC_EAGER_COMMIT=0"}, "^option 'deprecated_eager_commit': 0 \\(environment, no effect\\)$", NULL},
      {{"MIMALLOC_DEPRECATED_EAGER_COMMIT=0"}, "^option 'deprecated_eager_commit': 0 ", ": warning: "},
      {{"MIMALLOC_ABANDONED_PAGE_RESET=1"}, "^option 'deprecated_abandoned_page_purge': 1 ", NULL},
      {{"MIMALLOC_ABANDONED_PAGE_PURGE=1", "MIMALLOC_ABANDONED_PAGE_RESET=0"}, "^option 'deprecated_abandoned_page_purge': 1 ", "PAGE_RESET"},
      {{"MIMALLOC_MINIMAL_PURGE_SIZE=64K"}, "^option 'arena_purge_min_size': 64 KiB \\(environment\\)$", NULL},
      {{"MIMALLOC_GUARDED_SAMPLE_RATE=100"}, "^option 'guarded_sample_rate': 100 \\(environment\\)$", ": warning: "},
      {{"MIMALLOC_GUARDED_PRECISE=1"}, "warning: environment variable MIMALLOC_GUARDED_PRECISE is an old name of the option unsafe_guarded_precise$", NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    static mi_test_child_t child;
    char env[2][128];
    char* envp[3] = {NULL, NULL, NULL};
    for (size_t k = 0; k < 2 && rows[i].env[k] != NULL; k++) {
      snprintf(env[k], sizeof(env[k]), "%s", rows[i].env[k]);
      envp[k] = env[k];
    }
    mi_test_child_run(&child, &mi_options_test_exec, envp, 20000);
    MI_CHECK_CHILD_OK(&child, "print");
    MI_CHECK_MSG(mi_test_child_said(&child, rows[i].said), "row %zu: no %s in:\n%.300s", i, rows[i].said, child.err);
    MI_CHECK_MSG(rows[i].not_said == NULL || !mi_test_child_said(&child, rows[i].not_said), "row %zu: %s in:\n%.300s", i,
                 rows[i].not_said, child.err);
  }
}

// Every option is set by its name, and by each of its old names.
typedef struct mi_options_test_name_s {
  const char* name;
  const char* old_names;
  mi_option_kind_t kind;
} mi_options_test_name_t;

static const mi_options_test_name_t mi_options_test_names[] = {
#define OPTION(number, name, default, kind, effect, old_names, documentation) {#name, old_names, MI_OPTION_##kind},
#include "policy/options.def"
#undef OPTION
};

static void mi_options_test_set_by(const mi_options_test_name_t* option, const char* name, size_t len) {
  static mi_test_child_t child;
  char entry[128];
  char said[160];
  char* envp[] = {entry, NULL};
  // A value that is no default, and no option acts on at the start.
  static const struct {
    const char* value;
    const char* shown;
  } texts[] = {
      [MI_OPTION_BOOL] = {"3", "3"},
      [MI_OPTION_LONG] = {"3", "3"},
      [MI_OPTION_KIB] = {"3M", "3072 KiB"},
      [MI_OPTION_ACTION] = {"ignore", "2"},
      [MI_OPTION_PATH] = {"/dev/null", "1"},
  };
  const char* const value = texts[option->kind].value;
  const char* const shown = texts[option->kind].shown;
  snprintf(entry, sizeof(entry), "mimalloc_%.*s=%s", (int)len, name, value);
  snprintf(said, sizeof(said), "^option '%s': %s \\(environment[,)]", option->name, shown);
  mi_test_child_run(&child, &mi_options_test_exec, envp, 20000);
  MI_CHECK_CHILD_OK(&child, entry);
  MI_CHECK_MSG(mi_test_child_said(&child, said), "%s gives no %s in:\n%.300s", entry, said, child.err);
}

MI_TEST(each_name) {
  for (size_t i = 0; i < sizeof(mi_options_test_names) / sizeof(mi_options_test_names[0]); i++) {
    const mi_options_test_name_t* const option = &mi_options_test_names[i];
    mi_options_test_set_by(option, option->name, strlen(option->name));
    for (const char* old = option->old_names; *old != 0; old += strcspn(old, " "), old += *old == ' ') {
      mi_options_test_set_by(option, old, strcspn(old, " "));
    }
  }
}

// What the program has set stays, whenever the environment comes to be read.
static void mi_options_test_set_first(void* arg) {
  (void)arg;
  _mi_option_set(mi_option_page_full_retain, 11);
  setenv("MIMALLOC_PAGE_FULL_RETAIN", "12", 1);
  errno = 12345;
  _mi_options_load();
  _mi_options_load();
  MI_CHECK_EQ(errno, 12345);
  MI_CHECK_EQ(_mi_option_get(mi_option_page_full_retain), 11);
}

MI_TEST(program_first) { MI_CHECK_IN_CHILD(&mi_options_test_set_first, NULL, 10000); }

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "print") == 0) {
    _mi_options_load();
    _mi_options_print(NULL, NULL);
    return 0;
  }
  return mi_test_main(argc, argv);
}
