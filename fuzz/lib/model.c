// Owns: the table of live blocks and what is compared with the allocator for each.
// May include: fuzz/lib, mimalloc.h, src/sys/report.h.
// Called by: through model.h.
// Invariants: large blocks are filled and compared in places only: both ends, and some bytes of each slice.
#include "fuzz/lib/model.h"

#include <errno.h>
#include <string.h>

#include "mi-profile.h"

mi_fuzz_model_t mi_fuzz_model;

// Content

enum { MI_FUZZ_WHOLE = 8192,  // up to here every byte
       MI_FUZZ_END = 1024,    // beyond, so many at both ends
       MI_FUZZ_STEP = 65536,  // and MI_FUZZ_SPOT in each of these
       MI_FUZZ_SPOT = 64 };

static inline uint64_t mi_fuzz_word(uint64_t key, size_t index) { return key ^ ((uint64_t)index * UINT64_C(0x9e3779b97f4a7c15)); }

static void mi_fuzz_fill_range(uint8_t* p, size_t from, size_t to, uint64_t key) {
  for (; from + 8 <= to; from += 8) {
    const uint64_t word = mi_fuzz_word(key, from / 8);
    memcpy(p + from, &word, 8);
  }
  const uint64_t word = mi_fuzz_word(key, from / 8);
  memcpy(p + from, &word, to - from);
}

// The first byte of the range that is not as it was written, `to` when all are.
static size_t mi_fuzz_bad_byte(const uint8_t* p, size_t from, size_t to, uint64_t key) {
  for (; from < to; from += 8) {
    const uint64_t word = mi_fuzz_word(key, from / 8);
    const size_t n = to - from < 8 ? to - from : 8;
    if (memcmp(p + from, &word, n) != 0) {
      for (size_t i = 0; i < n; i++) {
        if (p[from + i] != ((const uint8_t*)&word)[i]) {
          return from + i;
        }
      }
    }
  }
  return to;
}

// Calls for each place of a block of `size` bytes that is looked at, up to `limit`. Places begin at multiples of 8.
typedef void mi_fuzz_range_fun_t(uint8_t* p, size_t from, size_t to, uint64_t key);

static void mi_fuzz_ranges(uint8_t* p, size_t size, size_t limit, uint64_t key, mi_fuzz_range_fun_t* fun) {
  if (size <= MI_FUZZ_WHOLE) {
    fun(p, 0, limit < size ? limit : size, key);
    return;
  }
  const size_t tail = (size - MI_FUZZ_END) & ~(size_t)7;
  fun(p, 0, limit < MI_FUZZ_END ? limit : MI_FUZZ_END, key);
  for (size_t at = MI_FUZZ_STEP; at + MI_FUZZ_SPOT <= tail && at < limit; at += MI_FUZZ_STEP) {
    fun(p, at, limit < at + MI_FUZZ_SPOT ? limit : at + MI_FUZZ_SPOT, key);
  }
  if (limit > tail) {
    fun(p, tail, limit < size ? limit : size, key);
  }
}

static const mi_fuzz_block_t* mi_fuzz_checked;

static void mi_fuzz_check_range(uint8_t* p, size_t from, size_t to, uint64_t key) {
  const size_t bad = mi_fuzz_bad_byte(p, from, to, key);
  MI_FUZZ_CHECK(bad >= to, "%s: content: byte %zu of a block of %zu at %p is 0x%02x", mi_fuzz_model.doing, bad, mi_fuzz_checked->size,
                (void*)p, p[bad]);
}

static void mi_fuzz_check_zero_range(uint8_t* p, size_t from, size_t to, uint64_t key) {
  (void)key;
  for (size_t i = from; i < to; i++) {
    MI_FUZZ_CHECK(p[i] == 0, "%s: zero: byte %zu of the block at %p is 0x%02x", mi_fuzz_model.doing, i, (void*)p, p[i]);
  }
}

static void mi_fuzz_check_content(const mi_fuzz_block_t* block, uint8_t* p, size_t limit) {
  mi_fuzz_checked = block;
  mi_fuzz_ranges(p, block->filled, limit, block->key, &mi_fuzz_check_range);
}

static void mi_fuzz_write(mi_fuzz_block_t* block) {
  block->key = mi_fuzz_random(&mi_fuzz_model.seed);
  // What is behind the request of a block that is to stay zero there is not the program's.
  block->filled = block->zeroed ? block->size : block->usable;
  mi_fuzz_ranges(block->p, block->filled, block->filled, block->key, &mi_fuzz_fill_range);
}

// Zeroes from one byte to another, each where they are few.
static void mi_fuzz_check_zeroes(uint8_t* p, size_t from, size_t to) {
  if (to <= from || mi_fuzz_model.dirty) {
    return;
  }
  if (to - from <= 4 * MI_FUZZ_WHOLE) {
    mi_fuzz_check_zero_range(p, from, to, 0);
    return;
  }
  mi_fuzz_ranges(p + from, to - from, to - from, 0, &mi_fuzz_check_zero_range);
}

// Blocks

mi_fuzz_block_t* mi_fuzz_block_at(const uint8_t* p, size_t size) {
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    mi_fuzz_block_t* const other = &mi_fuzz_model.blocks[i];
    // A block of no bytes has its address to itself.
    if (other->p != NULL && p < other->p + other->usable + (other->usable == 0) && other->p < p + size + (size == 0)) {
      return other;
    }
  }
  return NULL;
}

bool mi_fuzz_fits(size_t size) {
  return size >= MI_FUZZ_TOO_LARGE || (size <= MI_FUZZ_LIVE_MAX && mi_fuzz_model.live_bytes + size <= MI_FUZZ_LIVE_MAX);
}

bool mi_fuzz_may_fail(void) {
  bool may_fail = false;
  for (size_t i = 0; i < MI_FUZZ_HEAPS; i++) {
    may_fail |= mi_fuzz_model.heaps[i].there && mi_fuzz_model.heaps[i].is_small;
  }
  return may_fail;
}

// The heap that is allocated from has no room: nothing has changed.
static bool mi_fuzz_is_full(const void* p, const mi_fuzz_expect_t* expect) {
  const uint8_t heap = expect->heap == MI_FUZZ_NO_HEAP ? mi_fuzz_default_heap() : expect->heap;
  return p == NULL && mi_fuzz_model.heaps[heap].is_small;
}

uint8_t mi_fuzz_pick_heap(unsigned which) {
  const uint8_t heap = (uint8_t)(which % MI_FUZZ_HEAPS);
  return mi_fuzz_model.heaps[heap].there ? heap : 0;
}

uint8_t mi_fuzz_default_heap(void) { return mi_fuzz_model.default_heap[mi_fuzz_model.actor]; }

unsigned mi_fuzz_thread(void) { return mi_fuzz_model.lives[mi_fuzz_model.actor] * MI_FUZZ_ACTORS + mi_fuzz_model.actor; }

static uint8_t mi_fuzz_heap_index(const mi_heap_t* heap) {
  for (uint8_t i = 0; i < MI_FUZZ_HEAPS; i++) {
    if (mi_fuzz_model.heaps[i].there && mi_fuzz_model.heaps[i].heap == heap) {
      return i;
    }
  }
  return MI_FUZZ_NO_HEAP;
}

// The heap of what was just allocated, which must be the expected one, or for a resized block the one it was in.
static uint8_t mi_fuzz_heap_of_new(const void* p, uint8_t expected, uint8_t or) {
  const uint8_t heap = mi_fuzz_heap_index(mi_heap_of(p));
  MI_FUZZ_CHECK(heap != MI_FUZZ_NO_HEAP, "%s: heap: %p is in no heap that there is", mi_fuzz_model.doing, p);
  MI_FUZZ_CHECK(heap == expected || heap == or || (mi_fuzz_model.late[mi_fuzz_model.actor] && heap == 0),
                "%s: heap: %p is in heap %u instead of %u", mi_fuzz_model.doing, p, heap, expected);
  return heap;
}

// What holds for whatever an allocation returned.
static void mi_fuzz_check_address(const void* p, size_t usable, const mi_fuzz_expect_t* expect) {
  MI_FUZZ_CHECK(usable >= expect->size, "%s: size: %zu bytes of %p may be used, %zu were asked for", mi_fuzz_model.doing, usable, p,
                expect->size);
  MI_FUZZ_CHECK(!MI_HAS_PADDING || usable == expect->size, "%s: size: %zu bytes of %p may be used, exactly %zu were asked for",
                mi_fuzz_model.doing, usable, p, expect->size);
  MI_FUZZ_CHECK(((uintptr_t)p + expect->offset) % expect->align == 0, "%s: alignment: %p + %zu is no multiple of %zu",
                mi_fuzz_model.doing, p, expect->offset, expect->align);
  const mi_fuzz_block_t* const other = mi_fuzz_block_at(p, usable);
  MI_FUZZ_CHECK(other == NULL, "%s: overlap: %zu bytes at %p with the live block of %zu at %p", mi_fuzz_model.doing, usable, p,
                other->usable, (void*)other->p);
  if (mi_fuzz_model.on_new != NULL) {
    mi_fuzz_model.on_new(p, usable);
  }
}

static void mi_fuzz_count_in(const mi_fuzz_block_t* block) {
  mi_fuzz_model.live_bytes += block->usable;
  mi_fuzz_model.live_blocks++;
}

static void mi_fuzz_count_out(const mi_fuzz_block_t* block) {
  mi_fuzz_model.live_bytes -= block->usable;
  mi_fuzz_model.live_blocks--;
}

void mi_fuzz_block_made(mi_fuzz_block_t* block, void* p, const mi_fuzz_expect_t* expect) {
  if (expect->size >= MI_FUZZ_TOO_LARGE) {
    MI_FUZZ_CHECK(p == NULL, "%s: size: %zu bytes were given", mi_fuzz_model.doing, expect->size);
    return;
  }
  if (mi_fuzz_is_full(p, expect)) {
    return;
  }
  MI_FUZZ_CHECK(p != NULL, "%s: memory: no %zu bytes at alignment %zu were given, errno %d", mi_fuzz_model.doing, expect->size,
                expect->align, errno);
  const size_t usable = mi_usable_size(p);
  mi_fuzz_check_address(p, usable, expect);
  if (expect->zero) {
    mi_fuzz_check_zeroes(p, 0, expect->size);
  }
  *block = (mi_fuzz_block_t){.p = p, .size = expect->size, .usable = usable, .align = expect->align, .offset = expect->offset};
  block->placed = expect->offset != 0 ? expect->align : 0;
  const uint8_t heap = expect->heap == MI_FUZZ_NO_HEAP ? mi_fuzz_default_heap() : expect->heap;
  block->heap = mi_fuzz_heap_of_new(p, heap, heap);
  block->zeroed = expect->zero;
  block->small = expect->size <= MI_SMALL_SIZE_MAX;
  block->maker = mi_fuzz_thread();
  mi_fuzz_write(block);
  mi_fuzz_count_in(block);
}

void mi_fuzz_block_resized(mi_fuzz_block_t* block, void* p, const mi_fuzz_expect_t* expect) {
  if (expect->size >= MI_FUZZ_TOO_LARGE) {
    MI_FUZZ_CHECK(p == NULL, "%s: size: %zu bytes were given", mi_fuzz_model.doing, expect->size);
    return;
  }
  if (mi_fuzz_is_full(p, expect)) {
    return;
  }
  MI_FUZZ_CHECK(p != NULL, "%s: memory: no %zu bytes at alignment %zu were given, errno %d", mi_fuzz_model.doing, expect->size,
                expect->align, errno);
  const mi_fuzz_block_t old = *block;
  mi_fuzz_count_out(block);
  block->p = NULL;
  const size_t usable = mi_usable_size(p);
  mi_fuzz_check_address(p, usable, expect);
  const size_t kept = old.size < expect->size ? old.size : expect->size;
  // What was usable and still is, is kept where the block stays.
  mi_fuzz_check_content(&old, p, kept < old.filled ? kept : old.filled);
  if (expect->zero && old.zeroed) {
    mi_fuzz_check_zeroes(p, kept, expect->size);
  }
  const uint8_t heap = expect->heap == MI_FUZZ_NO_HEAP ? mi_fuzz_default_heap() : expect->heap;
  *block = (mi_fuzz_block_t){.p = p, .size = expect->size, .usable = usable, .align = expect->align, .offset = expect->offset};
  block->placed = p == old.p ? old.placed : expect->offset != 0 ? expect->align
                                                                : 0;
  // A thread that is done has no part of the heap that it names: what it moves by moving OS pages stays in the heap it is of.
  block->heap = mi_fuzz_heap_of_new(p, heap, p == old.p || mi_fuzz_model.late[mi_fuzz_model.actor] ? old.heap : heap);
  block->zeroed = old.zeroed && expect->zero;
  mi_fuzz_write(block);
  mi_fuzz_count_in(block);
}

void mi_fuzz_block_check(const mi_fuzz_block_t* block) {
  if (block->p != NULL) {
    mi_fuzz_check_content(block, block->p, block->filled);
  }
}

void* mi_fuzz_block_take(mi_fuzz_block_t* block) {
  mi_fuzz_block_check(block);
  void* const p = block->p;
  mi_fuzz_count_out(block);
  block->p = NULL;
  return p;
}

void mi_fuzz_block_ask(const mi_fuzz_block_t* block, size_t inside) {
  const mi_heap_t* const heap = mi_fuzz_model.heaps[block->heap].heap;
  void* const p = block->p;
  mi_fuzz_block_check(block);
  MI_FUZZ_CHECK(mi_usable_size(p) == block->usable && mi_malloc_usable_size(p) == block->usable && mi_malloc_size(p) == block->usable,
                "%s: size: %p has %zu bytes now, %zu before", mi_fuzz_model.doing, p, mi_usable_size(p), block->usable);
  MI_FUZZ_CHECK(mi_heap_of(p) == heap, "%s: heap: %p has changed its heap", mi_fuzz_model.doing, p);
  MI_FUZZ_CHECK(mi_heap_contains(heap, p) && mi_heap_contains_block((mi_heap_t*)(uintptr_t)heap, p) && mi_any_heap_contains(p) &&
                    mi_heap_check_owned((mi_heap_t*)(uintptr_t)heap, p) && mi_check_owned(p),
                "%s: heap: %p is not contained in its heap", mi_fuzz_model.doing, p);
  for (uint8_t i = 0; i < MI_FUZZ_HEAPS; i++) {
    MI_FUZZ_CHECK(i == block->heap || !mi_fuzz_model.heaps[i].there || !mi_heap_contains_block(mi_fuzz_model.heaps[i].heap, p),
                  "%s: heap: %p is contained in another heap as well", mi_fuzz_model.doing, p);
  }
  MI_FUZZ_CHECK(mi_is_in_heap_region(p), "%s: region: %p is said not to be of the allocator", mi_fuzz_model.doing, p);
  (void)mi_unsafe_heap_page_is_under_utilized(mi_fuzz_model.heaps[block->heap].heap, p, inside % 101);
  const size_t thread = mi_thread_id_of(p);
  MI_FUZZ_CHECK(thread == mi_thread_id_of(p), "%s: thread: that of %p changes by itself", mi_fuzz_model.doing, p);
  if (block->usable > 0) {
    inside %= block->usable;
    const size_t left = malloc_object_size(block->p + inside);
    MI_FUZZ_CHECK(left == block->usable - inside, "%s: size: %zu bytes are said to be behind byte %zu of %zu at %p",
                  mi_fuzz_model.doing, left, inside, block->usable, p);
    const size_t fast = malloc_object_size_fast(block->p + inside);
    MI_FUZZ_CHECK(fast == left || fast == SIZE_MAX, "%s: size: the fast answer is %zu, the other %zu", mi_fuzz_model.doing, fast, left);
  }
}

// Runs

static int mi_fuzz_expected_error;

void mi_fuzz_expect_error(int err) { mi_fuzz_expected_error = err; }

static void mi_fuzz_on_error(int err, void* arg) {
  (void)arg;
  if (mi_fuzz_expected_error == 0 || (err != ENOMEM && err != EOVERFLOW)) {  // the message is still to come
    mi_fuzz_fail("%s: report: error %d of a call that is right", mi_fuzz_model.doing, err);
  }
}

void mi_fuzz_model_begin(uint64_t seed) {
  memset(&mi_fuzz_model, 0, sizeof(mi_fuzz_model));
  mi_fuzz_model.seed = seed;
  mi_fuzz_model.doing = "begin";
  mi_fuzz_model.heaps[0] = (mi_fuzz_heap_t){.heap = mi_heap_main(), .there = true};
  mi_fuzz_expected_error = 0;
  mi_register_error(&mi_fuzz_on_error, NULL);
}

void mi_fuzz_model_end(bool exact) {
  mi_fuzz_model.actor = 0;
  mi_fuzz_model.doing = "end";
  for (unsigned i = 1; i < MI_FUZZ_ACTORS; i++) {
    mi_fuzz_end_actor(i);
  }
  if (mi_fuzz_model.late[0]) {
    mi_thread_init();
    mi_fuzz_model.late[0] = false;
  }
  mi_heap_set_default(NULL);
  if (exact) {
    mi_fuzz_check_visits();
    mi_fuzz_check_stats();
  }
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    if (mi_fuzz_model.blocks[i].p != NULL) {
      mi_free(mi_fuzz_block_take(&mi_fuzz_model.blocks[i]));
    }
  }
  for (size_t i = 1; i < MI_FUZZ_HEAPS; i++) {
    if (mi_fuzz_model.heaps[i].there) {
      mi_heap_delete(mi_fuzz_model.heaps[i].heap);
      mi_fuzz_model.heaps[i].there = false;
    }
  }
  mi_collect(true);
  if (exact) {
    mi_fuzz_check_visits();
    mi_fuzz_check_stats();
  }
}
