// Owns: a call of every function of the heap profiler, with a check of what it did, and the layout of its structs.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11; figures in words hold on 32 and on 64 bits.
#pragma once

#include "test/api/header_calls_layout.h"

static_assert(MI_PROF_FORMAT_TEXT == 0 && MI_PROF_FORMAT_PROTO == 1, "formats");
static_assert(MI_PROF_CONFIG_VERSION == 1 && MI_PROF_STAT_VERSION == 3, "versions");
static_assert(MI_PROF_CONFIG_FALLBACK == 0 && MI_PROF_CONFIG_OVERRIDE == 1, "modes");

AT(mi_prof_config_t, size, 0);
AT(mi_prof_config_t, version, 1);
static_assert(offsetof(mi_prof_config_t, mode) == WORD + 4, "mi_prof_config_t.mode");
AT(mi_prof_sample_info_t, stack, 0);
AT(mi_prof_sample_info_t, depth, 1);
AT(mi_prof_sample_info_t, live_objects, 2);
AT(mi_prof_sample_info_t, live_bytes, 3);
AT(mi_prof_sample_info_t, accum_objects, 4);
AT(mi_prof_sample_info_t, accum_bytes, 5);
AT(mi_prof_module_info_t, path, 0);
AT(mi_prof_module_info_t, base, 1);
AT(mi_prof_module_info_t, size, 2);
static_assert(sizeof(mi_prof_sample_info_t) == 6 * WORD && sizeof(mi_prof_module_info_t) == 3 * WORD, "sizes");

#if UINTPTR_MAX > 0xffffffff
static_assert(sizeof(mi_prof_config_t) == 72 && sizeof(mi_prof_stats_t) == 160, "sizes");
static_assert(offsetof(mi_prof_config_t, sample_interval) == 16 && offsetof(mi_prof_config_t, max_profiler_bytes) == 24 &&
                  offsetof(mi_prof_config_t, seed) == 32 && offsetof(mi_prof_config_t, accum) == 40 &&
                  offsetof(mi_prof_config_t, max_stack_depth) == 48 && offsetof(mi_prof_config_t, dump_at_exit) == 56 &&
                  offsetof(mi_prof_config_t, dump_format) == 64,
              "mi_prof_config_t");
static_assert(offsetof(mi_prof_stats_t, version) == 8 && offsetof(mi_prof_stats_t, enabled) == 12 && offsetof(mi_prof_stats_t, accum) == 13 &&
                  offsetof(mi_prof_stats_t, sample_rate) == 16 && offsetof(mi_prof_stats_t, live_samples) == 24 &&
                  offsetof(mi_prof_stats_t, live_bytes) == 32 && offsetof(mi_prof_stats_t, accum_samples) == 40 &&
                  offsetof(mi_prof_stats_t, accum_bytes) == 48 && offsetof(mi_prof_stats_t, unique_stacks) == 56 &&
                  offsetof(mi_prof_stats_t, arena_committed) == 64 && offsetof(mi_prof_stats_t, stack_table_overflows) == 72 &&
                  offsetof(mi_prof_stats_t, dropped_samples) == 80 && offsetof(mi_prof_stats_t, heap_committed) == 88 &&
                  offsetof(mi_prof_stats_t, heap_reserved) == 96 && offsetof(mi_prof_stats_t, heap_malloc_requested) == 104 &&
                  offsetof(mi_prof_stats_t, heap_pages) == 112 && offsetof(mi_prof_stats_t, heap_pages_abandoned) == 120 &&
                  offsetof(mi_prof_stats_t, heap_count) == 128 && offsetof(mi_prof_stats_t, theap_count) == 136 &&
                  offsetof(mi_prof_stats_t, heap_purged) == 144 && offsetof(mi_prof_stats_t, heap_stats_detailed) == 152,
              "mi_prof_stats_t");
#endif

static void profile_write(void* arg, const char* buf, size_t len) {
  MI_CHECK(buf != NULL);
  *(size_t*)arg += len;
}

static bool profile_visit(const mi_prof_sample_info_t* info, void* arg) {
  *(size_t*)arg += info->live_bytes;
  return true;
}

static bool profile_module(const mi_prof_module_info_t* info, void* arg) {
  *(size_t*)arg += info->size;
  return false;
}

MI_TEST(profile) {
  mi_prof_write_fun* const writer = profile_write;
  mi_prof_visit_fun* const visitor = profile_visit;
  mi_prof_module_visit_fun* const module_visitor = profile_module;
  char path[64];
  snprintf(path, sizeof(path), "/tmp/header_calls_profile.%d", (int)getpid());
  MI_CHECK(!mi_prof_is_enabled());
  MI_CHECK(mi_prof_start(1));
  mi_prof_stop();
  mi_prof_config_t_decl(config);
  config.sample_interval = 1;
  MI_CHECK(mi_prof_start_ex(&config) && mi_prof_is_enabled());
  mi_prof_stop();
  MI_CHECK(mi_prof_start_seeded(1, 5));
  void* p = mi_malloc(1234);
  use(p, 1234, 1);
  mi_prof_stats_t_decl(stats);
  MI_CHECK(mi_prof_stats_get(&stats) && stats.enabled && stats.live_samples >= 1 && stats.live_bytes >= 1234 && stats.heap_committed > 0);
  size_t records = 0;
  mi_prof_debug_stats(&records, NULL, NULL);
  MI_CHECK_EQ(records, stats.live_samples);
  size_t sum = 0;
  MI_CHECK(mi_prof_visit(visitor, &sum) && sum == stats.live_bytes);
  mi_prof_snapshot_t* snapshot = mi_prof_snapshot_new();
  mi_prof_reset();
  sum = 0;
  MI_CHECK(mi_prof_snapshot_visit(snapshot, visitor, &sum) && sum == stats.live_bytes);
  mi_prof_snapshot_free(snapshot);
  sum = 0;
  MI_CHECK(mi_prof_modules_visit(module_visitor, &sum) && sum > 0);
  sum = 0;
  MI_CHECK(mi_prof_dump_writer(writer, &sum) && sum > 0);
  sum = 0;
  MI_CHECK(mi_prof_dump_proto_writer(writer, &sum) && sum > 0);
  MI_CHECK(mi_prof_dump(path) && unlink(path) == 0);
  MI_CHECK(mi_prof_dump_proto(path) && unlink(path) == 0);
  mi_free(p);
  mi_prof_stop();
}
