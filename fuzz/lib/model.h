// Owns: the shadow model: what the allocator should hold, and all that can be compared with it.
// May include: fuzz/lib, mimalloc.h.
// Called by: fuzz_ops, fuzz_misuse.
// Invariants: a block in the model is live, no two overlap, each holds what was written to it, and is in the heap it was made in. A
// difference ends the run as a finding.
#pragma once

#include "fuzz/lib/actors.h"
#include "fuzz/lib/fuzz.h"
#include "mimalloc.h"

enum { MI_FUZZ_BLOCKS = 256,
       MI_FUZZ_HEAPS = 5,            // the first is the main heap
       MI_FUZZ_LIVE_MAX = 64 << 20,  // bytes that a run has at most
       MI_FUZZ_NO_HEAP = 255 };

// Requests of as many bytes or more cannot be met.
#define MI_FUZZ_TOO_LARGE ((size_t)1 << (sizeof(size_t) == 8 ? 46 : 30))

typedef struct mi_fuzz_block_s {
  uint8_t* p;   // NULL: there is none
  size_t size;  // as asked for
  size_t usable;
  size_t filled;  // bytes from the start that hold the pattern
  size_t align;   // of p + offset
  size_t offset;
  size_t placed;   // so many bytes may lie between the beginning of the block and p: it was aligned with an offset
  uint64_t key;    // of the pattern
  uint8_t heap;    // index
  bool zeroed;     // made and resized by the zeroing functions only
  bool spoiled;    // bytes behind it were overwritten
  bool small;      // allocated with a size of at most MI_SMALL_SIZE_MAX, and never resized
  unsigned maker;  // mi_fuzz_thread of who allocated it
} mi_fuzz_block_t;

typedef struct mi_fuzz_heap_s {
  mi_heap_t* heap;
  int tag;
  bool there;
  bool destroys;        // mi_heap_destroy frees its blocks
  bool is_small;        // its blocks come from an arena that may be full
  mi_arena_id_t arena;  // which one
} mi_fuzz_heap_t;

typedef struct mi_fuzz_model_s {
  mi_fuzz_block_t blocks[MI_FUZZ_BLOCKS];
  mi_fuzz_heap_t heaps[MI_FUZZ_HEAPS];
  uint8_t default_heap[MI_FUZZ_ACTORS];
  bool late[MI_FUZZ_ACTORS];       // the thread has called mi_thread_done: what it allocates may lie in the main heap
  unsigned actor;                  // who acts
  unsigned lives[MI_FUZZ_ACTORS];  // of each actor: threads that have ended, or were done with the allocator
  size_t live_bytes;
  size_t live_blocks;
  uint64_t seed;
  const char* doing;  // the call that is under way, for findings
  // Told of each new address before anything is written there; NULL: nobody is.
  void (*on_new)(const uint8_t* p, size_t usable);
  bool dirty;  // somebody wrote to memory that is nobody's: it need not be zero any more
} mi_fuzz_model_t;

extern mi_fuzz_model_t mi_fuzz_model;

// Begins a run with nothing but the main heap.
void mi_fuzz_model_begin(uint64_t seed);

// Frees all that is left, ends heaps and threads, and checks that nothing is left in the allocator either.
void mi_fuzz_model_end(bool exact);

// What the next allocation is expected to be. `size`, `align` and `offset` as in the call; `heap` an index, or MI_FUZZ_NO_HEAP for
// the default one.
typedef struct mi_fuzz_expect_s {
  size_t size;
  size_t align;
  size_t offset;
  uint8_t heap;
  bool zero;
} mi_fuzz_expect_t;

// Enters what an allocation returned in a slot that is empty. NULL is a finding unless the request is too large.
void mi_fuzz_block_made(mi_fuzz_block_t* block, void* p, const mi_fuzz_expect_t* expect);

// Enters what a call made of a live block; `p` is NULL where it failed and left the block as it was.
void mi_fuzz_block_resized(mi_fuzz_block_t* block, void* p, const mi_fuzz_expect_t* expect);

// Checks a block's content and takes it out of the model, before it is freed.
void* mi_fuzz_block_take(mi_fuzz_block_t* block);

// Content, size, heap and all that can be asked of a block.
void mi_fuzz_block_check(const mi_fuzz_block_t* block);
void mi_fuzz_block_ask(const mi_fuzz_block_t* block, size_t inside);

// The live block that an address range meets, or NULL.
mi_fuzz_block_t* mi_fuzz_block_at(const uint8_t* p, size_t size);

// Whether there is a heap whose arena may be full: what is asked of it may fail then.
bool mi_fuzz_may_fail(void);

// Whether there is room for so many bytes more.
bool mi_fuzz_fits(size_t size);

// The index of a heap that an operation names, which is there; and of the one that it allocates from by default.
uint8_t mi_fuzz_pick_heap(unsigned which);
uint8_t mi_fuzz_default_heap(void);

// A number of the acting thread: another one has another.
unsigned mi_fuzz_thread(void);

// Each live block is told of once by visits, and nothing else.
void mi_fuzz_check_visits(void);

// Likewise what a thread has of a heap, and what no thread has of all.
void mi_fuzz_check_thread_visits(uint8_t heap);

// Statistics of each heap and of the process.
void mi_fuzz_check_stats(void);

// An error that the allocator may report during the call that is under way: 0 none, ENOMEM for one of size.
void mi_fuzz_expect_error(int err);
