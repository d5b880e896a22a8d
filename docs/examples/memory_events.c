// A program that watches what it has in use, and looks at what is left.
#include <inttypes.h>
#include <stdio.h>

#include "mimalloc.h"

static void note(const mi_memory_change_t* change, void* arg) {
  uint64_t* const most = arg;
  *most = change->total_bytes > *most ? change->total_bytes : *most;
}

static bool show(void* block, size_t usable_size, void* arg) {
  (void)arg;
  printf("%p: %zu bytes\n", block, usable_size);
  return true;
}

int main(void) {
  uint64_t most = 0;
  const mi_memory_callbacks_t callbacks = {.handlers = {[MI_MEMORY_ALLOCATE] = note, [MI_MEMORY_RESIZE] = note},
                                           .args = {[MI_MEMORY_ALLOCATE] = &most, [MI_MEMORY_RESIZE] = &most}};
  mi_memory_set_callbacks(&callbacks);
  mi_memory_tracking_set_enabled(true);
  char* p = mi_malloc(1000);
  p = mi_realloc(p, 100000);  // one event
  mi_free(p);
  void* const left = mi_malloc(50);
  mi_memory_tracking_set_enabled(false);
  mi_memory_set_callbacks(NULL);
  mi_memory_snapshot_t_decl(now);
  if (!mi_memory_snapshot(&now) || most < 100000) return 1;
  printf("%" PRIu64 " bytes in %" PRIu64 " blocks, %" PRIu64 " bytes at most\n", now.live_bytes, now.live_count, most);
  mi_memory_visit_live_allocations(show, NULL);
  mi_free(left);
  return 0;
}
