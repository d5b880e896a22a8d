// Owns: the rarer functions that make blocks: those of C++, of theaps, of small sizes, of strings.
// May include: fuzz/lib, mimalloc.h, the C library.
// Called by: through calls.h.
// Invariants: as calls.h says.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "fuzz/lib/call.h"
#include "fuzz/lib/calls.h"

void mi_fuzz_call_more(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  size_t size = mi_fuzz_size(op->form, op->n);
  size_t align = mi_fuzz_align(op->more);
  const size_t offset = mi_fuzz_offset(op);
  if (!mi_fuzz_fits(size) || !mi_fuzz_fits(align)) {
    return;
  }
  const uint8_t index = mi_fuzz_pick_heap(op->n >> 28);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const size_t count = 1 + op->more % 5;
  const size_t each = size / count;
  const size_t words = size % (MI_SMALL_WSIZE_MAX + 1);
  const bool servable = mi_fuzz_is_servable(size);
  const unsigned form = op->form >> 4;
  mi_fuzz_expect_t expect = {.size = size, .align = 16, .heap = MI_FUZZ_NO_HEAP};
  void* p = NULL;
  if (form >= 8) {
    expect.align = align;
    if (form == 8 || form == 11) {
      expect.align = offset % align == 0 && align < 16 ? 16 : align;
      expect.offset = offset % align == 0 ? 0 : offset;
    }
  }
  switch (form) {
    case 1:
      expect.size = size = each * count;
      CALL(servable ? mi_new_n(count, each) : mi_mallocn(count, each));
      break;
    case 2:
      expect.size = size = each * count;
      HEAP_CALL(servable ? mi_heap_alloc_new_n(heap, count, each) : mi_heap_mallocn(heap, count, each));
      break;
    case 3:
      expect.size = size = each * count;
      HEAP_CALL(servable ? mi_theap_alloc_new_n(mi_fuzz_theap(index), count, each) : mi_theap_malloc(mi_fuzz_theap(index), size));
      break;
    case 4: HEAP_CALL(servable ? mi_theap_alloc_new(mi_fuzz_theap(index), size) : mi_theap_malloc(mi_fuzz_theap(index), size)); break;
    case 5:
      expect.size = size = each * count;
      expect.zero = true;
      HEAP_CALL(mi_theap_calloc(mi_fuzz_theap(index), count, each));
      break;
    case 6:
      expect.size = size = words * sizeof(void*);
      expect.zero = (op->more & 1) != 0;
      CALL(expect.zero ? mi_wzalloc_small(words) : mi_wmalloc_small(words));
      break;
    case 7:
      expect.size = size = words * sizeof(void*);
      expect.zero = (op->more & 1) != 0;
      if ((op->more & 2) != 0) {
        HEAP_CALL(expect.zero ? mi_theap_wzalloc_small(mi_fuzz_theap(index), words) : mi_theap_wmalloc_small(mi_fuzz_theap(index), words));
      } else {
        HEAP_CALL(expect.zero ? mi_theap_zalloc_small(mi_fuzz_theap(index), size) : mi_theap_malloc_small(mi_fuzz_theap(index), size));
      }
      break;
    case 8: HEAP_CALL(mi_heap_malloc_aligned_at(heap, size, align, offset)); break;
    case 9:
      expect.zero = true;
      HEAP_CALL(mi_heap_zalloc_aligned(heap, size, align));
      break;
    case 10:
      expect.size = size = each * count;
      expect.zero = true;
      HEAP_CALL(mi_heap_calloc_aligned(heap, count, each, align));
      break;
    case 11:
      expect.size = size = each * count;
      expect.zero = true;
      HEAP_CALL(mi_heap_calloc_aligned_at(heap, count, each, align, offset));
      break;
    case 12:
      expect.zero = true;
      HEAP_CALL(mi_theap_zalloc_aligned(mi_fuzz_theap(index), size, align));
      break;
    case 13: CALL(servable ? mi_new_aligned(size, align) : mi_malloc_aligned(size, align)); break;
    case 14: {
      expect.align = align = align < sizeof(void*) ? sizeof(void*) : align;
      mi_fuzz_begin("mi__posix_memalign", size);
      const int err = mi__posix_memalign(&p, align, size);
      mi_fuzz_expect_error(0);
      MI_FUZZ_CHECK(errno == MI_FUZZ_ERRNO && (err == 0 ? p != NULL : p == NULL && err == ENOMEM), "mi__posix_memalign: error %d", err);
      break;
    }
    case 15:
      expect.align = 16;
      expect.size = size = each * count;
      expect.zero = true;
      CALL(mi_zallocn(count, each));
      break;
    default: CALL(servable ? mi_new(size) : mi_malloc(size)); break;
  }
  mi_fuzz_block_made(block, p, &expect);
}

// Strings

enum { MI_FUZZ_TEXT_MAX = 6000 };

static char mi_fuzz_text[MI_FUZZ_TEXT_MAX + 1];
static wchar_t mi_fuzz_wide[MI_FUZZ_TEXT_MAX + 1];

#define MI_FUZZ_VARIABLE "MI_FUZZ_VARIABLE"
static const char mi_fuzz_value[] = MI_FUZZ_VARIABLE "=what stands in the environment";

// `putenv` takes the text as it is, where `setenv` would copy it.
static const char* mi_fuzz_variable(void) {
  const char* const value = strchr(mi_fuzz_value, '=') + 1;
  if (getenv(MI_FUZZ_VARIABLE) != value) {
    MI_FUZZ_CHECK(putenv((char*)(uintptr_t)mi_fuzz_value) == 0, "the environment takes no variable");
  }
  return value;
}

void mi_fuzz_call_string(mi_fuzz_block_t* block, const mi_fuzz_op_t* op) {
  const size_t length = (op->form & 8) != 0 ? op->n % MI_FUZZ_TEXT_MAX : op->n % 100;
  if (!mi_fuzz_fits(sizeof(wchar_t) * (length + 1))) {
    return;
  }
  uint64_t state = op->n;
  for (size_t i = 0; i < length; i++) {
    mi_fuzz_text[i] = (char)(1 + mi_fuzz_random(&state) % 255);
    mi_fuzz_wide[i] = (wchar_t)(unsigned char)mi_fuzz_text[i];
  }
  mi_fuzz_text[length] = 0;
  mi_fuzz_wide[length] = 0;
  const uint8_t index = mi_fuzz_pick_heap(op->more);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const size_t most = op->form & 16 ? length / 2 : length + op->more;
  const size_t cut = most < length ? most : length;
  mi_fuzz_expect_t expect = {.size = length + 1, .align = 16, .heap = MI_FUZZ_NO_HEAP};
  const size_t size = MI_FUZZ_TEXT_MAX;
  const void* expected = mi_fuzz_text;
  size_t told = 0;
  void* p = NULL;
  switch (op->form >> 4 & 15) {
    case 0: CALL(mi_strdup(mi_fuzz_text)); break;
    case 2:
    case 3:
      expect.size = cut + 1;
      CALL(mi_strndup(mi_fuzz_text, most));
      break;
    case 4: CALL((void*)mi_mbsdup((const unsigned char*)mi_fuzz_text)); break;
    case 5:
      expect.size = (length + 1) * sizeof(wchar_t);
      expected = mi_fuzz_wide;
      CALL(mi_wcsdup(mi_fuzz_wide));
      break;
    case 6: HEAP_CALL(mi_heap_strdup(heap, mi_fuzz_text)); break;
    case 8:
    case 9:
      expect.size = cut + 1;
      HEAP_CALL(mi_heap_strndup(heap, mi_fuzz_text, most));
      break;
    case 10: {
      char* value = NULL;
      expected = mi_fuzz_variable();
      expect.size = strlen(expected) + 1;
      mi_fuzz_begin("mi_dupenv_s", size);
      const int err = mi_dupenv_s(&value, &told, MI_FUZZ_VARIABLE);
      mi_fuzz_expect_error(0);
      p = value;
      MI_FUZZ_CHECK(errno == MI_FUZZ_ERRNO && (err == 0 ? p != NULL && told == expect.size : p == NULL && err == ENOMEM),
                    "mi_dupenv_s: error %d, length %zu", err, told);
      break;
    }
    case 11:
      expected = "/";
      expect.size = 2;
      CALL(mi_realpath("/./", NULL));
      break;
    case 12:
      expected = "/";
      expect.size = 2;
      HEAP_CALL(mi_heap_realpath(heap, "//", NULL));
      break;
    default: CALL(mi_strdup(mi_fuzz_text)); break;
  }
  if (p != NULL) {
    const size_t text = expected == mi_fuzz_text && expect.size < length + 1 ? expect.size - 1 : expect.size;
    MI_FUZZ_CHECK(memcmp(p, expected, text) == 0 && (text == expect.size || ((const char*)p)[text] == 0), "%s: text: it is another",
                  mi_fuzz_model.doing);
  }
  mi_fuzz_block_made(block, p, &expect);
}
