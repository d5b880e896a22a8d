// Owns: the stress of test/stress/stress.h on the C library's names, for whatever allocator is preloaded or linked.
// May include: test/stress/stress.h, the C library.
// Called by: the stress targets; MI_TEST_MS sets the time of each test.
// Invariants: needs no header of ours.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <malloc.h>
#include <stdlib.h>

#include "test/stress/stress.h"

static const stress_names_t stress_names = {malloc, calloc, realloc, free, memalign, malloc_usable_size};

MI_TEST_MAIN()
