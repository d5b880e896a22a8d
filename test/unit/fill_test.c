// Owns: tests of hardening/fill: every size, every place of a changed byte.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is allocated.
#include "hardening/fill.h"

#include "test/lib/test.h"

enum { SIZE = 1024 };

static mi_aligned(16) uint8_t mi_fill_test_bytes[SIZE + 32];

static const uint8_t mi_fill_test_values[] = {0, MI_FILL_ALLOCATED, MI_FILL_FREED};

MI_TEST(every_size_and_place) {
  for (size_t v = 0; v < sizeof(mi_fill_test_values); v++) {
    const uint8_t value = mi_fill_test_values[v];
    for (size_t size = 16; size < SIZE; size += 16) {
      uint8_t* const p = mi_fill_test_bytes + 16;
      memset(mi_fill_test_bytes, 0x33, sizeof(mi_fill_test_bytes));
      _mi_hard_fill_set(p, size, value);
      MI_CHECK(mi_test_all_bytes(p, size, value) && p[size] == 0x33 && p[-1] == 0x33);
      MI_CHECK(_mi_hard_fill_is(p, size, value, false) && _mi_hard_fill_is(p, size, value, true));
      MI_CHECK_EQ(_mi_hard_fill_find(p, size, value), size);
      const bool is_short = size < MI_FILL_LOOK_MIN;
      if (is_short) {
        memset(p, 0x44, size);
        _mi_hard_fill_set_short(p, size, value);
        MI_CHECK(mi_test_all_bytes(p, size, value) && p[size] == 0x33 && p[-1] == 0x33);
        MI_CHECK(_mi_hard_fill_is_short(p, size, value, false) && _mi_hard_fill_is_short(p, size, value, true));
      }
      for (size_t at = 0; at < size; at++) {
        p[at] ^= 1;
        MI_CHECK(!_mi_hard_fill_is(p, size, value, false));
        MI_CHECK(!is_short || !_mi_hard_fill_is_short(p, size, value, false));
        MI_CHECK(!is_short || _mi_hard_fill_is_short(p, size, value, true) == (at < 8));
        // The first word alone may be a link.
        MI_CHECK_EQ(_mi_hard_fill_is(p, size, value, true), at < 8);
        MI_CHECK_EQ(_mi_hard_fill_find(p, size, value), at);
        p[at] ^= 1;
      }
    }
  }
}

// Lines that hold the value already are left alone, wherever they are.
MI_TEST(large_and_partly_written) {
  enum { LARGE = 8192 };
  static mi_aligned(16) uint8_t bytes[LARGE + 32];
  for (size_t size = MI_FILL_LOOK_MIN - 32; size <= LARGE; size += size < MI_FILL_LOOK_MIN + 160 ? 16 : 1040) {
    uint8_t* const p = bytes + 16;
    for (size_t at = 0; at < size; at += 1 + at / 16) {
      memset(bytes, 0x33, sizeof(bytes));
      memset(p, 0, size);
      p[at] = 1;
      p[size - 1 - at] = 2;
      MI_CHECK_MSG(!_mi_hard_fill_is(p, size, 0, false), "byte %zu of %zu", at, size);
      _mi_hard_fill_set(p, size, 0);
      MI_CHECK_MSG(mi_test_all_bytes(p, size, 0) && p[size] == 0x33 && p[-1] == 0x33, "byte %zu of %zu", at, size);
    }
    memset(bytes, 0x33, sizeof(bytes));
    _mi_hard_fill_set(p, size, MI_FILL_FREED);
    MI_CHECK(mi_test_all_bytes(p, size, MI_FILL_FREED) && p[size] == 0x33 && p[-1] == 0x33);
  }
}

// What is cleared line by line tells whether there was anything to clear.
MI_TEST(lines) {
  enum { LINES = 512 };
  static mi_aligned(16) uint8_t bytes[LINES + 32];
  uint8_t* const p = bytes + 16;
  memset(bytes, 0x33, sizeof(bytes));
  memset(p, 0, LINES);
  for (size_t at = 0; at < LINES; at++) {
    p[at] = 1;
    MI_CHECK_MSG(_mi_hard_fill_lines(p, LINES, 0), "byte %zu", at);
    MI_CHECK_MSG(!_mi_hard_fill_lines(p, LINES, 0), "byte %zu", at);
    MI_CHECK(mi_test_all_bytes(p, LINES, 0) && p[LINES] == 0x33 && p[-1] == 0x33);
  }
}

MI_TEST_MAIN()
