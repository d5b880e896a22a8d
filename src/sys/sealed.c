// Owns: the pages of the configuration and their protection.
// May include: base, prim, sys/lock.h, sys/log.h.
// Called by: through sealed.h.
// Invariants: the lock is held while the settings are writable after start-up, so one thread opens them at a time and no
// fork happens meanwhile.
#include "src/sys/sealed.h"

#include "src/sys/lock.h"
#include "src/sys/log.h"

static mi_page_map_head_t mi_page_map_nothing;

// The default of an option is there before any code runs.
mi_sealed_t _mi_sealed = {
    .fixed = {.page_map = {.tables = (mi_page_map_tables_t*)&mi_page_map_nothing}},
    .settings = {.option_values = {
#define OPTION(number, name, default, kind, effect, old_names, documentation) [number] = (default),
#include "policy/options.def"
#undef OPTION
                 }},
};

static mi_lock_t mi_sealed_lock;

mi_early mi_sealed_state_t _mi_sealed_state(void) {
  return (mi_sealed_state_t)mi_atomic_load_relaxed(&_mi_settings.state);
}

mi_early mi_sealed_mseal_t _mi_sealed_mseal_state(void) {
  return (mi_sealed_mseal_t)mi_atomic_load_relaxed(&_mi_settings.mseal);
}

// False: this thread is at it already, and a signal handler has interrupted it there.
static bool mi_sealed_acquire(void) {
  if (_mi_lock_acquire_bounded(&mi_sealed_lock)) {
    return true;
  }
  if (mi_atomic_load_relaxed(&mi_sealed_lock.owner) == _mi_lock_self()) {
    return false;
  }
  _mi_lock_acquire(&mi_sealed_lock);
  return true;
}

bool _mi_sealed_open(const char* what) {
  if (mi_sealed_acquire()) {
    if (_mi_sealed_state() != MI_SEALED || _mi_prim_unprotect(&_mi_settings, sizeof(_mi_settings)) == 0) {
      return true;
    }
    _mi_lock_release(&mi_sealed_lock);
  }
  _mi_log_config_warning("%s stays as it was: the configuration cannot be opened\n", what);
  return false;
}

void _mi_sealed_close(void) {
  // Only the lack of a mapping to split with leads to a refusal. Then there is nothing left but to say so.
  const bool refused =
      _mi_sealed_state() == MI_SEALED && _mi_prim_protect(&_mi_settings, sizeof(_mi_settings), true) != 0;
  if (refused) {
    mi_atomic_store_relaxed(&_mi_settings.state, MI_SEALED_REFUSED);
  }
  _mi_lock_release(&mi_sealed_lock);
  if (refused) {
    _mi_log_config_warning("the configuration stays writable: the system does not let it be closed again\n");
  }
}

// Whether a page of the system holds nothing else than parts of one of the structures.
static mi_cold bool mi_sealed_fits(const void* start, size_t size) {
  const size_t page_size = _mi_fixed.os_config.page_size;
  return page_size != 0 && (uintptr_t)start % page_size == 0 && size % page_size == 0;
}

// Stored before the page is closed; taken back where it is not.
static mi_cold void mi_sealed_store(mi_sealed_state_t state, mi_sealed_mseal_t mseal) {
  mi_atomic_store_relaxed(&_mi_settings.mseal, mseal);
  mi_atomic_store_relaxed(&_mi_settings.state, state);
}

static mi_cold void mi_sealed_close_both(mi_sealed_mseal_t wanted) {
  const bool seals = wanted == MI_MSEAL_ON || wanted == MI_MSEAL_ALWAYS;
  const mi_sealed_mseal_t refused = seals ? MI_MSEAL_UNAVAILABLE : wanted;
  mi_sealed_store(MI_SEALED, wanted);
  if (_mi_prim_protect(&_mi_sealed, sizeof(_mi_sealed), true) != 0) {
    mi_sealed_store(MI_SEALED_REFUSED, refused);
    return;
  }
  if (!seals || _mi_prim_seal(&_mi_fixed, sizeof(_mi_fixed)) == 0 ||
      _mi_prim_unprotect(&_mi_settings, sizeof(_mi_settings)) != 0) {
    return;
  }
  mi_sealed_store(MI_SEALED, refused);
  if (_mi_prim_protect(&_mi_settings, sizeof(_mi_settings), true) != 0) {
    mi_sealed_store(MI_SEALED_REFUSED, refused);
  }
}

mi_cold void _mi_sealed_start(bool fixed_is_complete, mi_sealed_mseal_t wanted) {
  _mi_lock_acquire(&mi_sealed_lock);
  if (_mi_sealed_state() == MI_SEALED_NOT_YET) {
    const bool fits = mi_sealed_fits(&_mi_settings, sizeof(_mi_settings)) && mi_sealed_fits(&_mi_fixed, sizeof(_mi_fixed));
    if (fits && fixed_is_complete) {
      mi_sealed_close_both(wanted);
    } else {
      const bool seals = wanted == MI_MSEAL_ON || wanted == MI_MSEAL_ALWAYS;
      mi_sealed_store(fits ? MI_SEALED_REFUSED : MI_SEALED_PAGES, seals ? MI_MSEAL_UNAVAILABLE : wanted);
    }
  }
  _mi_lock_release(&mi_sealed_lock);
}

void _mi_sealed_fork_prepare(void) { _mi_lock_acquire(&mi_sealed_lock); }

void _mi_sealed_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_sealed_lock);
  } else {
    _mi_lock_release(&mi_sealed_lock);
  }
}
