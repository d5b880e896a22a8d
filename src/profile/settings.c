// Owns: the variables of the environment that are no options, and the file that is written at the end.
// May include: base, prim, sys, profile.
// Called by: through settings.h.
// Invariants: as in settings.h. What was read stands with the configuration, and is as closed as that.
#include "src/profile/settings.h"

#include <limits.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/prim/prim.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/sealed.h"

enum { MI_SETTINGS_TEXT = 32 };

// The environment

static size_t mi_settings_read_interval(void) {
  char text[MI_SETTINGS_TEXT];
  long value = 0;
  const int found = _mi_prim_getenv("MIMALLOC_PROF_SAMPLE_INTERVAL", text, sizeof(text));
  if (found == 2 || (found == 1 && (!_mi_option_parse(text, MI_OPTION_LONG, &value) || value < 0))) {
    _mi_log_config_warning("environment variable MIMALLOC_PROF_SAMPLE_INTERVAL has a value that is not understood\n");
    return 0;
  }
  return (size_t)value;
}

static bool mi_settings_read_is_proto(void) {
  char text[MI_SETTINGS_TEXT];
  if (_mi_prim_getenv("MIMALLOC_PROF_DUMP_FORMAT", text, sizeof(text)) != 1) {
    return false;
  }
  static const char proto[] = "proto";
  size_t i = 0;
  while (proto[i] != 0 && (text[i] | 0x20) == proto[i]) {
    i++;
  }
  return (proto[i] == 0 && text[i] == 0) || strcmp(text, "1") == 0;
}

// The name of a file; empty: the variable is not set, or too long.
static mi_cold void mi_settings_read_path(const char* name, char path[MI_SEALED_PATH_MAX]) {
  const int found = _mi_prim_getenv(name, path, MI_SEALED_PATH_MAX);
  if (found == 2) {
    _mi_log_config_warning("environment variable %s is longer than %d bytes, and ignored\n", name, MI_SEALED_PATH_MAX - 1);
  }
  if (found != 1) {
    path[0] = 0;
  }
}

static mi_cold void mi_settings_read(void) {
  char path[MI_SEALED_PATH_MAX];
  char base[MI_SEALED_PATH_MAX];
  mi_settings_read_path("MIMALLOC_PROF_DUMP_AT_EXIT", path);
  mi_settings_read_path("MIMALLOC_PROFILE", base);
  const size_t interval = mi_settings_read_interval();
  const bool is_proto = mi_settings_read_is_proto();
  if (!_mi_sealed_open("the file of the heap profile")) {
    return;
  }
  _mi_settings.profile_interval = interval;
  _mi_settings.profile_proto = is_proto;
  _mi_settings.profile_loaded = true;
  (void)_mi_fmt(_mi_settings.profile_path, sizeof(_mi_settings.profile_path), "%s", path);
  (void)_mi_fmt(_mi_settings.profiler_base, sizeof(_mi_settings.profiler_base), "%s", base);
  _mi_sealed_close();
}

mi_cold void _mi_profile_load(void) {
  if (!_mi_settings.profile_loaded) {
    mi_settings_read();
  }
  if (_mi_option_is_enabled(mi_option_prof)) {
    mi_profile_settings_t settings;
    _mi_profile_settings(0, &settings);
    (void)_mi_profile_start(&settings);
  }
}

// What to profile with

// The value of a field: the program's where it is preferred or nothing else is set.
static size_t mi_settings_choose(size_t field, bool is_preferred, bool is_set, size_t other) {
  return field != 0 && (is_preferred || !is_set) ? field : other;
}

static size_t mi_settings_option(mi_option_t option) {
  const long value = _mi_option_get(option);
  return value > 0 ? (size_t)value : 0;
}

static bool mi_settings_config_is_good(const mi_prof_config_t* config) {
  return config->size == sizeof(*config) && config->version == MI_PROF_CONFIG_VERSION &&
      (config->dump_at_exit == NULL || strnlen(config->dump_at_exit, MI_SEALED_PATH_MAX) < MI_SEALED_PATH_MAX);
}

bool _mi_profile_settings_of(const mi_prof_config_t* config, mi_profile_settings_t* settings) {
  mi_prof_config_t_decl(nothing);
  if (config == NULL) {
    config = &nothing;
  }
  if (!mi_settings_config_is_good(config)) {
    return false;
  }
  const bool preferred = config->mode == MI_PROF_CONFIG_OVERRIDE;
  const size_t interval = _mi_settings.profile_interval;
  const size_t rate = interval != 0 ? interval : mi_settings_option(mi_option_prof_sample_rate);
  settings->rate = mi_settings_choose(config->sample_interval, preferred, interval != 0 || _mi_option_is_set(mi_option_prof_sample_rate),
                                      rate != 0 ? rate : MI_PROFILE_RATE_DEFAULT);
  settings->budget = mi_settings_choose(config->max_profiler_bytes, preferred, _mi_option_is_set(mi_option_prof_max_bytes),
                                        mi_settings_option(mi_option_prof_max_bytes));
  const bool own_seed = config->seed != 0 && (preferred || !_mi_option_is_set(mi_option_prof_seed));
  settings->seed = own_seed ? config->seed : (uint64_t)_mi_option_get(mi_option_prof_seed);
  settings->accum = mi_settings_choose(config->accum, preferred, _mi_option_is_set(mi_option_prof_accum),
                                       _mi_option_is_enabled(mi_option_prof_accum)) != 0;
  const size_t depth = mi_settings_choose(config->max_stack_depth, preferred, _mi_option_is_set(mi_option_prof_bt_max),
                                          mi_settings_option(mi_option_prof_bt_max));
  settings->depth = _mi_min(_mi_max(depth, 1), MI_PROFILE_DEPTH_MAX);
  return true;
}

void _mi_profile_settings(size_t rate, mi_profile_settings_t* settings) {
  (void)_mi_profile_settings_of(NULL, settings);
  settings->rate = rate != 0 ? rate : settings->rate;
}

static void mi_settings_keep_option(mi_option_t option, size_t field, size_t value) {
  if (field != 0 && value != mi_settings_option(option)) {
    _mi_option_set(option, (long)_mi_min(value, LONG_MAX));
  }
}

void _mi_profile_settings_keep(const mi_prof_config_t* config, const mi_profile_settings_t* settings) {
  mi_settings_keep_option(mi_option_prof_max_bytes, config->max_profiler_bytes, settings->budget);
  mi_settings_keep_option(mi_option_prof_accum, config->accum, settings->accum);
  mi_settings_keep_option(mi_option_prof_bt_max, config->max_stack_depth, settings->depth);
  const bool preferred = config->mode == MI_PROF_CONFIG_OVERRIDE;
  if (config->dump_at_exit == NULL || (!preferred && _mi_settings.profile_path[0] != 0) ||
      !_mi_sealed_open("the file of the heap profile")) {
    return;
  }
  (void)_mi_fmt(_mi_settings.profile_path, sizeof(_mi_settings.profile_path), "%s", config->dump_at_exit);
  _mi_settings.profile_proto = config->dump_format == MI_PROF_FORMAT_PROTO;
  _mi_sealed_close();
}

// The end of the process

bool _mi_profile_wants_dump(bool* is_text) {
  *is_text = !_mi_settings.profile_proto;
  return _mi_settings.profile_path[0] != 0 && _mi_profile_runs();
}

// The path with the number of the process for %p. False: it is too long.
static bool mi_settings_expand(const char* path, char* to, size_t size) {
  size_t length = 0;
  while (*path != 0 && length < size) {
    if (path[0] == '%' && path[1] == 'p') {
      length += _mi_fmt(to + length, size - length, "%zu", (size_t)_mi_prim_process_id());
      path += 2;
    } else {
      to[length++] = *path++;
    }
  }
  if (length >= size) {
    return false;
  }
  to[length] = 0;
  return true;
}

void _mi_profile_dump_at_exit(const mi_profile_figures_t* figures) {
  char path[MI_SEALED_PATH_MAX + 32];
  mi_prof_snapshot_t* const snapshot = _mi_profile_snapshot();
  if (snapshot == NULL || !mi_settings_expand(_mi_settings.profile_path, path, sizeof(path)) ||
      !_mi_profile_write_file(snapshot, figures, path, true)) {
    _mi_log_config_warning("the heap profile cannot be written to %s: it must be a file of this user with no other name\n",
                           _mi_settings.profile_path);
  }
  _mi_profile_snapshot_free(snapshot);
}
