// Owns: the slots of the workloads whose point is memory: blocks at random places of a table, and how many bytes they are.
// May include: bench.h.
// Called by: memory.c, course.c; each has slots of its own.
// Invariants: `live` is the sum of the sizes in the table; every KiB of a block is touched.
#pragma once

#include "bench.h"

enum { SLOTS = 1 << 17 };
static void* block[SLOTS];
static uint32_t size_of[SLOTS];
static size_t live;

static void slot_free(size_t k) {
  if (block[k] == NULL) return;
  live -= size_of[k];
  checked_free(block[k], size_of[k], k);
  block[k] = NULL;
}

static void slot_fill(size_t k, size_t size) {
  slot_free(k);
  size_of[k] = (uint32_t)size;
  block[k] = must_malloc(size);
  for (size_t at = 0; at < size; at += 1024) ((unsigned char*)block[k])[at] = 1;  // all of it counts as used
  mark(block[k], size, k);
  live += size;
}
