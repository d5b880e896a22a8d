// Owns: one switch a kind of call, over the functions of the interface.
// May include: fuzz/lib, mimalloc.h.
// Called by: through calls.h.
// Invariants: as calls.h says; errno survives what succeeds and is ENOMEM where memory was refused.
#include "fuzz/lib/calls.h"

#include <errno.h>

#include "fuzz/lib/call.h"

void mi_fuzz_call_alloc(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  size_t size = mi_fuzz_size(op->form, op->n);
  if (!mi_fuzz_fits(size)) {
    return;
  }
  const uint8_t index = mi_fuzz_pick_heap(op->more >> 3);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const size_t count = 1 + op->more % 7;
  const size_t each = size / count;
  const bool small = size <= MI_SMALL_SIZE_MAX;
  const bool servable = mi_fuzz_is_servable(size);
  mi_fuzz_expect_t expect = {.size = size, .align = 16, .heap = MI_FUZZ_NO_HEAP};
  void* p = NULL;
  size_t told = 0;
  switch (op->form >> 4) {
    case 1:
      CALL(mi_zalloc(size));
      expect.zero = true;
      break;
    case 2:
      expect.size = size = each * count;
      expect.zero = true;
      CALL(mi_calloc(count, each));
      break;
    case 3:
      expect.size = size = each * count;
      CALL(mi_mallocn(count, each));
      break;
    case 4: CALL(mi_umalloc(size, &told)); break;
    case 5:
      expect.size = size = each * count;
      expect.zero = true;
      CALL(mi_ucalloc(count, each, &told));
      break;
    case 6:
      expect.zero = (op->more & 1) != 0;
      if (!small) {
        CALL(expect.zero ? mi_zallocn(1, size) : mi_malloc(size));
      } else if ((op->more & 2) != 0) {
        CALL(expect.zero ? mi_uzalloc_small(size, &told) : mi_umalloc_small(size, &told));
      } else {
        CALL(expect.zero ? mi_zalloc_small(size) : mi_malloc_small(size));
      }
      break;
    case 7: CALL(mi_new_nothrow(size)); break;
    case 8: HEAP_CALL(mi_heap_malloc(heap, size)); break;
    case 9:
      expect.zero = true;
      HEAP_CALL(mi_heap_zalloc(heap, size));
      break;
    case 10:
      expect.size = size = each * count;
      expect.zero = true;
      HEAP_CALL(mi_heap_calloc(heap, count, each));
      break;
    case 11:
      expect.zero = (op->more & 1) != 0;
      if (!small) {
        HEAP_CALL(mi_heap_mallocn(heap, 1, size));
        expect.zero = false;
      } else {
        HEAP_CALL(expect.zero ? mi_heap_zalloc_small(heap, size) : mi_heap_malloc_small(heap, size));
      }
      break;
    case 12: HEAP_CALL(mi_theap_malloc(mi_fuzz_theap(index), size)); break;
    case 13:
      expect.zero = true;
      HEAP_CALL(mi_theap_zalloc(mi_fuzz_theap(index), size));
      break;
    case 14: HEAP_CALL(servable ? mi_heap_alloc_new(heap, size) : mi_heap_malloc(heap, size)); break;
    case 15: HEAP_CALL(mi_theap_alloc_new_nothrow(mi_fuzz_theap(index), size)); break;
    default: CALL(mi_malloc(size)); break;
  }
  mi_fuzz_block_made(block, p, &expect);
  MI_FUZZ_CHECK(told == 0 || told == block->usable, "%s: size: %zu bytes were told, %zu can be used", mi_fuzz_model.doing, told,
                block->usable);
}

void mi_fuzz_call_aligned(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  size_t size = mi_fuzz_size(op->form, op->n);
  size_t align = mi_fuzz_align(op->more);
  size_t offset = mi_fuzz_offset(op);
  // What may be needed on the way.
  if (!mi_fuzz_fits(size) || !mi_fuzz_fits(align)) {
    return;
  }
  const uint8_t index = mi_fuzz_pick_heap(op->n >> 28);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const size_t count = 1 + op->more % 3;
  const size_t each = size / count;
  mi_fuzz_expect_t expect = {.size = size, .heap = MI_FUZZ_NO_HEAP};
  const unsigned form = op->form >> 4;
  // Those that take no offset.
  if (!(form >= 3 && form <= 5) && form != 13) {
    offset = 0;
  }
  void* p = NULL;
  size_t told = 0;
  switch (form) {
    case 1:
      expect.zero = true;
      CALL(mi_zalloc_aligned(size, align));
      break;
    case 2:
      expect.size = size = each * count;
      expect.zero = true;
      CALL(mi_calloc_aligned(count, each, align));
      break;
    case 3: CALL(mi_malloc_aligned_at(size, align, offset)); break;
    case 4:
      expect.zero = true;
      CALL(mi_zalloc_aligned_at(size, align, offset));
      break;
    case 5:
      expect.size = size = each * count;
      expect.zero = true;
      CALL(mi_calloc_aligned_at(count, each, align, offset));
      break;
    case 6: {
      align = align < sizeof(void*) ? sizeof(void*) : align;
      mi_fuzz_begin("mi_posix_memalign", size);
      const int err = mi_posix_memalign(&p, align, size);
      mi_fuzz_expect_error(0);
      MI_FUZZ_CHECK(errno == MI_FUZZ_ERRNO && (err == 0 ? p != NULL : p == NULL && err == ENOMEM), "mi_posix_memalign: error %d", err);
      break;
    }
    case 7: CALL(mi_memalign(align, size)); break;
    case 8: CALL(mi_aligned_alloc(align, size)); break;
    case 9:
      align = 4096;
      CALL(mi_valloc(size));
      break;
    case 10:
      align = 4096;
      if (size == 0 || size >= MI_FUZZ_TOO_LARGE) {
        CALL(mi_valloc(size));
      } else {
        // It is asked for whole pages.
        CALL(mi_pvalloc(size));
        expect.size = size = (size + 4095) / 4096 * 4096;
      }
      break;
    case 11:
      expect.zero = (op->more & 0x40) != 0;
      CALL(expect.zero ? mi_uzalloc_aligned(size, align, &told) : mi_umalloc_aligned(size, align, &told));
      break;
    case 12: HEAP_CALL(mi_heap_malloc_aligned(heap, size, align)); break;
    case 13:
      expect.zero = true;
      HEAP_CALL(mi_heap_zalloc_aligned_at(heap, size, align, offset));
      break;
    case 14: HEAP_CALL(mi_theap_malloc_aligned(mi_fuzz_theap(index), size, align)); break;
    case 15: CALL(mi_new_aligned_nothrow(size, align)); break;
    default: CALL(mi_malloc_aligned(size, align)); break;
  }
  // No less than any block where the offset leaves that open.
  expect.align = offset % align == 0 && align < 16 ? 16 : align;
  expect.offset = offset % align == 0 ? 0 : offset;
  mi_fuzz_block_made(block, p, &expect);
  MI_FUZZ_CHECK(told == 0 || told == block->usable, "%s: size: %zu bytes were told, %zu can be used", mi_fuzz_model.doing, told,
                block->usable);
}

void mi_fuzz_call_realloc(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  size_t size = mi_fuzz_size(op->form, op->n);
  size_t align = mi_fuzz_align(op->more & 15);
  size_t offset = mi_fuzz_offset(op);
  if (!mi_fuzz_fits(size) || !mi_fuzz_fits(align)) {
    return;
  }
  const uint8_t index = mi_fuzz_pick_heap(op->n >> 28);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const size_t count = 1 + op->more % 3;
  const size_t each = size / count;
  mi_fuzz_expect_t expect = {.size = size, .align = 16, .heap = MI_FUZZ_NO_HEAP};
  const bool servable = mi_fuzz_is_servable(size);
  void* const old = block->p;
  mi_fuzz_block_check(block);
  void* p = NULL;
  size_t pre = block->usable;
  size_t post = 0;
  bool aligned = false;
  switch (op->form >> 4) {
    case 1:
      expect.size = size = each * count;
      CALL(mi_reallocn(old, count, each));
      break;
    case 2:
      if (servable) {
        CALL(mi_reallocf(old, size));
      } else {
        CALL(mi_realloc(old, size));
      }
      break;
    case 3:
      expect.size = size = each * count;
      CALL(mi_reallocarray(old, count, each));
      break;
    case 4: CALL(mi_urealloc(old, size, &pre, &post)); break;
    case 5: HEAP_CALL(mi_heap_realloc(heap, old, size)); break;
    case 6:
      expect.size = size = each * count;
      HEAP_CALL(mi_heap_reallocn(heap, old, count, each));
      break;
    case 7: HEAP_CALL(mi_theap_realloc(mi_fuzz_theap(index), old, size)); break;
    case 8:
      offset = 0;
      aligned = true;
      CALL(mi_realloc_aligned(old, size, align));
      break;
    case 9:
      aligned = true;
      CALL(mi_realloc_aligned_at(old, size, align, offset));
      break;
    case 10:
      offset = 0;
      aligned = true;
      HEAP_CALL(mi_heap_realloc_aligned(heap, old, size, align));
      break;
    case 11:
      aligned = true;
      HEAP_CALL(mi_heap_realloc_aligned_at(heap, old, size, align, offset));
      break;
    case 12: {
      if (size == 0) {
        return;
      }
      mi_fuzz_begin("mi_reallocarr", size);
      p = old;
      const int err = mi_reallocarr(&p, 1, size);
      mi_fuzz_expect_error(0);
      MI_FUZZ_CHECK(errno == MI_FUZZ_ERRNO && (err == 0 ? p != NULL : p == old && (err == ENOMEM || err == EOVERFLOW)),
                    "mi_reallocarr: error %d", err);
      p = err == 0 ? p : NULL;
      break;
    }
    case 13: CALL(servable ? mi_new_realloc(old, size) : mi_realloc(old, size)); break;
    case 14:
      if (servable) {
        HEAP_CALL(mi_heap_reallocf(heap, old, size));
      } else {
        HEAP_CALL(mi_heap_realloc(heap, old, size));
      }
      break;
    case 15:
      expect.size = size = each * count;
      CALL(servable ? mi_new_reallocn(old, count, each) : mi_reallocn(old, count, each));
      break;
    default: CALL(mi_realloc(old, size)); break;
  }
  if (aligned) {
    expect.align = align;
    expect.offset = offset % align == 0 ? 0 : offset;
  } else {
    mi_fuzz_expect_stays(block, p, &expect);
  }
  MI_FUZZ_CHECK(pre == block->usable, "%s: size: %zu bytes could be used before, %zu are told", mi_fuzz_model.doing, block->usable, pre);
  mi_fuzz_block_resized(block, p, &expect);
  MI_FUZZ_CHECK(post == 0 || post == block->usable, "%s: size: %zu bytes were told, %zu can be used", mi_fuzz_model.doing, post,
                block->usable);
}

void mi_fuzz_call_rezalloc(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  size_t size = mi_fuzz_size(op->form, op->n);
  size_t align = mi_fuzz_align(op->more & 15);
  const size_t offset = mi_fuzz_offset(op);
  if (!mi_fuzz_fits(size) || !mi_fuzz_fits(align)) {
    return;
  }
  const uint8_t index = mi_fuzz_pick_heap(op->n >> 28);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const size_t count = 1 + op->more % 3;
  const size_t each = size / count;
  mi_fuzz_expect_t expect = {.size = size, .align = 16, .heap = MI_FUZZ_NO_HEAP, .zero = true};
  void* const old = block->p;
  mi_fuzz_block_check(block);
  void* p = NULL;
  bool aligned = false;
  bool at = false;
  switch (op->form >> 4) {
    case 1:
      expect.size = size = each * count;
      CALL(mi_recalloc(old, count, each));
      break;
    case 2:
      aligned = true;
      CALL(mi_rezalloc_aligned(old, size, align));
      break;
    case 3:
      aligned = at = true;
      CALL(mi_rezalloc_aligned_at(old, size, align, offset));
      break;
    case 4:
      aligned = true;
      expect.size = size = each * count;
      CALL(mi_recalloc_aligned(old, count, each, align));
      break;
    case 5:
      aligned = at = true;
      expect.size = size = each * count;
      CALL(mi_recalloc_aligned_at(old, count, each, align, offset));
      break;
    case 6: HEAP_CALL(mi_heap_rezalloc(heap, old, size)); break;
    case 7:
      expect.size = size = each * count;
      HEAP_CALL(mi_heap_recalloc(heap, old, count, each));
      break;
    case 8:
      aligned = true;
      HEAP_CALL(mi_heap_rezalloc_aligned(heap, old, size, align));
      break;
    case 9:
      aligned = at = true;
      HEAP_CALL(mi_heap_rezalloc_aligned_at(heap, old, size, align, offset));
      break;
    case 10: HEAP_CALL(mi_theap_rezalloc(mi_fuzz_theap(index), old, size)); break;
    case 11:
      aligned = true;
      expect.size = size = each * count;
      CALL(mi_aligned_recalloc(old, count, each, align));
      break;
    case 12:
      aligned = true;
      expect.size = size = each * count;
      HEAP_CALL(mi_heap_recalloc_aligned(heap, old, count, each, align));
      break;
    case 13:
      aligned = at = true;
      expect.size = size = each * count;
      HEAP_CALL(mi_heap_recalloc_aligned_at(heap, old, count, each, align, offset));
      break;
    case 14:
      aligned = at = true;
      expect.size = size = each * count;
      CALL(mi_aligned_offset_recalloc(old, count, each, align, offset));
      break;
    default: CALL(mi_rezalloc(old, size)); break;
  }
  if (aligned) {
    expect.align = align;
    expect.offset = at && offset % align != 0 ? offset : 0;
  } else {
    mi_fuzz_expect_stays(block, p, &expect);
  }
  mi_fuzz_block_resized(block, p, &expect);
}

void mi_fuzz_call_expand(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  const size_t size = op->form % 4 == 0 ? block->usable + op->n % 64 : mi_fuzz_size(op->form >> 4, op->n);
  if (!mi_fuzz_fits(size)) {
    return;
  }
  mi_fuzz_block_check(block);
  mi_fuzz_begin("mi_expand", size);
  void* const p = op->more % 2 == 0 ? mi_expand(block->p, size) : mi__expand(block->p, size);
  mi_fuzz_end(p);
  MI_FUZZ_CHECK(p == NULL || p == block->p, "mi_expand: address: %p has become %p", (void*)block->p, p);
  if (p != NULL) {
    // A block that is asked to be smaller stays as it is.
    const mi_fuzz_expect_t expect = {
        .size = size > block->size ? size : block->size, .align = block->align, .offset = block->offset, .heap = block->heap};
    mi_fuzz_block_resized(block, p, &expect);
  }
}

void mi_fuzz_call_free(mi_fuzz_block_t* block, unsigned form) {
  const mi_fuzz_block_t old = *block;
  void* const p = mi_fuzz_block_take(block);
  size_t told = old.usable;
  mi_fuzz_begin("free", 0);
  switch (form % 8) {
    case 1: MI_FUZZ_CHECK(mi_cfree(p), "mi_cfree: %p is said not to be of the allocator", p); break;
    case 2: mi_ufree(p, &told); break;
    case 3:
      mi_fuzz_model.doing = "mi_free_size";
      mi_free_size(p, old.size);
      break;
    case 4:
      mi_fuzz_model.doing = "mi_free_size of the usable size";
      mi_free_size(p, old.usable);
      break;
    case 5:
      if (old.offset == 0) {
        mi_fuzz_model.doing = "mi_free_aligned";
        mi_free_aligned(p, old.align);
      } else {
        mi_free(p);
      }
      break;
    case 6:
      if (old.offset == 0) {
        mi_fuzz_model.doing = "mi_free_size_aligned";
        mi_free_size_aligned(p, old.size, old.align);
      } else {
        mi_free(p);
      }
      break;
    case 7:
      if (!old.small) {
        mi_free(p);
      } else if (old.maker == mi_fuzz_thread()) {
        mi_fuzz_model.doing = "mi_free_small_local";
        mi_free_small_local(p);
      } else {
        mi_fuzz_model.doing = "mi_free_small";
        mi_free_small(p);
      }
      break;
    default: mi_free(p); break;
  }
  mi_fuzz_end(errno == MI_FUZZ_ERRNO ? p : NULL);
  MI_FUZZ_CHECK(told == old.usable, "mi_ufree: size: %zu bytes are told, %zu could be used", told, old.usable);
}
