// Owns: the tests of the formatter, against the C library's.
// May include: base, test/lib.
// Called by: the build.
// Invariants: every row is formatted by both, and cut at every size.
#include "src/base/fmt.h"

#include "test/lib/test.h"

enum { MAX = 256 };

// What lies behind the buffer must survive, and what was cut must be the beginning of the whole.
static void check_cuts(const char* whole, size_t len, const char* what, size_t size, const char* buf, size_t result) {
  MI_CHECK_MSG(result == len, "%s at size %zu: result %zu, not %zu", what, size, result, len);
  if (size == 0) return;
  const size_t kept = len < size ? len : size - 1;
  MI_CHECK_MSG(buf[kept] == 0 && memcmp(buf, whole, kept) == 0, "%s at size %zu: \"%.*s\"", what, size, (int)size, buf);
  MI_CHECK_MSG(mi_test_all_bytes(buf + kept + 1, MAX - kept - 1, '#'), "%s at size %zu: wrote behind the end", what, size);
}

#define ROW_AS(expected, ...)                                                   \
  do {                                                                          \
    const size_t len = strlen(expected);                                        \
    for (size_t size = 0; size <= len + 2; size++) {                            \
      char buf[MAX];                                                            \
      memset(buf, '#', MAX);                                                    \
      const size_t result = _mi_fmt(size == 0 ? NULL : buf, size, __VA_ARGS__); \
      check_cuts(expected, len, #__VA_ARGS__, size, buf, result);               \
    }                                                                           \
  } while (0)

#define ROW(...)                               \
  do {                                         \
    char libc[MAX];                            \
    snprintf(libc, sizeof(libc), __VA_ARGS__); \
    ROW_AS(libc, __VA_ARGS__);                 \
  } while (0)

MI_TEST(text) {
  ROW_AS("", "%s", "");
  ROW("plain");
  ROW("%s", "text");
  ROW("<%s|%s>", "a", "");
  ROW("<%8s|%-8s|%2s|%-2s>", "text", "text", "text", "text");
  ROW("<%.2s|%8.2s|%-8.2s|%.0s|%.s|%.9s>", "text", "text", "text", "text", "text", "text");
  ROW("<%*s|%*s|%-*s>", 8, "text", -8, "text", 8, "text");
  ROW("<%.*s|%.*s|%*.*s>", 2, "text", -1, "text", 6, 3, "text");
  ROW("%c%c<%4c|%-4c>", 'a', 'b', 'c', 'd');
  ROW("100%%");
  const char* const nothing = mi_test_hide(NULL);
  ROW_AS("<(null)|  (null)>", "<%s|%8s>", nothing, nothing);
}

// A precision bounds what is read, so a text without a zero is allowed.
MI_TEST(unterminated) {
  const char text[3] = {'a', 'b', 'c'};
  ROW("%.3s", text);
}

MI_TEST(integers) {
  static const long long values[] = {0, 1, -1, 9, 10, 42, -42, 12345, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    const long long v = values[i];
    ROW("%d|%i|%u|%x", (int)v, (int)v, (unsigned)v, (unsigned)v);
    ROW("%ld|%li|%lu|%lx", (long)v, (long)v, (unsigned long)v, (unsigned long)v);
    ROW("%lld|%lli|%llu|%llx", v, v, (unsigned long long)v, (unsigned long long)v);
    ROW("%zd|%zi|%zu|%zx", (ptrdiff_t)v, (ptrdiff_t)v, (size_t)v, (size_t)v);
    ROW("<%14lld|%-14lld|%014lld|%3lld>", v, v, v, v);
    ROW("<%8x|%-8x|%08x|%2x>", (unsigned)v, (unsigned)v, (unsigned)v, (unsigned)v);
    ROW("<%*d|%0*d|%*u>", 9, (int)v, 9, (int)v, -9, (unsigned)v);
  }
}

MI_TEST(pointers) {
  int local = 0;
  ROW("%p", (void*)&local);
  ROW("<%20p|%-20p>", (void*)&local, (void*)&local);
  ROW_AS("0x0", "%p", mi_test_hide(NULL));
}

// What is not understood must neither read an argument of the wrong kind nor vanish.
MI_TEST(unknown) {
  static const char* const formats[] = {"a %q b %d", "%", "50 %", "%5", "%l", "%.", "%lz", "%f %s", "%n", "%hd"};
  for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
    char buf[MAX];
    // The compiler must not see the format, which it would rightly refuse.
    const char* const fmt = mi_test_hide(formats[i]);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    const size_t len = _mi_fmt(buf, sizeof(buf), fmt);
#pragma GCC diagnostic pop
    MI_CHECK_STREQ(buf, formats[i]);
    MI_CHECK_EQ(len, strlen(formats[i]));
  }
}

MI_TEST(extreme_width) {
  char buf[8];
  MI_CHECK_EQ(_mi_fmt(buf, sizeof(buf), "%100000d", 7), 100000);
  MI_CHECK_STREQ(buf, "       ");
  MI_CHECK_EQ(_mi_fmt(buf, sizeof(buf), "%-100000d", 7), 100000);
  MI_CHECK_STREQ(buf, "7      ");
}

MI_TEST(errno_is_kept) {
  char buf[MAX];
  errno = 1234;
  _mi_fmt(buf, sizeof(buf), "%s %d %p", "x", 1, (void*)buf);
  MI_CHECK_EQ(errno, 1234);
}

MI_TEST_MAIN()
