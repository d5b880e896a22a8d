// Vectors at a multiple of 64 bytes, and a packet whose payload is aligned behind its header.
#include <stdint.h>
#include <stdio.h>

#include "mimalloc.h"

int main(void) {
  float* vector = mi_calloc_aligned(1000, sizeof(float), 64);
  if (vector == NULL) return 1;
  vector = mi_realloc_aligned(vector, 2000 * sizeof(float), 64);  // mi_realloc might lose the alignment
  if (vector == NULL) return 1;
  printf("vector at a multiple of 64: %s\n", (uintptr_t)vector % 64 == 0 ? "yes" : "no");

  enum { HEADER = 14 };
  unsigned char* const packet = mi_malloc_aligned_at(1514, 4096, HEADER);
  if (packet == NULL) return 1;
  const int aligned = (uintptr_t)(packet + HEADER) % 4096 == 0;
  printf("payload at a multiple of 4096: %s\n", aligned ? "yes" : "no");

  mi_free(packet);
  mi_free_aligned(vector, 64);  // or mi_free: the alignment is only checked
  return aligned ? 0 : 1;
}
