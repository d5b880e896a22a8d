// Owns: assertions at three levels, always compiled, run where the profile says so.
// May include: base/compiler.h.
// Called by: everyone.
// Invariants: an assertion has no side effect; a failed one never returns.
#pragma once

#include "src/base/compiler.h"

// Reports a failed assertion and ends the process. Defined in sys/log.c, which knows how to write.
_Noreturn mi_cold void _mi_assert_fail(const char* expression, const char* file, int line, const char* function);

#define MI_ASSERT_AT(level, x) \
  ((MI_ASSERT_LEVEL >= (level) && mi_unlikely(!(x))) ? _mi_assert_fail(#x, __FILE__, __LINE__, __func__) : (void)0)

// Cheap enough for hardened builds; internal invariants; expensive walks over whole structures.
#define mi_assert(x) MI_ASSERT_AT(1, x)
#define mi_assert_internal(x) MI_ASSERT_AT(2, x)
#define mi_assert_expensive(x) MI_ASSERT_AT(3, x)
