// Owns: the C library's functions that copy or fill memory, with a check of their bounds in front.
// May include: base, heap, alloc, sys; the dynamic linker's interface; no header of the C library that declares them.
// Called by: programs, and the loader's resolvers before anything here is relocated.
// Invariants: in the shared library only: in a static program these names come in objects of the C library with others.
// Until the constructor has run, nothing here is reached through an address that the loader has to fill in. What the
// allocator itself copies goes to __wrap_memcpy and its kin (the linker's --wrap), which check nothing.
#define _GNU_SOURCE  // RTLD_NEXT
#include <dlfcn.h>
#undef _GNU_SOURCE

#include "src/alloc/bounds.h"
#include "src/base/bits.h"
#include "src/heap/process.h"
#include "src/sys/options.h"

_Static_assert(MI_HAS_CHECKED_COPIES != 0, "policy/variants.bzl gives this part to a variant without checked copies");

#define COPY(name, next, type, params, args) \
  typedef type mi_copy_##name##_t params;    \
  static type mi_copy_checked_##name params;
#include "src/api/shared/copies.def"
#undef COPY

typedef size_t mi_copy_strnlen_t(const char* s, size_t n);
typedef void* mi_copy_memchr_t(const void* p, int c, size_t n);

// Zero until the constructor has run, which is the only writer: nothing here needs relocation, and both kinds of entry
// are right at any time.
static struct {
  // Where calls go.
#define COPY(name, next, type, params, args) _Atomic(mi_copy_##name##_t*) name;
#include "src/api/shared/copies.def"
#undef COPY
  // The C library's, behind the checks.
  _Atomic(mi_copy_memmove_t*) next_memmove;
  _Atomic(mi_copy_memset_t*) next_memset;
  _Atomic(mi_copy_wmemset_t*) next_wmemset;
  _Atomic(mi_copy_strnlen_t*) next_strnlen;
  _Atomic(mi_copy_memchr_t*) next_memchr;
} mi_copies;

// The exported names. Relaxed: what a thread may find besides the final entry does the same.
#define COPY(name, next, type, params, args)                                   \
  mi_exported mi_hot type name params;                                         \
  type name params {                                                           \
    mi_copy_##name##_t* const entry = mi_atomic_load_relaxed(&mi_copies.name); \
    return (mi_likely(entry != NULL) ? entry : &mi_copy_checked_##name) args;  \
  }
#include "src/api/shared/copies.def"
#undef COPY

// Copying

// Keeps the compiler from taking a loop for a call of what is defined here.
mi_inline void mi_copy_keep_loop(void) { __asm__ volatile("" ::
                                                              : "memory"); }

mi_cold static void* mi_copy_plain_move(void* to, const void* from, size_t n) {
  uint8_t* const t = to;
  const uint8_t* const f = from;
  // Forwards unless that would overwrite what is yet to be read.
  const bool forwards = (uintptr_t)t - (uintptr_t)f >= n;
  for (size_t i = 0; i < n; i++) {
    const size_t k = forwards ? i : n - 1 - i;
    t[k] = f[k];
    mi_copy_keep_loop();
  }
  return to;
}

mi_cold static void* mi_copy_plain_set(void* to, int c, size_t n) {
  uint8_t* const t = to;
  for (size_t i = 0; i < n; i++) {
    t[i] = (uint8_t)c;
    mi_copy_keep_loop();
  }
  return to;
}

mi_cold static size_t mi_copy_plain_length(const char* s, size_t n) {
  size_t i = 0;
  while (i < n && s[i] != 0) {
    i++;
    mi_copy_keep_loop();
  }
  return i;
}

mi_cold static void* mi_copy_plain_find(const uint8_t* p, int c, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (p[i] == (uint8_t)c) {
      return (void*)(uintptr_t)(p + i);
    }
    mi_copy_keep_loop();
  }
  return NULL;
}

mi_inline void* mi_copy_move(void* to, const void* from, size_t n) {
  mi_copy_memmove_t* const next = mi_atomic_load_relaxed(&mi_copies.next_memmove);
  return mi_likely(next != NULL) ? next(to, from, n) : mi_copy_plain_move(to, from, n);
}

mi_inline void* mi_copy_set(void* to, int c, size_t n) {
  mi_copy_memset_t* const next = mi_atomic_load_relaxed(&mi_copies.next_memset);
  return mi_likely(next != NULL) ? next(to, c, n) : mi_copy_plain_set(to, c, n);
}

mi_inline size_t mi_copy_length(const char* s, size_t n) {
  mi_copy_strnlen_t* const next = mi_atomic_load_relaxed(&mi_copies.next_strnlen);
  return mi_likely(next != NULL) ? next(s, n) : mi_copy_plain_length(s, n);
}

mi_inline void* mi_copy_find(const void* p, int c, size_t n) {
  mi_copy_memchr_t* const next = mi_atomic_load_relaxed(&mi_copies.next_memchr);
  return mi_likely(next != NULL) ? next(p, c, n) : mi_copy_plain_find(p, c, n);
}

// The allocator's own
void* __wrap_memcpy(void* to, const void* from, size_t n);
void* __wrap_memmove(void* to, const void* from, size_t n);
void* __wrap_memset(void* to, int c, size_t n);

void* __wrap_memcpy(void* to, const void* from, size_t n) { return mi_copy_move(to, from, n); }
void* __wrap_memmove(void* to, const void* from, size_t n) { return mi_copy_move(to, from, n); }
void* __wrap_memset(void* to, int c, size_t n) { return mi_copy_set(to, c, n); }

// Checking

// Asked on each call: the first ones come before the environment can be read.
mi_inline bool mi_copies_are_checked(void) { return _mi_option_is_enabled(mi_option_checked_copies); }

mi_inline bool mi_copy_may_write(const char* call, void* to, size_t n) {
  return !mi_copies_are_checked() || _mi_bounds_allow(to, n, call, true);
}

mi_inline bool mi_copy_may_read(const char* call, const void* from, size_t n) {
  return !mi_copies_are_checked() || _mi_bounds_allow(from, n, call, false);
}

// The length of a string of at most n bytes, which is not read beyond its block. False after a report.
static bool mi_copy_string_length(const char* call, const char* s, size_t n, size_t* length) {
  const size_t room = mi_copies_are_checked() ? _mi_bounds_room(s) : SIZE_MAX;
  const size_t limit = _mi_min(n, room);
  *length = mi_copy_length(s, limit);
  return *length < limit || limit == n || _mi_bounds_allow(s, limit + 1, call, false);
}

// The fortified call's own check, as the C library does it.
extern void __chk_fail(void) __attribute__((weak, noreturn));

mi_cold static void mi_copy_fail(void) {
  if (&__chk_fail != NULL) {
    __chk_fail();
  }
  __builtin_trap();
}

mi_inline void mi_copy_fortify(size_t needed, size_t known) {
  if (mi_unlikely(needed > known)) {
    mi_copy_fail();
  }
}

// In bytes; what does not fit lies in no block.
mi_inline size_t mi_copy_wide(size_t n) {
  size_t size;
  return _mi_mul_overflow(n, sizeof(wchar_t), &size) ? SIZE_MAX : size;
}

// Of a fixed length

static mi_noinline void* mi_copy_bytes_judged(void* to, const void* from, size_t n, const char* call) {
  return mi_copy_may_write(call, to, n) && mi_copy_may_read(call, from, n) ? mi_copy_move(to, from, n) : to;
}

static mi_noinline void* mi_copy_fill_judged(void* to, int c, size_t n, const char* call) {
  return mi_copy_may_write(call, to, n) ? mi_copy_set(to, c, n) : to;
}

// All exits of both are tail calls, so that no register is saved on the way that is usual.
mi_inline void* mi_copy_bytes(const char* call, void* to, const void* from, size_t n) {
  return !mi_copies_are_checked() || mi_likely(_mi_bounds_are_plain(to, n) && _mi_bounds_are_plain(from, n)) ? mi_copy_move(to, from, n)
                                                                                                             : mi_copy_bytes_judged(to, from, n, call);
}

mi_inline void* mi_copy_fill(const char* call, void* to, int c, size_t n) {
  return !mi_copies_are_checked() || mi_likely(_mi_bounds_are_plain(to, n)) ? mi_copy_set(to, c, n) : mi_copy_fill_judged(to, c, n, call);
}

static void* mi_copy_checked_memcpy(void* to, const void* from, size_t n) { return mi_copy_bytes("memcpy", to, from, n); }

static void* mi_copy_checked_memmove(void* to, const void* from, size_t n) {
  return mi_copy_bytes("memmove", to, from, n);
}

static void* mi_copy_checked_mempcpy(void* to, const void* from, size_t n) {
  return (uint8_t*)mi_copy_bytes("mempcpy", to, from, n) + n;
}

static void mi_copy_checked_bcopy(const void* from, void* to, size_t n) { (void)mi_copy_bytes("bcopy", to, from, n); }

static void* mi_copy_checked_memset(void* to, int c, size_t n) { return mi_copy_fill("memset", to, c, n); }

static void mi_copy_checked_bzero(void* to, size_t n) { (void)mi_copy_fill("bzero", to, 0, n); }

static void mi_copy_checked_explicit_bzero(void* to, size_t n) {
  (void)mi_copy_fill("explicit_bzero", to, 0, n);
  mi_copy_keep_loop();
}

static void* mi_copy_checked_memccpy(void* to, const void* from, int c, size_t n) {
  const size_t room = mi_copies_are_checked() ? _mi_bounds_room(from) : SIZE_MAX;
  const size_t limit = _mi_min(n, room);
  const uint8_t* const found = mi_copy_find(from, c, limit);
  const size_t length = found != NULL ? (size_t)(found - (const uint8_t*)from) + 1 : limit;
  if ((found == NULL && limit < n && !_mi_bounds_allow(from, limit + 1, "memccpy", false)) ||
      !mi_copy_may_write("memccpy", to, length)) {
    return NULL;
  }
  (void)mi_copy_move(to, from, length);
  return found != NULL ? (uint8_t*)to + length : NULL;
}

// Of wide characters

mi_inline wchar_t* mi_copy_wides(const char* call, wchar_t* to, const wchar_t* from, size_t n) {
  if (mi_unlikely(!mi_copy_may_write(call, to, mi_copy_wide(n)) || !mi_copy_may_read(call, from, mi_copy_wide(n)))) {
    return to;
  }
  return mi_copy_move(to, from, n * sizeof(wchar_t));
}

static wchar_t* mi_copy_checked_wmemcpy(wchar_t* to, const wchar_t* from, size_t n) {
  return mi_copy_wides("wmemcpy", to, from, n);
}

static wchar_t* mi_copy_checked_wmemmove(wchar_t* to, const wchar_t* from, size_t n) {
  return mi_copy_wides("wmemmove", to, from, n);
}

static wchar_t* mi_copy_checked_wmempcpy(wchar_t* to, const wchar_t* from, size_t n) {
  return mi_copy_wides("wmempcpy", to, from, n) + n;
}

static wchar_t* mi_copy_checked_wmemset(wchar_t* to, wchar_t c, size_t n) {
  if (!mi_copy_may_write("wmemset", to, mi_copy_wide(n))) {
    return to;
  }
  mi_copy_wmemset_t* const next = mi_atomic_load_relaxed(&mi_copies.next_wmemset);
  if (mi_likely(next != NULL)) {
    return next(to, c, n);
  }
  for (size_t i = 0; i < n; i++) {
    to[i] = c;
    mi_copy_keep_loop();
  }
  return to;
}

// Strings. `known` is SIZE_MAX for a call that is not fortified.

// Copies with the zero; the end of the copy, where its zero is.
mi_inline char* mi_copy_string(const char* call, char* to, const char* from, size_t known) {
  size_t length;
  if (!mi_copy_string_length(call, from, SIZE_MAX, &length)) {
    return to;
  }
  mi_copy_fortify(length + 1, known);
  if (mi_copy_may_write(call, to, length + 1)) {
    (void)mi_copy_move(to, from, length + 1);
  }
  return to + length;
}

// Copies at most n bytes and fills up with zeroes; where the first of these is, or the end.
mi_inline char* mi_copy_padded(const char* call, char* to, const char* from, size_t n) {
  size_t length;
  if (!mi_copy_string_length(call, from, n, &length) || !mi_copy_may_write(call, to, n)) {
    return to;
  }
  (void)mi_copy_move(to, from, length);
  (void)mi_copy_set(to + length, 0, n - length);
  return to + length;
}

// Appends at most n bytes and a zero.
mi_inline char* mi_copy_append(const char* call, char* to, const char* from, size_t n, size_t known) {
  size_t before;
  size_t length;
  if (!mi_copy_string_length(call, to, SIZE_MAX, &before) || !mi_copy_string_length(call, from, n, &length)) {
    return to;
  }
  mi_copy_fortify(before + length + 1, known);
  if (mi_copy_may_write(call, to, before + length + 1)) {
    (void)mi_copy_move(to + before, from, length);
    to[before + length] = 0;
  }
  return to;
}

static char* mi_copy_checked_strcpy(char* to, const char* from) {
  (void)mi_copy_string("strcpy", to, from, SIZE_MAX);
  return to;
}

static char* mi_copy_checked_stpcpy(char* to, const char* from) {
  return mi_copy_string("stpcpy", to, from, SIZE_MAX);
}

static char* mi_copy_checked_strncpy(char* to, const char* from, size_t n) {
  (void)mi_copy_padded("strncpy", to, from, n);
  return to;
}

static char* mi_copy_checked_stpncpy(char* to, const char* from, size_t n) {
  return mi_copy_padded("stpncpy", to, from, n);
}

static char* mi_copy_checked_strcat(char* to, const char* from) {
  return mi_copy_append("strcat", to, from, SIZE_MAX, SIZE_MAX);
}

static char* mi_copy_checked_strncat(char* to, const char* from, size_t n) {
  return mi_copy_append("strncat", to, from, n, SIZE_MAX);
}

// Fortified

static void* mi_copy_checked___memcpy_chk(void* to, const void* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_bytes("memcpy", to, from, n);
}

static void* mi_copy_checked___memmove_chk(void* to, const void* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_bytes("memmove", to, from, n);
}

static void* mi_copy_checked___mempcpy_chk(void* to, const void* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_mempcpy(to, from, n);
}

static void* mi_copy_checked___memset_chk(void* to, int c, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_fill("memset", to, c, n);
}

static void mi_copy_checked___explicit_bzero_chk(void* to, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  mi_copy_checked_explicit_bzero(to, n);
}

static char* mi_copy_checked___strcpy_chk(char* to, const char* from, size_t known) {
  (void)mi_copy_string("strcpy", to, from, known);
  return to;
}

static char* mi_copy_checked___stpcpy_chk(char* to, const char* from, size_t known) {
  return mi_copy_string("stpcpy", to, from, known);
}

static char* mi_copy_checked___strcat_chk(char* to, const char* from, size_t known) {
  return mi_copy_append("strcat", to, from, SIZE_MAX, known);
}

static char* mi_copy_checked___strncpy_chk(char* to, const char* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_strncpy(to, from, n);
}

static char* mi_copy_checked___stpncpy_chk(char* to, const char* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_stpncpy(to, from, n);
}

static char* mi_copy_checked___strncat_chk(char* to, const char* from, size_t n, size_t known) {
  return mi_copy_append("strncat", to, from, n, known);
}

// Here `known` counts characters.
static wchar_t* mi_copy_checked___wmemcpy_chk(wchar_t* to, const wchar_t* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_wmemcpy(to, from, n);
}

static wchar_t* mi_copy_checked___wmemmove_chk(wchar_t* to, const wchar_t* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_wmemmove(to, from, n);
}

static wchar_t* mi_copy_checked___wmempcpy_chk(wchar_t* to, const wchar_t* from, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_wmempcpy(to, from, n);
}

static wchar_t* mi_copy_checked___wmemset_chk(wchar_t* to, wchar_t c, size_t n, size_t known) {
  mi_copy_fortify(n, known);
  return mi_copy_checked_wmemset(to, c, n);
}

// Start

extern __typeof__(dlsym) dlsym __attribute__((weak));

static void* mi_copy_next(const char* name) { return &dlsym == NULL ? NULL : dlsym(RTLD_NEXT, name); }

// After the allocator's own, which reads the options. The dynamic linker may allocate and copy in here.
__attribute__((constructor(102))) static void mi_copies_load(void) {
  (void)_mi_process_init();
  _mi_options_load();
  mi_atomic_store_relaxed(&mi_copies.next_memmove, (mi_copy_memmove_t*)mi_copy_next("memmove"));
  mi_atomic_store_relaxed(&mi_copies.next_memset, (mi_copy_memset_t*)mi_copy_next("memset"));
  mi_atomic_store_relaxed(&mi_copies.next_wmemset, (mi_copy_wmemset_t*)mi_copy_next("wmemset"));
  mi_atomic_store_relaxed(&mi_copies.next_strnlen, (mi_copy_strnlen_t*)mi_copy_next("strnlen"));
  mi_atomic_store_relaxed(&mi_copies.next_memchr, (mi_copy_memchr_t*)mi_copy_next("memchr"));
  const bool checked = mi_copies_are_checked();
#define COPY(name, next, type, params, args) \
  mi_atomic_store_relaxed(&mi_copies.name, checked ? &mi_copy_checked_##name : (mi_copy_##name##_t*)mi_copy_next(#next));
#include "src/api/shared/copies.def"
#undef COPY
}
