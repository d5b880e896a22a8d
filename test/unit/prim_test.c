// Owns: the tests of prim's configuration, clock, environment, randomness, messages and process figures.
// May include: base, prim, test/lib, the C library's headers.
// Called by: the build.
// Invariants: refusals and limits are made in children.
#include "src/prim/prim.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test/lib/child.h"
#include "test/lib/deny.h"
#include "test/lib/test.h"

extern char** environ;

static void deny(long nr, int index, uint32_t value, int err) {
  if (!mi_test_deny(nr, index, value, err)) _exit(MI_TEST_SKIPPED);
}

#define IN_CHILD(name, fn, arg)                                                \
  MI_TEST(name) {                                                              \
    static mi_test_child_t child;                                              \
    mi_test_child_run(&child, fn, arg, 20000);                                 \
    if (child.status == MI_TEST_SKIPPED) MI_TEST_SKIP("no filters for calls"); \
    else MI_CHECK_CHILD_OK(&child, #fn);                                       \
  }

// Configuration

static mi_prim_config_t read_config(void) {
  mi_prim_config_t config;
  memset(&config, 0xa5, sizeof(config));
  errno = 1234;
  _mi_prim_init(&config);
  MI_CHECK_EQ(errno, 1234);
  MI_CHECK_EQ(config.page_size, sysconf(_SC_PAGESIZE));
  MI_CHECK_EQ(config.alloc_granularity, config.page_size);
  MI_CHECK(config.huge_page_size == 0 || config.huge_page_size % config.page_size == 0);
  MI_CHECK(config.address_bits >= 32 && config.address_bits <= 8 * sizeof(void*));
  MI_CHECK(config.has_partial_release);
  return config;
}

MI_TEST(config) {
  const mi_prim_config_t config = read_config();
  int on_stack = 0;
  MI_CHECK(sizeof(void*) == 4 || (uintptr_t)&on_stack >> config.address_bits == 0);
  const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY);
  char mode = 0;
  if (fd >= 0 && read(fd, &mode, 1) == 1) MI_CHECK_EQ(config.has_overcommit, mode != '2');
  if (fd >= 0) close(fd);
}

static void limited(void* arg) {
  (void)arg;
  const struct rlimit limit = {1 << 30, 1 << 30};
  MI_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  MI_CHECK_EQ(read_config().address_space_limit, 1 << 30);
}

IN_CHILD(config_under_limit, limited, NULL)

// No /proc, no /sys, and with `arg` no answer to anything else either.
static void no_files(void* arg) {
  const bool has_overcommit = read_config().has_overcommit;
  deny(SYS_openat, MI_TEST_ANY, 0, ENOENT);
  if (arg != NULL) {
    deny(SYS_sysinfo, MI_TEST_ANY, 0, EPERM);
    deny(SYS_prlimit64, MI_TEST_ANY, 0, EPERM);
    deny(SYS_getrusage, MI_TEST_ANY, 0, EPERM);
  }
  const mi_prim_config_t config = read_config();
  MI_CHECK(config.huge_page_size == 0 && !config.thp_always);
  if (arg != NULL) {
    MI_CHECK(!config.has_overcommit && config.address_space_limit == SIZE_MAX);
  } else {
    // By trial; it may err on the careful side only.
    MI_CHECK(has_overcommit || !config.has_overcommit);
  }
  mi_prim_process_info_t info;
  _mi_prim_process_info(&info);
  MI_CHECK(info.current_rss == 0);
  MI_CHECK((info.peak_rss > 0) == (arg == NULL));
}

static int everything;
IN_CHILD(config_without_files, no_files, NULL)
IN_CHILD(config_without_answers, no_files, &everything)

// Clock

MI_TEST(clock) {
  int64_t last = _mi_prim_clock_ms();
  struct timespec before;
  struct timespec after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  errno = 1234;
  for (int i = 0; i < 200000; i++) {
    const int64_t now = _mi_prim_clock_ms();
    if (!MI_CHECK(now >= last)) return;
    last = now;
  }
  MI_CHECK_EQ(errno, 1234);
  clock_gettime(CLOCK_MONOTONIC, &after);
  // The cheap clock ticks as seldom as a hundred times a second.
  MI_CHECK(last >= (int64_t)before.tv_sec * 1000 + before.tv_nsec / 1000000 - 20);
  MI_CHECK(last <= (int64_t)after.tv_sec * 1000 + after.tv_nsec / 1000000);
}

// Environment

static char v_plain[] = "MIMALLOC_PLAIN=value";
static char v_empty[] = "MIMALLOC_EMPTY=";
static char v_lower[] = "mimalloc_lower=1";
static char v_twice_1[] = "MIMALLOC_TWICE=first";
static char v_twice_2[] = "MIMALLOC_TWICE=second";
static char v_equals[] = "MIMALLOC_EQUALS=a=b";
static char v_longer[] = "MIMALLOC_PLAIN_LONGER=no";
static char v_malformed[] = "MIMALLOC_MALFORMED";
static char v_nothing[] = "";
static char* some_environ[] = {v_longer, v_nothing, v_malformed, v_plain, v_empty, v_lower, v_twice_1, v_twice_2, v_equals, NULL};

MI_TEST(getenv) {
  static const struct {
    const char* name;
    int result;
    const char* value;
  } rows[] = {
      {"MIMALLOC_PLAIN", 1, "value"},
      {"mimalloc_plain", 1, "value"},
      {"MiMalloc_Plain", 1, "value"},
      {"MIMALLOC_EMPTY", 1, ""},
      {"MIMALLOC_LOWER", 1, "1"},
      {"MIMALLOC_TWICE", 1, "first"},
      {"MIMALLOC_EQUALS", 1, "a=b"},
      {"MIMALLOC_PLAI", 0, ""},
      {"MIMALLOC_PLAIN_", 0, ""},
      {"MIMALLOC_MALFORMED", 0, ""},
      {"MIMALLOC_ABSENT", 0, ""},
  };
  char** const saved = environ;
  environ = some_environ;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char buf[64] = "untouched";
    errno = 1234;
    MI_CHECK_EQ(_mi_prim_getenv(rows[i].name, buf, sizeof(buf)), rows[i].result);
    MI_CHECK_EQ(errno, 1234);
    MI_CHECK_STREQ(buf, rows[i].value);
  }
  // What does not fit is told apart from a shorter value.
  char buf[8];
  memset(buf, '#', sizeof(buf));
  MI_CHECK_EQ(_mi_prim_getenv("MIMALLOC_PLAIN", buf, 5), 2);
  MI_CHECK(memcmp(buf, "valu", 5) == 0 && buf[5] == '#');
  MI_CHECK_EQ(_mi_prim_getenv("MIMALLOC_PLAIN", buf, 6), 1);
  MI_CHECK_STREQ(buf, "value");
  MI_CHECK_EQ(_mi_prim_getenv("MIMALLOC_PLAIN", buf, 1), 2);
  MI_CHECK_EQ(_mi_prim_getenv("MIMALLOC_EMPTY", buf, 1), 1);
  environ = NULL;
  MI_CHECK_EQ(_mi_prim_getenv("MIMALLOC_PLAIN", buf, sizeof(buf)), -1);
  MI_CHECK_STREQ(buf, "");
  MI_CHECK_EQ(_mi_prim_env_name(0, buf, sizeof(buf)), -1);
  environ = saved;
  MI_CHECK(!_mi_prim_is_secure_exec());
}

// A simulator announces itself by what it preloads.
static void mi_prim_test_simulators(void* arg) {
  (void)arg;
  MI_REQUIRE(unsetenv("LD_PRELOAD") == 0);
  MI_CHECK(_mi_prim_may_try_calls());
  MI_REQUIRE(setenv("LD_PRELOAD", "/usr/lib/libmimalloc-secure.so.3", 1) == 0);
  MI_CHECK(_mi_prim_may_try_calls());
  MI_REQUIRE(setenv("LD_PRELOAD", "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so:/usr/lib/libmimalloc-secure.so.3", 1) == 0);
  MI_CHECK(!_mi_prim_may_try_calls());
}

IN_CHILD(simulators, &mi_prim_test_simulators, NULL)

MI_TEST(env_name) {
  static const char* const names[] = {"MIMALLOC_PLAIN_LONGER", "", "MIMALLOC_MALFORMED", "MIMALLOC_PLAIN"};
  char** const saved = environ;
  char buf[64];
  environ = some_environ;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    MI_CHECK_EQ(_mi_prim_env_name(i, buf, sizeof(buf)), 1);
    MI_CHECK_STREQ(buf, names[i]);
  }
  MI_CHECK_EQ(_mi_prim_env_name(0, buf, 9), 1);
  MI_CHECK_STREQ(buf, "MIMALLOC");
  MI_CHECK_EQ(_mi_prim_env_name(8, buf, sizeof(buf)), 1);
  MI_CHECK_EQ(_mi_prim_env_name(9, buf, sizeof(buf)), 0);
  MI_CHECK_EQ(_mi_prim_env_name(SIZE_MAX, buf, sizeof(buf)), 0);
  environ = saved;
}

// Randomness

static void check_random(void) {
  uint8_t a[1000];
  uint8_t b[1000];
  memset(a, 0, sizeof(a));
  memset(b, 0, sizeof(b));
  errno = 1234;
  MI_REQUIRE(_mi_prim_random(a, sizeof(a) - 1) && _mi_prim_random(b, sizeof(b) - 1));
  MI_CHECK_EQ(errno, 1234);
  MI_CHECK(a[999] == 0 && b[999] == 0);
  // Every part of the buffer was filled, with something else each time.
  for (size_t i = 0; i + 32 < sizeof(a); i += 16) {
    MI_CHECK(memcmp(a + i, b + i, 16) != 0 && memcmp(a + i, a + i + 16, 16) != 0);
  }
  MI_CHECK(_mi_prim_random(a, 0));
}

MI_TEST(random) { check_random(); }

static void no_getrandom(void* arg) {
  (void)arg;
  deny(SYS_getrandom, MI_TEST_ANY, 0, ENOSYS);
  check_random();
  deny(SYS_openat, MI_TEST_ANY, 0, ENOENT);
  uint8_t bytes[8];
  errno = 1234;
  MI_CHECK(!_mi_prim_random(bytes, sizeof(bytes)));
  MI_CHECK_EQ(errno, 1234);
}

static void early_boot(void* arg) {
  (void)arg;
  deny(SYS_getrandom, MI_TEST_ANY, 0, EAGAIN);
  uint8_t bytes[8];
  MI_CHECK(!_mi_prim_random(bytes, sizeof(bytes)));
}

IN_CHILD(random_without_the_call, no_getrandom, NULL)
IN_CHILD(random_at_boot, early_boot, NULL)

MI_TEST(random_at_start) {
  uint8_t bytes[16] = {0};
  MI_REQUIRE(_mi_prim_random_at_start(bytes));
  MI_CHECK(memcmp(bytes, (const void*)getauxval(AT_RANDOM), sizeof(bytes)) == 0);
}

// Messages and the end

static void say(void* arg) {
  (void)arg;
  static char text[200000];
  memset(text, 'x', sizeof(text));
  errno = 1234;
  _mi_prim_write_stderr("first\n", 6);
  // More than a pipe holds.
  _mi_prim_write_stderr(text, sizeof(text));
  // A reader who is late, and a writer who must not wait.
  MI_REQUIRE(fcntl(2, F_SETFL, O_NONBLOCK) == 0);
  _mi_prim_write_stderr(text, 1000);
  close(2);
  _mi_prim_write_stderr("lost", 4);
  MI_CHECK_EQ(errno, 1234);
}

MI_TEST(write_stderr) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &say, NULL, 10000);
  MI_CHECK_CHILD_OK(&child, "say");
  MI_CHECK(mi_test_child_said(&child, "^first$"));
  MI_CHECK(child.err_len == sizeof(child.err) - 1 && child.err[child.err_len - 1] == 'x');
}

static void handler_that_returns(int number) {
  (void)number;
  _mi_prim_write_stderr("handled\n", 8);
}

typedef enum ending_e { PLAIN,
                        IGNORED,
                        BLOCKED,
                        HANDLED } ending_t;

static void end(void* how) {
  const ending_t ending = *(const ending_t*)how;
  const struct rlimit none = {0, 0};
  sigset_t set;
  setrlimit(RLIMIT_CORE, &none);
  sigfillset(&set);
  if (ending == IGNORED) signal(SIGABRT, SIG_IGN);
  if (ending == BLOCKED) sigprocmask(SIG_BLOCK, &set, NULL);
  if (ending == HANDLED) signal(SIGABRT, &handler_that_returns);
  _mi_prim_abort();
}

MI_TEST(abort) {
  for (ending_t ending = PLAIN; ending <= HANDLED; ending++) {
    static mi_test_child_t child;
    mi_test_child_run(&child, &end, &ending, 5000);
    MI_CHECK_EQ(child.signal, SIGABRT);
    MI_CHECK_STREQ(child.err, ending == HANDLED ? "handled\n" : "");
  }
}

// Process figures

MI_TEST(process_info) {
  enum { SIZE = 64 << 20 };
  mi_prim_process_info_t before;
  mi_prim_process_info_t with;
  mi_prim_process_info_t after;
  void* p = NULL;
  errno = 1234;
  _mi_prim_process_info(&before);
  MI_CHECK_EQ(errno, 1234);
  MI_REQUIRE(_mi_prim_reserve(SIZE, true, &p) == 0);
  for (int i = 0; i < 4; i++) memset(p, i, SIZE);
  _mi_prim_process_info(&with);
  MI_REQUIRE(_mi_prim_release(p, SIZE) == 0);
  _mi_prim_process_info(&after);
  MI_CHECK(before.current_rss > 0 && before.peak_rss >= before.current_rss);
  // Counts of single processors are added up late.
  MI_CHECK(with.current_rss > before.current_rss + SIZE * 3 / 4);
  MI_CHECK(after.current_rss < before.current_rss + SIZE / 4);
  MI_CHECK(after.peak_rss > after.current_rss + SIZE / 2);
  MI_CHECK(before.user_ms >= 0 && before.system_ms >= 0);
  MI_CHECK(after.user_ms + after.system_ms > before.user_ms + before.system_ms);
}

MI_TEST_MAIN()
