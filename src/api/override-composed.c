// Owns: the C library's names that are made of malloc, realloc and free: duplicates of strings, resizing of arrays.
// May include: base, alloc, mimalloc.h; no header of the C library that declares them.
// Called by: programs.
// Invariants: memory comes from and goes to whatever the process's malloc, realloc and free are, which need not be ours: a
// program that brings its own must be able to free what strdup returns. So they stand in a file of their own, where the
// compiler cannot take ours for them.
#include <errno.h>
#include <string.h>

#include "src/api/api.h"

extern void* malloc(size_t size);
extern void* realloc(void* p, size_t size);
extern void free(void* p);

mi_exported char* strdup(const char* s) {
  const size_t size = strlen(s) + 1;
  char* const copy = malloc(size);
  return copy == NULL ? NULL : memcpy(copy, s, size);
}

mi_exported char* strndup(const char* s, size_t n) {
  const size_t len = strnlen(s, n);
  char* const copy = malloc(len + 1);
  if (copy == NULL) {
    return NULL;
  }
  copy[len] = '\0';
  return memcpy(copy, s, len);
}

// BSD, macOS: frees the old block on failure.
mi_exported void* reallocf(void* p, size_t size) {
  void* const fresh = realloc(p, size);
  if (fresh == NULL) {
    free(p);
  }
  return fresh;
}

// BSD, glibc
mi_exported void* reallocarray(void* p, size_t count, size_t size) {
  return realloc(p, _mi_api_total(count, size));
}
