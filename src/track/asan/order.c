// Owns: the run time's leave to be loaded behind the shared library, whose malloc is to be the program's.
// May include: base.
// Called by: AddressSanitizer, as it starts, where the library comes before it.
// Invariants: what the program defines by this name, or ASAN_OPTIONS says, comes before it.
#include "src/base/compiler.h"

mi_exported const char* __asan_default_options(void);

const char* __asan_default_options(void) { return "verify_asan_link_order=0"; }
