// Owns: tests of region/page-map: entries, any address, ranges across leaves, refusals, readers beside writers.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the addresses are far from any that the system gives; what is registered is taken out again.
#include "src/region/page-map.h"

#include <pthread.h>

#include "src/heap/process.h"
#include "src/prim/prim.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

// Only ever compared.
static mi_page_t mi_page_map_test_pages[2];

enum { THREADS = 3,
       LEAF_SIZE_SLICES = MI_PAGE_MAP_LEAF_ENTRIES };

static const uintptr_t mi_page_map_test_leaf = (uintptr_t)1 << MI_PAGE_MAP_ROOT_SHIFT;

static const struct {
  size_t from;  // in slices, from the start of leaf 7
  size_t slices;
} mi_page_map_test_ranges[] = {
    {0, 1},
    {1, 8},
    {100, 64},
    {100, 65},
    {100, 100000},
    {LEAF_SIZE_SLICES - 1, 1},
    {LEAF_SIZE_SLICES - 1, 2},
    {LEAF_SIZE_SLICES - 30, 64},
    {3 * LEAF_SIZE_SLICES, 64},
};

// A map for other machines than this one: 39 bits (arm64 and riscv64 with three levels), 48, 52, 57 bits. Only the map is
// of that size; the addresses are never touched.
static void mi_page_map_test_bits(void* arg) {
  const unsigned bits = (unsigned)(uintptr_t)arg;
  mi_page_t* const page = &mi_page_map_test_pages[0];
  // The root is closed since the start.
  MI_REQUIRE(_mi_prim_unprotect(&_mi_fixed, sizeof(_mi_fixed)) == 0);
  if (!_mi_page_map_init(bits, 1)) {
    // The roots of a large one may be more than a limit of this machine allows.
    _exit(bits >= 52 ? MI_TEST_SKIPPED : 1);
  }
  const uintptr_t end = (uintptr_t)1 << bits;
  const uintptr_t places[] = {MI_SLICE_SIZE, end / 2, end / 2 - MI_SLICE_SIZE, end / 4 * 3, end - 64 * MI_SLICE_SIZE};
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    MI_CHECK(_mi_page_map_find((void*)places[i]) == NULL);
    MI_CHECK_MSG(_mi_page_map_register((void*)places[i], 2, page), "%u bits, %p", bits, (void*)places[i]);
    MI_CHECK(_mi_page_map_find((void*)places[i]) == page && _mi_page_map_find((void*)(places[i] + 2 * MI_SLICE_SIZE - 1)) == page);
    MI_CHECK(_mi_page_map_find((void*)(places[i] - 1)) == NULL && _mi_page_map_find((void*)(places[i] + 2 * MI_SLICE_SIZE)) == NULL);
    _mi_page_map_unregister((void*)places[i], 2);
    MI_CHECK(_mi_page_map_find((void*)places[i]) == NULL);
  }
  // From there up nothing is found, and nothing is entered.
  const uintptr_t beyond[] = {end, end + MI_SLICE_SIZE, end | end / 2, ~(uintptr_t)0, ~(uintptr_t)0 << bits};
  for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
    const uintptr_t slice = beyond[i] & ~(uintptr_t)(MI_SLICE_SIZE - 1);
    MI_CHECK(_mi_page_map_find((void*)beyond[i]) == NULL);
    MI_CHECK(!_mi_page_map_register((void*)slice, 1, page));
  }
  MI_CHECK(!_mi_page_map_register((void*)(end - MI_SLICE_SIZE), 2, page));
}

MI_TEST(address_spaces_of_other_machines) {
  static const unsigned all[] = {32, 39, 42, 47, 48, 52, 57};
  static mi_test_child_t child;
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
    if (all[i] >= 8 * sizeof(void*)) {
      continue;
    }
    mi_test_child_run(&child, &mi_page_map_test_bits, (void*)(uintptr_t)all[i], 30000);
    if (child.status == MI_TEST_SKIPPED) {
      MI_TEST_SKIP("a map of %u bits is more than this machine reserves", all[i]);
    } else {
      MI_CHECK_CHILD_OK(&child, "a map of that many bits");
    }
  }
}

MI_TEST(ranges) {
  MI_REQUIRE(_mi_process_init());
  mi_page_t* const page = &mi_page_map_test_pages[0];
  for (size_t i = 0; i < sizeof(mi_page_map_test_ranges) / sizeof(mi_page_map_test_ranges[0]); i++) {
    const uintptr_t start = 7 * mi_page_map_test_leaf + mi_page_map_test_ranges[i].from * MI_SLICE_SIZE;
    const size_t entered = mi_page_map_test_ranges[i].slices < MI_PAGE_MAP_SLICES_MAX ? mi_page_map_test_ranges[i].slices : MI_PAGE_MAP_SLICES_MAX;
    MI_CHECK(_mi_page_map_find((void*)start) == NULL);
    MI_CHECK(_mi_page_map_register((void*)start, mi_page_map_test_ranges[i].slices, page));
    for (size_t slice = 0; slice < entered; slice++) {
      const uintptr_t at = start + slice * MI_SLICE_SIZE;
      MI_CHECK_MSG(_mi_page_map_find((void*)at) == page && _mi_page_map_find((void*)(at + MI_SLICE_SIZE - 1)) == page, "range %zu, slice %zu", i, slice);
    }
    MI_CHECK(_mi_page_map_find((void*)(start - 1)) == NULL);
    MI_CHECK(_mi_page_map_find((void*)(start + entered * MI_SLICE_SIZE)) == NULL);
    _mi_page_map_unregister((void*)start, mi_page_map_test_ranges[i].slices);
    for (size_t slice = 0; slice < entered; slice++) {
      MI_CHECK(_mi_page_map_find((void*)(start + slice * MI_SLICE_SIZE)) == NULL);
    }
  }
}

// Neighbours are left alone, and the later entry counts.
MI_TEST(neighbours) {
  const uintptr_t start = 9 * mi_page_map_test_leaf;
  mi_page_t* const a = &mi_page_map_test_pages[0];
  mi_page_t* const b = &mi_page_map_test_pages[1];
  MI_REQUIRE(_mi_page_map_register((void*)start, 3, a));
  MI_REQUIRE(_mi_page_map_register((void*)(start + MI_SLICE_SIZE), 1, b));
  MI_CHECK_PTR_EQ(_mi_page_map_find((void*)start), a);
  MI_CHECK_PTR_EQ(_mi_page_map_find((void*)(start + MI_SLICE_SIZE)), b);
  MI_CHECK_PTR_EQ(_mi_page_map_find((void*)(start + 2 * MI_SLICE_SIZE)), a);
  _mi_page_map_unregister((void*)(start + MI_SLICE_SIZE), 1);
  MI_CHECK_PTR_EQ(_mi_page_map_find((void*)(start + 2 * MI_SLICE_SIZE)), a);
  _mi_page_map_unregister((void*)start, 3);
}

// What a free compares: the page, else one that is nobody's and has no more than that.
static bool mi_page_map_test_is_none(uintptr_t address) {
  mi_page_t* page;
  if (!_mi_page_map_look((void*)address, &page)) {
    return true;
  }
  const uint8_t* const bytes = (const uint8_t*)page;
  uint8_t rest = 0;
  for (size_t i = sizeof(uintptr_t); i < sizeof(mi_page_t); i++) {
    rest |= bytes[i];
  }
  return mi_atomic_load_relaxed(&page->owner) == MI_TID_NONE && rest == 0 && _mi_page_is_none(page);
}

MI_TEST(pages_that_are_none) {
  const uintptr_t start = 11 * mi_page_map_test_leaf;
  mi_page_t* const page = &mi_page_map_test_pages[0];
  static const int local = 1;
  // Under a root without a leaf, in a leaf without the entry, beyond the map.
  MI_CHECK(mi_page_map_test_is_none(start) && mi_page_map_test_is_none(0) && mi_page_map_test_is_none((uintptr_t)&local));
  MI_REQUIRE(_mi_page_map_register((void*)start, 1, page));
  mi_page_t* found = NULL;
  MI_CHECK(_mi_page_map_look((void*)(start + 1), &found));
  MI_CHECK_PTR_EQ(found, page);
  MI_CHECK(mi_page_map_test_is_none(start + MI_SLICE_SIZE) && mi_page_map_test_is_none(start - 1));
  _mi_page_map_unregister((void*)start, 1);
  MI_CHECK(mi_page_map_test_is_none(start) && mi_page_map_test_is_none(~(uintptr_t)0));
  // Nobody can make one anybody's, or the map larger.
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0 && write(fds[1], "", 1) == 1);
  MI_CHECK(read(fds[0], &_mi_page_map.tables->empty.head, 1) == -1 && errno == EFAULT);
  close(fds[0]);
  close(fds[1]);
}

MI_TEST(any_address) {
  uint64_t seed = 1;
  static int local;
  MI_CHECK(_mi_page_map_find(NULL) == NULL);
  MI_CHECK(_mi_page_map_find(&local) == NULL && _mi_page_map_find(&seed) == NULL);
  for (unsigned bit = 0; bit < sizeof(uintptr_t) * 8; bit++) {
    const uintptr_t at = (uintptr_t)1 << bit;
    MI_CHECK(_mi_page_map_find((void*)at) == NULL && _mi_page_map_find((void*)(at - 1)) == NULL && _mi_page_map_find((void*)(0 - at)) == NULL);
  }
  for (int i = 0; i < 100000; i++) {
    MI_CHECK(_mi_page_map_find((void*)(uintptr_t)(mi_test_random(&seed) | (UINT64_C(1) << 62))) == NULL);
  }
}

// Beyond the map nothing is entered, also not the part within.
MI_TEST(beyond_the_map) {
  const uintptr_t end = _mi_page_map.tables->empty.head.root_count * mi_page_map_test_leaf;
  MI_REQUIRE(end != 0);
  MI_CHECK(!_mi_page_map_register((void*)end, 1, mi_page_map_test_pages));
  MI_CHECK(!_mi_page_map_register((void*)(end - MI_SLICE_SIZE), 2, mi_page_map_test_pages));
  MI_CHECK(_mi_page_map_find((void*)(end - MI_SLICE_SIZE)) == NULL);
  MI_CHECK(_mi_page_map_register((void*)(end - MI_SLICE_SIZE), 1, mi_page_map_test_pages));
  MI_CHECK_PTR_EQ(_mi_page_map_find((void*)(end - 1)), mi_page_map_test_pages);
  MI_CHECK(_mi_page_map_find((void*)end) == NULL);
  _mi_page_map_unregister((void*)(end - MI_SLICE_SIZE), 1);
}

// Many threads make the same new leaves, while others look.

static void* mi_page_map_test_write(void* arg) {
  const size_t self = (size_t)(uintptr_t)arg;
  for (size_t i = 0; i < 200; i++) {
    const uintptr_t start = (2000 + i) * mi_page_map_test_leaf + self * 64 * MI_SLICE_SIZE;
    mi_page_t* const page = &mi_page_map_test_pages[self % 2];
    MI_CHECK(_mi_page_map_register((void*)start, 4, page));
    MI_CHECK_PTR_EQ(_mi_page_map_find((void*)(start + 3 * MI_SLICE_SIZE)), page);
    // What the others enter is theirs or not there yet.
    const mi_page_t* const other = _mi_page_map_find((void*)(start ^ (uintptr_t)64 * MI_SLICE_SIZE));
    MI_CHECK(other == NULL || other == &mi_page_map_test_pages[(self ^ 1) % 2]);
  }
  for (size_t i = 0; i < 200; i++) {
    const uintptr_t start = (2000 + i) * mi_page_map_test_leaf + self * 64 * MI_SLICE_SIZE;
    MI_CHECK_PTR_EQ(_mi_page_map_find((void*)start), &mi_page_map_test_pages[self % 2]);
    _mi_page_map_unregister((void*)start, 4);
  }
  return NULL;
}

MI_TEST(leaves_made_by_many) {
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_page_map_test_write, (void*)t) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
}

MI_TEST_MAIN()
