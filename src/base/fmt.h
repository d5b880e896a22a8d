// Owns: formatting of text into a buffer without the C library.
// May include: base/compiler.h.
// Called by: sys, and whoever writes messages.
// Invariants: no allocation, no lock, no locale, no errno; safe in a signal handler.
#pragma once

#include <stdarg.h>

#include "src/base/compiler.h"

// _mi_fmt writes formatted text to `buf`, cut at `size` bytes with the closing zero that it always has; `buf` may be NULL
// when `size` is 0. Returns the length of the whole text without that zero, so what was written is whole if the result is
// less than `size`.
//
// Conversions: %s %c %d %i %u %x %p %%, the integers also with z, l or ll before the letter; flags `-` and `0`; a width, in
// digits or `*`; for %s a precision, in digits or `*`, which is the most that is read of the string. %s of NULL is "(null)".
// %p is 0x and the digits, at least one. Anything else ends the formatting: the rest of `fmt` is written as it stands.
size_t _mi_fmt(char* buf, size_t size, const char* fmt, ...) mi_printf_like(3, 4);

// _mi_fmt_va is _mi_fmt with a list of arguments, which is consumed.
size_t _mi_fmt_va(char* buf, size_t size, const char* fmt, va_list args) mi_printf_like(3, 0);
