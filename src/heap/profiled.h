// Owns: what heaps do for the profile: samples of their blocks, their figures, and the dump at the end of the process.
// May include: base, sys, profile, heap.
// Called by: heap, alloc, api.
// Invariants: only a block that is a page by itself is ever sampled, so that its page names its record, and the fast path of
// free never meets one.
#pragma once

#include "src/heap/theap.h"
#include "src/profile/encode.h"

// The block p of `size` bytes, a page by itself, is sampled for the profile with that number. `frame`: of the function that the
// library's caller called. May write a file of the profile.
mi_cold void _mi_profiled_note(uint32_t number, void* p, size_t size, const void* frame);

// A single was made for a request of `size` bytes, or has grown to that by `grown` bytes, and no theap was asked: a sample may
// fall on it. `frame` as before.
mi_cold void _mi_profiled_offer(mi_page_t* page, size_t grown, size_t size, const void* frame);

// The block of a page has another size where it is; the page ends.
mi_inline void _mi_profiled_resize(mi_page_t* page, size_t size) {
  if (_mi_page_is_single(page) && mi_unlikely(page->sample != 0)) {
    _mi_profile_note_resize(page->sample, size);
  }
}

mi_inline void _mi_profiled_end(mi_page_t* page) {
  if (_mi_page_is_single(page) && mi_unlikely(page->sample != 0)) {
    _mi_profile_note_free(page->sample);
    page->sample = 0;
  }
}

// The profiler that a heap's theaps are to follow (_mi_profile_follow); NULL: the heap has ended.
uint32_t _mi_profiled_wanted(const mi_heap_t* heap);

// What a heap has in place of a profiler's number when the program has detached it: none, until its sub-process gets another.
#define MI_HEAP_DETACHED (MI_PROFILE_NONE - 1)

// The profiler with that number (0: none) becomes that of a heap (NULL: of the main one of this thread's sub-process), or of all
// heaps of a sub-process that have none of their own. False: there is no such heap or sub-process.
bool _mi_profiled_attach(mi_heap_t* heap, uint32_t number);
bool _mi_profiled_attach_all(uintptr_t subproc, uint32_t number);

// The heap is in no profile from now on.
void _mi_profiled_disable(mi_heap_t* heap);

// A heap has ended: its theaps may be another heap's.
void _mi_profiled_heap_ended(void);

// What all heaps hold now.
void _mi_profiled_figures(mi_profile_figures_t* figures);

// Starts what the environment asks for; and writes the profiles where it, or the program, said so.
void _mi_profiled_process_start(void);
void _mi_profiled_process_done(void);
