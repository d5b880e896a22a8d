// Owns: the nodes of a machine whose memory is nearer to some processors than to others.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: a machine that does not tell has one node, number 0.
#include "src/prim/linux/linux.h"
#include "src/prim/linux/syscall.h"

enum {
  MI_NUMA_TEXT_SIZE = 256,
  MI_NUMA_NODES_MAX = 1024,
  MI_NUMA_MASK_BITS = 8 * sizeof(unsigned long),
  MI_NUMA_MPOL_PREFERRED = 1,
  MI_NUMA_MPOL_F_MEMS_ALLOWED = 1 << 2,
};

// The highest node that this process may have memory of. False: the kernel knows of no nodes, or a sandbox keeps it from
// telling.
static bool mi_numa_highest_allowed(size_t* highest) {
#if defined(SYS_get_mempolicy)
  unsigned long mask[MI_NUMA_NODES_MAX / MI_NUMA_MASK_BITS] = {0};
  const long result = mi_syscall6(SYS_get_mempolicy, 0, mi_syscall_arg(mask), MI_NUMA_NODES_MAX, 0, MI_NUMA_MPOL_F_MEMS_ALLOWED, 0);
  for (size_t i = MI_NUMA_NODES_MAX; !mi_syscall_failed(result) && i-- > 0;) {
    if ((mask[i / MI_NUMA_MASK_BITS] >> (i % MI_NUMA_MASK_BITS) & 1) != 0) {
      *highest = i;
      return true;
    }
  }
#else
  (void)highest;
#endif
  return false;
}

// The list of nodes is numbers and ranges, "0-1,4": the last number is the highest.
size_t _mi_prim_numa_nodes(void) {
  size_t highest = 0;
  if (mi_numa_highest_allowed(&highest)) {
    return highest + 1;
  }
  char text[MI_NUMA_TEXT_SIZE];
  const size_t len = _mi_prim_linux_read("/sys/devices/system/node/online", text, sizeof(text));
  size_t number = 0;
  for (size_t i = 0; i < len; i++) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    number = is_digit ? number * 10 + (size_t)(text[i] - '0') : 0;
    if (number >= MI_NUMA_NODES_MAX) {
      return 1;
    }
    highest = is_digit ? number : highest;
  }
  return highest + 1;
}

int _mi_prim_numa_node(void) {
#if defined(SYS_getcpu)
  unsigned node = 0;
  const long result = mi_syscall3(SYS_getcpu, 0, mi_syscall_arg(&node), 0);
  return mi_syscall_failed(result) || node >= MI_NUMA_NODES_MAX ? 0 : (int)node;
#else
  return 0;
#endif
}

int _mi_prim_numa_prefer(void* addr, size_t size, int numa_node) {
#if defined(SYS_mbind)
  unsigned long mask[MI_NUMA_NODES_MAX / MI_NUMA_MASK_BITS] = {0};
  if (numa_node < 0 || numa_node >= MI_NUMA_NODES_MAX) {
    return EINVAL;
  }
  mask[(unsigned)numa_node / MI_NUMA_MASK_BITS] = 1UL << ((unsigned)numa_node % MI_NUMA_MASK_BITS);
  // The kernel takes one bit off the number of them.
  return mi_syscall_error(mi_syscall6(SYS_mbind, mi_syscall_arg(addr), (long)size, MI_NUMA_MPOL_PREFERRED,
                                      mi_syscall_arg(mask), MI_NUMA_NODES_MAX + 1, 0));
#else
  (void)addr;
  (void)size;
  (void)numa_node;
  return ENOTSUP;
#endif
}
