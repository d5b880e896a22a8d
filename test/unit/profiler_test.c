// Owns: tests of profilers: whose blocks they sample, what their files hold, intervals, life, refusals, threads and forks.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the interval of samples is one byte, so that figures are exact; the clock is the test's.
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "mimalloc-profile.h"
#include "src/prim/prim.h"
#include "test/lib/test.h"

static int64_t mi_profiler_test_clock_ms = 1000;

int64_t __wrap__mi_prim_clock_ms(void);
int64_t __wrap__mi_prim_clock_ms(void) { return mi_profiler_test_clock_ms; }

// Files

static char mi_profiler_test_folder[64];
static pid_t mi_profiler_test_owner;

__attribute__((constructor)) static void mi_profiler_test_make_folder(void) {
  snprintf(mi_profiler_test_folder, sizeof(mi_profiler_test_folder), "/tmp/profiler_test.XXXXXX");
  if (mkdtemp(mi_profiler_test_folder) == NULL) {
    abort();
  }
  mi_profiler_test_owner = getpid();
}

__attribute__((destructor)) static void mi_profiler_test_remove_folder(void) {
  if (mi_profiler_test_owner == getpid()) {
    (void)rmdir(mi_profiler_test_folder);
  }
}

static const char* mi_profiler_test_base(const char* name) {
  static char path[128];
  snprintf(path, sizeof(path), "%s/%s", mi_profiler_test_folder, name);
  return path;
}

static const char* mi_profiler_test_file(const char* name, pid_t pid, unsigned number) {
  static char path[192];
  snprintf(path, sizeof(path), "%s.%d.%04u.pb", mi_profiler_test_base(name), (int)pid, number);
  return path;
}

// How many of these there are, one after the other; they go.
static unsigned mi_profiler_test_files(const char* name) {
  unsigned count = 0;
  while (unlink(mi_profiler_test_file(name, getpid(), count + 1)) == 0) {
    count++;
  }
  return count;
}

typedef struct mi_profiler_test_sums_s {
  uint64_t values[4];  // blocks and bytes allocated, blocks and bytes in use
} mi_profiler_test_sums_t;

static uint64_t mi_profiler_test_varint(const uint8_t** at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      return value;
    }
  }
}

// The sums of the samples of a profile: field 2, whose field 2 has the values.
static void mi_profiler_test_add_sample(const uint8_t* at, const uint8_t* end, mi_profiler_test_sums_t* sums) {
  while (at < end) {
    const uint64_t key = mi_profiler_test_varint(&at);
    MI_REQUIRE((key & 7) == 2);
    const uint64_t size = mi_profiler_test_varint(&at);
    const uint8_t* values = at;
    for (size_t i = 0; key >> 3 == 2 && i < 4; i++) {
      sums->values[i] += mi_profiler_test_varint(&values);
    }
    at += size;
  }
}

static mi_profiler_test_sums_t mi_profiler_test_read(const char* path) {
  static uint8_t bytes[1 << 20];
  mi_profiler_test_sums_t sums = {{0}};
  FILE* const file = fopen(path, "rb");
  if (!MI_CHECK_MSG(file != NULL, "%s is not there", path)) {
    return sums;
  }
  const size_t size = fread(bytes, 1, sizeof(bytes), file);
  (void)fclose(file);
  MI_REQUIRE(size > 0 && size < sizeof(bytes));
  const uint8_t* at = bytes;
  while (at < bytes + size) {
    const uint64_t key = mi_profiler_test_varint(&at);
    const uint64_t value = mi_profiler_test_varint(&at);
    if ((key & 7) == 2) {
      if (key >> 3 == 2) {
        mi_profiler_test_add_sample(at, at + value, &sums);
      }
      at += value;
    }
  }
  MI_CHECK(at == bytes + size);
  return sums;
}

// What a profiler has now.
static mi_profiler_test_sums_t mi_profiler_test_look(mi_profiler_t* profiler, const char* name) {
  mi_profiler_test_sums_t sums = {{0}};
  if (MI_CHECK(mi_profiler_snapshot(profiler))) {
    unsigned number = 1;
    while (access(mi_profiler_test_file(name, getpid(), number), R_OK) != 0 && number < 10000) {
      number++;
    }
    sums = mi_profiler_test_read(mi_profiler_test_file(name, getpid(), number));
    MI_CHECK_EQ(unlink(mi_profiler_test_file(name, getpid(), number)), 0);
  }
  return sums;
}

static void mi_profiler_test_expect(mi_profiler_t* profiler, const char* name, uint64_t allocated, uint64_t all_bytes, uint64_t live, uint64_t live_bytes) {
  const mi_profiler_test_sums_t sums = mi_profiler_test_look(profiler, name);
  const uint64_t wanted[4] = {allocated, all_bytes, live, live_bytes};
  for (size_t i = 0; i < 4; i++) {
    MI_CHECK_MSG(sums.values[i] == wanted[i], "%s: value %zu is %llu, not %llu", name, i, (unsigned long long)sums.values[i],
                 (unsigned long long)wanted[i]);
  }
}

static mi_profiler_t* mi_profiler_test_new(const char* name) {
  mi_profiler_t* const profiler = mi_pprof_profiler_new(1, mi_profiler_test_base(name), 0, 0, 0);
  MI_REQUIRE(profiler != NULL);
  return profiler;
}

static void* mi_profiler_test_keep(void* p) {
  __asm__ volatile("" ::"r"(p)
                   : "memory");
  MI_REQUIRE(p != NULL);
  return p;
}

static void mi_profiler_test_fill(mi_heap_t* heap, void** blocks, size_t count, size_t size) {
  for (size_t i = 0; i < count; i++) {
    blocks[i] = mi_profiler_test_keep(mi_heap_malloc(heap, size));
  }
}

static void mi_profiler_test_free(void** blocks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    mi_free(blocks[i]);
  }
}

// Each has the blocks of its heap, and nothing else: until they are freed, resized, or go with their heap.
MI_TEST(heaps_apart) {
  static void* blocks[3][100];
  mi_heap_t* const heaps[2] = {mi_heap_new(), mi_heap_new()};
  mi_profiler_t* const one = mi_profiler_test_new("one");
  mi_profiler_t* const two = mi_profiler_test_new("two");
  MI_CHECK(mi_heap_profile(heaps[0], one) && mi_heap_profile(heaps[1], two));
  mi_profiler_test_fill(heaps[0], blocks[0], 1, 100);
  MI_CHECK(mi_profiler_start(one) && mi_profiler_start(two) && !mi_profiler_start(one));
  mi_free(blocks[0][0]);
  mi_profiler_test_fill(heaps[0], blocks[0], 100, 48);
  mi_profiler_test_fill(heaps[1], blocks[1], 30, 1000);
  mi_profiler_test_fill(NULL, blocks[2], 100, 48);
  mi_profiler_test_expect(one, "one", 100, 4800, 100, 4800);
  mi_profiler_test_expect(two, "two", 30, 30000, 30, 30000);
  mi_profiler_test_free(blocks[0], 40);
  blocks[1][0] = mi_heap_realloc(heaps[1], blocks[1][0], 3000000);
  mi_profiler_test_free(blocks[2], 100);
  mi_profiler_test_expect(one, "one", 100, 4800, 60, 2880);
  mi_profiler_test_expect(two, "two", 31, 3030000, 30, 3029000);
  // What a heap leaves when it is deleted lives on; what goes with it does not. Its successor is in no profile.
  mi_heap_delete(heaps[0]);
  mi_heap_destroy(heaps[1]);
  mi_profiler_test_fill(NULL, blocks[2], 100, 48);
  mi_profiler_test_expect(one, "one", 100, 4800, 60, 2880);
  mi_profiler_test_expect(two, "two", 31, 3030000, 0, 0);
  mi_profiler_test_free(blocks[0] + 40, 60);
  mi_profiler_test_free(blocks[2], 100);
  mi_profiler_test_expect(one, "one", 100, 4800, 0, 0);
  mi_pprof_profiler_delete(one);
  mi_pprof_profiler_delete(two);
}

// A large block that grows in place is its heap's, whichever thread's theap is asked.
MI_TEST(grown) {
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const profiler = mi_profiler_test_new("grown");
  char* block = mi_profiler_test_keep(mi_heap_malloc(heap, 1 << 20));
  MI_CHECK(mi_heap_profile(heap, profiler) && mi_profiler_start(profiler));
  block = mi_profiler_test_keep(mi_heap_realloc(heap, block, 40 << 20));
  void* const other = mi_profiler_test_keep(mi_realloc(mi_malloc(1 << 20), 40 << 20));
  const mi_profiler_test_sums_t sums = mi_profiler_test_look(profiler, "grown");
  MI_CHECK_EQ(sums.values[2], 1);
  MI_CHECK_EQ(sums.values[3], 40 << 20);
  mi_free(block);
  mi_free(other);
  mi_profiler_test_expect(profiler, "grown", 1, sums.values[1], 0, 0);
  mi_pprof_profiler_delete(profiler);
  mi_heap_delete(heap);
}

// All heaps of a sub-process, with those that come later; but not those that have their own, were detached, or are excluded.
MI_TEST(sub_processes) {
  static void* blocks[100];
  mi_heap_t* const own = mi_heap_new();
  mi_heap_t* const none = mi_heap_new();
  mi_heap_t* const detached = mi_heap_new();
  mi_profiler_t* const of_all = mi_profiler_test_new("all");
  mi_profiler_t* const of_own = mi_profiler_test_new("own");
  mi_heap_profile_disable(none);
  MI_CHECK(mi_profiler_start(of_all) && mi_profiler_start(of_own));
  MI_CHECK(mi_heap_profile(own, of_own) && mi_profile(of_all));
  MI_CHECK(mi_heap_profile(detached, NULL));
  mi_heap_t* const later = mi_heap_new();
  mi_heap_t* const all[] = {own, none, detached, later};
  for (size_t i = 0; i < 4; i++) {
    mi_profiler_test_fill(all[i], blocks, 10, 100);
    mi_profiler_test_free(blocks, 10);
  }
  mi_profiler_test_fill(NULL, blocks, 7, 100);
  mi_profiler_test_free(blocks, 7);
  mi_profiler_test_expect(of_all, "all", 17, 1700, 0, 0);
  mi_profiler_test_expect(of_own, "own", 10, 1000, 0, 0);
  // Attached again: what was detached is in, what is excluded is not. While its own is stopped a heap follows that of all.
  MI_CHECK(mi_profile(of_all) && mi_profiler_stop(of_own));
  for (size_t i = 0; i < 4; i++) {
    mi_profiler_test_fill(all[i], blocks, 10, 100);
    mi_profiler_test_free(blocks, 10);
  }
  mi_profiler_test_expect(of_all, "all", 17 + 20, 3700, 0, 0);
  // The profile of the process has the rest, but not what is excluded.
  mi_prof_config_t_decl(config);
  config.sample_interval = 1;
  config.accum = true;
  MI_CHECK(mi_profiler_start(of_own) && mi_profile(NULL) && mi_prof_start_ex(&config));
  for (size_t i = 0; i < 4; i++) {
    mi_profiler_test_fill(all[i], blocks, 10, 100);
    mi_profiler_test_free(blocks, 10);
  }
  mi_prof_stats_t_decl(stats);
  MI_CHECK(mi_prof_stats_get(&stats) && stats.accum_samples == 20 && stats.accum_bytes == 2000);
  mi_prof_stop();
  mi_option_set(mi_option_prof_accum, 0);
  mi_profiler_test_expect(of_all, "all", 17 + 20, 3700, 0, 0);
  mi_profiler_test_expect(of_own, "own", 20, 2000, 0, 0);
  mi_pprof_profiler_delete(of_all);
  mi_pprof_profiler_delete(of_own);
  for (size_t i = 0; i < 4; i++) {
    mi_heap_destroy(all[i]);
  }
}

static void* mi_profiler_test_in_subproc(void* id) {
  mi_subproc_add_current_thread(*(mi_subproc_id_t*)id);
  for (size_t i = 0; i < 5; i++) {
    mi_free(mi_profiler_test_keep(mi_malloc(64)));
  }
  mi_heap_t* const heap = mi_heap_new();
  mi_free(mi_profiler_test_keep(mi_heap_malloc(heap, 64)));
  mi_heap_delete(heap);
  return NULL;
}

MI_TEST(another_sub_process) {
  mi_subproc_id_t id = mi_subproc_new();
  mi_profiler_t* const profiler = mi_profiler_test_new("sub");
  MI_CHECK(mi_subproc_profile(id, profiler) && mi_profiler_start(profiler));
  mi_free(mi_profiler_test_keep(mi_malloc(64)));
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_profiler_test_in_subproc, &id) == 0 && pthread_join(thread, NULL) == 0);
  mi_profiler_test_expect(profiler, "sub", 6, 6 * 64, 0, 0);
  mi_subproc_delete(id);
  MI_CHECK(!mi_subproc_profile(id, profiler));
  mi_pprof_profiler_delete(profiler);
}

// What is sampled stays so when sampling stops, and is noted to be freed.
MI_TEST(stop_and_start) {
  static void* blocks[20];
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const profiler = mi_profiler_test_new("stop");
  MI_CHECK(!mi_profiler_stop(profiler) && mi_heap_profile(heap, profiler) && mi_profiler_start(profiler));
  mi_profiler_test_fill(heap, blocks, 10, 64);
  MI_CHECK(mi_profiler_stop(profiler) && !mi_profiler_stop(profiler));
  mi_profiler_test_fill(heap, blocks + 10, 10, 64);
  mi_profiler_test_free(blocks, 4);
  mi_profiler_test_expect(profiler, "stop", 10, 640, 6, 384);
  MI_CHECK(mi_profiler_start(profiler));
  mi_profiler_test_fill(heap, blocks, 4, 64);
  mi_profiler_test_expect(profiler, "stop", 14, 896, 10, 640);
  mi_profiler_test_free(blocks, 20);
  mi_profiler_test_expect(profiler, "stop", 14, 896, 0, 0);
  mi_pprof_profiler_delete(profiler);
  mi_heap_delete(heap);
}

// One that is gone is none: not for its heaps, nor for whoever still has its address, nor for the next one in its place.
MI_TEST(deleted) {
  static void* blocks[20];
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const gone = mi_profiler_test_new("gone");
  MI_CHECK(mi_heap_profile(heap, gone) && mi_profiler_start(gone));
  mi_profiler_test_fill(heap, blocks, 10, 64);
  mi_pprof_profiler_delete(gone);
  MI_CHECK(!mi_profiler_start(gone) && !mi_profiler_stop(gone) && !mi_profiler_snapshot(gone));
  MI_CHECK(!mi_heap_profile(heap, gone) && !mi_profile(gone));
  mi_pprof_profiler_delete(gone);
  mi_pprof_profiler_delete(NULL);
  mi_profiler_t* const next = mi_profiler_test_new("next");
  MI_CHECK(mi_profiler_start(next));
  mi_profiler_test_fill(heap, blocks + 10, 10, 64);
  mi_profiler_test_free(blocks, 20);
  mi_profiler_test_expect(next, "next", 0, 0, 0, 0);
  mi_pprof_profiler_delete(next);
  mi_heap_delete(heap);
}

// As many as there may be; names that are none.
MI_TEST(limits) {
  enum { MAX = 127 };
  mi_profiler_t* all[MAX];
  for (size_t i = 0; i < MAX; i++) {
    all[i] = mi_profiler_test_new("many");
    MI_CHECK(i == 0 || all[i] != all[i - 1]);
  }
  errno = 0;
  MI_CHECK(mi_pprof_profiler_new(1, "many", 0, 0, 0) == NULL && errno == EAGAIN);
  mi_pprof_profiler_delete(all[50]);
  all[50] = mi_profiler_test_new("many");
  for (size_t i = 0; i < MAX; i++) {
    mi_pprof_profiler_delete(all[i]);
  }
  static char name[1025];
  memset(name, 'x', 1024);
  const char* const names[] = {NULL, "", name};
  for (size_t i = 0; i < 3; i++) {
    errno = 0;
    MI_CHECK(mi_pprof_profiler_new(1, names[i], 0, 0, 0) == NULL && errno == EINVAL);
  }
  MI_CHECK(!mi_profiler_start(NULL) && !mi_profiler_stop(NULL) && !mi_profiler_snapshot(NULL));
  MI_CHECK(!mi_profiler_start((mi_profiler_t*)(void*)name));
}

// A file for so many bytes allocated, for so many more in use than ever before, for so many seconds; none for less.
MI_TEST(intervals) {
  static void* blocks[1000];
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const by_alloc = mi_pprof_profiler_new(1, mi_profiler_test_base("alloc"), 100000, 0, 0);
  MI_REQUIRE(mi_heap_profile(heap, by_alloc) && mi_profiler_start(by_alloc));
  mi_profiler_test_fill(heap, blocks, 99, 1000);
  MI_CHECK_EQ(mi_profiler_test_files("alloc"), 0);
  errno = 77;
  for (size_t i = 0; i < 1000; i++) {
    mi_free(mi_profiler_test_keep(mi_heap_malloc(heap, 1000)));
  }
  MI_CHECK_EQ(errno, 77);
  MI_CHECK_EQ(mi_profiler_test_files("alloc"), 10);
  mi_profiler_test_free(blocks, 99);
  mi_pprof_profiler_delete(by_alloc);

  mi_profiler_t* const by_use = mi_pprof_profiler_new(1, mi_profiler_test_base("use"), 0, 100000, 0);
  MI_REQUIRE(mi_heap_profile(heap, by_use) && mi_profiler_start(by_use));
  for (size_t round = 0; round < 3; round++) {
    mi_profiler_test_fill(heap, blocks, 500, 1000);
    mi_profiler_test_free(blocks, 500);
  }
  MI_CHECK_EQ(mi_profiler_test_files("use"), 5);
  mi_pprof_profiler_delete(by_use);

  mi_profiler_t* const by_time = mi_pprof_profiler_new(1, mi_profiler_test_base("time"), 0, 0, 10);
  MI_REQUIRE(mi_heap_profile(heap, by_time) && mi_profiler_start(by_time));
  for (size_t second = 0; second < 35; second++) {
    mi_free(mi_profiler_test_keep(mi_heap_malloc(heap, 1000)));
    mi_profiler_test_clock_ms += 1000;
  }
  MI_CHECK_EQ(mi_profiler_test_files("time"), 3);
  mi_pprof_profiler_delete(by_time);

  // A file that cannot be written changes nothing else.
  mi_profiler_t* const nowhere = mi_pprof_profiler_new(1, "/nowhere/at/all", 1, 0, 0);
  mi_option_set(mi_option_max_warnings, 0);
  MI_REQUIRE(mi_heap_profile(heap, nowhere) && mi_profiler_start(nowhere));
  errno = 77;
  mi_free(mi_profiler_test_keep(mi_heap_malloc(heap, 1000)));
  MI_CHECK_EQ(errno, 77);
  MI_CHECK(!mi_profiler_snapshot(nowhere));
  mi_pprof_profiler_delete(nowhere);
  mi_heap_delete(heap);
}

static _Atomic(bool) mi_profiler_test_went_on;

static void* mi_profiler_test_cancelled(void* heap) {
  (void)pthread_cancel(pthread_self());
  mi_free(mi_profiler_test_keep(mi_heap_malloc(heap, 1000)));
  mi_profiler_test_went_on = true;
  pthread_testcancel();
  return NULL;
}

// A call of malloc that writes a file is no point where a thread is cancelled.
MI_TEST(cancelled) {
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const profiler = mi_pprof_profiler_new(1, mi_profiler_test_base("cancelled"), 1, 0, 0);
  MI_REQUIRE(mi_heap_profile(heap, profiler) && mi_profiler_start(profiler));
  pthread_t thread;
  void* result;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_profiler_test_cancelled, heap) == 0 && pthread_join(thread, &result) == 0);
  MI_CHECK(result == PTHREAD_CANCELED && mi_profiler_test_went_on);
  MI_CHECK_EQ(mi_profiler_test_files("cancelled"), 1);
  mi_pprof_profiler_delete(profiler);
  mi_heap_delete(heap);
}

// A larger interval of samples: as many files as there would be with all of them, but for chance. Of 16 MiB in blocks of 64 bytes
// some 16384 are sampled at 1 KiB, so that the estimate has a standard error of an eighth of a file: two are 16 of that.
MI_TEST(estimated_intervals) {
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const profiler = mi_pprof_profiler_new(1024, mi_profiler_test_base("estimate"), 1 << 20, 0, 0);
  MI_REQUIRE(mi_heap_profile(heap, profiler) && mi_profiler_start(profiler));
  for (size_t i = 0; i < (16 << 20) / 64; i++) {
    mi_free(mi_profiler_test_keep(mi_heap_malloc(heap, 64)));
  }
  const unsigned files = mi_profiler_test_files("estimate");
  MI_CHECK_MSG(files >= 14 && files <= 17, "%u files", files);
  mi_pprof_profiler_delete(profiler);
  mi_heap_delete(heap);
}

// The file is its owner's alone; a link is not followed.
MI_TEST(files) {
  mi_profiler_t* const profiler = mi_profiler_test_new("file");
  MI_CHECK(mi_profiler_snapshot(profiler));
  const char* path = mi_profiler_test_file("file", getpid(), 1);
  struct stat st;
  MI_CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size > 0);
  MI_CHECK_EQ(unlink(path), 0);
  char target[128];
  snprintf(target, sizeof(target), "%s", mi_profiler_test_base("target"));
  path = mi_profiler_test_file("file", getpid(), 2);
  MI_REQUIRE(symlink(target, path) == 0);
  MI_CHECK(!mi_profiler_snapshot(profiler) && access(target, F_OK) != 0);
  MI_CHECK_EQ(unlink(path), 0);
  mi_pprof_profiler_delete(profiler);
}

static bool mi_profiler_test_refused(const mi_prof_sample_info_t* info, void* arg) {
  (void)info;
  mi_profiler_t* const profiler = *(mi_profiler_t**)arg;
  MI_CHECK(mi_pprof_profiler_new(1, "x", 0, 0, 0) == NULL);
  MI_CHECK(!mi_profile(profiler) && !mi_heap_profile(NULL, profiler) && !mi_profiler_start(profiler) && !mi_profiler_snapshot(profiler));
  mi_pprof_profiler_delete(profiler);
  *(mi_profiler_t**)arg = NULL;
  return false;
}

MI_TEST(visitors) {
  mi_profiler_t* const profiler = mi_profiler_test_new("visitor");
  mi_profiler_t* arg = profiler;
  MI_REQUIRE(mi_prof_start(1));
  void* const p = mi_profiler_test_keep(mi_malloc(64));
  MI_CHECK(mi_prof_visit(&mi_profiler_test_refused, &arg) && arg == NULL);
  mi_free(p);
  mi_prof_stop();
  MI_CHECK(mi_profiler_start(profiler));
  mi_pprof_profiler_delete(profiler);
}

// A child goes on with its own.
MI_TEST(forked) {
  mi_heap_t* const heap = mi_heap_new();
  mi_profiler_t* const profiler = mi_profiler_test_new("fork");
  MI_CHECK(mi_heap_profile(heap, profiler) && mi_profiler_start(profiler));
  void* const p = mi_profiler_test_keep(mi_heap_malloc(heap, 64));
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    (void)alarm(60);
    mi_free(p);
    void* const q = mi_heap_malloc(heap, 1000);
    _exit(q != NULL && mi_profiler_snapshot(profiler) && mi_profiler_stop(profiler) ? 0 : 1);
  }
  int status;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid);
  MI_CHECK_EQ(status, 0);
  const char* const path = mi_profiler_test_file("fork", pid, 1);
  const mi_profiler_test_sums_t sums = mi_profiler_test_read(path);
  MI_CHECK(sums.values[0] == 2 && sums.values[1] == 1064 && sums.values[2] == 1 && sums.values[3] == 1000);
  MI_CHECK_EQ(unlink(path), 0);
  mi_profiler_test_expect(profiler, "fork", 1, 64, 1, 64);
  mi_free(p);
  mi_pprof_profiler_delete(profiler);
  mi_heap_delete(heap);
}

static _Atomic(bool) mi_profiler_test_over;

static void* mi_profiler_test_churn(void* heap) {
  enum { HELD = 100 };
  void* held[HELD] = {NULL};
  uint32_t random = (uint32_t)(uintptr_t)held | 1;
  while (!mi_profiler_test_over) {
    random = random * 1664525 + 1013904223;
    void** const p = &held[random / 65536 % HELD];
    mi_free(*p);
    *p = mi_heap_malloc(random % 3 == 0 ? NULL : heap, 1 + (random >> 8) % 3000);
    MI_REQUIRE(*p != NULL);
  }
  mi_profiler_test_free(held, HELD);
  return NULL;
}

// Threads that allocate and free, while profilers come and go, start and stop, are attached and written, and the process forks.
MI_TEST(together) {
  enum { THREADS = 4,
         ROUNDS = 40 };
  pthread_t threads[THREADS];
  mi_heap_t* heaps[2] = {mi_heap_new(), mi_heap_new()};
  for (size_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_profiler_test_churn, heaps[i % 2]) == 0);
  }
  for (size_t i = 0; i < ROUNDS; i++) {
    mi_profiler_t* const one = mi_pprof_profiler_new(i % 2 == 0 ? 64 : 1000, mi_profiler_test_base("together"), 1 << 20, 0, 0);
    mi_profiler_t* const two = mi_profiler_test_new("together_two");
    MI_REQUIRE(one != NULL && mi_profiler_start(one) && mi_profiler_start(two));
    MI_CHECK(mi_profile(one) && mi_heap_profile(heaps[i % 2], two));
    MI_CHECK(mi_profiler_snapshot(one) && mi_profiler_snapshot(two));
    if (i % 8 == 0) {
      const pid_t pid = fork();
      MI_REQUIRE(pid >= 0);
      if (pid == 0) {
        (void)alarm(60);
        mi_free(mi_heap_malloc(heaps[0], 100));
        const bool good = mi_profiler_stop(one) && mi_profiler_stop(two);
        mi_pprof_profiler_delete(one);
        _exit(good ? 0 : 1);
      }
      int status;
      MI_REQUIRE(waitpid(pid, &status, 0) == pid);
      MI_CHECK_EQ(status, 0);
    }
    MI_CHECK(mi_profiler_stop(two));
    mi_pprof_profiler_delete(i % 2 == 0 ? one : two);
    mi_pprof_profiler_delete(i % 2 == 0 ? two : one);
    (void)mi_profiler_test_files("together");
    (void)mi_profiler_test_files("together_two");
  }
  mi_profiler_test_over = true;
  for (size_t i = 0; i < THREADS; i++) {
    MI_REQUIRE(pthread_join(threads[i], NULL) == 0);
  }
  mi_heap_delete(heaps[0]);
  mi_heap_delete(heaps[1]);
  DIR* const folder = opendir(mi_profiler_test_folder);
  MI_REQUIRE(folder != NULL);
  // A thread may have begun a file of a profiler that was deleted meanwhile, and children's files have other numbers.
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", mi_profiler_test_folder, entry->d_name);
    if (entry->d_name[0] != '.') {
      MI_CHECK(strncmp(entry->d_name, "together", 8) == 0);
      (void)unlink(path);
    }
  }
  (void)closedir(folder);
}

MI_TEST_MAIN()
