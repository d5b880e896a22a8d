// Owns: a set-uid program ignores every environment variable of ours, and an ordinary one honours them (the control).
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt: at_secure LIBRARY secure|plain.
// Invariants: the loader ignores LD_PRELOAD for a set-uid program, so the library is opened by its path.
// Flags: -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <sys/auxv.h>

#include "test/lib/test.h"

enum { SHOW_ERRORS = 0,
       SHOW_STATS = 1,
       VERBOSE = 2,
       PURGE_DELAY = 15,
       MAX_ERRORS = 19 };

int main(int argc, char** argv) {
  if (argc < 3) {
    mi_test_say("usage: at_secure LIBRARY secure|plain");
    return 2;
  }
  const bool want_secure = (strcmp(argv[2], "secure") == 0);
  mi_test_current = argv[2];
  MI_CHECK_EQ(getauxval(AT_SECURE) != 0, want_secure);
  void* h = dlopen(argv[1], RTLD_NOW);
  if (h == NULL) {
    mi_test_say("%s", dlerror());
    return 1;
  }
  long (*option_get)(int) = (long (*)(int))(uintptr_t)dlsym(h, "mi_option_get");
  void* (*alloc)(size_t) = (void* (*)(size_t))(uintptr_t)dlsym(h, "mi_malloc");
  MI_REQUIRE(option_get != NULL && alloc != NULL);
  MI_CHECK(alloc(100) != NULL);
  // The row sets MIMALLOC_PURGE_DELAY=77 and MIMALLOC_MAX_ERRORS=5 in the environment, in two spellings.
  MI_REQUIRE(getenv("MIMALLOC_PURGE_DELAY") != NULL);
  if (want_secure) {
    MI_CHECK_EQ(option_get(PURGE_DELAY), 1000);
    MI_CHECK_EQ(option_get(MAX_ERRORS), 32);
    MI_CHECK_EQ(option_get(SHOW_STATS), 0);
    MI_CHECK_EQ(option_get(VERBOSE), 0);
  } else {
    MI_CHECK_EQ(option_get(PURGE_DELAY), 77);
    MI_CHECK_EQ(option_get(MAX_ERRORS), 5);
  }
  return mi_test_status();
}
