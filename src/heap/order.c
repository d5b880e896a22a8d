// Owns: which blocks of a page are listed next, and in which order they and the freed ones are handed out.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: blocks are put in a list a few OS pages at a time, so that memory which was never handed out stays
// untouched; with live bits a place is open exactly if the block that starts there was listed.
#include "hardening/stock.h"
#include "src/heap/block.h"
#include "src/heap/heap-stats.h"
#include "src/heap/sample.h"

enum {
  // What one extension adds: blocks worth this many bytes, and for larger blocks a few, as long as they stay small.
  MI_EXTEND_BYTES = 4 * MI_KIB,
  MI_EXTEND_BLOCKS = 8,
  MI_EXTEND_BYTES_MAX = 16 * MI_KIB,
  // With a random order a page is listed chunk by chunk: the blocks that start in so many bytes, and at least one.
  MI_CHUNK_SHIFT = 12,
  MI_CHUNK_BYTES = 1 << MI_CHUNK_SHIFT,
  // So many blocks an extension adds at most: a chunk of the smallest blocks, or chunks that are few blocks each.
  MI_EXTEND_BLOCKS_MAX = MI_CHUNK_BYTES / MI_BLOCK_ALIGN + (MI_HAS_OUTLINE_LISTS ? 0 : MI_EXTEND_BLOCKS),
  // The next free block is one of so many that were freed last.
  MI_REUSE_WINDOW = 8,
  // The lists of empty pages of blocks up to this are dropped.
  MI_DROPPED_BLOCK_MAX = 512,
  // So many freed blocks are worth a refill without a search for others.
  MI_FREED_ENOUGH = 64,
  // Of larger blocks at most one in a word of live bits starts, so they are looked for one by one.
  MI_FAR_BLOCK_MIN = 2 * MI_LIVE_WORD_BITS << MI_SMALL_GRANULE_SHIFT,
  // An order's numbers are seeded anew after so many uses.
  MI_ORDER_USES = 64,
};

_Static_assert((int)MI_EXTEND_BLOCKS_MAX <= (int)MI_SHUFFLE_MAX, "an extension can be shuffled");
_Static_assert((int)MI_STOCK_MAX <= (int)MI_SHUFFLE_QUICK_MAX, "a stock can be shuffled");
_Static_assert(!MI_HAS_OUTLINE_LISTS || (int)MI_EXTEND_BLOCKS_MAX <= (int)MI_STOCK_MAX, "the stock holds an extension");
_Static_assert((int)MI_STOCK_MAX*(int)MI_FAR_BLOCK_MIN >= MI_SLICE_SIZE && (int)MI_FAR_BLOCK_MIN <= (int)MI_CHUNK_BYTES,
               "the stock holds all blocks that are looked for one by one, and others are listed in chunks of bytes");
_Static_assert(((int)MI_SLICE_SIZE >> MI_CHUNK_SHIFT) <= 64, "the chunks of a page fit in a word");

// The numbers for one more order of this theap.
static mi_shuffle_t* mi_theap_order(mi_theap_t* theap) {
  // A generation of its own: `random` may have been brought up to date by another use since a fork.
  if (mi_unlikely(theap->order_uses == 0 || theap->order_generation != _mi_random_generation())) {
    const uint64_t a = _mi_random_next(&theap->random);
    _mi_hard_shuffle_seed(&theap->order, a, _mi_random_next(&theap->random));
    theap->order_generation = theap->random.generation;
    theap->order_uses = MI_ORDER_USES;
  }
  theap->order_uses--;
  return &theap->order;
}

uint32_t _mi_theap_choose(mi_theap_t* theap, uint32_t bound) {
  return _mi_hard_shuffle_below(mi_theap_order(theap), bound);
}

uint64_t _mi_theap_draw(mi_theap_t* theap) { return _mi_hard_shuffle_next(mi_theap_order(theap)); }

// Chunks

static bool mi_page_has_byte_chunks(const mi_page_t* page) { return page->block_size <= MI_CHUNK_BYTES; }

// The number of the first block that starts in or behind a chunk.
static uint32_t mi_chunk_first(const mi_page_t* page, unsigned chunk) {
  const uint32_t first = mi_page_has_byte_chunks(page)
      ? ((uint32_t)(chunk << MI_CHUNK_SHIFT) + (uint32_t)page->block_size - 1) / (uint32_t)page->block_size
      : chunk;
  return first < page->reserved ? first : page->reserved;
}

static unsigned mi_chunk_of(const mi_page_t* page, uint32_t number) {
  return mi_page_has_byte_chunks(page) ? (unsigned)((number * page->block_size) >> MI_CHUNK_SHIFT) : number;
}

void _mi_page_order_init(mi_page_t* page) {
  if (MI_HAS_RANDOM_ORDER) {
    page->unlisted = _mi_bits_mask64(mi_chunk_of(page, page->reserved - 1) + 1);
  }
}

bool _mi_page_order_is_whole(const mi_page_t* page) {
  uint32_t unlisted = 0;
  for (uint64_t left = page->unlisted; left != 0; left &= left - 1) {
    const unsigned chunk = _mi_bits_ctz64(left);
    unlisted += mi_chunk_first(page, chunk + 1) - mi_chunk_first(page, chunk);
  }
  return !MI_HAS_RANDOM_ORDER || page->capacity + unlisted == page->reserved;
}

bool _mi_page_is_in_play(const mi_page_t* page, const void* p) {
  const size_t number = (size_t)((uintptr_t)p - (uintptr_t)page->start) / page->block_size;
  if (MI_HAS_RANDOM_ORDER && number < page->reserved && !_mi_page_is_single(page)) {
    return ((page->unlisted >> mi_chunk_of(page, (uint32_t)number)) & 1) == 0;
  }
  return number < page->capacity;
}

bool _mi_page_was_listed(const mi_page_t* page, const void* p) {
  const size_t number = (size_t)((uintptr_t)p - (uintptr_t)page->start) / page->block_size;
  return page->relisted ? number < page->reserved : _mi_page_is_in_play(page, p);
}

// Extension

// How many blocks an extension is to add. The first of a class adds few bytes: a program uses many classes of larger blocks for
// one or two, and an OS page of each block in a list is touched. Not where the next block is to be one of several.
static uint32_t mi_extend_count(const mi_page_t* page) {
  enum { BEGINS_SMALL = !MI_HAS_RANDOM_ORDER && !MI_HAS_FILL };
  const size_t block_size = page->block_size;
  const size_t count = MI_EXTEND_BYTES / block_size;
  if (count >= MI_EXTEND_BLOCKS) {
    return (uint32_t)count;
  }
  if (BEGINS_SMALL && page->capacity == 0 && page->theap->queues[page->bin].made <= 1) {
    return (uint32_t)_mi_max(count, 1);
  }
  return (uint32_t)_mi_max(_mi_min(MI_EXTEND_BLOCKS, MI_EXTEND_BYTES_MAX / block_size), 1);
}

// Marks the places of a run of blocks as those of free blocks.
static void mi_page_open(mi_page_t* page, uint32_t first, uint32_t count) {
  const uint64_t step = page->block_size >> page->granule_shift;
  uint64_t index = first * step;
  const uint64_t end = (first + count) * step;
  while (index < end) {
    const uint64_t word = index & ~(uint64_t)(MI_LIVE_WORD_BITS - 1);
    uint32_t bits = 0;
    for (; index < end && index < word + MI_LIVE_WORD_BITS; index += step) {
      bits |= mi_live_bit(index);
    }
    _mi_hard_live_open(page->live, word, bits);
  }
}

// The stock

static uint32_t mi_page_place_of(const mi_page_t* page, uint32_t number) {
  return number * (uint32_t)(page->block_size >> page->granule_shift);
}

// Adds blocks that were just listed to `count` in stock.
static uint32_t mi_page_stock_up(mi_page_t* page, uint32_t count, uint32_t first, uint32_t end) {
  for (uint32_t number = first; number < end; number++) {
    _mi_block_set_mark(page, (mi_block_t*)(void*)(page->start + number * page->block_size));
  }
  return _mi_hard_stock_add_all(_mi_page_stock(page), count, mi_page_place_of(page, first), mi_page_place_of(page, end),
                                mi_page_place_of(page, 1));
}

// The stock was empty and has `count` blocks now, in the order in which they serve.
static void mi_page_stock_is(mi_page_t* page, uint32_t count) {
  page->used += count;
  page->used_before = page->used;
  page->stocked = count;
}

// The same of blocks in the order of their addresses.
static void mi_page_open_stock(mi_page_t* page, uint32_t count) {
  uint16_t* const stock = _mi_page_stock(page);
  if (MI_HAS_RANDOM_ORDER) {
    _mi_hard_shuffle_items(mi_theap_order(page->theap), stock, 0, stock, count);
  } else {
    _mi_hard_stock_reverse(stock, count);
  }
  mi_page_stock_is(page, count);
}

void _mi_page_order_anew(mi_page_t* page) {
  if (MI_HAS_RANDOM_ORDER) {
    uint16_t* const stock = _mi_page_stock(page);
    _mi_hard_shuffle_items(mi_theap_order(page->theap), stock, 0, stock, (uint32_t)page->stocked);
  }
  page->key_generation = page->theap->random.generation;
}

// Adds the free blocks of a page of small ones to the stock, chunk by chunk; of chunks that were listed only. The search
// begins anywhere, so that which blocks come next is as unforeseeable as their order.
static uint32_t mi_page_stock_chunks(mi_page_t* page) {
  enum { CHUNK_PLACES = MI_CHUNK_BYTES >> MI_SMALL_GRANULE_SHIFT };
  uint16_t* const stock = _mi_page_stock(page);
  if (!MI_HAS_RANDOM_ORDER) {
    return _mi_hard_stock_add(stock, 0, page->live, 0, mi_page_place_of(page, page->capacity));
  }
  const unsigned chunks = mi_chunk_of(page, page->reserved - 1) + 1;
  const uint64_t listed = ~page->unlisted & _mi_bits_mask64(chunks);
  const uint64_t before = _mi_bits_mask64(_mi_theap_choose(page->theap, chunks));
  uint32_t count = 0;
  for (unsigned turn = 0; turn < 2; turn++) {
    for (uint64_t left = turn == 0 ? listed & ~before : listed & before; left != 0 && count < MI_STOCK_MAX; left &= left - 1) {
      const uint32_t from = _mi_bits_ctz64(left) * CHUNK_PLACES;
      count = _mi_hard_stock_add(stock, count, page->live, from, from + CHUNK_PLACES);
    }
  }
  return count;
}

// The same for larger blocks, of which all fit. What was not listed is not free.
static uint32_t mi_page_stock_far(mi_page_t* page) {
  return _mi_hard_stock_add_far(_mi_page_stock(page), 0, page->live, 0, mi_page_place_of(page, page->reserved), mi_page_place_of(page, 1));
}

// The stock gets what was freed last, if that is enough or all there is.
static uint32_t mi_page_stock_noted(mi_page_t* page, uint32_t free) {
  const uint32_t noted = (uint32_t)_mi_min((uint32_t)page->used_before - page->used, MI_STOCK_MAX);
  if (noted < free && noted < MI_FREED_ENOUGH) {
    return 0;
  }
  uint16_t* const stock = _mi_page_stock(page);
  _mi_hard_stock_take_freed(MI_HAS_RANDOM_ORDER ? mi_theap_order(page->theap) : NULL, stock, stock + MI_STOCK_SLOTS, page->used, noted);
  // Relaxed: who frees sets it before its mark, and has marked before it could see what is noted here.
  if (mi_unlikely(mi_atomic_load_relaxed(&page->has_remote))) {
    const uint32_t marked = _mi_hard_stock_find_marked(stock, noted, page->live);
    if (mi_unlikely(marked != noted)) {
      _mi_page_report_corrupt(page, page->start + ((size_t)stock[marked] << page->granule_shift));
      return 0;
    }
  }
  return noted;
}

static bool mi_page_stock_freed(mi_page_t* page) {
  const uint32_t free = page->capacity - _mi_page_in_use(page);
  if (free == 0) {
    return false;
  }
  uint32_t count = mi_page_stock_noted(page, free);
  if (count != 0) {
    mi_page_stock_is(page, count);
  } else {
    count = page->block_size >= MI_FAR_BLOCK_MIN ? mi_page_stock_far(page) : mi_page_stock_chunks(page);
    mi_page_open_stock(page, count);
  }
  page->free_is_zero = false;
  _mi_page_count_refill(page, count);
  return count != 0;
}

// Both return whether what was listed holds zeroes but for its links.
static bool mi_page_list_in_order(mi_page_t* page) {
  const size_t block_size = page->block_size;
  const uint32_t count = (uint32_t)_mi_min(mi_extend_count(page), page->reserved - page->capacity);
  const uint32_t before = page->capacity;
  uint8_t* const first = page->start + page->capacity * block_size;
  uint8_t* const last = first + (count - 1) * block_size;
  bool is_zero = page->memory_is_zero;
  _mi_block_prepare_fresh(first, count * block_size, &is_zero);
  if (MI_HAS_LIVE_BITS) {
    mi_page_open(page, page->capacity, count);
  }
  page->capacity += count;
  if (MI_HAS_OUTLINE_LISTS) {
    mi_page_open_stock(page, mi_page_stock_up(page, 0, before, before + count));
    return is_zero;
  }
  for (uint8_t* p = first; p < last; p += block_size) {
    _mi_block_set_next(page, (mi_block_t*)(void*)p, (mi_block_t*)(void*)(p + block_size));
  }
  _mi_block_set_next(page, (mi_block_t*)(void*)last, NULL);
  page->free = (mi_block_t*)(void*)first;
  return is_zero;
}

// Makes a list of blocks. What it needs of the page is copied: the compiler cannot know that no block overlaps it.
static mi_block_t* mi_page_link(const mi_page_t* page, const uint16_t* numbers, uint32_t count) {
  const mi_link_key_t key = page->key;
  uint8_t* const start = page->start;
  const size_t block_size = page->block_size;
  mi_block_t* next = NULL;
  for (uint32_t i = 0; i < count; i++) {
    mi_block_t* const block = (mi_block_t*)(void*)(start + numbers[i] * block_size);
    block->link = MI_HAS_ENCODED_LISTS ? _mi_hard_link_encode((uintptr_t)next, (uintptr_t)block, &key) : (uintptr_t)next;
    next = block;
  }
  return next;
}

// Chooses chunks that were not listed yet until there are blocks enough, and lists all their blocks in a random order.
static bool mi_page_list_at_random(mi_page_t* page) {
  uint16_t numbers[MI_EXTEND_BLOCKS_MAX];
  mi_shuffle_t* const order = mi_theap_order(page->theap);
  const uint32_t wanted = mi_extend_count(page);
  uint32_t count = 0;
  bool is_zero = page->memory_is_zero;
  while (count < wanted && page->unlisted != 0) {
    const unsigned chunk = _mi_hard_shuffle_pick(order, page->unlisted);
    const uint32_t first = mi_chunk_first(page, chunk);
    const uint32_t end = mi_chunk_first(page, chunk + 1);
    if (count + (end - first) > MI_EXTEND_BLOCKS_MAX) {
      break;
    }
    page->unlisted &= ~(UINT64_C(1) << chunk);
    bool chunk_is_zero = page->memory_is_zero;
    _mi_block_prepare_fresh(page->start + first * page->block_size, (end - first) * page->block_size, &chunk_is_zero);
    is_zero = chunk_is_zero;
    if (MI_HAS_LIVE_BITS) {
      mi_page_open(page, first, end - first);
    }
    if (MI_HAS_OUTLINE_LISTS) {
      (void)mi_page_stock_up(page, count, first, end);
    } else {
      _mi_hard_shuffle_add(order, numbers, count, first, end - first);
    }
    count += end - first;
  }
  page->capacity += count;
  if (MI_HAS_OUTLINE_LISTS) {
    mi_page_open_stock(page, count);
  } else {
    page->free = mi_page_link(page, numbers, count);
  }
  return is_zero;
}

void _mi_page_extend(mi_page_t* page) {
  mi_assert_internal(!_mi_page_is_ready(page) && page->capacity < page->reserved);
  // One of what is listed now is about to be handed out.
  _mi_page_note_live(page, _mi_page_live(page) + 1);
  const uint32_t before = page->capacity;
  page->free_is_zero = MI_HAS_RANDOM_ORDER ? mi_page_list_at_random(page) : mi_page_list_in_order(page);
  _mi_page_count_refill(page, page->capacity - before);
  page->theap->counts.extended++;
}

// Reuse

// Turns the first few blocks of the list of what was freed here: what was freed last may come first, or any other of
// them. A link that leads out of the free blocks stays where it is, and is reported when it is followed.
static void mi_page_turn_list(mi_page_t* page) {
  mi_block_t* freed[MI_REUSE_WINDOW];
  freed[0] = page->free;
  uint32_t count = 1;
  mi_block_t* rest;
  while ((rest = _mi_block_next(page, freed[count - 1])) != NULL && count < MI_REUSE_WINDOW &&
         _mi_page_live_index(page, rest) < MI_PAGE_GRANULES) {
    freed[count++] = rest;
  }
  const uint32_t first = count == 1 ? 0 : _mi_theap_choose(page->theap, count);
  if (first == 0) {
    return;
  }
  mi_block_t* const last = freed[count - 1];
  mi_block_t* const before = freed[first - 1];
  // What is written to must be free: the walk only made sure that it could be read.
  if (mi_likely(_mi_page_may_be_free(page, last) && _mi_page_may_be_free(page, before))) {
    _mi_block_set_next(page, last, page->free);
    _mi_block_set_next(page, before, rest);
    page->free = freed[first];
  }
}

void _mi_page_drop_old_lists(mi_page_t* page) {
  // Each block of an old list is cold and names the next, so one is waited for after the other; where the list is in a random
  // order and an OS page holds many blocks, making a new one is quicker. What is done to the bytes of free blocks outlasts the
  // page's being empty.
  if (!MI_HAS_RANDOM_ORDER || MI_HAS_OUTLINE_LISTS || MI_BLOCKS_ARE_DRESSED || page->block_size > MI_DROPPED_BLOCK_MAX) {
    return;
  }
  _mi_sample_put_down(page->theap, page);
  _mi_page_count_leave(page);
  page->free = NULL;
  page->local_free = NULL;
  page->listed = 0;
  page->capacity = 0;
  page->memory_is_zero = false;
  page->relisted = true;
  if (MI_HAS_LIVE_BITS) {
    _mi_hard_live_close_all(page->live);
  }
  _mi_page_order_init(page);
}

bool _mi_page_refill_freed(mi_page_t* page) {
  mi_assert_internal(!_mi_page_is_ready(page));
  if (MI_HAS_OUTLINE_LISTS) {
    if (_mi_remote_count(mi_atomic_load_relaxed(&page->remote)) != 0) {
      _mi_page_collect_remote(page);
    }
    return mi_page_stock_freed(page);
  }
  if (page->local_free != NULL) {
    page->free = page->local_free;
    page->local_free = NULL;
    page->free_is_zero = false;
    _mi_page_count_refill(page, page->capacity - _mi_page_in_use(page));
    if (MI_HAS_RANDOM_ORDER) {
      mi_page_turn_list(page);
    }
    return true;
  }
  // Relaxed: a free that is missed here is seen the next time.
  if (_mi_remote_count(mi_atomic_load_relaxed(&page->remote)) != 0) {
    _mi_page_collect_remote(page);
  }
  return page->free != NULL;
}
