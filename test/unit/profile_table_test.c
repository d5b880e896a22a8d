// Owns: tests of profile/table: stacks kept once, records, the budget, the bound of stacks, what is counted and what is reused.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: tables are made by hand, so no profile runs.
#include "src/profile/table.h"
#include "test/lib/test.h"

static uint32_t mi_table_test_add(mi_profile_table_t* table, uintptr_t call, size_t size, bool accum) {
  const uintptr_t calls[] = {call, 0x1000, 0x2000};
  return _mi_profile_table_add(table, calls, 3, size, accum);
}

// Equal stacks are one, a depth makes another, and counts are those of the records.
MI_TEST(stacks_and_records) {
  mi_profile_table_t table = {.budget = 0};
  MI_CHECK(_mi_profile_table_next(&table, NULL) == NULL);
  const uint32_t a = mi_table_test_add(&table, 1, 100, false);
  const uint32_t b = mi_table_test_add(&table, 1, 50, true);
  const uint32_t c = mi_table_test_add(&table, 2, 7, true);
  MI_REQUIRE(a != 0 && b != 0 && c != 0 && a != b && b != c);
  MI_CHECK_EQ(table.stacks, 2);
  MI_CHECK_EQ(table.sum.live_objects, 3);
  MI_CHECK_EQ(table.sum.live_bytes, 157);
  MI_CHECK_EQ(table.sum.accum_objects, 2);
  MI_CHECK_EQ(table.sum.accum_bytes, 57);
  const uintptr_t calls[] = {1, 0x1000, 0x2000};
  MI_CHECK(_mi_profile_table_add(&table, calls, 2, 1, false) != 0);
  MI_CHECK(_mi_profile_table_add(&table, calls, 0, 1, false) != 0);
  MI_CHECK_EQ(table.stacks, 4);
  size_t seen = 0;
  size_t bytes = 0;
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(&table, stack)) != NULL;) {
    seen++;
    bytes += stack->counts.live_bytes;
    MI_CHECK(stack->depth < 1 || stack->calls[0] == 1 || stack->calls[0] == 2);
  }
  MI_CHECK_EQ(seen, 4);
  MI_CHECK_EQ(bytes, 159);
  MI_CHECK_EQ(_mi_profile_table_resize(&table, a, 1000), 100);
  MI_CHECK_EQ(table.sum.live_bytes, 1059);
  MI_CHECK_EQ(table.sum.accum_bytes, 57);
  MI_CHECK_EQ(_mi_profile_table_remove(&table, a), 1000);
  MI_CHECK_EQ(_mi_profile_table_remove(&table, b), 50);
  MI_CHECK_EQ(table.sum.live_bytes, 9);
  MI_CHECK_EQ(table.sum.accum_bytes, 57);
  MI_CHECK_EQ(table.records, 3);
  // A record's number is used again.
  const uint32_t again = mi_table_test_add(&table, 3, 5, false);
  MI_CHECK(again == a || again == b);
  _mi_profile_table_reset(&table);
  MI_CHECK_EQ(table.sum.accum_objects, 0);
  MI_CHECK_EQ(table.sum.live_objects, 4);
  _mi_profile_table_end(&table);
  MI_CHECK_EQ(table.committed, 0);
}

// With a budget there is never more memory, samples are dropped beyond it, and what is freed makes room.
MI_TEST(budget) {
  enum { CHUNKS = 4 };
  mi_profile_table_t table = {.budget = CHUNKS * MI_PROFILE_CHUNK_SIZE + 5};
  uint32_t last = 0;
  size_t added = 0;
  for (uint32_t record; (record = mi_table_test_add(&table, 1, 10, false)) != 0; added++) {
    last = record;
  }
  MI_CHECK(added > 1000);
  MI_CHECK_EQ(table.dropped, 1);
  MI_CHECK_EQ(table.overflows, 0);
  MI_CHECK_EQ(table.committed, CHUNKS * MI_PROFILE_CHUNK_SIZE);
  MI_CHECK_EQ(table.records, added);
  _mi_profile_table_remove(&table, last);
  MI_CHECK_EQ(mi_table_test_add(&table, 1, 10, false), last);
  _mi_profile_table_end(&table);
  table.budget = 100;
  MI_CHECK_EQ(mi_table_test_add(&table, 1, 10, false), 0);
  MI_CHECK_EQ(table.dropped, 1);
}

// No more stacks than there may be; then those that nothing is counted for give their places to others.
MI_TEST(many_stacks) {
  mi_profile_table_t table = {.budget = 0};
  static uint32_t records[MI_PROFILE_STACKS_MAX];
  for (size_t i = 0; i < MI_PROFILE_STACKS_MAX; i++) {
    records[i] = mi_table_test_add(&table, 10 * i + 1, 1, false);
    MI_REQUIRE(records[i] != 0);
  }
  MI_CHECK_EQ(mi_table_test_add(&table, 7, 1, false), 0);
  MI_CHECK_EQ(table.overflows, 1);
  MI_CHECK_EQ(table.dropped, 1);
  // A known stack has its place.
  MI_CHECK(mi_table_test_add(&table, 1, 1, true) != 0);
  for (size_t i = 0; i < MI_PROFILE_STACKS_MAX / 2; i++) {
    _mi_profile_table_remove(&table, records[i]);
  }
  const size_t committed = table.committed;
  for (size_t i = 0; i < MI_PROFILE_STACKS_MAX / 4; i++) {
    MI_REQUIRE(mi_table_test_add(&table, 10 * i + 7, 1, false) != 0);
  }
  MI_CHECK_EQ(table.committed, committed);
  MI_CHECK_EQ(table.overflows, 1);
  MI_CHECK(table.stacks <= MI_PROFILE_STACKS_MAX);
  size_t walked = 0;
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(&table, stack)) != NULL;) {
    walked++;
  }
  MI_CHECK_EQ(walked, table.stacks);
  _mi_profile_table_end(&table);
}

// The deepest stack is kept whole.
MI_TEST(deep_stacks) {
  mi_profile_table_t table = {.budget = 0};
  uintptr_t calls[MI_PROFILE_DEPTH_MAX];
  for (size_t i = 0; i < MI_PROFILE_DEPTH_MAX; i++) {
    calls[i] = i + 1;
  }
  for (size_t depth = 0; depth <= MI_PROFILE_DEPTH_MAX; depth++) {
    MI_REQUIRE(_mi_profile_table_add(&table, calls, depth, 1, false) != 0);
  }
  MI_CHECK_EQ(table.stacks, MI_PROFILE_DEPTH_MAX + 1);
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(&table, stack)) != NULL;) {
    MI_CHECK(stack->depth == 0 || stack->calls[stack->depth - 1] == stack->depth);
  }
  _mi_profile_table_end(&table);
}

MI_TEST_MAIN()
