// A buffer that uses all of the block that it gets, and counts what it holds.
#include <stdio.h>
#include <string.h>

#include "mimalloc.h"

int main(void) {
  size_t held = 0;
  size_t size;
  char* buffer = mi_umalloc(100, &size);  // size: what may be used, 100 or more
  if (buffer == NULL) return 1;
  held += size;
  memset(buffer, 'x', size);

  size_t before, after;
  char* const larger = mi_urealloc(buffer, 3 * size, &before, &after);
  if (larger == NULL) return 1;
  held = held - before + after;
  printf("%zu bytes, then %zu\n", before, after);

  mi_ufree(larger, &size);
  held -= size;
  return held == 0 ? 0 : 1;
}
