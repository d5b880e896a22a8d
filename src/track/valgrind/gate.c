// Owns: the switch that keeps Memcheck from reporting what the allocator does.
// May include: base, track.
// Called by: the compiler, on the way into every function of the allocator and out of it.
// Invariants: reports are off in a thread while it is in a function of the allocator, and only then; a function of the program
// that the allocator calls counts as one of its own.
//
// The variant is compiled with -finstrument-functions. Memcheck counts for each thread how often reports were switched off, and
// how often is also counted here, to switch them on for a moment. Nothing is decided by that count while reports are on: in a
// static program it lies in memory that Memcheck takes for uninitialised.
#include "src/track/track.h"

#ifdef MI_TRACK_HAS_GATE

#define mi_gate __attribute__((no_instrument_function, visibility("hidden")))

mi_gate void __cyg_profile_func_enter(void* function, void* site);
mi_gate void __cyg_profile_func_exit(void* function, void* site);

static mi_thread_local unsigned mi_gate_depth;

void __cyg_profile_func_enter(void* function, void* site) {
  (void)function, (void)site;
  VALGRIND_DISABLE_ERROR_REPORTING;
  mi_gate_depth++;
}

void __cyg_profile_func_exit(void* function, void* site) {
  (void)function, (void)site;
  mi_gate_depth--;
  VALGRIND_ENABLE_ERROR_REPORTING;
}

mi_gate void _mi_track_misused(const void* p) {
  unsigned depth = mi_gate_depth;
  // Reports are on from here to there: what a static program has counted is not to be one.
  (void)VALGRIND_MAKE_MEM_DEFINED(&depth, sizeof(depth));
  for (unsigned i = 0; i < depth; i++) {
    VALGRIND_ENABLE_ERROR_REPORTING;
  }
  VALGRIND_FREELIKE_BLOCK(p, 0);
  for (unsigned i = 0; i < depth; i++) {
    VALGRIND_DISABLE_ERROR_REPORTING;
  }
}

mi_gate void _mi_track_freed_in(const void* start, const void* end) {
  for (const char* p = start; p < (const char*)end; p++) {
    if (VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p, 1) == 0) {
      VALGRIND_FREELIKE_BLOCK(p, 0);
      return;
    }
  }
}

#endif
