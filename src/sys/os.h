// Owns: memory of the system for the layers above: aligned reservations between guards, commit, purge, and its counts.
// May include: base, prim.
// Called by: sys/random, region, heap.
// Invariants: errno is untouched; what a call counts in the statistics its counterpart takes off again.
#pragma once

#include "src/base/atomic.h"
#include "src/prim/prim.h"
#include "src/sys/sealed.h"

// What a reservation took from the system and what its release gives back. `committed` is what the release takes off the
// count of committed bytes: an owner that commits or decommits parts later and still has them so at the release adjusts it.
typedef struct mi_os_block_s {
  void* base;
  size_t size;
  size_t committed;
} mi_os_block_t;

// What the system offers. Constant once _mi_os_init has returned, and read-only once the process has started.
#define _mi_os_config (_mi_fixed.os_config)

// Fills _mi_os_config. Any thread may call it at any time; the first call does the work, others wait for it.
mi_cold void _mi_os_init_once(void);

mi_inline void _mi_os_init(void) {
  // Acquire: pairs with the release in _mi_os_init_once, so that the configuration is seen.
  if (mi_unlikely(!mi_atomic_load_acquire(&_mi_fixed.os_ready))) {
    _mi_os_init_once();
  }
}

// The size of the system's pages; a power of two.
mi_inline size_t _mi_os_page_size(void) {
  _mi_os_init();
  return _mi_os_config.page_size;
}

// Reserves `size` bytes whose start is a multiple of `align`, zeroed. `size` and `guard` are multiples of the OS page,
// `align` is a power of two. `guard` bytes before and behind are inaccessible. With `commit` the bytes are readable and
// writable, else they are inaccessible and not charged until _mi_os_commit. NULL when the system has no memory; *os is
// unspecified then. When the system has no mapping left to guard with, the memory is given without guards, and counted.
void* _mi_os_reserve_aligned(size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os);

// The same at address `wish`, a multiple of `align`, where that is free; else, and with 0, anywhere.
void* _mi_os_reserve_at(uintptr_t wish, size_t size, size_t align, size_t guard, bool commit, mi_os_block_t* os);

// The same, readable and writable, for an owner that counts what of it is committed itself: where the system charges memory
// when it is touched.
void* _mi_os_reserve_touched(uintptr_t wish, size_t size, size_t align, size_t guard, mi_os_block_t* os);

// Whether bytes lie among the addresses that are used: below as many bits as the system says, or option max_vabits.
bool _mi_os_is_in_reach(const void* p, size_t size);

// Reserves for as long as the library is loaded: otherwise as _mi_os_reserve_aligned at an OS page, with a guard of one.
void* _mi_os_reserve_permanent(size_t size, bool commit);

// Has the system fix what was reserved so, with its guards, for the life of the process: nobody can map something else over
// it. Of what is committed bit by bit, the guards. At the start of the process, and only where it is never to be released;
// what is reserved later is fixed as it comes, if option mseal says so.
mi_cold void _mi_os_seal_permanent(void);

// The same for one reservation, and for a part of one whose protection stays as it is.
mi_cold void _mi_os_seal(void* p, size_t size);

// The same for what lies before and behind `size` bytes at `start` in a reservation: its guards.
mi_cold void _mi_os_seal_guards(const mi_os_block_t* os, const void* start, size_t size);

// Gives back what was reserved so. Only when the library is unloaded and nothing it allocated is left.
void _mi_os_release_permanent(void);

// Gives a reservation back, whole.
void _mi_os_release(mi_os_block_t* os);

// Gives the end of a reservation without guards back, so that it is `new_size` bytes, a multiple of the OS page. False:
// the system only releases what it reserved.
bool _mi_os_trim(mi_os_block_t* os, size_t new_size);

// In all that follow `p` and `size` are multiples of the OS page, inside one reservation; false means that nothing
// changed.

// Makes bytes readable and writable. Their content is zero if they were not committed before.
bool _mi_os_commit(void* p, size_t size);

// Drops the content and the charge; the bytes are inaccessible until they are committed again, and zero then.
bool _mi_os_decommit(void* p, size_t size);

// Gives the memory behind committed bytes back and leaves them readable and writable; the content is lost, at once or
// some time before the next write. *is_zero tells whether it is certain to read zero. Option purge_decommits chooses how:
// 1 returns the memory at once, 0 only marks it as unused, which is cheaper where it is soon needed again.
bool _mi_os_purge(void* p, size_t size, bool* is_zero);

// Counts bytes whose memory went back in another way.
void _mi_os_count_purge(size_t size);

// Makes bytes inaccessible, or readable only; and readable and writable again. The content stays.
bool _mi_os_protect(void* p, size_t size, bool readable);
bool _mi_os_unprotect(void* p, size_t size);

// Grows a reservation that has no guards and is wholly committed, by moving its mapping when that is allowed. The start of
// the block, new or old, or NULL: nothing changed. The added bytes are zero.
void* _mi_os_grow(mi_os_block_t* os, size_t new_size, bool may_move);
