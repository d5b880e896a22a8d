// Owns: what the files of prim/linux share: small files of the kernel, and what mem.c must know of the configuration.
// May include: prim.h.
// Called by: prim/linux.
// Invariants: no allocation; a missing file is an ordinary answer.
#pragma once

#include "src/prim/prim.h"

// Reads the start of a file, at most size - 1 bytes, and puts a zero behind. The length, 0 where it cannot be read.
size_t _mi_prim_linux_read(const char* path, char* buf, size_t size);

// How many nodes of memory the machine has: the highest number and one.
size_t _mi_prim_linux_numa_nodes(void);

// Tells mem.c whether committed memory is charged when it is touched.
void _mi_prim_linux_set_overcommit(bool has_overcommit);
