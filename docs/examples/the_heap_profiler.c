// Where what lives was allocated: a profile of each allocation, read by the program itself.
#include <stdio.h>

#include "mimalloc.h"

static bool show(const mi_prof_sample_info_t* info, void* arg) {
  printf("%zu blocks of %zu bytes together, by %zu calls\n", info->live_objects, info->live_bytes, info->depth);
  *(size_t*)arg += info->live_bytes;
  return true;
}

int main(void) {
  if (!mi_prof_start(1)) return 1;  // each allocation; 0 takes one in 512 KiB
  void* blocks[100];
  for (int i = 0; i < 100; i++) blocks[i] = mi_malloc(100);
  size_t bytes = 0;
  const bool visited = mi_prof_visit(show, &bytes);
  for (int i = 0; i < 100; i++) mi_free(blocks[i]);
  mi_prof_stop();
  return visited && bytes >= 100 * 100 ? 0 : 1;
}
