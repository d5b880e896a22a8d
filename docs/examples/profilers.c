// Where the blocks of one heap are allocated: a profiler for it alone, whose file `go tool pprof` reads.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mimalloc-profile.h"

int main(void) {
  char folder[] = "/tmp/profilers.XXXXXX";
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 1;
  mi_heap_t* heap = mi_heap_new();
  // Each allocation (0 takes one in 512 KiB); into one.<process>.0001.pb and so on; none of them by itself.
  mi_profiler_t* profiler = mi_pprof_profiler_new(1, "one", 0, 0, 0);
  if (profiler == NULL || !mi_heap_profile(heap, profiler) || !mi_profiler_start(profiler)) return 1;
  for (int i = 0; i < 100; i++) {
    if (mi_heap_malloc(heap, 100) == NULL) return 1;
  }
  const bool written = mi_profiler_snapshot(profiler);
  mi_pprof_profiler_delete(profiler);
  mi_heap_destroy(heap);
  char path[64];
  snprintf(path, sizeof(path), "one.%d.0001.pb", (int)getpid());
  return written && unlink(path) == 0 && rmdir(folder) == 0 ? 0 : 1;
}
