// What a program sets for itself, unless whoever runs it has said otherwise in the environment.
#include <stdio.h>

#include "mimalloc.h"

int main(void) {
  mi_option_set_default(mi_option_purge_delay, 100);  // MIMALLOC_PURGE_DELAY of the environment comes first
  printf("unused memory is given back after %ld ms\n", mi_option_get(mi_option_purge_delay));

  mi_option_set(mi_option_arena_max_object_size, 64 * 1024);  // an option of sizes is in KiB
  printf("blocks above %zu bytes get a mapping of their own\n", mi_option_get_size(mi_option_arena_max_object_size));

  mi_option_enable(mi_option_show_errors);
  const bool shown = mi_option_is_enabled(mi_option_show_errors);
  mi_option_disable(mi_option_show_errors);
  return shown && mi_option_get_clamp(mi_option_max_errors, 1, 5) <= 5 ? 0 : 1;
}
