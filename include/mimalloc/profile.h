// Owns: the sampled heap profiler: started, read, written to files that pprof reads.
// May include: its neighbours, and the language's own headers.
// Called by: mimalloc.h, and programs.
// Invariants: as in mimalloc.h. The guard is not MIMALLOC_PROFILE_H, which belongs to mimalloc-profile.h.
#ifndef MIMALLOC_MIMALLOC_PROFILE_H
#define MIMALLOC_MIMALLOC_PROFILE_H

#include <stdint.h>

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

// ---- The heap profiler. Samples allocations, and tells where what lives was allocated. ----
//
// While a profile runs, one allocation in so many bytes, on average, is sampled: its size and the calls that led to it are
// recorded, for as long as the block lives. Larger blocks are sampled more often, those of twice the interval or more always.
// All counts are of what was sampled, and not scaled, except in profile.proto: an estimate of what there is divides the
// bytes and blocks of a stack by 1 - exp(-(bytes / blocks) / interval), as pprof does with the text.
//
// The calls are found by frame pointers. A function that was compiled without hides its callers (-fno-omit-frame-pointer).
// The profile takes memory of the system, never of a heap; when it finds none, or its budget is spent, samples are dropped
// and counted, and the allocation goes on as it would. A block of a profile that has ended is an ordinary block.
//
// All functions may be called from any thread. No lock is held while a function of the program's is called; from inside of
// a visitor, no profile can be started, stopped, reset, visited, copied or written: these return false or NULL, or do nothing.
// What a visitor allocates is not sampled. A forked child goes on with its copy of the profile.

// MI_PROF_FORMAT_TEXT is the format of a dump as text, "heap_v2".
#define MI_PROF_FORMAT_TEXT 0

// MI_PROF_FORMAT_PROTO is the format of a dump as profile.proto, uncompressed.
#define MI_PROF_FORMAT_PROTO 1

// MI_PROF_CONFIG_VERSION is the version of mi_prof_config_t.
#define MI_PROF_CONFIG_VERSION 1

// mi_prof_config_mode_t tells what a field that is set means beside an environment variable, or an option, that is set too.
typedef enum mi_prof_config_mode_e {
  MI_PROF_CONFIG_FALLBACK = 0,  // the environment is preferred
  MI_PROF_CONFIG_OVERRIDE = 1   // the field is preferred
} mi_prof_config_mode_t;

// mi_prof_config_t says how to profile. A field that is 0 or NULL is not set: then the environment decides, else the default.
typedef struct mi_prof_config_s {
  size_t size;                 // sizeof(mi_prof_config_t)
  int version;                 // MI_PROF_CONFIG_VERSION
  mi_prof_config_mode_t mode;  // what is preferred
  size_t sample_interval;      // bytes between samples, on average; 524288 by default
  size_t max_profiler_bytes;   // the most memory that the profile takes; no limit by default. Stays set for later profiles
  uint64_t seed;               // of the choice of samples; 0 by default
  bool accum;                  // count what was freed as well. Stays set for later profiles
  size_t max_stack_depth;      // calls that are kept of each sample; 32 by default, 128 at most. Stays set for later profiles
  const char* dump_at_exit;    // a file that is written when the process ends; at most 1023 bytes, in which %p is the process's number
  int dump_format;             // MI_PROF_FORMAT_ of that file; text by default
} mi_prof_config_t;

// mi_prof_config_t_decl(name) defines one of that name with nothing set.
#define mi_prof_config_t_decl(name) mi_prof_config_t name = {sizeof(mi_prof_config_t), MI_PROF_CONFIG_VERSION, MI_PROF_CONFIG_FALLBACK, 0, 0, 0, false, 0, NULL, 0}

// MI_PROF_STAT_VERSION is the version of mi_prof_stats_t.
#define MI_PROF_STAT_VERSION 3

// mi_prof_stats_t is what mi_prof_stats_get fills in.
typedef struct mi_prof_stats_s {
  size_t size;                   // sizeof(mi_prof_stats_t), or less with an older version
  int version;                   // MI_PROF_STAT_VERSION, or an older one: 1 up to stack_table_overflows, 2 up to dropped_samples
  bool enabled;                  // a profile runs
  bool accum;                    // it counts what was freed as well
  size_t sample_rate;            // bytes between samples, on average
  size_t live_samples;           // sampled blocks that live
  size_t live_bytes;             // their sizes
  size_t accum_samples;          // all that were sampled, with accum
  size_t accum_bytes;            // their sizes
  size_t unique_stacks;          // stacks that there are records of
  size_t arena_committed;        // bytes that the profile has from the system
  size_t stack_table_overflows;  // samples that were dropped as there were too many stacks
  size_t dropped_samples;        // samples that were dropped for this or any other reason
  size_t heap_committed;         // what follows is of the heaps, as mi_stats_get has it: bytes committed,
  size_t heap_reserved;          // bytes of addresses,
  size_t heap_malloc_requested;  // bytes in blocks, in the debug variant those that were asked for,
  size_t heap_pages;             // pages in use,
  size_t heap_pages_abandoned;   // pages that no thread owns,
  size_t heap_count;             // heaps,
  size_t theap_count;            // theaps,
  size_t heap_purged;            // bytes that were given back
  bool heap_stats_detailed;      // heap_malloc_requested is exact
} mi_prof_stats_t;

// mi_prof_stats_t_decl(name) defines one of that name, ready to be filled in.
#define mi_prof_stats_t_decl(name) mi_prof_stats_t name = {sizeof(mi_prof_stats_t), MI_PROF_STAT_VERSION, false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false}

// mi_prof_sample_info_t is what was sampled with one stack: its calls as return addresses, the latest first, and counts.
typedef struct mi_prof_sample_info_s {
  const void* const* stack;  // the calls
  size_t depth;              // how many there are
  size_t live_objects;       // blocks that live
  size_t live_bytes;         // their sizes
  size_t accum_objects;      // all blocks, with accum
  size_t accum_bytes;        // their sizes
} mi_prof_sample_info_t;

// mi_prof_snapshot_t is a copy of all counts.
typedef struct mi_prof_snapshot_s mi_prof_snapshot_t;

// mi_prof_module_info_t is a file that is mapped: a program, a library. path is cut at 255 bytes.
typedef struct mi_prof_module_info_s {
  const char* path;  // of the file
  uintptr_t base;    // its first address
  size_t size;       // bytes up to its last
} mi_prof_module_info_t;

// mi_prof_write_fun receives len bytes of a dump.
typedef void(mi_prof_write_fun)(void* arg, const char* buf, size_t len);

// mi_prof_visit_fun receives what was sampled with one stack and returns whether to go on.
typedef bool(mi_prof_visit_fun)(const mi_prof_sample_info_t* info, void* arg);

// mi_prof_module_visit_fun receives a module, of which path is valid for the call only, and returns whether to go on.
typedef bool(mi_prof_module_visit_fun)(const mi_prof_module_info_t* info, void* arg);

// mi_prof_start starts a profile with a sample in sample_rate bytes; 0: as the environment or the option says, 524288 by
// default. False: one runs already, or a visitor calls.
mi_decl_nodiscard mi_decl_export bool mi_prof_start(size_t sample_rate) mi_attr_noexcept;

// mi_prof_start_seeded is mi_prof_start with another seed than the option's. With one seed, and threads that begin in one
// order and allocate the same, the same allocations are sampled; in the strict variant only as long as nothing that was freed
// before serves again, as its quarantine is random.
mi_decl_nodiscard mi_decl_export bool mi_prof_start_seeded(size_t sample_rate, uint64_t seed) mi_attr_noexcept;

// mi_prof_start_ex starts a profile as config says; NULL: as mi_prof_start(0). False also if size and version of config are
// not what they should be, or dump_at_exit is too long.
mi_decl_nodiscard mi_decl_export bool mi_prof_start_ex(const mi_prof_config_t* config) mi_attr_noexcept;

// mi_prof_stop ends the profile: everything that was recorded is dropped, and its memory given back.
mi_decl_export void mi_prof_stop(void) mi_attr_noexcept;

// mi_prof_is_enabled tells whether a profile runs.
mi_decl_nodiscard mi_decl_export bool mi_prof_is_enabled(void) mi_attr_noexcept;

// mi_prof_debug_stats tells how many sampled blocks live, their bytes, and how many stacks there are. Each may be NULL. Use
// mi_prof_stats_get.
mi_decl_export void mi_prof_debug_stats(size_t* records, size_t* bytes, size_t* unique_stacks) mi_attr_noexcept;

// mi_prof_dump writes the profile as text to a file, which is emptied first, or made for its owner alone. False: no profile
// runs, or the file cannot be written, or the list of modules cannot be had.
mi_decl_nodiscard mi_decl_export bool mi_prof_dump(const char* path) mi_attr_noexcept;

// mi_prof_dump_writer is mi_prof_dump to write, which is called piece by piece, and may allocate.
mi_decl_nodiscard mi_decl_export bool mi_prof_dump_writer(mi_prof_write_fun* write, void* arg) mi_attr_noexcept;

// mi_prof_dump_proto writes the profile as profile.proto, with counts that are estimates of what there is, to a file likewise.
mi_decl_nodiscard mi_decl_export bool mi_prof_dump_proto(const char* path) mi_attr_noexcept;

// mi_prof_dump_proto_writer is mi_prof_dump_proto to write.
mi_decl_nodiscard mi_decl_export bool mi_prof_dump_proto_writer(mi_prof_write_fun* write, void* arg) mi_attr_noexcept;

// mi_prof_reset sets the counts of all that was sampled to 0; those of what lives stay.
mi_decl_export void mi_prof_reset(void) mi_attr_noexcept;

// mi_prof_stats_get fills in the fields that the version in stats has. False: size and version are none that there ever were.
mi_decl_nodiscard mi_decl_export bool mi_prof_stats_get(mi_prof_stats_t* stats) mi_attr_noexcept;

// mi_prof_visit calls visitor for each stack with a count, as it is when the call begins. False: no profile runs, there is no
// memory for the copy that is visited, visitor is NULL, or a visitor calls.
mi_decl_nodiscard mi_decl_export bool mi_prof_visit(mi_prof_visit_fun* visitor, void* arg) mi_attr_noexcept;

// mi_prof_snapshot_new copies all counts, for mi_prof_snapshot_visit. NULL: no profile runs, there is no memory, or a visitor
// calls.
mi_decl_nodiscard mi_decl_export mi_prof_snapshot_t* mi_prof_snapshot_new(void) mi_attr_noexcept;

// mi_prof_snapshot_free gives the copy back, whether the profile runs on or not; NULL is ignored.
mi_decl_export void mi_prof_snapshot_free(mi_prof_snapshot_t* snap) mi_attr_noexcept;

// mi_prof_snapshot_visit calls visitor for each stack of the copy. False: snap or visitor is NULL, or a visitor calls.
mi_decl_nodiscard mi_decl_export bool mi_prof_snapshot_visit(const mi_prof_snapshot_t* snap, mi_prof_visit_fun* visitor,
                                                             void* arg) mi_attr_noexcept;

// mi_prof_modules_visit calls visitor for each module of the process. False: the system does not tell, visitor is NULL, or a
// visitor calls.
mi_decl_nodiscard mi_decl_export bool mi_prof_modules_visit(mi_prof_module_visit_fun* visitor, void* arg) mi_attr_noexcept;

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_MIMALLOC_PROFILE_H
