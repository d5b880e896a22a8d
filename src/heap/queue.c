// Owns: a theap's queues of pages by size class, and the direct table over their first pages.
// May include: base, heap.
// Called by: heap.
// Invariants: a direct entry is the first page of its class's queue, or the empty page; so a request of a small size
// finds its page with one load.
#include "src/heap/check.h"
#include "src/heap/sample.h"

// The direct entries of a bin: every request size in 16-byte units that the bin serves.
static void mi_queue_update_direct(mi_theap_t* theap, unsigned bin) {
  const size_t block_size = _mi_bin_block_size(bin);
  if (block_size > MI_DIRECT_SIZE_MAX) {
    return;
  }
  mi_page_t* const first = theap->queues[bin].first;
  mi_page_t* const page = first != NULL ? first : &_mi_page_empty;
  const size_t last = block_size >> MI_BLOCK_ALIGN_SHIFT;
  size_t entry = bin == MI_BIN_FIRST ? 0 : (_mi_bin_block_size(bin - 1) >> MI_BLOCK_ALIGN_SHIFT) + 1;
  for (; entry <= last; entry++) {
    theap->direct[entry] = page;
  }
}

static bool mi_queue_holds(const mi_page_queue_t* queue, const mi_page_t* page) {
  const mi_page_t* at = queue->first;
  while (at != NULL && at != page) {
    at = at->next;
  }
  return at == page;
}

void _mi_queue_push_front(mi_theap_t* theap, mi_page_t* page) {
  mi_page_queue_t* const queue = &theap->queues[page->bin];
  mi_assert_expensive(!_mi_check_is_on() || !mi_queue_holds(queue, page));
  page->prev = NULL;
  page->next = queue->first;
  if (queue->first != NULL) {
    queue->first->prev = page;
  } else {
    queue->last = page;
  }
  queue->first = page;
  queue->count++;
  theap->slices += page->slice_count;
  mi_queue_update_direct(theap, page->bin);
  _mi_sample_follow(theap, page->bin);
}

void _mi_queue_push_back(mi_theap_t* theap, mi_page_t* page) {
  mi_page_queue_t* const queue = &theap->queues[page->bin];
  if (queue->last == NULL) {
    _mi_queue_push_front(theap, page);
    return;
  }
  page->next = NULL;
  page->prev = queue->last;
  queue->last->next = page;
  queue->last = page;
  queue->count++;
  theap->slices += page->slice_count;
}

static void mi_queue_unlink(mi_theap_t* theap, mi_page_t* page) {
  mi_page_queue_t* const queue = &theap->queues[page->bin];
  mi_assert_expensive(!_mi_check_is_on() || mi_queue_holds(queue, page));
  _mi_sample_put_down(theap, page);
  if (page->next != NULL) {
    page->next->prev = page->prev;
  } else {
    queue->last = page->prev;
  }
  if (page->prev != NULL) {
    page->prev->next = page->next;
  } else {
    queue->first = page->next;
    mi_queue_update_direct(theap, page->bin);
    _mi_sample_follow(theap, page->bin);
  }
  page->next = NULL;
  page->prev = NULL;
  queue->count--;
  theap->slices -= page->slice_count;
}

void _mi_queue_remove(mi_theap_t* theap, mi_page_t* page) {
  _mi_queue_unretire(theap, page);
  mi_queue_unlink(theap, page);
}

void _mi_queue_move_front(mi_theap_t* theap, mi_page_t* page) {
  if (theap->queues[page->bin].first != page) {
    mi_queue_unlink(theap, page);
    _mi_queue_push_front(theap, page);
  }
}

void _mi_queue_move_back(mi_theap_t* theap, mi_page_t* page) {
  if (page->next != NULL) {
    mi_queue_unlink(theap, page);
    _mi_queue_push_back(theap, page);
  }
}

void _mi_queue_retire(mi_theap_t* theap, mi_page_t* page) {
  _mi_page_set_retired(page, true);
  theap->queues[page->bin].retired++;
  theap->retired_slices += page->slice_count;
  // Pages in use come before it. The first was good enough to allocate from, and its memory is warm.
  if (page->prev != NULL && page->next != NULL) {
    mi_queue_unlink(theap, page);
    _mi_queue_push_back(theap, page);
  }
}

void _mi_queue_unretire(mi_theap_t* theap, mi_page_t* page) {
  if (page->retired) {
    _mi_page_set_retired(page, false);
    theap->queues[page->bin].retired--;
    theap->retired_slices -= page->slice_count;
  }
}
