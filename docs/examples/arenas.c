// A game keeps each level in memory of its own: reserved once, never shared, and given up as a whole.
#include <stdio.h>
#include <string.h>

#include "mimalloc.h"

int main(void) {
  mi_arena_id_t level;
  if (mi_reserve_os_memory_ex((size_t)16 << 20, false, false, true, &level) != 0) return 1;  // exclusive: for no other block

  size_t size;
  void* const start = mi_arena_area(level, &size);
  printf("%zu KiB, in whole slices of %zu KiB: %s\n", size / 1024, mi_arena_min_alignment() / 1024,
         mi_arena_contains(level, start) ? "yes" : "no");

  // Memory of the program's own, for all blocks. It is never unmapped, and must stay what it is.
  static char pool[1 << 20];
  if (!mi_manage_os_memory(pool, sizeof(pool), true, false, true, -1)) return 1;

  // Two pages of 1 GiB on each of two nodes, in at most a tenth of a second. Few machines have them: then a warning says so.
  const int missing = mi_reserve_huge_os_pages_interleave(4, 2, 100);
  printf("huge pages: %s\n", missing == 0 ? "some" : strerror(missing));

  mi_arenas_print();
  return 0;
}
