// Owns: the kernel's random numbers.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: never waits for the kernel's generator to be seeded.
#include <fcntl.h>
#include <sys/auxv.h>

#include "src/prim/linux/linux.h"
#include "src/prim/linux/syscall.h"

// The kernel gives up to this many bytes without being interrupted.
enum { MI_RANDOM_CHUNK = 256 };

// For kernels before 3.17, and sandboxes that answer a call they do not know.
static bool mi_random_from_device(uint8_t* buf, size_t size) {
  const long fd = mi_syscall6(SYS_openat, AT_FDCWD, mi_syscall_arg("/dev/urandom"), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
  if (mi_syscall_failed(fd)) {
    return false;
  }
  size_t len = 0;
  while (len < size) {
    const long n = mi_syscall3(SYS_read, fd, mi_syscall_arg(buf + len), (long)(size - len));
    if (n == -EINTR) {
      continue;
    }
    if (n <= 0) {
      break;
    }
    len += (size_t)n;
  }
  (void)mi_syscall3(SYS_close, fd, 0, 0);
  return len == size;
}

bool _mi_prim_random(void* buf, size_t size) {
  uint8_t* const bytes = buf;
  size_t len = 0;
  while (len < size) {
    const size_t chunk = size - len < MI_RANDOM_CHUNK ? size - len : MI_RANDOM_CHUNK;
    const long n = mi_syscall3(SYS_getrandom, mi_syscall_arg(bytes + len), (long)chunk, MI_GRND_NONBLOCK);
    if (n == -EINTR) {
      continue;
    }
    if (n == -EAGAIN) {
      // Not seeded yet, and what the device gives then is predictable.
      return false;
    }
    if (n <= 0) {
      return mi_random_from_device(bytes, size);
    }
    len += (size_t)n;
  }
  return true;
}

bool _mi_prim_random_at_start(uint8_t bytes[16]) {
  const int saved_errno = errno;
  const uint8_t* const from = (const uint8_t*)(uintptr_t)getauxval(AT_RANDOM);
  errno = saved_errno;
  if (from == NULL) {
    return false;
  }
  for (size_t i = 0; i < 16; i++) {
    bytes[i] = from[i];
  }
  return true;
}
