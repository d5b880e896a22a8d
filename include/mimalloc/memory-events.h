// Owns: the public interface of memory events, and of memory that is none of the heaps'.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_MEMORY_EVENTS_H
#define MIMALLOC_MEMORY_EVENTS_H

#include "base.h"

#if defined(__cplusplus)
#include <cstdint>
extern "C" {
#else
#include <stdint.h>
#endif

// ---- Memory events. A program is told of each allocation, free and resize, and keeps count of what is in use. ----

// Off, they cost nothing on the usual paths of malloc and free; on, every call takes the slow path. Blocks count with their
// usable size. What was allocated while events were off is not known, and its free counts all the same: totals are exact if
// events are on from the start, by the option memory_events. A call of another thread that runs while they are switched on
// may be missed. The blocks of a heap that is destroyed are told as one free.

// mi_memory_change_kind_t says what became of a block.
typedef enum mi_memory_change_kind_e {
  MI_MEMORY_ALLOCATE = 0,
  MI_MEMORY_FREE = 1,
  MI_MEMORY_RESIZE = 2,  // by a reallocation, whether it moved or not
  MI_MEMORY_CHANGE_COUNT = 3
} mi_memory_change_kind_t;

// mi_memory_change_t is one event.
typedef struct mi_memory_change_s {
  mi_memory_change_kind_t kind;  // what became of the block, or of several
  uint64_t total_bytes;          // in use now, the change included
  int64_t delta_bytes;           // what the change added
  uint64_t request_size;         // as the program asked; 0 of a free
} mi_memory_change_t;

// mi_memory_change_fun receives an event and the argument it was registered with, in the thread whose call it is, and in
// no lock of the allocator. It may allocate and free: that is neither told nor counted. It must return.
typedef void(mi_cdecl mi_memory_change_fun)(const mi_memory_change_t* change, void* arg);

// mi_memory_callbacks_t holds a function for each kind, with its argument; NULL where none is to be called.
typedef struct mi_memory_callbacks_s {
  mi_memory_change_fun* handlers[MI_MEMORY_CHANGE_COUNT];  // by kind
  void* args[MI_MEMORY_CHANGE_COUNT];                      // what each receives
} mi_memory_callbacks_t;

// MI_MEMORY_SNAPSHOT_VERSION is the version of mi_memory_snapshot_t.
#define MI_MEMORY_SNAPSHOT_VERSION 1

// mi_memory_snapshot_t is what has been counted; a figure below 0 reads 0.
typedef struct mi_memory_snapshot_s {
  size_t size;           // sizeof(mi_memory_snapshot_t)
  int version;           // MI_MEMORY_SNAPSHOT_VERSION
  uint64_t live_bytes;   // in use
  uint64_t accum_bytes;  // allocated, or added by a resize, so far
  uint64_t live_count;   // blocks in use
  uint64_t accum_count;  // blocks allocated so far
} mi_memory_snapshot_t;

// mi_memory_snapshot_t_decl defines a variable for mi_memory_snapshot.
#define mi_memory_snapshot_t_decl(name) \
  mi_memory_snapshot_t name = {sizeof(mi_memory_snapshot_t), MI_MEMORY_SNAPSHOT_VERSION, 0, 0, 0, 0}

// mi_memory_allocation_visit_fun receives a live block with its usable size, and returns whether to go on.
typedef bool(mi_cdecl mi_memory_allocation_visit_fun)(void* allocation, size_t usable_size, void* arg);

// mi_memory_tracking_set_enabled switches events on or off for all threads, and has the last word against the option
// memory_events. Returns true.
mi_decl_export bool mi_memory_tracking_set_enabled(bool enabled) mi_attr_noexcept;

// mi_memory_tracking_is_enabled tells whether events are on.
mi_decl_nodiscard mi_decl_export bool mi_memory_tracking_is_enabled(void) mi_attr_noexcept;

// mi_memory_set_callbacks replaces the functions of all kinds; NULL leaves none. A call under way in another thread may
// still be of an old one. Returns false, after a warning, where the configuration cannot be opened.
mi_decl_export bool mi_memory_set_callbacks(const mi_memory_callbacks_t* callbacks) mi_attr_noexcept;

// mi_memory_snapshot stores what has been counted. Returns false, and stores nothing, unless size and version are set and
// known.
mi_decl_nodiscard mi_decl_export bool mi_memory_snapshot(mi_memory_snapshot_t* out) mi_attr_noexcept;

// mi_memory_visit_live_allocations calls visitor for each live block of the pages that the calling thread allocates from, or
// has filled; not those that another thread has taken over. Events may be off. No lock is held: the visitor may allocate
// and free, and other threads run on. Returns false where visitor is NULL or the caller is a function of
// mi_memory_set_callbacks, or there are too many visits at once; true also when the visitor ended the visit.
mi_decl_export bool mi_memory_visit_live_allocations(mi_memory_allocation_visit_fun* visitor, void* arg) mi_attr_noexcept;

// ---- Unwrapped memory. Blocks straight from the system, for tools that must not be seen by what they observe. ----

// They are whole pages of the system between inaccessible ones, and in no heap, statistics or events. They are for these
// three functions only: others report them as no blocks of theirs, and these report any other address.

// mi_unwrapped_malloc returns size zeroed bytes at a multiple of alignment, a power of two; 0 stands for that of a pointer.
// NULL with errno EINVAL where it is none, and ENOMEM where there is no memory.
mi_decl_nodiscard mi_decl_export void* mi_unwrapped_malloc(size_t size, size_t alignment) mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

// mi_unwrapped_realloc changes the size of such a block, which may move; NULL is allocated anew, and a new size of 0 frees
// and returns NULL. On failure, as above, the block stays as it was.
mi_decl_nodiscard mi_decl_export void* mi_unwrapped_realloc(void* p, size_t new_size, size_t alignment) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_unwrapped_free gives such a block back to the system. NULL is ignored.
mi_decl_export void mi_unwrapped_free(void* p) mi_attr_noexcept;

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_MEMORY_EVENTS_H
