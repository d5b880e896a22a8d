// Owns: tests of hardening/fill: every size, every place of a changed byte.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is allocated.
#include "hardening/fill.h"

#include "test/lib/test.h"

enum { SIZE = 1024 };

static mi_aligned(16) uint8_t mi_fill_test_bytes[SIZE + 16];

MI_TEST(every_size_and_place) {
  static const uint8_t values[] = {0, MI_FILL_ALLOCATED, MI_FILL_FREED};
  for (size_t v = 0; v < sizeof(values); v++) {
    for (size_t start = 0; start <= 8; start += 8) {
      for (size_t size = 0; size + start <= SIZE; size += 8) {
        uint8_t* const p = mi_fill_test_bytes + start;
        memset(mi_fill_test_bytes, 0x33, sizeof(mi_fill_test_bytes));
        _mi_hard_fill_set(p, size, values[v]);
        MI_CHECK(mi_test_all_bytes(p, size, values[v]) && p[size] == 0x33 && (start == 0 || p[-1] == 0x33));
        MI_CHECK_EQ(_mi_hard_fill_find(p, size, values[v]), size);
        for (size_t at = 0; at < size; at += size < 200 ? 1 : 13) {
          p[at] ^= 1;
          MI_CHECK_EQ(_mi_hard_fill_find(p, size, values[v]), at);
          p[at] ^= 1;
        }
      }
    }
  }
}

MI_TEST_MAIN()
