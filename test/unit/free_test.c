// Owns: tests of alloc/free: each bad pointer by its kind, frees by owner and others, and the queries.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: violations are ignored here, and seen by the line that is kept.
#include <errno.h>
#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

static const char* mi_free_test_kind(void) {
  const char* const colon = strstr(mi_violation_message, ": ");
  return colon == NULL ? "none" : colon + 2;
}

static bool mi_free_test_is(const char* kind) {
  const size_t len = strlen(kind);
  const bool same = strncmp(mi_free_test_kind(), kind, len) == 0 && (kind[0] == 'n' || mi_free_test_kind()[len] == ':');
  return same || (strcmp(kind, "none") == 0 && mi_violation_message[0] == 0);
}

// Where a bad pointer is made from.
typedef enum mi_free_test_place_e {
  SMALL_LIVE,   // a live block of a page of this thread
  SMALL_FREED,  // a freed one, in a page that lives
  LARGE_LIVE,
  LARGE_FREED,
  OS_LIVE,  // with memory of its own
  OS_FREED,
  FOREIGN,
  UNUSED,        // an address of an arena where no page ever was
  OFFSET_FREED,  // a freed block that had been handed out at an address inside
} mi_free_test_place_t;

static const struct {
  mi_free_test_place_t place;
  ptrdiff_t offset;
  const char* kind;
  bool needs_bits;  // seen with live bits only
} mi_free_test_rows[] = {
    {SMALL_LIVE, 8, "interior-free", true},
    {SMALL_LIVE, 16, "interior-free", true},
    {SMALL_LIVE, 1, "interior-free", true},
    {SMALL_LIVE, 79, "interior-free", true},
    {SMALL_FREED, 0, "double-free", true},
    {SMALL_FREED, 16, "invalid-free", true},
    {SMALL_FREED, 3, "invalid-free", true},
    {SMALL_LIVE, 40000, "invalid-free", true},
    {LARGE_LIVE, 16, "interior-free", false},
    {LARGE_LIVE, 1, "interior-free", false},
    {LARGE_LIVE, 5 * MI_MIB, "interior-free", false},
    {LARGE_FREED, 0, "double-free", false},
    {LARGE_FREED, 16, "invalid-free", false},
    {OS_LIVE, 16, "interior-free", false},
    {OS_LIVE, 350 * MI_MIB, "interior-free", false},
    {OS_FREED, 0, "double-free", false},
    {OS_FREED, 16, "foreign-free", false},
    {FOREIGN, 0, "foreign-free", false},
    {FOREIGN, 1, "foreign-free", false},
    {UNUSED, 0, "invalid-free", false},
    {OFFSET_FREED, 0, "double-free", true},
};
enum { ROWS = sizeof(mi_free_test_rows) / sizeof(mi_free_test_rows[0]) };

static char mi_free_test_foreign[64];

// *keep is freed by the caller in the end.
static char* mi_free_test_make(mi_free_test_place_t place, void** keep) {
  static void* other;
  char* p = NULL;
  *keep = NULL;
  switch (place) {
    case SMALL_LIVE:
    case SMALL_FREED:
      // Another one keeps the page.
      *keep = _mi_alloc(80);
      p = _mi_alloc(80);
      break;
    case LARGE_LIVE:
    case LARGE_FREED:
      p = _mi_alloc(6 * (size_t)MI_MIB);
      break;
    case OS_LIVE:
    case OS_FREED:
      p = _mi_alloc(400 * (size_t)MI_MIB);
      break;
    case FOREIGN:
      return mi_free_test_foreign;
    case UNUSED: {
      const mi_arena_t* const arena = _mi_arena_at(0);
      MI_REQUIRE(arena != NULL);
      return (char*)arena->base + (arena->slice_count - 1) * MI_SLICE_SIZE;
    }
    case OFFSET_FREED:
      other = _mi_alloc_aligned(NULL, 300, 64, 16, false);
      p = _mi_alloc_aligned(NULL, 300, 64, 16, false);
      *keep = other;
      break;
  }
  MI_REQUIRE(p != NULL);
  if (place == SMALL_FREED || place == LARGE_FREED || place == OS_FREED || place == OFFSET_FREED) {
    _mi_free(p);
    return p;
  }
  if (*keep == NULL) {
    *keep = p;
  } else {
    // Both go in the end.
    other = *keep;
    *keep = p;
    _mi_free(other);
    other = NULL;
  }
  return p;
}

static void* mi_free_test_free_other(void* p) {
  _mi_free(p);
  return NULL;
}

static void mi_free_test_row(size_t i, bool elsewhere) {
  void* keep;
  char* const p = mi_free_test_make(mi_free_test_rows[i].place, &keep);
  mi_violation_message[0] = 0;
  errno = 77;
  if (elsewhere) {
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_free_test_free_other, p + mi_free_test_rows[i].offset) == 0);
    pthread_join(thread, NULL);
  } else {
    _mi_free(p + mi_free_test_rows[i].offset);
    MI_CHECK_EQ(errno, 77);
  }
  MI_CHECK_MSG(mi_free_test_is(mi_free_test_rows[i].kind), "row %zu, %s: \"%s\" instead of %s", i, elsewhere ? "elsewhere" : "here",
               mi_violation_message, mi_free_test_rows[i].kind);
  // And nothing has happened to what lives.
  mi_violation_message[0] = 0;
  MI_CHECK(keep == NULL || _mi_usable_size(keep) > 0);
  _mi_free(keep);
  MI_CHECK_MSG(mi_free_test_is("none"), "row %zu: %s", i, mi_violation_message);
}

MI_TEST(bad_pointers) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  void* const first = _mi_alloc(80);
  for (size_t i = 0; i < ROWS; i++) {
    if (!mi_free_test_rows[i].needs_bits || MI_HAS_LIVE_BITS) {
      mi_free_test_row(i, false);
      mi_free_test_row(i, true);
    }
  }
  _mi_free(first);
}

// Every bad pointer that a query is asked about.
MI_TEST(bad_queries) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  MI_CHECK_EQ(_mi_usable_size(NULL), 0);
  MI_CHECK(!_mi_is_in_heap(NULL));
  for (size_t i = 0; i < ROWS; i++) {
    if (mi_free_test_rows[i].needs_bits && !MI_HAS_LIVE_BITS) {
      continue;
    }
    void* keep;
    const char* const p = mi_free_test_make(mi_free_test_rows[i].place, &keep);
    mi_violation_message[0] = 0;
    MI_CHECK_EQ(_mi_usable_size(p + mi_free_test_rows[i].offset), 0);
    const char* const kind = strcmp(mi_free_test_rows[i].kind, "double-free") == 0 ? "use-after-free" : mi_free_test_rows[i].kind;
    MI_CHECK_MSG(mi_free_test_is(kind), "row %zu: \"%s\" instead of %s", i, mi_violation_message, kind);
    _mi_free(keep);
  }
}

// Any address whatsoever may be asked for, and freed.
MI_TEST(wild_addresses) {
  static const uintptr_t wild[] = {1, 8, 4095, 65536, (uintptr_t)1 << 46, ((uintptr_t)1 << 47) - 1, (uintptr_t)1 << 47, (uintptr_t)1 << 48, UINTPTR_MAX, UINTPTR_MAX - 65535, UINTPTR_MAX / 2 + 1};
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
    mi_violation_message[0] = 0;
    MI_CHECK(!_mi_is_in_heap((const void*)wild[i]));
    _mi_free((void*)wild[i]);
    MI_CHECK_MSG(mi_free_test_is("foreign-free"), "%zx: %s", (size_t)wild[i], mi_violation_message);
    MI_CHECK_EQ(_mi_usable_size((const void*)wild[i]), 0);
  }
}

MI_TEST(good_queries) {
  for (size_t size = 0; size < 500 * (size_t)MI_MIB; size = size * 2 + 1) {
    char* const p = _mi_alloc(size);
    MI_REQUIRE(p != NULL);
    const size_t usable = _mi_usable_size(p);
    if (MI_HAS_PADDING) {
      MI_CHECK_EQ(usable, size);
    } else {
      MI_CHECK(usable >= _mi_good_size(size));
      MI_CHECK(usable == _mi_good_size(size) || (MI_HAS_GUARD_PAGES && size > MI_LARGE_BLOCK_MAX));
    }
    MI_CHECK(_mi_good_size(size) >= size);
    MI_CHECK(_mi_is_in_heap(p) && _mi_is_in_heap(p + usable / 2) && _mi_is_in_heap(p + usable - (usable > 0)));
    _mi_free(p);
  }
}

// A block is freed by two threads at once: it is handed out once afterwards, and one of them is told.

static void* mi_free_test_block;
static pthread_barrier_t mi_free_test_gate;

static void* mi_free_test_race(void* arg) {
  const long rounds = *(const long*)arg;
  for (long i = 0; i < rounds; i++) {
    pthread_barrier_wait(&mi_free_test_gate);
    _mi_free(mi_free_test_block);
    pthread_barrier_wait(&mi_free_test_gate);
  }
  return NULL;
}

MI_TEST(two_others_free_at_once) {
  if (!MI_HAS_LIVE_BITS) {
    return;
  }
  long rounds = mi_test_scale("MI_TEST_ROUNDS", 1000);
  long unseen = 0;
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  pthread_t threads[2];
  pthread_barrier_init(&mi_free_test_gate, NULL, 3);
  for (int t = 0; t < 2; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_free_test_race, &rounds) == 0);
  }
  void* const keep = _mi_alloc(200);
  for (long i = 0; i < rounds; i++) {
    mi_free_test_block = _mi_alloc(200);
    mi_violation_message[0] = 0;
    pthread_barrier_wait(&mi_free_test_gate);
    pthread_barrier_wait(&mi_free_test_gate);
    unseen += !mi_free_test_is("double-free");
    mi_page_t* const page = _mi_page_map_find(keep);
    _mi_page_collect(page);
    MI_CHECK_EQ(_mi_page_used(page), 1);
  }
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
  }
  pthread_barrier_destroy(&mi_free_test_gate);
  MI_CHECK_MSG(unseen == 0, "%ld of %ld double frees went unseen", unseen, rounds);
  _mi_free(keep);
}

// Whether its page is kept, kept without its lists, or gone: what was freed is known to have been.
MI_TEST(second_free_of_blocks_of_empty_pages) {
  enum { COUNT = 6000 };
  static void* blocks[COUNT];
  static const size_t sizes[] = {64, 500, 3000};
  if (!MI_HAS_LIVE_BITS) {
    return;
  }
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
    for (size_t i = 0; i < COUNT; i++) {
      blocks[i] = _mi_alloc(sizes[k]);
    }
    for (size_t i = 0; i < COUNT; i++) {
      _mi_free(blocks[i]);
    }
    size_t unseen = 0;
    for (size_t i = 0; i < COUNT; i += 7) {
      mi_violation_message[0] = 0;
      _mi_free(blocks[i]);
      unseen += !mi_free_test_is("double-free");
    }
    MI_CHECK_MSG(unseen == 0, "%zu bytes: %zu second frees were not called so", sizes[k], unseen);
  }
}

MI_TEST_MAIN()
