// Owns: that a program which depends on a variant's target finds the public header and the allocator.
// May include: mimalloc.h, the C library.
// Called by: the build, as a test of each variant.
// Invariants: uses nothing but what the target in `deps` brings along.
#include <mimalloc.h>
#include <stdlib.h>

#include "test/lib/test.h"

MI_TEST(header_and_library_agree) { MI_CHECK_EQ(mi_version(), MI_MALLOC_VERSION); }

MI_TEST(own_calls) {
  void* p = mi_malloc(100);
  MI_CHECK(p != NULL && mi_is_in_heap_region(p));
  mi_free(p);
}

MI_TEST(malloc_is_replaced) {
  void* p = malloc(100);
  MI_CHECK(mi_is_in_heap_region(p));
  free(p);
}

MI_TEST_MAIN()
