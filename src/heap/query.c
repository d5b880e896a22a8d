// Owns: questions about addresses: which heap, which thread, how well used the memory around.
// May include: base, region, heap.
// Called by: api.
// Invariants: any address may be asked about; nothing is read through it.
#include "src/heap/query.h"

mi_heap_t* _mi_heap_of(const void* p) {
  mi_page_t* const page = p == NULL ? NULL : _mi_page_of_any(p);
  return page == NULL ? NULL : mi_atomic_load_relaxed(&page->heap);
}

uintptr_t _mi_thread_of(const void* p) {
  const mi_page_t* const page = p == NULL ? NULL : _mi_page_map_find(p);
  const uintptr_t owner = page == NULL ? 0 : mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS;
  return owner / MI_TID_STEP;
}

bool _mi_page_is_under_utilized(const mi_heap_t* heap, const void* p, size_t percent) {
  const mi_page_t* const page = p == NULL ? NULL : _mi_page_map_find(p);
  // A thread without a theap has the number of no thread, as has a page that is nobody's.
  if (_mi_tls.own_tid == 0 || page == NULL || mi_atomic_load_relaxed(&page->heap) != heap || _mi_page_is_single(page) ||
      (mi_atomic_load_relaxed(&page->owner) & ~(uintptr_t)MI_OWNER_FLAGS) != _mi_tls.own_tid) {
    return false;
  }
  // A copy of the block would come from the page that is allocated from now, so there is nothing to be gained for that one.
  return page->theap->queues[page->bin].first != page && _mi_page_in_use(page) * (size_t)100 < page->reserved * percent;
}
