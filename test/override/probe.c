// Owns: the witness of the real-programs test: a library preloaded in front of the allocator under test.
// May include: nothing of ours; it is built with the system's compiler alone.
// Called by: the loader, once in every process that a row starts.
// Invariants: never allocates and changes nothing; each process appends one line `<invoked name> <file> <object whose malloc it uses>`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static size_t append(char* line, size_t used, size_t size, const char* text, char end) {
  const char* slash = strrchr(text, '/');
  if (slash != NULL) text = slash + 1;
  for (; *text != 0 && used + 1 < size; text++) line[used++] = *text == ' ' ? '_' : *text;
  line[used++] = end;
  return used;
}

// The address of a function may be a stub in a position-dependent program; such a stub is an undefined symbol with a value, and
// says nothing about who serves the call. Our place before every other library makes the next definition the one in use.
static const char* malloc_object(void) {
  Dl_info info;
  const ElfW(Sym)* symbol = NULL;
  void* address = (void*)&malloc;
  if (dladdr1(address, &info, (void**)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL && symbol->st_shndx != SHN_UNDEF) {
    return info.dli_fname;
  }
  address = dlsym(RTLD_NEXT, "malloc");
  if (address != NULL && dladdr(address, &info) != 0) return info.dli_fname;
  return "unknown";
}

__attribute__((constructor)) static void probe(void) {
  const char* log = getenv("PROGRAMS_PROBE_LOG");
  if (log == NULL) return;
  const int fd = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  char file[512];
  const ssize_t length = readlink("/proc/self/exe", file, sizeof(file) - 1);
  file[length > 0 ? length : 0] = 0;
  const char* invoked = (const char*)getauxval(AT_EXECFN);
  char line[1024];
  size_t used = append(line, 0, 300, invoked != NULL ? invoked : "-", ' ');
  used = append(line, used, 600, file[0] != 0 ? file : "-", ' ');
  used = append(line, used, sizeof(line) - 1, malloc_object(), '\n');
  if (write(fd, line, used) < 0) { /* a process without a witness fails the row, which is the report */
  }
  close(fd);
}
