// Owns: the quarantines of a theap: made, passed through, emptied.
// May include: base, hardening, sys, region, heap.
// Called by: heap.
// Invariants: a block in quarantine is not live, in no list, and counted in its page's `used`, so that the page stays. One
// that was freed by its page's owner has neither bit of the live bits, one freed by another thread has both; when it leaves
// it must still have them so. Blocks of other threads' pages wait only if they
// are of the main heap, which never ends, or of the heap that the theap is of.
#include "src/heap/block.h"
#include "src/heap/sample.h"
#include "src/region/meta.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

_Static_assert(sizeof(mi_quarantine_t) + (MI_QUARANTINE_SLOTS_MAX + 1) * sizeof(uintptr_t) <= MI_META_SIZE_MAX &&
                   3 * MI_QUARANTINE_BLOCKS_MAX / 2 <= MI_QUARANTINE_SLOTS_MAX,
               "the slots of a class must fit an object of the metadata");

// Of classes that have none yet, and of those whose blocks do not wait. Nothing is ready in them, and no place drawn, so that
// the inline paths leave them alone.
static mi_quarantine_t mi_quarantine_unmade;
static mi_quarantine_t mi_quarantine_none;

static bool mi_quarantine_exists(const mi_quarantine_t* quarantine) {
  return quarantine != &mi_quarantine_unmade && quarantine != &mi_quarantine_none;
}

static void mi_quarantine_assign(mi_theap_t* theap, unsigned bin, mi_quarantine_t* quarantine) {
  theap->quarantines[bin] = quarantine;
  const size_t last = _mi_bin_block_size(bin) >> MI_BLOCK_ALIGN_SHIFT;
  size_t entry = bin == MI_BIN_FIRST ? 0 : (_mi_bin_block_size(bin - 1) >> MI_BLOCK_ALIGN_SHIFT) + 1;
  for (; entry <= last && entry < MI_DIRECT_ENTRIES; entry++) {
    theap->direct_quarantines[entry] = quarantine;
  }
}

void _mi_quarantine_begin(mi_theap_t* theap) {
  for (unsigned bin = MI_BIN_FIRST; MI_HAS_QUARANTINE && bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_assign(theap, bin, &mi_quarantine_unmade);
  }
}

static mi_quarantine_t* mi_quarantine_make(mi_theap_t* theap, const mi_page_t* page) {
  const long blocks = _mi_option_get_clamp(mi_option_quarantine_blocks, 0, MI_QUARANTINE_BLOCKS_MAX);
  const size_t bound =
      _mi_hard_quarantine_bound(page->block_size, (size_t)blocks, _mi_option_get_size(mi_option_quarantine_size));
  mi_quarantine_t* quarantine = &mi_quarantine_none;
  if (bound != 0) {
    const size_t limit = _mi_hard_quarantine_limit(bound);
    quarantine = _mi_meta_zalloc(_mi_hard_quarantine_size(bound, limit));
    if (quarantine == NULL) {
      return &mi_quarantine_none;
    }
    _mi_hard_quarantine_init(quarantine, bound, limit);
    quarantine->granted = _mi_sample_grant(theap, page->bin);
    quarantine->left = quarantine->granted;
  }
  mi_quarantine_assign(theap, page->bin, quarantine);
  return quarantine;
}

// Draws places in the random part in advance; its size is a power of two that bytes hold.
static void mi_quarantine_draw(mi_theap_t* theap, mi_quarantine_t* quarantine) {
  const uint64_t mask = (quarantine->half - 1) * UINT64_C(0x0101010101010101);
  for (size_t i = 0; i < MI_QUARANTINE_DRAWS; i += sizeof(uint64_t)) {
    const uint64_t random = _mi_theap_draw(theap) & mask;
    __builtin_memcpy(&quarantine->draws[i], &random, sizeof(random));
  }
  quarantine->drawn = MI_QUARANTINE_DRAWS;
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

// The thread whose quarantine is emptied by another. No page is of a thread of this number, while unowned ones are of number 0.
#define MI_QUARANTINE_NOBODY (~(uintptr_t)MI_OWNER_FLAGS)

// The block goes back to its page. `tid`: the pages of this thread are its own. A thread that a forked child has not may have
// stopped while it took a block out: such an entry is nobody's mistake.
mi_inline void mi_quarantine_leave(uintptr_t tid, uintptr_t entry) {
  mi_block_t* const block = (mi_block_t*)(entry & ~(uintptr_t)MI_QUARANTINE_MARKED);
  const bool marked = (entry & MI_QUARANTINE_MARKED) != 0;
  mi_page_t* const page = _mi_page_map_find(block);
  if (mi_unlikely(page == NULL)) {
    return;
  }
  const uint64_t index = _mi_page_live_index(page, block);
  if (MI_HAS_LIVE_BITS && mi_unlikely(tid == MI_QUARANTINE_NOBODY) && !marked && !_mi_hard_live_is_free(page->live, index)) {
    return;
  }
  if (MI_HAS_ZERO_ON_FREE && mi_unlikely(block->link != 0)) {
    mi_quarantine_report_written(page, block);
  }
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

static void mi_quarantine_free(mi_quarantine_t* quarantine) {
  _mi_meta_free(quarantine, _mi_hard_quarantine_size(_mi_hard_quarantine_bound_of(quarantine), (size_t)quarantine->room));
}

// More may be ready than before. False: as many as can be may be already, or there is no memory for it.
static bool mi_quarantine_grow(mi_theap_t* theap, unsigned bin, mi_quarantine_t* quarantine) {
  const size_t bound = _mi_hard_quarantine_bound_of(quarantine);
  const size_t most =
      _mi_hard_quarantine_burst(bound, _mi_bin_block_size(bin), _mi_option_get_size(mi_option_quarantine_size));
  const size_t limit = _mi_min(MI_QUARANTINE_GROWTH * (size_t)quarantine->limit, most);
  // Those of other heaps are not looked after when the purge delay is over.
  if (theap != _mi_tls.own || _mi_bin_block_size(bin) > MI_DIRECT_SIZE_MAX || limit <= (size_t)quarantine->limit || !_mi_theap_keeps()) {
    return false;
  }
  if (limit <= (size_t)quarantine->room) {
    quarantine->limit = (int32_t)limit;
    quarantine->drained = false;
    return true;
  }
  mi_quarantine_t* const larger = _mi_meta_zalloc(_mi_hard_quarantine_size(bound, limit));
  if (larger == NULL) {
    return false;
  }
  _mi_hard_quarantine_init(larger, bound, limit);
  _mi_hard_quarantine_move(larger, quarantine);
  // A forked child finds the one or the other.
  atomic_signal_fence(memory_order_release);
  mi_quarantine_assign(theap, bin, larger);
  mi_quarantine_free(quarantine);
  return true;
}

static void mi_quarantine_keep(mi_theap_t* theap, mi_quarantine_t* quarantine, int32_t kept) {
  while (quarantine->ready > kept) {
    const uintptr_t entry = _mi_hard_quarantine_first(quarantine);
    _mi_hard_quarantine_drop(quarantine);
    __builtin_prefetch((const void*)_mi_hard_quarantine_first(quarantine), 1);
    mi_quarantine_leave(theap->tid, entry);
  }
}

void _mi_quarantine_drain(mi_theap_t* theap, unsigned bin) {
  mi_quarantine_t* const quarantine = theap->quarantines[bin];
  // If what left the last time was missing after that, more is kept this time.
  const bool was_missing = quarantine->drained && theap->starved[bin];
  theap->starved[bin] = false;
  if (was_missing && mi_quarantine_grow(theap, bin, quarantine)) {
    return;
  }
  quarantine->drained = true;
  mi_quarantine_keep(theap, quarantine, quarantine->limit / 2);
}

void _mi_quarantine_settle_down(mi_theap_t* theap) {
  for (unsigned bin = MI_BIN_FIRST; MI_HAS_QUARANTINE && bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_t* const quarantine = theap->quarantines[bin];
    if (mi_quarantine_exists(quarantine)) {
      quarantine->limit = (int32_t)_mi_hard_quarantine_limit(_mi_hard_quarantine_bound_of(quarantine));
      mi_quarantine_keep(theap, quarantine, quarantine->limit);
    }
  }
}

void _mi_quarantine_skip(mi_theap_t* theap, mi_quarantine_t* quarantine) {
  const uintptr_t entry = _mi_hard_quarantine_first(quarantine);
  _mi_hard_quarantine_drop(quarantine);
  mi_quarantine_leave(theap->tid, entry);
}

// What has served again since the last grant becomes part of the counts.
static void mi_quarantine_settle(mi_theap_t* theap, unsigned bin, mi_quarantine_t* quarantine) {
  const int64_t left = quarantine->left < 0 ? 0 : quarantine->left;
  const int64_t count = quarantine->granted - left;
  quarantine->granted = left;
  quarantine->again += (uint64_t)count;
  if (theap->sampling.kinds != 0) {
    _mi_sample_taken(theap, bin, count);
  }
}

uint64_t _mi_quarantine_count_again(mi_theap_t* theap, unsigned bin) {
  if (!MI_HAS_QUARANTINE || !mi_quarantine_exists(theap->quarantines[bin])) {
    return 0;
  }
  mi_quarantine_t* const quarantine = theap->quarantines[bin];
  mi_quarantine_settle(theap, bin, quarantine);
  const uint64_t again = quarantine->again;
  quarantine->again = 0;
  return again;
}

unsigned _mi_quarantine_sampled(mi_theap_t* theap, unsigned bin) {
  mi_quarantine_t* const quarantine = theap->quarantines[bin];
  if (!_mi_quarantine_is_due(quarantine)) {
    return 0;
  }
  mi_quarantine_settle(theap, bin, quarantine);
  const unsigned due = _mi_sample_take_ended(theap, bin);
  quarantine->granted = _mi_sample_grant(theap, bin);
  quarantine->left = quarantine->granted;
  return due;
}

void _mi_quarantine_grant_all(mi_theap_t* theap, bool anew) {
  for (unsigned bin = MI_BIN_FIRST; MI_HAS_QUARANTINE && bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_t* const quarantine = theap->quarantines[bin];
    if (mi_quarantine_exists(quarantine)) {
      mi_quarantine_settle(theap, bin, quarantine);
      if (anew) {
        quarantine->granted = _mi_sample_grant(theap, bin);
        quarantine->left = quarantine->granted;
      }
    }
  }
}

void _mi_quarantine_enter(mi_theap_t* theap, mi_page_t* page, mi_block_t* block, bool marked) {
  mi_quarantine_t* quarantine = theap->quarantines[page->bin];
  if (mi_unlikely(quarantine == &mi_quarantine_unmade)) {
    quarantine = mi_quarantine_make(theap, page);
  }
  const uintptr_t entry = (uintptr_t)block | (marked ? MI_QUARANTINE_MARKED : 0);
  if (mi_unlikely(!mi_quarantine_exists(quarantine))) {
    mi_quarantine_leave(theap->tid, entry);
    return;
  }
  bool fits;
  if (quarantine->half <= 1) {
    fits = quarantine->half == 0 ? _mi_hard_quarantine_put_queued(quarantine, entry) : _mi_hard_quarantine_put(quarantine, entry, 0);
  } else if (mi_unlikely(quarantine->half > MI_QUARANTINE_DRAWN_MAX)) {
    fits = _mi_hard_quarantine_put(quarantine, entry, (uint32_t)_mi_random_next(&theap->random) & (quarantine->half - 1));
  } else {
    if (quarantine->drawn == 0) {
      mi_quarantine_draw(theap, quarantine);
    }
    fits = _mi_hard_quarantine_put(quarantine, entry, quarantine->draws[--quarantine->drawn]);
  }
  if (!fits) {
    _mi_quarantine_drain(theap, page->bin);
  }
}

static void mi_quarantine_empty(mi_theap_t* theap, uintptr_t tid) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_t* const quarantine = theap->quarantines[bin];
    if (!mi_quarantine_exists(quarantine)) {
      continue;
    }
    uint32_t slot = 0;
    uintptr_t entry;
    while ((entry = _mi_hard_quarantine_take_any(quarantine, &slot)) != 0) {
      mi_quarantine_leave(tid, entry);
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
    mi_quarantine_empty(theap, MI_QUARANTINE_NOBODY);
  }
}

void _mi_quarantine_end(mi_theap_t* theap) {
  if (!MI_HAS_QUARANTINE) {
    return;
  }
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_quarantine_t* const quarantine = theap->quarantines[bin];
    mi_quarantine_assign(theap, bin, &mi_quarantine_unmade);
    if (mi_quarantine_exists(quarantine)) {
      mi_quarantine_free(quarantine);
    }
  }
}

void _mi_quarantine_fork_child(mi_theap_t* theap) {
  if (!MI_HAS_QUARANTINE) {
    return;
  }
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    if (mi_quarantine_exists(theap->quarantines[bin])) {
      theap->quarantines[bin]->drawn = 0;
    }
  }
}
