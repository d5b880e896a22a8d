// Owns: workloads of single blocks: growth by realloc, large blocks, zeroed blocks, aligned blocks.
// May include: bench.h, libc.
// Called by: main.c through block_workloads.
// Invariants: only the stated part of a block is touched; what was written is read back before the free.
#include "bench.h"

#include <string.h>

enum { TOUCH_STRIDE = 256 };

static void* must_realloc(void* p, size_t size) {
  void* q = keep(realloc(p, size));
  if (q == NULL) die("realloc returned NULL");
  return q;
}

// A buffer grows by half from 16 bytes to 1 MiB, its new part written thinly, as a string builder or vector does.
static uint64_t realloc_grow(unsigned scale) {
  size_t rounds = scaled(1000, scale, 4);
  uint64_t sum = 0;
  for (size_t round = 0; round < rounds; round++) {
    size_t size = 16;
    size_t written = 0;
    unsigned char* p = must_malloc(size);
    void* neighbour = NULL;  // one small block a few growths, so that not everything behind the buffer is free
    for (unsigned growth = 0;; growth++) {
      for (; written < size; written += TOUCH_STRIDE) p[written] = (unsigned char)(written / TOUCH_STRIDE);
      if (size >= (size_t)1 << 20) break;
      if (growth % 8 == 3) {
        free(neighbour);
        neighbour = must_malloc(40);
      }
      size += size / 2;
      p = must_realloc(p, size);
    }
    for (size_t i = 0; i < written; i += TOUCH_STRIDE) {
      if (p[i] != (unsigned char)(i / TOUCH_STRIDE)) die("realloc lost content");
    }
    sum += size + p[written - TOUCH_STRIDE];
    free(neighbour);
    free(p);
  }
  return sum;
}

// Sixteen texts grow in turn by short exact appends up to 48 KiB: growth in place is worth most here.
static uint64_t realloc_append(unsigned scale) {
  enum { TEXTS = 16,
         LIMIT = 48 * 1024 };
  size_t rounds = scaled(160, scale, 1);
  rng_t r = {201};
  uint64_t sum = 0;
  for (size_t round = 0; round < rounds; round++) {
    unsigned char* text[TEXTS] = {NULL};
    size_t length[TEXTS] = {0};
    for (unsigned open = TEXTS; open > 0;) {
      open = 0;
      for (size_t k = 0; k < TEXTS; k++) {
        if (length[k] >= LIMIT) continue;
        open++;
        size_t add = 16 + rng_below(&r, 160);
        text[k] = must_realloc(text[k], length[k] + add);
        memset(text[k] + length[k], (int)(k + 1), add);
        length[k] += add;
      }
    }
    for (size_t k = 0; k < TEXTS; k++) {
      for (size_t i = 0; i < length[k]; i += 61) {
        if (text[k][i] != k + 1) die("an append lost content");
      }
      sum += length[k];
      free(text[k]);
    }
  }
  return sum;
}

// Writes one byte in every OS page of the first eighth of the block and one at its end.
static void touch_partly(unsigned char* p, size_t size, unsigned char value) {
  for (size_t i = 0; i < size / 8; i += 4096) p[i] = value;
  p[size - 1] = value;
}

static uint64_t large(unsigned scale) {
  enum { SLOTS = 16 };
  unsigned char* block[SLOTS] = {NULL};
  size_t size[SLOTS] = {0};
  rng_t r = {202};
  size_t steps = scaled(3000, scale, 40);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    size_t k = rng_below(&r, SLOTS);
    if (block[k] != NULL) {
      if (block[k][0] != k + 1 || block[k][size[k] - 1] != k + 1) die("a large block lost content");
      free(block[k]);
    }
    size[k] = draw_log_uniform(&r, 256 * 1024, 16 * 1024 * 1024);
    block[k] = must_malloc(size[k]);
    touch_partly(block[k], size[k], (unsigned char)(k + 1));
    sum += size[k];
  }
  for (size_t k = 0; k < SLOTS; k++) free(block[k]);
  return sum;
}

static uint64_t calloc_large(unsigned scale) {
  enum { SLOTS = 8 };
  unsigned char* block[SLOTS] = {NULL};
  rng_t r = {203};
  size_t steps = scaled(3000, scale, 40);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    size_t k = rng_below(&r, SLOTS);
    free(block[k]);
    size_t size = draw_log_uniform(&r, 64 * 1024, 4 * 1024 * 1024);
    block[k] = keep(calloc(size / 64 + 1, 64));
    if (block[k] == NULL) die("calloc returned NULL");
    unsigned char seen = 0;
    for (size_t at = 0; at < size / 4; at += 4096) seen |= block[k][at];
    seen |= block[k][size - 1];
    if (seen != 0) die("calloc gave a block that is not zero");
    touch_partly(block[k], size, 0xa5);
    sum += size;
  }
  for (size_t k = 0; k < SLOTS; k++) free(block[k]);
  return sum;
}

static uint64_t calloc_small(unsigned scale) {
  enum { SLOTS = 4096 };
  static unsigned char* block[SLOTS];
  static size_mix_t mix;
  mix_log_uniform(&mix, 32, 1024);
  rng_t r = {204};
  size_t steps = scaled(4000000, scale, 20000);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t random = rng_next(&r);
    size_t k = (random >> 32) & (SLOTS - 1);
    size_t size = mix_draw(&mix, random);
    free(block[k]);
    block[k] = keep(calloc(1, size));
    if (block[k] == NULL) die("calloc returned NULL");
    if ((block[k][0] | block[k][size / 2] | block[k][size - 1]) != 0) die("calloc gave a block that is not zero");
    block[k][0] = block[k][size / 2] = block[k][size - 1] = 0xff;
    sum += size;
  }
  for (size_t k = 0; k < SLOTS; k++) {
    free(block[k]);
    block[k] = NULL;
  }
  return sum;
}

static uint64_t aligned(unsigned scale) {
  enum { SLOTS = 2048 };
  static void* block[SLOTS];
  static size_t sizes[SLOTS];
  rng_t r = {205};
  size_t steps = scaled(1500000, scale, 5000);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t random = rng_next(&r);
    size_t k = (random >> 32) & (SLOTS - 1);
    size_t align = (size_t)32 << (random & 7) >> ((random >> 3) & 3);  // 4 to 4096, the middle more often
    if (align < sizeof(void*)) align = sizeof(void*);
    size_t size = 17 + ((random >> 8) & 1022);  // never a power of two: mimalloc 2.0.9 misaligns some of those
    if (block[k] != NULL) checked_free(block[k], sizes[k], k);
    void* p = NULL;
    if ((random & 0x80) != 0) {
      size = ((size / align) | 1) * align + 2 * align;  // an odd multiple above one, for the same reason
      p = keep(aligned_alloc(align, size));
    } else if (posix_memalign(&p, align, size) != 0) {
      p = NULL;
    }
    if (p == NULL) die("an aligned allocation failed");
    if (((uintptr_t)keep(p) & (align - 1)) != 0) die("an aligned block is not aligned");
    mark(p, size, k);
    block[k] = p;
    sizes[k] = size;
    sum += size + align;
  }
  for (size_t k = 0; k < SLOTS; k++) {
    free(block[k]);
    block[k] = NULL;
  }
  return sum;
}

const workload_t block_workloads[] = {
    {"realloc-grow", realloc_grow, "a buffer grows by half from 16 B to 1 MiB"},
    {"realloc-append", realloc_append, "16 texts grow in turn by exact short appends to 48 KiB"},
    {"large", large, "256 KiB-16 MiB log-uniform, 16 slots, an eighth touched"},
    {"calloc-large", calloc_large, "zeroed 64 KiB-4 MiB, read in part, written in part"},
    {"calloc-small", calloc_small, "zeroed 32 B-1 KiB, random replacement among 4096 slots"},
    {"aligned", aligned, "posix_memalign and aligned_alloc, alignment 8 B-4 KiB"},
    {NULL, NULL, NULL},
};
