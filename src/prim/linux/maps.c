// Owns: the kernel's list of the mappings of this process, and the modules in it.
// May include: prim, base, the C library's headers.
// Called by: prim/linux, and through prim.h.
// Invariants: no allocation, no lock; a list that changes while it is read may be seen partly old and partly new.
#include <fcntl.h>
#include <string.h>

#include "src/prim/linux/linux.h"
#include "src/prim/linux/syscall.h"

bool _mi_prim_linux_maps_open(mi_linux_maps_t* maps) {
  maps->at = 0;
  maps->length = 0;
  maps->fd = mi_syscall6(SYS_openat, AT_FDCWD, mi_syscall_arg("/proc/self/maps"), O_RDONLY | O_CLOEXEC, 0, 0, 0);
  return !mi_syscall_failed(maps->fd);
}

void _mi_prim_linux_maps_close(mi_linux_maps_t* maps) { (void)mi_syscall3(SYS_close, maps->fd, 0, 0); }

// The next piece of the list; 0 at its end.
static size_t mi_maps_read(long fd, char* buf, size_t size) {
  long n;
  do {
    n = mi_syscall3(SYS_read, fd, mi_syscall_arg(buf), (long)size);
  } while (n == -EINTR);
  return n <= 0 ? 0 : (size_t)n;
}

// The next byte; 0 at the end of the list.
static char mi_maps_next(mi_linux_maps_t* maps) {
  if (maps->at == maps->length) {
    maps->at = 0;
    maps->length = mi_maps_read(maps->fd, maps->buffer, sizeof(maps->buffer));
  }
  return maps->length == 0 ? 0 : maps->buffer[maps->at++];
}

static char mi_maps_hex(mi_linux_maps_t* maps, uintptr_t* number) {
  *number = 0;
  for (;;) {
    const char c = mi_maps_next(maps);
    const unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                                                             : 16;
    if (digit == 16) {
      return c;
    }
    *number = *number * 16 + digit;
  }
}

// A line is "start-end rwxp offset device inode      path".
bool _mi_prim_linux_maps_next(mi_linux_maps_t* maps, mi_linux_mapping_t* mapping) {
  if (mi_maps_hex(maps, &mapping->start) != '-' || mi_maps_hex(maps, &mapping->end) != ' ') {
    return false;
  }
  char c;
  mapping->is_code = false;
  do {
    c = mi_maps_next(maps);
    mapping->is_code = mapping->is_code || c == 'x';
  } while (c != ' ' && c != 0);
  c = mi_maps_hex(maps, &mapping->offset);
  size_t length = 0;
  while (c != '\n' && c != 0) {
    if ((c == '/' || length > 0) && length < MI_PRIM_MODULE_PATH - 1) {
      mapping->path[length++] = c;
    }
    c = mi_maps_next(maps);
  }
  mapping->path[length] = 0;
  return true;
}

bool _mi_prim_maps_copy(void (*write)(void* arg, const char* text, size_t length), void* arg) {
  mi_linux_maps_t maps;
  if (!_mi_prim_linux_maps_open(&maps)) {
    return false;
  }
  size_t length;
  bool any = false;
  while ((length = mi_maps_read(maps.fd, maps.buffer, sizeof(maps.buffer))) > 0) {
    write(arg, maps.buffer, length);
    any = true;
  }
  _mi_prim_linux_maps_close(&maps);
  return any;
}

static bool mi_maps_same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

static void mi_maps_note_code(mi_prim_mapped_t* mapped, const mi_linux_mapping_t* mapping) {
  if (mapping->is_code && mapped->code_size == 0) {
    mapped->code = mapping->start;
    mapped->code_size = mapping->end - mapping->start;
    mapped->code_offset = mapping->offset;
  }
}

// The mappings of one file follow each other, that of the file's start first.
bool _mi_prim_modules_visit(bool (*visit)(const mi_prim_mapped_t* mapped, void* arg), void* arg) {
  mi_linux_maps_t maps;
  if (!_mi_prim_linux_maps_open(&maps)) {
    return false;
  }
  mi_linux_mapping_t mapping;
  mi_prim_mapped_t mapped = {.path = ""};
  bool more = true;
  while (more && _mi_prim_linux_maps_next(&maps, &mapping)) {
    if (mapping.path[0] == 0) {
      continue;
    }
    if (!mi_maps_same(mapping.path, mapped.path) || mapping.offset == 0) {
      more = mapped.path[0] == 0 || visit(&mapped, arg);
      mapped = (mi_prim_mapped_t){.base = mapping.start};
      memcpy(mapped.path, mapping.path, sizeof(mapped.path));
    }
    mapped.size = mapping.end - mapped.base;
    mi_maps_note_code(&mapped, &mapping);
  }
  _mi_prim_linux_maps_close(&maps);
  if (more && mapped.path[0] != 0) {
    (void)visit(&mapped, arg);
  }
  return true;
}
