// Owns: arenas: large pieces of OS memory cut in slices, claimed and given back without a lock.
// May include: base, sys, region.
// Called by: heap.
// Invariants: a slice is claimed by at most one run; a claimed run is committed; what is free and pending is purged once
// its deadline has passed; metadata is out of line, between guard pages, in a mapping of its own.
#pragma once

#include "mimalloc.h"
#include "src/base/atomic.h"
#include "src/base/bitmap.h"
#include "src/base/geometry.h"
#include "src/sys/os.h"
#include "src/sys/stats.h"

typedef struct mi_arena_s mi_arena_t;

enum { MI_GRANULE_META_SIZE = MI_LIVE_META_SIZE + MI_ORIGIN_META_SIZE + MI_STOCK_META_SIZE };

struct mi_arena_s {
  uint8_t* base;
  size_t slice_count;
  mi_os_block_t os;             // the slices with their guards
  mi_os_block_t meta_os;        // this structure, the bitmaps and the groups, with their guards; of size 0: permanent memory
  uint8_t* groups;              // per group: MI_PAGE_META_SIZE a slice, then live bits, origins and stock a slice
  size_t number;                // in the table
  bool commit_lazily;           // slices and groups are committed when first claimed
  bool counts_touched;          // charged when touched: what is dirty counts as committed, and metadata not at all
  bool is_programs;             // a call of the program's made it: it stays, used or not
  bool is_exclusive;            // serves those only who name it
  bool is_lent;                 // the program's memory: never released or replaced, and what a purge leaves in it is unknown
  bool is_pinned;               // its memory stays: no purge and no guard in it
  size_t os_page_size;          // of the huge OS pages it is made of; 0: of ordinary ones
  int numa_node;                // of its memory; -1: any
  mi_commit_fun_t* commit_fun;  // the program's, for lent memory that is committed lazily; NULL: the system's call
  void* commit_arg;
  _Atomic(bool) vacant;             // its memory was given back; only the metadata is there, for the next reservation
  _Atomic(bool) may_revive;         // and nobody is still about it
  bool is_first;                    // the process's first arena: its first group never holds huge OS pages
  _Atomic(size_t) hint;             // where searches begin: mostly, no free slice lies below
  _Atomic(int64_t) purge_deadline;  // 0: nothing pending
  mi_bitmap_word_t* free;           // may be claimed
  mi_bitmap_word_t* committed;      // readable and writable
  mi_bitmap_word_t* dirty;          // may hold something else than zeroes
  mi_bitmap_word_t* purge;          // free, and its memory goes back at the deadline
  mi_bitmap_word_t* wiped;          // free, and was cleared, though a stale pointer may have written there since
  mi_bitmap_word_t* guarded;        // the last OS page is inaccessible
  mi_bitmap_word_t* sealed;         // any OS page may be inaccessible
  mi_bitmap_word_t* heads;          // the first slice of a page in use, for walks over all pages
  mi_bitmap_word_t* group_ready;    // metadata of the group is committed
};

enum { MI_RUN_KNOWN_SLICES = 64 };

// A run of slices that the caller owns.
typedef struct mi_run_s {
  mi_arena_t* arena;
  size_t index;
  size_t slices;
  uint8_t* start;
  bool is_zero;
  uint64_t zero_slices;  // which of the first MI_RUN_KNOWN_SLICES hold zeroes, a bit each
} mi_run_t;

// Where a run may come from.
typedef struct mi_arena_source_s {
  mi_arena_t* only;  // this arena and no other; NULL: any that is not exclusive, or a new one
  int numa_node;     // of memory, to be preferred; negative: the one that the thread runs on
  bool piecemeal;    // what the arena has not committed yet is the caller's to commit, see _mi_arena_commit
} mi_arena_source_t;

// So many slices of the arena have become dirty, or are not any more.
mi_inline void _mi_arena_count_dirty(const mi_arena_t* arena, size_t slices) {
  if (arena->counts_touched && slices > 0) {
    _mi_stat_increase(&_mi_stats.committed, slices * MI_SLICE_SIZE);
  }
}

mi_inline void _mi_arena_count_clean(const mi_arena_t* arena, size_t slices) {
  if (arena->counts_touched) {
    _mi_stat_decrease(&_mi_stats.committed, slices * MI_SLICE_SIZE);
  }
}

// Claims `slices` slices of which number `lead` starts at a multiple of `align` bytes (a power of two, at least a slice).
// False when there is no memory; *run is unspecified then. Thread-safe. `apart` keeps single large blocks away from pages
// of small ones as long as there is room: they can grow in place, and a stale pointer to one does not become one to small
// blocks.
bool _mi_arena_claim_from(const mi_arena_source_t* source, size_t slices, size_t lead, size_t align, bool apart, mi_run_t* run);

// The same from anywhere.
mi_inline bool _mi_arena_claim(size_t slices, size_t align, bool apart, mi_run_t* run) {
  const mi_arena_source_t anywhere = {NULL, -1, false};
  return _mi_arena_claim_from(&anywhere, slices, 0, align, apart, run);
}

// Makes slices of a run that was claimed piecemeal readable and writable; a part that already is stays as it is. False: there
// is no memory.
bool _mi_arena_commit(mi_arena_t* arena, size_t index, size_t slices);

// Claims the `extra` slices right behind a run, in place. False when one is taken or cannot be committed.
// *is_zero: the claimed slices hold zeroes. Guards in them are left: see _mi_arena_unguard.
bool _mi_arena_claim_behind(mi_arena_t* arena, size_t end_index, size_t extra, bool* is_zero);

// Gives slices back; they are purged when the delay has passed. `known_zero`: nothing was written, or it was purged.
void _mi_arena_release(mi_arena_t* arena, size_t index, size_t slices, bool known_zero);

// Gives slices back and their memory to the system at once. Where freed memory is to be zero they are, whatever it takes.
void _mi_arena_release_purged(mi_arena_t* arena, size_t index, size_t slices);

// The largest run that is worth taking from an arena that the program has not named, in slices.
size_t _mi_arena_slices_max(void);

// Metadata of the page that starts at slice `index`: MI_PAGE_META_SIZE bytes, and the live bits with the origins and the stock behind.
void* _mi_arena_page_meta(const mi_arena_t* arena, size_t index);
void* _mi_arena_live_meta(const mi_arena_t* arena, size_t index);

// Slices that the caller owns hold no page: gives the memory of their live bits and origins back, as far as it is whole OS
// pages. It reads zero from then on.
void _mi_arena_purge_live_meta(const mi_arena_t* arena, size_t index, size_t slices);

// The arena that holds address p, or NULL. A walk over all arenas: for reports and queries, not for paths.
mi_arena_t* _mi_arena_of(const void* p);

// Arena number i, or NULL from the first that does not exist on.
mi_arena_t* _mi_arena_at(size_t i);

// The arena of an id; NULL for no id and for one that is none of ours.
mi_arena_t* _mi_arena_of_id(mi_arena_id_t id);

// An arena's id: its number and 1, so that it fits in an int.
mi_arena_id_t _mi_arena_id(const mi_arena_t* arena);

// When the next purge is due (ms of the monotonic clock), 0 when nothing is pending.
extern _Atomic(int64_t) _mi_arena_purge_due;

// Set when that becomes due from nothing pending; whoever clears it tells the threads.
extern _Atomic(bool) _mi_arena_purge_is_news;

// Purges what is due at `now`, or everything pending when forced. Skipped when another thread is at it, unless forced.
void _mi_arenas_purge(int64_t now, bool force);

// Has the system fix the metadata of the arenas that are there; if none is, and its metadata would lie at random, makes one. At the start of the process, and only where arenas are never
// destroyed.
mi_cold void _mi_arenas_seal(void);

// Unmaps every arena. Only at process end, when nothing can use them any more.
void _mi_arenas_destroy(void);

void _mi_arenas_fork_prepare(void);
void _mi_arenas_fork_release(bool in_child);
