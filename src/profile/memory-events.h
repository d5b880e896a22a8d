// Owns: memory events: whether they are on, what they count, and who is told.
// May include: base, sys; the public header for the types.
// Called by: heap, alloc, api.
// Invariants: the fast paths do not ask: while events are on no thread's fast paths are armed (see theap.h). Counts change
// before anybody is told, who is told in no lock of ours and not from inside being told.
#pragma once

#include "mimalloc.h"
#include "src/base/atomic.h"
#include "src/sys/sealed.h"

// Relaxed: an event that is told a moment too early or too late is told right.
extern _Atomic(bool) _mi_memory_events_flag;

mi_inline bool _mi_memory_events_are_on(void) { return mi_unlikely(mi_atomic_load_relaxed(&_mi_memory_events_flag)); }

// Switches them on as option memory_events says, unless the program has decided. Returns whether they are on.
bool _mi_memory_events_start(void);

// Switches them on or off, for good against the option. Threads with armed fast paths are the caller's to see to.
void _mi_memory_events_set(bool enabled);

// From here to the end of the mute the calling thread's events are parts of one that its caller tells of as a whole. They
// nest. What the program's own functions do in between is none of these parts.
void _mi_memory_events_mute(void);
void _mi_memory_events_unmute(void);
typedef void(mi_memory_part_t)(bool force);
void _mi_memory_events_aside(mi_memory_part_t* call, bool force);

// Counts a change and tells of it, unless the thread is mute or is being told. `blocks`: how many more there are.
void _mi_memory_events_tell(mi_memory_change_kind_t kind, int64_t bytes, int64_t blocks, size_t request);

// Whether the calling thread is being told.
bool _mi_memory_events_is_telling(void);

bool _mi_memory_events_register(const mi_memory_callbacks_t* callbacks);
void _mi_memory_events_read(mi_memory_snapshot_t* out);
