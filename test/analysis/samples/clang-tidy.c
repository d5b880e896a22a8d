// Owns: a fault that clang-tidy must find.
// May include: the C library.
// Called by: static_test.py, which never runs it.
// Invariants: stays wrong.
// Must be found: bugprone-sizeof-expression
#include <string.h>

typedef struct mi_sample_s {
  long words[8];
} mi_sample_t;

void mi_sample(mi_sample_t* p);

void mi_sample(mi_sample_t* p) { memset(p, 0, sizeof(p)); }
