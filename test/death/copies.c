// Owns: one call of the C library's copying functions a run, inside or outside the bounds of a block.
// May include: test/lib, the C library.
// Called by: rows of test/death/copies.txt: copies CALL WHERE SIZE.
// Invariants: prints `pointer 0x...` of the address that the call is given before it makes the call; the other side of a copy is static memory.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#undef _FORTIFY_SOURCE  // the names as they are written
#include <malloc.h>
#include <strings.h>
#include <wchar.h>

#include "test/lib/test.h"

extern void* __memcpy_chk(void* to, const void* from, size_t n, size_t known);
extern void* __memmove_chk(void* to, const void* from, size_t n, size_t known);
extern void* __mempcpy_chk(void* to, const void* from, size_t n, size_t known);
extern void* __memset_chk(void* to, int c, size_t n, size_t known);
extern void __explicit_bzero_chk(void* to, size_t n, size_t known);
extern char* __strcpy_chk(char* to, const char* from, size_t known);
extern char* __stpcpy_chk(char* to, const char* from, size_t known);
extern char* __strcat_chk(char* to, const char* from, size_t known);
extern char* __strncpy_chk(char* to, const char* from, size_t n, size_t known);
extern char* __stpncpy_chk(char* to, const char* from, size_t n, size_t known);
extern char* __strncat_chk(char* to, const char* from, size_t n, size_t known);
extern wchar_t* __wmemcpy_chk(wchar_t* to, const wchar_t* from, size_t n, size_t known);
extern wchar_t* __wmemmove_chk(wchar_t* to, const wchar_t* from, size_t n, size_t known);
extern wchar_t* __wmempcpy_chk(wchar_t* to, const wchar_t* from, size_t n, size_t known);
extern wchar_t* __wmemset_chk(wchar_t* to, wchar_t c, size_t n, size_t known);

enum { FAR = 200000,
       ROOM = 4 << 20 };

static char other[ROOM];  // the side that is not in question
static size_t known = SIZE_MAX;

// Touches exactly n bytes at p, a multiple of the size of wide characters for these: a copy to p, or from p if `reads`.
// What is copied holds no zero but at its end.
static bool call(const char* name, char* p, size_t n, bool reads) {
  char* const to = reads ? other : p;
  const char* const from = reads ? p : other;
  const size_t w = n / sizeof(wchar_t);
  wchar_t* const wto = (wchar_t*)(void*)to;
  const wchar_t* const wfrom = (const wchar_t*)(const void*)from;
  const size_t wknown = known == SIZE_MAX ? SIZE_MAX : known / sizeof(wchar_t);
  void* result = NULL;
  void* expected = to;
#define CALL(function, arguments, returned) \
  if (strcmp(name, #function) == 0) {       \
    result = function arguments;            \
    expected = returned;                    \
  } else
  CALL(memcpy, (to, from, n), to)
  CALL(memmove, (to, from, n), to)
  CALL(mempcpy, (to, from, n), to + n)
  CALL(memccpy, (to, from, 1, n), NULL)
  CALL(memset, (to, 7, n), to)
  CALL(strcpy, (to, from), to)
  CALL(stpcpy, (to, from), to + n - 1)
  CALL(strcat, (to, from), to)
  CALL(strncpy, (to, from, n), to)
  CALL(stpncpy, (to, from, n), to + n - 1)
  CALL(strncat, (to, from, n), to)
  CALL(wmemcpy, (wto, wfrom, w), to)
  CALL(wmemmove, (wto, wfrom, w), to)
  CALL(wmempcpy, (wto, wfrom, w), to + n)
  CALL(wmemset, (wto, 7, w), to)
  CALL(__memcpy_chk, (to, from, n, known), to)
  CALL(__memmove_chk, (to, from, n, known), to)
  CALL(__mempcpy_chk, (to, from, n, known), to + n)
  CALL(__memset_chk, (to, 7, n, known), to)
  CALL(__strcpy_chk, (to, from, known), to)
  CALL(__stpcpy_chk, (to, from, known), to + n - 1)
  CALL(__strcat_chk, (to, from, known), to)
  CALL(__strncpy_chk, (to, from, n, known), to)
  CALL(__stpncpy_chk, (to, from, n, known), to + n - 1)
  CALL(__strncat_chk, (to, from, n, known), to)
  CALL(__wmemcpy_chk, (wto, wfrom, w, wknown), to)
  CALL(__wmemmove_chk, (wto, wfrom, w, wknown), to)
  CALL(__wmempcpy_chk, (wto, wfrom, w, wknown), to + n)
  CALL(__wmemset_chk, (wto, 7, w, wknown), to)
  if (strcmp(name, "bcopy") == 0) {
    bcopy(from, to, n);
    return true;
  } else if (strcmp(name, "bzero") == 0) {
    bzero(to, n);
    return true;
  } else if (strcmp(name, "explicit_bzero") == 0) {
    explicit_bzero(to, n);
    return true;
  } else if (strcmp(name, "__explicit_bzero_chk") == 0) {
    __explicit_bzero_chk(to, n, known);
    return true;
  } else {
    mi_test_say("no call %s", name);
    _exit(2);
  }
  return MI_CHECK_MSG(result == expected, "%s of %zu returned %p, not %p", name, n, result, expected);
}

// Strings are read as long as there is no zero, and written with one.
static void prepare(char* p, size_t n, bool reads, bool freed) {
  memset(other, reads ? 0 : 'x', ROOM - 1);
  if (!reads) {
    other[n - 1] = 0;
    if (!freed) p[0] = 0;
  }
}

// A call from the place of the arguments on that touches `n` bytes. The block is `room` bytes, filled without a zero.
static void one(const char* name, const char* side, const char* where, size_t size) {
  const bool reads = strcmp(side, "read") == 0;
  const bool wide = strstr(name, "wmem") != NULL;
  const bool bounded = strstr(name, "str") == NULL && strstr(name, "stp") == NULL;
  const size_t step = wide ? sizeof(wchar_t) : 1;
  // Neighbours, so that what is behind the block is mapped and not free.
  char* const before = (char*)malloc(size);
  char* const p = (char*)malloc(size);
  char* const behind = (char*)malloc(size);
  MI_REQUIRE(before != NULL && p != NULL && behind != NULL);
  const size_t room = malloc_usable_size(p);
  memset(p, 'y', room);
  memset(behind, 'y', size);
  size_t n = room;
  char* at = p;
  if (strcmp(where, "by-one") == 0) {
    n = room + step;
  } else if (strcmp(where, "far") == 0) {
    n = room + FAR;
  } else if (strcmp(where, "inside-by-one") == 0) {
    at = p + room / 2 / step * step;
    n = (size_t)(p + room - at) + step;
  } else if (strcmp(where, "last-by-one") == 0) {
    at = p + room - step;
    n = 2 * step;
  } else if (strcmp(where, "huge") == 0) {
    n = SIZE_MAX - 16;
  } else if (strcmp(where, "inside") == 0) {
    at = p + room / 2 / step * step;
    n = (size_t)(p + room - at) / step * step;
  } else if (strcmp(where, "exact") != 0 && strcmp(where, "freed") != 0 && strcmp(where, "freed-inside") != 0 && strcmp(where, "none") != 0) {
    mi_test_say("no place %s", where);
    _exit(2);
  }
  if (strcmp(where, "exact") == 0 && reads && !bounded) {
    p[room - 1] = 0;
  }
  const bool freed = strncmp(where, "freed", 5) == 0;
  if (strcmp(where, "freed-inside") == 0) {
    at = p + room / 2 / 16 * 16;
    n = 16;
  }
  if (strcmp(where, "none") == 0) {
    n = 0;
    prepare(p, 1, reads, true);
  } else {
    prepare(at, n < ROOM ? n : ROOM, reads, freed);
  }
  if (freed || strcmp(where, "none") == 0) {
    free(p);
  }
  char line[64];
  const int length = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)at);
  mi_test_write(1, line, (size_t)length);
  (void)call(name, (char*)mi_test_hide(at), n, reads);
  mi_test_write(1, "went on\n", 8);
}

int main(int argc, char** argv) {
  if (argc < 5) {
    mi_test_say("usage: copies CALL read|write WHERE SIZE [KNOWN]");
    return 2;
  }
  mi_test_current = argv[1];
  if (argc > 5) known = (size_t)strtoull(argv[5], NULL, 10);
  one(argv[1], argv[2], argv[3], (size_t)strtoull(argv[4], NULL, 10));
  return mi_test_status();
}
