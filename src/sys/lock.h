// Owns: the lock of the allocator's slow paths: one word, sleeping when contended.
// May include: base, prim.
// Called by: sys, region, heap, api.
// Invariants: zero is an open lock; nothing is allocated and errno is untouched; an uncontended pair makes no system call.
//
// Fork. The prepare handler acquires every lock and then calls _mi_lock_fork_begin; the parent's and the child's handlers
// call _mi_lock_fork_end and then release (parent) or reset (child) every lock. In between, handlers of others may run on
// the same thread and allocate: an acquire of a lock which that thread holds succeeds at once, and the lock counts such
// nested acquires so that exactly their releases do nothing. The state a nested holder meets is sound, since the outer
// one is in no critical section, it only keeps others out. Other threads wait as ever.
// A thread is known by the address of a thread-local variable: it survives the fork, costs no system call, and needs
// none that a sandbox may forbid.
#pragma once

#include "src/base/atomic.h"

typedef struct mi_lock_s {
  _Atomic(uint32_t) word;    // 0 open, 1 held, 2 held and somebody may sleep
  uint32_t nested;           // acquires by the holder while it forks; only the holder touches it
  _Atomic(uintptr_t) owner;  // token of the holder's thread; meaningful to that thread only
} mi_lock_t;

extern mi_thread_local char _mi_lock_thread_token;

mi_inline uintptr_t _mi_lock_self(void) { return (uintptr_t)&_mi_lock_thread_token; }

mi_cold void _mi_lock_acquire_slow(mi_lock_t* lock);
mi_cold void _mi_lock_wake(mi_lock_t* lock);

// Takes the lock if it is open.
mi_inline bool _mi_lock_try_acquire(mi_lock_t* lock) {
  uint32_t open = 0;
  // Acquire: pairs with the release in _mi_lock_release.
  if (!mi_atomic_cas_strong_acq_rel(&lock->word, &open, 1)) {
    return false;
  }
  mi_atomic_store_relaxed(&lock->owner, _mi_lock_self());
  return true;
}

// Takes the lock, waiting until it is open. A thread must not hold it already, unless it is forking.
mi_inline void _mi_lock_acquire(mi_lock_t* lock) {
  if (mi_unlikely(!_mi_lock_try_acquire(lock))) {
    _mi_lock_acquire_slow(lock);
  }
}

// Takes the lock if it opens within a bounded time of about a millisecond: for reports, which must come out even when
// the interrupted code holds the lock.
bool _mi_lock_acquire_bounded(mi_lock_t* lock);

// Whether the calling thread holds it.
mi_inline bool _mi_lock_is_mine(const mi_lock_t* lock) {
  return mi_atomic_load_relaxed(&lock->owner) == _mi_lock_self();
}

mi_inline void _mi_lock_release(mi_lock_t* lock) {
  if (mi_unlikely(lock->nested != 0)) {
    lock->nested--;
    return;
  }
  mi_atomic_store_relaxed(&lock->owner, 0);
  // Release: pairs with the acquire of the next holder.
  if (mi_unlikely(mi_atomic_exchange_acq_rel(&lock->word, 0) == 2)) {
    _mi_lock_wake(lock);
  }
}

// Opens a lock in a forked child, whoever held it: no other thread exists there.
void _mi_lock_reset(mi_lock_t* lock);

// The calling thread holds every lock and forks. Two threads cannot be here at once, as the locks exclude each other.
void _mi_lock_fork_begin(void);

// Whether the calling thread is between that and its end.
bool _mi_lock_is_forking(void);

// Ends that, in the parent and in the child, before the locks are released or reset.
void _mi_lock_fork_end(void);
