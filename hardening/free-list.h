// Owns: the encoding of the links that stand in free blocks, where a program can still write to them.
// May include: base.
// Called by: heap, alloc.
// Invariants: a link is bound to the place it stands in and to secret keys, so one that was copied from elsewhere, or
// overwritten, decodes to an address outside the page but for chance; whoever follows it checks the address first.
//
// The link is multiplied by a secret odd number, its bytes are reversed, and the place and a key are mixed in. What is
// done to the low bytes of a stored link then acts on the high bits of the decoded one, which leaves the page for certain;
// what is done to the high bytes is multiplied by the secret inverse before it acts, so nobody can choose the result.
#pragma once

#include "src/base/bits.h"

typedef struct mi_link_key_s {
  uintptr_t link;    // mixed with the link
  uintptr_t place;   // mixed with the place
  uintptr_t factor;  // odd
} mi_link_key_t;

// A key from three random words.
mi_inline mi_link_key_t _mi_hard_link_key(uint64_t a, uint64_t b, uint64_t c) {
  return (mi_link_key_t){(uintptr_t)a, (uintptr_t)b, (uintptr_t)c | 1};
}

// The inverse of an odd factor modulo the size of a word: five right bits to start with, and twice as many a step.
mi_inline mi_wraps uintptr_t _mi_hard_link_inverse(uintptr_t factor) {
  uintptr_t x = (3 * factor) ^ 2;
  for (unsigned right = 5; right < 8 * sizeof(x); right *= 2) {
    x *= 2 - factor * x;
  }
  return x;
}

mi_inline uintptr_t mi_link_reverse(uintptr_t x) {
  return sizeof(x) == 8 ? (uintptr_t)__builtin_bswap64((uint64_t)x) : (uintptr_t)__builtin_bswap32((uint32_t)x);
}

// What to store at address `at` for a link to `next`.
// Wraps: the product is one modulo the size of a word.
mi_inline mi_wraps uintptr_t _mi_hard_link_encode(uintptr_t next, uintptr_t at, const mi_link_key_t* key) {
  uintptr_t link = mi_link_reverse((next ^ key->link) * key->factor) ^ key->place;
  // Else key and place are mixed first, with one instruction more.
  mi_opaque(link);
  return link ^ at;
}

// The link that `stored` at address `at` stands for; `inverse` is that of the key's factor.
// Wraps: so is this one.
mi_inline mi_wraps uintptr_t _mi_hard_link_decode(uintptr_t stored, uintptr_t at, const mi_link_key_t* key, uintptr_t inverse) {
  return (mi_link_reverse(stored ^ key->place ^ at) * inverse) ^ key->link;
}
