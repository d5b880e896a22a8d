// Owns: theaps and heaps as structures, the thread-local word that finds a theap, and the arming of the fast paths.
// May include: base, sys, region, guarded, profile, heap.
// Called by: heap, alloc.
// Invariants: a theap is touched by its thread only; a thread's fast paths are either armed (its own theap and id) or
// disarmed (no request is small enough, and an id that owns nothing), and every slow path copes with both. While memory
// events are on none is armed.
#pragma once

#include "hardening/padding.h"
#include "hardening/shuffle.h"
#include "src/guarded/sampler.h"
#include "src/heap/page.h"
#include "src/profile/memory-events.h"
#include "src/profile/profile.h"
#include "src/sys/random.h"
#include "src/sys/stats.h"

typedef struct mi_tls_s mi_tls_t;
typedef struct mi_quarantine_s mi_quarantine_t;

enum {
  MI_DIRECT_ENTRIES = MI_DIRECT_SIZE_MAX / MI_BLOCK_ALIGN + 1,
  // Requests below this find their page in the table.
  MI_DIRECT_END = MI_DIRECT_SIZE_MAX + 1 - (MI_HAS_PADDING ? MI_PADDING_SIZE : 0),
  MI_THEAP_RECENT = 16,
  // Tables of quarantines, which most variants have none of.
  MI_QUARANTINE_ENTRIES = MI_HAS_QUARANTINE ? MI_DIRECT_ENTRIES : 1,
  MI_QUARANTINE_BINS = MI_HAS_QUARANTINE ? MI_BIN_COUNT : 1,
};

// What a theap counts: see heap-stats.h.
typedef struct mi_theap_counts_s {
  // Since the heap was told.
  size_t searches;  // for a page
  size_t searched;  // pages that were looked at
  size_t extended;  // pages
  struct {
    int64_t handed;  // blocks that pages had handed out when they left the theap
    int32_t noted;   // blocks in use, less what the heap knows of, and the most there were since it was told
    int32_t high;
  } bins[MI_BIN_COUNT];
} mi_theap_counts_t;

// What samples allocations: bits of a mask, and their places in tables.
enum { MI_SAMPLE_GUARD = 1,
       MI_SAMPLE_PROFILE = 2,
       MI_SAMPLE_KINDS = 2,
       MI_SAMPLE_AGAIN = 1 << MI_SAMPLE_KINDS };  // beside them: a quarantine would have served it

// What is to be sampled for guards; of a heap, or of one theap.
typedef struct mi_guarded_settings_s {
  _Atomic(size_t) rate;  // one in so many; 0: none
  _Atomic(size_t) seed;  // 0: the process's
  _Atomic(size_t) min;
  _Atomic(size_t) max;
  _Atomic(bool) has_rate;  // rate and seed are set here; else it is what the heap says, or the options say
  _Atomic(bool) has_bounds;
} mi_guarded_settings_t;

// How long it is until allocations of a class are sampled: see sample.h.
typedef struct mi_countdown_s {
  uint32_t ahead;                  // allocations before the next sampled one of any kind; 0: it is that one, or `left` tells
  uint32_t seen;                   // what `ahead` was when `left` was brought up to date
  uint32_t left[MI_SAMPLE_KINDS];  // before the next one of a kind, and one more; 0: not drawn yet
} mi_countdown_t;

// The sampling of a theap: see sample.h.
typedef struct mi_sampling_s {
  unsigned kinds;       // that are on
  uint32_t generation;  // of the settings that it is up to date with
  uint32_t forks;       // of those the numbers are drawn anew for
  uint32_t rate;
  size_t seed;
  size_t min;
  size_t max;
  bool is_paced;        // the rate is nobody's choice: no more than a few in a while are guarded
  uint32_t pace_count;  // so many since `pace_start`
  int64_t pace_start;
  mi_guarded_settings_t own;
  mi_profile_thread_t profile;
  mi_sampler_t numbers;                    // for what is not a countdown
  uint64_t stream;                         // of the countdowns' numbers
  bool has_tables;                         // what follows is in use, or was; else nobody has touched it
  uint32_t drawn[MI_BIN_COUNT];            // countdowns, of each class: a number depends on nothing else
  mi_countdown_t lists[MI_BIN_COUNT];      // of what lists serve
  mi_countdown_t takes[MI_BIN_COUNT];      // of what serves again from the class's quarantine
  const mi_page_t* counted[MI_BIN_COUNT];  // whose list is counted
} mi_sampling_t;

struct mi_theap_s {
  mi_page_t* direct[MI_DIRECT_ENTRIES];                        // by request size in units of MI_BLOCK_ALIGN: the first page of its class
  mi_quarantine_t* direct_quarantines[MI_QUARANTINE_ENTRIES];  // likewise
  uintptr_t tid;
  _Atomic(mi_heap_t*) heap;  // NULL once the heap was destroyed
  _Atomic(uintptr_t) heap_id;
  bool is_own;    // its thread's first one, and so the thread is one of the sub-process
  mi_tls_t* tls;  // of its thread; NULL for the late theap, and in a forked child for threads left behind
  mi_theap_t* next_in_thread;
  mi_theap_t* next_in_heap;  // under the heaps' lock
  mi_theap_t* prev_in_heap;
  int64_t retire_due;     // when retired pages are given back, 0 when there are none
  size_t slices;          // of all pages in its queues
  size_t retired_slices;  // of those that are retired
  int64_t last_tick;
  uint32_t busy_ticks;  // slow calls in a row that came within a tick of the clock
  uint32_t slow_calls;  // since the last collection
  uint32_t watched;     // where blocks wait: so many frees look whether something is due by now
  mi_page_queue_t queues[MI_BIN_COUNT];
  mi_random_t random;
  mi_shuffle_t order;          // for orders and choices, from a few numbers of `random`
  uint32_t order_uses;         // left before `order` is seeded anew
  uint32_t order_generation;   // of the random numbers that `order` is from
  uint32_t key_generation;     // of the random numbers that the keys of all pages were brought up to
  uint32_t forked_generation;  // in a forked child, of a thread's first theap: of the numbers that `forked_calls` counts under
  uint32_t forked_calls;
  mi_quarantine_t* quarantines[MI_QUARANTINE_BINS];  // of the classes, made at the first free
  bool starved[MI_QUARANTINE_BINS];                  // a page's list served because no block of the class was ready
  mi_theap_t* recent[MI_THEAP_RECENT];               // of a thread's first theap: theaps found lately, by the ids of their heaps
  mi_theap_counts_t counts;
  mi_sampling_t sampling;  // last: its tables are touched only while something is sampled
};

typedef struct mi_page_list_s {
  _Atomic(mi_page_t*) first;  // read without the lock, as a hint
  mi_page_t* last;
} mi_page_list_t;

struct mi_heap_s {
  mi_lock_t lock;         // leaf lock, but for that of `main`: the lists of pages
  _Atomic(uintptr_t) id;  // no two heaps ever have the same; 0 once the heap has ended
  mi_theap_t* theaps;     // under the heaps' lock, like the links of the heaps themselves
  mi_heap_t* next;
  mi_heap_t* prev;
  mi_page_list_t listed[MI_BIN_COUNT];  // that of singles: pages whose blocks nobody is given any more
  mi_page_t* pages;                     // all of them, but for those of blocks of no bytes; not of the main heap
  mi_heap_t* main;                      // what becomes of its blocks when it is deleted: they are that one's; NULL: it is a main heap
  _Atomic(mi_arena_t*) arena;           // its pages lie in this one and nowhere else; NULL: where there is room
  _Atomic(int) numa_node;               // where its memory should be; negative: anywhere
  int tag;                              // the program's, for visits
  bool allow_destroy;                   // else its end by destroy is one by delete
  mi_heap_t* next_main;                 // of a main heap: that of another sub-process, under the heaps' lock
  _Atomic(uint32_t) fill_preserve;      // bytes at the start of a block that a free leaves as they are, where freed blocks are filled
  _Atomic(uint32_t) profiler;           // its number; 0: what its sub-process has; MI_PROFILE_NONE or MI_HEAP_DETACHED: none
  _Atomic(uint32_t) profiler_of_all;    // of a main heap: the number of that of all heaps of the sub-process; 0: none
  mi_guarded_settings_t guarded;
  mi_heap_counts_t counts;
  mi_stats_t* ended;  // of the main heap of another sub-process: what its heaps that have ended had counted; under the heaps' lock
};

extern mi_heap_t _mi_heap_main_instance;

// Where memory for a theap, or without one for the main heap, may come from.
mi_inline mi_arena_source_t _mi_theap_source(const mi_theap_t* theap) {
  const mi_heap_t* const heap = theap == NULL ? &_mi_heap_main_instance : mi_atomic_load_relaxed(&theap->heap);
  // Relaxed: the heap may have ended, and another have its place; the page is then that one's which the theap has by then.
  return (mi_arena_source_t){mi_atomic_load_relaxed(&heap->arena), mi_atomic_load_relaxed(&heap->numa_node), false};
}

typedef enum mi_thread_state_e {
  MI_THREAD_FRESH,  // has no theap yet
  MI_THREAD_READY,
  MI_THREAD_DONE,  // torn down: what it still allocates comes from the late theap
} mi_thread_state_t;

struct mi_tls_s {
  // What the fast paths use. Another thread may disarm them (relaxed: the slow path finds out the rest).
  _Atomic(uintptr_t) direct_end;  // armed: requests below this find their page in the table of `theap`; disarmed: 0
  _Atomic(uintptr_t) tid;         // armed: `own_tid`; disarmed: MI_TID_DISARMED
  mi_theap_t* theap;              // armed: the default theap
  _Atomic(mi_theap_t*) chosen;    // the program's choice of a default theap; NULL: `own`. Others take it back when its heap ends
  mi_theap_t* own;                // this thread's theap of the main heap, first of its chain
  uintptr_t own_tid;
  mi_thread_state_t state;
  bool in_threadpool;  // the program says so
};

extern mi_thread_local mi_tls_t _mi_tls;

// This thread's default theap, if the fast paths are armed; else NULL.
mi_inline mi_theap_t* _mi_thread_theap(void) { return mi_atomic_load_relaxed(&_mi_tls.direct_end) != 0 ? _mi_tls.theap : NULL; }

// Whether they are armed and a request of this size finds its page in the table of `theap`. Where requests for nothing are
// served apart, size and bound are compared less one, so that those are above.
mi_inline mi_wraps bool _mi_thread_is_direct(size_t size) {
  // The compiler cannot look into the comparison.
  if (__builtin_constant_p(size) && size > MI_DIRECT_SIZE_MAX) {
    return false;
  }
  return mi_atomic_load_is_above_relaxed(&_mi_tls.direct_end, MI_HAS_ZERO_SIZE ? size - 1 : size);
}

mi_inline uintptr_t _mi_thread_tid(void) { return mi_atomic_load_relaxed(&_mi_tls.tid); }

// Sends a thread's next malloc and free to the slow path.
mi_inline void _mi_tls_disarm(mi_tls_t* tls) {
  mi_atomic_store_relaxed(&tls->direct_end, 0);
  mi_atomic_store_relaxed(&tls->tid, MI_TID_DISARMED);
}

mi_inline void _mi_thread_arm(void) {
  mi_theap_t* const chosen = mi_atomic_load_relaxed(&_mi_tls.chosen);
  _mi_tls.theap = chosen != NULL ? chosen : _mi_tls.own;
  mi_atomic_store_relaxed(&_mi_tls.direct_end, _mi_tls.theap == NULL ? 0 : MI_DIRECT_END - MI_HAS_ZERO_SIZE);
  mi_atomic_store_relaxed(&_mi_tls.tid, _mi_tls.own_tid);
  // After the stores: whoever switches events on disarms all threads after that, and again a moment later.
  if (_mi_memory_events_are_on()) {
    _mi_tls_disarm(&_mi_tls);
  }
}

// Sends this thread's next malloc and free to the slow path, which looks at the clock: how a purge that falls due while
// a thread makes no slow call is still done by its next call.
void _mi_thread_disarm(void);

// The same for every thread.
void _mi_threads_disarm(void);

// This thread's theap of the main heap of its sub-process, made on first use. NULL: no memory, or the thread has been torn
// down.
mi_theap_t* _mi_theap_own(void);

// Makes the thread, which has a theap, one of the sub-process with that main heap. What it has allocated stays where it is.
// False: no memory, or the sub-process has ended.
bool _mi_thread_move(mi_heap_t* main);

// The theap that functions without a heap allocate from: that one, unless the program chose another. NULL likewise.
mi_theap_t* _mi_theap_default(void);

// Makes a theap of this thread the default one.
void _mi_theap_choose_default(mi_theap_t* theap);

// This thread's theap of `heap` (NULL: of the main heap), made on first use; NULL likewise. A heap that has ended is
// reported; the main heap serves then.
mi_theap_t* _mi_heap_theap(mi_heap_t* heap);

// The same, but never made.
mi_theap_t* _mi_theap_find(const mi_heap_t* heap);

// The same as _mi_heap_theap. But where the thread can have none, and the heap is bound to an arena, it is what stands in for
// one: each block gets a page of its own there, or there is none. NULL: the main heap may serve.
mi_theap_t* _mi_heap_theap_or_stand_in(mi_heap_t* heap);

// Allocates when the inline paths could not. NULL, with errno ENOMEM, when there is no memory. `theap` may be NULL: then
// the late theap of the main heap serves.
void* _mi_theap_alloc_slow(mi_theap_t* theap, size_t size, bool zero);
// On behalf of a call of a family. A block by itself is not noted to be of it.
void* _mi_theap_alloc_slow_as(mi_theap_t* theap, size_t size, bool zero, uint8_t origin);

// Makes what this thread has freed into the first page of its queue available, where its list is used up. False: there is
// nothing, or it is time to look for a page that serves better, and at the clock: that is for _mi_theap_alloc_slow.
bool _mi_theap_refill_first(mi_theap_t* theap, mi_page_t* page);

// The same from the class of blocks of `room` bytes, at least as many as a request of `size` bytes needs, which are multiples
// of `align` by themselves.
void* _mi_theap_alloc_room(mi_theap_t* theap, size_t size, size_t room, size_t align, bool zero);

// Allocates a block that is a page by itself, whatever its size, at a multiple of `align`.
void* _mi_theap_alloc_single(mi_theap_t* theap, size_t size, size_t align, bool zero);

// The same for a block that has grown and is likely to grow on.
void* _mi_theap_alloc_growing(mi_theap_t* theap, size_t size, size_t align, bool zero);

// Looks at the clock when something is due, does what is, and arms the fast paths unless the thread calls so rarely that
// its next call should look again.
void _mi_theap_tick(void);

// A free that looks whether something is due.
void _mi_theap_watch(mi_theap_t* theap);

// This thread keeps something for reuse until the purge delay is over. False: nothing is to be kept.
bool _mi_theap_keeps(void);

// A page of this thread has no block in use any more.
void _mi_page_retire(mi_page_t* page);

// Another thread's page, or nobody's: frees `block`, which the caller has found to be live.
void _mi_page_free_remote(mi_page_t* page, mi_block_t* block);

// Collects what was freed, gives empty pages back; `force`: also those kept for reuse.
void _mi_theap_collect(mi_theap_t* theap, bool force);

// Lets go of every page: listed where it has free blocks.
void _mi_theap_abandon(mi_theap_t* theap);

// A number below `bound`, which is not zero, for a choice that is not to be foreseen.
uint32_t _mi_theap_choose(mi_theap_t* theap, uint32_t bound);

// The same, 64 bits of it.
uint64_t _mi_theap_draw(mi_theap_t* theap);

// Gives back the theaps of this thread whose heaps have ended.
void _mi_thread_prune(void);

// Ends one theap of this thread, which is not that of the main heap: its blocks stay, with its heap.
void _mi_thread_end_theap(mi_theap_t* theap);

// Calls `visit` for each theap of the calling thread whose heap exists and cannot end meanwhile.
void _mi_thread_each_theap(void (*visit)(mi_theap_t* theap));

// Enters a theap in its heap's list; the heaps' lock is held.
void _mi_heap_link_theap(mi_heap_t* heap, mi_theap_t* theap);

// Takes it out again; the same.
void _mi_heap_unlink_theap(mi_heap_t* heap, mi_theap_t* theap);

// Makes a new page one of the theap's heap (NULL: of the main heap), of which it learns here, since a heap may be deleted
// meanwhile; or of the heap that another page is of.
void _mi_heap_enter_page(mi_page_t* page, const mi_theap_t* theap);
void _mi_heap_enter_page_beside(mi_page_t* page, mi_page_t* other);

// The page is no heap's any more.
void _mi_heap_leave_page(mi_page_t* page);

// Locks the heap of a page. The heap may end until its lock is held, and the page have moved to the main heap.
mi_heap_t* _mi_page_lock_heap(mi_page_t* page);

// The id that the next thread will get.
uintptr_t _mi_theap_next_tid(void);

// Abandons the theap's pages, unlinks it from its heap, if that still exists, and gives it back.
void _mi_theap_end(mi_theap_t* theap);

// Gives its memory back. It is in no list.
void _mi_theap_free(mi_theap_t* theap);

// A theap without pages yet, of no heap.
void _mi_theap_begin(mi_theap_t* theap, uintptr_t tid);

// Queues (queue.c): all by the theap's thread.
void _mi_queue_push_front(mi_theap_t* theap, mi_page_t* page);
void _mi_queue_push_back(mi_theap_t* theap, mi_page_t* page);
void _mi_queue_remove(mi_theap_t* theap, mi_page_t* page);
void _mi_queue_move_front(mi_theap_t* theap, mi_page_t* page);
void _mi_queue_move_back(mi_theap_t* theap, mi_page_t* page);
void _mi_queue_retire(mi_theap_t* theap, mi_page_t* page);    // not retired yet; to the end, unless it comes first
void _mi_queue_unretire(mi_theap_t* theap, mi_page_t* page);  // nothing if it is not retired

// Ownership (abandon.c).
// Takes an unowned page with free blocks from the heap's list; owned by `theap`, in no queue. NULL when there is none.
mi_page_t* _mi_heap_take_listed(mi_heap_t* heap, unsigned bin, mi_theap_t* theap);
// Lets go of a full page that is in no queue. False: other threads have freed into it; it is still owned.
bool _mi_page_try_unown_full(mi_page_t* page);
// A block of the page is about to be freed, which nobody owns: the thread that let go of it as full has it again. False: it was
// another one, or the page is better left as it is.
bool _mi_page_take_back(mi_page_t* page);
// Puts an owned page in the heap's list and lets go of it, or releases it when all its blocks are free.
void _mi_page_abandon(mi_page_t* page);
