// Owns: the block function.
// May include: base.
// Called by: through chacha20.h.
// Invariants: additions, exclusive ors and rotations by constants only; no table and no branch on data.
#include "src/base/chacha20.h"

enum {
  MI_CHACHA20_WORDS = MI_CHACHA20_BLOCK_SIZE / 4,
  MI_CHACHA20_DOUBLE_ROUNDS = 10,
};

static uint32_t mi_chacha20_load(const uint8_t* bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void mi_chacha20_store(uint8_t* bytes, uint32_t word) {
  bytes[0] = (uint8_t)word;
  bytes[1] = (uint8_t)(word >> 8);
  bytes[2] = (uint8_t)(word >> 16);
  bytes[3] = (uint8_t)(word >> 24);
}

// A row of the state; what is done to a column is done to all four at once.
typedef uint32_t mi_chacha20_row_t __attribute__((vector_size(16)));

// By address: how a vector is passed depends on the processor.
mi_inline void mi_chacha20_mix(mi_chacha20_row_t* x, const mi_chacha20_row_t* other, unsigned n) {
  *x ^= *other;
  *x = *x << n | *x >> (32U - n);
}

mi_inline void mi_chacha20_quarters(mi_chacha20_row_t* x) {
  x[0] += x[1];
  mi_chacha20_mix(&x[3], &x[0], 16);
  x[2] += x[3];
  mi_chacha20_mix(&x[1], &x[2], 12);
  x[0] += x[1];
  mi_chacha20_mix(&x[3], &x[0], 8);
  x[2] += x[3];
  mi_chacha20_mix(&x[1], &x[2], 7);
}

// Moves each lane of a row `by` places down, 1 to 3.
#define MI_CHACHA20_TURN(row, by) __builtin_shufflevector(row, row, by, (by) + 1, (by) + 2, (by) + 3)

static void mi_chacha20_wipe(uint32_t x[MI_CHACHA20_WORDS]) {
  for (size_t i = 0; i < MI_CHACHA20_WORDS; i++) {
    x[i] = 0;
  }
  // The compiler must take it that somebody reads the zeroes.
  __asm__ volatile(""
                   :
                   : "r"(x)
                   : "memory");
}

void _mi_chacha20_load_key(const uint8_t bytes[MI_CHACHA20_KEY_SIZE], uint32_t key[8]) {
  for (size_t i = 0; i < 8; i++) {
    key[i] = mi_chacha20_load(bytes + 4 * i);
  }
}

void _mi_chacha20_load_nonce(const uint8_t bytes[MI_CHACHA20_NONCE_SIZE], uint32_t nonce[3]) {
  for (size_t i = 0; i < 3; i++) {
    nonce[i] = mi_chacha20_load(bytes + 4 * i);
  }
}

// Wraps: sums modulo 2^32.
mi_wraps void _mi_chacha20_block(const uint32_t key[8], uint32_t counter, const uint32_t nonce[3], uint8_t out[MI_CHACHA20_BLOCK_SIZE]) {
  // The constants spell "expand 32-byte k".
  uint32_t input[MI_CHACHA20_WORDS] = {
      0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,
      key[0], key[1], key[2], key[3],
      key[4], key[5], key[6], key[7],
      counter, nonce[0], nonce[1], nonce[2]};
  mi_chacha20_row_t x[4];
  __builtin_memcpy(x, input, sizeof(x));
  for (size_t round = 0; round < MI_CHACHA20_DOUBLE_ROUNDS; round++) {
    mi_chacha20_quarters(x);
    // The diagonals become columns, and back.
    x[1] = MI_CHACHA20_TURN(x[1], 1);
    x[2] = MI_CHACHA20_TURN(x[2], 2);
    x[3] = MI_CHACHA20_TURN(x[3], 3);
    mi_chacha20_quarters(x);
    x[1] = MI_CHACHA20_TURN(x[1], 3);
    x[2] = MI_CHACHA20_TURN(x[2], 2);
    x[3] = MI_CHACHA20_TURN(x[3], 1);
  }
  for (size_t i = 0; i < MI_CHACHA20_WORDS; i++) {
    mi_chacha20_store(out + 4 * i, x[i / 4][i % 4] + input[i]);
  }
  // A key that its owner has replaced must not be left on the stack.
  mi_chacha20_wipe(input);
  mi_chacha20_wipe((uint32_t*)(void*)x);
}
