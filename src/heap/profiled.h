// Owns: what heaps do for the profile: samples of their blocks, their figures, and the dump at the end of the process.
// May include: base, sys, profile, heap.
// Called by: heap, alloc, api.
// Invariants: only a block that is a page by itself is ever sampled, so that its page names its record, and the fast path of
// free never meets one.
#pragma once

#include "src/heap/theap.h"
#include "src/profile/encode.h"

// The block p of `size` bytes, a page by itself, is sampled. `frame`: of the function that the library's caller called.
mi_cold void _mi_profiled_note(const mi_theap_t* theap, void* p, size_t size, const void* frame);

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

// What all heaps hold now.
void _mi_profiled_figures(mi_profile_figures_t* figures);

// Writes the profile where the environment or the program said so.
void _mi_profiled_process_done(void);
