// A thread that allocates much from one heap looks for its part of it once.
#include <stdio.h>

#include "mimalloc.h"

int main(void) {
  mi_heap_t* const heap = mi_heap_new();
  if (heap == NULL) return 1;
  mi_theap_t* const theap = mi_heap_theap(heap);
  size_t total = 0;
  for (size_t i = 0; i < 1000; i++) {
    char* const p = mi_theap_zalloc(theap, 16 + i);
    if (p == NULL) return 1;
    total += mi_usable_size(p);
  }
  printf("1000 blocks of %zu bytes\n", total);

  // For a while, malloc and new of this thread allocate from that heap, too.
  mi_theap_t* const before = mi_theap_set_default(theap);
  void* const p = mi_malloc(100);
  mi_theap_set_default(before);
  printf("from the heap: %s\n", mi_heap_contains(heap, p) ? "yes" : "no");
  mi_heap_destroy(heap);  // with all of its blocks, and its theaps
  return 0;
}
