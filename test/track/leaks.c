// Owns: blocks of AddressSanitizer's malloc that blocks of the allocator's point to, or do not.
// May include: the C library, mimalloc.h.
// Called by: leaks_test.py.
// Invariants: the only pointer to a block is where its case says.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mimalloc.h"

enum { LARGE = 3 << 20,
       HUGE = 300 << 20 };

static void* volatile* volatile holder;

// Not inlined, and what it leaves on the stack is wiped, so that no copy of the pointer stays.
static __attribute__((noinline)) void fill(size_t size, size_t at) {
  holder = mi_malloc(size);
  memset((void*)holder, 0, size);
  holder[at] = malloc(1234);
}

static __attribute__((noinline)) void map(void* where) {
  holder = mmap(where, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  holder[3] = malloc(1234);
}

static __attribute__((noinline)) void wipe_stack(void) {
  volatile unsigned char room[8192];
  for (size_t i = 0; i < sizeof(room); i++) {
    room[i] = 0;
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "held") == 0) {
    fill(64, 3);
  } else if (strcmp(what, "held_by_large") == 0) {
    fill(LARGE, LARGE / sizeof(void*) - 1);
  } else if (strcmp(what, "held_by_grown") == 0) {
    fill(LARGE, 5);
    holder = mi_realloc((void*)holder, 3 * (size_t)LARGE);
    holder[3 * LARGE / sizeof(void*) - 1] = holder[5];
    holder[5] = NULL;
  } else if (strcmp(what, "lost_with_holder") == 0) {
    fill(64, 3);
    mi_free((void*)holder);
  } else if (strcmp(what, "lost_with_large") == 0) {
    fill(LARGE, 7);
    mi_free((void*)holder);
  } else if (strcmp(what, "lost_in_mapping") == 0) {
    // Where a block had a mapping of its own; what the program maps is not searched.
    void* const block = mi_malloc(HUGE);
    mi_free(block);
    map(block);
  } else if (strcmp(what, "own") == 0) {
    holder = mi_malloc(4321);
    holder = NULL;
  } else if (strcmp(what, "overwritten") == 0) {
    fill(64, 3);
    holder[3] = NULL;
  } else {
    return 2;
  }
  wipe_stack();
  return 0;
}
