// Owns: the way to the tool that watches the program's memory, if the variant is for one.
// May include: base, the backend that the profile names.
// Called by: region, heap, alloc.
// Invariants: memory of a page is shut but for its live blocks, and those are open from their first byte to the last that was
// asked for; the allocator opens a block before it writes there, and shuts what is not the program's when it is done.
//
// Every backend has these, as inline functions; those of `none` are empty. No hook touches what it is told about.
//
//   _mi_track_open(p, size)                   the allocator is about to write there, or gives it up
//   _mi_track_shut(p, size)                   nobody but the allocator may touch it
//   _mi_track_made(p, size, start, end, zero) a block is handed out as p, for `size` bytes; it lies in [start, end), the rest of
//                                             which is shut
//   _mi_track_resized(p, old, size, end)      the request of the block at p is another; it ends before `end`
//   _mi_track_moved(p, old, q, size, zero)    the block that was handed out as p, for `old` bytes, is now one at q, for `size`
//   _mi_track_freed(p)                        the block at p is the program's no more
//   _mi_track_freed_in(start, end)            the same for one that was handed out somewhere in [start, end)
//   _mi_track_misused(p)                      the program frees p, which is no block
//   _mi_track_page(p, size)                   blocks lie there from now on
//   _mi_track_page_gone(p, size)              and now no more
//   _mi_track_meta(p, size)                   the allocator's own: pointers in there keep no block alive
#pragma once

#include "src/base/compiler.h"

#include MI_PROFILE_TRACK
