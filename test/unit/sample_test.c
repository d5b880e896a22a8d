// Owns: tests of which allocations are sampled, and of the blocks that are guarded then.
// May include: test/lib, every layer.
// Called by: the build, as a test.
// Invariants: each test ends with sampling off; seeds are given, so every run samples the same.
#include "src/heap/sample.h"

#include <string.h>
#include <sys/resource.h>

#include "hardening/guarded.h"
#include "mimalloc.h"
#include "mimalloc-stats.h"
#include "src/guarded/slots.h"
#include "src/heap/block.h"
#include "src/region/arena-table.h"
#include "src/sys/guard.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { MANY = 6000 };

static void* blocks[MANY];
static bool guarded[2][MANY];

static bool is_guarded(const void* p) {
  const mi_page_t* const page = _mi_page_map_find(p);
  return page != NULL && page->guarded != 0;
}

static void sample(size_t rate, size_t seed) {
  mi_heap_guarded_set_sample_rate(NULL, 0, 0);
  mi_heap_guarded_set_size_bound(NULL, 0, SIZE_MAX);
  mi_heap_guarded_set_sample_rate(NULL, rate, seed);
}

static bool is_possible(void) {
  if (!MI_HAS_GUARDED || !_mi_guard_is_enabled()) {
    MI_TEST_SKIP("the variant does not sample");
    return false;
  }
  return true;
}

// Sizes of many classes, some frees among the allocations. Returns how many were guarded.
static size_t run(bool* which, uint32_t number) {
  size_t count = 0;
  for (size_t i = 0; i < MANY; i++) {
    number = number * 1664525 + 1013904223;
    const size_t size = (number >> 8) % (i % 7 == 0 ? 3000 : 200);
    blocks[i] = mi_malloc(size);
    which[i] = is_guarded(blocks[i]);
    count += which[i];
    if (i % 3 == 2) {
      mi_free(blocks[i - 1]);
      blocks[i - 1] = NULL;
    }
  }
  for (size_t i = 0; i < MANY; i++) {
    mi_free(blocks[i]);
  }
  return count;
}

MI_TEST(a_seed_samples_the_same_allocations_whatever_the_lists_are) {
  if (!is_possible()) return;
  sample(20, 77);
  const size_t count = run(guarded[0], 5);
  MI_CHECK(count > MANY / 20 * 8 / 10 && count < MANY / 20 * 12 / 10);
  // Other pages with other lists, and a call that goes to the slow path before its list has ended. What a quarantine serves has
  // a countdown of its own, and that depends on what waits.
  sample(0, 0);
  (void)run(guarded[1], 99);
  _mi_thread_disarm();
  sample(20, 77);
  MI_CHECK(run(guarded[1], 5) == count || MI_HAS_QUARANTINE);
  MI_CHECK(MI_HAS_QUARANTINE || memcmp(guarded[0], guarded[1], sizeof(guarded[0])) == 0);
  sample(20, 78);
  (void)run(guarded[1], 5);
  MI_CHECK(memcmp(guarded[0], guarded[1], sizeof(guarded[0])) != 0);
  sample(0, 0);
}

MI_TEST(a_rate_takes_effect_at_once) {
  if (!is_possible()) return;
  sample(0, 0);
  void* p = mi_malloc(48);
  MI_CHECK(!is_guarded(p));
  mi_free(p);
  sample(1, 3);
  for (size_t i = 0; i < 100; i++) {
    MI_CHECK(is_guarded(blocks[i] = mi_malloc(i * 16)) || MI_HAS_ZERO_SIZE);
  }
  sample(0, 0);
  for (size_t i = 0; i < 100; i++) {
    mi_free(blocks[i]);
    MI_CHECK(!is_guarded(blocks[i] = mi_malloc(i * 16)));
    mi_free(blocks[i]);
  }
}

// Blocks that stay among blocks that go: what goes leaves places for one slot each between those that stay.
MI_TEST(places_that_slots_left_serve_again) {
  enum { LIVE = 24000 };
  if (!is_possible() || _mi_guard_are_mappings()) return;
  static void* staying[LIVE];
  static void* going[LIVE];
  sample(1, 3);
  size_t taken = 0;
  for (size_t i = 0; i < LIVE; i++) {
    going[i] = mi_malloc(40);
    staying[i] = mi_malloc(40);
    taken += is_guarded(staying[i]);
  }
  MI_CHECK_EQ(taken, LIVE);
  for (size_t i = 0; i < LIVE; i++) {
    mi_free(going[i]);
  }
  const size_t arenas = _mi_arenas_count();
  const size_t more = LIVE - MI_SLOTS_HELD_MAX;
  for (size_t i = 0; i < more; i++) {
    going[i] = mi_malloc(40);
  }
  MI_CHECK_EQ(_mi_arenas_count(), arenas);
  sample(0, 0);
  for (size_t i = 0; i < LIVE; i++) {
    mi_free(staying[i]);
    mi_free(i < more ? going[i] : NULL);
  }
}

// How often the system was asked for addresses.
static size_t asked;
int __real__mi_prim_reserve(size_t size, bool commit, void** p);
int __wrap__mi_prim_reserve(size_t size, bool commit, void** p);

int __wrap__mi_prim_reserve(size_t size, bool commit, void** p) {
  asked++;
  return __real__mi_prim_reserve(size, commit, p);
}

// No address is left for another slot: what is sampled then is an ordinary block, counted, and not a search each time.
static void run_out_of_slots(void* arg) {
  enum { MORE = 2000 };
  struct rlimit limit = {(rlim_t)1 << 20, RLIM_INFINITY};
  // Room for ordinary blocks, as slots take all that is left.
  sample(0, 0);
  for (size_t i = 0; i < MANY; i++) blocks[i] = mi_malloc(40);
  for (size_t i = 0; i < MANY; i += 2) mi_free(blocks[i]);
  sample(1, 3);
  void* const first = mi_malloc(40);
  MI_REQUIRE(is_guarded(first) && setrlimit(RLIMIT_AS, &limit) == 0);
  size_t taken = 0;
  void* p;
  while (is_guarded(p = mi_malloc(40))) taken++;
  MI_CHECK_MSG(taken > MI_SLOTS_FRESH, "%zu", taken);
  asked = 0;
  const int64_t skipped = mi_atomic_load_relaxed(&_mi_stats.guards_skipped);
  for (size_t i = 0; i < MORE; i++) {
    MI_CHECK(!is_guarded(mi_malloc(40)));
  }
  MI_CHECK_EQ(mi_atomic_load_relaxed(&_mi_stats.guards_skipped) - skipped, MORE);
  // Each search asks some hundred times, for less and less.
  MI_CHECK_MSG(asked > 0 && asked < 4 * MORE, "asked %zu times", asked);
  // One that is freed serves, and when there are addresses again so do others.
  mi_free(first);
  MI_CHECK(is_guarded(mi_malloc(40)));
  limit.rlim_cur = RLIM_INFINITY;
  MI_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  size_t tries = 0;
  while (tries < MORE && !is_guarded(mi_malloc(40))) tries++;
  MI_CHECK_MSG(tries < MORE, "%zu", tries);
  (void)arg;
}

MI_TEST(slots_that_run_out_are_not_asked_for_each_time) {
  if (!is_possible() || _mi_guard_are_mappings()) return;
  MI_CHECK_IN_CHILD(&run_out_of_slots, NULL, 60000);
}

MI_TEST(sizes_out_of_bounds_are_left_alone) {
  if (!is_possible()) return;
  sample(1, 3);
  mi_heap_guarded_set_size_bound(NULL, 100, 200);
  for (size_t size = 90; size <= 210; size += 10) {
    void* const p = mi_malloc(size);
    MI_CHECK_EQ(is_guarded(p), size >= 100 && size <= 200);
    mi_free(p);
  }
  sample(0, 0);
}

MI_TEST(a_heap_and_a_theap_have_rates_of_their_own) {
  if (!is_possible()) return;
  sample(0, 0);
  mi_heap_t* const heap = mi_heap_new();
  mi_heap_guarded_set_sample_rate(heap, 1, 9);
  void* p = mi_heap_malloc(heap, 30);
  void* q = mi_malloc(30);
  MI_CHECK(is_guarded(p) && !is_guarded(q));
  mi_free(p);
  mi_free(q);
  mi_theap_guarded_set_sample_rate(mi_heap_theap(heap), 0, 0);
  p = mi_heap_malloc(heap, 30);
  MI_CHECK(!is_guarded(p));
  mi_theap_guarded_set_sample_rate(mi_heap_theap(heap), 1, 9);
  q = mi_heap_malloc(heap, 70);
  MI_CHECK(is_guarded(q));
  // Deleted or destroyed, with what is in it.
  mi_heap_delete(heap);
  MI_CHECK(is_guarded(q) && mi_usable_size(q) == 70);
  mi_free(q);
  mi_free(p);
  mi_heap_t* const other = mi_heap_new();
  mi_heap_guarded_set_sample_rate(other, 1, 9);
  p = mi_heap_malloc(other, 30);
  MI_CHECK(is_guarded(p));
  mi_heap_destroy(other);
  MI_CHECK(!mi_is_in_heap_region(p));
}

MI_TEST(a_guarded_block_has_what_it_was_asked_with) {
  if (!is_possible()) return;
  sample(1, 4);
  static const size_t sizes[] = {1, 8, 16, 24, 100, 1000, 4096, 5000, 40000, 65536, 300000, 3000000};
  static const size_t aligns[] = {1, 16, 64, 4096, 8192, 65536, 262144};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
    for (size_t a = 0; a < sizeof(aligns) / sizeof(aligns[0]); a++) {
      uint8_t* p = mi_zalloc_aligned(sizes[s], aligns[a]);
      if (!MI_CHECK(p != NULL)) continue;
      MI_CHECK_EQ((uintptr_t)p % aligns[a], 0);
      MI_CHECK(is_guarded(p) || (sizes[s] > 2000000 && aligns[a] > 65536));
      MI_CHECK(mi_usable_size(p) >= sizes[s]);
      MI_CHECK(mi_test_all_bytes(p, sizes[s], 0));
      memset(p, 1, mi_usable_size(p));
      MI_CHECK(mi_expand(p, mi_usable_size(p) + 1) == NULL || !is_guarded(p));
      p = mi_realloc_aligned(p, sizes[s] + 100, aligns[a]);
      MI_CHECK(p != NULL && (uintptr_t)p % aligns[a] == 0 && mi_test_all_bytes(p, sizes[s], 1));
      p = mi_realloc(p, sizes[s] / 2 + 1);
      MI_CHECK(mi_test_all_bytes(p, sizes[s] / 2 + 1, 1));
      mi_free(p);
    }
  }
  sample(0, 0);
}

MI_TEST(an_address_in_the_slot_of_a_block_is_no_address_in_the_block) {
  if (!is_possible()) return;
  const long action = mi_option_get(mi_option_on_violation);
  mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  sample(1, 3);
  uint8_t* const p = mi_malloc(80);
  MI_REQUIRE(is_guarded(p));
  const struct {
    uint8_t* address;
    const char* said;
  } rows[] = {{p + 1, "is 1 bytes into"}, {p + 79, "is 79 bytes into"}, {p + 80, "no block"}, {p + 9000, "no block"}, {p - 1, "no block"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    mi_violation_message[0] = 0;
    mi_free(rows[i].address);
    MI_CHECK_MSG(strstr(mi_violation_message, rows[i].said) != NULL, "%zu: %s", i, mi_violation_message);
  }
  MI_CHECK(is_guarded(p));
  mi_free(p);
  sample(0, 0);
  mi_option_set(mi_option_on_violation, action);
}

MI_TEST(the_statistics_count_guarded_blocks) {
  if (!is_possible()) return;
  mi_stats_t before = {.size = sizeof(before), .version = MI_STAT_VERSION};
  mi_stats_t after = before;
  MI_CHECK(mi_stats_get(&before));
  sample(1, 4);
  for (int i = 0; i < 10; i++) {
    mi_free(mi_malloc(100));
  }
  sample(0, 0);
  MI_CHECK(mi_stats_get(&after));
  MI_CHECK_EQ(after.malloc_guarded_count.total - before.malloc_guarded_count.total, 10);
}

MI_TEST(a_wrong_byte_beside_a_block_is_found_wherever_it_is) {
  uint8_t bytes[300];
  for (size_t size = 0; size <= 260; size++) {
    memset(bytes, 0, sizeof(bytes));
    _mi_hard_guarded_fill(bytes + 7, size);
    MI_CHECK(bytes[6] == 0 && bytes[7 + size] == 0);
    MI_CHECK_EQ(_mi_hard_guarded_compare(bytes + 7, size), size);
    for (size_t wrong = 0; wrong < size; wrong += wrong < 20 || wrong + 20 > size ? 1 : 13) {
      bytes[7 + wrong] ^= 1;
      MI_CHECK_EQ(_mi_hard_guarded_compare(bytes + 7, size), wrong);
      bytes[7 + wrong] ^= 1;
    }
    // All alike, and all wrong.
    memset(bytes, 1, sizeof(bytes));
    MI_CHECK_EQ(_mi_hard_guarded_compare(bytes, size), 0);
  }
}

MI_TEST(slots_wait_and_come_back_in_no_order) {
  if (!is_possible()) return;
  _mi_slots_release();
  MI_CHECK_EQ(_mi_slots_held(), 0);
  sample(1, 4);
  void* const first = mi_malloc(100);
  mi_free(first);
  MI_CHECK_EQ(_mi_slots_held(), 1);
  // None comes back before there are many.
  for (int i = 0; i < 500; i++) {
    void* const p = mi_malloc(100);
    MI_CHECK(p != first);
    mi_free(p);
  }
  for (int i = 0; i < 3 * MI_SLOTS_HELD_MAX; i++) {
    mi_free(mi_malloc(100));
  }
  MI_CHECK(_mi_slots_held() > 0 && _mi_slots_held() <= MI_SLOTS_HELD_MAX);
  sample(0, 0);
  mi_collect(true);
  MI_CHECK_EQ(_mi_slots_held(), 0);
}

MI_TEST_MAIN()
