// Owns: the option functions.
// May include: sys, heap, mimalloc.h.
// Called by: programs.
// Invariants: the values, their defaults and the environment are the business of sys/options. Whoever asks finds the
// environment read, also if that is the first call of the process.
#include "mimalloc.h"
#include "src/heap/sample.h"
#include "src/sys/options.h"

long mi_option_get(mi_option_t option) {
  _mi_options_load();
  return _mi_option_get(option);
}

bool mi_option_is_enabled(mi_option_t option) { return mi_option_get(option) != 0; }
// What some options say is kept where it is used.
static void mi_option_changed(mi_option_t option) {
  if (option >= mi_option_guarded_min && option <= mi_option_guarded_sample_seed) {
    _mi_sample_options_changed();
  }
}

void mi_option_set(mi_option_t option, long value) {
  _mi_option_set(option, value);
  mi_option_changed(option);
}

void mi_option_set_default(mi_option_t option, long value) {
  _mi_option_set_default(option, value);
  mi_option_changed(option);
}

void mi_option_enable(mi_option_t option) { mi_option_set(option, 1); }
void mi_option_disable(mi_option_t option) { mi_option_set(option, 0); }
void mi_option_set_enabled(mi_option_t option, bool enable) { mi_option_set(option, enable ? 1 : 0); }
void mi_option_set_enabled_default(mi_option_t option, bool enable) { mi_option_set_default(option, enable ? 1 : 0); }

long mi_option_get_clamp(mi_option_t option, long min, long max) {
  _mi_options_load();
  return _mi_option_get_clamp(option, min, max);
}

size_t mi_option_get_size(mi_option_t option) {
  _mi_options_load();
  return _mi_option_get_size(option);
}

void mi_options_print_out(mi_output_fun* out, void* arg) {
  _mi_options_load();
  _mi_options_print(out, arg);
}

void mi_options_print(void) { mi_options_print_out(NULL, NULL); }
