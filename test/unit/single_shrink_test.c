// Owns: the order in which a block with a mapping of its own gives up its tail.
// May include: what src/alloc may, and the test library.
// Called by: the unit tests; linked with _mi_prim_release wrapped.
// Invariants: what the system gets back leads to no page: another thread may have it and enter it before this one goes on.
#include "src/alloc/alloc.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"
#include "test/lib/test.h"

int __real__mi_prim_release(void* addr, size_t size);
int __wrap__mi_prim_release(void* addr, size_t size);

static bool mi_shrink_test_watches;
static size_t mi_shrink_test_seen;
static size_t mi_shrink_test_entered;

int __wrap__mi_prim_release(void* addr, size_t size) {
  for (size_t at = 0; mi_shrink_test_watches && at < size; at += MI_SLICE_SIZE) {
    mi_shrink_test_seen++;
    mi_shrink_test_entered += _mi_page_map_find((uint8_t*)addr + at) != NULL;
  }
  return __real__mi_prim_release(addr, size);
}

MI_TEST(tail_is_entered_nowhere) {
  enum { LARGE = 6 << 20,
         SMALL = 2 << 20 };
  // Blocks above a fourth of an arena have a mapping of their own.
  _mi_option_set(mi_option_arena_reserve, 8 * 1024);
  uint8_t* const p = _mi_alloc(LARGE);
  MI_REQUIRE(p != NULL);
  const mi_page_t* const page = _mi_page_map_find(p);
  MI_REQUIRE(page != NULL && page->arena == NULL);
  p[0] = 1;
  mi_shrink_test_watches = true;
  uint8_t* const q = _mi_realloc(NULL, p, SMALL, false);
  MI_CHECK_PTR_EQ(q, p);
  MI_CHECK(q[0] == 1);
  MI_CHECK(mi_shrink_test_seen > 0);
  MI_CHECK_EQ(mi_shrink_test_entered, 0);
  _mi_free(q);
  MI_CHECK_EQ(mi_shrink_test_entered, 0);
  mi_shrink_test_watches = false;
}

MI_TEST_MAIN()
