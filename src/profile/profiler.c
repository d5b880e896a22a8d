// Owns: the life of profilers, when they write themselves, and the names of their files.
// May include: base, prim, sys, region, profile.
// Called by: through profiler.h.
// Invariants: a file is written from a copy, with no lock held, by the one thread that ended the interval; its number is taken
// under the lock, so that no two files have one name.
#include "src/profile/profiler.h"

#include <errno.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/prim/prim.h"
#include "src/profile/encode.h"
#include "src/profile/settings.h"
#include "src/profile/snapshot.h"
#include "src/profile/state.h"
#include "src/region/meta.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/sealed.h"

// Behind the base of a name: the numbers of the process and of the file.
enum { MI_PROFILER_NAME_MAX = MI_SEALED_PATH_MAX + 48 };

// The profiler of the environment.
static _Atomic(uint32_t) mi_profiler_loaded;

// Life

static size_t mi_profiler_option(mi_option_t option) {
  const long value = _mi_option_get(option);
  return value > 0 ? (size_t)value : 0;
}

static uint64_t mi_profiler_first(size_t interval) { return interval == 0 ? UINT64_MAX : interval; }

// `base` lasts as long as the profiler.
static void mi_profiler_begin(mi_profiler_t* profiler, size_t rate, const char* base, const mi_profile_intervals_t* every) {
  mi_profile_settings_t settings;
  _mi_profile_settings(rate != 0 ? rate : _mi_max(mi_profiler_option(mi_option_profile_sample_rate), 1), &settings);
  settings.accum = true;
  _mi_profile_set_up(profiler, &settings);
  profiler->base = base;
  profiler->every = *every;
  profiler->writes = every->alloc != 0 || every->inuse != 0 || every->time_ms != 0;
  profiler->alloc_due = mi_profiler_first(every->alloc);
  profiler->inuse_due = mi_profiler_first(every->inuse);
}

static mi_profiler_t* mi_profiler_make(size_t rate, const char* base, bool lasts, const mi_profile_intervals_t* every) {
  const size_t length = strlen(base) + 1;
  const size_t size = sizeof(mi_profiler_t) + (lasts ? 0 : length);
  mi_profiler_t* const profiler = _mi_meta_zalloc(size);
  if (profiler == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  mi_profiler_begin(profiler, rate, lasts ? base : memcpy(profiler + 1, base, length), every);
  const bool entered = _mi_profile_enter();
  const bool has_place = _mi_profile_give_number(profiler);
  _mi_profile_leave(entered);
  if (!has_place) {
    _mi_meta_free(profiler, size);
    errno = EAGAIN;
    return NULL;
  }
  return profiler;
}

static int64_t mi_profiler_ms(size_t seconds) { return (int64_t)_mi_min(seconds, UINT32_MAX) * 1000; }

mi_profiler_t* _mi_profiler_new(size_t rate, const char* base, size_t alloc_interval, size_t inuse_interval, size_t time_interval) {
  if (base == NULL || base[0] == 0 || strnlen(base, MI_SEALED_PATH_MAX) == MI_SEALED_PATH_MAX || !_mi_profile_may_enter()) {
    errno = EINVAL;
    return NULL;
  }
  const mi_profile_intervals_t every = {alloc_interval, inuse_interval, mi_profiler_ms(time_interval)};
  return mi_profiler_make(rate, base, false, &every);
}

void _mi_profiler_delete(mi_profiler_t* profiler) {
  if (!_mi_profile_may_enter()) {
    return;
  }
  const bool entered = _mi_profile_enter();
  const bool exists = _mi_profile_is_one(profiler);
  if (exists) {
    _mi_profile_take_number(profiler);
    _mi_profile_table_end(&profiler->table);
  }
  _mi_profile_leave(entered);
  if (exists) {
    // Only what the program has made can be named by it, and so has its base behind it.
    _mi_meta_free(profiler, sizeof(*profiler) + strlen(profiler->base) + 1);
  }
}

uint32_t _mi_profiler_number(const mi_profiler_t* profiler) {
  const bool entered = _mi_profile_enter();
  const uint32_t number = _mi_profile_is_one(profiler) ? profiler->number : 0;
  _mi_profile_leave(entered);
  return number;
}

bool _mi_profiler_set_sampling(mi_profiler_t* profiler, bool samples) {
  if (!_mi_profile_may_enter()) {
    return false;
  }
  const bool entered = _mi_profile_enter();
  const bool changes = _mi_profile_is_one(profiler) && profiler->samples != samples;
  if (changes) {
    profiler->samples = samples;
    profiler->time_due = profiler->every.time_ms == 0 ? INT64_MAX : _mi_prim_clock_ms() + profiler->every.time_ms;
  }
  _mi_profile_leave(entered);
  return changes;
}

// Intervals

static bool mi_profiler_alloc_is_due(mi_profiler_t* profiler) {
  const bool due = profiler->allocated >= profiler->alloc_due;
  profiler->alloc_due = due ? profiler->allocated + profiler->every.alloc : profiler->alloc_due;
  return due;
}

static bool mi_profiler_inuse_is_due(mi_profiler_t* profiler) {
  const bool due = profiler->in_use >= profiler->inuse_due;
  profiler->inuse_due = due ? profiler->in_use + profiler->every.inuse : profiler->inuse_due;
  return due;
}

static bool mi_profiler_time_is_due(mi_profiler_t* profiler) {
  if (profiler->every.time_ms == 0) {
    return false;
  }
  const int64_t now = _mi_prim_clock_ms();
  const bool due = now >= profiler->time_due;
  profiler->time_due = due ? now + profiler->every.time_ms : profiler->time_due;
  return due;
}

bool _mi_profiler_count(mi_profiler_t* profiler, size_t size) {
  const uint64_t bytes = _mi_profile_stands_for(profiler->rate, size);
  profiler->allocated += bytes;
  profiler->in_use += bytes;
  // All three: what ends at once is written once.
  return (int)mi_profiler_alloc_is_due(profiler) | (int)mi_profiler_inuse_is_due(profiler) | (int)mi_profiler_time_is_due(profiler);
}

void _mi_profiler_uncount(mi_profiler_t* profiler, size_t size) { profiler->in_use -= _mi_profile_stands_for(profiler->rate, size); }

void _mi_profiler_recount(mi_profiler_t* profiler, size_t before, size_t size) {
  _mi_profiler_uncount(profiler, before);
  profiler->in_use += _mi_profile_stands_for(profiler->rate, size);
}

// Files

bool _mi_profiler_write(uint32_t number) {
  char path[MI_PROFILER_NAME_MAX];
  path[0] = 0;
  if (!_mi_profile_may_enter()) {
    return false;
  }
  const bool entered = _mi_profile_enter();
  mi_profiler_t* const profiler = _mi_profile_at(number);
  mi_prof_snapshot_t* snapshot = NULL;
  if (profiler != NULL && profiler->base != NULL) {
    profiler->files++;
    (void)_mi_fmt(path, sizeof(path), "%s.%zu.%04u.pb", profiler->base, (size_t)_mi_prim_process_id(), profiler->files);
    snapshot = _mi_profile_copy(profiler);
  }
  _mi_profile_leave(entered);
  const bool written = snapshot != NULL && _mi_profile_write_file(snapshot, NULL, path, true);
  _mi_profile_snapshot_free(snapshot);
  if (!written && path[0] != 0) {
    _mi_log_config_warning("the heap profile cannot be written to %s: it must be a file of this user with no other name\n", path);
  }
  return written;
}

// The environment

uint32_t _mi_profiler_load(void) {
  if (_mi_settings.profiler_base[0] == 0 || mi_atomic_load_relaxed(&mi_profiler_loaded) != 0) {
    return 0;
  }
  const mi_profile_intervals_t every = {mi_profiler_option(mi_option_profile_alloc_interval), mi_profiler_option(mi_option_profile_inuse_interval),
                                        mi_profiler_ms(mi_profiler_option(mi_option_profile_time_interval))};
  mi_profiler_t* const profiler = mi_profiler_make(0, _mi_settings.profiler_base, true, &every);
  if (profiler == NULL) {
    return 0;
  }
  mi_atomic_store_relaxed(&mi_profiler_loaded, profiler->number);
  (void)_mi_profiler_set_sampling(profiler, true);
  return profiler->number;
}

void _mi_profiler_process_done(void) {
  const uint32_t number = mi_atomic_load_relaxed(&mi_profiler_loaded);
  if (number != 0) {
    (void)_mi_profiler_write(number);
  }
}
