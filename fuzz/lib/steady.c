// Owns: the numbers and the clock that a run has.
// May include: fuzz/lib, src/sys/random.h, src/prim/prim.h.
// Called by: through steady.h, and by the allocator through --wrap.
// Invariants: threads of a run take turns, so that plain order is what they draw in; atomic only for what starts and ends beside it.
#include "fuzz/lib/steady.h"

#include "fuzz/lib/fuzz.h"
#include "src/prim/prim.h"
#include "src/sys/random.h"

static _Atomic(uint64_t) mi_fuzz_steady_state;
static _Atomic(int64_t) mi_fuzz_steady_ms = 1000;

uint64_t __wrap__mi_random_next(mi_random_t* random);
size_t __wrap__mi_random_below(mi_random_t* random, size_t bound);
int64_t __wrap__mi_prim_clock_ms(void);

void mi_fuzz_steady_begin(uint64_t seed) { atomic_store_explicit(&mi_fuzz_steady_state, seed, memory_order_relaxed); }

void mi_fuzz_steady_pass_ms(uint64_t ms) {
  atomic_fetch_add_explicit(&mi_fuzz_steady_ms, (int64_t)ms, memory_order_relaxed);
}

uint64_t __wrap__mi_random_next(mi_random_t* random) {
  (void)random;
  uint64_t state = atomic_fetch_add_explicit(&mi_fuzz_steady_state, UINT64_C(0x9e3779b97f4a7c15), memory_order_relaxed);
  return mi_fuzz_random(&state);
}

size_t __wrap__mi_random_below(mi_random_t* random, size_t bound) { return (size_t)(__wrap__mi_random_next(random) % bound); }

int64_t __wrap__mi_prim_clock_ms(void) { return atomic_load_explicit(&mi_fuzz_steady_ms, memory_order_relaxed); }
