// Owns: the one step that every block takes when it is handed out and the one when it comes back: what the profile does to
// its bytes.
// May include: base, hardening, heap.
// Called by: heap, alloc.
// Invariants: a block is prepared after it was made live and taken back after it was found to be live and is not any more,
// each once; where the profile does nothing to blocks both steps fold to nothing.
#pragma once

#include "hardening/padding.h"
#include "src/heap/theap.h"

enum {
  MI_BLOCKS_ARE_DRESSED = MI_HAS_PADDING | MI_HAS_ZERO_ON_FREE | MI_HAS_FILL | MI_HAS_QUARANTINE,
  // What a block needs beyond the request.
  MI_BLOCK_EXTRA = MI_HAS_PADDING ? MI_PADDING_SIZE : 0,
};

// Whether requests of this size, which is in the first `limit` bytes, may take the short way. Not those for nothing, where
// they are served apart.
mi_inline bool _mi_block_is_plain(size_t size, size_t limit) {
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

// Never used memory of the page becomes free blocks. *is_zero: it holds zeroes; changed if it does from now on.
void _mi_block_prepare_fresh(uint8_t* start, size_t size, bool* is_zero);

// Puts a block that was taken back in the list of the page, which the caller owns.
mi_inline void _mi_block_push_local(mi_page_t* page, mi_block_t* block) {
  _mi_block_set_next(page, block, page->local_free);
  page->local_free = block;
  if (mi_unlikely(--page->used == 0)) {
    _mi_page_retire(page);
  }
}

// The whole of a free after the live bits have agreed: to a page of this thread, and to any other.
void _mi_block_free_local(mi_page_t* page, mi_block_t* block);
void _mi_block_free_remote(mi_page_t* page, mi_block_t* block);

// The bytes that the program asked for at p, which is a live block, or lies in one, of a page that is no zero-size page.
// Checks the block's end first, and reports what it finds.
size_t _mi_block_request(const mi_page_t* page, const void* p);

// Whether the end of a live block is as it was written, without a report.
bool _mi_block_end_is_right(const mi_page_t* page, const void* block);

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

// The end of a single is checked, before it goes.
void _mi_block_check_single(const mi_page_t* page);

// Quarantine (quarantine.c), all by the theap's thread.
// A freed block goes in, and one that waited long enough back to its page. `marked`: another thread's page, the live bits
// have the mark.
void _mi_quarantine_enter(mi_theap_t* theap, mi_page_t* page, mi_block_t* block, bool marked);
// All blocks go back to their pages.
void _mi_quarantine_flush(mi_theap_t* theap);
// The storage goes; with blocks that are still in.
void _mi_quarantine_end(mi_theap_t* theap);
// As flush, by a thread that no theap's thread can meet any more.
void _mi_quarantine_flush_of_others(mi_theap_t* theap);
// A forked child draws other numbers than its parent.
void _mi_quarantine_fork_child(mi_theap_t* theap);
