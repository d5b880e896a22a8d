// Owns: reading the environment.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: the C library's getenv is not called, as programs replace it and it may lock; nothing is read in a process
// with more rights than its starter's.
#include <errno.h>
#include <sys/auxv.h>

#include "src/prim/prim.h"

// Not every libc declares it, and none before its constructors has run promises that it is set.
extern char** environ;

typedef enum mi_env_trust_e { MI_ENV_UNKNOWN,
                              MI_ENV_TRUSTED,
                              MI_ENV_SECURE } mi_env_trust_t;

static mi_cold mi_env_trust_t mi_env_trust(void) {
  const int saved_errno = errno;
  const bool known = getauxval(AT_PAGESZ) != 0;
  const bool secure = getauxval(AT_SECURE) != 0;
  errno = saved_errno;
  if (!known) {
    return MI_ENV_UNKNOWN;
  }
  return secure ? MI_ENV_SECURE : MI_ENV_TRUSTED;
}

static int mi_env_lower(int c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

// The value of an entry of the environment if it has that name, else NULL.
static mi_cold const char* mi_env_value(const char* entry, const char* name) {
  while (*name != 0 && mi_env_lower(*entry) == mi_env_lower(*name)) {
    entry++;
    name++;
  }
  return *name == 0 && *entry == '=' ? entry + 1 : NULL;
}

// Copies up to `end` or the zero; false: it did not fit and was cut.
static mi_cold bool mi_env_copy(char* buf, size_t size, const char* text, char end) {
  size_t i = 0;
  while (text[i] != 0 && text[i] != end && i < size - 1) {
    buf[i] = text[i];
    i++;
  }
  buf[i] = 0;
  return text[i] == 0 || text[i] == end;
}

// 1 when the environment may be read now, else what the functions below return.
static mi_cold int mi_env_ready(void) {
  const mi_env_trust_t trust = mi_env_trust();
  if (trust == MI_ENV_SECURE) {
    return 0;
  }
  return trust == MI_ENV_UNKNOWN || environ == NULL ? -1 : 1;
}

mi_cold int _mi_prim_getenv(const char* name, char* buf, size_t size) {
  buf[0] = 0;
  const int ready = mi_env_ready();
  if (ready != 1) {
    return ready;
  }
  for (char** entry = environ; *entry != NULL; entry++) {
    const char* const value = mi_env_value(*entry, name);
    if (value == NULL) {
      continue;
    }
    return mi_env_copy(buf, size, value, 0) ? 1 : 2;
  }
  return 0;
}

mi_cold int _mi_prim_env_name(size_t index, char* buf, size_t size) {
  buf[0] = 0;
  const int ready = mi_env_ready();
  if (ready != 1) {
    return ready;
  }
  char** entry = environ;
  while (*entry != NULL && index > 0) {
    entry++;
    index--;
  }
  if (*entry == NULL) {
    return 0;
  }
  (void)mi_env_copy(buf, size, *entry, '=');
  return 1;
}

bool _mi_prim_is_secure_exec(void) { return mi_env_trust() != MI_ENV_TRUSTED; }
