// Owns: tests of hardening/large-layout: where a large block lies, for every place, alignment and OS page.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is allocated.
#include "hardening/large-layout.h"

#include "test/lib/test.h"

static const size_t mi_large_layout_test_sizes[] = {1, 16, 4095, 4096, 4097, 65535, 65536, 600001, 1 << 20, 3 << 20, (80 << 20) + 3};
static const size_t mi_large_layout_test_os_pages[] = {4096, 16384, 65536};

static void mi_large_layout_test_one(size_t size, size_t align, size_t place, size_t os_page) {
  const mi_large_layout_t layout = _mi_hard_large_layout(size, align, place, os_page);
  const size_t guard = MI_HAS_GUARD_PAGES ? os_page : 0;
  MI_CHECK(layout.offset % align == 0 && layout.offset >= guard && layout.offset <= MI_SLICE_SIZE);
  MI_CHECK(layout.end >= layout.offset + size && layout.end + guard <= layout.size && layout.size % MI_SLICE_SIZE == 0);
  MI_CHECK(layout.size < layout.offset + size + guard + os_page + MI_SLICE_SIZE);
  if (MI_HAS_GUARD_PAGES) {
    MI_CHECK(layout.end % os_page == 0 && layout.end < layout.offset + size + os_page);
    MI_CHECK(_mi_align_down(layout.offset, os_page) >= os_page);
  }
  if (!MI_HAS_GUARD_PAGES && !MI_HAS_RANDOM_LARGE) {
    MI_CHECK(layout.offset == 0 && layout.end == layout.size && layout.size < size + MI_SLICE_SIZE);
  }
}

MI_TEST(every_place) {
  for (size_t s = 0; s < sizeof(mi_large_layout_test_sizes) / sizeof(mi_large_layout_test_sizes[0]); s++) {
    for (size_t o = 0; o < sizeof(mi_large_layout_test_os_pages) / sizeof(mi_large_layout_test_os_pages[0]); o++) {
      for (size_t align = 1; align <= MI_SLICE_SIZE; align *= 4) {
        const size_t places = _mi_hard_large_places(align, mi_large_layout_test_os_pages[o]);
        MI_CHECK(places >= 1);
        for (size_t place = 0; place < places; place++) {
          mi_large_layout_test_one(mi_large_layout_test_sizes[s], align, place, mi_large_layout_test_os_pages[o]);
        }
      }
    }
  }
}

// What the threat model says of chance: 961 places of an unaligned block with OS pages of 4 KiB, all different.
MI_TEST(number_of_places) {
  MI_CHECK_EQ(_mi_hard_large_places(16, 4096), MI_HAS_RANDOM_LARGE ? (MI_HAS_GUARD_PAGES ? 961 : 1025) : 1);
  MI_CHECK_EQ(_mi_hard_large_places(4096, 4096), MI_HAS_RANDOM_LARGE ? (MI_HAS_GUARD_PAGES ? 16 : 17) : 1);
  MI_CHECK_EQ(_mi_hard_large_places(MI_SLICE_SIZE, 4096), MI_HAS_RANDOM_LARGE && !MI_HAS_GUARD_PAGES ? 2 : 1);
  for (size_t place = 1; place < _mi_hard_large_places(16, 4096); place++) {
    MI_CHECK_EQ(_mi_hard_large_layout(1 << 20, 16, place, 4096).offset, _mi_hard_large_layout(1 << 20, 16, place - 1, 4096).offset + 64);
  }
}

MI_TEST(guards_of_pages) {
  MI_CHECK_EQ(_mi_hard_guard_size(65536, 4096), MI_HAS_GUARD_PAGES ? 4096 : 0);
  MI_CHECK_EQ(_mi_hard_guard_size(65536, 16384), MI_HAS_GUARD_PAGES ? 16384 : 0);
  MI_CHECK_EQ(_mi_hard_guard_size(65536, 65536), 0);
  MI_CHECK_EQ(_mi_hard_guard_size(524288, 65536), MI_HAS_GUARD_PAGES ? 65536 : 0);
}

MI_TEST_MAIN()
