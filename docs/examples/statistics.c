// The table of statistics, line by line to a function of the program.
#include <stdio.h>
#include <string.h>

#include "mimalloc.h"

static void count_lines(const char* msg, void* arg) {
  for (const char* p = msg; (p = strchr(p, '\n')) != NULL; p++) ++*(int*)arg;
}

int main(void) {
  mi_stats_reset();  // from here on
  void* blocks[100];
  for (int i = 0; i < 100; i++) blocks[i] = mi_malloc(10000);
  mi_stats_merge();  // what this thread has counted itself
  int lines = 0;
  mi_stats_print_out(count_lines, &lines);
  printf("%d lines\n", lines);
  for (int i = 0; i < 100; i++) mi_free(blocks[i]);
  return lines > 5 ? 0 : 1;
}
