// Owns: what differs between compilers and targets: attributes, hints, pointer size, the profile's constants.
// May include: the profile only.
// Called by: every unit; it is the first include everywhere.
// Invariants: no code, no state; a compiler conditional outside this folder, prim and track is a defect.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mi-profile.h"

#if !defined(__GNUC__)
#error "gcc 12 or clang 14 or newer is required"
#endif

// What is compiled into its caller is no function of its own to -finstrument-functions either.
#define mi_inline static inline __attribute__((always_inline, no_instrument_function))
#define mi_noinline __attribute__((noinline))
#define mi_cold __attribute__((cold, noinline))
#define mi_hot __attribute__((hot))
// A process starts with few pages when what each start runs lies with the cold code, and what it writes lies apart from large
// tables: functions that each start runs and others call as well; variables that hold zeroes, and are large or seldom used.
// The linker sorts by names, and where each variable has a section of its name, this one's must be behind all.
#define mi_early __attribute__((section(".text.startup")))
#define mi_far __attribute__((section(".bss.zz_far")))
#define mi_const_fn __attribute__((const))
#define mi_pure_fn __attribute__((pure))
#define mi_unused __attribute__((unused))
#define mi_aligned(n) __attribute__((aligned(n)))
#define mi_printf_like(fmt, first) __attribute__((format(printf, fmt, first)))
#define mi_likely(x) __builtin_expect(!!(x), 1)
#define mi_unlikely(x) __builtin_expect(!!(x), 0)
#define mi_unreachable() __builtin_unreachable()
// Means it when an unsigned number wraps around, or a shift loses bits: each use says in a comment why.
#if defined(__clang__)
#define mi_wraps __attribute__((no_sanitize("unsigned-integer-overflow", "unsigned-shift-base")))
#else
#define mi_wraps
#endif
// Reads what another thread writes plainly, and copes with whatever it finds.
#define mi_no_tsan __attribute__((no_sanitize("thread")))

// The compiler takes x for changed from here on, so that it does not compute ahead, or once for several uses, what the next
// instruction has for nothing.
#define mi_opaque(x) __asm__("" \
                             : "+r"(x))

// Thread-local storage that costs one instruction: it lives in the static TLS block, so the library must be there
// at program start or fit the C library's reserve for late comers (it needs a few words only).
#define mi_thread_local __thread __attribute__((tls_model("initial-exec")))

// Everything is compiled with -fvisibility=hidden; what `nm -D` shows carries this.
#define mi_exported __attribute__((visibility("default")))

// A variable that fast paths read: the flag is for definitions only, and what is declared alone is looked for in the table of
// addresses.
#define mi_hidden __attribute__((visibility("hidden")))

#if UINTPTR_MAX == UINT64_MAX
#define MI_INTPTR_SHIFT 3
#elif UINTPTR_MAX == UINT32_MAX
#define MI_INTPTR_SHIFT 2
#else
#error "pointers of 32 or 64 bits are expected"
#endif

// The largest page a system of this machine has, which is also what a linker places segments by.
#if defined(__x86_64__) || defined(__i386__) || defined(__riscv) || defined(__s390x__)
#define MI_OS_PAGE_MAX 4096
#else
#define MI_OS_PAGE_MAX 65536
#endif

enum {
  MI_INTPTR_SIZE = 1 << MI_INTPTR_SHIFT,
  MI_CACHE_LINE = 64,
};

// Whether this is a build for the thread sanitizer, which takes some of what tests do for what it is not.
#if defined(__SANITIZE_THREAD__)
#define MI_TSAN_BUILD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MI_TSAN_BUILD 1
#endif
#endif
#ifndef MI_TSAN_BUILD
#define MI_TSAN_BUILD 0
#endif

// Whether this is a build for the memory sanitizer, which must be told what the system has written.
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define MI_MSAN_BUILD 1
#endif
#endif
#ifndef MI_MSAN_BUILD
#define MI_MSAN_BUILD 0
#endif
