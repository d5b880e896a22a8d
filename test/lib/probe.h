// Owns: finding out whether an address can be read, without a fault.
// May include: test/lib/test.h.
// Called by: tests of guards.
// Invariants: the kernel is asked, by a write to a pipe from the address; no mapping is looked up or changed.
#pragma once

#include <fcntl.h>

#include "test/lib/test.h"

static MI_TEST_UNUSED bool mi_test_is_readable(const void* p) {
  static int fds[2] = {-1, -1};
  static pid_t owner;
  char drop;
  const int saved = errno;
  if (owner != getpid()) {
    MI_REQUIRE(pipe(fds) == 0);
    owner = getpid();
  }
  const ssize_t n = write(fds[1], p, 1);
  const bool readable = n == 1 && read(fds[0], &drop, 1) == 1;
  MI_REQUIRE(n == 1 || errno == EFAULT);
  errno = saved;
  return readable;
}
