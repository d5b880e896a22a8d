// Owns: workloads that are watched as they run: memory over the course of a load, fragmentation in the long run, the time of each call.
// May include: slots.h, libc.
// Called by: main.c through course_workloads.
// Invariants: what is watched goes to lines of its own, and the checksum depends on the work only.
#include "slots.h"

#include <sys/resource.h>
#include <time.h>

static void free_all(void) {
  for (size_t k = 0; k < SLOTS; k++) slot_free(k);
}

// ---- the course of a day: a load rises to two peaks, the second lower and of other sizes, with lulls of little work ----
typedef struct wave_s {
  size_t peak, low, high;
  const char* labels[5];
} wave_t;

static void day_lull(rng_t* r, unsigned milliseconds) {
  const struct timespec one_ms = {0, 1000000};
  for (unsigned i = 0; i < milliseconds; i++) {
    slot_fill(rng_below(r, 64), 16 + rng_below(r, 2000));
    nanosleep(&one_ms, NULL);
  }
}

static uint64_t day_wave(rng_t* r, const wave_t* wave, unsigned lull_ms) {
  const size_t peak = wave->peak;
  uint64_t sum = 0;
  while (live < peak / 2) slot_fill(rng_below(r, SLOTS), draw_log_uniform(r, wave->low, wave->high));
  report_rss(wave->labels[0], live);
  while (live < peak) slot_fill(rng_below(r, SLOTS), draw_log_uniform(r, wave->low, wave->high));
  report_rss(wave->labels[1], live);
  sum += live;
  for (size_t k = 0; k < SLOTS; k++) {
    if (rng_below(r, 8) != 0) slot_free(k);
  }
  report_rss(wave->labels[2], live);
  for (size_t k = 0; k < SLOTS; k++) {
    if (rng_below(r, 16) != 0) slot_free(k);
  }
  day_lull(r, lull_ms);
  report_rss(wave->labels[3], live);
  day_lull(r, lull_ms);
  report_rss(wave->labels[4], live);
  return sum + live;
}

static uint64_t day(unsigned scale) {
  const unsigned lull_ms = (unsigned)scaled(700, scale, 10);
  rng_t r = {701};
  live = 0;
  const wave_t morning = {scaled(64u << 20, scale, 1u << 20), 16, 16384, {"rising", "peak", "fallen", "lull", "lull-later"}};
  const wave_t evening = {scaled(32u << 20, scale, 1u << 19), 64, 4096, {"rising-again", "second-peak", "fallen-again", "second-lull", "second-lull-later"}};
  uint64_t sum = day_wave(&r, &morning, lull_ms);
  sum += day_wave(&r, &evening, lull_ms);
  free_all();
  return sum;
}

// ---- the long run: random replacement while the mix of sizes goes up and down slowly. 10^9 steps are a scale of 10000 ----
static uint64_t long_run(unsigned scale) {
  enum { PARTS = 4,
         DOUBLINGS = 8,
         FINE = 256 };
  const size_t budget = 16u << 20;
  const size_t steps = scaled(10000000, scale, 100000);
  const size_t wave = steps < 4000000 ? steps : 4000000;  // up and down once
  static const char* const labels[PARTS] = {"1-of-4", "2-of-4", "3-of-4", "4-of-4"};
  rng_t r = {702};
  uint64_t sum = 0;
  live = 0;
  for (size_t step = 0; step < steps; step++) {
    size_t at = step % wave * 2;
    at = (at < wave ? at : 2 * wave - at) * DOUBLINGS * FINE / wave;
    size_t low = (size_t)16 << (at / FINE);
    low += low * (at % FINE) / FINE;
    size_t size = low + rng_below(&r, low * 3);
    slot_fill(rng_below(&r, SLOTS), size);
    while (live > budget) slot_free(rng_below(&r, SLOTS));
    sum += size ^ live;
    if ((step + 1) % (steps / PARTS) == 0 && (step + 1) / (steps / PARTS) <= PARTS) report_rss(labels[(step + 1) / (steps / PARTS) - 1], live);
  }
  free_all();
  return sum;
}

// ---- latency: each call by itself. Calls of 10^8 steps are a scale of 1000 ----
enum { BUCKETS = 64 * 16 };  // sixteen to a doubling of nanoseconds

typedef struct latency_s {
  uint64_t count[BUCKETS];
  uint64_t worst, worst_with_system;
  struct rusage last;
} latency_t;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t bucket_of(uint64_t ns) {
  const unsigned top = 63 - (unsigned)__builtin_clzll(ns | 16);
  return (size_t)(top - 4) * 16 + (size_t)(ns >> (top - 4));
}

static uint64_t bucket_end(size_t bucket) {
  return bucket < 32 ? bucket : (uint64_t)(16 + bucket % 16 + 1) << (bucket / 16 - 1);
}

// Whether the system had this thread meanwhile, by a fault or by another thread: the kernel's own counts say.
static bool system_was_here(latency_t* l) {
  struct rusage now;
  getrusage(RUSAGE_THREAD, &now);
  const bool was = now.ru_minflt != l->last.ru_minflt || now.ru_majflt != l->last.ru_majflt || now.ru_nvcsw != l->last.ru_nvcsw ||
      now.ru_nivcsw != l->last.ru_nivcsw || now.ru_stime.tv_sec != l->last.ru_stime.tv_sec || now.ru_stime.tv_usec != l->last.ru_stime.tv_usec;
  getrusage(RUSAGE_THREAD, &l->last);
  return was;
}

static void latency_note(latency_t* l, uint64_t ns) {
  if (ns > 1000 && system_was_here(l)) {
    if (ns > l->worst_with_system) l->worst_with_system = ns;
    return;
  }
  l->count[bucket_of(ns)]++;
  if (ns > l->worst) l->worst = ns;
}

static uint64_t latency_share(const latency_t* l, unsigned per_million) {
  uint64_t all = 0;
  for (size_t b = 0; b < BUCKETS; b++) all += l->count[b];
  uint64_t below = 0;
  for (size_t b = 0; b < BUCKETS; b++) {
    below += l->count[b];
    if (below * 1000000 >= all * per_million) return bucket_end(b);
  }
  return 0;
}

static void latency_report(const char* call, const latency_t* l) {
  report_latency(call, latency_share(l, 500000), latency_share(l, 990000), latency_share(l, 999900), l->worst, l->worst_with_system);
}

static uint64_t latency(unsigned scale) {
  static latency_t of_malloc, of_free;
  static size_mix_t mix;
  const size_t steps = scaled(10000000, scale, 20000);
  rng_t r = {703};
  uint64_t sum = 0;
  live = 0;
  mix_log_uniform(&mix, 16, 2048);
  getrusage(RUSAGE_THREAD, &of_malloc.last);
  of_free.last = of_malloc.last;
  for (size_t i = 0; i < steps; i++) {
    const uint64_t random = rng_next(&r);
    const size_t k = (random >> 32) % SLOTS;
    const size_t size = mix_draw(&mix, random);
    sum += size ^ random;
    const uint64_t start = now_ns();
    void* const p = must_malloc(size);
    const uint64_t middle = now_ns();
    latency_note(&of_malloc, middle - start);
    void* const old = block[k];
    if (old != NULL) check(old, size_of[k], k);
    const uint64_t before = now_ns();
    free(keep(old));
    const uint64_t end = now_ns();
    if (old != NULL) latency_note(&of_free, end - before);
    block[k] = p;
    size_of[k] = (uint32_t)size;
    mark(p, size, k);
  }
  latency_report("malloc", &of_malloc);
  latency_report("free", &of_free);
  for (size_t k = 0; k < SLOTS; k++) free(block[k]);
  return sum;
}

const workload_t course_workloads[] = {
    {"day", day, "a load that rises to 64 and to 32 MiB, falls each time, and does next to nothing for 1.4 s"},
    {"long-run", long_run, "10^7 random replacements under 16 MiB while the sizes wander between 16 B and 16 KiB"},
    {"latency", latency, "10^7 pairs of malloc and free of 16 B-2 KiB, each call timed"},
    {NULL, NULL, NULL},
};
