// Everything that belongs to a request lives in a heap of its own, and goes with it.
#include <stdio.h>

#include "mimalloc.h"

typedef struct node_s {
  struct node_s* next;
  char* name;
} node_t;

static node_t* parse(mi_heap_t* heap, int count) {
  node_t* list = NULL;
  for (int i = 0; i < count; i++) {
    node_t* const node = mi_heap_malloc(heap, sizeof(node_t));
    if (node == NULL) return NULL;
    node->next = list;
    node->name = mi_heap_strdup(heap, "a name");
    list = node;
  }
  return list;
}

int main(void) {
  mi_heap_t* const request = mi_heap_new();
  if (request == NULL) return 1;
  node_t* const list = parse(request, 1000);
  char* const answer = mi_strdup(list == NULL ? "failed" : list->name);  // not of the request: it stays
  mi_heap_destroy(request);                                              // frees all 2000 blocks at once
  printf("answer: %s\n", answer == NULL ? "?" : answer);
  mi_free(answer);

  mi_heap_t* const session = mi_heap_new();
  char* const result = mi_heap_strdup(session, "result");
  mi_heap_delete(session);  // ends the heap and keeps its blocks, which are the main heap's from now on
  printf("result: %s\n", result == NULL ? "?" : result);
  mi_free(result);
  return 0;
}
