// Owns: that reports work, and the configuration is closed, in a program that holds the allocator in each way: static, by the
// object, by the shared library.
// May include: mimalloc.h, test/lib.
// Called by: the test runner, linked in each way.
// Invariants: bad use happens in children. The program's own addresses resolve to its functions, as binutils sees them.
#include "mimalloc.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

static char reports_test_bytes[64];

// Not to be inlined or to end in a jump: it is to be found in the list of calls.
__attribute__((noinline)) void reports_test_misuse(void);

__attribute__((noinline)) void reports_test_misuse(void) {
  free(mi_test_hide(reports_test_bytes));
  __asm__ volatile("");
}

static void reports_test_child(void* arg) {
  (void)arg;
  mi_option_set(mi_option_on_violation, 0);
  mi_option_set(mi_option_backtrace, 16);
  reports_test_misuse();
}

// The function at an address of the program's file; its name has the start that was looked for.
static bool reports_test_resolves(const char* file, const char* offset, const char* name) {
  char command[1024];
  char line[512] = "";
  snprintf(command, sizeof(command), "addr2line -f -e '%s' '%s'", file, offset);
  FILE* const f = popen(command, "r");
  MI_REQUIRE(f != NULL);
  const bool read = fgets(line, sizeof(line), f) != NULL;
  MI_CHECK_MSG(pclose(f) == 0 && read, "addr2line: %s", command);
  return strncmp(line, name, strlen(name)) == 0;
}

MI_TEST(calls) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &reports_test_child, NULL, 10000);
  MI_CHECK_EQ(child.signal, SIGABRT);
  MI_CHECK(mi_test_child_said(&child, "^mimalloc(-[a-z]+)?: foreign-free: pointer 0x[0-9a-f]+ "));
  bool found = false;
  // Release keeps no frame pointers of its own, so the list may end before the program.
  const bool has_chain = strncmp(child.err, "mimalloc:", 9) != 0;
  for (char* line = strtok(child.err, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char file[300];
    char offset[64];
    if (sscanf(line, "    #%*u 0x%*x %299[^+]+%63s", file, offset) == 2) {
      found = found || reports_test_resolves(file, offset, "reports_test_misuse");
    }
  }
  MI_CHECK(found || !has_chain);
}

static void reports_test_set(void* arg) {
  (void)arg;
  mi_option_set(mi_option_max_warnings, 3);
  MI_CHECK_EQ(mi_option_get(mi_option_max_warnings), 3);
}

MI_TEST(setting) {
  static mi_test_child_t child;
  mi_test_child_run(&child, &reports_test_set, NULL, 10000);
  MI_CHECK_CHILD_OK(&child, "setting");
}

// The list of what is active, from a new process of this program.
MI_TEST(hardening) {
  char command[4096];
  char line[512];
  bool sealed = false;
  const ssize_t n = readlink("/proc/self/exe", line, sizeof(line) - 1);
  MI_REQUIRE(n > 0);
  line[n] = 0;
  snprintf(command, sizeof(command), "REPORTS_TEST_AGAIN=1 MIMALLOC_SHOW_HARDENING=1 '%s' 2>&1", line);
  FILE* const f = popen(command, "r");
  MI_REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f) != NULL) {
    sealed = sealed || strstr(line, ": hardening: configuration: sealed\n") != NULL;
  }
  MI_CHECK_EQ(pclose(f), 0);
  MI_CHECK(sealed);
}

__attribute__((constructor)) static void reports_test_again(void) {
  if (getenv("REPORTS_TEST_AGAIN") != NULL) {
    _exit(0);
  }
}

MI_TEST_MAIN()
