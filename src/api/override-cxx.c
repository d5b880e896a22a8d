// Owns: the C++ operators new and delete, by their mangled names.
// May include: base, heap, alloc, mimalloc.h.
// Called by: C++ programs, through every form of new and delete up to C++23.
// Invariants: a name defined here is in exports.map; compiled with unwind tables, since exceptions pass through.
#include "src/api/api.h"

// size_t is `unsigned long` (m) on 64 bits and `unsigned int` (j) on 32 bits; the mangled names tell.
#if UINTPTR_MAX == UINT64_MAX
#define MI_NEW(prefix, suffix) prefix##m##suffix
#else
#define MI_NEW(prefix, suffix) prefix##j##suffix
#endif
#define MI_NAME_(name) #name
#define MI_NAME(name) MI_NAME_(name)

// Weak, since a program may replace these itself, and does where it includes mimalloc-new-delete.h. The C++ library's own
// do not come in between: a linker looks into a library only for what is not defined yet.
#define mi_operator mi_exported __attribute__((weak))

// std::nothrow_t and std::align_val_t as they are passed.
typedef const void* mi_nothrow_t;
typedef size_t mi_align_val_t;

// new and new[]
mi_operator mi_hot void* MI_NEW(_Znw, )(size_t size) {
  void* const p = _mi_alloc(size);
  return mi_likely(p != NULL) ? p : _mi_api_new_retry_plain(size);
}

mi_operator mi_hot void* MI_NEW(_Zna, )(size_t size) {
  void* const p = _mi_alloc(size);
  return mi_likely(p != NULL) ? p : _mi_api_new_retry_plain(size);
}

mi_operator void* MI_NEW(_Znw, St11align_val_t)(size_t size, mi_align_val_t align) {
  return mi_new_aligned(size, align);
}

mi_operator void* MI_NEW(_Zna, St11align_val_t)(size_t size, mi_align_val_t align) {
  return mi_new_aligned(size, align);
}

// The nothrow forms have to catch what a new-handler throws. The C++ library's own, which ours hide, do just that around
// the throwing operators, which are ours: so they go on where a handler is installed.
static mi_cold void* mi_nothrow_retry(const char* name, size_t size, mi_nothrow_t tag) {
  if (_mi_api_cxx_new_handler() == NULL) {
    return NULL;
  }
  void* (*const next)(size_t, mi_nothrow_t) = (void* (*)(size_t, mi_nothrow_t))_mi_api_cxx_next(name);
  return next != NULL ? next(size, tag) : _mi_api_new_retry((mi_new_request_t){.size = size, .nothrow = true});
}

static mi_cold void* mi_nothrow_aligned_retry(const char* name, size_t size, mi_align_val_t align, mi_nothrow_t tag) {
  if (_mi_api_cxx_new_handler() == NULL || !_mi_is_power_of_two(align)) {
    return NULL;
  }
  void* (*const next)(size_t, mi_align_val_t, mi_nothrow_t) =
      (void* (*)(size_t, mi_align_val_t, mi_nothrow_t))_mi_api_cxx_next(name);
  const mi_new_request_t request = {.size = size, .align = align, .aligned = true, .nothrow = true};
  return next != NULL ? next(size, align, tag) : _mi_api_new_retry(request);
}

#define MI_DEFINE_NOTHROW(name)                                                   \
  mi_operator void* name(size_t size, mi_nothrow_t tag) {                         \
    void* const p = _mi_alloc(size);                                              \
    return mi_likely(p != NULL) ? p : mi_nothrow_retry(MI_NAME(name), size, tag); \
  }
MI_DEFINE_NOTHROW(MI_NEW(_Znw, RKSt9nothrow_t))
MI_DEFINE_NOTHROW(MI_NEW(_Zna, RKSt9nothrow_t))

#define MI_DEFINE_NOTHROW_ALIGNED(name)                                                          \
  mi_operator void* name(size_t size, mi_align_val_t align, mi_nothrow_t tag) {                  \
    void* const p = _mi_alloc_aligned(NULL, size, align, 0, false);                              \
    return mi_likely(p != NULL) ? p : mi_nothrow_aligned_retry(MI_NAME(name), size, align, tag); \
  }
MI_DEFINE_NOTHROW_ALIGNED(MI_NEW(_Znw, St11align_val_tRKSt9nothrow_t))
MI_DEFINE_NOTHROW_ALIGNED(MI_NEW(_Zna, St11align_val_tRKSt9nothrow_t))

// delete and delete[]
mi_operator mi_hot void _ZdlPv(void* p) { _mi_free(p); }
mi_operator mi_hot void _ZdaPv(void* p) { _mi_free(p); }

mi_operator void _ZdlPvRKSt9nothrow_t(void* p, mi_nothrow_t tag) {
  (void)tag;
  _mi_free(p);
}

mi_operator void _ZdaPvRKSt9nothrow_t(void* p, mi_nothrow_t tag) {
  (void)tag;
  _mi_free(p);
}

mi_operator mi_hot void MI_NEW(_ZdlPv, )(void* p, size_t size) {
  (void)size;
  _mi_free(p);
}

mi_operator mi_hot void MI_NEW(_ZdaPv, )(void* p, size_t size) {
  (void)size;
  _mi_free(p);
}

mi_operator void _ZdlPvSt11align_val_t(void* p, mi_align_val_t align) { mi_free_aligned(p, align); }
mi_operator void _ZdaPvSt11align_val_t(void* p, mi_align_val_t align) { mi_free_aligned(p, align); }

mi_operator void MI_NEW(_ZdlPv, St11align_val_t)(void* p, size_t size, mi_align_val_t align) {
  mi_free_size_aligned(p, size, align);
}

mi_operator void MI_NEW(_ZdaPv, St11align_val_t)(void* p, size_t size, mi_align_val_t align) {
  mi_free_size_aligned(p, size, align);
}

mi_operator void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* p, mi_align_val_t align, mi_nothrow_t tag) {
  (void)tag;
  mi_free_aligned(p, align);
}

mi_operator void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* p, mi_align_val_t align, mi_nothrow_t tag) {
  (void)tag;
  mi_free_aligned(p, align);
}
