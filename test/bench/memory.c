// Owns: workloads whose point is resident memory: fragmentation under a drifting size mix, and the return of memory after a peak.
// May include: slots.h, libc.
// Called by: main.c through memory_workloads.
// Invariants: the live bytes are counted by the workload itself and stand beside every resident figure.
#include "slots.h"

#include <time.h>

// The mix is a window of two doublings which wanders from 16 B up to 8 KiB and back over the whole run: holes left by one mix have to serve the next.
static size_t drifting_size(rng_t* r, size_t step, size_t steps) {
  size_t way = step * 2 < steps ? step * 2 : (steps - step) * 2;  // 0 .. steps .. 0
  size_t at = way * 7 * 256 / steps;                              // 256 parts a doubling, 7 doublings
  size_t low = (size_t)16 << (at / 256);
  low += low * (at % 256) / 256;
  return low + rng_below(r, low * 3);
}

static uint64_t fragment(unsigned scale) {
  const size_t budget = 24u << 20;
  size_t steps = scaled(1500000, scale, 50000);
  rng_t r = {501};
  uint64_t sum = 0;
  live = 0;
  for (size_t step = 0; step < steps; step++) {
    size_t size = drifting_size(&r, step, steps);
    slot_fill(rng_below(&r, SLOTS), size);
    while (live > budget) slot_free(rng_below(&r, SLOTS));
    sum += size ^ live;
    if (step == steps / 2) report_rss("widest", live);
  }
  report_rss("after-drift", live);
  for (size_t k = 0; k < SLOTS; k++) {
    if (k % 16 != 0) slot_free(k);
  }
  report_rss("freed-15/16", live);
  for (size_t k = 0; k < SLOTS; k++) slot_free(k);
  report_rss("freed-all", live);
  return sum;
}

static void idle_with_little_work(rng_t* r, unsigned milliseconds) {
  const struct timespec one_ms = {0, 1000000};
  for (unsigned i = 0; i < milliseconds; i++) {
    slot_fill(rng_below(r, 64), 16 + rng_below(r, 2000));
    nanosleep(&one_ms, NULL);
  }
}

// A server-like load rises to 64 MiB of mixed blocks, falls to a thin random rest, and idles with one allocation a millisecond.
static uint64_t rise_and_fall(unsigned scale) {
  const size_t peak = scaled(64u << 20, scale, 1u << 20);
  const unsigned idle_ms = (unsigned)scaled(1500, scale, 20);
  rng_t r = {502};
  live = 0;
  size_t used = 0;
  while (live < peak && used < SLOTS) slot_fill(used++, draw_log_uniform(&r, 16, 32768));
  uint64_t sum = live ^ used;
  report_rss("peak", live);
  for (size_t k = 0; k < used; k++) {
    if (rng_below(&r, 256) != 0) slot_free(k);
  }
  sum += live;
  report_rss("fallen", live);
  idle_with_little_work(&r, idle_ms);
  report_rss("idled", live);
  sum += live;
  for (size_t k = 0; k < SLOTS; k++) slot_free(k);
  return sum;
}

const workload_t memory_workloads[] = {
    {"fragment", fragment, "random replacement under 24 MiB while the size mix drifts from 16 B to 8 KiB and back"},
    {"rise-and-fall", rise_and_fall, "64 MiB of mixed blocks, freed but for 1 in 256, then 1.5 s of almost nothing"},
    {NULL, NULL, NULL},
};
