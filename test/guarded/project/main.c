// Owns: a stress loop over the store: names come and go, values grow and shrink.
// May include: the C library only.
// Called by: planted_test.py and cost_test.py: program ROUNDS read | write | right.
// Invariants: one thread, and the same calls of malloc in the same order in every run; each round is announced before it begins.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

enum { NAMES = 500 };

static unsigned long state = 1;

static unsigned next(unsigned bound) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (unsigned)(state >> 33) % bound;
}

// Values of whole units of 16 bytes are read too far, where they are read, and others written too far.
static void one_round(store_t* store, bool reads, bool writes) {
  char name[32];
  char value[64];
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof(name), "name-%u", next(NAMES));
    if (next(4) == 0) {
      store_remove(store, name);
    } else {
      const unsigned units = 16 * (1 + next(3));
      const unsigned length = writes ? units - 1 - next(15) : units;
      memset(value, 'v', length);
      value[length] = 0;
      store_set(store, name, value);
      if (reads && store_sum(store, name) == 0) {
        exit(3);
      }
    }
  }
}

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? atol(argv[1]) : 100;
  const bool reads = argc > 2 && strcmp(argv[2], "read") == 0;
  const bool writes = argc > 2 && strcmp(argv[2], "write") == 0;
  store_t* const store = store_new(251);
  for (long i = 0; i < rounds; i++) {
    char line[32];
    const int length = snprintf(line, sizeof(line), "round %ld\n", i);
    if (write(1, line, (size_t)length) != length) {
      return 2;
    }
    one_round(store, reads, writes);
  }
  store_free(store);
  return 0;
}
