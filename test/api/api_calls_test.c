// Owns: what the mi_ functions promise beyond the plain case: zero sizes, overflow, alignment, errno, zeroes, failures.
// May include: test/lib, mimalloc.h.
// Called by: the test api_calls; no C++ library is linked.
// Invariants: failed requests are of sizes that no system has, so that every test is quick.
#include <limits.h>
#include <wchar.h>

#include "mimalloc.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

// A variant may report each failed request, which most of these are.
__attribute__((constructor)) static void be_quiet(void) { mi_option_disable(mi_option_show_errors); }

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { MARK = 7777 };  // an errno that no function sets

// A request that must fail, under a name for the message; the block is freed if it does not.
static void check_fails(const char* what, void* p, int err) {
  MI_CHECK_MSG(p == NULL, "%s gave %p", what, p);
  MI_CHECK_MSG(errno == err, "%s left errno %d", what, errno);
  mi_free(p);
  errno = MARK;
}
#define FAILS(call) (errno = MARK, check_fails(#call, call, ENOMEM))
#define REFUSES(call) (errno = MARK, check_fails(#call, call, EINVAL))

static mi_heap_t* heap;

// Every way to allocate `size` bytes, some with `align`.
typedef struct way_s {
  const char* name;
  void* (*call)(size_t size, size_t align);
  bool zero;
  bool aligned;
} way_t;

#define WAY(id, expression)                          \
  static void* way_##id(size_t size, size_t align) { \
    (void)align;                                     \
    return expression;                               \
  }
WAY(malloc, mi_malloc(size))
WAY(zalloc, mi_zalloc(size))
WAY(calloc, mi_calloc(1, size))
WAY(mallocn, mi_mallocn(size, 1))
WAY(zallocn, mi_zallocn(size, 1))
WAY(realloc, mi_realloc(NULL, size))
WAY(reallocn, mi_reallocn(NULL, size, 1))
WAY(reallocf, mi_reallocf(NULL, size))
WAY(rezalloc, mi_rezalloc(NULL, size))
WAY(recalloc, mi_recalloc(NULL, size, 1))
WAY(reallocarray, mi_reallocarray(NULL, 1, size))
WAY(umalloc, mi_umalloc(size, NULL))
WAY(ucalloc, mi_ucalloc(size, 1, NULL))
WAY(urealloc, mi_urealloc(NULL, size, NULL, NULL))
WAY(valloc, mi_valloc(size))
WAY(pvalloc, mi_pvalloc(size))
WAY(new_nothrow, mi_new_nothrow(size))
WAY(malloc_aligned, mi_malloc_aligned(size, align))
WAY(zalloc_aligned, mi_zalloc_aligned(size, align))
WAY(calloc_aligned, mi_calloc_aligned(size, 1, align))
WAY(realloc_aligned, mi_realloc_aligned(NULL, size, align))
WAY(rezalloc_aligned, mi_rezalloc_aligned(NULL, size, align))
WAY(recalloc_aligned, mi_recalloc_aligned(NULL, 1, size, align))
WAY(aligned_recalloc, mi_aligned_recalloc(NULL, 1, size, align))
WAY(umalloc_aligned, mi_umalloc_aligned(size, align, NULL))
WAY(uzalloc_aligned, mi_uzalloc_aligned(size, align, NULL))
WAY(memalign, mi_memalign(align, size))
WAY(aligned_alloc, mi_aligned_alloc(align, size))
WAY(new_aligned_nothrow, mi_new_aligned_nothrow(size, align))
WAY(heap_malloc, mi_heap_malloc(heap, size))
WAY(heap_zalloc, mi_heap_zalloc(heap, size))
WAY(heap_calloc, mi_heap_calloc(heap, 1, size))
WAY(heap_mallocn, mi_heap_mallocn(heap, 1, size))
WAY(heap_realloc, mi_heap_realloc(heap, NULL, size))
WAY(heap_rezalloc, mi_heap_rezalloc(heap, NULL, size))
WAY(heap_malloc_aligned, mi_heap_malloc_aligned(heap, size, align))
WAY(heap_zalloc_aligned, mi_heap_zalloc_aligned(heap, size, align))
WAY(heap_calloc_aligned, mi_heap_calloc_aligned(heap, size, 1, align))
WAY(heap_realloc_aligned, mi_heap_realloc_aligned(heap, NULL, size, align))
WAY(heap_recalloc_aligned, mi_heap_recalloc_aligned(heap, NULL, size, 1, align))

#define PLAIN(id) \
  { #id, way_##id, false, false }
#define ZERO(id) \
  { #id, way_##id, true, false }
#define ALIGNED(id) \
  { #id, way_##id, false, true }
#define ALIGNED_ZERO(id) \
  { #id, way_##id, true, true }
static const way_t ways[] = {
    PLAIN(malloc),
    ZERO(zalloc),
    ZERO(calloc),
    PLAIN(mallocn),
    ZERO(zallocn),
    PLAIN(realloc),
    PLAIN(reallocn),
    PLAIN(reallocf),
    ZERO(rezalloc),
    ZERO(recalloc),
    PLAIN(reallocarray),
    PLAIN(umalloc),
    ZERO(ucalloc),
    PLAIN(urealloc),
    PLAIN(valloc),
    PLAIN(pvalloc),
    PLAIN(new_nothrow),
    ALIGNED(malloc_aligned),
    ALIGNED_ZERO(zalloc_aligned),
    ALIGNED_ZERO(calloc_aligned),
    ALIGNED(realloc_aligned),
    ALIGNED_ZERO(rezalloc_aligned),
    ALIGNED_ZERO(recalloc_aligned),
    ALIGNED_ZERO(aligned_recalloc),
    ALIGNED(umalloc_aligned),
    ALIGNED_ZERO(uzalloc_aligned),
    ALIGNED(memalign),
    ALIGNED(aligned_alloc),
    ALIGNED(new_aligned_nothrow),
    PLAIN(heap_malloc),
    ZERO(heap_zalloc),
    ZERO(heap_calloc),
    PLAIN(heap_mallocn),
    PLAIN(heap_realloc),
    ZERO(heap_rezalloc),
    ALIGNED(heap_malloc_aligned),
    ALIGNED_ZERO(heap_zalloc_aligned),
    ALIGNED_ZERO(heap_calloc_aligned),
    ALIGNED(heap_realloc_aligned),
    ALIGNED_ZERO(heap_recalloc_aligned),
};

static const size_t sizes[] = {0, 1, 8, 16, 17, 100, 1024, 1025, 8192, 8193, 65536, 65537, 600000, 5000000};

MI_TEST(every_way_every_size) {
  heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  for (size_t w = 0; w < COUNT(ways); w++) {
    for (size_t s = 0; s < COUNT(sizes); s++) {
      for (size_t align = 16; align <= (ways[w].aligned ? 65536 : 16); align *= 16) {
        errno = MARK;
        void* const p = ways[w].call(sizes[s], align);
        void* const q = ways[w].call(sizes[s], align);
        MI_CHECK_MSG(p != NULL && q != NULL && p != q, "%s(%zu, %zu): %p %p", ways[w].name, sizes[s], align, p, q);
        if (p == NULL || q == NULL) return;
        MI_CHECK_MSG((uintptr_t)p % align == 0 && (uintptr_t)q % align == 0, "%s(%zu, %zu): %p %p", ways[w].name, sizes[s], align, p, q);
        MI_CHECK_MSG(mi_usable_size(p) >= sizes[s], "%s(%zu): %zu", ways[w].name, sizes[s], mi_usable_size(p));
        if (ways[w].zero) MI_CHECK_MSG(mi_test_all_bytes(p, sizes[s], 0), "%s(%zu) is not zero", ways[w].name, sizes[s]);
        // All of the usable size may be written, and the next block of that size has seen use.
        mi_test_fill(p, mi_usable_size(p), 1);
        mi_test_fill(q, mi_usable_size(q), 2);
        MI_CHECK_MSG(mi_test_filled(p, mi_usable_size(p), 1), "%s(%zu): overlaps", ways[w].name, sizes[s]);
        mi_free(p);
        mi_free(q);
        MI_CHECK_MSG(errno == MARK, "%s(%zu) changed errno", ways[w].name, sizes[s]);
      }
    }
  }
  mi_heap_destroy(heap);
}

MI_TEST(too_large) {
  heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  const size_t large[] = {SIZE_MAX, SIZE_MAX - 8, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX - 65536};
  for (size_t w = 0; w < COUNT(ways); w++) {
    for (size_t i = 0; i < COUNT(large); i++) {
      errno = MARK;
      check_fails(ways[w].name, ways[w].call(large[i], 4096), ENOMEM);
    }
  }
  mi_heap_destroy(heap);
}

MI_TEST(product_overflow) {
  heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  const size_t half = mi_test_hide_size(SIZE_MAX / 2 + 2);  // times 2 it wraps to 2
  FAILS(mi_calloc(half, 2));
  FAILS(mi_calloc(2, half));
  FAILS(mi_mallocn(half, 2));
  FAILS(mi_zallocn(half, 2));
  FAILS(mi_ucalloc(half, 2, NULL));
  FAILS(mi_calloc_aligned(half, 2, 64));
  FAILS(mi_calloc_aligned_at(half, 2, 64, 8));
  FAILS(mi_heap_calloc(heap, half, 2));
  FAILS(mi_heap_mallocn(heap, half, 2));
  FAILS(mi_heap_calloc_aligned(heap, half, 2, 64));
  FAILS(mi_heap_calloc_aligned_at(heap, half, 2, 64, 8));
  void* p = mi_malloc(100);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, 100, 5);
  FAILS(mi_reallocn(p, half, 2));
  FAILS(mi_recalloc(p, half, 2));
  FAILS(mi_reallocarray(p, half, 2));
  FAILS(mi_recalloc_aligned(p, half, 2, 64));
  FAILS(mi_recalloc_aligned_at(p, half, 2, 64, 8));
  FAILS(mi_aligned_recalloc(p, half, 2, 64));
  FAILS(mi_aligned_offset_recalloc(p, half, 2, 64, 8));
  FAILS(mi_heap_reallocn(heap, p, half, 2));
  FAILS(mi_heap_recalloc(heap, p, half, 2));
  FAILS(mi_heap_recalloc_aligned(heap, p, half, 2, 64));
  FAILS(mi_realloc(p, half));
  FAILS(mi_rezalloc(p, half));
  FAILS(mi_realloc_aligned(p, half, 64));
  FAILS(mi_heap_realloc(heap, p, half));
  void* kept = p;
  errno = MARK;
  MI_CHECK_EQ(mi_reallocarr(&p, half, 2), EOVERFLOW);
  MI_CHECK_EQ(mi_reallocarr(&p, half, 1), ENOMEM);
  MI_CHECK_EQ(errno, MARK);
  MI_CHECK_PTR_EQ(p, kept);
  MI_CHECK(mi_test_filled(p, 100, 5));
  mi_free(p);
  mi_heap_destroy(heap);
}

// A wrong alignment is refused whatever the size; posix_memalign tells by its result.
MI_TEST(bad_alignment) {
  const size_t bad[] = {0, 3, 24, 48, 4095, SIZE_MAX};
  for (size_t i = 0; i < COUNT(bad); i++) {
    const size_t align = mi_test_hide_size(bad[i]);
    REFUSES(mi_malloc_aligned(10, align));
    REFUSES(mi_malloc_aligned_at(10, align, 8));
    REFUSES(mi_zalloc_aligned(10, align));
    REFUSES(mi_calloc_aligned(2, 10, align));
    REFUSES(mi_memalign(align, 10));
    REFUSES(mi_aligned_alloc(align, 10));
    REFUSES(mi_umalloc_aligned(10, align, NULL));
    void* p = mi_malloc(10);
    REFUSES(mi_realloc_aligned(p, 100, align));
    REFUSES(mi_realloc_aligned(NULL, 100, align));
    mi_free(p);
    errno = MARK;
    check_fails("mi_new_aligned_nothrow", mi_new_aligned_nothrow(10, align), ENOMEM);
  }
  int mark = 0;
  errno = MARK;
  void* p = &mark;
  const size_t refused[] = {0, 1, 2, sizeof(void*) / 2, sizeof(void*) + 4, 3 * sizeof(void*), 24, 4097};
  for (size_t i = 0; i < COUNT(refused); i++) {
    MI_CHECK_EQ(mi_posix_memalign(&p, refused[i], 10), EINVAL);
    MI_CHECK_EQ(mi__posix_memalign(&p, refused[i], 10), EINVAL);
  }
  MI_CHECK_EQ(mi_posix_memalign(NULL, 64, 10), EINVAL);
  MI_CHECK_EQ(mi_posix_memalign(&p, 64, SIZE_MAX), ENOMEM);
  MI_CHECK_EQ(mi_posix_memalign(&p, 64, (size_t)PTRDIFF_MAX - 10), ENOMEM);
  MI_CHECK_PTR_EQ(p, &mark);
  MI_CHECK_EQ(errno, MARK);
  for (size_t align = sizeof(void*); align <= (size_t)1 << 26; align *= 2) {
    MI_CHECK_EQ(mi_posix_memalign(&p, align, 10), 0);
    MI_CHECK(p != NULL && (uintptr_t)p % align == 0);
    mi_free(p);
  }
}

MI_TEST(alignment_with_offset) {
  const size_t offsets[] = {0, 1, 8, 24, 64, 100, 4000, 70000};
  for (size_t align = 1; align <= 65536; align *= 4) {
    for (size_t o = 0; o < COUNT(offsets); o++) {
      const size_t offset = offsets[o];
      for (size_t s = 0; s + 2 < COUNT(sizes); s++) {
        void* p = mi_zalloc_aligned_at(sizes[s], align, offset);
        if (!MI_CHECK_MSG(p != NULL && ((uintptr_t)p + offset) % align == 0, "%zu %zu %zu: %p", sizes[s], align, offset, p)) continue;
        MI_CHECK(mi_test_all_bytes(p, sizes[s], 0));
        mi_test_fill(p, sizes[s], align);
        const size_t grown = sizes[s] * 3 + 10;
        p = mi_realloc_aligned_at(p, grown, align, offset);
        if (!MI_CHECK_MSG(p != NULL && ((uintptr_t)p + offset) % align == 0, "%zu %zu %zu: %p", grown, align, offset, p)) continue;
        MI_CHECK(mi_test_filled(p, sizes[s], align));
        MI_CHECK(mi_usable_size(p) >= grown);
        memset(p, 1, mi_usable_size(p));
        mi_free(p);
      }
    }
  }
}

MI_TEST(large_alignment_and_offset) {
  const size_t lengths[] = {0, 100, 100000, 600000, 5000000};
  const size_t offsets[] = {0, 16, 4096, 70000, 600000};
  for (size_t align = 64; align <= (size_t)1 << 30; align *= 8) {
    for (size_t o = 0; o < COUNT(offsets); o++) {
      for (size_t s = 0; s < COUNT(lengths); s++) {
        errno = MARK;
        void* const p = mi_zalloc_aligned_at(lengths[s], align, offsets[o]);
        if (!MI_CHECK_MSG(p != NULL && ((uintptr_t)p + offsets[o]) % align == 0, "%zu bytes, alignment %zu, offset %zu: %p",
                          lengths[s], align, offsets[o], p)) {
          continue;
        }
        MI_CHECK_EQ(errno, MARK);
        MI_CHECK(mi_test_all_bytes(p, lengths[s], 0));
        memset(p, 1, mi_usable_size(p) < lengths[s] + 65536 ? mi_usable_size(p) : lengths[s]);
        mi_free(p);
      }
    }
  }
}

MI_TEST(realloc_keeps) {
  for (size_t a = 0; a < COUNT(sizes); a++) {
    for (size_t b = 0; b < COUNT(sizes); b++) {
      void* p = mi_malloc(sizes[a]);
      MI_REQUIRE(p != NULL);
      mi_test_fill(p, sizes[a], a);
      errno = MARK;
      p = mi_realloc(p, sizes[b]);
      MI_REQUIRE(p != NULL);
      MI_CHECK_EQ(errno, MARK);
      const size_t least = sizes[a] < sizes[b] ? sizes[a] : sizes[b];
      MI_CHECK_MSG(mi_test_filled(p, least - least % 8, a), "from %zu to %zu", sizes[a], sizes[b]);
      MI_CHECK(mi_usable_size(p) >= sizes[b]);
      mi_free(p);
    }
  }
}

MI_TEST(reallocf_frees) {
  // Were the old blocks kept, these would add up to 64 GiB.
  for (int i = 0; i < 4096; i++) {
    void* p = mi_malloc((size_t)16 << 20);
    MI_REQUIRE(p != NULL);
    FAILS(mi_reallocf(p, mi_test_hide_size(SIZE_MAX)));
  }
  size_t commit = 0;
  mi_collect(true);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &commit, NULL, NULL);
  MI_CHECK_MSG(commit < (size_t)1 << 32, "%zu bytes are committed", commit);
}

MI_TEST(expand) {
  for (size_t s = 0; s < COUNT(sizes); s++) {
    void* const p = mi_malloc(sizes[s]);
    MI_REQUIRE(p != NULL);
    mi_test_fill(p, sizes[s], s);
    errno = MARK;
    const size_t usable = mi_usable_size(p);
    MI_CHECK_PTR_EQ(mi_expand(p, usable), p);
    MI_CHECK_PTR_EQ(mi__expand(p, sizes[s]), p);
    MI_CHECK_EQ(errno, MARK);
    // Growing may work or not, but never moves.
    void* const q = mi_expand(p, 2 * usable + 1);
    MI_CHECK(q == p || (q == NULL && errno == ENOMEM));
    if (q != NULL) MI_CHECK(mi_usable_size(p) >= 2 * usable + 1);
    MI_CHECK_PTR_EQ(mi_expand(p, mi_test_hide_size(SIZE_MAX)), NULL);
    MI_CHECK_EQ(errno, ENOMEM);
    MI_CHECK(mi_test_filled(p, sizes[s], s));
    mi_free(p);
  }
  FAILS(mi_expand(NULL, 10));
  FAILS(mi__expand(NULL, 10));
}

typedef void* resize_t(void* p, size_t size);
static void* by_rezalloc(void* p, size_t size) { return mi_rezalloc(p, size); }
static void* by_recalloc(void* p, size_t size) { return mi_recalloc(p, 1, size); }
static void* by_rezalloc_aligned(void* p, size_t size) { return mi_rezalloc_aligned(p, size, 64); }
static void* by_recalloc_at(void* p, size_t size) { return mi_recalloc_aligned_at(p, size, 1, 64, 16); }
static void* by_heap(void* p, size_t size) { return mi_heap_rezalloc(heap, p, size); }

MI_TEST(zeroes_survive_resizing) {
  heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  resize_t* const resizers[] = {by_rezalloc, by_recalloc, by_rezalloc_aligned, by_recalloc_at, by_heap};
  // Up, down, a little, a lot; the byte written each time is never zero and must not come back beyond the old size.
  const size_t steps[] = {10, 100, 60, 61, 100, 5000, 3000, 3001, 4999, 5000, 200000, 100, 300, 130000, 129000, 132000, 3000000, 1600000, 2900000, 1, 17, 40};
  for (size_t r = 0; r < COUNT(resizers); r++) {
    unsigned char* p = NULL;
    size_t size = 0;
    for (size_t i = 0; i < COUNT(steps); i++) {
      unsigned char* const q = resizers[r](p, steps[i]);
      if (!MI_CHECK_MSG(q != NULL, "resizer %zu, step %zu: %zu to %zu", r, i, size, steps[i])) break;
      if (steps[i] > size) {
        MI_CHECK_MSG(mi_test_all_bytes(q + size, steps[i] - size, 0), "resizer %zu, step %zu: %zu to %zu", r, i, size, steps[i]);
      }
      const size_t least = size < steps[i] ? size : steps[i];
      MI_CHECK_MSG(mi_test_all_bytes(q, least, (int)i), "resizer %zu, step %zu", r, i);
      memset(q, (int)i + 1, steps[i]);
      p = q;
      size = steps[i];
    }
    mi_free(p);
  }
  mi_heap_destroy(heap);
}

MI_TEST(sizes_told) {
  size_t pre = MARK;
  size_t post = MARK;
  void* p = mi_urealloc(NULL, 100, &pre, &post);
  MI_CHECK(pre == 0 && post >= 100 && post == mi_usable_size(p));
  const size_t usable = post;
  MI_CHECK_PTR_EQ(mi_urealloc(p, mi_test_hide_size(SIZE_MAX), &pre, &post), NULL);
  MI_CHECK(pre == usable && post == 0);
  p = mi_urealloc(p, 50000, &pre, &post);
  MI_CHECK(pre == usable && post >= 50000 && post == mi_usable_size(p));
  pre = MARK;
  mi_ufree(p, &pre);
  MI_CHECK_EQ(pre, post);
  mi_ufree(NULL, &pre);
  MI_CHECK_EQ(pre, 0);
  mi_ufree(mi_umalloc(10, NULL), NULL);
  post = MARK;
  MI_CHECK_PTR_EQ(mi_umalloc(mi_test_hide_size(SIZE_MAX), &post), NULL);
  MI_CHECK_EQ(post, 0);
  MI_CHECK_EQ(mi_usable_size(NULL), 0);
  for (size_t s = 0; s < COUNT(sizes); s++) {
    const size_t good = mi_good_size(sizes[s]);
    MI_CHECK_MSG(good >= sizes[s], "%zu of %zu", good, sizes[s]);
    p = mi_malloc(good);
    void* q = mi_malloc(sizes[s]);
    const size_t a = mi_usable_size(p);
    const size_t b = mi_usable_size(q);
    // Or each has exactly what was asked for. A large block may end at a guard, with the rest of its place before it: the place decides what is usable.
    const bool by_place = sizes[s] > 512 * 1024 && good == sizes[s];
    MI_CHECK_MSG((by_place ? a >= good && b >= good : a == b) || (a == good && b == sizes[s]), "%zu: %zu and %zu", sizes[s], a, b);
    mi_free(p);
    mi_free(q);
  }
}

MI_TEST(reallocarr) {
  errno = MARK;
  char* p = NULL;
  MI_CHECK_EQ(mi_reallocarr(&p, 10, 10), 0);
  MI_REQUIRE(p != NULL);
  memset(p, 3, 100);
  MI_CHECK_EQ(mi_reallocarr(&p, 1000, 10), 0);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 100, 3));
  char* const kept = p;
  MI_CHECK_EQ(mi_reallocarr(&p, 10, 0), EINVAL);
  MI_CHECK_EQ(mi_reallocarr(NULL, 10, 10), EINVAL);
  MI_CHECK_PTR_EQ(p, kept);
  MI_CHECK_EQ(mi_reallocarr(&p, 0, 10), 0);
  MI_CHECK_PTR_EQ(p, NULL);
  MI_CHECK_EQ(mi_reallocarr(&p, 0, 10), 0);
  MI_CHECK_EQ(errno, MARK);
}

MI_TEST(strings) {
  errno = MARK;
  MI_CHECK_PTR_EQ(mi_strdup(NULL), NULL);
  MI_CHECK_PTR_EQ(mi_strndup(NULL, 3), NULL);
  MI_CHECK_PTR_EQ(mi_wcsdup(NULL), NULL);
  MI_CHECK_PTR_EQ(mi_mbsdup(NULL), NULL);
  char* s = mi_strdup("");
  MI_CHECK_STREQ(s, "");
  mi_free(s);
  // Not zero-terminated: nothing beyond n is read.
  const char text[4] = {'t', 'e', 'x', 't'};
  s = mi_strndup(text, 4);
  MI_CHECK_STREQ(s, "text");
  mi_free(s);
  s = mi_strndup("ab", 10);
  MI_CHECK_STREQ(s, "ab");
  MI_CHECK(mi_is_in_heap_region(s));
  mi_free(s);
  s = mi_strndup("ab", SIZE_MAX);
  MI_CHECK_STREQ(s, "ab");
  mi_free(s);
  wchar_t* w = mi_wcsdup(L"w\u00e4lder");
  MI_CHECK(w != NULL && wcscmp(w, L"w\u00e4lder") == 0);
  mi_free(w);
  MI_CHECK_EQ(errno, MARK);
}

MI_TEST(paths) {
  errno = MARK;
  char buffer[PATH_MAX];
  MI_CHECK_PTR_EQ(mi_realpath("/usr/../", buffer), buffer);
  MI_CHECK_STREQ(buffer, "/");
  char* p = mi_realpath("/usr/.././usr", NULL);
  MI_CHECK_STREQ(p, "/usr");
  MI_CHECK(mi_is_in_heap_region(p));
  mi_free(p);
  MI_CHECK_EQ(errno, MARK);
  MI_CHECK_PTR_EQ(mi_realpath("/there/is/no/such/path", NULL), NULL);
  MI_CHECK_EQ(errno, ENOENT);
  MI_CHECK_PTR_EQ(mi_realpath("", buffer), NULL);
  MI_CHECK_EQ(errno, ENOENT);
}

MI_TEST(environment) {
  MI_REQUIRE(setenv("MI_API_TEST", "value", 1) == 0);
  unsetenv("MI_API_TEST_ABSENT");
  errno = MARK;
  char* s = NULL;
  size_t size = MARK;
  MI_CHECK_EQ(mi_dupenv_s(&s, &size, "MI_API_TEST"), 0);
  MI_CHECK_STREQ(s, "value");
  MI_CHECK_EQ(size, 6);
  MI_CHECK(mi_is_in_heap_region(s));
  mi_free(s);
  MI_CHECK_EQ(mi_dupenv_s(&s, NULL, "MI_API_TEST"), 0);
  mi_free(s);
  MI_CHECK_EQ(mi_dupenv_s(&s, &size, "MI_API_TEST_ABSENT"), 0);
  MI_CHECK(s == NULL && size == 0);
  MI_CHECK_EQ(mi_dupenv_s(NULL, &size, "MI_API_TEST"), EINVAL);
  MI_CHECK_EQ(mi_dupenv_s(&s, &size, NULL), EINVAL);
  wchar_t* w = NULL;
  MI_CHECK_EQ(mi_wdupenv_s(&w, &size, L"MI_API_TEST"), 0);
  MI_CHECK(w != NULL && wcscmp(w, L"value") == 0);
  MI_CHECK_EQ(size, 6);
  mi_free(w);
  MI_CHECK_EQ(mi_wdupenv_s(&w, &size, L"MI_API_TEST_ABSENT"), 0);
  MI_CHECK(w == NULL && size == 0);
  MI_CHECK_EQ(mi_wdupenv_s(NULL, &size, L"MI_API_TEST"), EINVAL);
  MI_CHECK_EQ(mi_wdupenv_s(&w, &size, L"M\u00e4rz"), EILSEQ);  // not in the C locale
  MI_CHECK_EQ(errno, MARK);
}

MI_TEST(cfree_is_choosy) {
  int local = 0;
  static int global;
  MI_CHECK(!mi_cfree(&local) && !mi_cfree(&global) && !mi_cfree(NULL));
  MI_CHECK(mi_cfree(mi_malloc(10)));
}

MI_TEST(free_keeps_errno) {
  for (size_t s = 0; s < COUNT(sizes); s++) {
    void* p[5];
    for (size_t i = 0; i < COUNT(p); i++) p[i] = mi_malloc(sizes[s]);
    errno = MARK;
    mi_free(p[0]);
    mi_free_size(p[1], sizes[s]);
    mi_cfree(p[2]);
    mi_ufree(p[3], NULL);
    mi_free_small(p[4]);
    mi_free(NULL);
    mi_free_size(NULL, 10);
    mi_free_size_aligned(NULL, 10, 64);
    mi_free_aligned(NULL, 64);
    mi_free_small(NULL);
    mi_free_small_local(NULL);
    MI_CHECK_MSG(errno == MARK, "size %zu", sizes[s]);
  }
}

// In a program without a C++ library there is nothing to throw: it ends, and says why in one line.
static void call_new(void* arg) {
  (void)arg;
  void* const p = mi_new(mi_test_hide_size(SIZE_MAX / 2));
  mi_free(p);
}
static void call_new_n(void* arg) {
  (void)arg;
  void* const p = mi_new_n(mi_test_hide_size(SIZE_MAX / 2), 4);
  mi_free(p);
}
static void call_new_aligned(void* arg) {
  (void)arg;
  void* const p = mi_new_aligned(10, mi_test_hide_size(48));
  mi_free(p);
}

MI_TEST(new_without_cxx_aborts) {
  void (*const calls[])(void*) = {call_new, call_new_n, call_new_aligned};
  for (size_t i = 0; i < COUNT(calls); i++) {
    static mi_test_child_t child;
    mi_test_child_run(&child, calls[i], NULL, 10000);
    MI_CHECK_EQ(child.signal, SIGABRT);
    MI_CHECK_MSG(strncmp(child.err, "mimalloc", 8) == 0 && strstr(child.err, ": out-of-memory: ") != NULL, "call %zu said: %s", i, child.err);
    const char* const end = strchr(child.err, '\n');
    MI_CHECK_MSG(end != NULL && end[1] == 0, "more than a line: %s", child.err);
  }
  FAILS(mi_new_nothrow(mi_test_hide_size(SIZE_MAX / 2)));
}

MI_TEST_MAIN()
