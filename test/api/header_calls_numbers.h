// Owns: that the numbers of options are those that programs were compiled with, under every name that an option has had.
// May include: test/lib, mimalloc.h.
// Called by: header_calls_layout.h.
// Invariants: valid in C11 and C++11; the numbers stand here as figures, since a copy of the header's would agree with anything.
#pragma once

#include <assert.h>

#include "test/api/header_calls.h"

#define IS(name, number) static_assert(mi_option_##name == (number), "mi_option_" #name)

// The same in all versions.
IS(show_errors, 0);
IS(show_stats, 1);
IS(verbose, 2);
IS(arena_eager_commit, 4);
IS(purge_decommits, 5);
IS(allow_large_os_pages, 6);
IS(reserve_huge_os_pages, 7);
IS(reserve_huge_os_pages_at, 8);
IS(reserve_os_memory, 9);
IS(deprecated_segment_cache, 10);
IS(deprecated_page_reset, 11);
IS(deprecated_segment_reset, 13);
IS(purge_delay, 15);
IS(use_numa_nodes, 16);
IS(disallow_os_alloc, 17);
IS(os_tag, 18);
IS(max_errors, 19);
IS(max_warnings, 20);
IS(destroy_on_exit, 22);
IS(arena_reserve, 23);
IS(arena_purge_mult, 24);

// Of version 2, and what version 3 calls them.
IS(eager_commit, 3);
IS(deprecated_eager_commit, 3);
IS(abandoned_page_purge, 12);
IS(deprecated_abandoned_page_purge, 12);
IS(eager_commit_delay, 14);
IS(deprecated_eager_commit_delay, 14);
IS(max_segment_reclaim, 21);
IS(deprecated_max_segment_reclaim, 21);
IS(purge_extend_delay, 25);
IS(deprecated_purge_extend_delay, 25);

// Of version 3.
IS(disallow_arena_alloc, 26);
IS(retry_on_oom, 27);
IS(visit_abandoned, 28);
IS(deprecated_visit_abandoned, 28);
IS(guarded_min, 29);
IS(guarded_max, 30);
IS(guarded_precise, 31);
IS(unsafe_guarded_precise, 31);
IS(guarded_sample_rate, 32);
IS(guarded_sample_seed, 33);
IS(generic_collect, 34);
IS(page_reclaim_on_free, 35);
IS(page_full_retain, 36);
IS(page_max_candidates, 37);
IS(max_vabits, 38);
IS(pagemap_commit, 39);
IS(page_commit_on_demand, 40);
IS(page_max_reclaim, 41);
IS(page_cross_thread_max_reclaim, 42);
IS(allow_thp, 43);
IS(minimal_purge_size, 44);
IS(arena_purge_min_size, 44);
IS(arena_max_object_size, 45);
IS(arena_is_numa_local, 46);
IS(stats_merge_on_collect, 47);
IS(profile_alloc_interval, 48);
IS(profile_inuse_interval, 49);
IS(profile_time_interval, 50);
IS(profile_sample_rate, 51);
IS(stats_merge_threshold, 52);
IS(arena_purge_immediate_size, 53);

// Older names.
IS(large_os_pages, 6);
IS(eager_region_commit, 4);
IS(reset_decommits, 5);
IS(reset_delay, 15);
IS(limit_os_alloc, 17);
IS(abandoned_page_reset, 12);
IS(abandoned_reclaim_on_free, 35);

// Behind all of those: ours, and those of version 2 that version 3 has no number for. What was given out does not change.
static_assert(mi_option_prof == 54 && mi_option_purge_zeroes == 61 && mi_option_on_violation == 64, "numbers of ours");
static_assert(mi_option_target_segments_per_thread == 100 && _mi_option_last > 100, "numbers of version 2");
static_assert(sizeof(mi_option_t) == sizeof(int), "an option is passed as an int");

#undef IS
