// Owns: one misuse of a block's bytes a run: beyond its end, before its start, after its free, or where there are none.
// May include: test/lib, POSIX.
// Called by: rows of test/death/rows.txt: contents CASE HOW SIZE.
// Invariants: prints `pointer 0x...` of the block that a report must name before the misuse; ends with 0 when nothing was noticed.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>

#include "test/lib/test.h"

#include "test/lib/plain.h"

enum { MANY = 2000 };

static size_t size = 24;

static void announce(const volatile void* p) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)p);
  mi_test_write(1, line, (size_t)n);
}

static char* get(size_t n) {
  char* p = (char*)malloc(mi_test_hide_size(n));
  MI_REQUIRE(p != NULL);
  return (char*)mi_test_hide(p);
}

static void* free_in_thread(void* p) {
  free(p);
  return NULL;
}

static void run_thread(void* (*fn)(void*), void* arg) {
  pthread_t t;
  MI_REQUIRE(pthread_create(&t, NULL, fn, arg) == 0);
  pthread_join(t, NULL);
}

// Two blocks side by side, the first of them at *left.
static void neighbours(char** left, char** right) {
  static char* p[MANY];
  for (int i = 0; i < MANY; i++) {
    p[i] = get(size);
    for (int k = 0; k < i; k++) {
      const ptrdiff_t d = p[i] > p[k] ? p[i] - p[k] : p[k] - p[i];
      if (d >= (ptrdiff_t)size && d <= (ptrdiff_t)(size + size / 4 + 32) && d < (ptrdiff_t)(2 * ((size + 23) & ~(size_t)15))) {
        *left = p[i] < p[k] ? p[i] : p[k];
        *right = p[i] < p[k] ? p[k] : p[i];
        return;
      }
    }
  }
  mi_test_say("no two blocks of %zu bytes are neighbours", size);
  _exit(2);
}

static void overflow(const char* how) {
  if (strcmp(how, "neighbour") == 0 || strcmp(how, "neighbour-first") == 0 || strcmp(how, "underflow") == 0 ||
      strcmp(how, "underflow-of-freed") == 0) {
    char *left, *right;
    neighbours(&left, &right);
    if (strncmp(how, "underflow", 9) == 0) {
      if (strcmp(how, "underflow-of-freed") == 0) free(left);
      announce(right);
      right[-1] = (char)(right[-1] ^ 0x55);
      free(right);
      return;
    }
    announce(left);
    memset(left + size, 'x', (size_t)(right - left) - size + 1);
    free(strcmp(how, "neighbour") == 0 ? left : right);
    return;
  }
  char* p = get(size);
  // The first byte of an OS page has a guard before it.
  while (strncmp(how, "before", 6) == 0 && ((uintptr_t)p & 4095) == 0) p = get(size);
  announce(p);
  if (strcmp(how, "before") == 0) {
    p[-1] = (char)(p[-1] ^ 0x55);
    free(p);
    return;
  }
  if (strcmp(how, "before-realloc") == 0) {
    p[-1] = (char)(p[-1] ^ 0x55);
    free(realloc(p, size + 1000));
    return;
  }
  if (strcmp(how, "zero") == 0) {
    // A string's end one byte behind its block does no harm where a zero stands anyway.
    p[size] = 0;
    free(p);
    return;
  }
  p[size] = 'x';
  if (strcmp(how, "free") == 0) {
    free(p);
  } else if (strcmp(how, "thread") == 0) {
    run_thread(free_in_thread, p);
  } else if (strcmp(how, "realloc") == 0) {
    free(realloc(p, size + 1000));
  } else if (strcmp(how, "shrink") == 0) {
    free(realloc(p, size - size / 4));
  } else if (strcmp(how, "usable") == 0) {
    MI_CHECK(malloc_usable_size(p) >= size);
  } else {
    mi_test_say("no way %s", how);
    _exit(2);
  }
}

static void aligned(const char* how) {
  char* p = (char*)aligned_alloc(strtoul(how, NULL, 10), size);
  MI_REQUIRE(p != NULL);
  announce(p);
  p[size] = 'x';
  free(p);
}

// One byte is written after the free; blocks of the size are made until the block comes back.
static void after_free(const char* how) {
  char* p = get(size);
  char* keep = get(size);
  announce(p);
  free(p);
  const size_t at = strcmp(how, "first") == 0 ? 0 : strcmp(how, "middle") == 0 ? size / 2
                                                                               : size - 1;
  ((volatile char*)p)[at] = (char)(((volatile char*)p)[at] ^ 0x21);
  for (int round = 0; round < 50; round++) {
    static char* q[MANY];
    const int count = size > 4096 ? 100 : MANY;
    for (int i = 0; i < count; i++) q[i] = get(size);
    for (int i = 0; i < count; i++) free(q[i]);
  }
  free(keep);
}

static void twice(const char* how) {
  char* p = get(size);
  char* keep = get(size);
  announce(p);
  free(p);
  static char* q[MANY];
  // So many frees that it has left the quarantine, and none that takes it from its list again.
  for (int i = 0; strcmp(how, "left") == 0 && i < 500; i++) q[i] = get(size + size / 2);
  for (int i = 0; i < 500; i++) free(q[i]);
  if (strcmp(how, "thread") == 0) {
    run_thread(free_in_thread, p);
  } else {
    free(p);
  }
  free(keep);
}

// A freed block does not come back within some frees.
static void delayed(void) {
  char* keep = get(size);
  for (int round = 0; round < 200; round++) {
    char* p = get(size);
    announce(p);
    free(p);
    for (int i = 0; i < 16; i++) {
      char* q = get(size);
      if (q == p) {
        mi_test_say("came back after %d frees", i);
        _exit(3);
      }
      free(q);
    }
  }
  free(keep);
}

static void nothing(const char* how) {
  void* p = NULL;
  if (strcmp(how, "malloc") == 0) p = malloc(mi_test_hide_size(0));
  if (strcmp(how, "calloc") == 0) p = calloc(mi_test_hide_size(0), 8);
  if (strcmp(how, "realloc") == 0) p = realloc(get(100), mi_test_hide_size(0));
  if (strcmp(how, "aligned") == 0) p = aligned_alloc(4096, mi_test_hide_size(0));
  if (strcmp(how, "aligned-slice") == 0) p = aligned_alloc(65536, mi_test_hide_size(0));
  if (strcmp(how, "read") == 0 || strcmp(how, "twice") == 0 || strcmp(how, "inside") == 0) p = malloc(mi_test_hide_size(0));
  MI_REQUIRE(p != NULL);
  announce(p);
  p = mi_test_hide(p);
  if (strcmp(how, "read") == 0) {
    if (*(volatile char*)p == 1) _exit(4);
  } else if (strcmp(how, "twice") == 0) {
    free(p);
    free(mi_test_hide(p));
  } else if (strcmp(how, "inside") == 0) {
    free((char*)p + 8);
  } else {
    *(volatile char*)p = 1;
  }
}

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  const char* const how = argc > 2 ? argv[2] : "";
  if (argc > 3) size = (size_t)strtoull(argv[3], NULL, 10);
  mi_test_current = kind;
  if (strcmp(kind, "overflow") == 0) {
    overflow(how);
  } else if (strcmp(kind, "aligned") == 0) {
    aligned(how);
  } else if (strcmp(kind, "after-free") == 0) {
    after_free(how);
  } else if (strcmp(kind, "twice") == 0) {
    twice(how);
  } else if (strcmp(kind, "delayed") == 0) {
    delayed();
  } else if (strcmp(kind, "nothing") == 0) {
    nothing(how);
  } else {
    mi_test_say("usage: contents overflow|aligned|after-free|twice|delayed|nothing HOW [SIZE]");
    return 2;
  }
  return mi_test_status();
}
