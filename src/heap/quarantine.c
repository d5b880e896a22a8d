// Owns: the quarantines of a theap: made, passed through, emptied.
// May include: base, hardening, sys, region, heap.
// Called by: heap.
// Invariants: a block in quarantine is not live, in no list, and counted in its page's `used`, so that the page stays. One
// that was freed by its page's owner has neither bit of the live bits, one freed by another thread has both; when it leaves
// it must still have them so. Only blocks of the main heap wait with other threads than their page's: it never ends.
#include "hardening/quarantine.h"

#include "src/heap/block.h"
#include "src/region/meta.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

// An entry is the block's address, whose low bits are free.
enum { MI_ENTRY_MARKED = 1 };

_Static_assert(sizeof(mi_quarantine_t) + MI_QUARANTINE_BLOCKS_MAX * sizeof(uintptr_t) <= MI_META_SIZE_MAX,
               "the slots of a class must fit an object of the metadata");

// Of classes whose blocks do not wait.
static mi_quarantine_t mi_quarantine_none;

static mi_quarantine_t* mi_quarantine_make(mi_theap_t* theap, const mi_page_t* page) {
  const long blocks = _mi_option_get_clamp(mi_option_quarantine_blocks, 0, MI_QUARANTINE_BLOCKS_MAX);
  const size_t slots =
      _mi_hard_quarantine_slots(page->block_size, (size_t)blocks, _mi_option_get_size(mi_option_quarantine_size));
  mi_quarantine_t* quarantine = &mi_quarantine_none;
  if (slots != 0) {
    quarantine = _mi_meta_zalloc(_mi_hard_quarantine_size(slots));
    if (quarantine == NULL) {
      return &mi_quarantine_none;
    }
    quarantine->half = (uint32_t)slots / 2;
  }
  theap->quarantines[page->bin] = quarantine;
  return quarantine;
}

// A number below `half`, a power of two. A word of random bits serves many.
mi_inline uint32_t mi_quarantine_random(mi_theap_t* theap, uint32_t half) {
  const unsigned bits = half <= 1 ? 0 : _mi_bits_log2_64(half);
  if (mi_unlikely(theap->quarantine_bits_left < bits)) {
    theap->quarantine_bits = _mi_random_next(&theap->random);
    theap->quarantine_bits_left = 64;
  }
  const uint32_t random = (uint32_t)theap->quarantine_bits & (half - 1);
  theap->quarantine_bits >>= bits;
  theap->quarantine_bits_left -= bits;
  return random;
}

static mi_cold void mi_quarantine_report_written(const mi_page_t* page, const mi_block_t* block) {
  const uint8_t* const bytes = (const uint8_t*)block;
  size_t at = 0;
  while (bytes[at] == 0) {
    at++;
  }
  _mi_report(MI_VIOLATION_write_after_free,
             "block %p of %zu bytes was written while it was free: its byte %zu holds 0x%02x (page %p, class %u)", (const void*)block,
             page->block_size, at, bytes[at], (const void*)page->start, page->bin);
}

// The block goes back to its page. `tid`: the pages of this thread are its own.
mi_inline void mi_quarantine_leave(uintptr_t tid, uintptr_t entry) {
  mi_block_t* const block = (mi_block_t*)(entry & ~(uintptr_t)MI_ENTRY_MARKED);
  const bool marked = (entry & MI_ENTRY_MARKED) != 0;
  mi_page_t* const page = _mi_page_map_find(block);
  if (mi_unlikely(page == NULL)) {
    return;
  }
  if (MI_HAS_ZERO_ON_FREE && mi_unlikely(block->link != 0)) {
    mi_quarantine_report_written(page, block);
  }
  const uint64_t index = _mi_page_live_index(page, block);
  // Relaxed: only this thread ever stores its own id there.
  if ((mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS) == tid) {
    if (MI_HAS_LIVE_BITS && !_mi_hard_live_waited(page->live, index, marked)) {
      _mi_page_report_corrupt(page, block);
      return;
    }
    _mi_block_push_local(page, block);
    return;
  }
  if (MI_HAS_LIVE_BITS &&
      !(marked ? _mi_hard_live_is_marked(page->live, index) : _mi_hard_live_mark_waited(page->live, index))) {
    _mi_report(MI_VIOLATION_free_list_corruption, "block %p of %zu bytes waits to be free and is used (page %p)", (void*)block,
               page->block_size, (void*)page->start);
    return;
  }
  _mi_page_free_remote(page, block);
}

void _mi_quarantine_enter(mi_theap_t* theap, mi_page_t* page, mi_block_t* block, bool marked) {
  mi_quarantine_t* quarantine = theap->quarantines[page->bin];
  if (mi_unlikely(quarantine == NULL)) {
    quarantine = mi_quarantine_make(theap, page);
  }
  uintptr_t entry = (uintptr_t)block | (marked ? MI_ENTRY_MARKED : 0);
  if (mi_likely(quarantine != &mi_quarantine_none)) {
    entry = _mi_hard_quarantine_pass(quarantine, entry, mi_quarantine_random(theap, quarantine->half));
    if (entry == 0) {
      return;
    }
  }
  mi_quarantine_leave(theap->tid, entry);
}

static void mi_quarantine_empty(mi_theap_t* theap, uintptr_t tid) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_t* const quarantine = theap->quarantines[bin];
    if (quarantine == NULL || quarantine == &mi_quarantine_none) {
      continue;
    }
    const size_t count = _mi_hard_quarantine_count(quarantine);
    for (size_t i = 0; i < count; i++) {
      const uintptr_t entry = mi_quarantine_swap(&quarantine->slots[i], 0);
      if (entry != 0) {
        mi_quarantine_leave(tid, entry);
      }
    }
  }
}

void _mi_quarantine_flush(mi_theap_t* theap) {
  if (MI_HAS_QUARANTINE) {
    mi_quarantine_empty(theap, theap->tid);
  }
}

void _mi_quarantine_flush_of_others(mi_theap_t* theap) {
  if (MI_HAS_QUARANTINE) {
    // No page is of a thread of this number, while unowned ones are of number 0.
    mi_quarantine_empty(theap, ~(uintptr_t)MI_OWNER_FLAGS);
  }
}

void _mi_quarantine_end(mi_theap_t* theap) {
  if (!MI_HAS_QUARANTINE) {
    return;
  }
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_t* const quarantine = theap->quarantines[bin];
    theap->quarantines[bin] = NULL;
    if (quarantine != NULL && quarantine != &mi_quarantine_none) {
      _mi_meta_free(quarantine, _mi_hard_quarantine_size(_mi_hard_quarantine_count(quarantine)));
    }
  }
}

void _mi_quarantine_fork_child(mi_theap_t* theap) { theap->quarantine_bits_left = 0; }
