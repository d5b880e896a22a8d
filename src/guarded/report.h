// Owns: the report of a fault at a guarded block, what other reports say of guarded blocks, and the choice of processes that
// sample.
// May include: base, prim, sys, region.
// Called by: the start of the process; the rest is called by signals and reports.
// Invariants: a report is async-signal-safe and waits for nobody longer than MI_GUARDED_PATIENCE_MS.
#pragma once

#include "src/base/compiler.h"

// After this a thread that has to wait, for another one's report to be written, gives it up: the process ends within a second.
enum { MI_GUARDED_PATIENCE_MS = 500 };

// With option guarded_fraction, decides whether this process is one of those that sample; the sample rate is 0 in others. The
// first call after the environment was read decides.
mi_cold void _mi_guarded_draw_process(void);

// Where allocations are sampled and option guarded_report asks for it, takes the signals of faults; and adds to reports what is
// known of guarded blocks. At the start of the process.
mi_cold void _mi_guarded_report_start(void);

// A forked child has one thread, and no report under way.
void _mi_guarded_report_fork_child(void);
