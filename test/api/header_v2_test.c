// Owns: MI_API_V2 as C, compiled for each standard with all warnings as errors.
// May include: test/lib, the public headers.
// Called by: the tests header_v2_c11 and header_v2_c17.
// Invariants: none beyond header_calls_v2.h.
#define _POSIX_C_SOURCE 200809L
#define MI_API_V2 1
#include "test/api/header_calls.h"
#include "test/api/header_calls_layout.h"
#include "test/api/header_calls_v2.h"

MI_TEST_MAIN()
