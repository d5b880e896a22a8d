// Owns: the public interface of options.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_OPTION_H
#define MIMALLOC_OPTION_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

// ---- Options. What can be set by the environment or the program. ----

// mi_option_t names an option. Its value is a long, in the unit named here; the environment variable MIMALLOC_<NAME>
// sets it at the start of the process. The numbers are part of the binary interface.
typedef enum mi_option_e {
  mi_option_show_errors = 0,                       // write messages of errors and warnings
  mi_option_show_stats = 1,                        // write statistics at exit
  mi_option_verbose = 2,                           // write what is being done; 2 and above: in detail
  mi_option_deprecated_eager_commit = 3,           // no effect
  mi_option_arena_eager_commit = 4,                // commit arenas at once: 0 no, 1 yes, 2 where the system overcommits
  mi_option_purge_decommits = 5,                   // purge by giving memory back (1) or by marking it unused (0)
  mi_option_allow_large_os_pages = 6,              // use OS pages of 2 MiB where the administrator has set some aside
  mi_option_reserve_huge_os_pages = 7,             // so many OS pages of 1 GiB are reserved at start
  mi_option_reserve_huge_os_pages_at = 8,          // the node of memory they come from; -1 all
  mi_option_reserve_os_memory = 9,                 // KiB that are reserved and committed at start
  mi_option_deprecated_segment_cache = 10,         // no effect
  mi_option_deprecated_page_reset = 11,            // no effect
  mi_option_deprecated_abandoned_page_purge = 12,  // no effect
  mi_option_deprecated_segment_reset = 13,         // no effect
  mi_option_deprecated_eager_commit_delay = 14,    // no effect
  mi_option_purge_delay = 15,                      // milliseconds until unused memory is purged; 0 at once, -1 never
  mi_option_use_numa_nodes = 16,                   // so many nodes of memory are told apart; 0 those of the machine
  mi_option_disallow_os_alloc = 17,                // blocks come only from arenas that were reserved or lent
  mi_option_os_tag = 18,                           // no effect but on macOS
  mi_option_max_errors = 19,                       // so many error messages at most; -1 no limit
  mi_option_max_warnings = 20,                     // so many warnings at most; -1 no limit
  mi_option_deprecated_max_segment_reclaim = 21,   // no effect
  mi_option_destroy_on_exit = 22,                  // release all memory at exit
  mi_option_arena_reserve = 23,                    // KiB of address space to reserve at a time
  mi_option_arena_purge_mult = 24,                 // purge_delay times this is the delay of arenas
  mi_option_deprecated_purge_extend_delay = 25,    // no effect
  mi_option_disallow_arena_alloc = 26,             // arenas that were reserved or lent serve only heaps in them
  mi_option_retry_on_oom = 27,                     // milliseconds to try again for when there is no memory
  mi_option_deprecated_visit_abandoned = 28,       // no effect: abandoned blocks can always be visited
  mi_option_guarded_min = 29,                      // the smallest block that sampling guards, in bytes
  mi_option_guarded_max = 30,                      // the largest
  mi_option_unsafe_guarded_precise = 31,           // guarded blocks end at their last byte, whatever their alignment
  mi_option_guarded_sample_rate = 32,              // guard one in so many allocations; 0 none
  mi_option_guarded_sample_seed = 33,              // the seed of the sampling; 0 a random one
  mi_option_generic_collect = 34,                  // collect after so many slow allocations of a thread
  mi_option_page_reclaim_on_free = 35,             // take a full page over when freeing into it: 1, 0 only one's own, -1 never
  mi_option_page_full_retain = 36,                 // so many full pages stay with their thread in each size class
  mi_option_page_max_candidates = 37,              // so many pages are compared when one to allocate from is looked for
  mi_option_max_vabits = 38,                       // addresses have at most so many bits; 0 as the system says; read at start
  mi_option_pagemap_commit = 39,                   // commit the page map many entries at a time
  mi_option_page_commit_on_demand = 40,            // commit pages of large blocks as they are used, where memory is charged
  mi_option_page_max_reclaim = 41,                 // take over one's own pages up to so many of a size class; -1 no limit
  mi_option_page_cross_thread_max_reclaim = 42,    // take over others' pages up to so many of a size class
  mi_option_allow_thp = 43,                        // let the system use transparent huge pages
  mi_option_arena_purge_min_size = 44,             // KiB that are purged at least; 0 the system's page size
  mi_option_arena_max_object_size = 45,            // KiB of the largest block that is placed in an arena
  mi_option_arena_is_numa_local = 46,              // an arena serves the node of memory that it was made on
  mi_option_stats_merge_on_collect = 47,           // no effect
  mi_option_profile_alloc_interval = 48,           // no effect yet, like the next three
  mi_option_profile_inuse_interval = 49,
  mi_option_profile_time_interval = 50,
  mi_option_profile_sample_rate = 51,
  mi_option_stats_merge_threshold = 52,        // no effect
  mi_option_arena_purge_immediate_size = 53,   // KiB from which on a piece is purged at once when freed; 0 none
  mi_option_prof = 54,                         // profile the heap from the start; read at start
  mi_option_prof_sample_rate = 55,             // bytes between the samples of the heap profile, on average
  mi_option_prof_bt_max = 56,                  // so many calls of each sample are kept
  mi_option_prof_accum = 57,                   // the heap profile counts what was freed as well
  mi_option_prof_seed = 58,                    // of the choice of samples
  mi_option_prof_max_bytes = 59,               // bytes that the heap profile takes at most; 0 no limit
  mi_option_memory_events = 60,                // no effect yet
  mi_option_purge_zeroes = 61,                 // no effect
  mi_option_on_violation = 64,                 // 0 abort, 1 report, 2 ignore: what follows the report of bad use
  mi_option_guard_pages = 65,                  // 0 none, 1 the cheapest means the system has, 2 by mappings only
  mi_option_checked_copies = 66,               // check memcpy and its kin against the bounds of blocks; read at start
  mi_option_quarantine_blocks = 70,            // freed blocks of a class that wait in a thread; 0 none
  mi_option_quarantine_size = 71,              // KiB that they have at most; 0 none
  mi_option_family_check = 80,                 // 0 as on_violation, 1 report, 2 ignore: a free by another family
  mi_option_backtrace = 90,                    // so many calls are listed below a report of bad use
  mi_option_show_hardening = 91,               // write which mitigations are active when the process starts
  mi_option_mseal = 92,                        // 0 nothing is sealed, 1 what is there at start, 2 also what comes later; read at start
  mi_option_guarded_report = 93,               // report faults at guarded blocks; read at start
  mi_option_guarded_recover = 94,              // go on after such a report
  mi_option_guarded_fraction = 95,             // sample in one process of so many; read at start
  mi_option_guarded_log = 96,                  // whether reports go to a file: only the environment can name one
  mi_option_show_leaks = 97,                   // write what has not been freed when the process ends
  mi_option_check_heap = 98,                   // debug: so many slow allocations between two checks of a thread's pages; 0 none
  mi_option_target_segments_per_thread = 100,  // no effect
  _mi_option_last = 101,

  // Other names of the same options: older ones.
  mi_option_eager_commit = mi_option_deprecated_eager_commit,
  mi_option_eager_region_commit = mi_option_arena_eager_commit,
  mi_option_reset_decommits = mi_option_purge_decommits,
  mi_option_abandoned_page_purge = mi_option_deprecated_abandoned_page_purge,
  mi_option_abandoned_page_reset = mi_option_deprecated_abandoned_page_purge,
  mi_option_eager_commit_delay = mi_option_deprecated_eager_commit_delay,
  mi_option_reset_delay = mi_option_purge_delay,
  mi_option_large_os_pages = mi_option_allow_large_os_pages,
  mi_option_limit_os_alloc = mi_option_disallow_os_alloc,
  mi_option_max_segment_reclaim = mi_option_deprecated_max_segment_reclaim,
  mi_option_purge_extend_delay = mi_option_deprecated_purge_extend_delay,
  mi_option_visit_abandoned = mi_option_deprecated_visit_abandoned,
  mi_option_guarded_precise = mi_option_unsafe_guarded_precise,
  mi_option_abandoned_reclaim_on_free = mi_option_page_reclaim_on_free,
  mi_option_minimal_purge_size = mi_option_arena_purge_min_size
} mi_option_t;

// For all functions: a number that is no option reads 0 and cannot be set. An option changed while other threads run
// takes effect from their next look at it; some are looked at only when the process starts. Options are read-only memory
// but while one is set: where the system does not let that be opened, or a signal handler sets one while the code it
// interrupted does, the option stays as it was, and a line says so.

// mi_option_is_enabled tells whether the option's value is not 0.
mi_decl_nodiscard mi_decl_export bool mi_option_is_enabled(mi_option_t option);

// mi_option_enable sets the option to 1.
mi_decl_export void mi_option_enable(mi_option_t option);

// mi_option_disable sets the option to 0.
mi_decl_export void mi_option_disable(mi_option_t option);

// mi_option_set_enabled sets the option to 1 or 0.
mi_decl_export void mi_option_set_enabled(mi_option_t option, bool enable);

// mi_option_set_enabled_default is mi_option_set_default of 1 or 0.
mi_decl_export void mi_option_set_enabled_default(mi_option_t option, bool enable);

// mi_option_get returns the option's value, in the option's unit.
mi_decl_nodiscard mi_decl_export long mi_option_get(mi_option_t option);

// mi_option_get_clamp returns the option's value, or the nearer of min and max if it lies outside of them.
mi_decl_nodiscard mi_decl_export long mi_option_get_clamp(mi_option_t option, long min, long max);

// mi_option_get_size returns the option's value in bytes where its unit is KiB; a negative value as 0.
mi_decl_nodiscard mi_decl_export size_t mi_option_get_size(mi_option_t option);

// mi_option_set sets the option's value, in the option's unit.
mi_decl_export void mi_option_set(mi_option_t option, long value);

// mi_option_set_default sets the value unless the environment or the program has set one.
mi_decl_export void mi_option_set_default(mi_option_t option, long value);

// mi_options_print writes all options and their values to the registered output.
mi_decl_export void mi_options_print(void) mi_attr_noexcept;

// mi_options_print_out is mi_options_print to out, or to the registered output if out is NULL.
mi_decl_export void mi_options_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_OPTION_H
