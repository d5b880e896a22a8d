// Owns: duplicates of strings, paths and environment variables.
// May include: base, heap, alloc, include/mimalloc.h; the C library.
// Called by: programs.
// Invariants: the C library only ever fills buffers of ours here: whose heap it would allocate from depends on whether
// its malloc is replaced.
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "src/api/api.h"

void* _mi_api_duplicate(mi_heap_t* heap, const void* bytes, size_t size) {
  void* const copy = heap == NULL ? _mi_alloc(size) : _mi_api_heap_alloc(heap, size, false);
  if (mi_likely(copy != NULL)) {
    memcpy(copy, bytes, size);
  }
  return copy;
}

static char* mi_duplicate_n(mi_heap_t* heap, const char* s, size_t n) {
  if (s == NULL) {
    return NULL;
  }
  const size_t length = strnlen(s, n);
  char* const copy = heap == NULL ? _mi_alloc(length + 1) : _mi_api_heap_alloc(heap, length + 1, false);
  if (mi_likely(copy != NULL)) {
    memcpy(copy, s, length);
    copy[length] = 0;
  }
  return copy;
}

char* mi_strdup(const char* s) { return s == NULL ? NULL : _mi_api_duplicate(NULL, s, strlen(s) + 1); }
char* mi_strndup(const char* s, size_t n) { return mi_duplicate_n(NULL, s, n); }

char* mi_heap_strdup(mi_heap_t* heap, const char* s) {
  return s == NULL ? NULL : _mi_api_duplicate(heap, s, strlen(s) + 1);
}

char* mi_heap_strndup(mi_heap_t* heap, const char* s, size_t n) { return mi_duplicate_n(heap, s, n); }

char* mi_heap_realpath(mi_heap_t* heap, const char* fname, char* resolved_name) {
  char buffer[PATH_MAX];
  const int saved_errno = errno;
  char* path = realpath(fname, resolved_name != NULL ? resolved_name : buffer);
  if (path == NULL) {
    return NULL;
  }
  // realpath reads links that are none and leaves the errno of that.
  errno = saved_errno;
  return resolved_name != NULL ? resolved_name : _mi_api_duplicate(heap, buffer, strlen(buffer) + 1);
}

char* mi_realpath(const char* fname, char* resolved_name) { return mi_heap_realpath(NULL, fname, resolved_name); }

wchar_t* mi_wcsdup(const wchar_t* s) {
  return s == NULL ? NULL : _mi_api_duplicate(NULL, s, (wcslen(s) + 1) * sizeof(wchar_t));
}

unsigned char* mi_mbsdup(const unsigned char* s) {
  return s == NULL ? NULL : _mi_api_duplicate(NULL, s, strlen((const char*)s) + 1);
}

int mi_dupenv_s(char** buf, size_t* size, const char* name) {
  if (buf == NULL || name == NULL) {
    return EINVAL;
  }
  if (size != NULL) {
    *size = 0;
  }
  *buf = NULL;
  const char* const value = getenv(name);
  if (value == NULL) {
    return 0;
  }
  const int saved_errno = errno;
  const size_t length = strlen(value) + 1;
  *buf = _mi_api_duplicate(NULL, value, length);
  if (*buf == NULL) {
    errno = saved_errno;
    return ENOMEM;
  }
  if (size != NULL) {
    *size = length;
  }
  return 0;
}

// Converts a wide string to a multibyte string of ours, or NULL with *error set.
static char* mi_narrow(const wchar_t* wide, int* error) {
  mbstate_t state = {0};
  const wchar_t* rest = wide;
  const size_t length = wcsrtombs(NULL, &rest, 0, &state);
  if (length == (size_t)-1) {
    *error = EILSEQ;
    return NULL;
  }
  char* const narrow = _mi_alloc(length + 1);
  if (narrow == NULL) {
    *error = ENOMEM;
    return NULL;
  }
  state = (mbstate_t){0};
  wcsrtombs(narrow, &rest, length + 1, &state);
  return narrow;
}

// The reverse; *length counts the zero.
static wchar_t* mi_widen(const char* narrow, size_t* length, int* error) {
  mbstate_t state = {0};
  const char* rest = narrow;
  const size_t count = mbsrtowcs(NULL, &rest, 0, &state);
  if (count == (size_t)-1) {
    *error = EILSEQ;
    return NULL;
  }
  wchar_t* const wide = _mi_alloc((count + 1) * sizeof(wchar_t));
  if (wide == NULL) {
    *error = ENOMEM;
    return NULL;
  }
  state = (mbstate_t){0};
  *length = 1 + mbsrtowcs(wide, &rest, count + 1, &state);
  return wide;
}

int mi_wdupenv_s(wchar_t** buf, size_t* size, const wchar_t* name) {
  if (buf == NULL || name == NULL) {
    return EINVAL;
  }
  *buf = NULL;
  size_t length = 0;
  int error = 0;
  const int saved_errno = errno;
  char* const narrow_name = mi_narrow(name, &error);
  if (narrow_name != NULL) {
    const char* const value = getenv(narrow_name);
    if (value != NULL) {
      *buf = mi_widen(value, &length, &error);
    }
    _mi_free(narrow_name);
  }
  if (size != NULL) {
    *size = length;
  }
  errno = saved_errno;
  return error;
}
