// Owns: the block function of the ChaCha20 stream cipher (RFC 8439).
// May include: base/compiler.h.
// Called by: sys/random.
// Invariants: pure functions; time and memory accesses do not depend on key, nonce, counter or output.
#pragma once

#include "src/base/compiler.h"

enum {
  MI_CHACHA20_KEY_SIZE = 32,
  MI_CHACHA20_NONCE_SIZE = 12,
  MI_CHACHA20_BLOCK_SIZE = 64,
};

// _mi_chacha20_load_key turns the bytes of a key into the words that the block function takes.
void _mi_chacha20_load_key(const uint8_t bytes[MI_CHACHA20_KEY_SIZE], uint32_t key[8]);

// _mi_chacha20_load_nonce does the same for a nonce.
void _mi_chacha20_load_nonce(const uint8_t bytes[MI_CHACHA20_NONCE_SIZE], uint32_t nonce[3]);

// _mi_chacha20_block writes block number `counter` of the key stream. A key must not see one pair of counter and nonce
// twice. `out` may not overlap the key or the nonce.
void _mi_chacha20_block(const uint32_t key[8], uint32_t counter, const uint32_t nonce[3], uint8_t out[MI_CHACHA20_BLOCK_SIZE]);
