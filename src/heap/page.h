// Owns: the structures of pages, theaps and heaps, and what can be done to a page by itself.
// May include: base, hardening, sys, region.
// Called by: heap, alloc.
// Invariants: at any time a page has at most one owner thread; only the owner touches its plain fields.
//
// Glossary
//   block       what the program gets; a page has blocks of one size
//   page        a run of slices of an arena holding blocks of one size class, or one block alone (a single)
//   OS page     the system's page
//   slice       64 KiB of an arena, the unit arenas hand out
//   free list   page->free, from which the owner allocates; page->local_free, what the owner freed; page->remote, what
//               other threads freed
//   stock       with lists out of line in place of page->free: the numbers of the granules where the next blocks start; what
//               the owner freed is in no list, as the live bits tell it
//   theap       a thread's part of a heap: the pages it owns, in a queue for each size class
//   heap        what the program names; the main heap serves malloc
//   owned       a thread's id is in page->owner, and MI_REMOTE_OWNED is set in page->remote
//   full        an owned page with no free block; after a few, theaps let go of them: unowned and not listed
//   listed      an unowned page with free blocks, in the heap's list of its class, for whoever needs it
//   retired     an owned page that had no block in use and is kept for a moment in case it is wanted again; the keeping
//               counts as a block in use, so that the paths of malloc and free need not know of it
#pragma once

#include "hardening/free-list.h"
#include "hardening/live-bits.h"
#include "hardening/origin.h"
#include "hardening/padding.h"
#include "hardening/sized.h"
#include "hardening/stock.h"
#include "src/base/assert.h"
#include "src/base/atomic.h"
#include "src/base/geometry.h"
#include "src/base/sizeclass.h"
#include "src/region/arena.h"
#include "src/region/page-map.h"
#include "src/sys/lock.h"
#include "src/track/track.h"

typedef struct mi_theap_s mi_theap_t;
typedef struct mi_heap_s mi_heap_t;

// A free block: the link to the next one, encoded where the profile says so.
typedef struct mi_block_s {
  uintptr_t link;
} mi_block_t;

// Thread ids are multiples of 16; the low bits of page->owner make a page special, so that the fast path of free, which
// compares the whole word with the thread's id, leaves it to the slow path.
enum {
  MI_TID_DISARMED = 0,  // what a thread compares with when its fast paths are switched off, or not set up; owns nothing
  MI_TID_NONE = 1,      // page->owner of an unowned page
  MI_TID_LATE = 16,     // the process-wide theap of threads that have none
  MI_TID_FIRST = 32,
  MI_TID_STEP = 16,
  MI_OWNER_FLAGS = 15,
  MI_OWNER_HAS_INTERIOR = 2,  // some blocks were handed out at an address inside them (alignment with an offset)
};

// page->remote: a count of blocks, the first of them, and two flags, changed together by compare-and-swap; and, of an
// unowned listed page, how many blocks the program had when it was let go of. Count and number in one word let whoever
// frees the last block know that it did, whatever happened to the page between its look and its swap.
#define MI_REMOTE_OWNED UINT64_C(1)
#define MI_REMOTE_LISTED UINT64_C(2)
#define MI_REMOTE_HEAD_SHIFT 8
#define MI_REMOTE_HEAD_MASK UINT64_C(0xffffff)
#define MI_REMOTE_COUNT_SHIFT 32
#define MI_REMOTE_COUNT_MASK UINT64_C(0xffff)
#define MI_REMOTE_USED_SHIFT 48
#define MI_REMOTE_USED_BITS (UINT64_C(0xffff) << MI_REMOTE_USED_SHIFT)

_Static_assert(MI_PAGE_GRANULES <= 0xffff, "a page's blocks are counted in 16 bits of its remote word");

enum { MI_OS_GUARD_HEAD = 1,
       MI_OS_GUARD_TAIL = 2 };

enum { MI_GUARDED_AT_RIGHT = 1,
       MI_GUARDED_AT_LEFT = 2 };

struct mi_page_s {
  // Read by every free, written when the page changes hands. First: the pages that are none have nothing else.
  _Atomic(uintptr_t) owner;
  uint8_t* start;
  mi_live_word_t* live;
  size_t block_size;  // of a single: from the start of the page to the end of what the program may use
  uint32_t reserved;  // blocks that fit
  uint8_t bin;
  uint8_t granule_shift;
  _Atomic(bool) has_interior;  // a block was handed out at an address inside it
  _Atomic(bool) has_origins;   // a block was not made by the malloc family; never taken back while the page exists
  mi_theap_t* theap;
  union {
    mi_padding_key_t canary_key;  // of the trailers
    uint64_t sample;              // of a single: the name of its record in the profile; 0: none
  };
  // Written by the owner on every call.
  mi_aligned(MI_CACHE_LINE) union {
    mi_block_t* free;
    uintptr_t stocked;  // with lists out of line: how many blocks the stock has, the last of which is handed out next
  };
  union {
    mi_block_t* local_free;
    uintptr_t used_before;  // with lists out of line: `used` after the last refill; what is missing there was freed since
  };
  uint32_t used;          // blocks handed out and not collected, MI_RETIRED_USES more if the page is retired, and those in stock
  uint32_t capacity;      // blocks that were ever in a list
  uint32_t class_spread;  // how many request sizes lead to this class; a slice for a single
  bool free_is_zero;      // blocks in `free` hold zeroes but for their link
  bool retired;
  uint16_t listed;    // the length of `free` when it last changed other than by the fast paths
  mi_link_key_t key;  // of the links in `free` and `local_free`, which only the owner reads and writes
  uintptr_t key_inverse;
  // Written by other threads.
  mi_aligned(MI_CACHE_LINE) _Atomic(uint64_t) remote;
  mi_link_key_t remote_key;  // of the links in `remote`, for as long as the page exists
  uintptr_t remote_inverse;
  _Atomic(mi_heap_t*) heap;  // changes under the lock of the heap it leaves
  union {
    uint64_t unlisted;       // with a random order: the chunks whose blocks were never in a list
    size_t counted_request;  // of a single: the request that the heap knows
  };
  uint32_t key_generation;   // of the random numbers that `key` is from
  _Atomic(bool) has_remote;  // with lists out of line: another thread has freed, or is about to; never taken back
  // Where the memory is from, and the neighbours in a queue or a list.
  mi_aligned(MI_CACHE_LINE) struct mi_page_s* next;
  struct mi_page_s* prev;
  mi_arena_t* arena;  // NULL: memory of its own, in `os`
  size_t slice_index;
  size_t slice_count;
  uint8_t* single_start;  // what a single was handed out as
  _Atomic(uint8_t) single_origin;
  uint8_t os_guards;    // MI_OS_GUARD_ of a single with memory of its own
  bool memory_is_zero;  // what was never handed out holds zeroes
  bool relisted;        // its blocks were in lists before, all of which were dropped
  uint8_t guarded;      // MI_GUARDED_AT_ of a single in a slot of its own
  size_t request;       // what a single was asked for
  mi_os_block_t os;
  _Atomic(uintptr_t) last_tid;  // who owned it last; of a single: who made it
  struct mi_page_s* heap_next;  // in the list of all pages of its heap, under the heap's lock; not of the main heap's
  struct mi_page_s* heap_prev;
  uint32_t fill_preserve;  // as of its heap when the page was made
  // Of statistics; see heap-stats.h.
  uint32_t noted;  // blocks in use that the heap knows of
  union {
    _Atomic(uint64_t) handed;  // blocks handed out that the heap does not know of, but for those of `listed`
    size_t counted_size;       // of a single: the size that the heap knows
  };
};

_Static_assert(offsetof(mi_page_t, owner) == 0, "a page that is none is nobody's");
_Static_assert(sizeof(mi_page_t) <= MI_PAGE_META_SIZE, "page metadata outgrew its place in the arena's groups");

typedef struct mi_page_queue_s {
  mi_page_t* first;
  mi_page_t* last;
  uint32_t count;
  uint32_t retired;  // pages
  uint32_t lent;     // blocks that the thread had from shared pages before it got one of its own
  uint32_t made;     // new pages
} mi_page_queue_t;

// Fast-path entry: a page of which allocation may always be tried; never has a free block.
extern mi_page_t _mi_page_empty;

// How many blocks others have freed and nobody has collected.
mi_inline uint32_t _mi_remote_count(uint64_t remote) {
  return (uint32_t)((remote >> MI_REMOTE_COUNT_SHIFT) & MI_REMOTE_COUNT_MASK);
}

// Of a page as _mi_page_map_look found it: whether it is none.
mi_inline bool _mi_page_is_none(const mi_page_t* page) { return page->start == NULL; }

// The keeping of an empty page counts as so many uses. Notes of what was freed stay where they are by it.
enum { MI_RETIRED_USES = MI_HAS_OUTLINE_LISTS ? MI_STOCK_MAX : 1 };

// How many blocks are handed out and not collected, or what stands for them in a retired page: 0 in no other empty one.
mi_inline uint32_t _mi_page_used(const mi_page_t* page) {
  return MI_HAS_OUTLINE_LISTS ? page->used - (uint32_t)page->stocked : page->used;
}

// How many blocks the program has, and others have freed that nobody has collected.
mi_inline uint32_t _mi_page_in_use(const mi_page_t* page) {
  return _mi_page_used(page) - (page->retired ? MI_RETIRED_USES : 0);
}

// Wraps: what is added may be a negative number.
mi_inline mi_wraps void _mi_page_set_retired(mi_page_t* page, bool retired) {
  if (retired != page->retired) {
    const uint32_t uses = retired ? (uint32_t)MI_RETIRED_USES : -(uint32_t)MI_RETIRED_USES;
    page->retired = retired;
    page->used += uses;
    if (MI_HAS_OUTLINE_LISTS) {
      page->used_before = (uint32_t)page->used_before + uses;
    }
  }
}

// The program's blocks are not its any more, all at once.
mi_inline void _mi_page_set_unused(mi_page_t* page) {
  page->retired = false;
  page->used = MI_HAS_OUTLINE_LISTS ? (uint32_t)page->stocked : 0;
}

mi_inline bool _mi_page_is_single(const mi_page_t* page) { return page->bin == MI_BIN_SINGLE; }

// What the program may use of a single.
mi_inline size_t _mi_page_single_usable(const mi_page_t* page) {
  return page->block_size - (size_t)(page->single_start - page->start);
}

// Whether it is a guarded block.
mi_inline bool _mi_page_is_guarded(const mi_page_t* page) { return MI_HAS_GUARDED && mi_unlikely(page->guarded != 0); }

// Wraps: an address before the page is far behind it.
mi_inline mi_wraps uint64_t _mi_page_live_index(const mi_page_t* page, const void* p) {
  return _mi_hard_live_index((uint64_t)((uintptr_t)p - (uintptr_t)page->start), page->granule_shift);
}

// The origins of the page's blocks, one byte a granule: they stand behind the live bits. Not of singles.
mi_inline _Atomic(uint8_t)* _mi_page_origins(const mi_page_t* page) {
  return (_Atomic(uint8_t)*)((uintptr_t)page->live + MI_LIVE_META_SIZE);
}

// The stock of the page: it stands behind the origins.
mi_inline uint16_t* _mi_page_stock(const mi_page_t* page) {
  return (uint16_t*)((uintptr_t)page->live + MI_LIVE_META_SIZE + MI_ORIGIN_META_SIZE);
}

// A free block of a page with a stock is marked.
mi_inline void _mi_block_set_mark(const mi_page_t* page, mi_block_t* block) {
  block->link = _mi_hard_stock_mark((uintptr_t)block, &page->key);
}

mi_inline bool _mi_block_is_marked(const mi_page_t* page, const mi_block_t* block) {
  return block->link == _mi_hard_stock_mark((uintptr_t)block, &page->key);
}

// Notes a block that is free and was in use until now.
mi_inline void _mi_page_note_freed(mi_page_t* page, mi_block_t* block, uint64_t index) {
  // Before the mark: what is written to the block might be any pointer of ours to the compiler.
  uint16_t* const freed = _mi_page_stock(page) + MI_STOCK_SLOTS;
  const uint32_t used = page->used - 1;
  _mi_block_set_mark(page, block);
  _mi_hard_stock_note_freed(freed, used, index);
  page->used = used;
}

// Forgets the blocks that were about to be handed out. Those of a stock are found by a search again.
mi_inline void _mi_page_drop_ready(mi_page_t* page) {
  if (MI_HAS_OUTLINE_LISTS) {
    page->used -= (uint32_t)page->stocked;
    page->used_before = page->used;
  }
  page->free = NULL;
}

// Whether there is a block that can be handed out without a refill.
mi_inline bool _mi_page_is_ready(const mi_page_t* page) {
  return MI_HAS_OUTLINE_LISTS ? page->stocked != 0 : page->free != NULL;
}

// Whether there are blocks that were used before and wait for a refill, but for what others freed and nobody has collected.
mi_inline bool _mi_page_has_freed(const mi_page_t* page) {
  return MI_HAS_OUTLINE_LISTS ? page->capacity != _mi_page_in_use(page) : page->local_free != NULL;
}

// Once what others freed is collected and the owner's lists are joined: whether the page has a free block.
mi_inline bool _mi_page_is_full(const mi_page_t* page) {
  return page->capacity == page->reserved &&
      (MI_HAS_OUTLINE_LISTS ? _mi_page_in_use(page) == page->reserved : page->free == NULL);
}

// What a byte is combined with, so that zero stands for the malloc family: as long as a page has no other blocks, its bytes
// are zero, and neither written nor read.
enum { MI_ORIGIN_PLAIN = MI_FAMILY_MALLOC };

// Notes which call makes the block at a granule, by whoever makes it. Relaxed: the program orders this before a free by
// another thread, and that is before the block is made anew.
mi_inline void _mi_page_set_origin(mi_page_t* page, uint64_t index, uint8_t origin) {
  if (origin != MI_ORIGIN_PLAIN) {
    mi_atomic_store_relaxed(&page->has_origins, true);
  } else if (mi_likely(!mi_atomic_load_relaxed(&page->has_origins))) {
    return;
  }
  mi_atomic_store_relaxed(&_mi_page_origins(page)[index], (uint8_t)(origin ^ MI_ORIGIN_PLAIN));
}

// Which call made the live block at a granule of the page.
mi_inline uint8_t _mi_page_origin(const mi_page_t* page, uint64_t index) {
  if (mi_likely(!mi_atomic_load_relaxed(&page->has_origins))) {
    return MI_ORIGIN_PLAIN;
  }
  return mi_atomic_load_relaxed(&_mi_page_origins(page)[index]) ^ MI_ORIGIN_PLAIN;
}

// The next block in a list of the owner's.
mi_inline mi_block_t* _mi_block_next(const mi_page_t* page, const mi_block_t* block) {
  const uintptr_t link = block->link;
  return (mi_block_t*)(MI_HAS_ENCODED_LISTS ? _mi_hard_link_decode(link, (uintptr_t)block, &page->key, page->key_inverse)
                                            : link);
}

mi_inline void _mi_block_set_next(const mi_page_t* page, mi_block_t* block, const mi_block_t* next) {
  const uintptr_t link = (uintptr_t)next;
  block->link = MI_HAS_ENCODED_LISTS ? _mi_hard_link_encode(link, (uintptr_t)block, &page->key) : link;
}

// The same in the list of what other threads freed.
mi_inline mi_block_t* _mi_block_remote_next(const mi_page_t* page, const mi_block_t* block) {
  const uintptr_t link = block->link;
  return (mi_block_t*)(MI_HAS_ENCODED_LISTS
                           ? _mi_hard_link_decode(link, (uintptr_t)block, &page->remote_key, page->remote_inverse)
                           : link);
}

mi_inline void _mi_block_set_remote_next(const mi_page_t* page, mi_block_t* block, const mi_block_t* next) {
  const uintptr_t link = (uintptr_t)next;
  block->link = MI_HAS_ENCODED_LISTS ? _mi_hard_link_encode(link, (uintptr_t)block, &page->remote_key) : link;
}

// Whether a block of the page starts at p.
mi_inline bool _mi_page_is_block_start(const mi_page_t* page, const void* p) {
  const uintptr_t offset = (uintptr_t)p - (uintptr_t)page->start;
  return offset < page->reserved * page->block_size && (uint32_t)offset % (uint32_t)page->block_size == 0;
}

// Whether p may be in a list of the owner's: it is a free block, as far as the profile can tell.
mi_inline bool _mi_page_may_be_free(const mi_page_t* page, const void* p) {
  if (MI_HAS_LIVE_BITS) {
    return _mi_hard_live_is_free(page->live, _mi_page_live_index(page, p));
  }
  return !MI_HAS_ENCODED_LISTS || _mi_page_is_block_start(page, p);
}

// Reports a free list of the page that names `block`, which is none of its free blocks, and drops the list.
mi_cold void _mi_page_report_corrupt(mi_page_t* page, const void* block);

// Takes a block from the page's free list and notes its origin; NULL when it is empty or leads to what is no free block, which
// _mi_page_pop_as tells apart. `granule_shift` is the page's, for callers that know it.
mi_inline void* mi_page_try_take_stock(mi_page_t* page, uint8_t origin, unsigned granule_shift) {
  uintptr_t stocked;
  // One instruction takes one off and tells whether there was one.
  if (mi_unlikely(__builtin_sub_overflow(page->stocked, 1, &stocked))) {
    return NULL;
  }
  const uint64_t index = _mi_page_stock(page)[stocked];
  mi_block_t* const block = (mi_block_t*)(void*)(page->start + (index << granule_shift));
  if (mi_unlikely(!_mi_block_is_marked(page, block)) || mi_unlikely(!_mi_hard_stock_hand_out(page->live, index))) {
    return NULL;
  }
  if (MI_HAS_FAMILY) {
    _mi_page_set_origin(page, index, origin);
  }
  page->stocked = stocked;
  return block;
}

// Wraps: the end of a list lies before every page.
mi_inline mi_wraps void* _mi_page_try_pop_known(mi_page_t* page, uint8_t origin, unsigned granule_shift) {
  if (MI_HAS_OUTLINE_LISTS) {
    return mi_page_try_take_stock(page, origin, granule_shift);
  }
  mi_block_t* const block = page->free;
  const uint64_t index = _mi_hard_live_index((uint64_t)((uintptr_t)block - (uintptr_t)page->start), granule_shift);
  // With live bits the end of the list needs no test of its own: NULL is none of the page's places.
  if (!MI_HAS_LIVE_BITS && mi_unlikely(block == NULL)) {
    return NULL;
  }
  if (MI_HAS_LIVE_BITS && mi_unlikely(!_mi_hard_live_set(page->live, index))) {
    return NULL;
  }
  if (!MI_HAS_LIVE_BITS && MI_HAS_ENCODED_LISTS && mi_unlikely(index >= MI_PAGE_GRANULES)) {
    _mi_page_report_corrupt(page, block);
    return NULL;
  }
  if (MI_HAS_FAMILY) {
    _mi_page_set_origin(page, index, origin);
  }
  page->free = _mi_block_next(page, block);
  page->used++;
  return block;
}

mi_inline void* _mi_page_try_pop_as(mi_page_t* page, uint8_t origin) {
  return _mi_page_try_pop_known(page, origin, page->granule_shift);
}

// The same, for slow paths; NULL when the list is empty, or corrupt and reported.
void* _mi_page_pop_as(mi_page_t* page, uint8_t origin);

// The same for a block that any free of ours may take.
mi_inline void* _mi_page_try_pop(mi_page_t* page) { return _mi_page_try_pop_as(page, MI_FAMILY_ANY); }
mi_inline void* _mi_page_pop(mi_page_t* page) { return _mi_page_pop_as(page, MI_FAMILY_ANY); }

// Reports and drops the free list if its first block is no free block of the page.
void _mi_page_check_free(mi_page_t* page);

// Makes freed blocks available in page->free, which is empty: what was freed here, else what others freed.
bool _mi_page_refill_freed(mi_page_t* page);

// Makes blocks available in page->free, which is empty, that were never used; there are some. Their memory is committed.
void _mi_page_extend(mi_page_t* page);

// Commits what the next extension may list, where pages are committed piecemeal. False: there is no memory.
bool _mi_page_commit_next(const mi_page_t* page);

// Only the first `keep` blocks of page->free stay available; the others become blocks that were freed here.
void _mi_page_hold_back(mi_page_t* page, uint32_t keep);

// A new page, whose size of blocks is known: nothing of it is listed.
void _mi_page_order_init(mi_page_t* page);

// Puts the page's stock in another order.
void _mi_page_order_anew(mi_page_t* page);

// Whether what was never listed and `capacity` make up the page. Not while its thread lists blocks.
bool _mi_page_order_is_whole(const mi_page_t* page);

// An empty page is kept for later: drops its lists, as if it were new, unless its blocks are large.
void _mi_page_drop_old_lists(mi_page_t* page);

// Gives the owner's lists new keys, or a new order, if the random numbers were reseeded, in a forked child, since they got
// theirs.
void _mi_page_rekey(mi_page_t* page);

// Moves what other threads freed to the front of page->free.
void _mi_page_collect_remote(mi_page_t* page);

// Moves everything freed to page->free, so that `used` is what the program holds.
void _mi_page_collect(mi_page_t* page);

// A new page of a size class, owned by the calling thread, in no queue; NULL when the system has no memory.
mi_page_t* _mi_page_new(mi_theap_t* theap, unsigned bin);

// A new page with one block of at least `size` bytes at a multiple of `align`, unowned, in the theap's heap (NULL: the main
// heap). `grows`: it is likely to be enlarged soon. `zero`: it holds zeroes.
mi_page_t* _mi_page_new_single(mi_theap_t* theap, size_t size, size_t align, bool grows, bool zero);

// The two halves of making a page of slices: its metadata, which is zeroes but for what the run says, and entering it
// everywhere. False: no memory; the page is gone, its slices are the caller's.
mi_page_t* _mi_page_claim_meta(const mi_run_t* run, bool has_live);
bool _mi_page_enter(mi_page_t* page, const mi_theap_t* theap);

// Gives a page's memory back. Owned by the caller, in no queue or list, with no block in use.
void _mi_page_release(mi_page_t* page);

// The same for one that has been idle for the purge delay: its memory goes back to the system at once.
void _mi_page_release_idle(mi_page_t* page);

// The second half of both, for a page that nobody finds any more.
void _mi_page_give_back(mi_page_t* page, bool idle);

// Changes a single's size in place; false when its surroundings do not allow it. *is_zero: the new part holds zeroes.
bool _mi_page_single_resize(mi_page_t* page, size_t size, bool* is_zero);

// The block that address p lies in, by division: for slow paths.
mi_inline void* _mi_page_block_of(const mi_page_t* page, const void* p) {
  const size_t offset = (size_t)((uintptr_t)p - (uintptr_t)page->start);
  return page->start + offset / page->block_size * page->block_size;
}

// Whether the block that address p lies in has been in a list since the page's lists were last dropped.
bool _mi_page_is_in_play(const mi_page_t* page, const void* p);

// Whether it was ever in a list.
bool _mi_page_was_listed(const mi_page_t* page, const void* p);

// The page in use that address p lies in, also far inside a single; NULL when there is none. Slow.
mi_page_t* _mi_page_of_any(const void* p);

// What an address without a page was: true when a page that is gone had a block start there.
bool _mi_page_was_block(const void* p);

// A block of the page, which the caller owns, is handed out at an address inside it: from now on frees look for the block.
// False: there is no memory to note it; the block is to be freed.
bool _mi_page_mark_interior(mi_page_t* page, void* p);
