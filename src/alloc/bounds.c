// Owns: the report of bytes outside their block.
// May include: base, hardening, prim, sys, region, heap, alloc.
// Called by: through bounds.h.
// Invariants: async-signal-safe, as every report; nothing is read through the address.
#include "src/alloc/bounds.h"

#include "src/alloc/alloc.h"
#include "src/sys/report.h"

bool _mi_bounds_report(mi_page_t* page, const void* p, size_t length, const char* call, bool writes) {
  const mi_extent_t extent = _mi_block_extent(page, p);
  const mi_bounds_t verdict = _mi_hard_bounds_check(extent, (uintptr_t)p, length);
  if (length == 0 || verdict == MI_BOUNDS_INSIDE) {
    return true;
  }
  const size_t thread = _mi_thread_number();
  const char* const verb = writes ? "writes" : "reads";
  const char* const kind = _mi_page_is_single(page) ? "large block" : "block";
  const void* const block = (const void*)extent.start;
  const size_t offset = verdict == MI_BOUNDS_BEFORE ? 0 : (size_t)((uintptr_t)p - extent.start);
  const size_t room = _mi_hard_bounds_room(extent, (uintptr_t)p);
  if (verdict == MI_BOUNDS_BEFORE) {
    _mi_report(MI_VIOLATION_underflow, "pointer %p is %zu bytes before a %s of %zu bytes at %p (page %p, thread %zu), %s %s %zu bytes there",
               p, (size_t)(extent.start - (uintptr_t)p), kind, extent.size, block, (void*)page->start, thread, call, verb, length);
  } else if (verdict == MI_BOUNDS_BEYOND) {
    _mi_report(MI_VIOLATION_overflow, "pointer %p is %zu bytes into a %s of %zu bytes at %p (page %p, thread %zu), %s %s %zu bytes, %zu beyond its end",
               p, offset, kind, extent.size, block, (void*)page->start, thread, call, verb, length, length - room);
  } else if (!_mi_page_is_single(page) && extent.start - (uintptr_t)page->start >= page->reserved * page->block_size) {
    _mi_report(MI_VIOLATION_overflow, "pointer %p is behind the last block of %zu bytes of its page (page %p, thread %zu), %s %s %zu bytes there",
               p, extent.size, (void*)page->start, thread, call, verb, length);
  } else {
    _mi_report(MI_VIOLATION_use_after_free, "pointer %p is %zu bytes into a free %s of %zu bytes at %p (page %p, thread %zu), %s %s %zu bytes there",
               p, offset, kind, extent.size, block, (void*)page->start, thread, call, verb, length);
  }
  return false;
}
