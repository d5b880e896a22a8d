// Owns: unpredictable numbers: a root for the process and a context for each theap.
// May include: base, prim, sys/lock.h, sys/os.h.
// Called by: heap, hardening's callers, sys.
// Invariants: a zeroed context is valid and seeds itself at its first use; errno is untouched.
//
// What is guaranteed:
// * Numbers come from chacha20, keyed from the system's generator. Keys are replaced at every refill by output that is
//   used for nothing else, so what was drawn before cannot be computed from memory seen later.
// * A forked or cloned child never repeats its parent's numbers or those of a sibling, whether atfork handlers run or not.
//   The root, its lock included, is alone on an OS page that the kernel hands to a child filled with zeroes. The page
//   holds the root's generation, which no context's can equal once it is zero; contexts compare on every draw, so the
//   child's first draw from any context seeds a new root, with a generation never used before, and then the context.
//   Where the kernel cannot wipe pages the child's fork handler does the same, and only a child without handlers (a raw
//   clone on Linux before 4.14) would repeat.
// * A child that shares the memory (vfork, CLONE_VM) shares the contexts: nothing repeats, as they advance for both.
// * When the system's generator is not available (very early boot, a sandbox) a weaker seed of addresses, thread id and
//   clock is used, and the system is asked again at each new context.
// A context belongs to one thread at a time.
#pragma once

#include "src/base/atomic.h"

enum {
  MI_RANDOM_POOL = 16,  // 64-bit words in a refill of two chacha20 blocks
  MI_RANDOM_KEY = 4,    // 64-bit words of it that become the next key
};

typedef struct mi_random_s {
  uint32_t key[2 * MI_RANDOM_KEY];
  uint64_t pool[MI_RANDOM_POOL];
  uint32_t left;        // words of the pool not handed out yet
  uint32_t generation;  // of the root it descends from; 0: not seeded
} mi_random_t;

// The current generation of the root, 0 when there is no root yet or the page was wiped.
uint32_t _mi_random_generation(void);

// Whether the root was seeded without the system's generator. For messages.
bool _mi_random_is_weak(void);

// Seeds a context from the root.
void _mi_random_init(mi_random_t* random);

// Seeds `child` from a parent that the calling thread owns; NULL: from the root.
void _mi_random_split(mi_random_t* parent, mi_random_t* child);

// The next 64 bits.
uint64_t _mi_random_next(mi_random_t* random);

// A number below `bound`, which is not zero. The bias is below bound / 2^64.
size_t _mi_random_below(mi_random_t* random, size_t bound);

// Makes the root and so all contexts seed themselves anew. Called by the child's fork handler.
void _mi_random_reseed_after_fork(void);

// The lock of the root, for the fork handlers; in the child it reseeds.
void _mi_random_fork_prepare(void);
void _mi_random_fork_release(bool in_child);
