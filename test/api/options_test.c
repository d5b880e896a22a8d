// Owns: the options as programs see them: their numbers, who may set them, printing, and any environment at all.
// May include: test/lib, include/mimalloc.h.
// Called by: the build, under every variant; itself, with "work", under an environment.
// Invariants: the numbers stand here once more, as they are part of the binary interface.
#include "mimalloc.h"

#include <pthread.h>

#include "test/lib/child.h"
#include "test/lib/test.h"

static const struct {
  const char* name;
  int option;
  int number;
} options[] = {
    {"show_errors", mi_option_show_errors, 0},
    {"show_stats", mi_option_show_stats, 1},
    {"verbose", mi_option_verbose, 2},
    {"deprecated_eager_commit", mi_option_deprecated_eager_commit, 3},
    {"arena_eager_commit", mi_option_arena_eager_commit, 4},
    {"purge_decommits", mi_option_purge_decommits, 5},
    {"allow_large_os_pages", mi_option_allow_large_os_pages, 6},
    {"reserve_huge_os_pages", mi_option_reserve_huge_os_pages, 7},
    {"reserve_huge_os_pages_at", mi_option_reserve_huge_os_pages_at, 8},
    {"reserve_os_memory", mi_option_reserve_os_memory, 9},
    {"deprecated_segment_cache", mi_option_deprecated_segment_cache, 10},
    {"deprecated_page_reset", mi_option_deprecated_page_reset, 11},
    {"deprecated_abandoned_page_purge", mi_option_deprecated_abandoned_page_purge, 12},
    {"deprecated_segment_reset", mi_option_deprecated_segment_reset, 13},
    {"deprecated_eager_commit_delay", mi_option_deprecated_eager_commit_delay, 14},
    {"purge_delay", mi_option_purge_delay, 15},
    {"use_numa_nodes", mi_option_use_numa_nodes, 16},
    {"disallow_os_alloc", mi_option_disallow_os_alloc, 17},
    {"os_tag", mi_option_os_tag, 18},
    {"max_errors", mi_option_max_errors, 19},
    {"max_warnings", mi_option_max_warnings, 20},
    {"deprecated_max_segment_reclaim", mi_option_deprecated_max_segment_reclaim, 21},
    {"destroy_on_exit", mi_option_destroy_on_exit, 22},
    {"arena_reserve", mi_option_arena_reserve, 23},
    {"arena_purge_mult", mi_option_arena_purge_mult, 24},
    {"deprecated_purge_extend_delay", mi_option_deprecated_purge_extend_delay, 25},
    {"disallow_arena_alloc", mi_option_disallow_arena_alloc, 26},
    {"retry_on_oom", mi_option_retry_on_oom, 27},
    {"deprecated_visit_abandoned", mi_option_deprecated_visit_abandoned, 28},
    {"guarded_min", mi_option_guarded_min, 29},
    {"guarded_max", mi_option_guarded_max, 30},
    {"unsafe_guarded_precise", mi_option_unsafe_guarded_precise, 31},
    {"guarded_sample_rate", mi_option_guarded_sample_rate, 32},
    {"guarded_sample_seed", mi_option_guarded_sample_seed, 33},
    {"generic_collect", mi_option_generic_collect, 34},
    {"page_reclaim_on_free", mi_option_page_reclaim_on_free, 35},
    {"page_full_retain", mi_option_page_full_retain, 36},
    {"page_max_candidates", mi_option_page_max_candidates, 37},
    {"max_vabits", mi_option_max_vabits, 38},
    {"pagemap_commit", mi_option_pagemap_commit, 39},
    {"page_commit_on_demand", mi_option_page_commit_on_demand, 40},
    {"page_max_reclaim", mi_option_page_max_reclaim, 41},
    {"page_cross_thread_max_reclaim", mi_option_page_cross_thread_max_reclaim, 42},
    {"allow_thp", mi_option_allow_thp, 43},
    {"arena_purge_min_size", mi_option_arena_purge_min_size, 44},
    {"arena_max_object_size", mi_option_arena_max_object_size, 45},
    {"arena_is_numa_local", mi_option_arena_is_numa_local, 46},
    {"stats_merge_on_collect", mi_option_stats_merge_on_collect, 47},
    {"profile_alloc_interval", mi_option_profile_alloc_interval, 48},
    {"profile_inuse_interval", mi_option_profile_inuse_interval, 49},
    {"profile_time_interval", mi_option_profile_time_interval, 50},
    {"profile_sample_rate", mi_option_profile_sample_rate, 51},
    {"stats_merge_threshold", mi_option_stats_merge_threshold, 52},
    {"arena_purge_immediate_size", mi_option_arena_purge_immediate_size, 53},
    {"prof", mi_option_prof, 54},
    {"prof_sample_rate", mi_option_prof_sample_rate, 55},
    {"prof_bt_max", mi_option_prof_bt_max, 56},
    {"prof_accum", mi_option_prof_accum, 57},
    {"prof_seed", mi_option_prof_seed, 58},
    {"prof_max_bytes", mi_option_prof_max_bytes, 59},
    {"memory_events", mi_option_memory_events, 60},
    {"purge_zeroes", mi_option_purge_zeroes, 61},
    {"on_violation", mi_option_on_violation, 64},
    {"guard_pages", mi_option_guard_pages, 65},
    {"checked_copies", mi_option_checked_copies, 66},
    {"quarantine_blocks", mi_option_quarantine_blocks, 70},
    {"quarantine_size", mi_option_quarantine_size, 71},
    {"family_check", mi_option_family_check, 80},
    {"backtrace", mi_option_backtrace, 90},
    {"show_hardening", mi_option_show_hardening, 91},
    {"mseal", mi_option_mseal, 92},
    {"guarded_report", mi_option_guarded_report, 93},
    {"guarded_recover", mi_option_guarded_recover, 94},
    {"guarded_fraction", mi_option_guarded_fraction, 95},
    {"guarded_log", mi_option_guarded_log, 96},
    {"show_leaks", mi_option_show_leaks, 97},
    {"check_heap", mi_option_check_heap, 98},
    {"target_segments_per_thread", mi_option_target_segments_per_thread, 100},
};

enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

MI_TEST(numbers) {
  for (size_t i = 0; i < OPTION_COUNT; i++) {
    MI_CHECK_MSG(options[i].option == options[i].number, "%s", options[i].name);
  }
  static const struct {
    int option;
    int number;
  } old[] = {
      {mi_option_eager_commit, 3},
      {mi_option_eager_region_commit, 4},
      {mi_option_reset_decommits, 5},
      {mi_option_large_os_pages, 6},
      {mi_option_abandoned_page_purge, 12},
      {mi_option_abandoned_page_reset, 12},
      {mi_option_eager_commit_delay, 14},
      {mi_option_reset_delay, 15},
      {mi_option_limit_os_alloc, 17},
      {mi_option_max_segment_reclaim, 21},
      {mi_option_purge_extend_delay, 25},
      {mi_option_visit_abandoned, 28},
      {mi_option_guarded_precise, 31},
      {mi_option_abandoned_reclaim_on_free, 35},
      {mi_option_minimal_purge_size, 44},
  };
  for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
    MI_CHECK_MSG(old[i].option == old[i].number, "row %zu", i);
  }
}

// What is written to the output, as one text.
typedef struct text_s {
  size_t len;
  char text[16384];
} text_t;

static void append(const char* msg, void* arg) {
  text_t* const t = arg;
  const size_t n = strlen(msg);
  if (t->len + n < sizeof(t->text)) {
    memcpy(t->text + t->len, msg, n + 1);
    t->len += n;
  }
}

// Each can be set, read and printed, with who has set it.
MI_TEST(each) {
  static text_t text;
  long before[OPTION_COUNT];
  for (size_t i = 0; i < OPTION_COUNT; i++) {
    const mi_option_t option = (mi_option_t)options[i].option;
    before[i] = mi_option_get(option);
    mi_option_set_default(option, before[i]);
    MI_CHECK_EQ(mi_option_get(option), before[i]);
    mi_option_set(option, 0);
    MI_CHECK(!mi_option_is_enabled(option));
    mi_option_set_default(option, 2);
    MI_CHECK_EQ(mi_option_get(option), 0);
    mi_option_set(option, before[i]);
  }
  mi_options_print_out(&append, &text);
  const char* at = text.text;
  for (size_t i = 0; i < OPTION_COUNT; i++) {
    char line[100];
    snprintf(line, sizeof(line), "option '%s': %ld", options[i].name, before[i]);
    MI_CHECK_MSG(strncmp(at, line, strlen(line)) == 0 && strstr(at, " (program") != NULL, "%s is not at %.60s", line, at);
    at = strchr(at, '\n');
    if (!MI_CHECK(at != NULL)) {
      return;
    }
    at++;
  }
  MI_CHECK(*at == 0);
}

// Environments

static void* work(void* arg) {
  void* blocks[200];
  for (size_t i = 0; i < 200; i++) {
    blocks[i] = mi_malloc(i * i * 7 + 1);
    if (blocks[i] != NULL) {
      memset(blocks[i], 1, i * i * 7 + 1);
    }
  }
  for (size_t i = 0; i < 200; i++) {
    mi_free(blocks[i]);
  }
  mi_collect(false);
  return arg;
}

static void exec_self(void* arg) {
  char name[] = "options_test";
  char work_word[] = "work";
  char* const argv[] = {name, work_word, NULL};
  execve("/proc/self/exe", argv, arg);
  _exit(99);
}

// Environments that nobody wrote: whatever they say, the process starts, an option holds what its text says or its default,
// and at most one warning comes for a variable.
static size_t scramble(uint64_t* seed, char* text, size_t size, const char* alphabet) {
  const size_t len = mi_test_random(seed) % size;
  for (size_t i = 0; i < len; i++) {
    text[i] = alphabet[mi_test_random(seed) % strlen(alphabet)];
  }
  text[len] = 0;
  return len;
}

static void random_entry(uint64_t* seed, char entry[256]) {
  static const char letters[] = "abMIMALLOC_purgeDELAY019=K\x01\x7f\xff -+.%n";
  static const char* const values[] = {"", "1", "TRUE", "off", "12", "-1", "64K", "3MiB", "7T", "9999999999999999999999", "x", "ignore", "0x7", "1e3"};
  char name[100];
  char value[100];
  if (mi_test_random(seed) % 3 != 0) {
    size_t i = mi_test_random(seed) % OPTION_COUNT;
    // That one alone leaves a process without memory.
    i = options[i].option == mi_option_disallow_os_alloc ? 0 : i;
    snprintf(name, sizeof(name), "MIMALLOC_%s", options[i].name);
    if (mi_test_random(seed) % 4 == 0) {
      name[mi_test_random(seed) % strlen(name)] ^= 0x20;
    }
  } else {
    memcpy(name, "MIMALLOC_", 10);
    scramble(seed, name + 9, sizeof(name) - 9, letters);
  }
  if (mi_test_random(seed) % 2 != 0) {
    snprintf(value, sizeof(value), "%s", values[mi_test_random(seed) % (sizeof(values) / sizeof(values[0]))]);
  } else {
    scramble(seed, value, sizeof(value), letters);
  }
  snprintf(entry, 256, "%s=%s", name, value);
}

MI_TEST(random_environments) {
  enum { ENTRIES = 12 };
  uint64_t seed = (uint64_t)mi_test_scale("MI_OPTIONS_TEST_SEED", 4711);
  const long runs = mi_test_scale("MI_OPTIONS_TEST_RUNS", 60);
  for (long run = 0; run < runs; run++) {
    static mi_test_child_t child;
    static char entries[ENTRIES][256];
    static char quiet[] = "MIMALLOC_VERBOSE=0";
    char* envp[ENTRIES + 2] = {quiet};
    char what[40];
    const uint64_t start = seed;
    for (int i = 0; i < ENTRIES; i++) {
      random_entry(&seed, entries[i]);
      envp[i + 1] = entries[i];
    }
    mi_test_child_run(&child, &exec_self, envp, 20000);
    snprintf(what, sizeof(what), "seed %llu", (unsigned long long)start);
    MI_CHECK_CHILD_OK(&child, what);
    int warnings = 0;
    for (const char* at = child.err; (at = strstr(at, ": warning: ")) != NULL; at++) {
      warnings++;
    }
    MI_CHECK_MSG(warnings <= ENTRIES, "seed %llu: %d warnings", (unsigned long long)start, warnings);
    for (const char* at = child.err; *at != 0; at++) {
      MI_CHECK_MSG(*at == '\n' || (*at >= ' ' && *at < 0x7f) || (unsigned char)*at >= 0x80, "seed %llu: a control character",
                   (unsigned long long)start);
    }
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "work") == 0) {
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &work, NULL) == 0);
    work(NULL);
    MI_REQUIRE(pthread_join(thread, NULL) == 0);
    mi_options_print();
    return 0;
  }
  return mi_test_main(argc, argv);
}
