// Owns: the encoding of the links that stand in free blocks, where a program can still write to them.
// May include: base.
// Called by: heap, alloc.
// Invariants: a link is bound to the place it stands in and to two keys of its page, so one copied from elsewhere, or
// overwritten, decodes to an address outside the page but for chance; whoever follows it checks the address first.
#pragma once

#include "src/base/bits.h"

enum { MI_LINK_ROTATION = 17 };

mi_inline uintptr_t mi_link_rotate_left(uintptr_t x) {
  return (x << MI_LINK_ROTATION) | (x >> (sizeof(x) * 8 - MI_LINK_ROTATION));
}

mi_inline uintptr_t mi_link_rotate_right(uintptr_t x) {
  return (x >> MI_LINK_ROTATION) | (x << (sizeof(x) * 8 - MI_LINK_ROTATION));
}

// What to store at address `at` for a link to `next`.
mi_inline uintptr_t _mi_hard_link_encode(uintptr_t next, uintptr_t at, const uintptr_t keys[2]) {
  return mi_link_rotate_left(next ^ keys[0]) + (keys[1] ^ at);
}

// The link that `stored` at address `at` stands for.
mi_inline uintptr_t _mi_hard_link_decode(uintptr_t stored, uintptr_t at, const uintptr_t keys[2]) {
  return mi_link_rotate_right(stored - (keys[1] ^ at)) ^ keys[0];
}
