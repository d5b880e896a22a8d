// Owns: the contract of the mi_ calls: zero bytes on every path, expansion in place, sizes, offsets, aligned reallocation.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt; the names are looked up in whatever library is preloaded.
// Invariants: declares what it uses by itself, so that it also checks the binary interface.
// Flags: -ldl -fno-builtin
#define _GNU_SOURCE 1
#include <wchar.h>

#include "test/lib/names.h"
#include "test/lib/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
enum { MARK = 4242 };

// X(return type, name, parameters)
#define CALLS(X)                                                   \
  X(void*, mi_malloc, (size_t))                                    \
  X(void*, mi_calloc, (size_t, size_t))                            \
  X(void*, mi_zalloc, (size_t))                                    \
  X(void*, mi_realloc, (void*, size_t))                            \
  X(void*, mi_expand, (void*, size_t))                             \
  X(void, mi_free, (void*))                                        \
  X(void*, mi_mallocn, (size_t, size_t))                           \
  X(void*, mi_reallocn, (void*, size_t, size_t))                   \
  X(void*, mi_reallocf, (void*, size_t))                           \
  X(void*, mi_rezalloc, (void*, size_t))                           \
  X(void*, mi_recalloc, (void*, size_t, size_t))                   \
  X(void*, mi_malloc_small, (size_t))                              \
  X(void*, mi_zalloc_small, (size_t))                              \
  X(size_t, mi_usable_size, (const void*))                         \
  X(size_t, mi_good_size, (size_t))                                \
  X(void*, mi_umalloc, (size_t, size_t*))                          \
  X(void*, mi_ucalloc, (size_t, size_t, size_t*))                  \
  X(void*, mi_urealloc, (void*, size_t, size_t*, size_t*))         \
  X(void, mi_ufree, (void*, size_t*))                              \
  X(void*, mi_malloc_aligned, (size_t, size_t))                    \
  X(void*, mi_malloc_aligned_at, (size_t, size_t, size_t))         \
  X(void*, mi_zalloc_aligned, (size_t, size_t))                    \
  X(void*, mi_zalloc_aligned_at, (size_t, size_t, size_t))         \
  X(void*, mi_calloc_aligned_at, (size_t, size_t, size_t, size_t)) \
  X(void*, mi_realloc_aligned, (void*, size_t, size_t))            \
  X(void*, mi_realloc_aligned_at, (void*, size_t, size_t, size_t)) \
  X(void*, mi_rezalloc_aligned, (void*, size_t, size_t))           \
  X(void*, mi_recalloc_aligned, (void*, size_t, size_t, size_t))   \
  X(void*, mi_reallocarray, (void*, size_t, size_t))               \
  X(int, mi_posix_memalign, (void**, size_t, size_t))              \
  X(void, mi_free_size, (void*, size_t))                           \
  X(void, mi_free_aligned, (void*, size_t))                        \
  X(void, mi_free_size_aligned, (void*, size_t, size_t))           \
  X(void, mi_cfree, (void*))                                       \
  X(char*, mi_strdup, (const char*))                               \
  X(char*, mi_strndup, (const char*, size_t))                      \
  X(char*, mi_realpath, (const char*, char*))                      \
  X(wchar_t*, mi_wcsdup, (const wchar_t*))                         \
  X(int, mi_dupenv_s, (char**, size_t*, const char*))              \
  X(void*, mi_new_nothrow, (size_t))                               \
  X(void*, mi_new_aligned_nothrow, (size_t, size_t))               \
  X(void*, mi_new_n, (size_t, size_t))                             \
  X(void*, mi_new_realloc, (void*, size_t))                        \
  X(void, mi_collect, (bool))                                      \
  X(int, mi_version, (void))                                       \
  X(bool, mi_is_in_heap_region, (const void*))                     \
  X(bool, mi_check_owned, (const void*))                           \
  X(void, mi_thread_init, (void))                                  \
  X(void, mi_thread_done, (void))                                  \
  X(void, mi_process_info, (size_t*, size_t*, size_t*, size_t*, size_t*, size_t*, size_t*, size_t*))

CALLS(MI_TEST_NAME)

static const size_t sizes[] = {0, 1, 7, 8, 9, 16, 24, 32, 33, 48, 64, 100, 127, 128, 200, 500, 1000,
                               1024, 1025, 4095, 4096, 8192, 8193, 16000, 40000, 65536, 65537, 131072, 300000, 524288, 524289, 1048576, 3145728, 5000000};

MI_TEST(names_are_there) {
  CALLS(MI_TEST_LOOK_UP)
  // Nothing below can run without them.
  if (mi_test_failure_count() > 0) _exit(1);
  MI_CHECK(mi_version() >= 30000);
}

MI_TEST(zeroing) {
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < COUNT(sizes); i++) {
      const size_t n = sizes[i];
      void* p[8] = {mi_zalloc(n), mi_calloc(1, n), mi_zalloc_aligned(n, 512), mi_zalloc_aligned_at(n, 64, 24), mi_ucalloc(n, 1, NULL), mi_rezalloc(NULL, n),
                    mi_recalloc(NULL, n, 1), mi_calloc_aligned_at(n, 1, 4096, 8)};
      for (size_t k = 0; k < COUNT(p); k++) {
        MI_REQUIRE(p[k] != NULL);
        MI_CHECK_MSG(mi_test_all_bytes(p[k], n, 0) && (n == 0 || *(char*)p[k] == 0), "form %zu, %zu bytes, round %d", k, n, round);
        memset(p[k], 0xa7, mi_usable_size(p[k]));
      }
      for (size_t k = 0; k < COUNT(p); k++) mi_free(p[k]);
    }
  }
  void* p = mi_zalloc_small(100);
  MI_CHECK(mi_test_all_bytes(p, 100, 0) && *(char*)p == 0);
  mi_free(p);
}

MI_TEST(no_stale_byte) {
  // Shrink and grow again: every byte that the block gains reads zero, whatever was there before.
  uint64_t seed = 7;
  for (int aligned = 0; aligned < 2; aligned++) {
    for (int chain = 0; chain < 60; chain++) {
      size_t n = 0;
      unsigned char* p = NULL;
      for (int step = 0; step < 12; step++) {
        const size_t m = sizes[mi_test_random(&seed) % COUNT(sizes)];
        unsigned char* q = (unsigned char*)(aligned ? mi_rezalloc_aligned(p, m, 256) : (step % 2 ? mi_rezalloc(p, m) : mi_recalloc(p, m, 1)));
        MI_REQUIRE(q != NULL);
        const size_t kept = n < m ? n : m;
        MI_CHECK_MSG(mi_test_all_bytes(q, kept, 0xee) && (kept == 0 || q[0] == 0xee), "kept %zu of %zu -> %zu", kept, n, m);
        MI_CHECK_MSG(mi_test_all_bytes(q + kept, m - kept, 0) && (m == kept || q[kept] == 0), "gained bytes of %zu -> %zu are not zero", n, m);
        memset(q, 0xee, m);
        p = q;
        n = m;
      }
      mi_free(p);
    }
  }
}

MI_TEST(expand_never_moves) {
  for (size_t i = 0; i < COUNT(sizes); i++) {
    const size_t n = sizes[i];
    void* p = mi_malloc(n);
    const size_t usable = mi_usable_size(p);
    mi_test_fill(p, n, 5);
    for (size_t m = 0; m <= usable; m += 1 + usable / 4) {
      void* q = mi_expand(p, m);
      MI_CHECK_MSG(q == NULL || q == p, "expand(%zu -> %zu)", n, m);
      MI_CHECK_MSG(q != NULL || m > usable || m > n, "expand within the request %zu -> %zu is refused", n, m);
    }
    const size_t bigger = usable * 2 + 100;
    void* q = mi_expand(p, bigger);
    MI_CHECK(q == NULL || (q == p && mi_usable_size(p) >= bigger));
    MI_CHECK(mi_expand(p, SIZE_MAX) == NULL);
    MI_CHECK(mi_test_filled(p, n < usable ? 0 : n, 5));
    mi_free(p);
  }
  MI_CHECK(mi_expand(NULL, 10) == NULL);
}

MI_TEST(good_sizes) {
  for (size_t n = 0; n < 5000000; n = n + 1 + n / 50) {
    const size_t good = mi_good_size(n);
    void* p = mi_malloc(n);
    MI_CHECK_MSG(good >= n && mi_usable_size(p) >= n, "%zu: good %zu, usable %zu", n, good, mi_usable_size(p));
    // At most 12.5 % inside waste above 64 bytes (whole pages for the largest).
    if (n > 64) MI_CHECK_MSG(mi_usable_size(p) <= n + n / 8 + 16 || (n > 65536 && mi_usable_size(p) <= n + n / 8 + 65536), "%zu: usable %zu", n, mi_usable_size(p));
    mi_free(p);
  }
}

MI_TEST(size_returning) {
  for (size_t i = 0; i < COUNT(sizes); i++) {
    size_t a = 1, b = 2, c = 3, d = 4;
    void* p = mi_umalloc(sizes[i], &a);
    MI_CHECK(p && a == mi_usable_size(p) && a >= sizes[i]);
    p = mi_urealloc(p, sizes[i] * 2 + 10, &b, &c);
    MI_CHECK(p && b == a && c == mi_usable_size(p));
    mi_ufree(p, &d);
    MI_CHECK_EQ(d, c);
  }
}

MI_TEST(offsets) {
  static const size_t offsets[] = {0, 1, 7, 8, 16, 24, 63, 100, 1000, 4096, 65535, 100000};
  for (size_t align = 1; align <= 1 << 22; align *= 2) {
    for (size_t i = 0; i < COUNT(offsets); i++) {
      for (size_t k = 0; k < COUNT(sizes); k += 3) {
        const size_t n = sizes[k];
        if (n > 100000 && align != 64 && align != 1 << 16) continue;
        errno = MARK;
        unsigned char* p = (unsigned char*)mi_malloc_aligned_at(n, align, offsets[i]);
        // A very large alignment with an offset may be refused, but not silently misplaced.
        if (p == NULL) {
          MI_CHECK_MSG(align > 65536 && errno != MARK, "(%zu, %zu at %zu) refused", n, align, offsets[i]);
          continue;
        }
        MI_CHECK_MSG(((uintptr_t)(p + offsets[i]) & (align - 1)) == 0, "(%zu, %zu at %zu) is %p", n, align, offsets[i], (void*)p);
        MI_CHECK(mi_usable_size(p) >= n);
        mi_test_fill(p, n, 9);
        unsigned char* q = (unsigned char*)mi_realloc_aligned_at(p, n + n / 2 + 1, align, offsets[i]);
        if (!MI_CHECK(q != NULL)) continue;
        MI_CHECK_MSG(((uintptr_t)(q + offsets[i]) & (align - 1)) == 0, "realloc (%zu, %zu at %zu) is %p", n, align, offsets[i], (void*)q);
        MI_CHECK(mi_test_filled(q, n, 9));
        mi_free(q);
      }
    }
  }
}

MI_TEST(aligned_realloc_keeps_alignment) {
  for (size_t align = 8; align <= 1 << 21; align *= 2) {
    unsigned char* p = NULL;
    size_t n = 0;
    for (size_t k = 0; k < COUNT(sizes); k++) {
      p = (unsigned char*)mi_realloc_aligned(p, sizes[k], align);
      MI_REQUIRE(p != NULL);
      MI_CHECK_MSG(((uintptr_t)p & (align - 1)) == 0, "alignment %zu of %zu bytes: %p", align, sizes[k], (void*)p);
      MI_CHECK(mi_test_filled(p, n & ~(size_t)7, 4));
      n = sizes[k];
      mi_test_fill(p, n, 4);
    }
    while (n > 10) {
      n /= 3;
      p = (unsigned char*)mi_realloc_aligned(p, n, align);
      MI_REQUIRE(p != NULL);
      MI_CHECK(((uintptr_t)p & (align - 1)) == 0 && mi_test_filled(p, n & ~(size_t)7, 4));
    }
    mi_free_aligned(p, align);
  }
}

MI_TEST(sized_and_aligned_frees) {
  for (size_t i = 0; i < COUNT(sizes); i++) {
    mi_free_size(mi_malloc(sizes[i]), sizes[i]);
    for (size_t align = 1; align <= 65536; align *= 2) {
      mi_free_aligned(mi_malloc_aligned(sizes[i], align), align);
      mi_free_size_aligned(mi_malloc_aligned(sizes[i], align), sizes[i], align);
      mi_free_size_aligned(mi_new_aligned_nothrow(sizes[i], align), sizes[i], align);
    }
  }
  mi_free_size(NULL, 5);
  mi_free_aligned(NULL, 16);
  mi_free_size_aligned(NULL, 5, 16);
}

MI_TEST(failures) {
  static const size_t bad[] = {SIZE_MAX, SIZE_MAX / 2 + 1, PTRDIFF_MAX, (size_t)PTRDIFF_MAX - (sizeof(size_t) == 8 ? 100000 : 1000)};
  for (size_t i = 0; i < COUNT(bad); i++) {
    const size_t n = bad[i];
#define FAILS(call) (errno = MARK, MI_CHECK((call) == NULL), MI_CHECK_EQ(errno, ENOMEM))
    FAILS(mi_malloc(n));
    FAILS(mi_zalloc(n));
    FAILS(mi_calloc(n, 3));
    FAILS(mi_mallocn(n, 2));
    FAILS(mi_new_nothrow(n));
    FAILS(mi_malloc_aligned(n, 64));
    FAILS(mi_malloc_aligned_at(n, 64, 8));
    FAILS(mi_umalloc(n, NULL));
    void* p = mi_malloc(500);
    memset(p, 3, 500);
    FAILS(mi_realloc(p, n));
    FAILS(mi_rezalloc(p, n));
    FAILS(mi_recalloc(p, n, 5));
    FAILS(mi_reallocn(p, n, 5));
    FAILS(mi_realloc_aligned(p, n, 64));
    MI_CHECK(mi_test_all_bytes(p, 500, 3));
    FAILS(mi_reallocf(p, n));
    void* out = &out;
    errno = MARK;
    MI_CHECK_EQ(mi_posix_memalign(&out, 64, n), ENOMEM);
    MI_CHECK(out == &out && errno == MARK);
  }
  // reallocarray names the overflow by either code.
  void* p = mi_malloc(10);
  errno = MARK;
  MI_CHECK(mi_reallocarray(p, SIZE_MAX, 2) == NULL);
  MI_CHECK(errno == ENOMEM || errno == EOVERFLOW);
  mi_free(p);
  void* out = NULL;
  MI_CHECK_EQ(mi_posix_memalign(NULL, 64, 10), EINVAL);
  MI_CHECK_EQ(mi_posix_memalign(&out, 3, 10), EINVAL);
  for (size_t align = 3; align < 10000; align = align * 2 + 1) {
    errno = MARK;
    MI_CHECK(mi_malloc_aligned(10, align) == NULL);
    MI_CHECK_EQ(errno, EINVAL);
  }
}

MI_TEST(strings) {
  char* a = mi_strdup("abc");
  char* b = mi_strndup("abc", 2);
  char* c = mi_realpath("/usr/../", NULL);
  wchar_t* d = mi_wcsdup(L"wide");
  MI_CHECK_STREQ(a, "abc");
  MI_CHECK_STREQ(b, "ab");
  MI_CHECK_STREQ(c, "/");
  MI_CHECK(wcscmp(d, L"wide") == 0);
  MI_CHECK(mi_strdup(NULL) == NULL);
  mi_free(a);
  mi_free(b);
  mi_free(c);
  mi_free(d);
  setenv("MI_TEST_WORD", "value", 1);
  char* e = NULL;
  size_t n = 0;
  MI_CHECK_EQ(mi_dupenv_s(&e, &n, "MI_TEST_WORD"), 0);
  MI_CHECK_STREQ(e, "value");
  mi_free(e);
}

MI_TEST(ownership) {
  int on_stack = 0;
  static int in_data;
  void* p = mi_malloc(100);
  void* q = mi_malloc(3 << 20);
  MI_CHECK(mi_is_in_heap_region(p) && mi_is_in_heap_region(q) && mi_check_owned(p));
  MI_CHECK(!mi_is_in_heap_region(&on_stack) && !mi_is_in_heap_region(&in_data) && !mi_is_in_heap_region(NULL));
  MI_CHECK(!mi_is_in_heap_region((void*)(uintptr_t)0x800000000000) && !mi_is_in_heap_region((void*)UINTPTR_MAX));
  mi_cfree(&on_stack);
  mi_cfree(p);
  mi_free(q);
}

MI_TEST(figures) {
  size_t v[8];
  memset(v, 0xff, sizeof(v));
  void* p = mi_malloc(30 << 20);
  memset(p, 1, 30 << 20);
  mi_process_info(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
  for (size_t i = 0; i < COUNT(v); i++) MI_CHECK_MSG(v[i] < UINT64_C(1) << 46, "figure %zu is %zu", i, v[i]);
  MI_CHECK_MSG(v[3] >= 30 << 20 && v[3] <= 200 << 20, "current rss %zu", v[3]);
  MI_CHECK_MSG(v[4] >= v[3], "peak rss %zu below current %zu", v[4], v[3]);
  MI_CHECK_MSG(v[6] >= v[5] && v[6] >= 30 << 20, "peak commit %zu, current %zu", v[6], v[5]);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  mi_free(p);
}

MI_TEST(thread_calls_are_harmless) {
  for (int i = 0; i < 3; i++) {
    void* p = mi_malloc(100);
    mi_thread_init();
    mi_thread_done();
    mi_thread_done();
    void* q = mi_malloc(200);
    MI_CHECK(p && q);
    mi_free(p);
    mi_thread_done();
    mi_free(q);
    mi_collect(true);
    mi_collect(false);
  }
}

MI_TEST_MAIN()
