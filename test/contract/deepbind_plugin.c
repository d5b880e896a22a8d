// Owns: a shared object that is opened with RTLD_DEEPBIND, so that its malloc is the C library's, whatever is preloaded.
// May include: the C library.
// Called by: test/contract/deepbind.c.
// Invariants: what it hands out is not from the allocator under test.
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) char* plugin_word(void);
__attribute__((visibility("default"))) void plugin_take_back(char* word);

char* plugin_word(void) {
  char* const word = malloc(100);
  if (word != NULL) {
    strcpy(word, "from the plugin");
  }
  return word;
}

void plugin_take_back(char* word) { free(word); }
