// Owns: the hooks for the end of a thread and for fork.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: no lock of ours is held when the C library is called, as it may call malloc.
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "src/prim/prim.h"

static pthread_key_t mi_thread_key;
static _Atomic(bool) mi_thread_has_key;

mi_cold bool _mi_prim_thread_on_exit_init(void (*on_exit)(void* arg)) {
  const int saved_errno = errno;
  const bool done = pthread_key_create(&mi_thread_key, on_exit) == 0;
  errno = saved_errno;
  // Release: pairs with the acquire in _mi_prim_thread_on_exit_set, so that the key is seen.
  mi_atomic_store_release(&mi_thread_has_key, done);
  return done;
}

void _mi_prim_thread_on_exit_set(void* arg) {
  // Acquire: pairs with the release in _mi_prim_thread_on_exit_init.
  if (!mi_atomic_load_acquire(&mi_thread_has_key)) {
    return;
  }
  // The C library may allocate the thread's first value of a late key. That comes back to our malloc in this thread, which
  // has a theap by then and does not arm again.
  const int saved_errno = errno;
  (void)pthread_setspecific(mi_thread_key, arg);
  errno = saved_errno;
}

void _mi_prim_thread_on_exit_done(void) {
  if (mi_atomic_exchange_acq_rel(&mi_thread_has_key, false)) {
    (void)pthread_key_delete(mi_thread_key);
  }
}

mi_cold bool _mi_prim_fork_hooks(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  const int saved_errno = errno;
  const bool done = pthread_atfork(prepare, parent, child) == 0;
  errno = saved_errno;
  return done;
}
