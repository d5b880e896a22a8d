// Owns: the public interface in C and C++: every function, its promise and its errors.
// May include: its parts in mimalloc/, which include nothing but the language's own headers.
// Called by: programs; and by our own units, for the public types.
// Invariants: each function here is exported and defined in every variant; none is declared ahead of its definition.
#ifndef MIMALLOC_H
#define MIMALLOC_H

// MI_MALLOC_VERSION is the version of the interface: major * 10000 + minor * 100 + patch.
#define MI_MALLOC_VERSION 30403

#include "mimalloc/base.h"
#include "mimalloc/alloc.h"
#include "mimalloc/heap.h"
#include "mimalloc/arena.h"
#include "mimalloc/process.h"
#include "mimalloc/option.h"
#include "mimalloc/memory-events.h"
#include "mimalloc/typed.h"
#include "mimalloc/profile.h"
#include "mimalloc/stl.h"

#endif  // MIMALLOC_H
