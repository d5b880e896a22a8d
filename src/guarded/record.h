// Owns: what is known of each guarded block, from the allocation to the end of the quarantine of its slot.
// May include: base, prim, sys, region.
// Called by: heap (which makes guarded blocks), the crash report, the tests.
// Invariants: looking up takes no lock, allocates nothing and reads nothing that could be gone, so that a signal handler may do
// it whatever it has interrupted. A look-up that meets a change of the record finds nothing, never a mixture.
#pragma once

#include "src/base/compiler.h"

typedef enum mi_guarded_state_e {
  MI_GUARDED_NONE,
  MI_GUARDED_LIVE,
  MI_GUARDED_FREED,
} mi_guarded_state_t;

// So many calls of an allocation, and of a free, are kept.
enum { MI_GUARDED_CALLS = 16 };

// All members are words, so that a record can be copied word by word while another thread changes it.
typedef struct mi_guarded_record_s {
  uintptr_t slot;  // the range that is the block's alone, guards included
  uintptr_t slot_size;
  uintptr_t block;
  uintptr_t request;  // bytes
  uintptr_t seed;     // of the run, as MIMALLOC_GUARDED_SAMPLE_SEED takes it
  uintptr_t state;    // mi_guarded_state_t
  uintptr_t alloc_thread;
  uintptr_t free_thread;
  uintptr_t alloc_count;
  uintptr_t free_count;
  uintptr_t alloc_calls[MI_GUARDED_CALLS];  // the latest first; addresses of calls, as _mi_prim_backtrace gives them
  uintptr_t free_calls[MI_GUARDED_CALLS];
} mi_guarded_record_t;

// Around a guarded block, by the thread that allocates or frees; the thread and its calls are noted.
//
// `slot` and `slot_size`: the whole range with its guards, in slices of an arena or a mapping of its own. The block `p` of
// `request` bytes lies behind the first start of a slice in it, and slots do not overlap. NULL: there is no memory for a
// record, or the address is beyond reach; do not guard the block.
mi_guarded_record_t* _mi_guarded_note_alloc(void* slot, size_t slot_size, void* p, size_t request, size_t seed);

// The block is freed; its slot stays inaccessible, and its record there, until it is forgotten. Nothing where there is none.
void _mi_guarded_note_free(void* p);

// The slot is given back, or used for something else. Nothing where there is none.
void _mi_guarded_forget(void* slot);

// The record of the slot that an address lies in. Any address may be asked. False: there is none.
bool _mi_guarded_find(uintptr_t address, mi_guarded_record_t* copy);

// True for one of those who ask about a slot, from its _mi_guarded_note_alloc to the next: whoever is to report it.
bool _mi_guarded_claim_report(uintptr_t address);

// How many records are in use.
size_t _mi_guarded_records(void);

// The lock behind the writers, for the fork handlers. It nests outside that of the metadata.
void _mi_guarded_fork_prepare(void);
void _mi_guarded_fork_release(bool in_child);
