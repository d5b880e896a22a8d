// Owns: a set-uid program ignores every environment variable of ours, and an ordinary one honours them (the control).
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt: at_secure LIBRARY secure|plain.
// Invariants: the loader ignores LD_PRELOAD for a set-uid program, so the library is opened by its path.
// Flags: -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include "test/lib/test.h"

enum { SHOW_ERRORS = 0,
       SHOW_STATS = 1,
       VERBOSE = 2,
       PURGE_DELAY = 15,
       MAX_ERRORS = 19,
       PROF = 54 };

static int look(char** argv, bool want_secure) {
  MI_CHECK_EQ(getauxval(AT_SECURE) != 0, want_secure);
  void* h = dlopen(argv[1], RTLD_NOW);
  if (h == NULL) {
    mi_test_say("%s", dlerror());
    return 1;
  }
  long (*option_get)(int) = (long (*)(int))(uintptr_t)dlsym(h, "mi_option_get");
  void* (*alloc)(size_t) = (void* (*)(size_t))(uintptr_t)dlsym(h, "mi_malloc");
  bool (*profiles)(void) = (bool (*)(void))(uintptr_t)dlsym(h, "mi_prof_is_enabled");
  MI_REQUIRE(option_get != NULL && alloc != NULL && profiles != NULL);
  MI_CHECK(alloc(100) != NULL);
  // The row sets MIMALLOC_PURGE_DELAY=77 and MIMALLOC_MAX_ERRORS=5 in the environment, in two spellings.
  MI_REQUIRE(getenv("MIMALLOC_PURGE_DELAY") != NULL);
  if (want_secure) {
    MI_CHECK_EQ(option_get(PURGE_DELAY), 1000);
    MI_CHECK_EQ(option_get(MAX_ERRORS), 32);
    MI_CHECK_EQ(option_get(SHOW_STATS), 0);
    MI_CHECK_EQ(option_get(VERBOSE), 0);
    MI_CHECK_EQ(option_get(PROF), 0);
    MI_CHECK(!profiles());
  } else {
    MI_CHECK_EQ(option_get(PROF), 1);
    MI_CHECK(profiles());
    MI_CHECK_EQ(option_get(PURGE_DELAY), 77);
    MI_CHECK_EQ(option_get(MAX_ERRORS), 5);
  }
  return mi_test_status();
}

// The look is a child's, so that what is written when a process ends can be looked for.
int main(int argc, char** argv) {
  if (argc < 3) {
    mi_test_say("usage: at_secure LIBRARY secure|plain");
    return 2;
  }
  const bool want_secure = (strcmp(argv[2], "secure") == 0);
  mi_test_current = argv[2];
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    return look(argv, want_secure);
  }
  int status;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid);
  MI_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  // Where the row sets MIMALLOC_PROF_DUMP_AT_EXIT to.
  char profile[64];
  snprintf(profile, sizeof(profile), "/tmp/at_secure_profile.%d", (int)pid);
  MI_CHECK(getenv("MIMALLOC_PROF_DUMP_AT_EXIT") != NULL);
  MI_CHECK_EQ(access(profile, F_OK) != 0, want_secure);
  (void)unlink(profile);
  // And MIMALLOC_PROFILE.
  snprintf(profile, sizeof(profile), "/tmp/at_secure_profiler.%d.0001.pb", (int)pid);
  MI_CHECK(getenv("MIMALLOC_PROFILE") != NULL);
  MI_CHECK_EQ(access(profile, F_OK) != 0, want_secure);
  (void)unlink(profile);
  return mi_test_status();
}
