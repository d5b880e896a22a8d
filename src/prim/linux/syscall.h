// Owns: raw system calls, and the numbers of the kernel's interface that C libraries hide.
// May include: base, the C library's headers.
// Called by: prim/linux.
// Invariants: a call gives the kernel's own result; errno is untouched and no thread is cancelled in one, as it could be in
// the C library's functions of the same names.
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/compiler.h"

enum {
  // The kernel's results from here up to -1 are negated error numbers.
  MI_SYSCALL_MAX_ERROR = 4095,
  // madvise and mremap, the same on all machines. Headers may be older than the kernel, or hide them.
  MI_MADV_FREE = 8,
  MI_MADV_HUGEPAGE = 14,
  MI_MADV_NOHUGEPAGE = 15,
  MI_MADV_WIPEONFORK = 18,
  MI_MADV_POPULATE_WRITE = 23,
  MI_MADV_GUARD_INSTALL = 102,
  MI_MADV_GUARD_REMOVE = 103,
  MI_MREMAP_MAYMOVE = 1,
  MI_MREMAP_FIXED = 2,
  MI_MREMAP_DONTUNMAP = 4,
  MI_FUTEX_WAIT_PRIVATE = 0 | 128,
  MI_FUTEX_WAKE_PRIVATE = 1 | 128,
  MI_FUTEX_CMP_REQUEUE_PRIVATE = 4 | 128,
  MI_GRND_NONBLOCK = 1,
};

// As new as Linux 6.10, and only for 64 bits.
#if defined(SYS_mseal)
enum { MI_SYS_MSEAL = SYS_mseal };
#elif defined(__alpha__)
enum { MI_SYS_MSEAL = 572 };
#elif defined(__mips__)
enum { MI_SYS_MSEAL = 5462 };
#else
enum { MI_SYS_MSEAL = 462 };
#endif

// Reads what no code that the memory sanitizer knows has written: words of any stack, and what the C library fills in.
#if MI_MSAN_BUILD
#define mi_no_msan __attribute__((no_sanitize("memory")))
#else
#define mi_no_msan
#endif

#if MI_MSAN_BUILD
extern void __msan_unpoison(const volatile void* p, size_t size);

// Tells the memory sanitizer, which does not see these calls, what one of them has written.
mi_inline void mi_syscall_written(long nr, long a, long b, long c, long d, long result) {
  // The sizes of what the system fills in: struct rusage, sysinfo and sigaction.
  enum { MI_SYSCALL_USAGE = 144,
         MI_SYSCALL_SYSINFO = 112,
         MI_SYSCALL_ACTION = 32 };
  if (result < 0 && result >= -MI_SYSCALL_MAX_ERROR) {
    return;
  }
  switch (nr) {
    case SYS_read: __msan_unpoison((void*)b, (size_t)result); break;
    case SYS_getrandom: __msan_unpoison((void*)a, (size_t)result); break;
    case SYS_mmap: __msan_unpoison((void*)result, (size_t)b); break;
    case SYS_mremap: __msan_unpoison((void*)result, (size_t)c); break;
    case SYS_madvise: __msan_unpoison((void*)a, (size_t)b); break;
    case SYS_sysinfo: __msan_unpoison((void*)a, MI_SYSCALL_SYSINFO); break;
    case SYS_getrusage: __msan_unpoison((void*)b, MI_SYSCALL_USAGE); break;
    case SYS_prlimit64: __msan_unpoison((void*)d, d == 0 ? 0 : 2 * sizeof(uint64_t)); break;
    case SYS_getcpu: __msan_unpoison((void*)b, b == 0 ? 0 : sizeof(unsigned)); break;
    case SYS_get_mempolicy: __msan_unpoison((void*)b, b == 0 ? 0 : (size_t)c / 8); break;
    case SYS_rt_sigaction: __msan_unpoison((void*)c, c == 0 ? 0 : MI_SYSCALL_ACTION); break;
    case SYS_rt_sigprocmask: __msan_unpoison((void*)c, c == 0 ? 0 : (size_t)d); break;
    default: break;
  }
}
#else
#define mi_syscall_written(nr, a, b, c, d, result) ((void)0)
#endif

// Six arguments for all: a call that takes fewer ignores the rest.
#if defined(__x86_64__) && defined(__LP64__)

mi_inline long mi_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory", "cc");
  mi_syscall_written(nr, a, b, c, d, result);
  return result;
}

#elif defined(__i386__)

// The sixth argument goes in ebp, which no constraint can name where it is the frame pointer: it is loaded from memory, as is
// the number, so that one register is enough to find both after the push.
mi_inline long mi_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
  const long packed[2] = {nr, f};
  long result;
  __asm__ volatile(
      "pushl %%ebp\n\t"
      "movl 4(%%eax), %%ebp\n\t"
      "movl (%%eax), %%eax\n\t"
      "int $0x80\n\t"
      "popl %%ebp"
      : "=a"(result)
      : "a"(packed), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
      : "memory", "cc");
  return result;
}

#elif defined(__aarch64__) && defined(__LP64__)

mi_inline long mi_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = nr;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory", "cc");
  return x0;
}

#elif defined(__arm__) && defined(__ARM_EABI__)

// The number goes in r7, which Thumb code uses as its frame pointer: it is set aside in a register of the compiler's choice.
mi_inline long mi_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  register long r3 __asm__("r3") = d;
  register long r4 __asm__("r4") = e;
  register long r5 __asm__("r5") = f;
  long saved;
  __asm__ volatile(
      "mov %[saved], r7\n\t"
      "mov r7, %[nr]\n\t"
      "svc #0\n\t"
      "mov r7, %[saved]"
      : "+r"(r0), [saved] "=&r"(saved)
      : [nr] "r"(nr), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
      : "memory", "cc");
  return r0;
}

#elif defined(__riscv) && __riscv_xlen == 64

mi_inline long mi_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
  register long a7 __asm__("a7") = nr;
  register long a0 __asm__("a0") = a;
  register long a1 __asm__("a1") = b;
  register long a2 __asm__("a2") = c;
  register long a3 __asm__("a3") = d;
  register long a4 __asm__("a4") = e;
  register long a5 __asm__("a5") = f;
  __asm__ volatile("ecall"
                   : "+r"(a0)
                   : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                   : "memory");
  return a0;
}

#else

#define MI_SYSCALL_BY_LIBC 1

mi_inline long mi_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
  const int saved_errno = errno;
  long result = syscall(nr, a, b, c, d, e, f);
  if (result == -1) {
    result = -errno;
    errno = saved_errno;
  }
  return result;
}

#endif

mi_inline long mi_syscall3(long nr, long a, long b, long c) { return mi_syscall6(nr, a, b, c, 0, 0, 0); }

// Whether a result stands for an error; the results that are addresses can be negative as well.
mi_inline bool mi_syscall_failed(long result) { return (unsigned long)result > (unsigned long)-MI_SYSCALL_MAX_ERROR - 1; }

// The error number of a result, or 0.
mi_inline int mi_syscall_error(long result) { return mi_syscall_failed(result) ? (int)-result : 0; }

// An address or any other word as an argument.
mi_inline long mi_syscall_arg(const volatile void* p) { return (long)(uintptr_t)p; }

// mmap of anonymous memory. Machines differ in how it is called; the C library knows for those without assembly here.
mi_inline int mi_syscall_mmap(void* hint, size_t size, int prot, int flags, void** addr) {
#if defined(MI_SYSCALL_BY_LIBC)
  const int saved_errno = errno;
  void* const p = mmap(hint, size, prot, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    const int err = errno;
    errno = saved_errno;
    return err;
  }
  *addr = p;
#else
#if defined(SYS_mmap2)
  const long nr = SYS_mmap2;
#else
  const long nr = SYS_mmap;
#endif
  const long result = mi_syscall6(nr, mi_syscall_arg(hint), (long)size, prot, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mi_syscall_failed(result)) {
    return mi_syscall_error(result);
  }
  *addr = (void*)(uintptr_t)result;
#endif
  return 0;
}
