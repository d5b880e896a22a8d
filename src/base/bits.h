// Owns: bit arithmetic on words and sizes.
// May include: base/compiler.h.
// Called by: everyone.
// Invariants: pure functions; a zero argument is a precondition violation where said.
#pragma once

#include "src/base/compiler.h"

// Index of the lowest set bit of x; x is not zero.
mi_inline unsigned _mi_bits_ctz64(uint64_t x) { return (unsigned)__builtin_ctzll(x); }

// Index of the highest set bit of x; x is not zero.
mi_inline unsigned _mi_bits_log2_64(uint64_t x) { return 63U - (unsigned)__builtin_clzll(x); }

mi_inline unsigned _mi_bits_popcount64(uint64_t x) { return (unsigned)__builtin_popcountll(x); }

// How many bits of each byte of x are set, in that byte; and the sum of the bytes, which is below 65536.
mi_inline uint64_t _mi_bits_count_in_bytes(uint64_t x) {
  x -= (x >> 1) & UINT64_C(0x5555555555555555);
  x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
  return (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

// Wraps: of the product only the highest part is the sum.
mi_inline mi_wraps uint32_t _mi_bits_sum_bytes(uint64_t x) {
  x = (x & UINT64_C(0x00ff00ff00ff00ff)) + ((x >> 8) & UINT64_C(0x00ff00ff00ff00ff));
  return (uint32_t)((x * UINT64_C(0x0001000100010001)) >> 48);
}

mi_inline bool _mi_is_power_of_two(size_t x) { return x != 0 && (x & (x - 1)) == 0; }

// Rounds up to a multiple of a power of two; the caller has excluded overflow.
mi_inline size_t _mi_align_up(size_t x, size_t align) { return (x + align - 1) & ~(align - 1); }

mi_inline size_t _mi_align_down(size_t x, size_t align) { return x & ~(align - 1); }

mi_inline uintptr_t _mi_align_up_ptr(uintptr_t x, size_t align) { return (x + align - 1) & ~((uintptr_t)align - 1); }

mi_inline bool _mi_is_aligned(const void* p, size_t align) { return ((uintptr_t)p & (align - 1)) == 0; }

mi_inline size_t _mi_div_up(size_t x, size_t d) { return x / d + (x % d != 0); }

mi_inline size_t _mi_min(size_t a, size_t b) { return a < b ? a : b; }

mi_inline size_t _mi_max(size_t a, size_t b) { return a > b ? a : b; }

// Multiplies two sizes; true when the product does not fit.
mi_inline bool _mi_mul_overflow(size_t a, size_t b, size_t* product) { return __builtin_mul_overflow(a, b, product); }

mi_inline bool _mi_add_overflow(size_t a, size_t b, size_t* sum) { return __builtin_add_overflow(a, b, sum); }

// Wraps: what is shifted out comes in again.
mi_inline mi_wraps uint64_t _mi_rotl64(uint64_t x, unsigned shift) { return (x << shift) | (x >> ((64U - shift) & 63U)); }

// The exclusive or of the upper and the lower half of a product: every bit of both factors counts.
mi_inline uint64_t _mi_bits_mul_fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  const unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)(product >> 64) ^ (uint64_t)product;
#else
  const uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
  const uint64_t left = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
  const uint64_t right = (a & UINT32_MAX) * (b >> 32) + (left & UINT32_MAX);
  return ((a >> 32) * (b >> 32) + (left >> 32) + (right >> 32)) ^ (right << 32 | (low & UINT32_MAX));
#endif
}

// Set and clear a bit of *word, by its number modulo 32, and return what it was: one instruction where the processor has it,
// which compilers do not find.
#if defined(__x86_64__) || defined(__i386__)
mi_inline bool _mi_bits_set32(uint32_t* word, uint32_t number) {
  bool was;
  __asm__("bts %2, %0"
          : "+r"(*word), "=@ccc"(was)
          : "r"(number));
  return was;
}

mi_inline bool _mi_bits_clear32(uint32_t* word, uint32_t number) {
  bool was;
  __asm__("btr %2, %0"
          : "+r"(*word), "=@ccc"(was)
          : "r"(number));
  return was;
}
#else
mi_inline bool _mi_bits_set32(uint32_t* word, uint32_t number) {
  const uint32_t before = *word;
  *word = before | (UINT32_C(1) << (number & 31));
  return ((before >> (number & 31)) & 1) != 0;
}

mi_inline bool _mi_bits_clear32(uint32_t* word, uint32_t number) {
  const uint32_t before = *word;
  *word = before & ~(UINT32_C(1) << (number & 31));
  return ((before >> (number & 31)) & 1) != 0;
}
#endif

// Sets the lowest n bits; n is at most 64.
mi_inline uint64_t _mi_bits_mask64(unsigned n) { return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

// Of eight numbers of 16 bits, the lowest first, number k becomes one below `bound` + k, which is at most 65536 / 2, by a
// multiplication whose upper half it is.
enum { MI_BITS_LANES = 8 };

mi_inline void _mi_bits_scale16(uint16_t scaled[MI_BITS_LANES], uint64_t low, uint64_t high, uint32_t bound) {
#if defined(__SSE2__)
  // The instruction takes its lanes for numbers without a sign, the compiler's function names them with one.
  typedef short mi_lanes_t __attribute__((vector_size(16)));
  typedef uint16_t mi_plain_lanes_t __attribute__((vector_size(16)));
  typedef uint64_t mi_halves_t __attribute__((vector_size(16)));
  const mi_plain_lanes_t bounds = (mi_plain_lanes_t){0, 1, 2, 3, 4, 5, 6, 7} + (uint16_t)bound;
  const mi_lanes_t upper = __builtin_ia32_pmulhuw128((mi_lanes_t)(mi_halves_t){low, high}, (mi_lanes_t)bounds);
  __builtin_memcpy(scaled, &upper, sizeof(upper));
#else
  for (unsigned k = 0; k < MI_BITS_LANES; k++) {
    const uint64_t numbers = k < MI_BITS_LANES / 2 ? low : high;
    scaled[k] = (uint16_t)(((uint32_t)(numbers >> (16 * (k % 4))) & 0xffff) * (bound + k) >> 16);
  }
#endif
}
