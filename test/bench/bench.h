// Owns: what the workloads share: the random numbers, size mixes, content marks, the table row of a workload.
// May include: libc only; the program is linked against no allocator, so that any can be preloaded.
// Called by: every file of test/bench.
// Invariants: fixed seeds and fixed work; nothing here allocates from the heap; a wrong byte ends the run with status 2.
#pragma once

#define _GNU_SOURCE 1
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// A workload does its fixed work, multiplied by `scale` percent, and returns a checksum that depends on the work only.
typedef struct workload_s {
  const char* name;
  uint64_t (*run)(unsigned scale);
  const char* what;
} workload_t;

// Tables of the files, each ended by a row without a name.
extern const workload_t churn_workloads[];
extern const workload_t thread_workloads[];
extern const workload_t block_workloads[];
extern const workload_t shape_workloads[];
extern const workload_t memory_workloads[];
extern const workload_t crowd_workloads[];
extern const workload_t course_workloads[];

// `bench @run`, `bench @spawn` and `bench @trace`, see launch.c and trace.c.
int launch_main(int argc, char** argv);
int spawn_main(int argc, char** argv);
int trace_main(int argc, char** argv);

_Noreturn void die(const char* why);
void report_rss(const char* label, size_t live_bytes);  // a line "rss <label> <KiB> live <KiB>" if --rss was given

// A line "latency <call> <p50> <p99> <p99.99> <worst> <worst in which the system had the thread>", in ns, if --rss was given.
void report_latency(const char* call, uint64_t p50, uint64_t p99, uint64_t p9999, uint64_t worst, uint64_t worst_with_system);

static inline size_t scaled(size_t count, unsigned scale, size_t least) {
  size_t n = count * scale / 100;
  return n < least ? least : n;
}

// ---- random numbers: a counter passed through a multiply-xorshift finisher; good enough to pick slots, and cheap ----
typedef struct rng_s {
  uint64_t state;
} rng_t;

static inline uint64_t mix64(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  return x;
}

static inline uint64_t rng_next(rng_t* r) {
  r->state += 0x9e3779b97f4a7c15u;
  return mix64(r->state);
}

static inline size_t rng_below(rng_t* r, size_t bound) {  // bound < 2^32
  return (size_t)(((rng_next(r) & 0xffffffffu) * (uint64_t)bound) >> 32);
}

// ---- size mixes: drawn ahead into a table, so that drawing costs one load while the workload runs ----
enum { MIX_COUNT = 4096 };
typedef struct size_mix_s {
  uint32_t size[MIX_COUNT];
} size_mix_t;

void mix_uniform(size_mix_t* mix, size_t low, size_t high);      // every size of [low, high] alike
void mix_log_uniform(size_mix_t* mix, size_t low, size_t high);  // every doubling alike; low and high are powers of two
size_t draw_log_uniform(rng_t* r, size_t low, size_t high);

static inline size_t mix_draw(const size_mix_t* mix, uint64_t random) {
  return mix->size[random & (MIX_COUNT - 1)];
}

// ---- blocks: the compiler must not pair malloc with free and drop both ----
static inline void* keep(void* p) {
  __asm__ volatile(""
                   : "+r"(p)
                   :
                   : "memory");
  return p;
}

static inline void* must_malloc(size_t size) {
  void* p = keep(malloc(size));
  if (p == NULL) die("malloc returned NULL");
  return p;
}

// A mark is eight bytes at the start and one at the end: what a program writes into a small block, and what shows overlapping blocks. Size >= 9.
static inline void mark(void* p, size_t size, uint64_t tag) {
  __builtin_memcpy(p, &tag, sizeof(tag));
  ((unsigned char*)p)[size - 1] = (unsigned char)tag;
}

static inline void check(const void* p, size_t size, uint64_t tag) {
  uint64_t found;
  __builtin_memcpy(&found, p, sizeof(found));
  if (found != tag || ((const unsigned char*)p)[size - 1] != (unsigned char)tag) die("a block has lost its content");
}

static inline void checked_free(void* p, size_t size, uint64_t tag) {
  check(p, size, tag);
  free(p);
}
