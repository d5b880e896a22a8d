// Owns: the one step that every block takes when it is handed out and the one when it comes back: what the profile does to
// its bytes.
// May include: base, hardening, heap.
// Called by: heap, alloc.
// Invariants: a block is prepared after it was made live and taken back after it was found to be live and is not any more,
// each once; where the profile does nothing to blocks both steps fold to nothing.
#pragma once

#include "hardening/fill.h"
#include "hardening/quarantine.h"
#include "src/heap/theap.h"

enum {
  MI_BLOCKS_ARE_DRESSED = MI_HAS_PADDING | MI_HAS_ZERO_ON_FREE | MI_HAS_FILL | MI_HAS_QUARANTINE,
  // What a block needs beyond the request.
  MI_BLOCK_EXTRA = MI_HAS_PADDING ? MI_PADDING_SIZE : 0,
  // Blocks up to this size are of classes that are no further apart than a slack is short.
  MI_BLOCK_USUAL_MAX = 256,
  // In an entry of a quarantine, beside the address: freed by another thread than the page's owner.
  MI_QUARANTINE_MARKED = 1,
};

// Whether requests of this size, which is in the first `limit` bytes, may take the short way. Not those for nothing, where
// they are served apart.
// Wraps: what is one less than none is above every limit.
mi_inline mi_wraps bool _mi_block_is_plain(size_t size, size_t limit) {
  return MI_HAS_ZERO_SIZE ? size - 1 < limit - MI_BLOCK_EXTRA : size <= limit - MI_BLOCK_EXTRA;
}

// The body of _mi_block_hand_out where the profile does something to blocks.
void* _mi_block_prepare(mi_page_t* page, mi_block_t* block, size_t request, bool zero, bool is_fresh);

// A block of the page, which the caller owns, is handed out for a request. `is_fresh`: it was never used, and holds zeroes
// but for its link.
mi_inline void* _mi_block_hand_out(mi_page_t* page, void* block, size_t request, bool zero, bool is_fresh) {
  if (MI_BLOCKS_ARE_DRESSED) {
    return _mi_block_prepare(page, block, request, zero, is_fresh);
  }
  if (zero) {
    __builtin_memset(block, 0, is_fresh ? sizeof(mi_block_t) : page->block_size);
  }
  return block;
}

mi_inline uint8_t* _mi_block_trailer(const mi_page_t* page, const void* block) {
  return (uint8_t*)(uintptr_t)block + page->block_size - MI_PADDING_SIZE;
}

// Whether the blocks of the page are neither the smallest, whose slack takes care, nor such that are looked at as they are cleared.
// Wraps: the smallest are above every bound.
mi_inline mi_wraps bool mi_block_is_small(const mi_page_t* page) {
  const size_t least = MI_PADDING_SIZE + MI_PADDING_SHORT;
  return page->block_size - least < MI_FILL_LOOK_MIN - least;
}

// Whether their slack is mostly short besides: larger classes are further apart. Wraps likewise.
mi_inline mi_wraps bool mi_block_is_usual(const mi_page_t* page) {
  const size_t least = MI_PADDING_SIZE + MI_PADDING_SHORT;
  return page->block_size - least <= MI_BLOCK_USUAL_MAX - least;
}

// A block is handed out that is not as it should be, or as most are; and one that is, but has more slack than most.
mi_noinline void* _mi_block_prepare_odd(mi_page_t* page, mi_block_t* block, size_t request, bool zero, bool has_link);
mi_noinline void* _mi_block_pad_long(mi_page_t* page, mi_block_t* block, size_t slack);

// The same as _mi_block_hand_out for a block that was used before, or is small. One that comes from a quarantine has no link.
mi_inline void* _mi_block_prepare_usual(mi_page_t* page, mi_block_t* block, size_t request, bool zero, bool has_link) {
  const size_t room = page->block_size - MI_PADDING_SIZE;
  const size_t slack = room - request;
  if (!MI_HAS_ZERO_ON_FREE || !MI_HAS_PADDING || mi_unlikely(!mi_block_is_small(page)) ||
      mi_unlikely(!_mi_hard_fill_is_short(block, page->block_size, 0, has_link))) {
    return _mi_block_prepare_odd(page, block, request, zero, has_link);
  }
  if (has_link) {
    block->link = 0;
  }
  if (mi_unlikely(slack > MI_PADDING_SHORT)) {
    return _mi_block_pad_long(page, block, slack);
  }
  _mi_hard_padding_write_short(_mi_block_trailer(page, block), slack, &page->canary_key);
  return block;
}

// Never used memory of the page becomes free blocks. *is_zero: it holds zeroes; changed if it does from now on.
void _mi_block_prepare_fresh(uint8_t* start, size_t size, bool* is_zero);

// Puts a block that was taken back in the list of the page, which the caller owns.
mi_inline void _mi_block_push_at(mi_page_t* page, mi_block_t* block, uint64_t index) {
  if (MI_HAS_OUTLINE_LISTS) {
    _mi_page_note_freed(page, block, index);
  } else {
    _mi_block_set_next(page, block, page->local_free);
    page->local_free = block;
    page->used--;
  }
  if (mi_unlikely(_mi_page_used(page) == 0)) {
    _mi_page_retire(page);
  }
}

mi_inline void _mi_block_push_local(mi_page_t* page, mi_block_t* block) {
  _mi_block_push_at(page, block, MI_HAS_OUTLINE_LISTS ? _mi_page_live_index(page, block) : 0);
}

// The whole of a free after the live bits have agreed: to a page of this thread where something is not as it mostly is, or
// may be due; and to any other page.
mi_noinline void _mi_block_free_unusual(mi_page_t* page, mi_block_t* block);
mi_noinline void _mi_block_free_watched(mi_page_t* page, mi_block_t* block);
void _mi_block_free_remote(mi_page_t* page, mi_block_t* block);

// The bytes that the program asked for at p, which is a live block, or lies in one, of a page that is no zero-size page.
// Checks the block's end first, and reports what it finds.
size_t _mi_block_request(const mi_page_t* page, const void* p);

// The same before the request becomes `newsize`: of a long slack only what then is the request's, and a part of the rest, is
// checked. A free will check the whole.
size_t _mi_block_request_before(const mi_page_t* page, const void* p, size_t newsize);

// Whether the end of a live block is as it was written, without a report.
bool _mi_block_end_is_right(const mi_page_t* page, const void* block);

// Looks at a block in a list of the caller's page, and at one of its live blocks, which other threads may use and free
// meanwhile: what was written to the first, and over the trailer of the other, is reported.
void _mi_block_check_free(const mi_page_t* page, mi_block_t* block);
void _mi_block_check_live(const mi_page_t* page, const void* block);

// Writes the end of a block that is as large as it can be.
void _mi_block_mend_end(const mi_page_t* page, void* block);

// The bytes that a live block was asked with, as its end says; what fits into it where that is overwritten, without a report.
size_t _mi_block_size_asked(const mi_page_t* page, const void* block);

// The largest request that fits where p is.
size_t _mi_block_capacity(const mi_page_t* page, const void* p);

// A live block's request becomes another, of at most its capacity. Bytes between the old end and the new one read zero.
void _mi_block_set_request(mi_page_t* page, void* p, size_t request);

// A new single gets its request. Its memory holds zeroes or what it likes.
void _mi_block_prepare_single(mi_page_t* page, size_t request);

// The same when it is handed out, and told to the tool. `zero`: it holds zeroes, as was asked.
mi_inline void _mi_block_hand_out_single(mi_page_t* page, size_t request, bool zero) {
  _mi_block_prepare_single(page, request);
  _mi_track_made(page->single_start, request, page->start, page->start + page->slice_count * MI_SLICE_SIZE, zero);
}

// Tells the tool that a live block of a class is the program's no more.
mi_inline void _mi_block_end(const mi_page_t* page, const void* block) {
  if (MI_TRACKS && page->has_interior) {
    _mi_track_freed_in(block, (const uint8_t*)block + page->block_size);
  } else {
    _mi_track_freed(block);
  }
}

// The end of a single is checked, before it goes.
void _mi_block_check_single(const mi_page_t* page);

// Quarantine (quarantine.c), all by the theap's thread.
// A new theap's: nothing waits.
void _mi_quarantine_begin(mi_theap_t* theap);
// A freed block goes in where the inline path does not put it. `marked`: another thread's page, the live bits have the mark.
mi_noinline void _mi_quarantine_enter(mi_theap_t* theap, mi_page_t* page, mi_block_t* block, bool marked);
// More blocks of a class are ready than are kept: some go back to their pages, unless such were missed since.
mi_noinline void _mi_quarantine_drain(mi_theap_t* theap, unsigned bin);
// No more are kept than where blocks come and go one by one.
void _mi_quarantine_settle_down(mi_theap_t* theap);
// The block that would be handed out next goes back to its page instead, or is reported: it cannot be handed out here.
void _mi_quarantine_skip(mi_theap_t* theap, mi_quarantine_t* quarantine);
// How many blocks of a class have served again since this was asked last.
uint64_t _mi_quarantine_count_again(mi_theap_t* theap, unsigned bin);
// All blocks go back to their pages.
void _mi_quarantine_flush(mi_theap_t* theap);
// The storage goes; with blocks that are still in.
void _mi_quarantine_end(mi_theap_t* theap);
// As flush, by a thread that no theap's thread can meet any more.
void _mi_quarantine_flush_of_others(mi_theap_t* theap);
// A forked child draws other numbers than its parent.
void _mi_quarantine_fork_child(mi_theap_t* theap);

// The kinds of sampling that the allocation of the class which could not be served by its quarantine was due for.
unsigned _mi_quarantine_sampled(mi_theap_t* theap, unsigned bin);
// What has served again is counted by the sampling, and, if `anew`, how much may until the next sampled block is asked anew.
void _mi_quarantine_grant_all(mi_theap_t* theap, bool anew);

// Whether the next allocation from the quarantine is to be sampled, and so goes to the slow path.
mi_inline bool _mi_quarantine_is_due(const mi_quarantine_t* quarantine) { return quarantine->left < 0; }

// Takes the block that waited longest, which one is ready to be, and makes it live. False: it cannot be handed out here, or
// a sampled allocation is due.
mi_inline bool _mi_quarantine_take(const mi_theap_t* theap, mi_quarantine_t* quarantine, uint8_t origin, mi_page_t** page,
                                   mi_block_t** block) {
  // That of another thread's page is marked, and an odd address.
  if (mi_unlikely(--quarantine->left < 0)) {
    return false;
  }
  const uintptr_t entry = _mi_hard_quarantine_first(quarantine);
  *page = _mi_page_map_get((const void*)entry);
  *block = (mi_block_t*)entry;
  const uint64_t index = _mi_page_live_index(*page, *block);
  // Relaxed: only this thread ever stores its own id there.
  if (mi_unlikely(mi_atomic_load_relaxed(&(*page)->owner) != theap->tid) ||
      mi_unlikely(MI_HAS_LIVE_BITS ? !_mi_hard_live_set((*page)->live, index) : (entry & MI_QUARANTINE_MARKED) != 0)) {
    quarantine->left++;
    return false;
  }
  _mi_hard_quarantine_drop(quarantine);
  // The next allocation of the class looks at the next, which nobody has touched for a while.
  __builtin_prefetch((const void*)_mi_hard_quarantine_first(quarantine), 1);
  if (MI_HAS_FAMILY) {
    _mi_page_set_origin(*page, index, origin);
  }
  return true;
}

// A freed block of a page of this thread goes in, and if that makes too many some leave.
mi_inline void _mi_quarantine_put(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  mi_quarantine_t* const quarantine = theap->quarantines[page->bin];
  const uint32_t drawn = quarantine->drawn;
  if (mi_unlikely(drawn == 0)) {
    _mi_quarantine_enter(theap, page, block, false);
    return;
  }
  quarantine->drawn = drawn - 1;
  if (mi_unlikely(!_mi_hard_quarantine_put(quarantine, (uintptr_t)block, quarantine->draws[drawn - 1]))) {
    _mi_quarantine_drain(theap, page->bin);
  }
}

// Whether what lies before a block is as it mostly is: the zeroes of a free block, or a trailer, which needs no look at whether its
// block lives. If not it may be right all the same.
mi_inline bool mi_block_left_is_plain(const mi_page_t* page, const uint8_t* block) {
  if (!MI_HAS_LIVE_BITS || mi_unlikely(block == page->start)) {
    return true;
  }
  const uint64_t left = _mi_hard_padding_load(block - MI_PADDING_SIZE);
  if (MI_HAS_ZERO_ON_FREE && left == 0) {
    const uint64_t left_index = _mi_page_live_index(page, block - page->block_size);
    return mi_likely(!mi_live_has(mi_atomic_load_relaxed(mi_live_owner_word(page->live, left_index)), left_index));
  }
  return _mi_hard_padding_is_trailer(block - MI_PADDING_SIZE, left, page->block_size - MI_PADDING_SIZE, &page->canary_key);
}

// The whole of a free to a page of this thread, after the live bits have agreed. Like that of an allocation it
// leaves what is not usual by tail calls, and so saves no register: smallest and larger blocks, a long slack, or an end that is
// not right.
mi_inline void mi_block_free_local(mi_page_t* page, mi_block_t* block) {
  if (MI_HAS_FILL || MI_TRACKS || ((MI_HAS_PADDING || MI_HAS_ZERO_ON_FREE) && mi_unlikely(!mi_block_is_usual(page))) ||
      (MI_HAS_PADDING && mi_unlikely(!_mi_hard_padding_is_right_and_short(_mi_block_trailer(page, block), &page->canary_key)))) {
    _mi_block_free_unusual(page, block);
    return;
  }
  // What is known of the page is loaded anew: registers are dearer.
  mi_opaque(page);
  if (MI_HAS_PADDING && !mi_block_left_is_plain(page, (const uint8_t*)block)) {
    _mi_block_free_unusual(page, block);
    return;
  }
  mi_opaque(page);
  if (MI_HAS_ZERO_ON_FREE) {
    _mi_hard_fill_set_short(block, page->block_size, 0);
  }
  if (MI_HAS_QUARANTINE) {
    _mi_quarantine_put(page->theap, page, block);
  } else {
    _mi_block_push_local(page, block);
  }
}

mi_inline void _mi_block_free_local(mi_page_t* page, mi_block_t* block) {
  if (MI_HAS_QUARANTINE && mi_unlikely(page->theap->watched != 0)) {
    _mi_block_free_watched(page, block);
    return;
  }
  mi_block_free_local(page, block);
}
