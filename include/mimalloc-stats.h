// Owns: the statistics as a struct, and the functions that fill it and write it as JSON.
// May include: mimalloc.h and the language's own headers.
// Called by: programs; and by our own units, for the types.
// Invariants: a layout that a released header had is accepted for good, keyed by its size and version.
#ifndef MIMALLOC_STATS_H
#define MIMALLOC_STATS_H

#include <stdint.h>

#include "mimalloc.h"

// ---- Statistics as a struct. Figures for programs, and the same as JSON. ----

// MI_STAT_VERSION is the version of the layout of mi_stats_t below.
#define MI_STAT_VERSION 5

// mi_stat_count_t is of what goes up and down, in bytes or numbers: 0 <= current <= peak <= total.
typedef struct mi_stat_count_s {
  int64_t total;    // of all increases
  int64_t peak;     // the most there was at once
  int64_t current;  // what there is
} mi_stat_count_t;

// mi_stat_counter_t is of what only goes up.
typedef struct mi_stat_counter_s {
  int64_t total;  // of all increases
} mi_stat_counter_t;

// MI_BIN_HUGE is the bin of blocks that are a page by themselves; those below are of ranges of sizes, see
// mi_stats_get_bin_size.
#define MI_BIN_HUGE (73U)

// mi_chunkbin_t is the kind of a page in chunk_bins.
typedef enum mi_chunkbin_e {
  MI_CBIN_SMALL,   // 64 KiB of blocks of up to 8 KiB
  MI_CBIN_OTHER,   // addresses of blocks of no bytes
  MI_CBIN_MEDIUM,  // 512 KiB of blocks of up to 64 KiB
  MI_CBIN_LARGE,   // 4 MiB of blocks of up to 512 KiB
  MI_CBIN_HUGE,    // one block
  MI_CBIN_NONE,    // always 0
  MI_CBIN_COUNT
} mi_chunkbin_t;

// mi_stats_t is what mi_stats_get and its kin fill in. `size` and `version` are the caller's to set: mi_stats_init does.
//
// How exact it is. Of the calling thread, and of what no thread owns any more, everything is exact but the peaks of blocks.
// What other threads are doing meanwhile is seen as each page of theirs is looked at: `current` is exact for each; of what
// such a thread has itself allocated and freed since the page's list of free blocks last ran out the totals know nothing
// yet. A peak of blocks is the highest count that was seen when pages got more blocks, filled up, or statistics were read.
// In the debug variant each call counts, and all of it is exact.
//
// What is counted. Blocks by what they hold: sizes of blocks, not of requests. malloc_requested is the same but in the
// debug variant, where it is the bytes that were asked for, and those between the beginning of a block that was aligned with an
// offset and its address. Blocks that wait in the strict variant's quarantine are free.
// Of a heap all fields that are about the system or arenas are 0.
typedef struct mi_stats_s {
  size_t size;     // sizeof(mi_stats_t)
  size_t version;  // MI_STAT_VERSION

  mi_stat_count_t pages;             // pages in use, but for those of blocks of no bytes
  mi_stat_count_t reserved;          // bytes of addresses
  mi_stat_count_t committed;         // bytes of them as mi_process_info tells
  mi_stat_counter_t reset;           // bytes that were marked unused
  mi_stat_counter_t purged;          // bytes whose memory was given back
  mi_stat_count_t page_committed;    // bytes in pages
  mi_stat_count_t pages_abandoned;   // pages that are in no thread's hands and have room
  mi_stat_count_t threads;           // threads that have allocated
  mi_stat_count_t malloc_normal;     // bytes in blocks of size classes
  mi_stat_count_t malloc_huge;       // bytes in blocks that are a page by themselves
  mi_stat_count_t malloc_requested;  // bytes in all blocks, see above

  mi_stat_counter_t mmap_calls;            // reservations
  mi_stat_counter_t commit_calls;          // calls that made memory readable and writable
  mi_stat_counter_t reset_calls;           // and marked it unused
  mi_stat_counter_t purge_calls;           // and gave it back
  mi_stat_counter_t arena_count;           // arenas
  mi_stat_counter_t malloc_normal_count;   // blocks of size classes
  mi_stat_counter_t malloc_huge_count;     // blocks that are a page by themselves
  mi_stat_counter_t malloc_guarded_count;  // blocks that sampling has guarded; they count as huge ones, too
  mi_stat_counter_t arena_rollback_count;  // runs that another thread took first
  mi_stat_counter_t arena_purges;          // runs that were given back
  mi_stat_counter_t pages_extended;        // times that a page listed more of its blocks
  mi_stat_counter_t pages_retire;          // times that an empty page was kept for a while
  mi_stat_counter_t page_searches;         // pages that were looked at for a free block
  mi_stat_counter_t page_searches_count;   // searches for a free block

  mi_stat_count_t segments;            // always 0, as the three after it
  mi_stat_count_t segments_abandoned;  // always 0
  mi_stat_count_t segments_cache;      // always 0
  mi_stat_count_t _segments_reserved;  // always 0
  mi_stat_count_t heaps;               // heaps beside the main one
  mi_stat_count_t theaps;              // threads' parts of heaps

  mi_stat_counter_t pages_reclaim_on_alloc;     // abandoned pages that an allocation took
  mi_stat_counter_t pages_reclaim_on_free;      // full pages that a free took
  mi_stat_counter_t pages_reabandon_full;       // full pages that a thread let go of
  mi_stat_counter_t pages_unabandon_busy_wait;  // always 0: nobody waits for a page
  mi_stat_counter_t heaps_delete_wait;          // always 0: nobody waits for a heap

  mi_stat_count_t _stat_reserved[4];            // always 0
  mi_stat_counter_t _stat_counter_reserved[4];  // always 0

  mi_stat_count_t malloc_bins[MI_BIN_HUGE + 1];  // blocks, by bin
  mi_stat_count_t page_bins[MI_BIN_HUGE + 1];    // pages, by the bin of their blocks
  mi_stat_count_t chunk_bins[MI_CBIN_COUNT];     // pages, by their kind; peaks are as high as was seen
} mi_stats_t;

#if defined(__cplusplus)
extern "C" {
#endif

// mi_stats_header_init says which layout *stats has, and leaves the rest as it is.
static inline void mi_stats_header_init(mi_stats_t* stats) {
  stats->size = sizeof(*stats);
  stats->version = MI_STAT_VERSION;
}

// mi_stats_init makes *stats all zeroes but for what layout it has.
static inline void mi_stats_init(mi_stats_t* stats) {
#if defined(__cplusplus)
  unsigned char* const bytes = reinterpret_cast<unsigned char*>(stats);
#else
  unsigned char* const bytes = (unsigned char*)stats;
#endif
  for (size_t i = 0; i < sizeof(*stats); i++) {
    bytes[i] = 0;
  }
  mi_stats_header_init(stats);
}

// mi_stats_t_decl(name) declares a variable and makes it ready for mi_stats_get.
#define mi_stats_t_decl(name) \
  mi_stats_t name;            \
  mi_stats_init(&name)

// mi_stats_get fills *stats with the statistics of the process. False, and nothing is written, unless size and version are
// those of a layout that is known: 4368 bytes (on 64 bits) in version 5, 4168 bytes in version 4, which has no heaps,
// theaps, heaps_delete_wait and chunk_bins.
mi_decl_export bool mi_stats_get(mi_stats_t* stats) mi_attr_noexcept;

// mi_stats_get_json writes the statistics of the process, and a few figures of the system about it, as JSON to buf, which
// has buf_size bytes, zero-terminated, and returns buf; NULL if it does not fit (buf then holds an empty string). With a
// NULL buf it returns a block that is to be freed with mi_free, or NULL with errno ENOMEM.
mi_decl_export char* mi_stats_get_json(size_t buf_size, char* buf) mi_attr_noexcept;

// mi_stats_as_json is mi_stats_get_json of statistics that were read before. NULL also if the layout is not known.
mi_decl_export char* mi_stats_as_json(mi_stats_t* stats, size_t buf_size, char* buf) mi_attr_noexcept;

// mi_stats_get_bin_size returns the size of the largest blocks that malloc_bins[bin] counts, in bytes. Bin 0 is of blocks
// of no bytes. 0 for MI_BIN_HUGE, whose blocks have no size in common, and beyond.
mi_decl_export size_t mi_stats_get_bin_size(size_t bin) mi_attr_noexcept;

// mi_heap_stats_get is mi_stats_get of one heap, which must exist; NULL: the main heap.
mi_decl_export bool mi_heap_stats_get(mi_heap_t* heap, mi_stats_t* stats) mi_attr_noexcept;

// mi_heap_stats_get_json is mi_stats_get_json of one heap, likewise.
mi_decl_export char* mi_heap_stats_get_json(mi_heap_t* heap, size_t buf_size, char* buf) mi_attr_noexcept;

// mi_heap_stats_merge_to_subproc makes what a heap has counted so far its sub-process's alone: the heap starts counting anew,
// as by mi_stats_reset. NULL: the main heap.
mi_decl_export void mi_heap_stats_merge_to_subproc(mi_heap_t* heap) mi_attr_noexcept;

#if !defined(MI_API_V2)  // there a theap is a heap
// mi_theap_stats_get is mi_stats_get of what the calling thread has of a heap: the blocks of the pages that are in its hands,
// and how many its pages have handed out since it was merged. No peaks are kept: each is what there is. The theap must be
// the calling thread's; NULL: all that it has.
mi_decl_export bool mi_theap_stats_get(mi_theap_t* theap, mi_stats_t* stats) mi_attr_noexcept;

// mi_theap_stats_merge_to_heap makes what the calling thread's theap has counted so far its heap's alone: the theap starts
// counting anew. NULL: all that the thread has.
mi_decl_export void mi_theap_stats_merge_to_heap(mi_theap_t* theap) mi_attr_noexcept;
#endif

// mi_subproc_stats_get is mi_stats_get of one sub-process. A NULL id is that of the main one, which has what is counted of the
// process, less the heaps of others; another one has what its heaps have, and had that have ended. False also if there is
// none of that id.
mi_decl_export bool mi_subproc_stats_get(mi_subproc_id_t subproc_id, mi_stats_t* stats) mi_attr_noexcept;

// mi_subproc_stats_get_exclusive is the same without what the heaps of the sub-process count: of those that have ended, and
// what was merged.
mi_decl_export bool mi_subproc_stats_get_exclusive(mi_subproc_id_t subproc_id, mi_stats_t* stats) mi_attr_noexcept;

// mi_subproc_stats_get_json is mi_stats_get_json of one sub-process, likewise; NULL if there is none of that id.
mi_decl_export char* mi_subproc_stats_get_json(mi_subproc_id_t subproc_id, size_t buf_size, char* buf) mi_attr_noexcept;

// mi_subproc_stats_print_out is mi_stats_print_out of one sub-process, if there is one of that id.
mi_decl_export void mi_subproc_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg) mi_attr_noexcept;

// mi_subproc_heap_stats_print_out writes the same and then the statistics of each of its heaps.
mi_decl_export void mi_subproc_heap_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

#endif
