// Owns: attacks by a size that wraps around, so that a block is smaller than what will be written.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: requests HOW.
// Invariants: the goal is a block out of a request that no block can satisfy.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include "test/attack/attack.h"

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  const size_t max = mi_test_hide_size(SIZE_MAX), count = mi_test_hide_size(((size_t)1 << 60) + 1);
  char* const old = attack_get(100);
  memset(old, 'x', 100);
  void* p = NULL;
  if (strcmp(how, "multiplied-by-program") == 0) {
    // What calloc is there for: the product wraps to 16, and the program goes on as if it had not.
    p = malloc(count * 16);
    attack_end(p != NULL && malloc_usable_size(p) < 4096);
  } else if (strcmp(how, "calloc") == 0) {
    p = calloc(count, 16);
  } else if (strcmp(how, "calloc-swapped") == 0) {
    p = calloc(16, count);
  } else if (strcmp(how, "calloc-by-one") == 0) {
    p = calloc(max / 8 + 1, 8);
  } else if (strcmp(how, "reallocarray") == 0) {
    p = reallocarray(old, count, 16);
  } else if (strcmp(how, "malloc-negative") == 0) {
    p = malloc(max - 15);
  } else if (strcmp(how, "malloc-half") == 0) {
    p = malloc((max >> 1) + 1);
  } else if (strcmp(how, "realloc-negative") == 0) {
    p = realloc(old, max - 7);
  } else if (strcmp(how, "aligned") == 0) {
    p = aligned_alloc((size_t)1 << 20, max - (1 << 19));
  } else if (strcmp(how, "aligned-both") == 0) {
    p = aligned_alloc(mi_test_hide_size((size_t)1 << 62), mi_test_hide_size(((size_t)3 << 62) + 16));
  } else if (strcmp(how, "posix-memalign") == 0) {
    if (posix_memalign(&p, 4096, max - 100) != 0) p = NULL;
  } else if (strcmp(how, "pvalloc") == 0) {
    p = pvalloc(max - 100);
  } else {
    attack_usage(how);
  }
  // The block that was to grow is as it was.
  attack_end(p != NULL || !mi_test_all_bytes(old, 100, 'x'));
}
