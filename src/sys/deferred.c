// Owns: when the program's function for deferred frees is called, and the heartbeat.
// May include: base, sys/sink.h, sys/report.h.
// Called by: through deferred.h.
// Invariants: see deferred.h.
#include "src/sys/deferred.h"

#include <errno.h>

#include "src/sys/report.h"
#include "src/sys/sink.h"

static mi_thread_local bool mi_deferred_running;
static mi_thread_local uint32_t mi_deferred_ticks;
static mi_thread_local unsigned long long mi_deferred_heartbeat;

void _mi_deferred_register(mi_deferred_free_fun* fun, void* arg) {
  (void)_mi_sink_register(&_mi_settings.deferred, (uintptr_t)fun, (uintptr_t)arg);
}

void _mi_deferred_free(bool force) {
  uintptr_t arg;
  const uintptr_t fun = _mi_sink_read(&_mi_settings.deferred, &arg);
  // A report may have come from the middle of a structure.
  if (fun == 0 || mi_deferred_running || _mi_report_is_running()) {
    return;
  }
  const int saved = errno;
  mi_deferred_running = true;
  ((mi_deferred_free_fun*)fun)(force, ++mi_deferred_heartbeat, (void*)arg);
  mi_deferred_running = false;
  errno = saved;
}

void _mi_deferred_count(void) {
  if (++mi_deferred_ticks >= MI_DEFERRED_TICKS) {
    mi_deferred_ticks = 0;
    _mi_deferred_free(false);
  }
}
