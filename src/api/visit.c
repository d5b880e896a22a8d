// Owns: visits of blocks, as programs ask for them.
// May include: base, heap, include/mimalloc.h.
// Called by: programs.
// Invariants: every form is one walk with another choice of pages.
#include "src/api/api.h"
#include "src/heap/subproc.h"
#include "src/heap/visit.h"

static bool mi_api_visit(mi_visit_t visit) { return visit.visitor != NULL && _mi_visit(&visit); }

bool mi_heap_visit_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  return mi_api_visit((mi_visit_t){.heap = heap != NULL ? heap : _mi_subproc_current(),
                                   .tag = -1,
                                   .blocks = visit_blocks,
                                   .visitor = visitor,
                                   .arg = arg});
}

bool mi_heap_visit_abandoned_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  return mi_api_visit((mi_visit_t){.heap = heap != NULL ? heap : _mi_subproc_current(),
                                   .tag = -1,
                                   .abandoned = true,
                                   .blocks = visit_blocks,
                                   .visitor = visitor,
                                   .arg = arg});
}

bool mi_abandoned_visit_blocks(mi_subproc_id_t subproc_id, int heap_tag, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  _mi_heaps_lock();
  const mi_heap_t* const main = _mi_subproc_find((uintptr_t)subproc_id._mi_subproc_id);
  _mi_heaps_unlock();
  return main != NULL &&
      mi_api_visit((mi_visit_t){.main = main,
                                .tag = heap_tag,
                                .abandoned = true,
                                .blocks = visit_blocks,
                                .visitor = visitor,
                                .arg = arg});
}

bool mi_theap_visit_blocks(const mi_theap_t* theap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  const mi_theap_t* const which = theap != NULL ? theap : _mi_theap_default();
  const mi_heap_t* const heap = which == NULL ? NULL : mi_atomic_load_relaxed(&which->heap);
  return heap == NULL ||
      mi_api_visit((mi_visit_t){
          .heap = heap, .tid = which->tid, .tag = -1, .blocks = visit_blocks, .visitor = visitor, .arg = arg});
}
