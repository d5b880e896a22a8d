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

// The start of the process: from here on reports say what is known of guarded blocks, and where allocations are sampled the
// signals of faults are taken.
mi_cold void _mi_guarded_report_start(void);

// Takes the signals of faults if option guarded_report asks for it. The first call decides: with the first guarded block, where the
// program has begun to sample by itself.
void _mi_guarded_report_arm(void);

// A forked child has one thread, and no report under way.
void _mi_guarded_report_fork_child(void);
