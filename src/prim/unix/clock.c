// Owns: the clock.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: errno is untouched.
#include <errno.h>
#include <time.h>

#include "src/prim/prim.h"

// The C library reads it from a page that the kernel keeps up to date, without a system call.
#if defined(CLOCK_MONOTONIC_COARSE)
enum { MI_CLOCK_CHEAPEST = CLOCK_MONOTONIC_COARSE };
#else
enum { MI_CLOCK_CHEAPEST = CLOCK_MONOTONIC };
#endif

mi_early int64_t _mi_prim_clock_ms(void) {
  const int saved_errno = errno;
  struct timespec now;
  const bool known = clock_gettime(MI_CLOCK_CHEAPEST, &now) == 0 || clock_gettime(CLOCK_MONOTONIC, &now) == 0;
  errno = saved_errno;
  return known ? (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 : 0;
}
