// Owns: the contract of every C and POSIX call: errno, zero sizes, overflow, alignment, zero bytes, usable size, kept content.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt; the names bind to whatever allocator is preloaded.
// Invariants: single-threaded; sizes are hidden from the compiler so that no call is folded away.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <limits.h>
#include <malloc.h>

#include "test/lib/test.h"

enum { MARK = 4242 };

static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100,
                               127, 128, 129, 200, 255, 256, 500, 1000, 1024, 1025, 2000, 4095, 4096, 4097, 8191, 8192, 8193, 10000,
                               16384, 30000, 40000, 65535, 65536, 65537, 131072, 200000, 262144, 300000, 524288, 524289, 1000000, 1048576, 2097152, 3145728, 4194304, 5000000};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define EACH_SIZE(n) for (size_t i_ = 0, n = 0; i_ < COUNT(sizes) && (n = mi_test_hide_size(sizes[i_]), true); i_++)

static bool is_aligned(const void* p, size_t align) { return ((uintptr_t)p & (align - 1)) == 0; }

// Sizes of up to 8 bytes need no more than 8; the rest is aligned for every type.
static bool naturally_aligned(const void* p, size_t n) { return is_aligned(p, n <= 8 ? 8 : 16); }

MI_TEST(errno_kept) {
  EACH_SIZE(n) {
    errno = MARK;
    void* p = malloc(n);
    MI_CHECK_EQ(errno, MARK);
    void* q = calloc(n, 1);
    MI_CHECK_EQ(errno, MARK);
    p = realloc(p, n * 2 + 1);
    MI_CHECK_EQ(errno, MARK);
    void* a = aligned_alloc(64, n);
    MI_CHECK_EQ(errno, MARK);
    void* b = NULL;
    MI_CHECK_EQ(posix_memalign(&b, 4096, n), 0);
    MI_CHECK_EQ(errno, MARK);
    void* c = memalign(1 << 20, n);
    MI_CHECK_EQ(errno, MARK);
    MI_CHECK(malloc_usable_size(p) >= n * 2 + 1);
    MI_CHECK_EQ(errno, MARK);
    MI_CHECK(p && q && a && b && c);
    free(p);
    free(q);
    free(a);
    free(b);
    free(c);
    free(NULL);
    MI_CHECK_EQ(errno, MARK);
  }
}

// Sizes that are nothing unusual on a machine of 64 bits may be impossible, or not even a size, on one of 32.
#define WIDE (sizeof(size_t) == 8)

MI_TEST(errno_kept_by_large_frees) {
  for (size_t n = 1 << 20; n <= (size_t)1 << (WIDE ? 30 : 28); n *= 4) {
    errno = MARK;
    char* p = (char*)malloc(mi_test_hide_size(n));
    MI_CHECK(p != NULL);
    MI_CHECK_EQ(errno, MARK);
    if (p == NULL) continue;
    p[0] = p[n - 1] = 1;
    free(p);
    MI_CHECK_EQ(errno, MARK);
  }
}

static void check_null(const void* p, int want, const char* what) {
  MI_CHECK_MSG(p == NULL, "%s", what);
  MI_CHECK_MSG(errno == want, "%s: errno %d, expected %d", what, errno, want);
}

MI_TEST(too_large) {
  static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 4095, SIZE_MAX - 65535, SIZE_MAX / 2 + 1, (size_t)PTRDIFF_MAX + 1,
                                PTRDIFF_MAX, PTRDIFF_MAX - 1, PTRDIFF_MAX - 15, PTRDIFF_MAX - 4096, WIDE ? PTRDIFF_MAX - 65536 : PTRDIFF_MAX, WIDE ? PTRDIFF_MAX - (1 << 30) : PTRDIFF_MAX};
  for (size_t i = 0; i < COUNT(huge); i++) {
    const size_t n = mi_test_hide_size(huge[i]);
    errno = MARK;
    check_null(malloc(n), ENOMEM, "malloc");
    errno = MARK;
    check_null(calloc(1, n), ENOMEM, "calloc(1,n)");
    errno = MARK;
    check_null(calloc(n, 1), ENOMEM, "calloc(n,1)");
    errno = MARK;
    check_null(valloc(n), ENOMEM, "valloc");
    errno = MARK;
    check_null(pvalloc(n), ENOMEM, "pvalloc");
    for (size_t align = 8; align <= (size_t)1 << 30; align *= 2) {
      errno = MARK;
      check_null(aligned_alloc(align, n), ENOMEM, "aligned_alloc");
      errno = MARK;
      check_null(memalign(align, n), ENOMEM, "memalign");
      errno = MARK;
      void* out = &errno;
      MI_CHECK_EQ(posix_memalign(&out, align, n), ENOMEM);
      MI_CHECK_EQ(errno, MARK);
      MI_CHECK_PTR_EQ(out, &errno);
    }
    // A huge alignment as well.
    for (size_t align = (size_t)1 << 31; align != 0; align *= 2) {
      errno = MARK;
      check_null(memalign(align, n), ENOMEM, "memalign, huge alignment");
    }
  }
}

MI_TEST(products_overflow) {
  static const size_t pairs[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}, {SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1}, {SIZE_MAX / 2 + 1, 2}, {(SIZE_MAX >> 31) + 2, (size_t)1 << 31}, {SIZE_MAX / 16 + 1, 16}, {PTRDIFF_MAX, 1}, {(size_t)PTRDIFF_MAX / 2 + 1, 2}};
  for (size_t i = 0; i < COUNT(pairs); i++) {
    const size_t a = mi_test_hide_size(pairs[i][0]), b = mi_test_hide_size(pairs[i][1]);
    errno = MARK;
    check_null(calloc(a, b), ENOMEM, "calloc");
    EACH_SIZE(n) {
      unsigned char* p = (unsigned char*)malloc(n);
      MI_REQUIRE(p != NULL);
      mi_test_fill(p, n, i);
      errno = MARK;
      check_null(reallocarray(mi_test_hide(p), a, b), ENOMEM, "reallocarray");
      MI_CHECK(mi_test_filled(p, n, i));
      errno = MARK;
      check_null(realloc(mi_test_hide(p), mi_test_hide_size(SIZE_MAX - n)), ENOMEM, "realloc");
      MI_CHECK(mi_test_filled(p, n, i));
      free(p);
    }
    errno = MARK;
    check_null(reallocarray(NULL, a, b), ENOMEM, "reallocarray(NULL)");
  }
}

MI_TEST(bad_alignment) {
  static const size_t bad_posix[] = {0, 1, 2, 3, WIDE ? 4 : 2, 5, 6, 7, 9, 12, 17, 24, 48, 100, 4095, 4097, SIZE_MAX, SIZE_MAX / 2};
  for (size_t i = 0; i < COUNT(bad_posix); i++) {
    void* out = &errno;
    errno = MARK;
    MI_CHECK_EQ(posix_memalign(&out, mi_test_hide_size(bad_posix[i]), 100), EINVAL);
    MI_CHECK_PTR_EQ(out, &errno);
    MI_CHECK_EQ(errno, MARK);
  }
  static const size_t bad[] = {0, 3, 5, 6, 7, 9, 12, 17, 24, 48, 100, 4095, 4097, SIZE_MAX};
  for (size_t i = 0; i < COUNT(bad); i++) {
    errno = MARK;
    check_null(aligned_alloc(mi_test_hide_size(bad[i]), 100), EINVAL, "aligned_alloc");
    errno = MARK;
    check_null(memalign(mi_test_hide_size(bad[i]), 100), EINVAL, "memalign");
  }
  // Any power of two is good for aligned_alloc, and the size need not be a multiple.
  for (size_t align = 1; align <= 4096; align *= 2) {
    EACH_SIZE(n) {
      void* p = aligned_alloc(mi_test_hide_size(align), n);
      MI_CHECK(p != NULL && is_aligned(p, align));
      free(p);
    }
  }
}

// All forms that may give an empty block, with its alignment.
static void* zero_form(int form, size_t* align) {
  void* p = NULL;
  const size_t zero = mi_test_hide_size(0);
  *align = 8;
  switch (form) {
    case 0: return malloc(zero);
    case 1: return calloc(zero, 10);
    case 2: return calloc(10, zero);
    case 3: return calloc(zero, zero);
    case 4: return realloc(NULL, zero);
    case 5: return realloc(malloc(100), zero);
    case 6: return reallocarray(NULL, zero, 10);
    case 7: return reallocarray(NULL, 10, zero);
    case 8: return reallocarray(malloc(50), 10, zero);
    case 9: *align = 32; return aligned_alloc(32, zero);
    case 10: *align = 4096; return memalign(4096, zero);
    case 11: *align = 1 << 20; return memalign(1 << 20, zero);
    case 12: *align = 64; return posix_memalign(&p, 64, zero) == 0 ? p : NULL;
    case 13: *align = 4096; return valloc(zero);
    case 14: *align = 4096; return pvalloc(zero);
    case 15: return realloc(malloc(3000000), zero);
    case 16: *align = 1; return aligned_alloc(1, zero);
    case 17: *align = (size_t)1 << 30; return aligned_alloc((size_t)1 << 30, zero);
    default: return NULL;
  }
}

MI_TEST(zero_sizes) {
  enum { FORMS = 18,
         EACH = 20 };
  static void* seen[FORMS * EACH];
  size_t count = 0;
  for (int form = 0; form < FORMS; form++) {
    for (int i = 0; i < (form == 17 ? 2 : EACH); i++) {
      size_t align = 0;
      errno = MARK;
      void* p = zero_form(form, &align);
      MI_CHECK_MSG(p != NULL, "form %d", form);
      if (p == NULL) continue;
      MI_CHECK_EQ(errno, MARK);
      MI_CHECK_MSG(is_aligned(p, align), "form %d: %p", form, p);
      for (size_t k = 0; k < count; k++) MI_CHECK_MSG(seen[k] != p, "form %d repeats %p", form, p);
      seen[count++] = p;
    }
  }
  for (size_t k = 0; k < count; k++) {
    // A zero-size block may be grown as any other.
    if (k % 3 == 0) {
      seen[k] = realloc(seen[k], 100);
      MI_REQUIRE(seen[k] != NULL);
      memset(seen[k], 1, 100);
    }
    free(seen[k]);
  }
}

MI_TEST(alignments) {
  for (size_t align = 1; align <= (size_t)1 << 30; align *= 2) {
    EACH_SIZE(n) {
      // Large sizes with a few alignments of each page kind only: filling them takes the time.
      if (n > 70000 && align != 64 && align != 4096 && align != 1 << 17 && align != 1 << 21 && align != (size_t)1 << 30) continue;
      unsigned char* p = (unsigned char*)aligned_alloc(align, n);
      unsigned char* q = (unsigned char*)memalign(align, n);
      void* r = NULL;
      if (align >= sizeof(void*)) MI_CHECK_EQ(posix_memalign(&r, align, n), 0);
      MI_CHECK_MSG(p != NULL && is_aligned(p, align), "aligned_alloc(%zu, %zu) is %p", align, n, (void*)p);
      MI_CHECK_MSG(q != NULL && is_aligned(q, align), "memalign(%zu, %zu) is %p", align, n, (void*)q);
      MI_CHECK_MSG((r != NULL || align < sizeof(void*)) && is_aligned(r, align), "posix_memalign(%zu, %zu) is %p", align, n, r);
      if (p == NULL || q == NULL) continue;
      const size_t usable = malloc_usable_size(p);
      MI_CHECK_MSG(usable >= n, "usable %zu of (%zu, %zu)", usable, align, n);
      // The whole of it may be written, without touching the neighbours.
      mi_test_fill(q, n, 1);
      if (usable <= 8 << 20) mi_test_fill(p, usable, 2);
      MI_CHECK(mi_test_filled(q, n, 1));
      if (usable <= 8 << 20) MI_CHECK(mi_test_filled(p, usable, 2));
      free(q);
      free(r);
      // realloc keeps the bytes of an over-aligned block.
      mi_test_fill(p, n, 3);
      const size_t m = n < 1000 ? n * 3 + 40 : n + n / 2;
      unsigned char* s = (unsigned char*)realloc(p, m);
      MI_CHECK(s != NULL && naturally_aligned(s, m));
      if (s == NULL) continue;
      MI_CHECK_MSG(mi_test_filled(s, n, 3), "realloc of (%zu, %zu)", align, n);
      free(s);
    }
  }
}

MI_TEST(natural_alignment) {
  for (size_t n = 0; n <= 5000; n++) {
    void* p = malloc(mi_test_hide_size(n));
    void* q = calloc(1, mi_test_hide_size(n));
    MI_CHECK_MSG(p && naturally_aligned(p, n), "malloc(%zu) is %p", n, p);
    MI_CHECK_MSG(q && naturally_aligned(q, n), "calloc(%zu) is %p", n, q);
    p = realloc(p, n / 2);
    MI_CHECK_MSG(p && naturally_aligned(p, n / 2), "realloc(%zu) is %p", n / 2, p);
    free(p);
    free(q);
  }
}

MI_TEST(calloc_is_zero) {
  // Blocks are dirtied and freed first, so that reuse, purge and huge paths are all seen.
  for (int round = 0; round < 3; round++) {
    EACH_SIZE(n) {
      const size_t many = n <= 4096 ? 64 : (n <= 262144 ? 8 : 2);
      void* p[64];
      for (size_t i = 0; i < many; i++) {
        p[i] = calloc(1, n);
        MI_REQUIRE(p[i] != NULL);
        MI_CHECK_MSG(mi_test_all_bytes(p[i], n, 0) && (n == 0 || *(unsigned char*)p[i] == 0), "calloc(1, %zu), round %d", n, round);
        memset(p[i], 0xa5, malloc_usable_size(p[i]));
      }
      for (size_t i = 0; i < many; i++) free(p[i]);
      void* q = calloc(n / 8 + 1, 8);
      MI_CHECK(mi_test_all_bytes(q, (n / 8 + 1) * 8, 0) && *(unsigned char*)q == 0);
      memset(q, 0x5a, malloc_usable_size(q));
      free(q);
    }
  }
}

MI_TEST(calloc_is_zero_when_huge) {
  for (size_t n = 8 << 20; n <= 256 << 20; n *= 2) {
    // Each OS page of what an arena may hold, and each 64 KiB, the unit of arenas, of what is larger.
    const size_t step = n <= 32 << 20 ? 4093 : 65521;
    for (int round = 0; round < 2; round++) {
      unsigned char* p = (unsigned char*)calloc(n, 1);
      MI_REQUIRE(p != NULL);
      for (size_t i = 0; i < n; i += step) {
        if (!MI_CHECK_EQ(p[i], 0)) break;
      }
      for (size_t i = 0; i < n; i += step) p[i] = 0xff;
      free(p);
    }
  }
}

MI_TEST(usable_size) {
  MI_CHECK_EQ(malloc_usable_size(NULL), 0);
  for (size_t n = 0; n <= 70000; n += (n < 2000 ? 1 : 97)) {
    unsigned char* p = (unsigned char*)malloc(mi_test_hide_size(n));
    unsigned char* q = (unsigned char*)malloc(mi_test_hide_size(n));
    MI_REQUIRE(p && q);
    const size_t u = malloc_usable_size(p), v = malloc_usable_size(q);
    MI_CHECK_MSG(u >= n && v >= n, "malloc(%zu): %zu, %zu", n, u, v);
    mi_test_fill(p, u, 1);
    mi_test_fill(q, v, 2);
    MI_CHECK(mi_test_filled(p, u, 1) && mi_test_filled(q, v, 2));
    free(p);
    free(q);
  }
}

MI_TEST(realloc_keeps_content) {
  // Under settings that are not the usual ones each size with some of the others.
  const size_t each = (size_t)mi_test_scale("MI_TEST_EACH", 1);
  size_t first = 0;
  EACH_SIZE(from) {
    first = (first + 1) % each;
    for (size_t k = first; k < COUNT(sizes); k += each) {
      const size_t to = mi_test_hide_size(sizes[k]);
      void* p = malloc(from);
      MI_REQUIRE(p != NULL);
      mi_test_fill(p, from, 77);
      void* q = realloc(p, to);
      if (!MI_CHECK_MSG(q != NULL, "realloc from %zu to %zu", from, to)) continue;
      // The pattern depends on whole words, so what is cut inside a word is compared by words only.
      const size_t kept = (from < to ? from : to) & ~(size_t)7;
      MI_CHECK_MSG(mi_test_filled(q, kept, 77), "realloc from %zu to %zu", from, to);
      MI_CHECK(malloc_usable_size(q) >= to);
      mi_test_fill(q, to, 78);
      free(q);
    }
  }
}

MI_TEST(realloc_steps) {
  // Growth by small steps over all size kinds and back.
  unsigned char* p = NULL;
  size_t n = 0;
  while (n < 20 << 20) {
    const size_t next = n + 1 + n / 7;
    p = (unsigned char*)realloc(p, next);
    MI_REQUIRE(p != NULL);
    for (size_t i = 0; i < n; i += (n < 4096 ? 1 : 4096)) MI_REQUIRE(p[i] == (unsigned char)(i * 7));
    for (size_t i = n; i < next; i++) p[i] = (unsigned char)(i * 7);
    n = next;
  }
  while (n > 1) {
    n = n - n / 5 - 1;
    p = (unsigned char*)realloc(p, n);
    MI_REQUIRE(p != NULL);
    for (size_t i = 0; i < n; i += (n < 4096 ? 1 : 4096)) MI_REQUIRE(p[i] == (unsigned char)(i * 7));
  }
  free(p);
}

MI_TEST(page_forms) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  EACH_SIZE(n) {
    void* p = valloc(n);
    void* q = pvalloc(n);
    MI_CHECK(p && is_aligned(p, page) && malloc_usable_size(p) >= n);
    MI_CHECK(q && is_aligned(q, page) && malloc_usable_size(q) >= ((n + page - 1) & ~(page - 1)));
    free(p);
    free(q);
  }
}

MI_TEST(duplicates) {
  char text[3000];
  for (size_t n = 0; n < sizeof(text); n += 1 + n / 9) {
    memset(text, 'x', n);
    text[n] = 0;
    errno = MARK;
    char* a = strdup(text);
    char* b = strndup(text, n / 2);
    char* c = strndup(text, n + 100);
    MI_CHECK_EQ(errno, MARK);
    MI_CHECK_STREQ(a, text);
    MI_CHECK_STREQ(c, text);
    MI_CHECK(b && strlen(b) == n / 2);
    free(a);
    free(b);
    free(c);
  }
}

MI_TEST(library_blocks_are_ours) {
  // What the C library allocates for its caller goes through the same allocator.
  char* line = NULL;
  size_t cap = 0;
  FILE* f = fopen("/dev/zero", "r");
  MI_REQUIRE(f != NULL);
  fclose(f);
  f = tmpfile();
  if (f != NULL) {
    fputs("some words\n", f);
    rewind(f);
    MI_CHECK(getline(&line, &cap, f) == 11);
    MI_CHECK(malloc_usable_size(line) >= cap);
    free(line);
    fclose(f);
  }
  char* made = NULL;
  MI_CHECK(asprintf(&made, "%1000d", 5) == 1000);
  MI_CHECK(malloc_usable_size(made) >= 1001);
  free(made);
  char* dir = realpath("/", NULL);
  MI_CHECK_STREQ(dir, "/");
  MI_CHECK(malloc_usable_size(dir) >= 2);
  free(dir);
  char* cwd = getcwd(NULL, 0);
  free(cwd);
}

MI_TEST(blocks_do_not_overlap) {
  enum { N = 2000 };
  static struct {
    void* p;
    size_t n;
  } live[N];
  uint64_t seed = 1;
  for (size_t step = 0; step < 60000; step++) {
    const size_t i = mi_test_random(&seed) % N;
    if (live[i].p != NULL) {
      MI_REQUIRE(mi_test_filled(live[i].p, live[i].n, i));
      free(live[i].p);
    }
    const uint64_t r = mi_test_random(&seed);
    size_t n = (size_t)(r >> 8) % (r % 64 == 0 ? 300000 : (r % 8 == 0 ? 10000 : 500));
    live[i].p = r % 5 == 0 ? memalign((size_t)1 << (r >> 40) % 14, n) : malloc(n);
    MI_REQUIRE(live[i].p != NULL);
    live[i].n = n;
    mi_test_fill(live[i].p, n, i);
  }
  for (size_t i = 0; i < N; i++) {
    if (live[i].p != NULL) MI_CHECK(mi_test_filled(live[i].p, live[i].n, i));
    free(live[i].p);
  }
}

MI_TEST_MAIN()
