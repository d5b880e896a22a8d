// Owns: names that a program looks up in whatever library is preloaded, instead of declaring and linking them.
// May include: test/lib, the C library.
// Called by: programs of test/contract.
// Invariants: a list is a macro of a macro, CALLS(X) with X(type, name, (parameters)) for each; _GNU_SOURCE is defined.
#pragma once

#include <dlfcn.h>

#include "test/lib/test.h"

#define MI_TEST_NAME(type, name, params) static type(*name) params;

#define MI_TEST_LOOK_UP(type, name, params)                     \
  name = (type(*) params)(uintptr_t)dlsym(RTLD_DEFAULT, #name); \
  MI_CHECK_MSG(name != NULL, "%s is not exported", #name);
