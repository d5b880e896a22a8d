// Owns: a fault that gcc must find.
// May include: the C library.
// Called by: static_test.py, which never runs it.
// Invariants: stays wrong.
// Must be found: -Wanalyzer-null-dereference
#include <stdlib.h>

int mi_sample(int value);

int mi_sample(int value) {
  int* const p = value > 0 ? &value : NULL;
  return *p;
}
