// Owns: the names of the C library, where they are replaced: all memory they hand out is of this allocator.
// May include: test/lib, mimalloc.h, the C library.
// Called by: the tests override_linked (object first, shared, static) and override_preloaded.
// Invariants: needs only one mi_ function besides, to ask whose an address is.
#define _GNU_SOURCE 1
#include <malloc.h>
#include <stdio.h>

#include "mimalloc.h"
#include "test/lib/test.h"

#if defined(MI_TEST_PRELOADED)
// Linked with nothing of ours: these come with the preloaded library.
#pragma weak mi_is_in_heap_region
#pragma weak mi_is_redirected
#pragma weak mi_option_disable
#pragma weak mi_register_output
#pragma weak reallocf
#pragma weak reallocarr
#pragma weak malloc_size
#pragma weak cfree
#pragma weak free_sized
#pragma weak free_aligned_sized
#pragma weak vfree
#pragma weak _aligned_malloc
#pragma weak malloc_good_size
#pragma weak __libc_malloc
#pragma weak __libc_calloc
#pragma weak __libc_realloc
#pragma weak __libc_memalign
#pragma weak __libc_valloc
#pragma weak __libc_pvalloc
#pragma weak __libc_free
#pragma weak __libc_cfree
#pragma weak __posix_memalign
#endif

// A variant may report each failed request, which most of these are.
__attribute__((constructor)) static void be_quiet(void) { mi_option_disable(mi_option_show_errors); }

// Not in the headers of every C library.
extern int reallocarr(void* ptrp, size_t count, size_t size);
extern void* reallocf(void* p, size_t size);
extern void* _aligned_malloc(size_t size, size_t alignment);
extern size_t malloc_size(const void* p);
extern size_t malloc_good_size(size_t size);
extern void cfree(void* p);
extern void vfree(void* p);
extern void free_sized(void* p, size_t size);
extern void free_aligned_sized(void* p, size_t alignment, size_t size);
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* p, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void* __libc_valloc(size_t size);
extern void* __libc_pvalloc(size_t size);
extern void __libc_free(void* p);
extern void __libc_cfree(void* p);
extern int __posix_memalign(void** p, size_t alignment, size_t size);

static void* ours(const char* what, void* p, size_t size, size_t align) {
  MI_CHECK_MSG(p != NULL && mi_is_in_heap_region(p), "%s gave %p", what, p);
  MI_CHECK_MSG((uintptr_t)p % align == 0, "%s gave %p", what, p);
  if (p == NULL) return NULL;
  MI_CHECK_MSG(malloc_usable_size(p) >= size, "%s of %zu has %zu", what, size, malloc_usable_size(p));
  memset(p, 0xa5, size);
  return p;
}
#define OURS(call, size, align) ours(#call, call, size, align)

MI_TEST(redirected) { MI_CHECK(mi_is_redirected()); }

MI_TEST(every_name) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* p = OURS(malloc(100), 100, 16);
  p = OURS(realloc(p, 1000), 1000, 16);
  p = OURS(reallocarray(p, 30, 100), 3000, 16);
  p = OURS(reallocf(p, 4000), 4000, 16);
  MI_CHECK_EQ(reallocarr(&p, 50, 100), 0);
  MI_CHECK_EQ(malloc_size(p), malloc_usable_size(p));
  free(p);
  p = calloc(10, 10);
  MI_CHECK(mi_test_all_bytes(p, 100, 0));
  cfree(OURS(p, 100, 16));
  free_sized(OURS(malloc(77), 77, 16), 77);
  free_aligned_sized(OURS(aligned_alloc(64, 128), 128, 64), 64, 128);
  vfree(OURS(valloc(10), 10, page));
  free(OURS(pvalloc(10), page, page));
  free(OURS(memalign(256, 10), 10, 256));
  free(OURS(_aligned_malloc(10, 256), 10, 256));
  MI_CHECK_EQ(posix_memalign(&p, 512, 10), 0);
  free(OURS(p, 10, 512));
  free(OURS(strdup("abc"), 4, 1));
  free(OURS(strndup("abc", 2), 3, 1));
  MI_CHECK(malloc_good_size(100) >= 100);
  __libc_free(OURS(__libc_malloc(10), 10, 16));
  p = OURS(__libc_calloc(10, 10), 100, 16);
  __libc_cfree(OURS(__libc_realloc(p, 10), 10, 16));
  free(OURS(__libc_memalign(64, 10), 10, 64));
  free(OURS(__libc_valloc(10), 10, page));
  free(OURS(__libc_pvalloc(10), page, page));
  MI_CHECK_EQ(__posix_memalign(&p, 64, 10), 0);
  free(OURS(p, 10, 64));
}

// What the C library allocates itself, and the program frees.
MI_TEST(library_results) {
  char* line = NULL;
  size_t size = 0;
  FILE* const f = fopen("/proc/self/cmdline", "r");
  MI_REQUIRE(f != NULL);
  MI_CHECK(getdelim(&line, &size, 0, f) > 0);
  fclose(f);
  free(OURS(line, 1, 1));
  char* text = NULL;
  MI_CHECK(asprintf(&text, "%d", 42) == 2);
  free(OURS(text, 3, 1));
  free(OURS(realpath("/", NULL), 2, 1));
  free(OURS(getcwd(NULL, 0), 2, 1));
  FILE* const memory = open_memstream(&text, &size);
  MI_REQUIRE(memory != NULL);
  MI_CHECK(fprintf(memory, "%s", "text") == 4);
  fclose(memory);
  MI_CHECK_STREQ(text, "text");
  free(OURS(text, 5, 1));
}

MI_TEST(errors) {
  const size_t much = mi_test_hide_size(SIZE_MAX / 2);
  errno = 0;
  MI_CHECK(malloc(much) == NULL && errno == ENOMEM);
  errno = 0;
  MI_CHECK(calloc(much, 4) == NULL && errno == ENOMEM);
  errno = 0;
  MI_CHECK(reallocarray(NULL, much, 4) == NULL && errno == ENOMEM);
  errno = 0;
  MI_CHECK(memalign(64, much) == NULL && errno == ENOMEM);
  errno = 0;
  MI_CHECK(aligned_alloc(mi_test_hide_size(48), 96) == NULL && errno == EINVAL);
  void* p = &errno;
  errno = 1234;
  MI_CHECK_EQ(posix_memalign(&p, 64, much), ENOMEM);
  MI_CHECK_EQ(posix_memalign(&p, mi_test_hide_size(sizeof(void*) / 2), 10), EINVAL);
  MI_CHECK_PTR_EQ(p, &errno);
  free(malloc(100));
  MI_CHECK_EQ(errno, 1234);
}

// glibc's questions about the heap are answered by this allocator: what it holds shows.
MI_TEST(figures) {
  enum { BLOCKS = 64,
         SIZE = 1 << 20 };
  void* blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = OURS(malloc(SIZE), SIZE, 16), 1, SIZE);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 info = mallinfo2();
  MI_CHECK_MSG(info.arena >= (size_t)BLOCKS * SIZE, "arena %zu", info.arena);
  MI_CHECK(info.uordblks + info.fordblks == info.arena && info.ordblks > 0);
#endif
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  // The same in ints, as programs from before mallinfo2 ask.
  const struct mallinfo old = mallinfo();
  MI_CHECK_MSG(old.arena >= BLOCKS * SIZE, "arena %d", old.arena);
  char* text = NULL;
  size_t size = 0;
  FILE* const memory = open_memstream(&text, &size);
  MI_REQUIRE(memory != NULL);
  MI_CHECK_EQ(malloc_info(0, memory), 0);
  errno = 0;
  MI_CHECK(malloc_info(1, memory) == -1 && errno == EINVAL);
  fclose(memory);
  MI_CHECK_MSG(strncmp(text, "<malloc", 7) == 0 && strstr(text, "</malloc>") != NULL, "%s", text);
  const char* const system = strstr(text, "<system type=\"current\" size=\"");
  MI_CHECK_MSG(system != NULL && strtoul(system + 29, NULL, 10) >= (unsigned long)BLOCKS * SIZE, "%s", text);
  free(text);
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  malloc_trim(0);
  MI_CHECK_EQ(mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
}

static void count_text(const char* msg, void* arg) { *(size_t*)arg += strlen(msg); }

MI_TEST(malloc_stats_goes_to_the_registered_output) {
  size_t text = 0;
  mi_register_output(count_text, &text);
  malloc_stats();
  mi_register_output(NULL, NULL);
  MI_CHECK(text > 0);
}

MI_TEST_MAIN()
