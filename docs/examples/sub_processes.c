// Two interpreters in one process, each with a thread. What one has allocated goes with it at once, and never meets the other's.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "mimalloc.h"

static bool count_heap(mi_heap_t* heap, void* arg) {
  (void)heap;
  ++*(int*)arg;
  return true;
}

static void* interpret(void* arg) {
  const mi_subproc_id_t* const id = arg;
  mi_subproc_add_current_thread(*id);
  mi_heap_t* const strings = mi_heap_new();  // a heap of the sub-process
  for (int i = 0; i < 1000; i++) {
    char* const p = mi_malloc(100);  // from the sub-process's main heap
    char* const s = mi_heap_strdup(strings, "a string");
    if (p == NULL || s == NULL) return NULL;
    memset(p, i, 100);
  }
  int heaps = 0;
  (void)mi_subproc_visit_heaps(mi_subproc_current(), count_heap, &heaps);
  printf("%d heaps\n", heaps);
  return NULL;
}

int main(void) {
  mi_subproc_id_t ids[2] = {mi_subproc_new(), mi_subproc_new()};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    if (pthread_create(&threads[i], NULL, interpret, &ids[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    mi_subproc_destroy(ids[i]);  // its heaps with all their blocks
  }
  return 0;
}
