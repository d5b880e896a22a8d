// Owns: a fault that the analyzer of clang must find.
// May include: the C library.
// Called by: static_test.py, which never runs it.
// Invariants: stays wrong.
// Must be found: core.NullDereference
#include <stddef.h>

int mi_sample(const int* p);

int mi_sample(const int* p) {
  if (p == NULL) {
    return *p;
  }
  return 0;
}
