// Owns: what a run may do beside making and ending blocks: read what there is to be read, and switch what can be switched.
// May include: fuzz/lib, mimalloc.h.
// Called by: fuzz_ops.
// Invariants: what is switched is as before when mi_fuzz_modes_end has returned.
#pragma once

#include "fuzz/lib/model.h"
#include "fuzz/lib/ops.h"

// Asks one of the functions that read, and compares what can be.
void mi_fuzz_read(const mi_fuzz_op_t* op);

// The heap profiler: starts, ends, is reset, read and written; with what it tells compared with itself and the model.
void mi_fuzz_profile(const mi_fuzz_op_t* op);

// Memory events, sampling of heaps and theaps, and what else is set and has no effect on what a call returns.
void mi_fuzz_switch(const mi_fuzz_op_t* op);

// The acting thread, which is not the first, goes to a sub-process of its own, allocates and frees there, and comes back.
void mi_fuzz_subprocess(const mi_fuzz_op_t* op);

void mi_fuzz_modes_end(void);
