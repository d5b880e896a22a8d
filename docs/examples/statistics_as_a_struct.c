// What a server reports of itself: figures for a check of its own, and JSON for whoever collects it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mimalloc-stats.h"

int main(void) {
  void* blocks[100];
  for (int i = 0; i < 100; i++) blocks[i] = mi_malloc(1000000);

  mi_stats_t_decl(stats);  // says which layout this program was compiled with
  if (!mi_stats_get(&stats)) return 1;
  printf("%" PRId64 " bytes in large blocks, %" PRId64 " at most\n", stats.malloc_huge.current, stats.malloc_huge.peak);
  const int seen = stats.malloc_huge.current >= INT64_C(100000000) && stats.committed.current <= stats.reserved.current;

  char* const json = mi_stats_get_json(0, NULL);  // into a block of its own
  if (json == NULL) return 1;
  printf("%zu characters of JSON\n", strlen(json));
  const int object = json[0] == '{';
  mi_free(json);

  for (int i = 0; i < 100; i++) mi_free(blocks[i]);
  return seen && object ? 0 : 1;
}
