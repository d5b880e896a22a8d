// Owns: functions that the program registers, each with its argument. They stand in the configuration (sealed.h).
// May include: base, sys/sealed.h.
// Called by: sys.
// Invariants: reading takes no lock, as it happens in signal handlers.
#pragma once

#include "src/sys/sealed.h"

// Makes `fun` the function of the sink; 0: there is none. False: the configuration cannot be opened, and a line has said so.
bool _mi_sink_register(mi_sink_t* sink, uintptr_t fun, uintptr_t arg);

// The function registered last, 0 if there is none, and its argument.
uintptr_t _mi_sink_read(mi_sink_t* sink, uintptr_t* arg);
