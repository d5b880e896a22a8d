// Owns: the C++ family: allocation that calls the new-handler and throws.
// May include: base, heap, alloc, include/mimalloc.h.
// Called by: programs, the C++ override file.
// Invariants: compiled with unwind tables: exceptions pass through the frames of this file.
#include "src/api/api.h"

static void* mi_new_attempt(const mi_new_request_t* request) {
  mi_theap_t* const theap = request->heap == NULL ? NULL : _mi_api_theap(request->heap);
  if (request->block != NULL) {
    return _mi_realloc(theap, request->block, request->size, false);
  }
  if (request->aligned) {
    return _mi_alloc_aligned(theap, request->size, request->align, 0, false);
  }
  return _mi_api_theap_alloc(theap, request->size, false);
}

void* _mi_api_new_retry(mi_new_request_t request) {
  const bool can_succeed = !request.aligned || _mi_is_power_of_two(request.align);
  while (can_succeed) {
    const mi_new_handler_t handler = _mi_api_cxx_new_handler();
    if (handler == NULL) {
      break;
    }
    handler();
    void* const p = mi_new_attempt(&request);
    if (p != NULL) {
      return p;
    }
  }
  if (!request.nothrow) {
    _mi_api_cxx_throw_bad_alloc(request.size);
  }
  errno = ENOMEM;
  return NULL;
}

void* _mi_api_new_retry_plain(size_t size) { return _mi_api_new_retry((mi_new_request_t){.size = size}); }

void* mi_new(size_t size) {
  void* const p = _mi_alloc(size);
  return mi_likely(p != NULL) ? p : _mi_api_new_retry_plain(size);
}

void* mi_new_nothrow(size_t size) {
  void* const p = _mi_alloc(size);
  return mi_likely(p != NULL) ? p : _mi_api_new_retry((mi_new_request_t){.size = size, .nothrow = true});
}

void* mi_new_aligned(size_t size, size_t alignment) {
  void* const p = _mi_alloc_aligned(NULL, size, alignment, 0, false);
  const mi_new_request_t request = {.size = size, .align = alignment, .aligned = true};
  return mi_likely(p != NULL) ? p : _mi_api_new_retry(request);
}

void* mi_new_aligned_nothrow(size_t size, size_t alignment) {
  void* const p = _mi_alloc_aligned(NULL, size, alignment, 0, false);
  const mi_new_request_t request = {.size = size, .align = alignment, .aligned = true, .nothrow = true};
  return mi_likely(p != NULL) ? p : _mi_api_new_retry(request);
}

void* mi_new_n(size_t count, size_t size) { return mi_heap_alloc_new_n(NULL, count, size); }

void* mi_new_realloc(void* p, size_t newsize) {
  void* const q = _mi_realloc(NULL, p, newsize, false);
  return mi_likely(q != NULL) ? q : _mi_api_new_retry((mi_new_request_t){.block = p, .size = newsize});
}

void* mi_new_reallocn(void* p, size_t newcount, size_t size) {
  size_t total;
  if (_mi_mul_overflow(newcount, size, &total)) {
    _mi_api_cxx_throw_bad_alloc(SIZE_MAX);  // no handler can free that much
  }
  return mi_new_realloc(p, total);
}

void* mi_heap_alloc_new(mi_heap_t* heap, size_t size) {
  void* const p = heap == NULL ? _mi_alloc(size) : _mi_api_heap_alloc(heap, size, false);
  return mi_likely(p != NULL) ? p : _mi_api_new_retry((mi_new_request_t){.heap = heap, .size = size});
}

// A theap is ended by nobody but its thread, which is in here, and then its heap's theap is made anew.
static mi_heap_t* mi_theap_heap(const mi_theap_t* theap) {
  return theap == NULL ? NULL : mi_atomic_load_relaxed(&theap->heap);
}

void* mi_theap_alloc_new(mi_theap_t* theap, size_t size) {
  void* const p = mi_theap_malloc(theap, size);
  return mi_likely(p != NULL) ? p : _mi_api_new_retry((mi_new_request_t){.heap = mi_theap_heap(theap), .size = size});
}

void* mi_theap_alloc_new_nothrow(mi_theap_t* theap, size_t size) {
  void* const p = mi_theap_malloc(theap, size);
  const mi_new_request_t request = {.heap = mi_theap_heap(theap), .size = size, .nothrow = true};
  return mi_likely(p != NULL) ? p : _mi_api_new_retry(request);
}

void* mi_theap_alloc_new_n(mi_theap_t* theap, size_t count, size_t size) {
  size_t total;
  if (_mi_mul_overflow(count, size, &total)) {
    _mi_api_cxx_throw_bad_alloc(SIZE_MAX);
  }
  return mi_theap_alloc_new(theap, total);
}

void* mi_heap_alloc_new_n(mi_heap_t* heap, size_t count, size_t size) {
  size_t total;
  if (_mi_mul_overflow(count, size, &total)) {
    _mi_api_cxx_throw_bad_alloc(SIZE_MAX);
  }
  return mi_heap_alloc_new(heap, total);
}
