// Owns: tests of alloc/aligned: every alignment with every size and offset, and requests that cannot be served.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what is written to one block spoils no other.
#include <errno.h>
#include <pthread.h>

#include "src/alloc/alloc.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/test.h"

static const size_t mi_aligned_test_sizes[] = {0, 1, 15, 16, 17, 100, 1000, 1024, 4096, 4097, 60000, 65536, 70000, 524288, 524289, 1100000};
enum { SIZES = sizeof(mi_aligned_test_sizes) / sizeof(mi_aligned_test_sizes[0]),
       EACH = 3 };

static unsigned char* mi_aligned_test_blocks[SIZES * EACH];

static void mi_aligned_test_offset(size_t align, size_t offset, bool zero) {
  for (size_t i = 0; i < SIZES * EACH; i++) {
    const size_t size = mi_aligned_test_sizes[i / EACH];
    errno = 77;
    unsigned char* const p = _mi_alloc_aligned(NULL, size, align, offset, zero);
    MI_REQUIRE(p != NULL);
    MI_CHECK_EQ(errno, 77);
    MI_CHECK_MSG(((uintptr_t)p + offset) % align == 0, "%zu bytes, %zu into a multiple of %zu: %p", size, offset, align, (void*)p);
    const size_t usable = _mi_usable_size(p);
    MI_CHECK(usable >= size);
    MI_CHECK(_mi_is_in_heap(p));
    const size_t shown = _mi_min(usable, size + 70000);
    MI_CHECK_MSG(!zero || mi_test_all_bytes(p, shown, 0), "%zu bytes, %zu into a multiple of %zu are not zero", size, offset, align);
    mi_test_fill(p, shown, (uintptr_t)p);
    mi_aligned_test_blocks[i] = p;
  }
  for (size_t i = 0; i < SIZES * EACH; i++) {
    unsigned char* const p = mi_aligned_test_blocks[i];
    const size_t shown = _mi_min(_mi_usable_size(p), mi_aligned_test_sizes[i / EACH] + 70000);
    MI_CHECK_MSG(mi_test_filled(p, shown, (uintptr_t)p), "%zu into a multiple of %zu: spoilt", offset, align);
    errno = 77;
    _mi_free(p);
    MI_CHECK_EQ(errno, 77);
  }
}

MI_TEST(every_alignment) {
  static const size_t offsets[] = {0, 1, 8, 16, 24, 4096, 65536, SIZE_MAX, SIZE_MAX - 15};
  for (size_t align = 1; align <= 2 * (size_t)MI_MIB; align *= align < 64 ? 2 : 8) {
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
      mi_aligned_test_offset(align, offsets[i], (i & 1) == 0);
    }
  }
  _mi_collect(true);
  MI_CHECK(_mi_stat_view(&_mi_stats.pages).current <= 2);
}

MI_TEST(huge_alignments) {
  for (size_t align = 4 * (size_t)MI_MIB; align <= 1024 * (size_t)MI_MIB; align *= 4) {
    for (size_t offset = 0; offset <= 32; offset += 32) {
      unsigned char* const p = _mi_alloc_aligned(NULL, 100, align, offset, true);
      MI_REQUIRE(p != NULL);
      MI_CHECK_EQ(((uintptr_t)p + offset) % align, 0);
      MI_CHECK(mi_test_all_bytes(p, 100, 0));
      memset(p, 1, _mi_min(_mi_usable_size(p), 100000));
      _mi_free(p);
      MI_CHECK(!_mi_is_in_heap(p));
    }
  }
}

// Rounding the size is all that an alignment costs up to a slice.
MI_TEST(cost) {
  for (size_t align = 16; align <= MI_SLICE_SIZE; align *= 2) {
    for (size_t size = 1; size < 400000; size = size * 3 + 1) {
      void* const p = _mi_alloc_aligned(NULL, size, align, 0, false);
      MI_REQUIRE(p != NULL);
      // A block by itself needs no room for a trailer.
      const size_t block = _mi_align_up(size + MI_BLOCK_EXTRA, align);
      MI_CHECK_MSG(_mi_page_map_find(p)->block_size == _mi_sizeclass_round(block), "%zu bytes at %zu: %zu", size, align, _mi_usable_size(p));
      MI_CHECK(_mi_usable_size(p) == (MI_HAS_PADDING ? size : _mi_good_size(block)));
      _mi_free(p);
    }
  }
}

static const struct {
  size_t size;
  size_t align;
  size_t offset;
  int error;
} mi_aligned_test_failures[] = {
    {10, 0, 0, EINVAL},
    {10, 3, 0, EINVAL},
    {10, 48, 0, EINVAL},
    {10, SIZE_MAX, 0, EINVAL},
    {SIZE_MAX, 0, 0, EINVAL},
    {SIZE_MAX, 16, 0, ENOMEM},
    {PTRDIFF_MAX, 1, 0, ENOMEM},
    {PTRDIFF_MAX, 64, 0, ENOMEM},
    {(size_t)PTRDIFF_MAX - 64, 64, 8, ENOMEM},
    {(size_t)PTRDIFF_MAX - MI_SLICE_SIZE, 16, 8, ENOMEM},
    {(size_t)PTRDIFF_MAX - 100000, 65536, 0, ENOMEM},
    {10, (size_t)1 << 62, 0, ENOMEM},
    {10, (size_t)1 << 62, 8, ENOMEM},
    {10, (size_t)1 << 63, 0, ENOMEM},
    {10, (size_t)1 << 47, 0, ENOMEM},
    {10, (size_t)1 << 47, 16, ENOMEM},
};

MI_TEST(failures) {
  _mi_option_set(mi_option_max_errors, 0);
  for (size_t i = 0; i < sizeof(mi_aligned_test_failures) / sizeof(mi_aligned_test_failures[0]); i++) {
    for (int zero = 0; zero < 2; zero++) {
      errno = 0;
      void* const p = _mi_alloc_aligned(NULL, mi_aligned_test_failures[i].size, mi_aligned_test_failures[i].align,
                                        mi_aligned_test_failures[i].offset, zero != 0);
      MI_CHECK_MSG(p == NULL, "row %zu", i);
      MI_CHECK_MSG(errno == mi_aligned_test_failures[i].error, "row %zu", i);
    }
  }
}

// Blocks with an offset, freed by another thread, in pages that plain blocks share.
static void* mi_aligned_test_free_all(void* arg) {
  for (size_t i = 0; i < SIZES * EACH; i++) {
    _mi_free(mi_aligned_test_blocks[i]);
  }
  return arg;
}

MI_TEST(freed_elsewhere) {
  for (int round = 0; round < 40; round++) {
    for (size_t i = 0; i < SIZES * EACH; i++) {
      const size_t size = mi_aligned_test_sizes[i / EACH];
      mi_aligned_test_blocks[i] = i % 2 == 0 ? _mi_alloc_aligned(NULL, size, 64, 16, false) : _mi_alloc(size + 64);
      MI_REQUIRE(mi_aligned_test_blocks[i] != NULL);
    }
    pthread_t thread;
    MI_REQUIRE(pthread_create(&thread, NULL, &mi_aligned_test_free_all, NULL) == 0);
    pthread_join(thread, NULL);
  }
  _mi_collect(true);
  MI_CHECK(_mi_stat_view(&_mi_stats.pages).current <= 2);
}

// A thread without a theap of its own.
static void* mi_aligned_test_late(void* arg) {
  _mi_free(_mi_alloc(10));
  _mi_thread_done();
  mi_aligned_test_offset(64, 16, true);
  mi_aligned_test_offset(4096, 0, false);
  mi_aligned_test_offset(MI_MIB, 8, true);
  return arg;
}

MI_TEST(late_threads) {
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_aligned_test_late, NULL) == 0);
  pthread_join(thread, NULL);
}

MI_TEST_MAIN()
