// Owns: the hooks for AddressSanitizer of gcc and of clang: shut memory is poisoned, and pages are roots of its search for leaks.
// May include: base, the sanitizer's header.
// Called by: track.h.
// Invariants: the run time comes with the program, or not at all: then its functions are NULL and nothing is done. Until it has
// started they do nothing, and what was handed out before stays open. A block begins at a multiple of 8 bytes, or what lies before
// it in the same 8 is open as well.
#pragma once

#if !__has_include(<sanitizer/asan_interface.h>)
#error "the variant for AddressSanitizer needs the compiler's <sanitizer/asan_interface.h>: Debian's libgcc-12-dev or libclang-common-14-dev"
#endif

#include <sanitizer/asan_interface.h>

enum { MI_TRACKS = 1 };

#pragma weak __asan_poison_memory_region
#pragma weak __asan_unpoison_memory_region

// The unit start.c has code.
#define MI_TRACK_HAS_START 1

// Whether the sanitizer's run time is there and has started. Set once, while there is one thread.
extern mi_hidden bool _mi_track_is_on;

mi_inline void _mi_track_open(const void* p, size_t size) {
  if (_mi_track_is_on) {
    __asan_unpoison_memory_region(p, size);
  }
}

mi_inline void _mi_track_shut(const void* p, size_t size) {
  if (_mi_track_is_on) {
    __asan_poison_memory_region(p, size);
  }
}

mi_inline void _mi_track_made(const void* p, size_t size, const void* start, const void* end, bool zero) {
  (void)zero;
  _mi_track_shut(start, (size_t)((uintptr_t)p - (uintptr_t)start));
  _mi_track_open(p, size);
  _mi_track_shut((const void*)((uintptr_t)p + size), (size_t)((uintptr_t)end - (uintptr_t)p) - size);
}

mi_inline void _mi_track_resized(const void* p, size_t old, size_t size, const void* end) {
  (void)old;
  _mi_track_made(p, size, p, end, false);
}

// Only when it is handed out at a later address.
mi_inline void _mi_track_moved(const void* p, size_t old, const void* q, size_t size, bool zero) {
  (void)old, (void)size, (void)zero;
  _mi_track_shut(p, (size_t)((uintptr_t)q - (uintptr_t)p));
}

mi_inline void _mi_track_freed(const void* p) { (void)p; }
mi_inline void _mi_track_freed_in(const void* start, const void* end) { (void)start, (void)end; }
mi_inline void _mi_track_misused(const void* p) { (void)p; }

// Of a page nothing but what is not poisoned is searched.
void _mi_track_page(const void* p, size_t size);
void _mi_track_page_gone(const void* p, size_t size);

mi_inline void _mi_track_meta(const void* p, size_t size) { (void)p, (void)size; }
