// A list whose nodes have one size: the compiler chooses the function for small blocks.
#include <stdio.h>

#include "mimalloc.h"

typedef struct node_s {
  struct node_s* next;
  long value;
} node_t;

int main(void) {
  node_t* list = NULL;
  for (long i = 0; i < 100; i++) {
    node_t* const node = mi_zalloc_csize(sizeof(node_t));
    if (node == NULL) return 1;
    node->next = list;
    node->value = i;
    list = node;
  }
  long sum = 0;
  while (list != NULL) {
    node_t* const next = list->next;
    sum += list->value;
    mi_free_csize_nonnull(list, sizeof(node_t));
    list = next;
  }
  printf("sum %ld, %zu words a node\n", sum, mi_wsize_from_size(sizeof(node_t)));
  return sum == 4950 ? 0 : 1;
}
