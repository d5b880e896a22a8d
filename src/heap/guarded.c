// Owns: the making and the end of guarded blocks.
// May include: base, hardening, sys, region, guarded, heap.
// Called by: through guarded.h.
// Invariants: the record of a block is there before its memory is accessible, and stays as long as its slot waits.
#include "src/heap/guarded.h"

#include <string.h>

#include "hardening/guarded.h"
#include "hardening/sized.h"
#include "src/guarded/record.h"
#include "src/guarded/report.h"
#include "src/guarded/slots.h"
#include "src/heap/block.h"
#include "src/heap/heap-stats.h"
#include "src/heap/single.h"
#include "src/prim/prim.h"
#include "src/sys/guard.h"
#include "src/sys/options.h"
#include "src/sys/report.h"

enum {
  // One block in so many lies at the left edge of its slot.
  MI_GUARDED_LEFT_SHARE = 4,
  // So many blocks of a theap in so many milliseconds, where the rate is the variant's own.
  MI_GUARDED_PACE_BLOCKS = 5,
  MI_GUARDED_PACE_MS = 5,
  // In page->guarded, beside where it lies: nothing of the slot is accessible any more.
  MI_GUARDED_IS_CLOSED = 4,
};

static uint64_t mi_guarded_random(void) {
  if (_mi_tls.own != NULL) {
    return _mi_random_next(&_mi_tls.own->random);
  }
  mi_random_t random = {0};
  return _mi_random_next(&random);
}

static mi_run_t mi_guarded_slot(const mi_page_t* page) {
  return (mi_run_t){page->arena, page->slice_index, page->slice_count, page->start, page->memory_is_zero, 0};
}

// What is accessible of the slot: the OS pages of the block, offsets in it.
static size_t mi_guarded_first(const mi_page_t* page) {
  // An address with an offset says nothing of where the block begins: behind the first guard, or further on.
  const size_t os_page = _mi_os_page_size();
  return page->has_interior ? os_page : _mi_align_down((size_t)(page->single_start - page->start), os_page);
}

static size_t mi_guarded_end(const mi_page_t* page) { return _mi_align_up(page->block_size, _mi_os_page_size()); }

// Making

// What the free of a block with a size may say: where only classes are compared, the same as of another block, and not less than
// nothing, which would be the largest sizes.
static uint32_t mi_guarded_spread(size_t size) {
  const size_t spread = size > MI_LARGE_BLOCK_MAX ? MI_SLICE_SIZE : _mi_hard_class_spread(_mi_sizeclass_round(size));
  return (uint32_t)_mi_min(spread, size + 1);
}

static void mi_guarded_init(mi_page_t* page, const mi_guarded_layout_t* layout, size_t size, bool left) {
  const mi_large_layout_t large = {layout->offset, layout->offset + size, layout->size};
  _mi_single_init(page, &large);
  page->class_spread = mi_guarded_spread(size);
  page->guarded = left ? MI_GUARDED_AT_LEFT : MI_GUARDED_AT_RIGHT;
}

static bool mi_guarded_note(const mi_theap_t* theap, const mi_page_t* page, size_t size) {
  return _mi_guarded_note_alloc(page->start, page->slice_count * MI_SLICE_SIZE, page->single_start, size, theap->sampling.seed) != NULL;
}

// A guarded block costs some microseconds. Where nobody has said how many there are to be, a program that does nothing but
// allocate and free is not to pay more than a hundredth of its time for them.
static bool mi_guarded_is_in_pace(mi_sampling_t* sampling) {
  if (!sampling->is_paced) {
    return true;
  }
  const int64_t now = _mi_prim_clock_ms();
  if (now - sampling->pace_start >= MI_GUARDED_PACE_MS) {
    sampling->pace_start = now;
    sampling->pace_count = 0;
  }
  return sampling->pace_count++ < MI_GUARDED_PACE_BLOCKS;
}

// In slices of an arena.
static mi_page_t* mi_guarded_new_in_slot(mi_theap_t* theap, const mi_guarded_layout_t* layout, size_t size, size_t align, bool left) {
  const mi_arena_source_t source = _mi_theap_source(theap);
  mi_run_t run;
  if (!_mi_slot_take(&source, layout->size / MI_SLICE_SIZE, layout->lead, _mi_max(align, MI_SLICE_SIZE),
                     _mi_random_next(&theap->random), &run)) {
    return NULL;
  }
  mi_page_t* const page = _mi_page_claim_meta(&run, false);
  mi_guarded_init(page, layout, size, left);
  const bool noted = mi_guarded_note(theap, page, size);
  const bool opened = noted && _mi_slot_open(&run, layout->first, layout->end);
  if (opened && _mi_page_enter(page, theap)) {
    return page;
  }
  // Its metadata is as if it had never been used, but for what the next page of blocks there is to clear.
  const bool had_origins = mi_atomic_load_relaxed(&page->has_origins);
  memset(page, 0, sizeof(*page));
  mi_atomic_store_relaxed(&page->has_origins, had_origins);
  _mi_slot_put(&run, !opened || _mi_slot_close(&run, layout->first, layout->end), 0);
  return NULL;
}

// In a mapping of its own.
static mi_page_t* mi_guarded_new_from_os(mi_theap_t* theap, const mi_guarded_layout_t* layout, size_t size, bool left) {
  const mi_large_layout_t large = {layout->offset, layout->end, layout->size};
  mi_page_t* const page = _mi_single_new_at(theap, &large, MI_SLICE_SIZE);
  if (page == NULL) {
    return NULL;
  }
  if (!MI_HAS_GUARD_PAGES) {
    if (_mi_guard_set(page->start, layout->first, 1)) {
      page->os_guards |= MI_OS_GUARD_HEAD;
    }
    if (_mi_guard_set(page->start + layout->end, layout->size - layout->end, 1)) {
      page->os_guards |= MI_OS_GUARD_TAIL;
    }
  }
  mi_atomic_poke(&page->block_size, layout->offset + size);
  mi_atomic_poke(&page->request, size);
  page->class_spread = mi_guarded_spread(size);
  _mi_single_count(page);
  if (!mi_guarded_note(theap, page, size)) {
    _mi_single_drop(page);
    return NULL;
  }
  page->guarded = left ? MI_GUARDED_AT_LEFT : MI_GUARDED_AT_RIGHT;
  return page;
}

// Whether a block has to have a mapping of its own.
static bool mi_guarded_is_apart(const mi_theap_t* theap, const mi_guarded_layout_t* layout) {
  return _mi_theap_source(theap).only == NULL && layout->size / MI_SLICE_SIZE > _mi_max(_mi_arena_slices_max(), MI_LARGE_PAGE_SLICES);
}

void* _mi_guarded_alloc(mi_theap_t* theap, size_t size, size_t align, bool zero) {
  mi_sampling_t* const sampling = &theap->sampling;
  if (!MI_HAS_GUARDED || size < sampling->min || size > sampling->max || _mi_report_is_running() || !mi_guarded_is_in_pace(sampling)) {
    return NULL;
  }
  const bool left = _mi_sampler_next(&sampling->numbers) % MI_GUARDED_LEFT_SHARE == 0;
  const bool precise = _mi_option_is_enabled(mi_option_unsafe_guarded_precise);
  const mi_guarded_layout_t layout = _mi_hard_guarded_layout(size, align, _mi_os_page_size(), left, precise);
  mi_page_t* page;
  if (mi_guarded_is_apart(theap, &layout)) {
    page = align > MI_SLICE_SIZE ? NULL : mi_guarded_new_from_os(theap, &layout, size, left);
  } else {
    page = align > MI_SINGLE_ARENA_ALIGN_MAX ? NULL : mi_guarded_new_in_slot(theap, &layout, size, align, left);
  }
  if (page == NULL) {
    return NULL;
  }
  _mi_guarded_report_arm();
  uint8_t* const p = page->single_start;
  if (zero && !page->memory_is_zero) {
    memset(p, 0, size);
  }
  _mi_hard_guarded_fill(page->start + layout.first, layout.offset - layout.first);
  _mi_hard_guarded_fill(p + size, layout.end - layout.offset - size);
  _mi_block_hand_out_single(page, size, zero);
  mi_heap_counter_add(_mi_page_heap(page), malloc_guarded_count, 1);
  return p;
}

// The end

void _mi_guarded_check(const mi_page_t* page) {
  const uint8_t* const p = page->single_start;
  // A block that was handed out at an address inside it has bytes of the program's before that.
  const uint8_t* const first = page->has_interior ? p : page->start + mi_guarded_first(page);
  const size_t before = (size_t)(p - first);
  const size_t size = _mi_page_single_usable(page);
  const size_t behind = mi_guarded_end(page) - page->block_size;
  const size_t good_behind = _mi_hard_guarded_compare(p + size, behind);
  if (mi_unlikely(good_behind != behind)) {
    _mi_report(MI_VIOLATION_overflow, "block %p of %zu bytes was written beyond its end: its byte %zu holds 0x%02x",
               (const void*)p, size, size + good_behind, p[size + good_behind]);
    return;
  }
  // The last wrong byte is the one nearest to the block.
  size_t at = before;
  if (mi_unlikely(_mi_hard_guarded_compare(first, before) != before)) {
    while (first[at - 1] == MI_GUARDED_BYTE) {
      at--;
    }
    _mi_report(MI_VIOLATION_underflow, "block %p of %zu bytes was written before its start: its byte -%zu holds 0x%02x",
               (const void*)p, size, before - at + 1, first[at - 1]);
  }
}

void _mi_guarded_free(mi_page_t* page) {
  _mi_guarded_check(page);
  _mi_guarded_note_free(page->single_start);
  if (page->arena != NULL) {
    const mi_run_t slot = mi_guarded_slot(page);
    if (_mi_slot_close(&slot, mi_guarded_first(page), mi_guarded_end(page))) {
      page->guarded |= MI_GUARDED_IS_CLOSED;
    }
  }
  _mi_page_release(page);
}

void _mi_guarded_give_back(mi_page_t* page) {
  if (page->arena == NULL) {
    void* const start = page->start;
    const mi_os_block_t os = _mi_single_part_with_os(page);
    _mi_slot_put_os(&os, start);
    return;
  }
  const mi_run_t slot = mi_guarded_slot(page);
  _mi_slot_put(&slot, (page->guarded & MI_GUARDED_IS_CLOSED) != 0, mi_guarded_random());
}
