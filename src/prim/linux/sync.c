// Owns: waiting, waking, yielding and the thread's number.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: waiting, waking and yielding need one system call, futex, which a sandbox must allow any threaded program.
#include <limits.h>
#include <pthread.h>

#include "src/prim/linux/syscall.h"
#include "src/prim/prim.h"

// The old call's time is two longs on every machine; machines that have the new one only have 64-bit time.
#if defined(SYS_futex)
enum { MI_SYNC_FUTEX = SYS_futex };
typedef long mi_sync_time_t;
#else
enum { MI_SYNC_FUTEX = SYS_futex_time64 };
typedef int64_t mi_sync_time_t;
#endif

enum { MI_SYNC_YIELD_NS = 1000 };

static long mi_sync_futex(_Atomic(uint32_t)* word, int operation, long value, const mi_sync_time_t* timeout) {
  return mi_syscall6(MI_SYNC_FUTEX, mi_syscall_arg(word), operation, value, mi_syscall_arg(timeout), 0, 0);
}

int _mi_prim_wait(_Atomic(uint32_t)* word, uint32_t expected) {
  return mi_syscall_error(mi_sync_futex(word, MI_FUTEX_WAIT_PRIVATE, (long)expected, NULL));
}

void _mi_prim_wake(_Atomic(uint32_t)* word, bool all) {
  (void)mi_sync_futex(word, MI_FUTEX_WAKE_PRIVATE, all ? INT_MAX : 1, NULL);
}

void _mi_prim_yield(void) {
  // A sleep that ends by its time-out, as short as the kernel's timers are: whoever we wait for gets this processor whatever
  // its priority, and sched_yield, which a sandbox may forbid, is not needed.
  _Atomic(uint32_t) nobody = 0;
  const mi_sync_time_t timeout[2] = {0, MI_SYNC_YIELD_NS};
  (void)mi_sync_futex(&nobody, MI_FUTEX_WAIT_PRIVATE, 0, timeout);
}

uintptr_t _mi_prim_os_thread_id(void) { return (uintptr_t)mi_syscall3(SYS_gettid, 0, 0, 0); }

uintptr_t _mi_prim_os_thread_id_at_hand(void) {
#if defined(__GLIBC__)
  // The library keeps the number for the owner of a mutex, which is public.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  if (pthread_mutex_trylock(&mutex) == 0) {
    const int owner = mutex.__data.__owner;
    (void)pthread_mutex_unlock(&mutex);
    if (owner > 0) {
      return (uintptr_t)owner;
    }
  }
#endif
  return _mi_prim_os_thread_id();
}
