// A table of a tool that observes the heap, and so must not change it.
#include <stdio.h>

#include "mimalloc.h"

int main(void) {
  size_t entries = 100;
  size_t* table = mi_unwrapped_malloc(entries * sizeof(*table), 0);
  if (table == NULL) return 1;
  table[99] = 7;
  entries *= 100;
  size_t* const larger = mi_unwrapped_realloc(table, entries * sizeof(*table), 0);
  if (larger == NULL) {
    mi_unwrapped_free(table);
    return 1;
  }
  printf("%zu\n", larger[99]);
  mi_unwrapped_free(larger);
  return 0;
}
