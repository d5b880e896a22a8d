// Owns: the statistics functions.
// May include: sys, mimalloc.h.
// Called by: programs.
// Invariants: the figures are counted for the process at once; no thread keeps counts of its own that would have to be
// merged first.
#include "mimalloc.h"
#include "src/sys/stats.h"

void mi_stats_print_out(mi_output_fun* out, void* arg) { _mi_stats_print(out, arg); }

void mi_stats_print(void* out) {
  (void)out;
  _mi_stats_print(NULL, NULL);
}

void mi_stats_reset(void) { _mi_stats_reset(); }
void mi_stats_merge(void) {}
void mi_thread_stats_print_out(mi_output_fun* out, void* arg) { _mi_stats_print(out, arg); }
