// Owns: the hooks of variants that no tool watches: nothing.
// May include: base.
// Called by: track.h.
// Invariants: compiles to nothing.
#pragma once

enum { MI_TRACKS = 0 };

mi_inline void _mi_track_open(const void* p, size_t size) { (void)p, (void)size; }
mi_inline void _mi_track_shut(const void* p, size_t size) { (void)p, (void)size; }

mi_inline void _mi_track_made(const void* p, size_t size, const void* start, const void* end, bool zero) {
  (void)p, (void)size, (void)start, (void)end, (void)zero;
}

mi_inline void _mi_track_resized(const void* p, size_t old, size_t size, const void* end) {
  (void)p, (void)old, (void)size, (void)end;
}

mi_inline void _mi_track_moved(const void* p, size_t old, const void* q, size_t size, bool zero) {
  (void)p, (void)old, (void)q, (void)size, (void)zero;
}
mi_inline void _mi_track_freed(const void* p) { (void)p; }
mi_inline void _mi_track_freed_in(const void* start, const void* end) { (void)start, (void)end; }
mi_inline void _mi_track_misused(const void* p) { (void)p; }
mi_inline void _mi_track_page(const void* p, size_t size) { (void)p, (void)size; }
mi_inline void _mi_track_page_gone(const void* p, size_t size) { (void)p, (void)size; }
mi_inline void _mi_track_meta(const void* p, size_t size) { (void)p, (void)size; }
