// Owns: arenas: large pieces of OS memory cut in slices, claimed and given back without a lock.
// May include: base, sys, region.
// Called by: heap.
// Invariants: a slice is claimed by at most one run; a claimed run is committed; what is free and pending is purged once
// its deadline has passed; metadata is out of line, between guard pages, in a mapping of its own.
#pragma once

#include "src/base/atomic.h"
#include "src/base/bitmap.h"
#include "src/base/geometry.h"
#include "src/sys/os.h"

typedef struct mi_arena_s mi_arena_t;

struct mi_arena_s {
  uint8_t* base;
  size_t slice_count;
  mi_os_block_t os;                 // the slices with their guards
  mi_os_block_t meta_os;            // this structure, the bitmaps and the groups, with their guards
  uint8_t* groups;                  // per group: MI_PAGE_META_SIZE a slice, then live bits and origins a slice
  bool commit_lazily;               // slices and groups are committed when first claimed
  _Atomic(bool) vacant;             // its memory was given back; only the metadata is there, for the next reservation
  bool is_first;                    // the process's first arena: its first group never holds huge OS pages
  _Atomic(size_t) hint;             // where searches begin: mostly, no free slice lies below
  _Atomic(int64_t) purge_deadline;  // 0: nothing pending
  mi_bitmap_word_t* free;           // may be claimed
  mi_bitmap_word_t* committed;      // readable and writable
  mi_bitmap_word_t* dirty;          // may hold something else than zeroes
  mi_bitmap_word_t* purge;          // free, and its memory goes back at the deadline
  mi_bitmap_word_t* guarded;        // the last OS page is inaccessible
  mi_bitmap_word_t* sealed;         // any OS page may be inaccessible
  mi_bitmap_word_t* heads;          // the first slice of a page in use, for walks over all pages
  mi_bitmap_word_t* group_ready;    // metadata of the group is committed
};

// A run of slices that the caller owns.
typedef struct mi_run_s {
  mi_arena_t* arena;
  size_t index;
  size_t slices;
  uint8_t* start;
  bool is_zero;
} mi_run_t;

// Claims `slices` slices whose start is a multiple of `align` bytes (a power of two, at least a slice). False when the
// system has no memory; *run is unspecified then. Thread-safe. `apart` keeps single large blocks away from pages of small
// ones as long as there is room: they can grow in place, and a stale pointer to one does not become one to small blocks.
bool _mi_arena_claim(size_t slices, size_t align, bool apart, mi_run_t* run);

// The same for a run whose slice number `lead` is to be aligned.
bool _mi_arena_claim_led(size_t slices, size_t lead, size_t align, bool apart, mi_run_t* run);

// Claims the `extra` slices right behind a run, in place. False when one is taken or cannot be committed.
// *is_zero: the claimed slices hold zeroes. Guards in them are left: see _mi_arena_unguard.
bool _mi_arena_claim_behind(mi_arena_t* arena, size_t end_index, size_t extra, bool* is_zero);

// Gives slices back; they are purged when the delay has passed. `known_zero`: nothing was written, or it was purged.
void _mi_arena_release(mi_arena_t* arena, size_t index, size_t slices, bool known_zero);

// Gives slices back and their memory to the system at once.
void _mi_arena_release_purged(mi_arena_t* arena, size_t index, size_t slices);

// The largest run that is worth taking from an arena, in slices.
size_t _mi_arena_slices_max(void);

// Metadata of the page that starts at slice `index`: MI_PAGE_META_SIZE bytes, and the live bits with the origins behind.
void* _mi_arena_page_meta(const mi_arena_t* arena, size_t index);
void* _mi_arena_live_meta(const mi_arena_t* arena, size_t index);

// Slices that the caller owns hold no page: gives the memory of their live bits and origins back, as far as it is whole OS
// pages. It reads zero from then on.
void _mi_arena_purge_live_meta(const mi_arena_t* arena, size_t index, size_t slices);

// The arena that holds address p, or NULL. A walk over all arenas: for reports and queries, not for paths.
mi_arena_t* _mi_arena_of(const void* p);

// Arena number i, or NULL from the first that does not exist on.
mi_arena_t* _mi_arena_at(size_t i);

// When the next purge is due (ms of the monotonic clock), 0 when nothing is pending.
extern _Atomic(int64_t) _mi_arena_purge_due;

// Set when that becomes due from nothing pending; whoever clears it tells the threads.
extern _Atomic(bool) _mi_arena_purge_is_news;

// Purges what is due at `now`, or everything pending when forced. Skipped when another thread is at it, unless forced.
void _mi_arenas_purge(int64_t now, bool force);

// Has the system fix the metadata of the arenas that are there. At the start of the process, and only where arenas are never
// destroyed.
mi_cold void _mi_arenas_seal(void);

// Unmaps every arena. Only at process end, when nothing can use them any more.
void _mi_arenas_destroy(void);

void _mi_arenas_fork_prepare(void);
void _mi_arenas_fork_release(bool in_child);
