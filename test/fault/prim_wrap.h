// Owns: the primitives of the operating system with failures put in: the Nth call, all from the Nth on, or by chance.
// May include: src/prim, test/lib.
// Called by: test/fault programs, linked with -Wl,--wrap of each name in FAULT_NAMES.
// Invariants: a call that fails has changed nothing, as the contract of prim.h says; the plan is read before the first call of the process.
#pragma once

#include "src/prim/prim.h"
#include "test/lib/test.h"

enum {
  FAULT_NONE = 0,
  FAULT_NTH = 1,     // only call number `first`
  FAULT_FROM = 2,    // call number `first` and all later ones
  FAULT_RANDOM = 3,  // one in `first`
};

static int fault_mode;
static long fault_first;
static long fault_calls;            // counted since the plan was made
static long fault_hits;             // calls that were made to fail
static unsigned fault_kinds = ~0U;  // bit k: calls of kind k count
static uint64_t fault_seed = 1;
static bool fault_planned;

enum {
  FAULT_RESERVE,
  FAULT_RELEASE,
  FAULT_COMMIT,
  FAULT_DECOMMIT,
  FAULT_PURGE,
  FAULT_RESET,
  FAULT_PROTECT,
  FAULT_UNPROTECT,
  FAULT_GROW,
  FAULT_MOVE,
  FAULT_ADVICE,
  FAULT_RANDOM_BYTES,
  FAULT_EXIT_HOOK,
  FAULT_FORK_HOOKS,
  FAULT_KINDS
};

static void fault_plan(int mode, long first) {
  __atomic_store_n(&fault_mode, FAULT_NONE, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fault_calls, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fault_hits, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fault_first, first, __ATOMIC_SEQ_CST);
  fault_planned = true;
  __atomic_store_n(&fault_mode, mode, __ATOMIC_SEQ_CST);
}

// The plan for the start of the process stands in the environment as MI_FAULT=<mode>:<first>, read without the C library,
// which may not have been set up.
extern char** environ;
static void fault_read_plan(void) {
  if (fault_planned) return;
  fault_planned = true;
  for (char** e = environ; e != NULL && *e != NULL; e++) {
    const char* have = *e;
    const char* want = "MI_FAULT=";
    while (*want != 0 && *want == *have) want++, have++;
    if (*want != 0 || have[0] < '0' || have[0] > '3' || have[1] != ':') continue;
    long n = 0;
    for (const char* d = have + 2; *d >= '0' && *d <= '9'; d++) n = n * 10 + (*d - '0');
    fault_plan(have[0] - '0', n);
  }
}

static bool fault_now(unsigned kind) {
  fault_read_plan();
  const int mode = __atomic_load_n(&fault_mode, __ATOMIC_SEQ_CST);
  if (mode == FAULT_NONE || (fault_kinds & (1U << kind)) == 0) return false;
  const long n = __atomic_add_fetch(&fault_calls, 1, __ATOMIC_SEQ_CST);
  bool hit = false;
  if (mode == FAULT_NTH) hit = (n == fault_first);
  if (mode == FAULT_FROM) hit = (n >= fault_first);
  if (mode == FAULT_RANDOM) {
    uint64_t s = __atomic_fetch_add(&fault_seed, UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED);
    hit = (mi_test_random(&s) % (uint64_t)fault_first == 0);
  }
  if (hit) __atomic_add_fetch(&fault_hits, 1, __ATOMIC_SEQ_CST);
  return hit;
}

// What ld calls the replaced and the replacing function.
#define FAULT_INT(kind, err, name, params, args) \
  int __real_##name params;                      \
  int __wrap_##name params;                      \
  int __wrap_##name params {                     \
    if (fault_now(kind)) return err;             \
    return __real_##name args;                   \
  }

#define FAULT_BOOL(kind, name, params, args) \
  bool __real_##name params;                 \
  bool __wrap_##name params;                 \
  bool __wrap_##name params {                \
    if (fault_now(kind)) return false;       \
    return __real_##name args;               \
  }

FAULT_INT(FAULT_RESERVE, ENOMEM, _mi_prim_reserve, (size_t size, bool commit, void** addr), (size, commit, addr))
FAULT_INT(FAULT_RESERVE, ENOMEM, _mi_prim_reserve_at, (void* wish, size_t size, bool commit, void** addr), (wish, size, commit, addr))
FAULT_INT(FAULT_RELEASE, ENOMEM, _mi_prim_release, (void* addr, size_t size), (addr, size))
FAULT_INT(FAULT_COMMIT, ENOMEM, _mi_prim_commit, (void* addr, size_t size), (addr, size))
FAULT_INT(FAULT_DECOMMIT, ENOMEM, _mi_prim_decommit, (void* addr, size_t size), (addr, size))
FAULT_INT(FAULT_RESET, EINVAL, _mi_prim_reset, (void* addr, size_t size), (addr, size))
FAULT_INT(FAULT_PROTECT, ENOMEM, _mi_prim_protect, (void* addr, size_t size, bool readable), (addr, size, readable))
FAULT_INT(FAULT_UNPROTECT, ENOMEM, _mi_prim_unprotect, (void* addr, size_t size), (addr, size))
FAULT_INT(FAULT_MOVE, ENOMEM, _mi_prim_move, (void* from, void* to, size_t size, size_t to_size), (from, to, size, to_size))
FAULT_INT(FAULT_ADVICE, EINVAL, _mi_prim_huge_page_advice, (void* addr, size_t size, bool allow), (addr, size, allow))
FAULT_INT(FAULT_GROW, ENOMEM, _mi_prim_grow, (void* addr, size_t old_size, size_t new_size, bool may_move, void** new_addr),
          (addr, old_size, new_size, may_move, new_addr))
FAULT_BOOL(FAULT_RANDOM_BYTES, _mi_prim_random, (void* buf, size_t size), (buf, size))
FAULT_BOOL(FAULT_EXIT_HOOK, _mi_prim_thread_on_exit_init, (void (*on_exit)(void*)), (on_exit))
FAULT_BOOL(FAULT_FORK_HOOKS, _mi_prim_fork_hooks, (void (*prepare)(void), void (*parent)(void), void (*child)(void)), (prepare, parent, child))

int __real__mi_prim_purge(void* addr, size_t size, bool* is_zero);
int __wrap__mi_prim_purge(void* addr, size_t size, bool* is_zero);
int __wrap__mi_prim_purge(void* addr, size_t size, bool* is_zero) {
  if (fault_now(FAULT_PURGE)) {
    // A range that was not purged is not zero.
    *is_zero = false;
    return EINVAL;
  }
  return __real__mi_prim_purge(addr, size, is_zero);
}
