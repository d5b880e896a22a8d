// Owns: a block of a plugin with another malloc (RTLD_DEEPBIND), freed by the program: told by name, and gone on with where policy allows.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt: deepbind PLUGIN.
// Invariants: the plugin's own frees of its own blocks are nobody's business.
// Flags: -ldl -fno-builtin
#define _GNU_SOURCE 1
#include <dlfcn.h>

#include "test/lib/test.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    mi_test_say("usage: deepbind PLUGIN");
    return 2;
  }
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  if (plugin == NULL) {
    mi_test_say("%s", dlerror());
    return 1;
  }
  char* (*word)(void) = (char* (*)(void))(uintptr_t)dlsym(plugin, "plugin_word");
  void (*take_back)(char*) = (void (*)(char*))(uintptr_t)dlsym(plugin, "plugin_take_back");
  MI_REQUIRE(word != NULL && take_back != NULL);
  take_back(word());
  char* p = word();
  MI_CHECK_STREQ(p, "from the plugin");
  printf("pointer %p\n", (void*)p);
  fflush(stdout);
  free(p);
  // Still here: both allocators are whole.
  MI_CHECK_STREQ(p, "from the plugin");
  take_back(p);
  for (size_t n = 1; n < 3000000; n *= 3) free(malloc(n));
  return mi_test_status();
}
