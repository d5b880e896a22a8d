// Owns: a program of somebody else: uses malloc and the interface, and says whether both are ours.
// May include: the installed headers only.
// Called by: CMakeLists.txt and Makefile here, for install_test.py.
// Invariants: prints "ours" and returns 0, or says what is not.
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* volatile plain = malloc(100);
  char* const named = mi_strdup("named");
  if (plain == NULL || named == NULL || strcmp(named, "named") != 0 || mi_version() != MI_MALLOC_VERSION) {
    return 1;
  }
  if (!mi_is_in_heap_region(plain) || !mi_is_in_heap_region(named)) {
    puts("malloc is not ours");
    return 1;
  }
  mi_free(named);
  free(plain);
  puts("ours");
  return 0;
}
