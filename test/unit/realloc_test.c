// Owns: tests of alloc/realloc: content, zeroes, alignment and addresses over every pair of sizes, and calls that fail.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: a failed call leaves the block as it was.
#include <errno.h>
#include <sys/resource.h>

#include "src/alloc/alloc.h"
#include "src/heap/heap.h"
#include "src/heap/single.h"
#include "src/sys/options.h"
#include "src/sys/report.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

static const size_t mi_realloc_test_sizes[] = {
    0,
    1,
    8,
    16,
    17,
    100,
    1024,
    1025,
    8192,
    8193,
    65536,
    65537,
    300000,
    524288,
    524289,
    600000,
    1048576,
    1200000,
    3000000,
    5000000,
    400 * (size_t)MI_MIB,
};
enum { SIZES = sizeof(mi_realloc_test_sizes) / sizeof(mi_realloc_test_sizes[0]) };

// What is compared of a block: the largest ones are not written as a whole.
static size_t mi_realloc_test_shown(size_t size) { return _mi_min(size, 6000000); }

MI_TEST(every_pair_of_sizes) {
  for (size_t i = 0; i < SIZES; i++) {
    for (size_t k = 0; k < SIZES; k++) {
      const size_t from = mi_realloc_test_sizes[i];
      const size_t to = mi_realloc_test_sizes[k];
      void* const p = _mi_alloc(from);
      MI_REQUIRE(p != NULL);
      mi_test_fill(p, mi_realloc_test_shown(from), 5);
      errno = 77;
      void* const q = _mi_realloc(NULL, p, to, false);
      MI_CHECK_EQ(errno, 77);
      MI_REQUIRE(q != NULL);
      // The last bytes of what is kept may belong to a word that was cut.
      const size_t kept = _mi_min(mi_realloc_test_shown(from), to) & ~(size_t)7;
      MI_CHECK_MSG(mi_test_filled(q, kept, 5), "%zu to %zu bytes", from, to);
      MI_CHECK(_mi_usable_size(q) >= to);
      // No more is held on to than twice what is wanted, and the smallest block.
      MI_CHECK_MSG(_mi_usable_size(q) / 2 <= _mi_good_size(to), "%zu to %zu bytes: %zu", from, to, _mi_usable_size(q));
      MI_CHECK(_mi_is_aligned(q, MI_BLOCK_ALIGN));
      memset(q, 3, mi_realloc_test_shown(to));
      _mi_free(q);
    }
  }
}

// Of a block that is zeroed throughout everything behind what the program wrote reads zero, however its size changes.
MI_TEST(zeroed_walk) {
  uint64_t seed = 3;
  for (int walk = 0; walk < 8; walk++) {
    size_t size = mi_realloc_test_sizes[mi_test_random(&seed) % (SIZES - 1)];
    unsigned char* p = _mi_alloc_zero(size);
    MI_REQUIRE(p != NULL);
    for (int step = 0; step < 25; step++) {
      memset(p, 0xee, size);
      const size_t newsize = mi_realloc_test_sizes[mi_test_random(&seed) % (SIZES - 1)] + mi_test_random(&seed) % 3;
      unsigned char* const q = _mi_realloc(NULL, p, newsize, true);
      MI_REQUIRE(q != NULL);
      MI_CHECK(mi_test_all_bytes(q, _mi_min(size, newsize), 0xee));
      const size_t usable = _mi_usable_size(q);
      if (newsize > size) {
        MI_CHECK_MSG(mi_test_all_bytes(q + size, newsize - size, 0), "%zu to %zu bytes", size, newsize);
      }
      MI_CHECK_MSG(mi_test_all_bytes(q + newsize, usable - newsize, 0), "behind: %zu to %zu bytes, usable %zu", size, newsize, usable);
      p = q;
      size = newsize;
    }
    _mi_free(p);
  }
}

// Large blocks with neighbours, at any place in their slices, that grow and are to be aligned from then on.
MI_TEST(large_blocks_get_aligned) {
  enum { COUNT = 24 };
  void* blocks[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = _mi_alloc(3 * MI_MIB);
    MI_REQUIRE(blocks[i] != NULL);
    memset(blocks[i], (int)i, 64);
  }
  for (size_t i = 0; i < COUNT; i++) {
    const size_t align = (size_t)512 << i % 8;
    void* const q = _mi_realloc_aligned(NULL, blocks[i], 5 * MI_MIB, align, 0, false);
    MI_REQUIRE(q != NULL);
    MI_CHECK_MSG(_mi_is_aligned(q, align), "%p at %zu", q, align);
    MI_CHECK(mi_test_all_bytes(q, 64, (int)i));
    blocks[i] = q;
  }
  for (size_t i = 0; i < COUNT; i++) {
    _mi_free(blocks[i]);
  }
}

// A block that grows a little gets room to grow on; where requests are kept to the byte, they are kept of it as well.
MI_TEST(growth_keeps_the_request) {
  for (size_t size = 256; size < 60000; size += size / 3) {
    void* p = _mi_alloc(size);
    for (size_t more = 8; more < size / 2; more += more) {
      p = _mi_realloc(NULL, p, size + more, false);
      MI_REQUIRE(p != NULL);
      MI_CHECK_MSG(!MI_HAS_PADDING || _mi_usable_size(p) == size + more, "%zu and %zu bytes: %zu", size, more, _mi_usable_size(p));
    }
    _mi_free(p);
  }
}

static const struct {
  size_t align;
  size_t offset;
} mi_realloc_test_aligns[] = {{1, 0}, {16, 8}, {64, 0}, {64, 16}, {4096, 0}, {4096, 40}, {65536, 0}, {1 << 20, 0}, {1 << 20, 128}};

MI_TEST(aligned_walk) {
  uint64_t seed = 4;
  for (size_t a = 0; a < sizeof(mi_realloc_test_aligns) / sizeof(mi_realloc_test_aligns[0]); a++) {
    const size_t align = mi_realloc_test_aligns[a].align;
    const size_t offset = mi_realloc_test_aligns[a].offset;
    unsigned char* p = NULL;
    size_t size = 0;
    for (int step = 0; step < 30; step++) {
      const size_t newsize = mi_realloc_test_sizes[mi_test_random(&seed) % (SIZES - 1)];
      const bool zero = true;
      unsigned char* const q = _mi_realloc_aligned(NULL, p, newsize, align, offset, zero);
      MI_REQUIRE(q != NULL);
      MI_CHECK_MSG(((uintptr_t)q + offset) % align == 0, "%zu bytes, %zu into %zu", newsize, offset, align);
      MI_CHECK(_mi_usable_size(q) >= newsize);
      MI_CHECK(mi_test_all_bytes(q, _mi_min(size, newsize), 0xdd));
      if (newsize > size) {
        MI_CHECK_MSG(mi_test_all_bytes(q + size, newsize - size, 0), "%zu to %zu bytes, %zu into %zu", size, newsize, offset, align);
      }
      memset(q, 0xdd, newsize);
      p = q;
      size = newsize;
    }
    _mi_free(p);
  }
}

// Calls that cannot be served.
static const struct {
  size_t newsize;
  size_t align;
  int error;
} mi_realloc_test_failures[] = {
    {SIZE_MAX, 1, ENOMEM},
    {(size_t)PTRDIFF_MAX + 1, 1, ENOMEM},
    {PTRDIFF_MAX, 1, ENOMEM},
    {(size_t)PTRDIFF_MAX - MI_SLICE_SIZE, 1, ENOMEM},
    {SIZE_MAX / 4, 16, ENOMEM},
    {SIZE_MAX - 4096, 4096, ENOMEM},
    {100, 0, EINVAL},
    {100, 3, EINVAL},
    {SIZE_MAX, 24, EINVAL},
};

MI_TEST(failures_leave_the_block) {
  static const size_t sizes[] = {10, 5000, 400000, 2000000, 400 * (size_t)MI_MIB};
  _mi_option_set(mi_option_max_errors, 0);
  for (size_t s = 0; s < 5; s++) {
    void* const p = _mi_alloc(sizes[s]);
    MI_REQUIRE(p != NULL);
    const size_t usable = _mi_usable_size(p);
    mi_test_fill(p, mi_realloc_test_shown(sizes[s]), 9);
    for (size_t i = 0; i < sizeof(mi_realloc_test_failures) / sizeof(mi_realloc_test_failures[0]); i++) {
      errno = 0;
      MI_CHECK(_mi_realloc_aligned(NULL, p, mi_realloc_test_failures[i].newsize, mi_realloc_test_failures[i].align, 0, i % 2 == 0) == NULL);
      MI_CHECK_EQ(errno, mi_realloc_test_failures[i].error);
      MI_CHECK_EQ(_mi_usable_size(p), usable);
      MI_CHECK(mi_test_filled(p, mi_realloc_test_shown(sizes[s]), 9));
    }
    _mi_free(p);
  }
}

// Whether a block stays where it is, by its size before and after.
static const struct {
  size_t from;
  size_t to;
  bool stays;
} mi_realloc_test_places[] = {
    {100, 104, true},
    {100, 60, true},
    {100, 50, false},
    {100, 113, false},
    {4096, 2400, true},
    {4096, 2047, false},
    {600000, 524289, true},
    {4 * (size_t)MI_MIB, 3 * (size_t)MI_MIB, true},
    {4 * (size_t)MI_MIB, 4 * (size_t)MI_MIB - 10, true},
    {4 * (size_t)MI_MIB, 1 * (size_t)MI_MIB, true},
    {400 * (size_t)MI_MIB, 100 * (size_t)MI_MIB, true},
    {4 * (size_t)MI_MIB, 400000, true},
    {4 * (size_t)MI_MIB, MI_MEDIUM_BLOCK_MAX, false},
};

MI_TEST(places) {
  for (size_t i = 0; i < sizeof(mi_realloc_test_places) / sizeof(mi_realloc_test_places[0]); i++) {
    void* const p = _mi_alloc(mi_realloc_test_places[i].from);
    void* const q = _mi_realloc(NULL, p, mi_realloc_test_places[i].to, false);
    MI_REQUIRE(q != NULL);
    MI_CHECK_MSG((q == p) == mi_realloc_test_places[i].stays, "%zu to %zu bytes", mi_realloc_test_places[i].from, mi_realloc_test_places[i].to);
    _mi_free(q);
  }
}

MI_TEST(null_is_an_allocation) {
  void* const p = _mi_realloc(NULL, NULL, 50, true);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 50, 0));
  void* const q = _mi_realloc_aligned(NULL, NULL, 50, 4096, 0, false);
  MI_CHECK(q != NULL && _mi_is_aligned(q, 4096));
  _mi_free(p);
  _mi_free(q);
  MI_CHECK(_mi_expand(NULL, 10) == NULL);
}

MI_TEST(expand) {
  for (size_t i = 0; i < SIZES; i++) {
    for (size_t k = 0; k < SIZES; k++) {
      void* const p = _mi_alloc(mi_realloc_test_sizes[i]);
      const size_t usable = _mi_usable_size(p);
      errno = 77;
      void* const q = _mi_expand(p, mi_realloc_test_sizes[k]);
      MI_CHECK_EQ(errno, 77);
      MI_CHECK(q == NULL || q == p);
      MI_CHECK(q == NULL ? mi_realloc_test_sizes[k] > usable : _mi_usable_size(p) >= mi_realloc_test_sizes[k]);
      _mi_free(p);
    }
  }
  void* const p = _mi_alloc(2000000);
  MI_CHECK(_mi_expand(p, SIZE_MAX) == NULL && _mi_expand(p, PTRDIFF_MAX) == NULL);
  _mi_free(p);
}

// A pointer that is none of ours: reported, and not changed.
MI_TEST(bad_pointers) {
  _mi_option_set(mi_option_on_violation, MI_ON_VIOLATION_IGNORE);
  static uint64_t foreign[16];
  MI_CHECK(_mi_realloc(NULL, foreign, 100, false) == NULL);
  MI_CHECK_EQ(errno, ENOMEM);
  MI_CHECK(strstr(mi_violation_message, "foreign-free") != NULL);
  void* const p = _mi_alloc(2000000);
  MI_CHECK(_mi_realloc(NULL, (char*)p + 16, 100, false) == NULL);
  MI_CHECK(strstr(mi_violation_message, "interior-free") != NULL);
  MI_CHECK(_mi_expand((char*)p + 16, 10) == NULL);
  _mi_free(p);
  MI_CHECK(_mi_realloc(NULL, p, 3000000, false) == NULL);
  MI_CHECK(strstr(mi_violation_message, "use-after-free") != NULL);
}

// What moves is in the heap that the caller named, whether it is copied or its OS pages move; what stays, stays.
static long mi_realloc_test_faults(void) {
  struct rusage usage;
  MI_REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_minflt;
}

// However often it has moved before, in an arena or outside, what grows takes its memory along: what is copied is touched.
MI_TEST(growth_touches_only_what_is_written) {
  const size_t first = 2 * MI_MIB;
  const size_t last = 1024 * MI_MIB;
  // A block by itself says where to: the first may have to be copied into one.
  uint8_t* p = _mi_alloc(first);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, first, 5);
  const long before = mi_realloc_test_faults();
  int moves = 0;
  for (size_t size = first + first / 2; size < last; size += size / 2) {
    void* const behind = _mi_alloc(first);
    uint8_t* const q = _mi_realloc(NULL, p, size, false);
    MI_REQUIRE(q != NULL && behind != NULL);
    moves += q != p;
    p = q;
    MI_CHECK(mi_test_filled(p, first, 5));
    p[size - 1] = 1;
    _mi_free(behind);
  }
  const long pages = mi_realloc_test_faults() - before;
  // Where chance has put it where there is room it grows in place.
  MI_CHECK_MSG(MI_HAS_RANDOM_ORDER || moves >= 5, "%d moves", moves);
  // The memory sanitizer keeps a note of every byte that moves.
  MI_CHECK_MSG(MI_TRACKS || MI_HAS_FILL || MI_MSAN_BUILD || pages < 3000, "%ld faults of pages in %d moves", pages, moves);
  _mi_free(p);
}

MI_TEST(a_block_that_moves_moves_into_the_heap) {
  static const size_t sizes[][2] = {{100, 2000}, {10000, 300000}, {600000, 900000}, {2000000, 5000000}, {3000000, 1000}, {64 * MI_MIB, 2048 * (size_t)MI_MIB}};
  mi_heap_t* const from = _mi_heap_new();
  mi_heap_t* const to = _mi_heap_new();
  MI_REQUIRE(from != NULL && to != NULL);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    void* const p = _mi_theap_alloc(_mi_heap_theap(from), sizes[i][0], false);
    // Something behind it, so that it does not grow in place.
    void* const behind = _mi_theap_alloc(_mi_heap_theap(from), sizes[i][0], false);
    MI_REQUIRE(p != NULL && behind != NULL);
    mi_test_fill(p, 64, i);
    void* const q = _mi_realloc(_mi_heap_theap(to), p, sizes[i][1], false);
    MI_REQUIRE(q != NULL);
    MI_CHECK(mi_test_filled(q, 64, i));
    mi_page_t* const page = _mi_page_map_find(q);
    MI_CHECK_MSG(mi_atomic_load_relaxed(&page->heap) == (q == p ? from : to), "%zu to %zu bytes, %s", sizes[i][0], sizes[i][1],
                 q == p ? "in place" : "moved");
    // Again in the heap it is in now: it stays there.
    mi_heap_t* const now = mi_atomic_load_relaxed(&page->heap);
    void* const r = _mi_realloc(_mi_heap_theap(now), q, 2 * sizes[i][1], false);
    MI_REQUIRE(r != NULL);
    MI_CHECK_PTR_EQ(mi_atomic_load_relaxed(&_mi_page_map_find(r)->heap), now);
    _mi_free(behind);
    // The other heap's end leaves it alone, its own takes it along.
    if (i % 2 == 0) {
      _mi_free(r);
    }
  }
  _mi_heap_destroy(from);
  _mi_heap_destroy(to);
  for (size_t i = 0; i < 100; i++) {
    _mi_free(_mi_alloc(10000));
  }
}

MI_TEST_MAIN()
