// Owns: each function that asks about a block, of a freed one, of one that is gone, and of the inside of one.
// May include: test/lib, POSIX; the allocator's own functions where they are preloaded.
// Called by: rows of test/death/queries.txt: queries CALL STATE SIZE.
// Invariants: prints `pointer 0x...` before the query and what it answered after it.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <malloc.h>

#include "test/lib/test.h"

size_t malloc_object_size(const void* p) __attribute__((weak));
size_t malloc_object_size_fast(const void* p) __attribute__((weak));
size_t malloc_size(const void* p) __attribute__((weak));
size_t mi_usable_size(const void* p) __attribute__((weak));
size_t mi_malloc_size(const void* p) __attribute__((weak));
size_t mi_malloc_usable_size(const void* p) __attribute__((weak));
void* mi_expand(void* p, size_t size) __attribute__((weak));
void* mi__expand(void* p, size_t size) __attribute__((weak));
void* mi_rezalloc(void* p, size_t size) __attribute__((weak));
void* mi_realloc_aligned(void* p, size_t size, size_t align) __attribute__((weak));
void* reallocf(void* p, size_t size) __attribute__((weak));
int reallocarr(void* p, size_t count, size_t size) __attribute__((weak));
bool mi_is_in_heap_region(const void* p) __attribute__((weak));
bool mi_check_owned(const void* p) __attribute__((weak));

static size_t size;

static size_t ask_usable(void* p) { return malloc_usable_size(p); }
static size_t ask_object(void* p) { return malloc_object_size(p); }
static size_t ask_object_fast(void* p) { return malloc_object_size_fast(p); }
static size_t ask_malloc_size(void* p) { return malloc_size(p); }
static size_t ask_mi_usable(void* p) { return mi_usable_size(p); }
static size_t ask_mi_malloc_size(void* p) { return mi_malloc_size(p); }
static size_t ask_mi_malloc_usable(void* p) { return mi_malloc_usable_size(p); }
static size_t ask_expand(void* p) { return (size_t)mi_expand(p, size); }
static size_t ask_expand_ms(void* p) { return (size_t)mi__expand(p, size); }
static size_t ask_realloc(void* p) { return (size_t)realloc(p, size + 100); }
static size_t ask_realloc_same(void* p) { return (size_t)realloc(p, size); }
static size_t ask_reallocarray(void* p) { return (size_t)reallocarray(p, 2, size); }
static size_t ask_reallocf(void* p) { return (size_t)reallocf(p, size + 100); }
static size_t ask_rezalloc(void* p) { return (size_t)mi_rezalloc(p, size + 100); }
static size_t ask_realloc_aligned(void* p) { return (size_t)mi_realloc_aligned(p, size + 100, 64); }
static size_t ask_reallocarr(void* p) {
  void* slot = p;
  return (size_t)reallocarr(&slot, 2, size);
}
static size_t ask_region(void* p) { return mi_is_in_heap_region(p); }
static size_t ask_owned(void* p) { return mi_check_owned(p); }

static const struct {
  const char* name;
  size_t (*ask)(void* p);
} calls[] = {
    {"malloc_usable_size", ask_usable},
    {"malloc_object_size", ask_object},
    {"malloc_object_size_fast", ask_object_fast},
    {"malloc_size", ask_malloc_size},
    {"mi_usable_size", ask_mi_usable},
    {"mi_malloc_size", ask_mi_malloc_size},
    {"mi_malloc_usable_size", ask_mi_malloc_usable},
    {"mi_expand", ask_expand},
    {"mi__expand", ask_expand_ms},
    {"realloc", ask_realloc},
    {"realloc-same", ask_realloc_same},
    {"reallocarray", ask_reallocarray},
    {"reallocf", ask_reallocf},
    {"mi_rezalloc", ask_rezalloc},
    {"mi_realloc_aligned", ask_realloc_aligned},
    {"reallocarr", ask_reallocarr},
    {"mi_is_in_heap_region", ask_region},
    {"mi_check_owned", ask_owned},
};

int main(int argc, char** argv) {
  if (argc < 4) {
    mi_test_say("usage: queries CALL live|inside|freed|freed-inside|gone|foreign|null SIZE");
    return 2;
  }
  const char* state = argv[2];
  size = (size_t)strtoull(argv[3], NULL, 10);
  static volatile char* keep[3];
  char stack_bytes[64] = {0};
  keep[0] = malloc(mi_test_hide_size(size));
  char* p = malloc(mi_test_hide_size(size));
  keep[1] = malloc(mi_test_hide_size(size));
  char* asked = strstr(state, "inside") != NULL ? p + size / 2 : p;
  if (strcmp(state, "freed") == 0 || strcmp(state, "freed-inside") == 0) {
    free(p);
  } else if (strcmp(state, "gone") == 0) {
    // Nothing of the page is left.
    free(p);
    free((void*)(uintptr_t)keep[0]);
    free((void*)(uintptr_t)keep[1]);
    malloc_trim(0);
  } else if (strcmp(state, "foreign") == 0) {
    asked = stack_bytes;
  } else if (strcmp(state, "null") == 0) {
    asked = NULL;
  }
  // Not by stdio, whose buffer may take the place of a block.
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)asked);
  mi_test_write(1, line, (size_t)n);
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
    if (strcmp(calls[i].name, argv[1]) == 0) {
      const size_t answer = calls[i].ask(mi_test_hide(asked));
      if (argc > 4) {
        const size_t expected = (size_t)strtoull(argv[4], NULL, 10);
        return answer == expected || (expected > 1 && answer > expected && answer < expected + expected / 4 + 65536) ? 0 : 1;
      }
      return 0;
    }
  }
  mi_test_say("no call %s", argv[1]);
  return 2;
}
