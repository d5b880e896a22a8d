// What a program has not freed when a request ends.
#include <stdio.h>

#include "mimalloc.h"

typedef struct count_s {
  size_t blocks;
  size_t bytes;
} count_t;

static bool count(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  count_t* const total = arg;
  (void)heap;
  (void)area;
  if (block != NULL) {  // NULL: a new area begins
    total->blocks++;
    total->bytes += size;
  }
  return true;  // go on
}

int main(void) {
  mi_heap_t* const request = mi_heap_new();
  if (request == NULL) return 1;
  void* blocks[100];
  for (size_t i = 0; i < 100; i++) blocks[i] = mi_heap_malloc(request, 100 * i);
  for (size_t i = 0; i < 90; i++) mi_free(blocks[i]);
  count_t total = {0, 0};
  mi_heap_visit_blocks(request, true, &count, &total);
  printf("%zu blocks of %zu bytes are left\n", total.blocks, total.bytes);
  mi_heap_destroy(request);
  return total.blocks == 10 ? 0 : 1;
}
