// Owns: one access beside a block, or to a freed large one, a run: whether a guard is there.
// May include: test/lib, POSIX.
// Called by: rows of test/death/rows.txt: guard CASE SIZE.
// Invariants: ends with 0, and says so, when the access went through; nothing else is done after it.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>
#include <time.h>

#include "test/lib/test.h"

static size_t size;

static void* whole(volatile char* p) { return (void*)(uintptr_t)p; }

static volatile char* get(void) {
  volatile char* p = (volatile char*)malloc(mi_test_hide_size(size));
  MI_REQUIRE(p != NULL);
  p[0] = p[size - 1] = 1;
  return p;
}

// How far a page of blocks of this size reaches.
static size_t page_size_of(size_t n) { return n <= 8192 ? 65536 : n <= 65536 ? 524288
                                                                             : 4194304; }

// The first address behind a block where a guard may be: the next OS page. A block ends there unless its size is kept to the byte.
static volatile char* behind(volatile char* p) {
  const size_t os_page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t n = malloc_usable_size(whole(p));
  return p + n + (~((uintptr_t)p + n) + 1) % os_page;
}

static void write_on(volatile char* p, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = 2;
}

static void* free_it(void* p) {
  free(p);
  return NULL;
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  size = argc > 2 ? (size_t)strtoull(argv[2], NULL, 10) : 100;
  mi_test_current = kind;
  // The allocator's own start is done.
  free(malloc(10));
  volatile char* p = get();
  if (strcmp(kind, "page") == 0) {
    // From anywhere in a page of blocks: the guard is at its end. The first block of it was handed out first, or at
    // random.
    write_on(p + size, page_size_of(size));
  } else if (strcmp(kind, "page-reused") == 0) {
    // The page's slices were part of others before.
    static void* all[600];
    for (size_t round = 0; round < 3; round++) {
      static const size_t sizes[] = {3000, 300000, 50000};
      for (size_t i = 0; i < 600; i++) all[i] = malloc(sizes[round]);
      for (size_t i = 0; i < 600; i++) free(all[i]);
      malloc_trim(0);
    }
    p = get();
    write_on(p + size, page_size_of(size));
  } else if (strcmp(kind, "behind") == 0) {
    *behind(p) = 2;
  } else if (strcmp(kind, "before") == 0) {
    // The OS page that the block begins in may begin with other bytes of its own.
    for (size_t i = 1; i <= 4096; i++) p[-(ptrdiff_t)i] = 2;
  } else if (strcmp(kind, "aligned-behind") == 0 || strcmp(kind, "aligned-before") == 0) {
    p = (volatile char*)mi_test_hide(aligned_alloc(size, size));
    MI_REQUIRE(p != NULL && (uintptr_t)p % size == 0);
    if (strcmp(kind, "aligned-before") == 0) {
      p[-1] = 2;
    } else {
      *behind(p) = 2;
    }
  } else if (strcmp(kind, "grown-behind") == 0 || strcmp(kind, "shrunk-behind") == 0) {
    p = (volatile char*)realloc(whole(p), kind[0] == 'g' ? size * 3 : size / 3);
    MI_REQUIRE(p != NULL);
    *behind(p) = 2;
  } else if (strcmp(kind, "grown-run") == 0) {
    // What grew in place ends where its memory does, up to 64 KiB behind a size that is kept to the byte.
    p = (volatile char*)realloc(whole(p), size * 3);
    MI_REQUIRE(p != NULL);
    write_on(p + malloc_usable_size(whole(p)), 65536);
  } else if (strcmp(kind, "purged-behind") == 0) {
    // What lies behind is freed and its memory given back; the guard stays.
    free(malloc(size));
    malloc_trim(0);
    *behind(p) = 2;
  } else if (strcmp(kind, "freed") == 0) {
    free(whole(p));
    p[0] = 2;
  } else if (strcmp(kind, "freed-middle") == 0) {
    free(whole(p));
    p[size / 2] = 2;
  } else if (strcmp(kind, "freed-by-thread") == 0) {
    pthread_t t;
    MI_REQUIRE(pthread_create(&t, NULL, free_it, whole(p)) == 0);
    pthread_join(t, NULL);
    p[size / 2] = 2;
  } else if (strcmp(kind, "freed-and-others") == 0) {
    // Others of the size are had meanwhile; none is in its place.
    free(whole(p));
    for (int i = 0; i < 4; i++) free(malloc(size));
    p[0] = 2;
  } else if (strcmp(kind, "freed-in-a-loop") == 0) {
    // Far more than becomes inaccessible as a whole.
    for (int i = 0; i < 300; i++) {
      free(whole(p));
      p = get();
    }
    free(whole(p));
    p[0] = 2;
  } else if (strcmp(kind, "freed-and-purged") == 0) {
    for (int i = 0; i < 300; i++) {
      free(whole(p));
      p = get();
    }
    free(whole(p));
    const struct timespec nap = {0, 300000000L};
    nanosleep(&nap, NULL);
    // Any call is enough for what is due.
    for (int i = 0; i < 10; i++) free(malloc(100000));
    p[size / 2] = 2;
  } else {
    mi_test_say("no case %s", kind);
    return 2;
  }
  mi_test_write(1, "went on\n", 8);
  _exit(mi_test_status());
}
