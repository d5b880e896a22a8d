// Owns: tests of what becomes of links that a program has overwritten: reported, or without effect, and never a block that
// is live, lies inside one, or lies outside the page.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: pages are made by hand, in no queue; every round drains its page, so each link is followed.
#include "src/heap/block.h"
#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { ROUNDS = 10000,
       BLOCKS_MAX = 128 };

// Pages of each kind, with few blocks.
static const unsigned mi_links_test_bins[] = {25, 49, 60, 90};

typedef struct mi_links_test_page_s {
  mi_page_t* page;
  bool live[BLOCKS_MAX];
  size_t live_count;
} mi_links_test_page_t;

static uint64_t mi_links_test_seed = 31;

static size_t mi_links_test_below(size_t bound) { return (size_t)(mi_test_random(&mi_links_test_seed) % bound); }

static mi_block_t* mi_links_test_block(const mi_links_test_page_t* t, size_t number) {
  return (mi_block_t*)(void*)(t->page->start + number * t->page->block_size);
}

// Takes everything that the page gives, and judges each block.
static void mi_links_test_drain(mi_links_test_page_t* t, const char* what) {
  mi_page_t* const page = t->page;
  for (;;) {
    if (page->free == NULL && !_mi_page_refill_freed(page)) {
      if (page->capacity == page->reserved) {
        return;
      }
      _mi_page_extend(page);
    }
    const uint8_t* const p = _mi_page_pop(page);
    if (p == NULL) {
      continue;
    }
    const size_t offset = (size_t)((uintptr_t)p - (uintptr_t)page->start);
    const size_t number = offset / page->block_size;
    MI_CHECK_MSG(number < page->reserved && offset % page->block_size == 0, "%s: a block at %zu", what, offset);
    MI_REQUIRE(number < page->reserved);
    MI_CHECK_MSG(!t->live[number], "%s: block %zu twice", what, number);
    t->live[number] = true;
    t->live_count++;
  }
}

static void mi_links_test_begin(mi_links_test_page_t* t, unsigned bin) {
  memset(t, 0, sizeof(*t));
  mi_theap_t* const theap = _mi_theap_default();
  MI_REQUIRE(theap != NULL);
  t->page = _mi_page_new(theap, bin);
  MI_REQUIRE(t->page != NULL && t->page->reserved <= BLOCKS_MAX);
  mi_links_test_drain(t, "new");
  MI_CHECK_EQ(t->live_count, t->page->reserved);
}

static void mi_links_test_end(mi_links_test_page_t* t) {
  _mi_page_drop_ready(t->page);
  _mi_page_set_unused(t->page);
  _mi_page_release(t->page);
}

static void mi_links_test_free(mi_links_test_page_t* t, size_t number, bool remote) {
  mi_page_t* const page = t->page;
  mi_block_t* const block = mi_links_test_block(t, number);
  MI_REQUIRE(t->live[number] && t->live_count > 1);
  t->live[number] = false;
  t->live_count--;
  if (remote) {
    // As another thread does.
    MI_REQUIRE(_mi_hard_live_mark_remote(page->live, _mi_page_live_index(page, block)));
    _mi_page_free_remote(page, block);
  } else {
    MI_REQUIRE(_mi_hard_live_clear(page->live, _mi_page_live_index(page, block)));
    _mi_block_push_local(page, block);
  }
}

// Frees about half of the blocks and returns one of them.
static size_t mi_links_test_free_some(mi_links_test_page_t* t, bool remote) {
  size_t chosen = SIZE_MAX;
  size_t freed = 0;
  for (size_t i = 0; i < t->page->reserved && t->live_count > 2; i++) {
    if (t->live[i] && mi_links_test_below(2) == 0) {
      mi_links_test_free(t, i, remote);
      chosen = mi_links_test_below(++freed) == 0 ? i : chosen;
    }
  }
  return chosen;
}

static size_t mi_links_test_other(const mi_links_test_page_t* t, bool live, size_t but) {
  size_t number;
  size_t tries = 0;
  do {
    number = mi_links_test_below(t->page->reserved);
  } while ((t->live[number] != live || number == but) && ++tries < 1000);
  return number;
}

typedef enum mi_links_test_kind_e {
  STACK,        // an address on the stack
  LIVE_BLOCK,   // the address of a live block of the page
  INSIDE,       // an address inside a live block
  FREE_BLOCK,   // the address of a free block of the page
  RANDOM_WORD,  // anything
  ZERO,         // as if cleared
  OTHER_BLOCK,  // the stored link of another block
  OTHER_PAGE,   // that of a block at the same offset of another page
  ADDED,        // the link, and a few bytes
  FLIPPED,      // the link, but for a bit
  EARLIER,      // what stood there before
  KINDS
} mi_links_test_kind_t;

static uintptr_t mi_links_test_forge(const mi_links_test_page_t* t, const mi_links_test_page_t* other, mi_links_test_kind_t kind,
                                     size_t chosen, uintptr_t earlier, uintptr_t local) {
  const uintptr_t link = mi_links_test_block(t, chosen)->link;
  const uintptr_t live = (uintptr_t)mi_links_test_block(t, mi_links_test_other(t, true, chosen));
  const size_t unit = (size_t)1 << t->page->granule_shift;
  switch (kind) {
    case STACK:
      return local + 16 * mi_links_test_below(64);
    case LIVE_BLOCK:
      return live;
    case INSIDE:
      return live + unit * (1 + mi_links_test_below(t->page->block_size / unit - 1));
    case FREE_BLOCK:
      return (uintptr_t)mi_links_test_block(t, mi_links_test_other(t, false, chosen));
    case RANDOM_WORD:
      return (uintptr_t)mi_test_random(&mi_links_test_seed);
    case OTHER_BLOCK:
      return mi_links_test_block(t, mi_links_test_other(t, false, chosen))->link;
    case OTHER_PAGE:
      return mi_links_test_block(other, chosen)->link;
    case ADDED:
      return mi_links_test_below(2) == 0 ? link + 1 + mi_links_test_below(4096) : link - 1 - mi_links_test_below(4096);
    case FLIPPED:
      return link ^ ((uintptr_t)1 << mi_links_test_below(8 * sizeof(link)));
    case EARLIER:
      return earlier;
    default:
      return 0;
  }
}

static void mi_links_test_round(mi_links_test_kind_t kind, unsigned bin, bool remote, long* reported) {
  mi_links_test_page_t t;
  mi_links_test_page_t other;
  char what[40];
  snprintf(what, sizeof(what), "kind %d, bin %u, remote %d", (int)kind, bin, (int)remote);
  mi_links_test_begin(&t, bin);
  // Something earlier stands in every block.
  mi_links_test_free_some(&t, remote);
  mi_links_test_drain(&t, what);
  size_t chosen = mi_links_test_free_some(&t, remote);
  uintptr_t earlier = 0;
  if (chosen != SIZE_MAX && kind == EARLIER) {
    earlier = mi_links_test_block(&t, chosen)->link;
    mi_links_test_drain(&t, what);
    mi_links_test_free(&t, chosen, remote);
    mi_links_test_free_some(&t, remote);
  }
  if (chosen != SIZE_MAX) {
    if (kind == OTHER_PAGE) {
      mi_links_test_begin(&other, bin);
      mi_links_test_free(&other, chosen, remote);
    }
    uintptr_t local[8] = {0};
    mi_block_t* const block = mi_links_test_block(&t, chosen);
    const uintptr_t link = block->link;
    block->link = mi_links_test_forge(&t, &other, kind, chosen, earlier, (uintptr_t)local);
    const bool changed = block->link != link;
    mi_violation_message[0] = 0;
    mi_links_test_drain(&t, what);
    const bool seen = strstr(mi_violation_message, "free-list-corruption") != NULL;
    MI_CHECK_MSG(changed || !seen, "%s: reported, though nothing was changed", what);
    // The end of a remote list is known by the count, so its link is not followed. An old link may lead to a free block.
    const bool may_pass = kind == EARLIER || (remote && !seen && t.live_count == t.page->reserved);
    MI_CHECK_MSG(seen || !changed || may_pass, "%s: a link to %p is taken", what, (void*)block->link);
    *reported += seen;
    if (kind == OTHER_PAGE) {
      mi_links_test_end(&other);
    }
  }
  mi_links_test_end(&t);
}

MI_TEST(overwritten_links) {
  if (!MI_HAS_LIVE_BITS || !MI_HAS_ENCODED_LISTS) {
    return;
  }
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  for (int kind = 0; kind < KINDS; kind++) {
    long reported = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
      mi_links_test_round((mi_links_test_kind_t)kind, mi_links_test_bins[i % 4], MI_HAS_OUTLINE_LISTS || (i & 4) != 0, &reported);
    }
    MI_CHECK_MSG(kind == EARLIER || reported > ROUNDS * 3 / 4, "kind %d: only %ld of %d reported", kind, reported, (int)ROUNDS);
    // The first that another thread frees is the last of the list, whose link is not followed.
    MI_CHECK(reported > 0 || (kind == EARLIER && MI_HAS_OUTLINE_LISTS));
  }
}

// One who knows the keys still gets no more than blocks of the page that are free.
MI_TEST(links_by_one_who_knows_the_keys) {
  if (!MI_HAS_LIVE_BITS || !MI_HAS_ENCODED_LISTS || MI_HAS_OUTLINE_LISTS) {
    return;
  }
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  for (size_t i = 0; i < ROUNDS; i++) {
    mi_links_test_page_t t;
    mi_links_test_begin(&t, mi_links_test_bins[i % 4]);
    const size_t chosen = mi_links_test_free_some(&t, false);
    if (chosen != SIZE_MAX) {
      const mi_links_test_kind_t kind = (mi_links_test_kind_t)(i / 4 % 4);
      uintptr_t local[8] = {0};
      const uintptr_t target = mi_links_test_forge(&t, NULL, kind, chosen, 0, (uintptr_t)local);
      _mi_block_set_next(t.page, mi_links_test_block(&t, chosen), (const mi_block_t*)target);
      mi_violation_message[0] = 0;
      mi_links_test_drain(&t, "known keys");
      MI_CHECK(kind == FREE_BLOCK || strstr(mi_violation_message, "free-list-corruption") != NULL);
    }
    mi_links_test_end(&t);
  }
}

// Where lists are out of line, whatever is written over whole free blocks is reported, and changes nothing else.
MI_TEST(overwritten_blocks) {
  if (!MI_HAS_OUTLINE_LISTS) {
    return;
  }
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  mi_links_test_page_t t;
  for (size_t i = 0; i < ROUNDS; i++) {
    mi_violation_message[0] = 0;
    if (i % 100 < 4) {
      mi_links_test_begin(&t, mi_links_test_bins[i % 4]);
    }
    mi_links_test_free_some(&t, false);
    for (size_t k = 0; k < t.page->reserved; k++) {
      if (!t.live[k]) {
        const mi_links_test_kind_t kind = (mi_links_test_kind_t)mi_links_test_below(LIVE_BLOCK + 4);
        uintptr_t local[8] = {0};
        const uintptr_t word = mi_links_test_forge(&t, NULL, kind, k, 0, (uintptr_t)local);
        uintptr_t* const words = (uintptr_t*)mi_links_test_block(&t, k);
        for (size_t w = 0; w < t.page->block_size / sizeof(word) && w < 64; w++) {
          words[w] = word;
        }
      }
    }
    mi_links_test_drain(&t, "overwritten");
    MI_CHECK_EQ(t.live_count, t.page->reserved);
    MI_CHECK_MSG(strstr(mi_violation_message, "free-list-corruption") != NULL, "%s", mi_violation_message);
    if (i % 100 < 3 || i % 100 == 99) {
      mi_links_test_end(&t);
    }
  }
}

// A forked child has other keys than its parent, in the pages that it inherited too, and loses no block by it.
static void mi_links_test_in_child(void* arg) {
  void** const blocks = arg;
  mi_page_t* const page = _mi_page_map_find(blocks[0]);
  mi_page_t* const other = _mi_page_map_find(blocks[40]);
  const mi_link_key_t before = page->key;
  const uint32_t generation = page->key_generation;
  mi_page_t* const own = _mi_page_map_find(blocks[1]);
  MI_CHECK_PTR_EQ(page, own);
  // Before a block is taken from it.
  _mi_free(_mi_alloc(5000));
  MI_CHECK(page->key_generation == generation && other->key_generation == generation);
  _mi_free(_mi_alloc(712));
  MI_CHECK(page->key_generation != generation);
  MI_CHECK(page->key.link != before.link && page->key.place != before.place && page->key.factor != before.factor);
  MI_CHECK_EQ(page->key.factor * page->key_inverse, 1);
  const uint32_t used = _mi_page_used(page);
  size_t count = 0;
  while (_mi_page_is_ready(page) || _mi_page_refill_freed(page)) {
    MI_CHECK(_mi_page_pop(page) != NULL);
    count++;
  }
  MI_CHECK_EQ(_mi_page_used(page), used + count);
  MI_CHECK_EQ(count, page->capacity - used);
  // A child that goes on has no key of its parent's left.
  MI_CHECK(other->key_generation == generation);
  for (int i = 0; i < 300; i++) {
    _mi_free(_mi_alloc(5000));
  }
  MI_CHECK(other->key_generation == page->key_generation);
}

MI_TEST(child_has_other_keys) {
  if (!MI_HAS_ENCODED_LISTS && !MI_HAS_OUTLINE_LISTS) {
    return;
  }
  static void* blocks[41];
  for (size_t i = 0; i < 40; i++) {
    blocks[i] = _mi_alloc(712);
    MI_REQUIRE(blocks[i] != NULL);
  }
  for (size_t i = 4; i < 40; i += 2) {
    if (_mi_page_map_find(blocks[i]) == _mi_page_map_find(blocks[0])) {
      _mi_free(blocks[i]);
    }
  }
  blocks[1] = blocks[0];
  blocks[40] = _mi_alloc(3000);
  MI_REQUIRE(blocks[40] != NULL);
  // Not forked, and so with nothing to wait for.
  MI_CHECK_EQ(_mi_tls.own->key_generation, _mi_random_generation());
  MI_CHECK_IN_CHILD(&mi_links_test_in_child, blocks, 10000);
}

MI_TEST_MAIN()
