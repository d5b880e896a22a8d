// Owns: the hooks for Valgrind: Memcheck is told of every block, and that all else is not to be accessed.
// May include: base, Valgrind's header, which is written to be compiled into programs.
// Called by: track.h.
// Invariants: the allocator's own code runs with reports switched off (gate.c), so that it may read and write what is shut. Outside
// of Valgrind a request to it is a few instructions that do nothing.
#pragma once

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#error "the variant for Valgrind needs <valgrind/memcheck.h>: Debian's valgrind"
#endif

enum { MI_TRACKS = 1 };

// The unit gate.c has code.
#define MI_TRACK_HAS_GATE 1

// The program frees p, which is no block. Reports are on for a moment.
void _mi_track_misused(const void* p);

// Memcheck is told that the block which was handed out somewhere in [start, end) is free.
void _mi_track_freed_in(const void* start, const void* end);

// What the allocator writes in a block before the program has it is not what the program wrote.
mi_inline void _mi_track_open(const void* p, size_t size) { (void)VALGRIND_MAKE_MEM_UNDEFINED(p, size); }
mi_inline void _mi_track_shut(const void* p, size_t size) { (void)VALGRIND_MAKE_MEM_NOACCESS(p, size); }

// No red zone is named: what lies around a block is shut here, and is not the same on both sides.
mi_inline void _mi_track_made(const void* p, size_t size, const void* start, const void* end, bool zero) {
  _mi_track_shut(start, (size_t)((uintptr_t)end - (uintptr_t)start));
  VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, zero);
}

mi_inline void _mi_track_resized(const void* p, size_t old, size_t size, const void* end) {
  VALGRIND_RESIZEINPLACE_BLOCK(p, old, size, 0);
  _mi_track_shut((const void*)((uintptr_t)p + size), (size_t)((uintptr_t)end - (uintptr_t)p) - size);
}

mi_inline void _mi_track_freed(const void* p) { VALGRIND_FREELIKE_BLOCK(p, 0); }

mi_inline void _mi_track_moved(const void* p, size_t old, const void* q, size_t size, bool zero) {
  (void)old;
  _mi_track_freed(p);
  VALGRIND_MALLOCLIKE_BLOCK(q, size, 0, zero);
}

mi_inline void _mi_track_page(const void* p, size_t size) { (void)p, (void)size; }
mi_inline void _mi_track_page_gone(const void* p, size_t size) { (void)p, (void)size; }
mi_inline void _mi_track_meta(const void* p, size_t size) { _mi_track_shut(p, size); }
