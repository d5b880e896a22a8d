// Owns: what the programs of users share: a check that says what failed.
// May include: the C library.
// Called by: the programs of this folder.
// Invariants: valid in C11 and C++11.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(condition)                                                       \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)
