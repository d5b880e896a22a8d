// Owns: deliberately wrong allocators, the positive control of the real-programs test.
// May include: nothing of ours; it is built with the system's compiler alone, once for each CONTROL_FAULT.
// Called by: selftest.py, as the library to preload.
// Invariants: fault 0 is a correct allocator and every row passes with it; each other fault makes rows fail in its own way.
//   Built with hidden visibility it replaces nothing, as a library that was not linked right.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void __libc_free(void* block);
extern void* __libc_realloc(void* block, size_t size);

enum { FAULT_NONE = 0,
       FAULT_ABORT = 1,
       FAULT_REPORT = 2,
       FAULT_CORRUPT = 3,
       FAULT_HANG = 4 };

static unsigned calls;

void* malloc(size_t size) {
  const unsigned call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (CONTROL_FAULT == FAULT_ABORT && call == 40) abort();
  if (CONTROL_FAULT == FAULT_HANG && call == 40) pause();
  if (CONTROL_FAULT == FAULT_REPORT && call == 40) {
    static const char report[] = "mimalloc: invalid-free: this line is the control's\n";
    if (write(2, report, sizeof(report) - 1) < 0) abort();
  }
  return __libc_malloc(size);
}

void free(void* block) { __libc_free(block); }

// Loses a byte of what it should have kept, as a copy of the wrong length would.
void* realloc(void* block, size_t size) {
  unsigned char* moved = __libc_realloc(block, size);
  if (CONTROL_FAULT == FAULT_CORRUPT && moved != NULL && block != NULL && size > 200) moved[150] = 'X';
  return moved;
}
