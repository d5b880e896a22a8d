// Owns: the means of guards, chosen once, and the count of mappings that they take.
// May include: base, prim, sys.
// Called by: through guard.h.
// Invariants: `units` never exceeds the budget; a refused guard leaves the range as it was.
#include "src/sys/guard.h"

#include "src/base/atomic.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/os.h"
#include "src/sys/stats.h"
#include "src/track/track.h"

enum {
  MI_GUARDS_UNDECIDED,
  MI_GUARDS_NONE,
  MI_GUARDS_LIGHT,
  MI_GUARDS_MAPPINGS,
  // Guards may split off this share of the mappings that the process may have, and each splits off two.
  MI_GUARD_SHARE = 4,
  MI_GUARD_MAPPINGS_EACH = 2,
};

static _Atomic(unsigned) mi_guard_means;
static _Atomic(size_t) mi_guard_units;
static _Atomic(bool) mi_guard_has_warned;

// Once chosen it stays: what was made by one means cannot be undone by the other. Two threads choose the same.
static unsigned mi_guard_choose(void) {
  _mi_os_init();
  const long option = _mi_option_get(mi_option_guard_pages);
  unsigned means = MI_GUARDS_MAPPINGS;
  if (option <= 0 || MI_TRACKS) {
    // What a tool reports need not end the program.
    means = MI_GUARDS_NONE;
  } else if (option == 1 && _mi_os_config.has_light_guards) {
    means = MI_GUARDS_LIGHT;
  }
  unsigned none = MI_GUARDS_UNDECIDED;
  return mi_atomic_cas_strong_acq_rel(&mi_guard_means, &none, means) ? means : none;
}

mi_inline unsigned mi_guard_get_means(void) {
  // Relaxed: the word stands for nothing but itself.
  const unsigned means = mi_atomic_load_relaxed(&mi_guard_means);
  return mi_likely(means != MI_GUARDS_UNDECIDED) ? means : mi_guard_choose();
}

bool _mi_guard_are_mappings(void) { return mi_guard_get_means() == MI_GUARDS_MAPPINGS; }

bool _mi_guard_is_enabled(void) { return mi_guard_get_means() != MI_GUARDS_NONE; }

size_t _mi_guard_units(void) { return mi_atomic_load_relaxed(&mi_guard_units); }

static bool mi_guard_reserve_units(size_t units) {
  const size_t max = _mi_os_config.max_mappings == 0 ? SIZE_MAX : _mi_os_config.max_mappings / MI_GUARD_SHARE / MI_GUARD_MAPPINGS_EACH;
  size_t used = mi_atomic_load_relaxed(&mi_guard_units);
  do {
    if (units > max || used > max - units) {
      return false;
    }
  } while (!mi_atomic_cas_weak_relaxed(&mi_guard_units, &used, used + units));
  return true;
}

void _mi_guard_forget(size_t units) {
  if (units > 0 && mi_guard_get_means() == MI_GUARDS_MAPPINGS) {
    mi_atomic_sub_relaxed(&mi_guard_units, units);
  }
}

static bool mi_guard_skip(void) {
  _mi_counter_add(&_mi_stats.guards_skipped, 1);
  if (!mi_atomic_load_relaxed(&mi_guard_has_warned) && !mi_atomic_exchange_acq_rel(&mi_guard_has_warned, true)) {
    _mi_log_warning("a guard page was refused: guards are left out where the system gives none (see guards skipped in the statistics)\n");
  }
  return false;
}

// Once inaccessible the content is of no use; memory that the program has locked stays.
static bool mi_guard_protect(void* p, size_t size) {
  bool is_zero;
  if (_mi_prim_protect(p, size, false) != 0) {
    return false;
  }
  (void)_mi_prim_purge(p, size, &is_zero);
  return true;
}

bool _mi_guard_set(void* p, size_t size, size_t units) {
  const unsigned means = mi_guard_get_means();
  if (means == MI_GUARDS_NONE) {
    return false;
  }
  if (means == MI_GUARDS_LIGHT) {
    if (mi_likely(_mi_prim_guard(p, size) == 0)) {
      return true;
    }
    (void)_mi_prim_unguard(p, size);
    return mi_guard_skip();
  }
  if (!mi_guard_reserve_units(units)) {
    return mi_guard_skip();
  }
  if (!mi_guard_protect(p, size)) {
    // The first of several mappings may have been changed.
    (void)_mi_prim_unprotect(p, size);
    _mi_guard_forget(units);
    return mi_guard_skip();
  }
  return true;
}

bool _mi_guard_clear(void* p, size_t size, size_t units) {
  const unsigned means = mi_guard_get_means();
  if (means == MI_GUARDS_LIGHT) {
    return _mi_prim_unguard(p, size) == 0;
  }
  if (means == MI_GUARDS_MAPPINGS) {
    if (_mi_prim_unprotect(p, size) != 0) {
      return false;
    }
    _mi_guard_forget(units);
  }
  return true;
}
