// Owns: what stands around each call of the interface.
// May include: fuzz/lib, mimalloc.h.
// Called by: through call.h.
// Invariants: as call.h says.
#include "fuzz/lib/call.h"

#include <errno.h>

mi_heap_t* mi_fuzz_heap(uint8_t index) { return mi_fuzz_model.heaps[index].heap; }

mi_theap_t* mi_fuzz_theap(uint8_t index) {
  mi_theap_t* const theap = mi_heap_theap(mi_fuzz_heap(index));
  // A thread that is done with the allocator has none; NULL stands for what it is served from then.
  MI_FUZZ_CHECK(theap != NULL || mi_fuzz_model.late[mi_fuzz_model.actor], "theap: there is none for heap %u", index);
  return theap;
}

void mi_fuzz_begin(const char* name, size_t size) {
  mi_fuzz_model.doing = name;
  mi_fuzz_expect_error(size >= MI_FUZZ_TOO_LARGE || mi_fuzz_may_fail() ? ENOMEM : 0);
  errno = MI_FUZZ_ERRNO;
}

void mi_fuzz_end(const void* p) {
  const int err = errno;
  mi_fuzz_expect_error(0);
  MI_FUZZ_CHECK(p == NULL ? err == ENOMEM : err == MI_FUZZ_ERRNO, "%s: errno: %d after %p", mi_fuzz_model.doing, err, p);
}

size_t mi_fuzz_align(uint8_t more) {
  const unsigned log2 = more & 31;
  return (size_t)1 << (log2 < 27 ? log2 : log2 - 22);
}

size_t mi_fuzz_offset(const mi_fuzz_op_t* op) { return (op->n >> 9) % 400 * ((op->more & 0x80) != 0 ? 8 : 1); }

void mi_fuzz_expect_stays(const mi_fuzz_block_t* block, const void* p, mi_fuzz_expect_t* expect) {
  if (p == block->p) {
    expect->align = block->align;
    expect->offset = block->offset;
  }
}

bool mi_fuzz_is_servable(size_t size) { return size < MI_FUZZ_TOO_LARGE && !mi_fuzz_may_fail(); }
