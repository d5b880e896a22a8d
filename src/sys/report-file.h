// Owns: the file that reports of bad use are appended to, with option guarded_log.
// May include: base, prim, sys/options.h, sys/log.h, sys/sealed.h.
// Called by: sys/report.c, and the start of the process.
// Invariants: opened once, at the start; async-signal-safe, no lock, nothing is allocated.
#pragma once

#include "src/base/compiler.h"

// Opens the file that MIMALLOC_GUARDED_LOG names, if it names one; a line says so and why if that fails.
mi_cold void _mi_report_file_open(void);

bool _mi_report_file_is_open(void);

// False: there is no file, or it does not take the text: it is for stderr.
bool _mi_report_file_write(const char* text, size_t len);
