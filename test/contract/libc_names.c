// Owns: the contract of the names that belong to the C library or to newer standards: they answer from this allocator.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt.
// Invariants: names are looked up, because the C library of the build machine may lack them; a missing one is a failure.
// Flags: -ldl -fno-builtin
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <malloc.h>

#include "test/lib/test.h"

static void* name_of(const char* name) {
  void* f = dlsym(RTLD_DEFAULT, name);
  MI_CHECK_MSG(f != NULL, "%s is not there", name);
  return f;
}

#define FN(type, name) type name = (type)(uintptr_t)name_of(#name)

typedef void* (*alloc1_t)(size_t);
typedef void* (*alloc2_t)(size_t, size_t);
typedef void* (*realloc_t)(void*, size_t);
typedef void* (*realloc3_t)(void*, size_t, size_t);
typedef void (*free_t)(void*);
typedef void (*free2_t)(void*, size_t);
typedef void (*free3_t)(void*, size_t, size_t);

// Each of these must come from the object that malloc comes from.
static const char* const names[] = {"calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "reallocarray", "malloc_usable_size",
                                    "cfree", "strdup", "strndup", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_free", "__libc_memalign", "__libc_valloc",
                                    "__libc_pvalloc", "__libc_cfree", "__posix_memalign", "malloc_trim", "mallinfo", "mallinfo2", "mallopt", "malloc_stats", "malloc_info",
                                    "free_sized", "free_aligned_sized", "reallocarr", "reallocf", "malloc_size", "malloc_good_size", "vfree"};

MI_TEST(one_object) {
  Dl_info m, i;
  MI_REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &m) != 0);
  for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
    void* f = name_of(names[k]);
    if (f == NULL || dladdr(f, &i) == 0) continue;
    MI_CHECK_MSG(i.dli_fbase == m.dli_fbase, "%s comes from %s, malloc from %s", names[k], i.dli_fname, m.dli_fname);
  }
  static const char* const cxx[] = {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZnwmSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZnwmRKSt9nothrow_t",
                                    "_ZdlPvSt11align_val_tRKSt9nothrow_t"};
  for (size_t k = 0; sizeof(size_t) == 8 && k < sizeof(cxx) / sizeof(cxx[0]); k++) {
    void* f = name_of(cxx[k]);
    if (f == NULL || dladdr(f, &i) == 0) continue;
    MI_CHECK_MSG(i.dli_fbase == m.dli_fbase, "%s comes from %s, malloc from %s", cxx[k], i.dli_fname, m.dli_fname);
  }
}

MI_TEST(double_underscore) {
  FN(alloc1_t, __libc_malloc);
  FN(alloc2_t, __libc_calloc);
  FN(realloc_t, __libc_realloc);
  FN(free_t, __libc_free);
  FN(alloc2_t, __libc_memalign);
  FN(alloc1_t, __libc_valloc);
  FN(alloc1_t, __libc_pvalloc);
  if (mi_test_failure_count() > 0) return;
  for (size_t n = 0; n < 3000000; n = n * 2 + 1) {
    void* a = __libc_malloc(n);
    void* b = __libc_calloc(n, 1);
    void* c = __libc_realloc(malloc(10), n);
    void* d = __libc_memalign(256, n);
    void* e = __libc_valloc(n);
    void* f = __libc_pvalloc(n);
    MI_CHECK(a && b && c && d && e && f && ((uintptr_t)d & 255) == 0 && ((uintptr_t)e & 4095) == 0);
    MI_CHECK(malloc_usable_size(a) >= n && malloc_usable_size(d) >= n);
    // The families mix freely.
    free(a);
    __libc_free(b);
    __libc_free(c);
    free(d);
    __libc_free(e);
    free(f);
    __libc_free(malloc(n));
  }
}

MI_TEST(sized_frees) {
  FN(free2_t, free_sized);
  FN(free3_t, free_aligned_sized);
  if (free_sized == NULL || free_aligned_sized == NULL) return;
  free_sized(NULL, 10);
  free_aligned_sized(NULL, 64, 10);
  for (size_t n = 0; n < 3000000; n = n + 1 + n / 3) {
    free_sized(malloc(n), n);
    free_sized(calloc(1, n), n);
    free_sized(realloc(malloc(5), n), n);
    for (size_t align = 1; align <= 65536; align *= 4) free_aligned_sized(aligned_alloc(align, n), align, n);
    free_aligned_sized(aligned_alloc(1 << 22, n), 1 << 22, n);
  }
}

MI_TEST(bsd_names) {
  FN(realloc_t, reallocf);
  if (reallocf == NULL) return;
  char* p = (char*)reallocf(malloc(10), 1000);
  MI_REQUIRE(p != NULL);
  memset(p, 1, 1000);
  errno = 0;
  // Frees the block when it cannot grow it.
  MI_CHECK(reallocf(p, mi_test_hide_size(SIZE_MAX / 2)) == NULL);
  MI_CHECK_EQ(errno, ENOMEM);
}

MI_TEST(reallocarr_updates) {
  typedef int (*reallocarr_t)(void*, size_t, size_t);
  FN(reallocarr_t, reallocarr);
  if (reallocarr == NULL) return;
  char* p = NULL;
  errno = 77;
  MI_CHECK_EQ(reallocarr(&p, 10, 100), 0);
  MI_REQUIRE(p != NULL);
  memset(p, 7, 1000);
  MI_CHECK_EQ(reallocarr(&p, 1000, 100), 0);
  MI_CHECK(mi_test_all_bytes(p, 1000, 7));
  char* const old = p;
  const int e = reallocarr(&p, mi_test_hide_size(SIZE_MAX / 2), 4);
  MI_CHECK(e == EOVERFLOW || e == ENOMEM);
  MI_CHECK_PTR_EQ(p, old);
  MI_CHECK(mi_test_all_bytes(p, 1000, 7));
  MI_CHECK_EQ(errno, 77);
  free(p);
}

MI_TEST(reports) {
  typedef int (*trim_t)(size_t);
  typedef int (*opt_t)(int, int);
  typedef int (*info_t)(int, FILE*);
  typedef struct mallinfo (*mallinfo_t)(void);
  FN(trim_t, malloc_trim);
  FN(opt_t, mallopt);
  FN(info_t, malloc_info);
  FN(mallinfo_t, mallinfo);
  struct info2_s {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
  };
  typedef struct info2_s (*mallinfo2_t)(void);
  FN(mallinfo2_t, mallinfo2);
  if (mi_test_failure_count() > 0) return;
  errno = 99;
  void* p[100];
  for (int i = 0; i < 100; i++) p[i] = malloc(100000);
  const int trimmed = malloc_trim(0);
  MI_CHECK(trimmed == 0 || trimmed == 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_ARENA_MAX, 1);
  struct mallinfo i1 = mallinfo();
  struct info2_s i2 = mallinfo2();
  (void)i1;
  // Whatever the fields mean to this allocator, no difference went below zero.
  const size_t* field = (const size_t*)&i2;
  for (size_t k = 0; k < sizeof(i2) / sizeof(size_t); k++) MI_CHECK_MSG(field[k] < UINT64_C(1) << 46, "field %zu is %zu", k, field[k]);
  FILE* sink = fopen("/dev/null", "w");
  MI_REQUIRE(sink != NULL);
  MI_CHECK_EQ(malloc_info(0, sink), 0);
  MI_CHECK(malloc_info(1, sink) != 0);
  fclose(sink);
  for (int i = 0; i < 100; i++) free(p[i]);
  malloc_trim(0);
}

MI_TEST(stats_go_to_stderr) {
  typedef void (*stats_t)(void);
  FN(stats_t, malloc_stats);
  if (malloc_stats == NULL) return;
  // Only that it comes back and says something; its words are its own.
  const int saved = dup(2);
  int fds[2];
  MI_REQUIRE(saved >= 0 && pipe(fds) == 0);
  fflush(stderr);
  dup2(fds[1], 2);
  malloc_stats();
  dup2(saved, 2);
  close(fds[1]);
  close(saved);
  char text[64];
  MI_CHECK(read(fds[0], text, sizeof(text)) > 0);
  close(fds[0]);
}

MI_TEST_MAIN()
