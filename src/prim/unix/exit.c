// Owns: what is known when the library ends: whether the process ends too, whether others may still call.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: nothing of the library's own is left behind that the C library could call once the library is gone.
#include <errno.h>
#include <link.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>

#include "src/prim/prim.h"

// What the linker wrote for the loader into the object that this copy is part of; a static program has nothing of the kind.
extern mi_hidden ElfW(Dyn) _DYNAMIC[] __attribute__((weak));

mi_cold bool _mi_prim_is_never_unloaded(void) {
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry != NULL && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_FLAGS_1) {
      return (entry->d_un.d_val & DF_1_NODELETE) != 0;
    }
  }
  return false;
}

// In the C++ ABI every C library has it. With no object named, the handler runs at exit and not when one is unloaded.
extern int __cxa_atexit(void (*handler)(void*), void* arg, void* object);

// Posted at exit by the C library. The handler and the memory it writes to must both outlive this library, so one is the C
// library's own sem_post and the other an OS page that is never given back.
static sem_t* mi_exit_seen;

mi_cold void _mi_prim_exit_watch(size_t page_size) {
  const int saved_errno = errno;
  void* page = NULL;
  // The thread sanitizer's own wrapper of such handlers takes one without an object for one of another shape.
  if (!MI_TSAN_BUILD && mi_exit_seen == NULL && !_mi_prim_is_never_unloaded() && _mi_prim_reserve(page_size, true, &page) == 0) {
    sem_t* const seen = page;
    if (sem_init(seen, 0, 0) == 0 && __cxa_atexit((void (*)(void*))(void (*)(void))sem_post, seen, NULL) == 0) {
      mi_exit_seen = seen;
    }
  }
  errno = saved_errno;
}

bool _mi_prim_is_exiting(void) {
  int posts = 0;
  return mi_exit_seen == NULL || sem_getvalue(mi_exit_seen, &posts) != 0 || posts > 0;
}

// glibc 2.32 and later; once there was a second thread it stays false.
extern char __libc_single_threaded __attribute__((weak));

bool _mi_prim_is_single_threaded(void) { return &__libc_single_threaded != NULL && __libc_single_threaded != 0; }

bool _mi_prim_c_library_asks(bool (*is_ours)(const void* p)) {
  const int saved_errno = errno;
  // The name malloc may mean this copy inside its own object. A stream is what the C library allocates for itself.
  char byte = 0;
  FILE* const stream = fmemopen(&byte, sizeof(byte), "r");
  const bool ours = stream == NULL || is_ours(stream);
  if (stream != NULL) {
    (void)fclose(stream);
  }
  errno = saved_errno;
  return ours;
}
