// Owns: tests of heap/queue: random operations against a plain list, and the direct table after each.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the theap and the pages are made here, and stand alone.
#include "src/heap/theap.h"

#include "test/lib/test.h"

enum { PAGES = 7,
       SLICES = 3 };

static mi_theap_t mi_queue_test_theap;
static mi_page_t mi_queue_test_pages[PAGES];
static mi_page_t* mi_queue_test_model[PAGES];
static size_t mi_queue_test_count;

static void mi_queue_test_check(unsigned bin) {
  const mi_page_queue_t* const queue = &mi_queue_test_theap.queues[bin];
  MI_CHECK_EQ(queue->count, mi_queue_test_count);
  const mi_page_t* before = NULL;
  const mi_page_t* page = queue->first;
  for (size_t i = 0; i < mi_queue_test_count; i++) {
    MI_CHECK_PTR_EQ(page, mi_queue_test_model[i]);
    MI_REQUIRE(page != NULL);
    MI_CHECK_PTR_EQ(page->prev, before);
    before = page;
    page = page->next;
  }
  MI_CHECK(page == NULL && queue->last == before);
  uint32_t retired = 0;
  for (page = queue->first; page != NULL; page = page->next) {
    retired += page->retired;
    MI_CHECK_EQ(_mi_page_in_use(page), 0);
  }
  MI_CHECK(queue->retired == retired && mi_queue_test_theap.retired_slices == retired * SLICES);
  MI_CHECK_EQ(mi_queue_test_theap.slices, mi_queue_test_count * SLICES);
  // A request finds the first page of its class, and no other class's entry is touched.
  for (size_t size = 0; size <= MI_DIRECT_SIZE_MAX; size++) {
    const mi_page_t* const entry = mi_queue_test_theap.direct[(size + MI_BLOCK_ALIGN - 1) >> MI_BLOCK_ALIGN_SHIFT];
    const mi_page_t* const expected = _mi_bin_of_size(size) == bin && queue->first != NULL ? queue->first : &_mi_page_empty;
    if (!MI_CHECK_MSG(entry == expected, "bin %u: a request of %zu bytes", bin, size)) {
      return;
    }
  }
}

static size_t mi_queue_test_model_remove(const mi_page_t* page) {
  size_t i = 0;
  while (mi_queue_test_model[i] != page) {
    i++;
  }
  memmove(&mi_queue_test_model[i], &mi_queue_test_model[i + 1], (mi_queue_test_count - i - 1) * sizeof(mi_queue_test_model[0]));
  mi_queue_test_count--;
  return i;
}

static void mi_queue_test_model_front(mi_page_t* page) {
  memmove(&mi_queue_test_model[1], &mi_queue_test_model[0], mi_queue_test_count * sizeof(mi_queue_test_model[0]));
  mi_queue_test_model[0] = page;
  mi_queue_test_count++;
}

static void mi_queue_test_step(uint64_t r, bool* in) {
  mi_page_t* const page = &mi_queue_test_pages[r % PAGES];
  if (!in[r % PAGES]) {
    if ((r >> 8) % 2 == 0) {
      _mi_queue_push_front(&mi_queue_test_theap, page);
      mi_queue_test_model_front(page);
    } else {
      _mi_queue_push_back(&mi_queue_test_theap, page);
      mi_queue_test_model[mi_queue_test_count++] = page;
    }
    in[r % PAGES] = true;
    return;
  }
  // The mark of a retired page goes when it leaves, and stays when it only moves. It makes a page last that is not first.
  if ((r >> 16) % 2 == 0 && !page->retired) {
    _mi_queue_retire(&mi_queue_test_theap, page);
    if (mi_queue_test_model[0] != page) {
      (void)mi_queue_test_model_remove(page);
      mi_queue_test_model[mi_queue_test_count++] = page;
    }
    MI_CHECK(page->retired && _mi_page_used(page) == MI_RETIRED_USES);
    return;
  }
  if ((r >> 17) % 4 == 0) {
    _mi_queue_unretire(&mi_queue_test_theap, page);
    MI_CHECK(!page->retired && _mi_page_used(page) == 0);
  }
  const bool was = page->retired;
  (void)mi_queue_test_model_remove(page);
  if ((r >> 8) % 2 == 0) {
    _mi_queue_move_front(&mi_queue_test_theap, page);
    mi_queue_test_model_front(page);
    MI_CHECK_EQ(page->retired, was);
  } else {
    _mi_queue_remove(&mi_queue_test_theap, page);
    MI_CHECK(page->next == NULL && page->prev == NULL && !page->retired && _mi_page_used(page) == 0);
    in[r % PAGES] = false;
  }
}

MI_TEST(against_a_list) {
  static const unsigned bins[] = {1, 2, 8, 9, 17, 32, 33, 104};
  uint64_t seed = 1;
  for (size_t b = 0; b < sizeof(bins) / sizeof(bins[0]); b++) {
    bool in[PAGES] = {false};
    memset((void*)&mi_queue_test_theap, 0, sizeof(mi_queue_test_theap));
    memset((void*)mi_queue_test_pages, 0, sizeof(mi_queue_test_pages));
    mi_queue_test_count = 0;
    for (size_t i = 0; i < MI_DIRECT_ENTRIES; i++) {
      mi_queue_test_theap.direct[i] = &_mi_page_empty;
    }
    for (size_t i = 0; i < PAGES; i++) {
      mi_queue_test_pages[i].bin = (uint8_t)bins[b];
      mi_queue_test_pages[i].slice_count = SLICES;
    }
    for (int i = 0; i < 2000; i++) {
      mi_queue_test_step(mi_test_random(&seed), in);
      mi_queue_test_check(bins[b]);
    }
  }
}

MI_TEST_MAIN()
