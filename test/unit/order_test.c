// Owns: tests of heap/order: what an extension lists, in which order blocks come first and come back, and what it costs.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: pages are made by hand, in no queue; the bounds of statistics are those of test/lib/chi.h.
#include <stdio.h>

#include "src/heap/block.h"
#include "src/alloc/alloc.h"
#include "test/lib/chi.h"
#include "test/lib/test.h"

static mi_page_t* mi_order_test_new(unsigned bin) {
  mi_theap_t* const theap = _mi_theap_default();
  MI_REQUIRE(theap != NULL);
  mi_page_t* const page = _mi_page_new(theap, bin);
  MI_REQUIRE(page != NULL);
  return page;
}

static void mi_order_test_end(mi_page_t* page) {
  _mi_page_drop_ready(page);
  _mi_page_set_unused(page);
  _mi_page_release(page);
}

static size_t mi_order_test_number(const mi_page_t* page, const void* block) {
  return (size_t)((uintptr_t)block - (uintptr_t)page->start) / page->block_size;
}

// The block that is ready behind `block`; the first one behind NULL.
static const mi_block_t* mi_order_test_next(const mi_page_t* page, const mi_block_t* block) {
  if (!MI_HAS_OUTLINE_LISTS) {
    return block == NULL ? page->free : _mi_block_next(page, block);
  }
  uintptr_t i = page->stocked;
  while (block != NULL && i > 0 && _mi_page_stock(page)[i - 1] != _mi_page_live_index(page, block)) {
    i--;
  }
  i -= block != NULL;
  return i == 0 ? NULL : (const mi_block_t*)(const void*)(page->start + ((size_t)_mi_page_stock(page)[i - 1] << page->granule_shift));
}

static bool mi_order_test_is_uniform(const uint32_t* counts, size_t cells, double* chi) {
  *chi = mi_test_chi(counts, cells);
  return *chi < mi_test_chi_bound(cells);
}

// Each extension lists new blocks, touches no more of the system's pages than it adds blocks or bytes for, and what was
// listed can be told for each block.
MI_TEST(extensions) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* const page = mi_order_test_new(bin);
    static bool listed[MI_PAGE_GRANULES];
    memset(listed, 0, sizeof(listed));
    size_t total = 0;
    while (page->capacity < page->reserved) {
      _mi_page_extend(page);
      static bool touched[MI_PAGE_GRANULES];
      memset(touched, 0, sizeof(touched));
      size_t count = 0;
      size_t touched_count = 0;
      for (const mi_block_t* b = mi_order_test_next(page, NULL); b != NULL; b = mi_order_test_next(page, b)) {
        const size_t number = mi_order_test_number(page, b);
        MI_REQUIRE(number < page->reserved && !listed[number] && (const uint8_t*)b == page->start + number * page->block_size);
        listed[number] = true;
        count++;
        const size_t os_page = (size_t)((const uint8_t*)b - page->start) / 4096;
        touched_count += !touched[os_page];
        touched[os_page] = true;
      }
      total += count;
      MI_CHECK_EQ(total, page->capacity);
      MI_CHECK_MSG(count >= 1 && count <= 264, "bin %u: %zu blocks at once", bin, count);
      MI_CHECK_MSG(touched_count <= 8 && touched_count <= count, "bin %u: %zu OS pages for %zu blocks", bin, touched_count, count);
      for (size_t i = 0; i < page->reserved; i++) {
        const uint8_t* const p = page->start + i * page->block_size;
        MI_CHECK(_mi_page_was_listed(page, p) == listed[i]);
        MI_CHECK(_mi_page_was_listed(page, p + page->block_size - 1) == listed[i]);
        MI_CHECK(!MI_HAS_LIVE_BITS || _mi_page_may_be_free(page, p) == listed[i]);
      }
      _mi_page_drop_ready(page);
    }
    mi_order_test_end(page);
  }
}

// The first block of a page is any of them, and so is the distance to the second.
MI_TEST(first_blocks) {
  static const struct {
    unsigned bin;
    size_t blocks;
  } rows[] = {{1, 4096}, {32, 64}, {40, 32}, {56, 8}};
  for (size_t r = 0; r < 4; r++) {
    enum { TRIES = 4000 };
    static uint32_t counts[MI_PAGE_GRANULES];
    memset(counts, 0, sizeof(counts));
    size_t cells = 0;
    uint32_t neighbours = 0;
    for (int i = 0; i < TRIES; i++) {
      mi_page_t* const page = mi_order_test_new(rows[r].bin);
      // A guard takes the place of some.
      MI_REQUIRE(page->reserved <= rows[r].blocks && page->reserved >= rows[r].blocks - rows[r].blocks / 8);
      cells = page->reserved < 256 ? page->reserved : 256;
      _mi_page_extend(page);
      const size_t first = mi_order_test_number(page, _mi_page_pop(page));
      counts[first * cells / page->reserved]++;
      const mi_block_t* const second = mi_order_test_next(page, NULL);
      neighbours += second != NULL && mi_order_test_number(page, second) == first + 1;
      mi_order_test_end(page);
    }
    if (!MI_HAS_RANDOM_ORDER) {
      MI_CHECK_EQ(counts[0], TRIES);
      continue;
    }
    double chi = 0;
    MI_CHECK_MSG(mi_order_test_is_uniform(counts, cells, &chi), "%zu blocks: chi-square %f", rows[r].blocks, chi);
    MI_CHECK_MSG(neighbours < TRIES / 4, "%zu blocks: %u of %d are followed by their neighbour", rows[r].blocks, neighbours, (int)TRIES);
  }
}

// Which of the blocks that were freed last comes back first.
MI_TEST(reuse) {
  enum { TRIES = 8000,
         WINDOW = MI_HAS_OUTLINE_LISTS ? MI_STOCK_MAX : 8 };
  for (size_t freed = 1; freed <= 12; freed++) {
    uint32_t counts[16] = {0};
    mi_page_t* const page = mi_order_test_new(20);
    void* blocks[16];
    _mi_page_extend(page);
    for (size_t i = 0; i < 16; i++) {
      if (page->free == NULL) {
        _mi_page_extend(page);
      }
      blocks[i] = _mi_page_pop(page);
    }
    // What is left over stays in use.
    while (MI_HAS_OUTLINE_LISTS && _mi_page_is_ready(page)) {
      MI_REQUIRE(_mi_page_pop(page) != NULL);
    }
    for (int i = 0; i < TRIES; i++) {
      page->free = NULL;
      for (size_t k = 0; k < freed; k++) {
        MI_REQUIRE(!MI_HAS_LIVE_BITS || _mi_hard_live_clear(page->live, _mi_page_live_index(page, blocks[k])));
        _mi_block_push_local(page, blocks[k]);
      }
      MI_REQUIRE(_mi_page_refill_freed(page));
      for (size_t k = 0; k < freed; k++) {
        void* const p = _mi_page_pop(page);
        MI_REQUIRE(p != NULL);
        for (size_t j = 0; k == 0 && j < freed; j++) {
          counts[freed - 1 - j] += p == blocks[j];
        }
      }
      MI_CHECK(!_mi_page_is_ready(page) && (MI_HAS_OUTLINE_LISTS || page->local_free == NULL));
    }
    const size_t cells = MI_HAS_RANDOM_ORDER ? (freed < WINDOW ? freed : WINDOW) : 1;
    double chi = 0;
    MI_CHECK_MSG(cells == 1 ? counts[0] == TRIES : mi_order_test_is_uniform(counts, cells, &chi),
                 "%zu freed: the last comes first %u times, chi-square %f", freed, counts[0], chi);
    mi_order_test_end(page);
  }
}

MI_TEST_MAIN()
