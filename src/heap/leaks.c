// Owns: the report of blocks that the program has not freed.
// May include: heap, sys.
// Called by: through leaks.h.
// Invariants: one line has one form, which programs may read: docs/reading-a-report.md.
#include "src/heap/leaks.h"

#include "src/heap/visit.h"
#include "src/sys/log.h"

typedef struct mi_leaks_s {
  size_t blocks;
  size_t bytes;
} mi_leaks_t;

static bool mi_leaks_sum(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)heap;
  (void)area;
  mi_leaks_t* const leaks = arg;
  leaks->blocks += block != NULL;
  leaks->bytes += block != NULL ? block_size : 0;
  return true;
}

static bool mi_leaks_show(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)heap;
  (void)area;
  (void)arg;
  if (block != NULL) {
    _mi_log_print_to(NULL, NULL, MI_PROFILE_NAME ": leak: block %p of %zu bytes\n", block, block_size);
  }
  return true;
}

void _mi_leaks_print(void) {
  mi_leaks_t leaks = {0};
  mi_visit_t visit = {.tag = -1, .blocks = true, .visitor = &mi_leaks_sum, .arg = &leaks};
  (void)_mi_visit(&visit);
  _mi_log_print_to(NULL, NULL, MI_PROFILE_NAME ": leaks: %zu blocks, %zu bytes\n", leaks.blocks, leaks.bytes);
  visit.visitor = &mi_leaks_show;
  (void)_mi_visit(&visit);
}
