// Owns: the contended side of locks, and which thread is forking.
// May include: base, prim.
// Called by: through lock.h.
// Invariants: a waiter sleeps only after it has marked the lock, so that no release passes it by.
#include "src/sys/lock.h"

#include "src/base/assert.h"
#include "src/prim/prim.h"

enum {
  // Critical sections are short: a look again is cheaper than a sleep.
  MI_LOCK_SPINS = 64,
  MI_LOCK_BOUNDED_SPINS = 32 * 1024,
};

mi_thread_local char _mi_lock_thread_token;

// The token of the thread between _mi_lock_fork_begin and _end, else 0. Relaxed: a thread compares it with its own
// token, which nobody else stores.
static _Atomic(uintptr_t) mi_lock_forking_thread;

static bool mi_lock_spin(mi_lock_t* lock, unsigned spins) {
  for (unsigned i = 0; i < spins; i++) {
    if (mi_atomic_load_relaxed(&lock->word) == 0 && _mi_lock_try_acquire(lock)) {
      return true;
    }
    _mi_atomic_pause();
  }
  return false;
}

// Whether this thread holds the lock and forks; then the acquire is counted as nested.
static bool mi_lock_nest(mi_lock_t* lock) {
  const uintptr_t self = _mi_lock_self();
  if (mi_atomic_load_relaxed(&lock->owner) != self || mi_atomic_load_relaxed(&mi_lock_forking_thread) != self) {
    return false;
  }
  lock->nested++;
  return true;
}

void _mi_lock_acquire_slow(mi_lock_t* lock) {
  if (mi_lock_nest(lock)) {
    return;
  }
  // Waiting for oneself would be for ever.
  mi_assert(mi_atomic_load_relaxed(&lock->owner) != _mi_lock_self());
  if (mi_lock_spin(lock, MI_LOCK_SPINS)) {
    return;
  }
  // Acquire: pairs with the release in _mi_lock_release. The mark may outlive the last waiter: one wake too many.
  while (mi_atomic_exchange_acq_rel(&lock->word, 2) != 0) {
    _mi_prim_wait(&lock->word, 2);
  }
  mi_atomic_store_relaxed(&lock->owner, _mi_lock_self());
}

mi_cold bool _mi_lock_acquire_bounded(mi_lock_t* lock) {
  if (_mi_lock_try_acquire(lock) || mi_lock_nest(lock)) {
    return true;
  }
  // Nothing but this thread itself can open a lock that it holds.
  return mi_atomic_load_relaxed(&lock->owner) != _mi_lock_self() && mi_lock_spin(lock, MI_LOCK_BOUNDED_SPINS);
}

void _mi_lock_wake(mi_lock_t* lock) { _mi_prim_wake(&lock->word, false); }

void _mi_lock_reset(mi_lock_t* lock) {
  lock->nested = 0;
  mi_atomic_store_relaxed(&lock->owner, 0);
  mi_atomic_store_release(&lock->word, 0);
}

void _mi_lock_fork_begin(void) { mi_atomic_store_relaxed(&mi_lock_forking_thread, _mi_lock_self()); }

bool _mi_lock_is_forking(void) { return mi_atomic_load_relaxed(&mi_lock_forking_thread) == _mi_lock_self(); }

void _mi_lock_fork_end(void) { mi_atomic_store_relaxed(&mi_lock_forking_thread, 0); }
