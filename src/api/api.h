// Owns: what the wrappers share: sizes of arrays, the theap of a heap, duplicates, the slow path of operator new.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: api only.
// Invariants: no state; whatever fails leaves errno ENOMEM.
#pragma once

#include <errno.h>

#include "mimalloc.h"
#include "src/alloc/alloc.h"
#include "src/base/bits.h"
#include "src/heap/heap.h"

// count * size, or a size that no allocation grants: overflow then fails where every large request fails.
mi_inline size_t _mi_api_total(size_t count, size_t size) {
  size_t total;
  return mi_likely(!_mi_mul_overflow(count, size, &total)) ? total : SIZE_MAX;
}

// This thread's theap of a heap, where no heap stands for the main one. When there is none to be had (no memory, or the
// thread has been torn down) NULL, and the main heap serves, as it does for every late call; but not for a heap that is
// bound to an arena.
mi_inline mi_theap_t* _mi_api_theap(mi_heap_t* heap) {
  return mi_likely(heap != NULL) ? _mi_heap_theap_or_stand_in(heap) : _mi_theap_default();
}

mi_inline void* _mi_api_theap_alloc(mi_theap_t* theap, size_t size, bool zero) {
  if (mi_likely(theap != NULL)) {
    return _mi_theap_alloc(theap, size, zero);
  }
  return zero ? _mi_alloc_zero(size) : _mi_alloc(size);
}

mi_inline void* _mi_api_heap_alloc(mi_heap_t* heap, size_t size, bool zero) {
  return _mi_api_theap_alloc(_mi_api_theap(heap), size, zero);
}

// Answers through a pointer that may be NULL.
mi_inline void _mi_api_store(size_t* where, size_t value) {
  if (where != NULL) {
    *where = value;
  }
}

// A copy of `size` bytes in a block of `heap` (NULL: the main heap).
void* _mi_api_duplicate(mi_heap_t* heap, const void* bytes, size_t size);

// What operator new is asked for. A struct, since its slow path serves ten functions.
typedef struct mi_new_request_s {
  mi_heap_t* heap;  // NULL: the main heap
  void* block;      // to be resized; NULL: a new block
  size_t size;
  size_t align;  // if aligned
  bool aligned;
  bool nothrow;
} mi_new_request_t;

// Goes on after a failed attempt: calls the new-handler and tries again, until there is memory or no handler. Then throws
// std::bad_alloc, or returns NULL if the request says so.
mi_cold void* _mi_api_new_retry(mi_new_request_t request);

// The same for the plain operator: one argument, so that its fast path needs no room on the stack.
mi_cold void* _mi_api_new_retry_plain(size_t size);

// The C++ library's side (cxx-runtime.c).
typedef void (*mi_new_handler_t)(void);

// The function that std::set_new_handler installed; NULL when there is none or no C++ library.
mi_new_handler_t _mi_api_cxx_new_handler(void);

// Throws std::bad_alloc; where there is no C++ library, ends the process with a line that says what it lacked.
_Noreturn void _mi_api_cxx_throw_bad_alloc(size_t size);

// The nothrow operator of the C++ library itself, behind ours; NULL when there is none. It calls the throwing operator
// and catches what that throws, which C cannot.
void* _mi_api_cxx_next(const char* mangled_name);
