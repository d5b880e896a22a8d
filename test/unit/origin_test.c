// Owns: tests of hardening/origin: the byte, and the verdict on every pair of families.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: nothing is allocated.
#include "hardening/origin.h"

#include "test/lib/test.h"

enum { NATURAL = 16 };

MI_TEST(byte_keeps_family_and_alignment) {
  for (unsigned family = 0; family < MI_FAMILY_COUNT; family++) {
    for (unsigned log2 = 0; log2 < sizeof(size_t) * 8; log2++) {
      const uint8_t origin = _mi_hard_origin((mi_family_t)family, (size_t)1 << log2);
      MI_CHECK_EQ(_mi_hard_origin_family(origin), family);
      MI_CHECK_EQ(_mi_hard_origin_align(origin), (size_t)1 << (log2 < MI_ORIGIN_LOG2_MAX ? log2 : MI_ORIGIN_LOG2_MAX));
    }
  }
  // The fast paths compare with the bare family.
  MI_CHECK_EQ(_mi_hard_origin(MI_FAMILY_NEW, 1), MI_FAMILY_NEW);
  MI_CHECK_EQ(_mi_hard_origin(MI_FAMILY_ANY, 1), 0);
}

// Which family's free takes which family's block: a row a block, a column a free, in the order of mi_family_t.
static const char* const mi_origin_test_matrix[MI_FAMILY_COUNT] = {
    "yyyyyyy",
    "yyy----",
    "yyy----",
    "y--y---",
    "y---y--",
    "y----y-",
    "y-----y",
};

MI_TEST(pairs) {
  for (unsigned made = 0; made < MI_FAMILY_COUNT; made++) {
    for (unsigned freed = 0; freed < MI_FAMILY_COUNT; freed++) {
      const uint8_t origin = _mi_hard_origin((mi_family_t)made, 1);
      MI_CHECK_MSG(_mi_hard_origin_is_of(origin, (mi_family_t)freed) == (mi_origin_test_matrix[made][freed] == 'y'), "%u freed by %u", made, freed);
      const mi_origin_verdict_t verdict = _mi_hard_origin_verdict(origin, (mi_family_t)freed, 0, NATURAL);
      MI_CHECK_EQ(verdict == MI_ORIGIN_AGREES, mi_origin_test_matrix[made][freed] == 'y');
      MI_CHECK(verdict != MI_ORIGIN_OTHER_ALIGNMENT);
    }
  }
}

static const struct {
  mi_family_t made;
  size_t align;
  mi_family_t freed;
  size_t named;  // 0: none
  mi_origin_verdict_t verdict;
} mi_origin_test_rows[] = {
    {MI_FAMILY_NEW_ALIGNED, 64, MI_FAMILY_NEW_ALIGNED, 64, MI_ORIGIN_AGREES},
    {MI_FAMILY_NEW_ALIGNED, 64, MI_FAMILY_NEW_ALIGNED, 32, MI_ORIGIN_OTHER_ALIGNMENT},
    {MI_FAMILY_NEW_ALIGNED, 64, MI_FAMILY_NEW_ALIGNED, 128, MI_ORIGIN_OTHER_ALIGNMENT},
    {MI_FAMILY_NEW_ALIGNED, 1, MI_FAMILY_NEW_ALIGNED, 1, MI_ORIGIN_AGREES},
    {MI_FAMILY_NEW_ALIGNED, 64, MI_FAMILY_NEW, 0, MI_ORIGIN_OTHER_FAMILY},
    {MI_FAMILY_NEW_ALIGNED, 64, MI_FAMILY_NEW_ARRAY_ALIGNED, 64, MI_ORIGIN_OTHER_FAMILY},
    {MI_FAMILY_NEW, 1, MI_FAMILY_NEW_ALIGNED, 64, MI_ORIGIN_OTHER_FAMILY},
    {MI_FAMILY_NEW_ALIGNED, 64, MI_FAMILY_ANY, 32, MI_ORIGIN_AGREES},
    {MI_FAMILY_ANY, 1, MI_FAMILY_NEW_ALIGNED, 32, MI_ORIGIN_AGREES},
    {MI_FAMILY_MEMALIGN, 64, MI_FAMILY_MALLOC, 0, MI_ORIGIN_AGREES},
    {MI_FAMILY_MEMALIGN, 64, MI_FAMILY_MEMALIGN, 64, MI_ORIGIN_AGREES},
    {MI_FAMILY_MEMALIGN, 64, MI_FAMILY_MEMALIGN, 16, MI_ORIGIN_OTHER_ALIGNMENT},
    {MI_FAMILY_MALLOC, 1, MI_FAMILY_MEMALIGN, 16, MI_ORIGIN_AGREES},
    {MI_FAMILY_MALLOC, 1, MI_FAMILY_MEMALIGN, 32, MI_ORIGIN_OTHER_ALIGNMENT},
    {MI_FAMILY_MEMALIGN, (size_t)1 << (sizeof(size_t) * 8 - 1), MI_FAMILY_MEMALIGN, (size_t)1 << 31, MI_ORIGIN_AGREES},
};

MI_TEST(alignments) {
  for (size_t i = 0; i < sizeof(mi_origin_test_rows) / sizeof(mi_origin_test_rows[0]); i++) {
    const uint8_t origin = _mi_hard_origin(mi_origin_test_rows[i].made, mi_origin_test_rows[i].align);
    MI_CHECK_MSG(_mi_hard_origin_verdict(origin, mi_origin_test_rows[i].freed, mi_origin_test_rows[i].named, NATURAL) == mi_origin_test_rows[i].verdict, "row %zu", i);
  }
}

MI_TEST_MAIN()
