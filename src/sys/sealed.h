// Owns: the configuration, on pages of its own that are read-only once the process has started: what may still be set, and
// what is fixed; and the window in which the former is written.
// May include: policy, base, prim; the public header for mi_option_t.
// Called by: sys (options, registered functions, the system's figures, the root of random numbers) and region (page map).
// Invariants: after _mi_sealed_start nothing is written but between _mi_sealed_open and _mi_sealed_close, and
// nothing at all of what is fixed. Reading needs no lock and no call: the pages stay readable.
#pragma once

#include "mimalloc.h"
#include "src/base/atomic.h"
#include "src/base/geometry.h"
#include "src/prim/prim.h"

// The latest of a few pairs of function and argument. Reading takes no lock, as it happens in signal handlers.
enum { MI_SINK_SLOTS = 4,
       MI_SINK_MEMORY_EVENTS = 3 };

typedef struct mi_sink_s {
  _Atomic(uint32_t) current;
  struct {
    _Atomic(uintptr_t) fun;
    _Atomic(uintptr_t) arg;
  } slots[MI_SINK_SLOTS];
} mi_sink_t;

// How far the configuration is closed.
typedef enum mi_sealed_state_e {
  MI_SEALED_NOT_YET,  // the process is starting
  MI_SEALED,          // read-only
  MI_SEALED_PAGES,    // writable: the system's pages are larger than what this build is laid out for
  MI_SEALED_REFUSED,  // writable: the system refused, or the process could not be set up
} mi_sealed_state_t;

// Whether what never changes is also fixed to the kernel, so that no call of this process can make it writable again.
typedef enum mi_sealed_mseal_e {
  MI_MSEAL_NOT_YET,
  MI_MSEAL_ON,           // configuration, and the metadata and guards that were there when the process had started
  MI_MSEAL_ALWAYS,       // also metadata and guards that came later
  MI_MSEAL_UNAVAILABLE,  // the system cannot, or does not let us
  MI_MSEAL_UNLOADABLE,   // this copy is not the process's malloc, so that it may be unloaded and its memory released
  MI_MSEAL_DESTROY,      // option destroy_on_exit is to release the memory
  MI_MSEAL_OFF,          // option mseal says so
} mi_sealed_mseal_t;

// A file name with its zero.
enum { MI_SEALED_PATH_MAX = 1024 };

// What a call may still set. Each part belongs to the file named.
typedef struct mi_aligned(MI_OS_PAGE_MAX) mi_settings_s {
  _Atomic(long) option_values[_mi_option_last];            // options.c
  _Atomic(unsigned char) option_setters[_mi_option_last];  // options.c
  mi_sink_t output;                                        // log.c
  mi_sink_t error;                                         // log.c
  mi_sink_t deferred;                                      // deferred.c
  mi_sink_t memory_events[MI_SINK_MEMORY_EVENTS];          // profile/memory-events.c, by kind
  _Atomic(uintptr_t) random_root;                          // random.c: made at the first draw, which may be late
  _Atomic(uint32_t) state;                                 // mi_sealed_state_t
  _Atomic(uint32_t) mseal;                                 // mi_sealed_mseal_t
  size_t profile_interval;                                 // profile/settings.c, like the next four: 0: not set
  bool profile_loaded;
  bool profile_proto;
  char profile_path[MI_SEALED_PATH_MAX];   // where the profile is written when the process ends; empty: nowhere
  char profiler_base[MI_SEALED_PATH_MAX];  // of the files of the environment's profiler; empty: it asks for none
}
mi_settings_t;

// What the tables of the page map begin with; the rest of their layout belongs to region.
typedef struct mi_page_map_head_s {
  uint8_t none[MI_PAGE_META_SIZE];  // the page that is none
  size_t root_count;
} mi_page_map_head_t;

typedef struct mi_page_map_tables_s mi_page_map_tables_t;

typedef struct mi_page_map_s {
  mi_page_map_tables_t* tables;  // at first no more than a head without roots, so that every look-up finds nothing
} mi_page_map_t;

// What is known when the process has started, and never changes.
typedef struct mi_aligned(MI_OS_PAGE_MAX) mi_fixed_s {
  mi_page_map_t page_map;
  mi_prim_config_t os_config;
  _Atomic(bool) os_ready;
  _Atomic(uintptr_t) report_notes;  // report.c
  mi_prim_log_t report_file;        // report-file.c
  bool has_report_file;             // report-file.c
}
mi_fixed_t;

// Side by side, so that one call closes both.
typedef struct mi_sealed_s {
  mi_fixed_t fixed;
  mi_settings_t settings;
} mi_sealed_t;

extern mi_hidden mi_sealed_t _mi_sealed;
#define _mi_fixed (_mi_sealed.fixed)
#define _mi_settings (_mi_sealed.settings)

// Makes the settings writable for the calling thread, which must store and close at once; others wait. False: the system
// refuses, or this is a signal handler that has interrupted the window; a line has said that `what` stays as it was, and
// nothing is to be closed.
bool _mi_sealed_open(const char* what);
void _mi_sealed_close(void);

// The end of start-up: makes both read-only. MI_MSEAL_ON and MI_MSEAL_ALWAYS: has the system seal what is fixed as well; any
// other value says why not. Nothing is closed when what is fixed is not complete, as in a process without memory for the page map.
mi_cold void _mi_sealed_start(bool fixed_is_complete, mi_sealed_mseal_t wanted);

mi_sealed_state_t _mi_sealed_state(void);
mi_sealed_mseal_t _mi_sealed_mseal_state(void);

// Whether anything is sealed.
mi_inline bool _mi_sealed_mseal_is_on(void) {
  const mi_sealed_mseal_t state = _mi_sealed_mseal_state();
  return state == MI_MSEAL_ON || state == MI_MSEAL_ALWAYS;
}

// The lock of the window, for the fork handlers. It is a leaf lock.
void _mi_sealed_fork_prepare(void);
void _mi_sealed_fork_release(bool in_child);
