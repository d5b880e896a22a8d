// Owns: padding, zeroes and patterns in blocks: written, checked, reported.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: a free block of a class holds zeroes (or the pattern of freed blocks) but for its link, in every list and in
// quarantine; the end of a live one is as hardening/padding.h says. Only a page's owner looks at a block's neighbour.
//
// The neighbour may be another thread's at that moment. That thread marks the block in the live bits, fences (release) and
// only then writes zeroes over the trailer, which is a relaxed atomic store. The owner loads the trailer, and if that is no
// trailer fences (acquire) and loads the mark: it read what was written after the other's fence, so the two fences
// synchronise and the mark is seen. Marks are only taken off by the owner itself. No order is needed where the trailer is
// right: then there is nothing to tell. A realloc in place replaces one right trailer by another in one store.
#include "src/heap/block.h"

#include <string.h>

#include "hardening/fill.h"
#include "src/base/fmt.h"
#include "src/heap/heap-stats.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"
#include "src/sys/os.h"
#include "src/sys/report.h"

enum {
  // Larger blocks that were never used are looked through only for calloc, which relies on what is found.
  MI_FRESH_CHECK_MAX = 4096,
  // A realloc looks at least at so much of the slack: what runs over the end of a block meets that first.
  MI_CHECKED_SLACK_MIN = 64,
  // While frees look whether something is due, so many of them make a look.
  MI_FREES_EACH_WATCH = 8,
  // So many bytes before a single are checked, or less.
  MI_SINGLE_LEAD_MAX = 64,
};

// The bytes of a block behind its link, and before its trailer.
enum { MI_LINK_SIZE = 8 };
_Static_assert(sizeof(mi_block_t) <= MI_LINK_SIZE && MI_LINK_SIZE + MI_PADDING_SIZE <= MI_BLOCK_ALIGN,
               "link and trailer of the smallest block must not overlap");

// Reports

// " instead of 0x…": what a byte should hold.
typedef struct mi_wanted_s {
  char text[24];
} mi_wanted_t;

static mi_wanted_t mi_wanted(uint8_t byte) {
  mi_wanted_t wanted = {""};
  (void)_mi_fmt(wanted.text, sizeof(wanted.text), " instead of 0x%02x", byte);
  return wanted;
}

// The same of a byte of a trailer, where that is no secret: only debug, which nobody attacks, tells bytes of a canary; and known,
// which what tells the slack is not.
static mi_wanted_t mi_wanted_of_trailer(uint64_t difference, size_t at, uint8_t found) {
  if (!_mi_hard_padding_is_certain(at) || (at > 0 && MI_ASSERT_LEVEL < 2)) {
    return (mi_wanted_t){""};
  }
  return mi_wanted(_mi_hard_padding_wanted(difference, at, found));
}

static void mi_report_end_of(const void* p, size_t request, size_t at, uint8_t byte, mi_wanted_t wanted) {
  _mi_report(MI_VIOLATION_overflow, "block %p of %zu bytes was written beyond its end: its byte %zu holds 0x%02x%s", p, request, at, byte,
             wanted.text);
}

static mi_wanted_t mi_wanted_of_slack(size_t at) { return mi_wanted(_mi_hard_padding_slack_byte(at)); }

static void mi_report_before(const uint8_t* block, size_t block_size, size_t before, mi_wanted_t wanted) {
  _mi_report(MI_VIOLATION_underflow, "block %p of %zu byte blocks was written before its start: its byte -%zu holds 0x%02x%s",
             (const void*)block, block_size, before, *(block - before), wanted.text);
}

// The trailer of a live block is wrong.
static void mi_report_trailer(const mi_page_t* page, const uint8_t* block, uint64_t difference, size_t slack) {
  const uint8_t* const trailer = block + page->block_size - MI_PADDING_SIZE;
  const size_t room = page->block_size - MI_PADDING_SIZE;
  if (_mi_hard_padding_hit_from_behind(difference)) {
    const size_t bad = _mi_hard_padding_bad_byte(difference);
    mi_report_before(trailer + MI_PADDING_SIZE, page->block_size, MI_PADDING_SIZE - bad,
                     mi_wanted_of_trailer(difference, bad, trailer[bad]));
    return;
  }
  // As long as the end of the trailer is right the slack is likely to be, too.
  if ((difference & MI_PADDING_HIGH_MASK) == 0 && slack <= room) {
    const size_t good = _mi_hard_padding_compare_bytes(trailer - slack, slack);
    const size_t bad = _mi_hard_padding_bad_byte(difference);
    const size_t at = good < slack ? room - slack + good : room + bad;
    mi_report_end_of(block, room - slack, at, block[at],
                     good < slack ? mi_wanted_of_slack(good) : mi_wanted_of_trailer(difference, bad, block[at]));
    return;
  }
  const size_t bad = _mi_hard_padding_bad_byte(difference);
  _mi_report(MI_VIOLATION_overflow,
             "block %p of at most %zu bytes (what tells its size is overwritten) was written beyond its end: its byte %zu holds 0x%02x%s",
             (const void*)block, room, room + bad, trailer[bad], mi_wanted_of_trailer(difference, bad, trailer[bad]).text);
}

static void mi_report_written(const mi_page_t* page, const uint8_t* block, size_t at) {
  _mi_report(MI_VIOLATION_write_after_free,
             "block %p of %zu bytes was written while it was free: its byte %zu holds 0x%02x%s (page %p, class %u)",
             (const void*)block, page->block_size, at, block[at], mi_wanted(MI_HAS_FILL ? MI_FILL_FREED : 0).text, (const void*)page->start,
             page->bin);
}

// Blocks of a class

// How many bytes at its start a free leaves as they are, and so nobody looks at.
mi_inline size_t mi_block_preserved(const mi_page_t* page) {
  return MI_HAS_FILL ? _mi_min(page->fill_preserve, page->block_size - MI_PADDING_SIZE) : 0;
}

// A free block was written behind the first bytes: they are put right, after a report.
static mi_cold void mi_block_was_written(const mi_page_t* page, mi_block_t* block, uint8_t freed, size_t skipped) {
  uint8_t* const behind = (uint8_t*)block + skipped;
  const size_t size = page->block_size - skipped;
  mi_report_written(page, (uint8_t*)block, skipped + _mi_hard_fill_find(behind, size, freed));
  memset(behind, freed, size);
}

// Looks for writes to a free block and makes it what the program gets.
mi_inline void mi_block_open(mi_page_t* page, mi_block_t* block, bool zero, bool is_fresh, bool has_link) {
  const size_t size = page->block_size;
  const size_t preserved = mi_block_preserved(page);
  const size_t skipped = _mi_max(has_link ? MI_LINK_SIZE : 0, preserved);
  const uint8_t freed = MI_HAS_FILL ? MI_FILL_FREED : 0;
  if (!is_fresh || zero || size <= MI_FRESH_CHECK_MAX) {
    const bool good = mi_likely(preserved == 0)
        ? _mi_hard_fill_is(block, size, freed, has_link)
        : _mi_hard_fill_find((uint8_t*)block + skipped, size - skipped, freed) == size - skipped;
    if (mi_unlikely(!good)) {
      mi_block_was_written(page, block, freed, skipped);
    }
  }
  if (MI_HAS_FILL) {
    _mi_hard_fill_set(block, size, zero ? 0 : MI_FILL_ALLOCATED);
  } else if (has_link) {
    __builtin_memset(block, 0, MI_LINK_SIZE);
  }
}

// Makes a block that was given back what a free one holds.
mi_inline void mi_block_close(const mi_page_t* page, mi_block_t* block) {
  const uint8_t freed = MI_HAS_FILL ? MI_FILL_FREED : 0;
  const size_t preserved = mi_block_preserved(page);
  if (mi_unlikely(preserved != 0)) {
    memset((uint8_t*)block + preserved, freed, page->block_size - preserved);
  } else if (MI_HAS_ZERO_ON_FREE || MI_HAS_FILL) {
    _mi_hard_fill_set(block, page->block_size, freed);
  }
}

// The same for a block of another thread's page, whose owner may be looking at the trailer.
mi_inline void mi_block_close_remote(const mi_page_t* page, mi_block_t* block) {
  const uint8_t freed = MI_HAS_FILL ? MI_FILL_FREED : 0;
  const size_t preserved = mi_block_preserved(page);
  uint8_t* const trailer = _mi_block_trailer(page, block);
  if (mi_unlikely(preserved != 0)) {
    memset((uint8_t*)block + preserved, freed, page->block_size - MI_PADDING_SIZE - preserved);
  } else if (MI_HAS_ZERO_ON_FREE || MI_HAS_FILL) {
    if (page->block_size > MI_BLOCK_ALIGN) {
      _mi_hard_fill_set(block, page->block_size - MI_BLOCK_ALIGN, freed);
    }
    *(mi_fill_word_t*)(void*)(trailer - sizeof(mi_fill_word_t)) = mi_fill_word(freed);
  }
  if (MI_HAS_ZERO_ON_FREE || MI_HAS_FILL) {
    _mi_hard_padding_store(trailer, mi_fill_word(freed));
  }
}

mi_inline void* mi_block_prepare(mi_page_t* page, mi_block_t* block, size_t request, bool zero, bool is_fresh, bool has_link) {
  _mi_track_open(block, page->block_size);
  if (MI_HAS_ZERO_ON_FREE || MI_HAS_FILL) {
    mi_block_open(page, block, zero, is_fresh, has_link);
  } else if (zero) {
    memset(block, 0, is_fresh ? sizeof(*block) : page->block_size);
  }
  if (MI_HAS_PADDING) {
    uint8_t* const trailer = _mi_block_trailer(page, block);
    const size_t room = page->block_size - MI_PADDING_SIZE;
    if (MI_HAS_ZERO_ON_FREE && mi_likely(room >= MI_PADDING_SHORT && room - request <= MI_PADDING_SHORT)) {
      _mi_hard_padding_write_short(trailer, room - request, &page->canary_key);
    } else {
      _mi_hard_padding_write(trailer, room - request, &page->canary_key);
    }
  }
  if (MI_STATS_LEVEL >= 2) {
    _mi_page_count_call(page, 1, request);
  }
  _mi_track_made(block, request, block, (uint8_t*)block + page->block_size, zero);
  return block;
}

void* _mi_block_prepare(mi_page_t* page, mi_block_t* block, size_t request, bool zero, bool is_fresh) {
  return mi_block_prepare(page, block, request, zero, is_fresh, true);
}

void* _mi_block_pad_long(mi_page_t* page, mi_block_t* block, size_t slack) {
  _mi_hard_padding_write(_mi_block_trailer(page, block), slack, &page->canary_key);
  return block;
}

void* _mi_block_prepare_odd(mi_page_t* page, mi_block_t* block, size_t request, bool zero, bool has_link) {
  return mi_block_prepare(page, block, request, zero, false, has_link);
}

void _mi_block_prepare_fresh(uint8_t* start, size_t size, bool* is_zero) {
  if (MI_HAS_FILL) {
    memset(start, MI_FILL_FREED, size);
    *is_zero = false;
  } else if (MI_HAS_ZERO_ON_FREE && !*is_zero) {
    memset(start, 0, size);
    *is_zero = true;
  }
}

// The end of a block that was live until now, or is: its slack up to `limit` bytes into the block and somewhat further. False:
// it was wrong, and has been reported.
mi_inline bool mi_block_check_end_to(const mi_page_t* page, const void* block, size_t limit, size_t* slack) {
  const uint8_t* const trailer = _mi_block_trailer(page, block);
  uint64_t difference;
  if (mi_unlikely(!_mi_hard_padding_decode(_mi_hard_padding_load(trailer), (uintptr_t)trailer,
                                           page->block_size - MI_PADDING_SIZE, &page->canary_key, slack, &difference))) {
    mi_report_trailer(page, block, difference, *slack);
    return false;
  }
  const size_t request = page->block_size - MI_PADDING_SIZE - *slack;
  const size_t part = MI_CHECKED_SLACK_MIN + (limit > request ? limit - request : 0);
  const size_t good = _mi_hard_padding_compare_part(trailer, *slack, part);
  if (mi_unlikely(good != *slack)) {
    mi_report_end_of(block, request, request + good, (trailer - *slack)[good], mi_wanted_of_slack(good));
    return false;
  }
  return true;
}

mi_inline bool mi_block_check_end(const mi_page_t* page, const void* block, size_t* slack) {
  return mi_block_check_end_to(page, block, page->block_size, slack);
}

static mi_cold void mi_block_report_end(const mi_page_t* page, const void* block) {
  size_t slack;
  (void)mi_block_check_end(page, block, &slack);
}

bool _mi_block_end_is_right(const mi_page_t* page, const void* block) {
  const uint8_t* const trailer = _mi_block_trailer(page, block);
  size_t slack;
  uint64_t difference;
  return _mi_hard_padding_decode(_mi_hard_padding_load(trailer), (uintptr_t)trailer, page->block_size - MI_PADDING_SIZE,
                                 &page->canary_key, &slack, &difference);
}

void _mi_block_mend_end(const mi_page_t* page, void* block) {
  _mi_hard_padding_rewrite(_mi_block_trailer(page, block), 0, &page->canary_key);
}

size_t _mi_block_size_asked(const mi_page_t* page, const void* block) {
  if (_mi_page_is_zero_size(page)) {
    return 0;
  }
  const uint8_t* const trailer = _mi_block_trailer(page, block);
  const size_t room = page->block_size - MI_PADDING_SIZE;
  size_t slack;
  uint64_t difference;
  return _mi_hard_padding_decode(_mi_hard_padding_load(trailer), (uintptr_t)trailer, room, &page->canary_key, &slack, &difference)
      ? room - slack
      : room;
}

// The trailer before a live block is not right.
static mi_cold void mi_left_is_wrong(const mi_page_t* page, const uint8_t* left, uint64_t index, uint64_t difference, size_t slack) {
  // Pairs with the release fence in _mi_block_free_remote; see above.
  atomic_thread_fence(memory_order_acquire);
  if (!_mi_hard_live_is_marked(page->live, index)) {
    mi_report_trailer(page, left, difference, slack);
  }
}

void _mi_block_check_free(const mi_page_t* page, mi_block_t* block) {
  const size_t skipped = _mi_max(MI_LINK_SIZE, mi_block_preserved(page));
  const uint8_t freed = MI_HAS_FILL ? MI_FILL_FREED : 0;
  const size_t size = page->block_size;
  if ((MI_HAS_FILL || MI_HAS_ZERO_ON_FREE) && _mi_hard_fill_find((uint8_t*)block + skipped, size - skipped, freed) != size - skipped) {
    mi_block_was_written(page, block, freed, skipped);
  }
}

void _mi_block_check_live(const mi_page_t* page, const void* block) {
  const uint8_t* const trailer = _mi_block_trailer(page, block);
  size_t slack;
  uint64_t difference;
  if (MI_HAS_PADDING && !_mi_hard_padding_decode(_mi_hard_padding_load(trailer), (uintptr_t)trailer, page->block_size - MI_PADDING_SIZE, &page->canary_key, &slack, &difference)) {
    mi_left_is_wrong(page, block, _mi_page_live_index(page, block), difference, slack);
  }
}

static mi_cold void mi_left_is_written(const mi_page_t* page, const uint8_t* block, uint64_t found) {
  const size_t bad = _mi_bits_ctz64(found) >> 3;
  if ((found >> 56) != 0) {
    mi_report_before(block, page->block_size, MI_PADDING_SIZE - bad, mi_wanted(0));
    return;
  }
  mi_report_written(page, block - page->block_size, page->block_size - MI_PADDING_SIZE + bad);
}

// What lies before a block that is freed by the page's owner.
static void mi_block_check_left(const mi_page_t* page, const uint8_t* block) {
  const uint8_t* const trailer = block - MI_PADDING_SIZE;
  const uint64_t found = _mi_hard_padding_load(trailer);
  size_t slack;
  uint64_t difference;
  if (_mi_hard_padding_decode(found, (uintptr_t)trailer, page->block_size - MI_PADDING_SIZE, &page->canary_key, &slack, &difference)) {
    return;
  }
  const uint8_t* const left = block - page->block_size;
  const uint64_t index = _mi_page_live_index(page, left);
  // Most are free, or were never handed out.
  if (MI_HAS_ZERO_ON_FREE && found == 0 && !_mi_hard_live_test(page->live, index)) {
    return;
  }
  const uint32_t bit = mi_live_bit(index);
  const bool lives = (mi_atomic_load_relaxed(mi_live_owner_word(page->live, index)) & bit) != 0;
  if (mi_unlikely(!_mi_page_was_listed(page, left))) {
    // Nobody had it yet, so nothing but a run of writes from the right can have been there.
    if (page->memory_is_zero && mi_unlikely(found != 0)) {
      mi_left_is_written(page, block, found);
    }
    return;
  }
  if (lives) {
    mi_left_is_wrong(page, left, index, difference, slack);
    return;
  }
  const bool marked = (mi_atomic_load_relaxed(mi_live_remote_word(page->live, index)) & bit) != 0;
  if (MI_HAS_ZERO_ON_FREE && !marked && mi_unlikely(found != 0)) {
    mi_left_is_written(page, block, found);
  }
}

// The end of a block that the program has given back.
mi_inline void mi_block_check_end_once(const mi_page_t* page, const void* block) {
  if (MI_STATS_LEVEL >= 2) {
    size_t slack;
    const bool is_right = mi_block_check_end(page, block, &slack);
    _mi_page_count_call(page, -1, is_right ? page->block_size - MI_PADDING_SIZE - slack : 0);
    return;
  }
  const uint8_t* const trailer = _mi_block_trailer(page, block);
  const size_t room = page->block_size - MI_PADDING_SIZE;
  if (mi_unlikely(!_mi_hard_padding_is_right(trailer, room, &page->canary_key))) {
    mi_block_report_end(page, block);
  }
}

static mi_noinline void mi_block_free_unwatched(mi_page_t* page, mi_block_t* block) { mi_block_free_local(page, block); }

void _mi_block_free_watched(mi_page_t* page, mi_block_t* block) {
  // The clock is looked at now and then.
  if (--page->theap->watched % MI_FREES_EACH_WATCH == 0) {
    _mi_theap_watch(page->theap);
  }
  mi_block_free_unwatched(page, block);
}

// A block that was taken back goes where it waits to be handed out again.
mi_inline void mi_block_put_away(mi_page_t* page, mi_block_t* block) {
  if (MI_HAS_QUARANTINE) {
    _mi_quarantine_put(page->theap, page, block);
  } else {
    _mi_block_push_local(page, block);
  }
}

// Something is not right, or seems not to be.
static mi_noinline void mi_block_free_odd(mi_page_t* page, mi_block_t* block) {
  _mi_block_end(page, block);
  if (MI_HAS_PADDING) {
    mi_block_check_end_once(page, block);
    if (MI_HAS_LIVE_BITS && (uint8_t*)block != page->start) {
      mi_block_check_left(page, (uint8_t*)block);
    }
  }
  mi_block_close(page, block);
  _mi_track_shut(block, page->block_size);
  mi_block_put_away(page, block);
}

void _mi_block_free_unusual(mi_page_t* page, mi_block_t* block) {
  if (MI_HAS_FILL || MI_TRACKS ||
      (MI_HAS_PADDING &&
       mi_unlikely(!_mi_hard_padding_is_right(_mi_block_trailer(page, block), page->block_size - MI_PADDING_SIZE, &page->canary_key) ||
                   !mi_block_left_is_plain(page, (const uint8_t*)block)))) {
    mi_block_free_odd(page, block);
    return;
  }
  if (MI_HAS_ZERO_ON_FREE) {
    _mi_hard_fill_set(block, page->block_size, 0);
  }
  mi_block_put_away(page, block);
}

void _mi_block_free_remote(mi_page_t* page, mi_block_t* block) {
  _mi_block_end(page, block);
  // Release: the mark in the live bits comes before what is written to the block from here on. Pairs with the acquire fence
  // in mi_left_is_wrong. The mark's own order is not enough where a store may overtake the store of a read-modify-write.
  atomic_thread_fence(memory_order_release);
  if (MI_HAS_PADDING) {
    mi_block_check_end_once(page, block);
  }
  mi_block_close_remote(page, block);
  _mi_track_shut(block, page->block_size);
  mi_theap_t* const own = _mi_tls.own;
  // Other heaps may end, with their blocks, while they wait; where a sub-process does, this theap is looked after.
  const mi_heap_t* const heap = mi_atomic_load_relaxed(&page->heap);
  if (MI_HAS_QUARANTINE && own != NULL && (heap == &_mi_heap_main_instance || heap == mi_atomic_load_relaxed(&own->heap))) {
    _mi_quarantine_enter(own, page, block, true);
  } else {
    _mi_page_free_remote(page, block);
  }
}

// Singles

// From a request's end to the end of the OS page: what is checked of a single's slack.
static size_t mi_single_tail(const mi_page_t* page) {
  const uintptr_t end = (uintptr_t)page->single_start + page->request;
  const uintptr_t limit = (uintptr_t)page->start + page->block_size;
  return (size_t)(_mi_min(_mi_align_up_ptr(end, _mi_os_page_size()), limit) - end);
}

// Where the run of a single ends.
mi_inline const uint8_t* mi_single_run_end(const mi_page_t* page) { return page->start + page->slice_count * MI_SLICE_SIZE; }

// What is checked of the bytes before a single, up to the OS page's beginning, before which there is a guard: a write that runs
// down from the block meets those next to it first.
static size_t mi_single_lead(const mi_page_t* page) {
  const size_t lead = (uintptr_t)page->single_start & (_mi_os_page_size() - 1);
  return mi_atomic_load_relaxed(&page->has_interior) ? 0 : _mi_min(lead, MI_SINGLE_LEAD_MAX);
}

void _mi_block_prepare_single(mi_page_t* page, size_t request) {
  if (MI_HAS_PADDING) {
    const size_t lead = mi_single_lead(page);
    memset(page->single_start - lead, (uint8_t)MI_PADDING_PATTERN, lead);
    mi_atomic_poke(&page->request, request);
    if (MI_STATS_LEVEL >= 2) {
      _mi_single_count_request(page);
    }
    const size_t tail = mi_single_tail(page);
    _mi_hard_padding_fill(page->single_start + request + tail, tail);
  }
}

void _mi_block_check_single(const mi_page_t* page) {
  if (MI_HAS_PADDING) {
    const uint8_t* const end = page->single_start + page->request;
    const size_t tail = mi_single_tail(page);
    const size_t good = _mi_hard_padding_compare_bytes(end, tail);
    if (mi_unlikely(good != tail)) {
      mi_report_end_of(page->single_start, page->request, page->request + good, end[good], mi_wanted_of_slack(good));
      return;
    }
    for (size_t i = 1; i <= mi_single_lead(page); i++) {
      const uint8_t byte = *(page->single_start - i);
      if (mi_unlikely(byte != (uint8_t)MI_PADDING_PATTERN)) {
        _mi_report(MI_VIOLATION_underflow, "block %p of %zu bytes was written before its start: its byte -%zu holds 0x%02x%s",
                   (void*)page->single_start, page->request, i, byte, mi_wanted((uint8_t)MI_PADDING_PATTERN).text);
        return;
      }
    }
  }
}

static void mi_single_set_request(mi_page_t* page, size_t request) {
  // It may have been cut.
  const size_t old = _mi_min(page->request, _mi_block_capacity(page, page->single_start));
  mi_atomic_poke(&page->request, old);
  _mi_track_open(page->single_start + old, (size_t)(mi_single_run_end(page) - page->single_start) - old);
  memset(page->single_start + page->request, 0, mi_single_tail(page));
  if (MI_HAS_ZERO_ON_FREE && request < page->request) {
    memset(page->single_start + request, 0, page->request - request);
  }
  _mi_block_prepare_single(page, request);
  _mi_track_resized(page->single_start, old, request, mi_single_run_end(page));
}

// Any block

static const uint8_t* mi_block_at(const mi_page_t* page, const void* p) {
  return page->has_interior ? _mi_page_block_of(page, p) : p;
}

size_t _mi_block_capacity(const mi_page_t* page, const void* p) {
  const uint8_t* const end = _mi_page_is_single(page) ? page->start + page->block_size
                                                      : mi_block_at(page, p) + page->block_size - MI_BLOCK_EXTRA;
  return (size_t)(end - (const uint8_t*)p);
}

static size_t mi_block_request_to(const mi_page_t* page, const void* p, size_t limit) {
  const size_t capacity = _mi_block_capacity(page, p);
  if (!MI_HAS_PADDING) {
    return capacity;
  }
  if (_mi_page_is_single(page)) {
    _mi_block_check_single(page);
    return page->request;
  }
  size_t slack;
  const uint8_t* const block = mi_block_at(page, p);
  if (!mi_block_check_end_to(page, block, limit, &slack) || slack > capacity) {
    return capacity;
  }
  return capacity - slack;
}

size_t _mi_block_request(const mi_page_t* page, const void* p) { return mi_block_request_to(page, p, page->block_size); }

size_t _mi_block_request_before(const mi_page_t* page, const void* p, size_t newsize) {
  if (_mi_page_is_single(page) || newsize > page->block_size) {
    return _mi_block_request(page, p);
  }
  return mi_block_request_to(page, p, (size_t)((const uint8_t*)p - mi_block_at(page, p)) + newsize);
}

void _mi_block_set_request(mi_page_t* page, void* p, size_t request) {
  if (!MI_HAS_PADDING) {
    return;
  }
  if (_mi_page_is_single(page)) {
    mi_single_set_request(page, request);
    return;
  }
  uint8_t* const trailer = _mi_block_trailer(page, mi_block_at(page, p));
  uint8_t* const end = (uint8_t*)p + request;
  size_t slack;
  uint64_t difference;
  size_t old = request;
  if (_mi_hard_padding_decode(_mi_hard_padding_load(trailer), (uintptr_t)trailer, page->block_size - MI_PADDING_SIZE,
                              &page->canary_key, &slack, &difference)) {
    const size_t block_room = page->block_size - MI_PADDING_SIZE;
    old = (size_t)(trailer - slack - (uint8_t*)p);
    _mi_track_open(trailer - slack, slack + MI_PADDING_SIZE);
    _mi_heap_count_request(_mi_page_heap(page), block_room - slack, block_room - (size_t)(trailer - end));
    _mi_hard_padding_shift(trailer, slack, (size_t)(trailer - end), &page->canary_key);
  } else {
    _mi_hard_padding_rewrite(trailer, (size_t)(trailer - end), &page->canary_key);
  }
  _mi_track_resized(p, old, request, trailer + MI_PADDING_SIZE);
}
