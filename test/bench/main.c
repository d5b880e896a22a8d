// Owns: the command line of the bench program, the table of all workloads, size mixes and memory figures.
// May include: bench.h, libc.
// Called by: run.py, bench_smoke_test.py, or a person: bench <workload> [scale in percent] [--rss].
// Invariants: prints one line "checksum <workload> <hex>" and nothing else, except rss lines where asked for.
#include "bench.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool want_rss;

_Noreturn void die(const char* why) {
  (void)!write(2, "bench: ", 7);
  (void)!write(2, why, strlen(why));
  (void)!write(2, "\n", 1);
  _exit(2);
}

static size_t current_rss_kib(void) {
  char text[128];
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = 0;
  const char* second = strchr(text, ' ');
  return second == NULL ? 0 : strtoul(second + 1, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

void report_rss(const char* label, size_t live_bytes) {
  if (!want_rss) return;
  char line[128];  // no stdio: its buffer would be one more block
  int length = snprintf(line, sizeof(line), "rss %s %zu live %zu\n", label, current_rss_kib(), live_bytes / 1024);
  (void)!write(1, line, (size_t)length);
}

void report_latency(const char* call, uint64_t p50, uint64_t p99, uint64_t p9999, uint64_t worst, uint64_t worst_with_system) {
  if (!want_rss) return;
  char line[192];
  int length = snprintf(line, sizeof(line), "latency %s %llu %llu %llu %llu %llu\n", call, (unsigned long long)p50, (unsigned long long)p99,
                        (unsigned long long)p9999, (unsigned long long)worst, (unsigned long long)worst_with_system);
  (void)!write(1, line, (size_t)length);
}

void mix_uniform(size_mix_t* mix, size_t low, size_t high) {
  rng_t r = {low * 31 + high};
  for (size_t i = 0; i < MIX_COUNT; i++) mix->size[i] = (uint32_t)(low + rng_below(&r, high - low + 1));
}

size_t draw_log_uniform(rng_t* r, size_t low, size_t high) {
  unsigned doublings = (unsigned)(__builtin_ctzll(high) - __builtin_ctzll(low));
  size_t from = low << rng_below(r, doublings);
  return from + rng_below(r, from) + 1;  // (from, 2 * from]
}

void mix_log_uniform(size_mix_t* mix, size_t low, size_t high) {
  rng_t r = {low * 37 + high};
  for (size_t i = 0; i < MIX_COUNT; i++) mix->size[i] = (uint32_t)draw_log_uniform(&r, low, high);
}

static const workload_t* const tables[] = {churn_workloads, thread_workloads, block_workloads, shape_workloads, memory_workloads,
                                           crowd_workloads, course_workloads};
enum { TABLE_COUNT = sizeof(tables) / sizeof(tables[0]) };

static int list(void) {
  for (size_t t = 0; t < TABLE_COUNT; t++) {
    for (const workload_t* w = tables[t]; w->name != NULL; w++) printf("%s\t%s\n", w->name, w->what);
  }
  return 0;
}

// Names the object that malloc comes from, so that the runner knows that its preload took.
static int which_malloc(void) {
  Dl_info info;
  void* (*volatile function)(size_t) = &malloc;
  if (dladdr((void*)(uintptr_t)function, &info) == 0 || info.dli_fname == NULL) return 1;
  printf("%s\n", info.dli_fname);
  return 0;
}

// What a process holds that has done nothing but start: the kernel's exact sums, where ru_maxrss is a rough one.
static int resident(void) {
  static char text[4096];
  int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
  if (got <= 0) return 1;
  return write(1, text, (size_t)got) == got ? 0 : 1;
}

int main(int argc, char** argv) {
  unsigned scale = 100;
  if (argc < 2) {
    fprintf(stderr, "usage: bench <workload> [scale in percent] [--rss] | --list | --malloc | --resident | --one | @run ... | @spawn ... | @trace ...\n");
    return 1;
  }
  if (strcmp(argv[1], "--list") == 0) return list();
  if (strcmp(argv[1], "--malloc") == 0) return which_malloc();
  if (strcmp(argv[1], "--resident") == 0) return resident();
  if (strcmp(argv[1], "--one") == 0) return must_malloc(100) == NULL;
  if (strcmp(argv[1], "@run") == 0) return launch_main(argc - 2, argv + 2);
  if (strcmp(argv[1], "@spawn") == 0) return spawn_main(argc - 2, argv + 2);
  if (strcmp(argv[1], "@trace") == 0) return trace_main(argc - 2, argv + 2);
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--rss") == 0) want_rss = true;
    else scale = (unsigned)strtoul(argv[i], NULL, 10);
  }
  if (scale == 0) die("the scale is a whole percentage above 0");
  for (size_t t = 0; t < TABLE_COUNT; t++) {
    for (const workload_t* w = tables[t]; w->name != NULL; w++) {
      if (strcmp(w->name, argv[1]) != 0) continue;
      uint64_t sum = w->run(scale);
      char line[128];
      int length = snprintf(line, sizeof(line), "checksum %s %016llx\n", w->name, (unsigned long long)sum);
      return write(1, line, (size_t)length) == length ? 0 : 1;
    }
  }
  die("no such workload; --list names them");
}
