// Owns: which blocks of a page are listed next, and in which order they and the freed ones are handed out.
// May include: base, hardening, sys, region, heap.
// Called by: heap, alloc.
// Invariants: blocks are put in a list a few OS pages at a time, so that memory which was never handed out stays
// untouched; with live bits a place is open exactly if the block that starts there was listed.
#include "src/heap/block.h"
#include "src/heap/heap-stats.h"

enum {
  // What one extension adds: blocks worth this many bytes, and for larger blocks a few, as long as they stay small.
  MI_EXTEND_BYTES = 4 * MI_KIB,
  MI_EXTEND_BLOCKS = 8,
  MI_EXTEND_BYTES_MAX = 16 * MI_KIB,
  // With a random order a page is listed chunk by chunk: the blocks that start in so many bytes, and at least one.
  MI_CHUNK_SHIFT = 12,
  MI_CHUNK_BYTES = 1 << MI_CHUNK_SHIFT,
  // So many blocks an extension adds at most: a chunk of the smallest blocks, or chunks that are few blocks each.
  MI_EXTEND_BLOCKS_MAX = MI_CHUNK_BYTES / MI_BLOCK_ALIGN + MI_EXTEND_BLOCKS,
  // The next free block is one of so many that were freed last.
  MI_REUSE_WINDOW = 8,
  // The lists of empty pages of blocks up to this are dropped.
  MI_DROPPED_BLOCK_MAX = 512,
  // An order's numbers are seeded anew after so many uses.
  MI_ORDER_USES = 64,
};

_Static_assert((int)MI_EXTEND_BLOCKS_MAX <= (int)MI_SHUFFLE_MAX, "an extension can be shuffled");
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

bool _mi_page_was_listed(const mi_page_t* page, const void* p) {
  const size_t number = (size_t)((uintptr_t)p - (uintptr_t)page->start) / page->block_size;
  if (page->relisted) {
    return number < page->reserved;
  }
  if (MI_HAS_RANDOM_ORDER && number < page->reserved && !_mi_page_is_single(page)) {
    return ((page->unlisted >> mi_chunk_of(page, (uint32_t)number)) & 1) == 0;
  }
  return number < page->capacity;
}

// Extension

// How many blocks an extension is to add.
static uint32_t mi_extend_count(size_t block_size) {
  const size_t count = MI_EXTEND_BYTES / block_size;
  if (count >= MI_EXTEND_BLOCKS) {
    return (uint32_t)count;
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

// Both return whether what was listed holds zeroes but for its links.
static bool mi_page_list_in_order(mi_page_t* page) {
  const size_t block_size = page->block_size;
  const uint32_t count = (uint32_t)_mi_min(mi_extend_count(block_size), page->reserved - page->capacity);
  uint8_t* const first = page->start + page->capacity * block_size;
  uint8_t* const last = first + (count - 1) * block_size;
  bool is_zero = page->memory_is_zero;
  _mi_block_prepare_fresh(first, count * block_size, &is_zero);
  if (MI_HAS_LIVE_BITS) {
    mi_page_open(page, page->capacity, count);
  }
  for (uint8_t* p = first; p < last; p += block_size) {
    _mi_block_set_next(page, (mi_block_t*)(void*)p, (mi_block_t*)(void*)(p + block_size));
  }
  _mi_block_set_next(page, (mi_block_t*)(void*)last, NULL);
  page->free = (mi_block_t*)(void*)first;
  page->capacity += count;
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
  const uint32_t wanted = mi_extend_count(page->block_size);
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
    _mi_hard_shuffle_add(order, numbers, count, first, end - first);
    count += end - first;
  }
  page->free = mi_page_link(page, numbers, count);
  page->capacity += count;
  return is_zero;
}

void _mi_page_extend(mi_page_t* page) {
  mi_assert_internal(page->free == NULL && page->capacity < page->reserved);
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
  if (!MI_HAS_RANDOM_ORDER || MI_BLOCKS_ARE_DRESSED || page->block_size > MI_DROPPED_BLOCK_MAX) {
    return;
  }
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
  mi_assert_internal(page->free == NULL);
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
