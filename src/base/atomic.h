// Owns: the atomic operations the allocator uses, with the memory order in the name.
// May include: base/compiler.h.
// Called by: every unit that shares a word between threads.
// Invariants: each use names in a comment what it pairs with; sequentially consistent order only where said why.
#pragma once

#include <stdatomic.h>

#include "src/base/compiler.h"

#define mi_atomic_load_relaxed(p) atomic_load_explicit(p, memory_order_relaxed)
#define mi_atomic_load_acquire(p) atomic_load_explicit(p, memory_order_acquire)
#define mi_atomic_store_relaxed(p, x) atomic_store_explicit(p, x, memory_order_relaxed)
#define mi_atomic_store_release(p, x) atomic_store_explicit(p, x, memory_order_release)
// Relaxed access to a plain word: what one thread writes so, and reads plainly, others may look at.
#define mi_atomic_peek(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define mi_atomic_poke(p, x) __atomic_store_n(p, x, __ATOMIC_RELAXED)

#define mi_atomic_exchange_acq_rel(p, x) atomic_exchange_explicit(p, x, memory_order_acq_rel)
#define mi_atomic_exchange_relaxed(p, x) atomic_exchange_explicit(p, x, memory_order_relaxed)
#define mi_atomic_add_relaxed(p, x) atomic_fetch_add_explicit(p, x, memory_order_relaxed)
#define mi_atomic_add_acq_rel(p, x) atomic_fetch_add_explicit(p, x, memory_order_acq_rel)
#define mi_atomic_sub_acq_rel(p, x) atomic_fetch_sub_explicit(p, x, memory_order_acq_rel)
#define mi_atomic_sub_relaxed(p, x) atomic_fetch_sub_explicit(p, x, memory_order_relaxed)
#define mi_atomic_or_acq_rel(p, x) atomic_fetch_or_explicit(p, x, memory_order_acq_rel)
#define mi_atomic_or_relaxed(p, x) atomic_fetch_or_explicit(p, x, memory_order_relaxed)
#define mi_atomic_and_acq_rel(p, x) atomic_fetch_and_explicit(p, x, memory_order_acq_rel)
#define mi_atomic_and_relaxed(p, x) atomic_fetch_and_explicit(p, x, memory_order_relaxed)

// Compare and swap; on failure *expected holds what was there.
#define mi_atomic_cas_weak_acq_rel(p, expected, desired) \
  atomic_compare_exchange_weak_explicit(p, expected, desired, memory_order_acq_rel, memory_order_acquire)
#define mi_atomic_cas_weak_relaxed(p, expected, desired) \
  atomic_compare_exchange_weak_explicit(p, expected, desired, memory_order_relaxed, memory_order_relaxed)
#define mi_atomic_cas_strong_acq_rel(p, expected, desired) \
  atomic_compare_exchange_strong_explicit(p, expected, desired, memory_order_acq_rel, memory_order_acquire)

// Loads for the paths where each instruction counts: compilers do not fold an atomic load into the instruction that uses it.
// _follow_: x plus word number `index` of the table that begins `offset` bytes, a constant, behind x. _is_: whether x is at p.
// _is_above_: whether more than x is. For assembly a constant is one only where the compiler optimises.
#if defined(__x86_64__) && defined(__LP64__) && defined(__OPTIMIZE__) && !MI_TSAN_BUILD
// A load of this machine acquires; the compiler is told.
mi_inline uintptr_t mi_atomic_follow_acquire(uintptr_t x, size_t index, const size_t offset) {
  __asm__ volatile("add %c2(%0,%1,8), %0"
                   : "+r"(x)
                   : "r"(index), "i"(offset)
                   : "cc", "memory");
  return x;
}

mi_inline bool mi_atomic_load_is_relaxed(const _Atomic(uintptr_t)* p, uintptr_t x) {
  bool is;
  __asm__ volatile("cmp %2, %1"
                   : "=@cce"(is)
                   : "m"(*p), "r"(x));
  return is;
}

mi_inline bool mi_atomic_load_is_above_relaxed(const _Atomic(uintptr_t)* p, uintptr_t x) {
  bool is_above;
  __asm__ volatile("cmp %1, %2"
                   : "=@ccb"(is_above)
                   : "m"(*p), "r"(x));
  return is_above;
}
#else
mi_inline uintptr_t mi_atomic_follow_acquire(uintptr_t x, size_t index, size_t offset) {
  return x + mi_atomic_load_acquire((const _Atomic(uintptr_t)*)(x + offset) + index);
}

mi_inline bool mi_atomic_load_is_relaxed(const _Atomic(uintptr_t)* p, uintptr_t x) { return mi_atomic_load_relaxed(p) == x; }
mi_inline bool mi_atomic_load_is_above_relaxed(const _Atomic(uintptr_t)* p, uintptr_t x) { return mi_atomic_load_relaxed(p) > x; }
#endif

// Tells the processor that this is a spin loop.
mi_inline void _mi_atomic_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield" ::
                       : "memory");
#else
  __asm__ volatile("" ::
                       : "memory");
#endif
}
