// Owns: tests of heap/page: pages of every class from first to last block, lists, zeroes, corrupt links, look-ups.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: pages are made by hand, in no queue, and released by hand.
#include "src/heap/page.h"

#include <pthread.h>
#include <sys/mman.h>

#include "hardening/large-layout.h"
#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

static void* mi_page_test_blocks[MI_PAGE_GRANULES];

// Frees are followed one by one here: none waits.
__attribute__((constructor)) static void mi_page_test_no_quarantine(void) { _mi_option_set(mi_option_quarantine_blocks, 0); }

// A block as a program would get it.
static void* mi_page_test_pop(mi_page_t* page) {
  void* const p = _mi_page_pop(page);
  return p == NULL ? NULL : _mi_block_hand_out(page, p, page->block_size - MI_BLOCK_EXTRA, false, page->free_is_zero);
}

static mi_page_t* mi_page_test_new(unsigned bin) {
  mi_theap_t* const theap = _mi_theap_default();
  MI_REQUIRE(theap != NULL);
  mi_page_t* const page = _mi_page_new(theap, bin);
  MI_REQUIRE(page != NULL);
  return page;
}

static size_t mi_page_test_pop_all(mi_page_t* page) {
  size_t n = 0;
  for (;;) {
    if (page->free == NULL && !_mi_page_refill_freed(page)) {
      if (page->capacity == page->reserved) {
        return n;
      }
      _mi_page_extend(page);
    }
    MI_REQUIRE(n < MI_PAGE_GRANULES);
    mi_page_test_blocks[n] = mi_page_test_pop(page);
    MI_REQUIRE(mi_page_test_blocks[n] != NULL);
    n++;
  }
}

// As the owner frees, but the page is in no queue, so the last block is left to the caller.
static void mi_page_test_free(mi_page_t* page, void* p) {
  MI_REQUIRE(_mi_page_used(page) > 1);
  _mi_free_local(page, p);
}

static void mi_page_test_end(mi_page_t* page, void* last) {
  if (MI_HAS_LIVE_BITS) {
    MI_CHECK(_mi_hard_live_clear(page->live, _mi_page_live_index(page, last)));
  }
  MI_CHECK_EQ(_mi_page_used(page), 1);
  _mi_page_set_unused(page);
  _mi_page_release(page);
}

static int mi_page_test_compare(const void* a, const void* b) {
  const uintptr_t x = (uintptr_t) * (void* const*)a;
  const uintptr_t y = (uintptr_t) * (void* const*)b;
  return (x > y) - (x < y);
}

static size_t mi_page_test_resident(const mi_page_t* page) {
  unsigned char there[MI_SLICE_SIZE / 4096];
  size_t n = 0;
  MI_REQUIRE(mincore(page->start, MI_SLICE_SIZE, there) == 0);
  for (size_t i = 0; i < MI_SLICE_SIZE / _mi_os_page_size(); i++) {
    n += there[i] & 1;
  }
  return n;
}

static bool mi_page_test_can_populate(void) {
  enum { POPULATE_WRITE = 23 };
  void* const p = mmap(NULL, _mi_os_page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  const bool can = madvise(p, _mi_os_page_size(), POPULATE_WRITE) == 0;
  munmap(p, _mi_os_page_size());
  return can;
}

// The first pages of a class are touched as they are used; further ones have all their memory at once.
MI_TEST(a_class_that_grows_is_populated) {
  enum { PAGES = 7,
         UNTOUCHED = 4 };
  mi_page_t* pages[PAGES];
  const unsigned bin = _mi_bin_of_size(320);
  _mi_arenas_purge(0, true);
  _mi_theap_default()->queues[bin].made = 0;
  const size_t whole = MI_SLICE_SIZE - _mi_hard_guard_size(MI_SLICE_SIZE, _mi_os_page_size());
  for (size_t i = 0; i < PAGES; i++) {
    pages[i] = mi_page_test_new(bin);
    if (pages[i]->memory_is_zero && !_mi_os_config.thp_always && mi_page_test_can_populate()) {
      MI_CHECK_EQ(mi_page_test_resident(pages[i]), i < UNTOUCHED ? 0 : whole / _mi_os_page_size());
    }
  }
  for (size_t i = 0; i < PAGES; i++) {
    _mi_page_release(pages[i]);
  }
}

// The first blocks of a class are worth an OS page or one block, those of a class that has more pages are more.
MI_TEST(the_first_extension_is_small) {
  if (MI_HAS_RANDOM_ORDER || MI_HAS_FILL) {
    return;
  }
  static const size_t sizes[] = {1024, 2048, 3072, 4096, 8192, 20480};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    const unsigned bin = _mi_bin_of_size(sizes[i]);
    _mi_theap_default()->queues[bin].made = 0;
    mi_page_t* const first = mi_page_test_new(bin);
    _mi_page_extend(first);
    mi_page_t* const second = mi_page_test_new(bin);
    _mi_page_extend(second);
    MI_CHECK(first->capacity * sizes[i] <= _mi_max(4096, sizes[i]));
    MI_CHECK(sizes[i] > 8192 ? second->capacity == first->capacity : second->capacity > first->capacity);
    _mi_page_set_unused(first);
    _mi_page_set_unused(second);
    _mi_page_release(first);
    _mi_page_release(second);
  }
}

MI_TEST(every_class) {
  const int64_t before = _mi_stat_view(&_mi_stats.pages).current;
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    mi_page_t* const page = mi_page_test_new(bin);
    const size_t size = page->block_size;
    MI_CHECK_EQ(size, _mi_bin_block_size(bin));
    const size_t whole = page->slice_count * MI_SLICE_SIZE;
    MI_CHECK_EQ(page->reserved, (whole - _mi_hard_guard_size(whole, _mi_os_page_size())) / size);
    MI_CHECK(_mi_is_aligned(page->start, MI_SLICE_SIZE) && page->free == NULL && _mi_page_used(page) == 0 && page->capacity == 0);
    const size_t n = mi_page_test_pop_all(page);
    MI_CHECK_EQ(n, page->reserved);
    MI_CHECK_EQ(_mi_page_used(page), n);
    // In the order of addresses, or in none, each once; a page that was never touched is zero but for links.
    bool in_order = true;
    for (size_t i = 0; i < n; i++) {
      in_order = in_order && mi_page_test_blocks[i] == page->start + i * size;
    }
    // Eight blocks are in order once in 40320 times.
    MI_CHECK(in_order == !MI_HAS_RANDOM_ORDER || (in_order && n < 16));
    qsort(mi_page_test_blocks, n, sizeof(mi_page_test_blocks[0]), &mi_page_test_compare);
    for (size_t i = 0; i < n; i++) {
      unsigned char* const p = mi_page_test_blocks[i];
      MI_CHECK_PTR_EQ(p, page->start + i * size);
      MI_CHECK(!page->memory_is_zero || MI_HAS_FILL || mi_test_all_bytes(p + sizeof(mi_block_t), size - sizeof(mi_block_t) - MI_BLOCK_EXTRA, 0));
      MI_CHECK_PTR_EQ(_mi_page_map_find(p + size - 1), page);
      MI_CHECK_PTR_EQ(_mi_page_block_of(page, p + size - 1), p);
      memset(p, 0xaa, size - MI_BLOCK_EXTRA);
    }
    // Every other block, here; what was freed comes back, and nothing else.
    for (size_t i = 1; i < n; i += 2) {
      mi_page_test_free(page, mi_page_test_blocks[i]);
    }
    MI_CHECK_EQ(_mi_page_used(page), n - n / 2);
    const size_t again = mi_page_test_pop_all(page);
    MI_CHECK_EQ(again, n / 2);
    for (size_t i = 0; i < again; i++) {
      const size_t index = (size_t)((uint8_t*)mi_page_test_blocks[i] - page->start) / size;
      MI_CHECK_EQ(index % 2, 1);
    }
    MI_CHECK(!page->free_is_zero);
    for (size_t i = 0; i < n - 1; i++) {
      mi_page_test_free(page, page->start + i * size);
    }
    uint8_t* const start = page->start;
    mi_page_test_end(page, start + (n - 1) * size);
    MI_CHECK(_mi_page_map_find(start) == NULL && _mi_page_was_block(start) && !_mi_page_was_block(start + 8));
  }
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.pages).current, before);
}

// What another thread frees, in each mixture with what this one does.

static void* mi_page_test_free_third(void* arg) {
  const size_t n = *(const size_t*)arg;
  for (size_t i = 0; i < n; i += 3) {
    _mi_free(mi_page_test_blocks[i]);
  }
  return NULL;
}

static void mi_page_test_mixture(unsigned bin, bool local, bool in_free) {
  mi_page_t* const page = mi_page_test_new(bin);
  size_t n = mi_page_test_pop_all(page);
  const size_t reserved = n;
  size_t expected = (n + 2) / 3;
  pthread_t thread;
  if (in_free) {
    mi_page_test_free(page, mi_page_test_blocks[1]);
    MI_CHECK(_mi_page_refill_freed(page));
    expected++;
  }
  if (local) {
    mi_page_test_free(page, mi_page_test_blocks[2]);
    expected++;
  }
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_page_test_free_third, &n) == 0);
  pthread_join(thread, NULL);
  MI_CHECK_EQ(_mi_remote_count(mi_atomic_load_relaxed(&page->remote)), (n + 2) / 3);
  MI_CHECK((mi_atomic_load_relaxed(&page->remote) & MI_REMOTE_OWNED) != 0);
  _mi_page_collect(page);
  MI_CHECK_EQ(mi_atomic_load_relaxed(&page->remote), MI_REMOTE_OWNED);
  MI_CHECK_EQ(_mi_page_used(page), n - expected);
  size_t count = MI_HAS_OUTLINE_LISTS ? page->capacity - _mi_page_in_use(page) : 0;
  for (const mi_block_t* b = MI_HAS_OUTLINE_LISTS ? NULL : page->free; b != NULL && count <= n; b = _mi_block_next(page, b)) {
    count++;
  }
  MI_CHECK_MSG(count == expected, "bin %u, %d, %d: %zu of %zu free blocks are in the list", bin, local, in_free, count, expected);
  MI_CHECK_EQ(mi_page_test_pop_all(page), expected);
  MI_CHECK_EQ(_mi_page_used(page), reserved);
  for (size_t i = 0; i < reserved - 1; i++) {
    mi_page_test_free(page, page->start + i * page->block_size);
  }
  mi_page_test_end(page, page->start + (reserved - 1) * page->block_size);
}

MI_TEST(collected) {
  static const unsigned bins[] = {1, 5, 33, 56, 57, 80, 104};
  for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
    for (int mix = 0; mix < 4; mix++) {
      mi_page_test_mixture(bins[i], (mix & 1) != 0, (mix & 2) != 0);
    }
  }
}

// A link that a program has overwritten is not followed out of the page.
MI_TEST(corrupt_links) {
  if (!MI_HAS_LIVE_BITS || MI_HAS_OUTLINE_LISTS) {
    return;
  }
  static uint64_t outside[8];
  mi_page_t* const live = mi_page_test_new(10);
  _mi_page_extend(live);
  void* const in_use = mi_page_test_pop(live);
  const uintptr_t targets[] = {(uintptr_t)outside, 1, UINTPTR_MAX, (uintptr_t)in_use, (uintptr_t)live->start + 8, 0x4141414141414141U};
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
    for (int plain = 0; plain < 2; plain++) {
      mi_page_t* const page = mi_page_test_new(10);
      _mi_page_extend(page);
      mi_block_t* const first = page->free;
      // Encoded as the page would, by one who knows the keys; or plainly overwritten.
      if (plain == 0) {
        _mi_block_set_next(page, first, (const mi_block_t*)targets[i]);
      } else {
        first->link = targets[i];
      }
      mi_violation_message[0] = 0;
      MI_CHECK_PTR_EQ(_mi_page_pop(page), first);
      MI_CHECK(_mi_page_pop(page) == NULL);
      MI_CHECK_MSG(strstr(mi_violation_message, "free-list-corruption") != NULL, "target %zu, %d: %s", i, plain, mi_violation_message);
      MI_CHECK(page->free == NULL);
      MI_CHECK_EQ(_mi_page_used(page), 1);
      mi_page_test_end(page, first);
    }
  }
  mi_page_test_end(live, in_use);
}

// A stock that names a live block, which no program can bring about, is reported and dropped; what was free in it is found again.
MI_TEST(corrupt_stock) {
  if (!MI_HAS_OUTLINE_LISTS) {
    return;
  }
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  mi_page_t* const page = mi_page_test_new(10);
  _mi_page_extend(page);
  uint8_t* const p = mi_page_test_pop(page);
  _mi_page_stock(page)[page->stocked - 1] = (uint16_t)_mi_page_live_index(page, p);
  mi_violation_message[0] = 0;
  MI_CHECK(_mi_page_pop(page) == NULL && !_mi_page_is_ready(page));
  MI_CHECK_MSG(strstr(mi_violation_message, "free-list-corruption") != NULL, "%s", mi_violation_message);
  MI_CHECK_EQ(_mi_page_used(page), 1);
  MI_CHECK_EQ(mi_page_test_pop_all(page), page->reserved - 1);
  for (size_t i = 0; i < page->reserved; i++) {
    if (page->start + i * page->block_size != p) {
      mi_page_test_free(page, page->start + i * page->block_size);
    }
  }
  mi_page_test_end(page, p);
}

// A block that another thread frees at the very moment at which its owner does, so that both pass, is not handed out.
MI_TEST(freed_by_two_at_once) {
  if (!MI_HAS_OUTLINE_LISTS) {
    return;
  }
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  for (unsigned bin = 1; bin < 60; bin += 29) {
    mi_page_t* const page = mi_page_test_new(bin);
    const size_t n = mi_page_test_pop_all(page);
    uint8_t* const both = page->start + page->block_size;
    mi_page_test_free(page, page->start + 2 * page->block_size);
    mi_page_test_free(page, both);
    // The other one's mark, which it had set before it could see the owner's.
    const uint64_t index = _mi_page_live_index(page, both);
    (void)mi_atomic_or_acq_rel(mi_live_remote_word(page->live, index), mi_live_bit(index));
    mi_atomic_store_relaxed(&page->has_remote, true);
    mi_violation_message[0] = 0;
    MI_CHECK_EQ(mi_page_test_pop_all(page), 1);
    MI_CHECK_MSG(strstr(mi_violation_message, "free-list-corruption") != NULL, "%s", mi_violation_message);
    MI_CHECK_PTR_EQ(mi_page_test_blocks[0], page->start + 2 * page->block_size);
    MI_CHECK_EQ(_mi_page_used(page), n - 1);
    _mi_page_drop_ready(page);
    _mi_page_set_unused(page);
    _mi_page_release(page);
  }
}

// More blocks than are noted, or fewer than make a refill without a search, all come back, each once.
MI_TEST(every_freed_block_comes_back) {
  static const unsigned bins[] = {1, 2, 5, 12, 20, 30, 33, 40, 56, 60, 81, 104};
  static bool live[MI_PAGE_GRANULES];
  uint64_t seed = 7;
  for (size_t b = 0; b < sizeof(bins) / sizeof(bins[0]); b++) {
    mi_page_t* const page = mi_page_test_new(bins[b]);
    memset(live, 0, sizeof(live));
    uint32_t count = 0;
    for (int turn = 0; turn < 60; turn++) {
      const bool all = turn % 20 == 19;
      const uint32_t take = all ? page->reserved - count : (uint32_t)(mi_test_random(&seed) % (page->reserved - count + 1));
      for (uint32_t i = 0; i < take; i++) {
        if (!_mi_page_is_ready(page) && !_mi_page_refill_freed(page)) {
          MI_REQUIRE(page->capacity < page->reserved);
          _mi_page_extend(page);
        }
        const uint8_t* const p = mi_page_test_pop(page);
        const size_t number = (size_t)(p - page->start) / page->block_size;
        MI_REQUIRE(p != NULL && p == page->start + number * page->block_size && number < page->reserved && !live[number]);
        live[number] = true;
        count++;
      }
      MI_CHECK_EQ(_mi_page_in_use(page), count);
      const uint32_t share = 1 + (uint32_t)(mi_test_random(&seed) % 100);
      for (uint32_t i = 0; i < page->reserved && count > 1; i++) {
        if (live[i] && mi_test_random(&seed) % 100 < share) {
          mi_page_test_free(page, page->start + i * page->block_size);
          live[i] = false;
          count--;
        }
      }
    }
    _mi_page_drop_ready(page);
    _mi_page_set_unused(page);
    _mi_page_release(page);
  }
}

MI_TEST(empty_page) {
  MI_CHECK(_mi_page_pop(&_mi_page_empty) == NULL);
  MI_CHECK(_mi_page_empty.free == NULL && _mi_page_used(&_mi_page_empty) == 0);
}

MI_TEST_MAIN()
