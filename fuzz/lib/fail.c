// Owns: the end of a run that found something.
// May include: fuzz/lib.
// Called by: through fuzz.h.
// Invariants: as fuzz.h says.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz/lib/fuzz.h"

void mi_fuzz_fail(const char* fmt, ...) {
  char text[600];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  fprintf(stderr, "==%ld==ERROR: fuzz: %s\n", (long)getpid(), text);
  fflush(stderr);
  abort();
}
