// Owns: reservations, commit, purge, protection and moves, by mmap and its kin.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: an address is a wish, and fixed only inside a range of the caller's, so nothing of others is ever replaced.
#include <string.h>

#include "src/prim/linux/linux.h"
#include "src/prim/linux/syscall.h"

// How often a call that says "try again" is tried. The kernel says so for want of a moment's resource only.
enum { MI_MEM_TRIES = 8 };

// Memory that is charged when touched is mapped with MAP_NORESERVE: then neither a large reservation nor a change of its
// protection is ever charged as a whole. Under strict accounting the kernel ignores the flag.
static _Atomic(bool) mi_mem_has_overcommit;

// MADV_FREE is as old as Linux 4.5, and unknown to some kernels that only look like Linux.
static _Atomic(bool) mi_mem_lacks_free;

// MADV_POPULATE_WRITE is as old as Linux 5.14, and what filters system calls may not know it.
static _Atomic(bool) mi_mem_lacks_populate;

mi_early void _mi_prim_linux_set_overcommit(bool has_overcommit) {
  // Relaxed: a reservation is right with either value.
  mi_atomic_store_relaxed(&mi_mem_has_overcommit, has_overcommit);
}

static mi_early int mi_mem_advise(void* addr, size_t size, int advice) {
  int err = EAGAIN;
  for (int tries = 0; err == EAGAIN && tries < MI_MEM_TRIES; tries++) {
    err = mi_syscall_error(mi_syscall3(SYS_madvise, mi_syscall_arg(addr), (long)size, advice));
  }
  return err;
}

static mi_early int mi_mem_set_protection(void* addr, size_t size, int prot) {
  return mi_syscall_error(mi_syscall3(SYS_mprotect, mi_syscall_arg(addr), (long)size, prot));
}

// The kernel's own result. It takes a new address only with MREMAP_FIXED.
static long mi_mem_remap(void* addr, size_t old_size, size_t new_size, int flags, void* to) {
  return mi_syscall6(SYS_mremap, mi_syscall_arg(addr), (long)old_size, (long)new_size, flags, mi_syscall_arg(to), 0);
}

mi_early int _mi_prim_reserve_at(void* wish, size_t size, bool commit, void** addr) {
  if (!commit) {
    return mi_syscall_mmap(wish, size, PROT_NONE, MAP_NORESERVE, addr);
  }
  const int flags = mi_atomic_load_relaxed(&mi_mem_has_overcommit) ? MAP_NORESERVE : 0;
  return mi_syscall_mmap(wish, size, PROT_READ | PROT_WRITE, flags, addr);
}

mi_early int _mi_prim_reserve(size_t size, bool commit, void** addr) { return _mi_prim_reserve_at(NULL, size, commit, addr); }

int _mi_prim_release(void* addr, size_t size) {
  return mi_syscall_error(mi_syscall3(SYS_munmap, mi_syscall_arg(addr), (long)size, 0));
}

mi_early int _mi_prim_commit(void* addr, size_t size) { return mi_mem_set_protection(addr, size, PROT_READ | PROT_WRITE); }

int _mi_prim_decommit(void* addr, size_t size) {
  // Only a new mapping gives up the charge of strict accounting, and it does all in one call. The kernel looks for a free
  // mapping before it touches the old one.
  void* p;
  return mi_syscall_mmap(addr, size, PROT_NONE, MAP_NORESERVE | MAP_FIXED, &p);
}

int _mi_prim_purge(void* addr, size_t size, bool* is_zero) {
  const int err = mi_mem_advise(addr, size, MADV_DONTNEED);
  *is_zero = err == 0;
  return err;
}

int _mi_prim_reset(void* addr, size_t size) {
  // Relaxed: to learn it late costs one call.
  if (!mi_atomic_load_relaxed(&mi_mem_lacks_free)) {
    const int err = mi_mem_advise(addr, size, MI_MADV_FREE);
    if (err != EINVAL) {
      return err;
    }
  }
  const int err = mi_mem_advise(addr, size, MADV_DONTNEED);
  // Both calls refuse memory that is locked; that says nothing about the kernel.
  if (err == 0) {
    mi_atomic_store_relaxed(&mi_mem_lacks_free, true);
  }
  return err;
}

mi_early int _mi_prim_protect(void* addr, size_t size, bool readable) {
  return mi_mem_set_protection(addr, size, readable ? PROT_READ : PROT_NONE);
}

int _mi_prim_unprotect(void* addr, size_t size) { return mi_mem_set_protection(addr, size, PROT_READ | PROT_WRITE); }

mi_early bool _mi_prim_may_try_calls(void) {
  // Valgrind puts libraries of its own before all others.
  char preload[256];
  (void)_mi_prim_getenv("LD_PRELOAD", preload, sizeof(preload));
  static const char name[] = "vgpreload_";
  for (const char* at = preload; *at != 0; at++) {
    if (strncmp(at, name, sizeof(name) - 1) == 0) {
      return false;
    }
  }
  return true;
}

mi_early int _mi_prim_seal(void* addr, size_t size) {
#if UINTPTR_MAX == UINT64_MAX
  const int err = mi_syscall_error(mi_syscall3(MI_SYS_MSEAL, mi_syscall_arg(addr), (long)size, 0));
  // EPERM is what a filter of system calls says that does not know this one.
  return err == ENOSYS || err == EPERM ? ENOTSUP : err;
#else
  (void)addr;
  (void)size;
  return ENOTSUP;
#endif
}

static mi_early int mi_mem_guard_advise(void* addr, size_t size, int advice) {
  // EAGAIN stands for a signal that is waiting, and leaves off in the middle: beginning again is right.
  const int err = mi_mem_advise(addr, size, advice);
  return err == ENOSYS ? ENOTSUP : err;
}

mi_early int _mi_prim_guard(void* addr, size_t size) { return mi_mem_guard_advise(addr, size, MI_MADV_GUARD_INSTALL); }

int _mi_prim_unguard(void* addr, size_t size) { return mi_mem_guard_advise(addr, size, MI_MADV_GUARD_REMOVE); }

int _mi_prim_grow(void* addr, size_t old_size, size_t new_size, bool may_move, void** new_addr) {
  // In place its end alone has to be of one mapping: what _mi_prim_move came to is of several. No OS page is larger than this.
  enum { MI_MEM_END = 1 << 16 };
  const size_t kept = may_move || old_size % MI_MEM_END != 0 ? 0 : old_size - MI_MEM_END;
  const long result = mi_mem_remap((uint8_t*)addr + kept, old_size - kept, new_size - kept, may_move ? MI_MREMAP_MAYMOVE : 0, NULL);
  const int err = mi_syscall_error(result);
  if (err == 0) {
    *new_addr = (uint8_t*)(uintptr_t)result - kept;
  }
  if (err == EINVAL) {
    // Arguments that are right otherwise: more than the address space has.
    return ENOMEM;
  }
  return err == ENOSYS ? ENOTSUP : err;
}

// Copies where a mapping that was moved away cannot be moved back.
static void mi_mem_copy_back(void* to, const void* from, size_t size) {
  uint64_t* const out = to;
  const uint64_t* const in = from;
  for (size_t i = 0; i < size / sizeof(*out); i++) {
    out[i] = in[i];
  }
}

// Two moves instead of one onto `to`: MREMAP_FIXED first unmaps what is at the new address, and what then fails (a range of
// several mappings, a limit, a charge) would leave a hole there for any thread's mmap to fall into. The first move, to
// where the kernel likes, meets all of those reasons and touches nothing; the second can fail only before it unmaps. Between
// them what was moved grows to all that it is to be: it stays a mapping apart from those beside it, and the next move, of all
// of it, can be of one mapping only.
int _mi_prim_move(void* from, void* to, size_t size, size_t to_size) {
  const long result = mi_mem_remap(from, size, size, MI_MREMAP_MAYMOVE | MI_MREMAP_DONTUNMAP, NULL);
  if (mi_syscall_failed(result)) {
    // EINVAL: a kernel before 5.7 does not know the flag.
    const int err = mi_syscall_error(result);
    return err == EINVAL || err == ENOSYS ? ENOTSUP : err;
  }
  void* between = (void*)(uintptr_t)result;
  size_t moved = size;
  if (to_size > size && _mi_prim_grow(between, size, to_size, true, &between) == 0) {
    moved = to_size;
  }
  const int flags = MI_MREMAP_MAYMOVE | MI_MREMAP_FIXED;
  const int err = mi_syscall_error(mi_mem_remap(between, moved, moved, flags, to));
  if (err != 0 && mi_syscall_failed(mi_mem_remap(between, moved, size, flags, from))) {
    mi_mem_copy_back(from, between, size);
    (void)_mi_prim_release(between, moved);
  }
  return err;
}

void _mi_prim_populate(void* addr, size_t size) {
  // Relaxed: to learn it late costs one call.
  if (mi_atomic_load_relaxed(&mi_mem_lacks_populate)) {
    return;
  }
  const int err = mi_mem_advise(addr, size, MI_MADV_POPULATE_WRITE);
  if (err == EINVAL || err == EPERM || err == ENOSYS) {
    mi_atomic_store_relaxed(&mi_mem_lacks_populate, true);
  }
}

int _mi_prim_huge_page_advice(void* addr, size_t size, bool allow) {
  return mi_mem_advise(addr, size, allow ? MI_MADV_HUGEPAGE : MI_MADV_NOHUGEPAGE);
}

void _mi_prim_wipe_on_fork(void* addr, size_t size) { (void)mi_mem_advise(addr, size, MI_MADV_WIPEONFORK); }
