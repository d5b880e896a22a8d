// Owns: what a variant with one mitigation alone is, as constants: it measures the cost and shows that the mitigation works alone.
// May include: nothing.
// Called by: every unit, through base/compiler.h.
// Invariants: every profile defines the same names (test/lint checks it); code reads them with a plain `if`.
#pragma once

// The word that opens every message; also the stem of the library's file names.
#define MI_PROFILE_NAME "mimalloc-only-sized-free"

// The tool that is told of every block: the file of src/track with the hooks.
#define MI_PROFILE_TRACK "src/track/none/track.h"

enum {
  // One out-of-line bit per possible block start: double, interior and invalid frees are seen deterministically.
  MI_HAS_LIVE_BITS = 0,
  // Links in free blocks are encoded with keys of their page and the block's own address.
  MI_HAS_ENCODED_LISTS = 0,
  // The blocks that the owner of a page hands out next stand in an array out of line, drawn from the live bits; free blocks have no links.
  MI_HAS_OUTLINE_LISTS = 0,
  // Blocks of a page are first handed out in a random order, and reused in one that is not that of the frees.
  MI_HAS_RANDOM_ORDER = 0,
  // Arenas, runs of slices in them, and the page that serves next are chosen at random.
  MI_HAS_RANDOM_PLACE = 0,
  // Frees that name a size or an alignment are compared with the block: 0 no, 1 by size class, 2 with the exact request.
  MI_HAS_SIZED_FREE = 2,
  // The call that made each block, and its alignment, are kept out of line and compared with the call that frees it.
  MI_HAS_FAMILY = 0,
  // memcpy and its kin are checked against the bounds of blocks: 0 no, 1 with option checked_copies, 2 unless it is off.
  MI_HAS_CHECKED_COPIES = 0,
  // The last OS page of each page of blocks, and those before and behind each large block, are inaccessible.
  MI_HAS_GUARD_PAGES = 0,
  // A large block begins at a random place in its first slice.
  MI_HAS_RANDOM_LARGE = 0,
  // The addresses of freed large blocks are not used again for a while, and are inaccessible.
  MI_HAS_LARGE_QUARANTINE = 0,
  // Each block ends in a keyed word that tells the request's size; a byte written beyond the request is seen.
  MI_HAS_PADDING = 0,
  // Blocks are zeroed when they are freed, and checked to be still zero when they are handed out again.
  MI_HAS_ZERO_ON_FREE = 0,
  // Blocks are filled with a pattern when they are handed out, and with another, which is checked, when they are freed.
  MI_HAS_FILL = 0,
  // Freed blocks wait, in a random and a queued part, before they can be handed out again.
  MI_HAS_QUARANTINE = 0,
  // Blocks of no bytes lie in inaccessible memory.
  MI_HAS_ZERO_SIZE = 0,
  // One in so many blocks lies between inaccessible OS pages, and stays inaccessible after its free.
  MI_HAS_GUARDED = 0,
  // A violation aborts the process (0: it is reported and the call ignored). MIMALLOC_ON_VIOLATION overrides it.
  MI_VIOLATION_ABORTS = 1,
  // Statistics of blocks: 1 counted by pages, off the fast paths, 2 by each call, with the bytes that were asked for.
  MI_STATS_LEVEL = 1,
  // Which assertions run: 0 none, 1 cheap, 2 internal, 3 expensive.
  MI_ASSERT_LEVEL = 0,
};
