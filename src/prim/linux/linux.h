// Owns: what the files of prim/linux share: small files of the kernel, and what mem.c must know of the configuration.
// May include: prim.h.
// Called by: prim/linux.
// Invariants: no allocation; a missing file is an ordinary answer.
#pragma once

#include "src/prim/prim.h"

// Reads the start of a file, at most size - 1 bytes, and puts a zero behind. The length, 0 where it cannot be read.
size_t _mi_prim_linux_read(const char* path, char* buf, size_t size);

// Tells mem.c whether committed memory is charged when it is touched.
void _mi_prim_linux_set_overcommit(bool has_overcommit);

// A line of the kernel's list of the mappings of this process.
typedef struct mi_linux_mapping_s {
  uintptr_t start;
  uintptr_t end;
  uintptr_t offset;  // in the file
  bool is_code;
  char path[MI_PRIM_MODULE_PATH];  // cut at the size; empty where there is no file
} mi_linux_mapping_t;

typedef struct mi_linux_maps_s {
  long fd;
  size_t at;
  size_t length;
  char buffer[512];
} mi_linux_maps_t;

// Opens the list, gives its next line, and closes it. False: it cannot be opened; there is no line left.
bool _mi_prim_linux_maps_open(mi_linux_maps_t* maps);
bool _mi_prim_linux_maps_next(mi_linux_maps_t* maps, mi_linux_mapping_t* mapping);
void _mi_prim_linux_maps_close(mi_linux_maps_t* maps);

// What the tables of a file say of the frame at an instruction. _BY_STACK: it is `size` bytes that end where the stack was before
// the call; else a register of its own leads to it, or it is not known. `table`: the sorted one, PT_GNU_EH_FRAME of the file.
typedef enum mi_linux_frame_e {
  MI_LINUX_FRAME_UNKNOWN,
  MI_LINUX_FRAME_BY_POINTER,
  MI_LINUX_FRAME_BY_STACK,
} mi_linux_frame_t;
mi_linux_frame_t _mi_prim_linux_frame(const void* table, uintptr_t code, size_t* size);
