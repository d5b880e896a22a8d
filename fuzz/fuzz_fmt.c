// Owns: the target that compares base/fmt with the C library's printf, one conversion at a time, and feeds it formats that are none.
// May include: fuzz/lib, src/base, the C library.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: only what both define is compared.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/fuzz.h"
#include "src/base/fmt.h"

enum { FORMAT_MAX = 160,
       TEXT_MAX = 900 };

// What the C library makes of it, and what the length is.
static char mi_expected[TEXT_MAX];
static int mi_length;

#define EXPECT(...) (mi_length = snprintf(mi_expected, sizeof(mi_expected), __VA_ARGS__))

__attribute__((format(printf, 2, 3))) static void mi_compare(size_t room, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  // Exactly as large, so that a sanitizer sees what is written beyond.
  char* const buf = room == 0 ? NULL : malloc(room);
  const size_t told = _mi_fmt_va(buf, room, fmt, args);
  va_end(args);
  MI_FUZZ_CHECK(told == (size_t)mi_length, "\"%s\": length %zu instead of %d", fmt, told, mi_length);
  if (buf != NULL) {
    const size_t written = told < room ? told : room - 1;
    MI_FUZZ_CHECK(buf[written] == 0 && memcmp(buf, mi_expected, written) == 0, "\"%s\": the text is \"%s\" instead of \"%s\"", fmt, buf,
                  mi_expected);
  }
  free(buf);
}

// Plain characters, and percent signs where they stand for themselves.
static size_t mi_plain(mi_fuzz_input_t* input, char* to, size_t most) {
  size_t n = (size_t)mi_fuzz_take(input, 1) % (most + 1);
  for (size_t i = 0; i < n; i++) {
    const char c = (char)mi_fuzz_take(input, 1);
    to[i] = c == 0 || c == '%' ? '.' : c;
  }
  if (n >= 2 && to[0] == 'P') {
    to[0] = to[1] = '%';
  }
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  while (input.left > 0) {
    char fmt[FORMAT_MAX];
    size_t n = mi_plain(&input, fmt, 20);
    const unsigned form = (unsigned)mi_fuzz_take(&input, 1);
    const unsigned shape = (unsigned)mi_fuzz_take(&input, 1);
    const int width = (int)((unsigned)mi_fuzz_take(&input, 1) % 200);
    const int precision = (int)mi_fuzz_take(&input, 1) - 2;
    const size_t room = (size_t)mi_fuzz_take(&input, 2) % 500;
    const uint64_t value = mi_fuzz_take(&input, 8);
    const bool is_text = form % 8 >= 6;
    char spec[40];
    // Zeroes before a text, and a precision of a number, mean nothing here.
    snprintf(spec, sizeof(spec), "%%%s%s", shape & 1 ? "-" : "", shape & 2 && !is_text ? "0" : "");
    n += (size_t)snprintf(fmt + n, 40, "%s", spec);
    const bool by_argument = (shape & 4) != 0;
    if (by_argument) {
      fmt[n++] = '*';
    } else if ((shape & 8) != 0 && width > 0) {
      n += (size_t)snprintf(fmt + n, 8, "%d", width);
    }
    const int w = (shape & 16) != 0 ? -width : width;
    static const char* const letters[] = {"d", "u", "x", "zu", "llx", "ld", "s", "c"};
    const char* const letter = letters[form % 8];
// For a text the C library gets one that ends in a zero, since sanitizers let it read that.
#define COMPARE(argument, theirs)           \
  do {                                      \
    if (by_argument) {                      \
      EXPECT(fmt, w, (theirs));             \
      mi_compare(room, fmt, w, (argument)); \
    } else {                                \
      EXPECT(fmt, (theirs));                \
      mi_compare(room, fmt, (argument));    \
    }                                       \
  } while (0)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (form % 8 == 6) {
      // A text without a zero at its end, of which no more is read than the precision allows.
      const size_t length = (size_t)value % 64;
      char ended[65] = {0};
      memset(ended, 'a' + (int)(value >> 8) % 26, length);
      const bool is_cut = precision >= 0 && (size_t)precision <= length && length > 0;
      char* const text = malloc(length + !is_cut);
      if (text == NULL) {
        return 0;
      }
      memcpy(text, ended, length + !is_cut);
      n += is_cut ? (size_t)snprintf(fmt + n, 8, ".%d", precision) : 0;
      fmt[n++] = 's';
      n += mi_plain(&input, fmt + n, 20);
      fmt[n] = 0;
      COMPARE(text, ended);
      free(text);
      continue;
    }
    n += (size_t)snprintf(fmt + n, 8, "%s", letter);
    n += mi_plain(&input, fmt + n, 20);
    fmt[n] = 0;
    switch (form % 8) {
      case 3:
      case 4:
      case 5: COMPARE((long long)value, (long long)value); break;
      case 7: COMPARE((int)(value % 94 + 33), (int)(value % 94 + 33)); break;
      default: COMPARE((int)value, (int)value); break;
    }
#pragma GCC diagnostic pop
    // What is no format is written as it stands; nothing is read for it.
    char odd[8] = "%";
    for (size_t i = 1; i < 6; i++) {
      const char c = (char)(value >> 8 * i);
      odd[i] = c == '%' || strchr("sdiuxpc*", c) != NULL ? '!' : c;
    }
    char text[16];
    memset(text, 'x', sizeof(text));
    const size_t told = _mi_fmt(text, 8, odd, 1, 2, 3);
    MI_FUZZ_CHECK(text[8] == 'x' && (told >= 8 || text[told] == 0), "\"%s\": %zu", odd, told);
  }
  return 0;
}
