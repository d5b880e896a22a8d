// Owns: the functions of sub-processes.
// May include: heap, mimalloc.h.
// Called by: programs.
// Invariants: an id holds the number of a sub-process, no address, so that a stale one is found out.
#include "mimalloc.h"

#include <errno.h>

#include "src/heap/subproc.h"

static mi_subproc_id_t mi_subproc_of(uintptr_t number) { return (mi_subproc_id_t){(void*)number}; }

static uintptr_t mi_subproc_number(mi_subproc_id_t subproc) { return (uintptr_t)subproc._mi_subproc_id; }

mi_subproc_id_t mi_subproc_main(void) { return mi_subproc_of(_mi_subproc_id(_mi_heap_main())); }

mi_subproc_id_t mi_subproc_current(void) { return mi_subproc_of(_mi_subproc_id(_mi_subproc_current())); }

mi_subproc_id_t mi_subproc_new(void) {
  const uintptr_t number = _mi_subproc_new();
  if (mi_unlikely(number == 0)) {
    errno = ENOMEM;
  }
  return mi_subproc_of(number);
}

void mi_subproc_delete(mi_subproc_id_t subproc) { _mi_subproc_end(mi_subproc_number(subproc), false); }

void mi_subproc_destroy(mi_subproc_id_t subproc) { _mi_subproc_end(mi_subproc_number(subproc), true); }

void mi_subproc_add_current_thread(mi_subproc_id_t subproc) { _mi_subproc_add_current_thread(mi_subproc_number(subproc)); }

bool mi_subproc_visit_heaps(mi_subproc_id_t subproc, mi_heap_visit_fun* visitor, void* arg) {
  return _mi_subproc_visit_heaps(mi_subproc_number(subproc), visitor, arg);
}
