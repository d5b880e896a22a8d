// Owns: memory in huge pages that the administrator set aside (hugetlb).
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: every page is there when the call returns, so that no later touch can fail; an address is a wish.
#include "src/base/bits.h"
#include "src/prim/prim.h"
#include "src/prim/linux/syscall.h"

enum {
  // The same on all machines; headers may hide them.
  MI_HUGE_MAP_HUGETLB = 0x40000,
  MI_HUGE_MAP_SHIFT = 26,
  MI_HUGE_TRIES = 8,
};

#if defined(__alpha__) || defined(__mips__) || defined(__xtensa__) || defined(__hppa__)
enum { MI_HUGE_IS_KNOWN = 0 };
#else
enum { MI_HUGE_IS_KNOWN = 1 };
#endif

// Linux 5.14 and later say here what a touch would end the process for: a control group's limit, or a node without pages. A
// kernel before that is believed, as it has counted the pages when they were mapped.
static int mi_huge_populate(void* addr, size_t size) {
  int err = EAGAIN;
  for (int tries = 0; (err == EAGAIN || err == EINTR) && tries < MI_HUGE_TRIES; tries++) {
    err = mi_syscall_error(mi_syscall3(SYS_madvise, mi_syscall_arg(addr), (long)size, MI_MADV_POPULATE_WRITE));
  }
  return err == EINVAL ? 0 : err;
}

int _mi_prim_reserve_huge(void* wish, size_t size, size_t huge_size, int numa_node, void** addr) {
  if (MI_HUGE_IS_KNOWN == 0 || !_mi_is_power_of_two(huge_size)) {
    return ENOTSUP;
  }
  const int flags = (int)(MI_HUGE_MAP_HUGETLB | _mi_bits_log2_64(huge_size) << MI_HUGE_MAP_SHIFT);
  void* p;
  int err = mi_syscall_mmap(wish, size, PROT_READ | PROT_WRITE, flags, &p);
  if (err != 0) {
    return err;
  }
  if (numa_node >= 0) {
    (void)_mi_prim_numa_prefer(p, size, numa_node);
  }
  err = mi_huge_populate(p, size);
  if (err != 0) {
    (void)mi_syscall3(SYS_munmap, mi_syscall_arg(p), (long)size, 0);
    return err;
  }
  *addr = p;
  return 0;
}
