// Owns: the list of what is active in this process, for operators: MIMALLOC_SHOW_HARDENING.
// May include: base.
// Called by: heap, at process start.
// Invariants: policy/features.def is the only list of mitigations; the lines are those of policy/messages.md.
#pragma once

#include "src/base/compiler.h"

// Writes "<profile>: hardening: <name>: <value>" to the registered output, one line a mitigation of policy/features.def and
// one for each of what has no constant: guards, configuration, seal, random, on-violation, backtrace.
mi_cold void _mi_hardening_print(void);
