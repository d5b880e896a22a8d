// Owns: the formatter.
// May include: base.
// Called by: through fmt.h.
// Invariants: nothing is written at or behind buf + size; lengths saturate instead of wrapping.
#include "src/base/fmt.h"

// The longest number: 64 bits in decimal take 20 digits.
enum { MI_FMT_DIGITS = 20 };

typedef struct mi_fmt_out_s {
  char* buf;
  size_t size;
  size_t len;  // of the whole text so far, written or not
} mi_fmt_out_t;

typedef struct mi_fmt_spec_s {
  bool left;
  bool zeros;
  size_t width;
  size_t precision;  // SIZE_MAX: none was given
  size_t bytes;      // of an integer
} mi_fmt_spec_t;

static void mi_fmt_put(mi_fmt_out_t* out, char c) {
  if (out->len + 1 < out->size) {
    out->buf[out->len] = c;
  }
  if (out->len < SIZE_MAX - 1) {
    out->len++;
  }
}

static void mi_fmt_pad(mi_fmt_out_t* out, char c, size_t width, size_t used) {
  for (; used < width; used++) {
    mi_fmt_put(out, c);
  }
}

static void mi_fmt_text(mi_fmt_out_t* out, const mi_fmt_spec_t* spec, const char* text) {
  if (text == NULL) {
    text = "(null)";
  }
  size_t len = 0;
  while (len < spec->precision && text[len] != 0) {
    len++;
  }
  if (!spec->left) {
    mi_fmt_pad(out, ' ', spec->width, len);
  }
  for (size_t i = 0; i < len; i++) {
    mi_fmt_put(out, text[i]);
  }
  if (spec->left) {
    mi_fmt_pad(out, ' ', spec->width, len);
  }
}

// A number with what stands before its digits: a sign, 0x or nothing.
static void mi_fmt_number(mi_fmt_out_t* out, const mi_fmt_spec_t* spec, const char* prefix, uint64_t value, unsigned base) {
  char digits[MI_FMT_DIGITS];
  size_t count = 0;
  do {
    digits[count++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  size_t len = count;
  for (const char* p = prefix; *p != 0; p++) {
    len++;
  }
  const bool zeros = spec->zeros && !spec->left;
  if (!spec->left && !zeros) {
    mi_fmt_pad(out, ' ', spec->width, len);
  }
  for (const char* p = prefix; *p != 0; p++) {
    mi_fmt_put(out, *p);
  }
  if (zeros) {
    mi_fmt_pad(out, '0', spec->width, len);
  }
  while (count > 0) {
    mi_fmt_put(out, digits[--count]);
  }
  if (spec->left) {
    mi_fmt_pad(out, ' ', spec->width, len);
  }
}

// Wraps: the smallest number has no positive one.
static mi_wraps void mi_fmt_signed(mi_fmt_out_t* out, const mi_fmt_spec_t* spec, int64_t value) {
  const uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
  mi_fmt_number(out, spec, value < 0 ? "-" : "", magnitude, 10);
}

// Reads digits; a number that no buffer could need is cut.
static const char* mi_fmt_digits(const char* p, size_t* number) {
  size_t n = 0;
  for (; *p >= '0' && *p <= '9'; p++) {
    n = n < SIZE_MAX / 16 ? n * 10 + (size_t)(*p - '0') : n;
  }
  *number = n;
  return p;
}

size_t _mi_fmt_va(char* buf, size_t size, const char* fmt, va_list args) {
  mi_fmt_out_t out = {buf, size, 0};
  const char* p = fmt;
  while (*p != 0) {
    const char* const start = p;
    if (*p++ != '%') {
      mi_fmt_put(&out, *start);
      continue;
    }
    mi_fmt_spec_t spec = {.precision = SIZE_MAX, .bytes = sizeof(int)};
    for (; *p == '-' || *p == '0'; p++) {
      spec.left = spec.left || *p == '-';
      spec.zeros = spec.zeros || *p == '0';
    }
    if (*p == '*') {
      const int width = va_arg(args, int);
      // As in C, a negative width is the flag `-` and a width.
      spec.left = spec.left || width < 0;
      spec.width = (size_t)(width < 0 ? -(int64_t)width : width);
      p++;
    } else {
      p = mi_fmt_digits(p, &spec.width);
    }
    if (*p == '.' && p[1] == '*') {
      const int precision = va_arg(args, int);
      spec.precision = precision < 0 ? SIZE_MAX : (size_t)precision;
      p += 2;
    } else if (*p == '.') {
      p = mi_fmt_digits(p + 1, &spec.precision);
    }
    if (*p == 'z') {
      spec.bytes = sizeof(size_t);
      p++;
    } else if (*p == 'l' && p[1] == 'l') {
      spec.bytes = sizeof(long long);
      p += 2;
    } else if (*p == 'l') {
      spec.bytes = sizeof(long);
      p++;
    }
    // Integers of one size are passed alike, whatever their type.
    const bool is_wide = spec.bytes > sizeof(int);
    const char conversion = *p;
    if (conversion == 'd' || conversion == 'i') {
      mi_fmt_signed(&out, &spec, is_wide ? va_arg(args, long long) : va_arg(args, int));
    } else if (conversion == 'u' || conversion == 'x') {
      const uint64_t value = is_wide ? va_arg(args, unsigned long long) : va_arg(args, unsigned);
      mi_fmt_number(&out, &spec, "", value, conversion == 'u' ? 10 : 16);
    } else if (conversion == 'p') {
      mi_fmt_number(&out, &spec, "0x", (uintptr_t)va_arg(args, void*), 16);
    } else if (conversion == 's') {
      mi_fmt_text(&out, &spec, va_arg(args, const char*));
    } else if (conversion == 'c') {
      const char text[2] = {(char)va_arg(args, int), 0};
      spec.precision = SIZE_MAX;
      mi_fmt_text(&out, &spec, text);
    } else if (conversion == '%') {
      mi_fmt_put(&out, '%');
    } else {
      // The arguments can no longer be matched with the conversions.
      for (p = start; *p != 0; p++) {
        mi_fmt_put(&out, *p);
      }
      break;
    }
    p++;
  }
  if (size > 0) {
    buf[out.len < size ? out.len : size - 1] = 0;
  }
  return out.len;
}

size_t _mi_fmt(char* buf, size_t size, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const size_t len = _mi_fmt_va(buf, size, fmt, args);
  va_end(args);
  return len;
}

_Static_assert(sizeof(size_t) == sizeof(int) || sizeof(size_t) == sizeof(long long), "sizes are passed as one of two integers");
_Static_assert(sizeof(long) == sizeof(int) || sizeof(long) == sizeof(long long), "and so are longs");
