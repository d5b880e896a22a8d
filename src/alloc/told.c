// Owns: the size of a block as events count it.
// May include: base, profile, heap, alloc.
// Called by: through told.h.
// Invariants: see told.h.
#include "src/alloc/told.h"

#include "src/alloc/alloc.h"
#include "src/heap/zero-size.h"

size_t _mi_told_size(const mi_page_t* page, const void* p) {
  if (!MI_HAS_PADDING || _mi_page_is_zero_size(page)) {
    return _mi_page_usable_size(page, p);
  }
  if (_mi_page_is_single(page)) {
    return page->request;
  }
  const uint8_t* const block = page->has_interior ? _mi_page_block_of(page, p) : p;
  const size_t before = (size_t)((const uint8_t*)p - block);
  const size_t asked = _mi_block_size_asked(page, block);
  return asked - _mi_min(asked, before);
}

void _mi_told_allocation(const void* p, size_t request) {
  const mi_page_t* const page = _mi_page_map_find(p);
  if (mi_likely(page != NULL)) {
    _mi_memory_events_tell(MI_MEMORY_ALLOCATE, (int64_t)_mi_told_size(page, p), 1, request);
  }
}
