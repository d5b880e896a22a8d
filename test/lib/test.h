// Owns: the checks and the table of tests that every test program is written with.
// May include: the C library only; it works for C11 and C++11 and before, below and beside any allocator.
// Called by: every test program.
// Invariants: never allocates and takes no lock, so a check may stand in a constructor, a thread or a forked child; prints failures only.
//
//     #include "test/lib/test.h"
//     MI_TEST(addition) { MI_CHECK_EQ(1 + 1, 2); }
//     MI_TEST_MAIN()
//
// `program` runs all tests in the order they are written, `program NAME...` those named, `program --list` names them.
// The program returns 0 when every check held, 1 when one failed, and 77 when nothing failed but a test called MI_TEST_SKIP.
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MI_TEST_UNUSED __attribute__((unused))

enum { MI_TEST_SKIPPED = 77,
       MI_TEST_MAX_SHOWN = 20 };

typedef struct mi_test_s {
  const char* name;
  void (*run)(void);
  struct mi_test_s* next;
} mi_test_t;

// Counters are atomic because checks stand in threads as well.
static MI_TEST_UNUSED int mi_test_failures;
static MI_TEST_UNUSED int mi_test_skips;
static MI_TEST_UNUSED const char* mi_test_current = "-";
static MI_TEST_UNUSED mi_test_t* mi_test_first;
static MI_TEST_UNUSED mi_test_t** mi_test_last = &mi_test_first;

static MI_TEST_UNUSED void mi_test_write(int fd, const char* text, size_t len) {
  const int saved = errno;
  while (len > 0) {
    const ssize_t n = write(fd, text, len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text += n;
    len -= (size_t)n;
  }
  errno = saved;
}

// One line to stderr. vsnprintf is the only libc formatter that needs no memory for the conversions used here.
__attribute__((format(printf, 1, 2))) static MI_TEST_UNUSED void mi_test_say(const char* fmt, ...) {
  char line[1024];
  const int saved = errno;
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(line, sizeof(line) - 1, fmt, args);
  va_end(args);
  if (n < 0) n = 0;
  if (n > (int)sizeof(line) - 2) n = (int)sizeof(line) - 2;
  line[n] = '\n';
  mi_test_write(2, line, (size_t)n + 1);
  errno = saved;
}

// Counts a failure; false when so many were shown already that this one should stay silent.
static MI_TEST_UNUSED bool mi_test_count_failure(void) {
  const int before = __atomic_fetch_add(&mi_test_failures, 1, __ATOMIC_RELAXED);
  if (before == MI_TEST_MAX_SHOWN) mi_test_say("further failures are counted but not shown");
  return before < MI_TEST_MAX_SHOWN;
}

static MI_TEST_UNUSED int mi_test_failure_count(void) { return __atomic_load_n(&mi_test_failures, __ATOMIC_RELAXED); }

static MI_TEST_UNUSED bool mi_test_check(bool ok, const char* file, int line, const char* what) {
  if (!ok && mi_test_count_failure()) {
    mi_test_say("%s:%d: %s: failed: %s (errno %d)", file, line, mi_test_current, what, errno);
  }
  return ok;
}

static MI_TEST_UNUSED bool mi_test_check_eq(unsigned long long a, unsigned long long b, const char* file, int line, const char* what) {
  if (a != b && mi_test_count_failure()) {
    mi_test_say("%s:%d: %s: failed: %s: %lld (0x%llx) is not %lld (0x%llx)", file, line, mi_test_current, what, (long long)a, a,
                (long long)b, b);
  }
  return a == b;
}

static MI_TEST_UNUSED bool mi_test_check_streq(const char* a, const char* b, const char* file, int line, const char* what) {
  const bool ok = (a == b) || (a != NULL && b != NULL && strcmp(a, b) == 0);
  if (!ok && mi_test_count_failure()) {
    mi_test_say("%s:%d: %s: failed: %s: \"%s\" is not \"%s\"", file, line, mi_test_current, what, a ? a : "(null)", b ? b : "(null)");
  }
  return ok;
}

__attribute__((format(printf, 5, 6))) static MI_TEST_UNUSED bool mi_test_check_msg(bool ok, const char* file, int line, const char* what,
                                                                                   const char* fmt, ...) {
  if (!ok && mi_test_count_failure()) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    mi_test_say("%s:%d: %s: failed: %s: %s (errno %d)", file, line, mi_test_current, what, text, errno);
  }
  return ok;
}

// Each check is an expression of type bool, so a test can stop: `if (!MI_CHECK(p != NULL)) return;`
#define MI_CHECK(cond) mi_test_check(!!(cond), __FILE__, __LINE__, #cond)
#define MI_CHECK_EQ(a, b) mi_test_check_eq((unsigned long long)(a), (unsigned long long)(b), __FILE__, __LINE__, #a " == " #b)
#define MI_CHECK_PTR_EQ(a, b) mi_test_check_eq((uintptr_t)(a), (uintptr_t)(b), __FILE__, __LINE__, #a " == " #b)
#define MI_CHECK_STREQ(a, b) mi_test_check_streq((a), (b), __FILE__, __LINE__, #a " equals " #b)

// The same with a sentence of the test's own, printf-like, behind the condition.
#define MI_CHECK_MSG(cond, ...) mi_test_check_msg(!!(cond), __FILE__, __LINE__, #cond, __VA_ARGS__)

// A check that nothing makes sense after: ends the process with 1.
#define MI_REQUIRE(cond)           \
  do {                             \
    if (!MI_CHECK(cond)) _exit(1); \
  } while (0)

// What the machine cannot do is said, never passed over: one line, and the exit status 77 when all else passed.
#define MI_TEST_SKIP(...) mi_test_skip(__VA_ARGS__)

__attribute__((format(printf, 1, 2))) static MI_TEST_UNUSED void mi_test_skip(const char* fmt, ...) {
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  __atomic_fetch_add(&mi_test_skips, 1, __ATOMIC_RELAXED);
  mi_test_say("%s: skipped: %s", mi_test_current, text);
}

// Defines a test and enters it in the table before main, in the order of the file.
#define MI_TEST(id)                                                   \
  static void mi_test_run_##id(void);                                 \
  __attribute__((constructor)) static void mi_test_enter_##id(void) { \
    static mi_test_t test = {#id, &mi_test_run_##id, NULL};           \
    *mi_test_last = &test;                                            \
    mi_test_last = &test.next;                                        \
  }                                                                   \
  static void mi_test_run_##id(void)

static MI_TEST_UNUSED int mi_test_status(void) {
  if (mi_test_failure_count() > 0) return 1;
  return __atomic_load_n(&mi_test_skips, __ATOMIC_RELAXED) > 0 ? (int)MI_TEST_SKIPPED : 0;
}

static MI_TEST_UNUSED int mi_test_main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--list") == 0) {
    for (const mi_test_t* t = mi_test_first; t != NULL; t = t->next) {
      mi_test_write(1, t->name, strlen(t->name));
      mi_test_write(1, "\n", 1);
    }
    return 0;
  }
  int ran = 0;
  for (const mi_test_t* t = mi_test_first; t != NULL; t = t->next) {
    bool wanted = (argc <= 1);
    for (int i = 1; i < argc && !wanted; i++) wanted = (strcmp(argv[i], t->name) == 0);
    if (!wanted) continue;
    mi_test_current = t->name;
    t->run();
    ran++;
  }
  if (ran == 0) {
    // A misspelt name must not look like success.
    mi_test_say("no test of that name");
    return 2;
  }
  const int failures = mi_test_failure_count();
  if (failures > 0) mi_test_say("%d check%s failed", failures, failures == 1 ? "" : "s");
  return mi_test_status();
}

#define MI_TEST_MAIN() \
  int main(int argc, char** argv) { return mi_test_main(argc, argv); }

// Small deterministic generator, one a thread, so that a run can be repeated.
static MI_TEST_UNUSED uint64_t mi_test_random(uint64_t* state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

// A positive number from the environment that makes a test longer, or what the test does by default.
static MI_TEST_UNUSED long mi_test_scale(const char* name, long otherwise) {
  const char* text = getenv(name);
  const long n = (text == NULL) ? 0 : strtol(text, NULL, 10);
  return n > 0 ? n : otherwise;
}

// Hides where a pointer comes from, so that the compiler neither drops an allocation nor warns of a deliberate misuse.
static MI_TEST_UNUSED void* mi_test_hide(const volatile void* p) {
  uintptr_t u = (uintptr_t)p;
  __asm__ volatile(""
                   : "+r"(u)
                   :
                   : "memory");
  return (void*)u;
}

static MI_TEST_UNUSED size_t mi_test_hide_size(size_t n) {
  __asm__ volatile(""
                   : "+r"(n));
  return n;
}

// Fills a block with a pattern of its address' own and checks it: overlapping blocks spoil each other's.
static MI_TEST_UNUSED void mi_test_fill(void* p, size_t n, uint64_t key) {
  unsigned char* b = (unsigned char*)p;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const uint64_t v = key ^ (i * UINT64_C(0x9e3779b97f4a7c15));
    memcpy(b + i, &v, 8);
  }
  for (; i < n; i++) b[i] = (unsigned char)(key + i);
}

static MI_TEST_UNUSED bool mi_test_filled(const void* p, size_t n, uint64_t key) {
  const unsigned char* b = (const unsigned char*)p;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const uint64_t v = key ^ (i * UINT64_C(0x9e3779b97f4a7c15));
    if (memcmp(b + i, &v, 8) != 0) return false;
  }
  for (; i < n; i++) {
    if (b[i] != (unsigned char)(key + i)) return false;
  }
  return true;
}

static MI_TEST_UNUSED bool mi_test_all_bytes(const void* p, size_t n, int value) {
  const unsigned char* b = (const unsigned char*)p;
  return n == 0 || (b[0] == (unsigned char)value && memcmp(b, b + 1, n - 1) == 0);
}
