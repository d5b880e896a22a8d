// Owns: tests of alloc/free-checked: origins of blocks on every path, and what each judged free reports.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: violations are ignored here, and seen by the line that is kept.
#include "src/alloc/free-checked.h"

#include <pthread.h>

#include "src/sys/options.h"
#include "src/sys/report.h"
#include "test/lib/test.h"

static const size_t mi_free_checked_test_sizes[] = {0, 1, 8, 24, 100, 1000, 1025, 4096, 40000, 262144, 600000, 3 * MI_MIB, 300 * MI_MIB};
#define SIZES (sizeof(mi_free_checked_test_sizes) / sizeof(mi_free_checked_test_sizes[0]))

static bool mi_free_checked_test_said(const char* kind) {
  const bool said = kind == NULL ? mi_violation_message[0] == 0 : strstr(mi_violation_message, kind) != NULL;
  if (!said) {
    mi_test_say("kept: %s", mi_violation_message);
  }
  mi_violation_message[0] = 0;
  return said;
}

static void mi_free_checked_test_quiet(void) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  mi_violation_message[0] = 0;
}

// What is expected where the profile looks, nothing elsewhere.
static const char* mi_free_checked_test_if(bool looks, const char* kind) { return looks ? kind : NULL; }

MI_TEST(families_of_all_sizes) {
  mi_free_checked_test_quiet();
  for (size_t s = 0; s < SIZES; s++) {
    const size_t size = mi_free_checked_test_sizes[s];
    for (unsigned made = 0; made < MI_FAMILY_COUNT; made++) {
      for (unsigned freed = 0; freed < MI_FAMILY_COUNT; freed++) {
        void* const p = made % 2 == 0 ? _mi_alloc_as(size, (mi_family_t)made) : _mi_alloc_zero_as(size, (mi_family_t)made);
        MI_REQUIRE(p != NULL);
        const bool agrees = _mi_hard_origin_is_of((uint8_t)made, (mi_family_t)freed);
        _mi_free_checked(p, freed, 0, 0);
        MI_CHECK_MSG(mi_free_checked_test_said(mi_free_checked_test_if(MI_HAS_FAMILY && !agrees, "family-mismatch")), "%zu bytes, %u freed by %u", size, made, freed);
        // It is freed all the same.
        MI_CHECK(size > 1000 || !MI_HAS_LIVE_BITS || !_mi_page_is_live(_mi_page_map_find(p), p));
      }
    }
  }
}

// A place that had an origin has none when it is handed out by a path that names none.
MI_TEST(origins_do_not_outlive_their_block) {
  mi_free_checked_test_quiet();
  for (size_t s = 0; s < SIZES; s++) {
    const size_t size = mi_free_checked_test_sizes[s];
    for (unsigned way = 0; way < 6; way++) {
      for (unsigned round = 0; round < 20; round++) {
        void* p[8];
        for (size_t i = 0; i < 8; i++) {
          p[i] = _mi_alloc_as(size, MI_FAMILY_NEW_ARRAY);
          MI_REQUIRE(p[i] != NULL);
        }
        for (size_t i = 0; i < 8; i++) _mi_free_checked(p[i], MI_FAMILY_NEW_ARRAY, 0, 0);
        if (size > MI_MIB && round > 1) break;
      }
      void* const p = way == 0 ? _mi_alloc(size)
          : way == 1           ? _mi_alloc_zero(size)
          : way == 2           ? _mi_theap_alloc(_mi_theap_default(), size, false)
          : way == 3           ? _mi_alloc_aligned(NULL, size, 64, 0, false)
          : way == 4           ? _mi_theap_alloc_single(_mi_theap_default(), size, MI_SLICE_SIZE, false)
                               : _mi_realloc(NULL, _mi_alloc(size / 3), size, false);
      MI_REQUIRE(p != NULL);
      _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0);
      MI_CHECK_MSG(mi_free_checked_test_said(NULL), "%zu bytes, way %u", size, way);
    }
  }
}

static void* mi_free_checked_test_freer(void* p) {
  _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0);
  return NULL;
}

MI_TEST(by_another_thread) {
  mi_free_checked_test_quiet();
  for (size_t s = 0; s < SIZES; s++) {
    for (unsigned made = MI_FAMILY_MALLOC; made <= MI_FAMILY_NEW; made += 2) {
      void* const p = _mi_alloc_as(mi_free_checked_test_sizes[s], (mi_family_t)made);
      pthread_t thread;
      MI_REQUIRE(pthread_create(&thread, NULL, &mi_free_checked_test_freer, p) == 0);
      pthread_join(thread, NULL);
      MI_CHECK(mi_free_checked_test_said(mi_free_checked_test_if(MI_HAS_FAMILY && made == MI_FAMILY_NEW, "family-mismatch")));
    }
  }
}

MI_TEST(realloc_makes_it_malloc) {
  mi_free_checked_test_quiet();
  static const size_t to[] = {1, 10, 90, 100, 3000, 100000, 2 * MI_MIB};
  for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
    void* p = _mi_realloc_as_malloc(_mi_origin_mark(_mi_alloc_aligned(NULL, 100, 64, 0, false), MI_FAMILY_MEMALIGN, 64), to[i]);
    MI_CHECK(mi_free_checked_test_said(NULL));
    _mi_free_checked(p, MI_FAMILY_NEW, 0, 0);
    MI_CHECK(mi_free_checked_test_said(mi_free_checked_test_if(MI_HAS_FAMILY, "was allocated by malloc and is freed by operator delete")));
    p = _mi_realloc_as_malloc(_mi_alloc_as(100, MI_FAMILY_NEW), to[i]);
    MI_CHECK(mi_free_checked_test_said(mi_free_checked_test_if(MI_HAS_FAMILY, "was allocated by operator new and is resized by realloc")));
    _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0);
    MI_CHECK(mi_free_checked_test_said(NULL));
  }
}

MI_TEST(sizes) {
  mi_free_checked_test_quiet();
  for (size_t s = 0; s < SIZES; s++) {
    const size_t size = mi_free_checked_test_sizes[s];
    _mi_free_checked(_mi_alloc(size), MI_FAMILY_ANY | MI_FREE_SIZED, size, 0);
    _mi_free_checked(_mi_alloc_as(size, MI_FAMILY_NEW), MI_FAMILY_NEW | MI_FREE_SIZED, size, 0);
    MI_CHECK_MSG(mi_free_checked_test_said(NULL), "%zu bytes", size);
    const size_t wrong[] = {size * 3 + 100, size / 3 - (size < 3), SIZE_MAX};
    for (size_t w = 0; w < 3; w++) {
      const bool other = size > 200 || wrong[w] > 200;
      _mi_free_checked(_mi_alloc_as(size, MI_FAMILY_NEW), MI_FAMILY_NEW | MI_FREE_SIZED, wrong[w], 0);
      MI_CHECK_MSG(!other || mi_free_checked_test_said(mi_free_checked_test_if(MI_HAS_SIZED_FREE != 0, "size-mismatch")), "%zu bytes freed as %zu", size, wrong[w]);
      mi_violation_message[0] = 0;
    }
  }
}

MI_TEST(aligned_and_offset_blocks) {
  mi_free_checked_test_quiet();
  for (size_t s = 0; s < SIZES; s++) {
    const size_t size = mi_free_checked_test_sizes[s];
    for (size_t align = 1; align <= 4 * MI_MIB; align *= 2) {
      _mi_free_checked(_mi_alloc_aligned(NULL, size, align, 0, false), MI_FAMILY_ANY | MI_FREE_SIZED | MI_FREE_ALIGNED, size, align);
      _mi_free_checked(_mi_alloc_aligned(NULL, size, align, 0, false), MI_FAMILY_ANY | MI_FREE_ALIGNED, 0, align);
      // The size alone will do for an mi_ block.
      _mi_free_checked(_mi_alloc_aligned(NULL, size, align, 0, false), MI_FAMILY_ANY | MI_FREE_SIZED, size, 0);
      _mi_free_checked(_mi_alloc_aligned(NULL, size, align, 8, false), MI_FAMILY_ANY | MI_FREE_SIZED, size, 0);
      static const size_t offsets[] = {8, 16, 48, 4096, MI_SLICE_SIZE, MI_MIB};
      for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]) && offsets[o] < align; o++) {
        _mi_free_checked(_mi_alloc_aligned(NULL, size, align, offsets[o], false), MI_FAMILY_ANY | MI_FREE_ALIGNED, 0, align);
        _mi_free_checked(_mi_alloc_aligned(NULL, size, align, offsets[o], false), MI_FAMILY_ANY | MI_FREE_SIZED | MI_FREE_ALIGNED, size, align);
      }
      MI_CHECK_MSG(mi_free_checked_test_said(NULL), "%zu bytes at %zu", size, align);
    }
  }
}

// A bad pointer is what it is; only live blocks are judged.
MI_TEST(bad_pointers_are_not_judged) {
  mi_free_checked_test_quiet();
  static char foreign[64];
  _mi_free_checked(NULL, MI_FAMILY_NEW | MI_FREE_SIZED, 10, 0);
  MI_CHECK(mi_free_checked_test_said(NULL));
  _mi_free_checked(foreign, MI_FAMILY_NEW | MI_FREE_SIZED | MI_FREE_ALIGNED, 10, 48);
  MI_CHECK(mi_free_checked_test_said("foreign-free"));
  if (MI_HAS_LIVE_BITS) {
    void* const keep = _mi_alloc(100);
    void* const p = _mi_alloc_as(100, MI_FAMILY_NEW);
    _mi_free_checked(p, MI_FAMILY_NEW, 0, 0);
    _mi_free_checked(p, MI_FAMILY_MALLOC | MI_FREE_SIZED, 5000, 0);
    MI_CHECK(mi_free_checked_test_said("double-free"));
    _mi_free_checked((char*)keep + 8, MI_FAMILY_MALLOC | MI_FREE_SIZED, 5000, 0);
    MI_CHECK(mi_free_checked_test_said("interior-free"));
    _mi_free(keep);
  }
}

MI_TEST(option_switches_families_off) {
  mi_free_checked_test_quiet();
  _mi_option_set(mi_option_family_check, MI_ON_VIOLATION_IGNORE);
  _mi_free_checked(_mi_alloc_as(100, MI_FAMILY_NEW), MI_FAMILY_MALLOC, 0, 0);
  MI_CHECK(mi_free_checked_test_said(NULL));
  _mi_option_set(mi_option_family_check, MI_ON_VIOLATION_ABORT);
}

MI_TEST(object_sizes) {
  mi_free_checked_test_quiet();
  MI_CHECK_EQ(_mi_object_size(NULL), 0);
  MI_CHECK_EQ(_mi_object_size_fast(NULL), 0);
  MI_CHECK_EQ(_mi_object_size(mi_free_checked_test_sizes), SIZE_MAX);
  MI_CHECK_EQ(_mi_object_size_fast(mi_free_checked_test_sizes), SIZE_MAX);
  for (size_t s = 0; s < SIZES; s++) {
    uint8_t* const p = _mi_alloc(mi_free_checked_test_sizes[s]);
    MI_REQUIRE(p != NULL);
    const size_t usable = _mi_usable_size(p);
    for (size_t at = 0; at < usable; at += 1 + usable / 37) {
      MI_CHECK_EQ(_mi_object_size(p + at), usable - at);
      MI_CHECK(_mi_object_size_fast(p + at) == usable - at || (usable > MI_LARGE_BLOCK_MAX && _mi_object_size_fast(p + at) == SIZE_MAX));
    }
    MI_CHECK(mi_free_checked_test_said(NULL));
    _mi_free(p);
    if (MI_HAS_LIVE_BITS && mi_free_checked_test_sizes[s] < MI_LARGE_BLOCK_MAX) {
      MI_CHECK_EQ(_mi_object_size(p), 0);
      MI_CHECK(mi_free_checked_test_said("-free: "));
      MI_CHECK_EQ(_mi_object_size_fast(p), 0);
      MI_CHECK(mi_free_checked_test_said("-free: "));
    }
  }
}

MI_TEST_MAIN()
