// Owns: the C++ operators new and delete, by their mangled names.
// May include: base, heap, alloc, mimalloc.h.
// Called by: C++ programs, through every form of new and delete up to C++23.
// Invariants: a name defined here is in exports.map; compiled with unwind tables, since exceptions pass through.
#include "src/alloc/free-checked.h"
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

// What the standard calls the base forms; the others are made of them, also where a program has replaced only the base.
// Each has a second name here that nobody can replace, so that comparing the two tells.
void* MI_NEW(_Znw, )(size_t size);
void* MI_NEW(_Zna, )(size_t size);
void* MI_NEW(_Znw, St11align_val_t)(size_t size, mi_align_val_t align);
void* MI_NEW(_Zna, St11align_val_t)(size_t size, mi_align_val_t align);
void _ZdlPv(void* p);
void _ZdaPv(void* p);
void _ZdlPvSt11align_val_t(void* p, mi_align_val_t align);
void _ZdaPvSt11align_val_t(void* p, mi_align_val_t align);

#define MI_OWN(own, name) extern mi_hot __typeof__(name) own __attribute__((alias(MI_NAME(name)), visibility("hidden")))
MI_OWN(mi_own_new, MI_NEW(_Znw, ));
MI_OWN(mi_own_new_array, MI_NEW(_Zna, ));
MI_OWN(mi_own_new_aligned, MI_NEW(_Znw, St11align_val_t));
MI_OWN(mi_own_new_array_aligned, MI_NEW(_Zna, St11align_val_t));
MI_OWN(mi_own_delete, _ZdlPv);
MI_OWN(mi_own_delete_array, _ZdaPv);
MI_OWN(mi_own_delete_aligned, _ZdlPvSt11align_val_t);
MI_OWN(mi_own_delete_array_aligned, _ZdaPvSt11align_val_t);

#define MI_IS_REPLACED(name, own) mi_unlikely(&(name) != &(own))

// new and new[]
mi_operator mi_hot void* MI_NEW(_Znw, )(size_t size) {
  void* const p = _mi_alloc_as(size, MI_FAMILY_NEW);
  return mi_likely(p != NULL) ? p : _mi_origin_mark(_mi_api_new_retry_plain(size), MI_FAMILY_NEW, 1);
}

mi_operator mi_hot void* MI_NEW(_Zna, )(size_t size) {
  if (MI_IS_REPLACED(MI_NEW(_Znw, ), mi_own_new)) {
    return MI_NEW(_Znw, )(size);
  }
  void* const p = _mi_alloc_as(size, MI_FAMILY_NEW_ARRAY);
  return mi_likely(p != NULL) ? p : _mi_origin_mark(_mi_api_new_retry_plain(size), MI_FAMILY_NEW_ARRAY, 1);
}

mi_operator void* MI_NEW(_Znw, St11align_val_t)(size_t size, mi_align_val_t align) {
  return _mi_origin_mark(mi_new_aligned(size, align), MI_FAMILY_NEW_ALIGNED, align);
}

mi_operator void* MI_NEW(_Zna, St11align_val_t)(size_t size, mi_align_val_t align) {
  if (MI_IS_REPLACED(MI_NEW(_Znw, St11align_val_t), mi_own_new_aligned)) {
    return MI_NEW(_Znw, St11align_val_t)(size, align);
  }
  return _mi_origin_mark(mi_new_aligned(size, align), MI_FAMILY_NEW_ARRAY_ALIGNED, align);
}

// The nothrow forms have to catch what a new-handler throws, or a replaced operator. The C++ library's own, which ours
// hide, do just that around the throwing operators.
static mi_cold void* mi_nothrow_forward(const char* name, size_t size, mi_nothrow_t tag, void* (*base)(size_t)) {
  void* (*const next)(size_t, mi_nothrow_t) = (void* (*)(size_t, mi_nothrow_t))_mi_api_cxx_next(name);
  return next != NULL ? next(size, tag) : base(size);
}

static mi_cold void* mi_nothrow_retry(const char* name, size_t size, mi_nothrow_t tag) {
  if (_mi_api_cxx_new_handler() == NULL) {
    return NULL;
  }
  void* (*const next)(size_t, mi_nothrow_t) = (void* (*)(size_t, mi_nothrow_t))_mi_api_cxx_next(name);
  return next != NULL ? next(size, tag) : _mi_api_new_retry((mi_new_request_t){.size = size, .nothrow = true});
}

static mi_cold void* mi_nothrow_aligned_forward(const char* name, size_t size, mi_align_val_t align, mi_nothrow_t tag,
                                                void* (*base)(size_t, mi_align_val_t)) {
  void* (*const next)(size_t, mi_align_val_t, mi_nothrow_t) =
      (void* (*)(size_t, mi_align_val_t, mi_nothrow_t))_mi_api_cxx_next(name);
  return next != NULL ? next(size, align, tag) : base(size, align);
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

#define MI_DEFINE_NOTHROW(name, base, is_replaced, family)                                                \
  mi_operator void* name(size_t size, mi_nothrow_t tag) {                                                 \
    if (is_replaced) {                                                                                    \
      return mi_nothrow_forward(MI_NAME(name), size, tag, &base);                                         \
    }                                                                                                     \
    void* const p = _mi_alloc_as(size, family);                                                           \
    return mi_likely(p != NULL) ? p                                                                       \
                                : _mi_origin_mark(mi_nothrow_retry(MI_NAME(name), size, tag), family, 1); \
  }
MI_DEFINE_NOTHROW(MI_NEW(_Znw, RKSt9nothrow_t), MI_NEW(_Znw, ), MI_IS_REPLACED(MI_NEW(_Znw, ), mi_own_new), MI_FAMILY_NEW)
MI_DEFINE_NOTHROW(MI_NEW(_Zna, RKSt9nothrow_t), MI_NEW(_Zna, ), MI_IS_REPLACED(MI_NEW(_Zna, ), mi_own_new_array) || MI_IS_REPLACED(MI_NEW(_Znw, ), mi_own_new), MI_FAMILY_NEW_ARRAY)

#define MI_DEFINE_NOTHROW_ALIGNED(name, base, is_replaced, family)               \
  mi_operator void* name(size_t size, mi_align_val_t align, mi_nothrow_t tag) {  \
    if (is_replaced) {                                                           \
      return mi_nothrow_aligned_forward(MI_NAME(name), size, align, tag, &base); \
    }                                                                            \
    void* p = _mi_alloc_aligned(NULL, size, align, 0, false);                    \
    if (mi_unlikely(p == NULL)) {                                                \
      p = mi_nothrow_aligned_retry(MI_NAME(name), size, align, tag);             \
    }                                                                            \
    return _mi_origin_mark(p, family, align);                                    \
  }
MI_DEFINE_NOTHROW_ALIGNED(MI_NEW(_Znw, St11align_val_tRKSt9nothrow_t), MI_NEW(_Znw, St11align_val_t),
                          MI_IS_REPLACED(MI_NEW(_Znw, St11align_val_t), mi_own_new_aligned), MI_FAMILY_NEW_ALIGNED)
MI_DEFINE_NOTHROW_ALIGNED(MI_NEW(_Zna, St11align_val_tRKSt9nothrow_t), MI_NEW(_Zna, St11align_val_t),
                          MI_IS_REPLACED(MI_NEW(_Zna, St11align_val_t), mi_own_new_array_aligned) || MI_IS_REPLACED(MI_NEW(_Znw, St11align_val_t), mi_own_new_aligned), MI_FAMILY_NEW_ARRAY_ALIGNED)

// delete and delete[]
mi_operator mi_hot void _ZdlPv(void* p) { _mi_free_checked(p, MI_FAMILY_NEW, 0, 0); }

mi_operator mi_hot void _ZdaPv(void* p) {
  if (MI_IS_REPLACED(_ZdlPv, mi_own_delete)) {
    _ZdlPv(p);
    return;
  }
  _mi_free_checked(p, MI_FAMILY_NEW_ARRAY, 0, 0);
}

mi_operator void _ZdlPvRKSt9nothrow_t(void* p, mi_nothrow_t tag) {
  (void)tag;
  _ZdlPv(p);
}

mi_operator void _ZdaPvRKSt9nothrow_t(void* p, mi_nothrow_t tag) {
  (void)tag;
  _ZdaPv(p);
}

mi_operator mi_hot void MI_NEW(_ZdlPv, )(void* p, size_t size) {
  if (MI_IS_REPLACED(_ZdlPv, mi_own_delete)) {
    _ZdlPv(p);
    return;
  }
  _mi_free_checked(p, MI_FAMILY_NEW | MI_FREE_SIZED, size, 0);
}

mi_operator mi_hot void MI_NEW(_ZdaPv, )(void* p, size_t size) {
  if (MI_IS_REPLACED(_ZdaPv, mi_own_delete_array) || MI_IS_REPLACED(_ZdlPv, mi_own_delete)) {
    _ZdaPv(p);
    return;
  }
  _mi_free_checked(p, MI_FAMILY_NEW_ARRAY | MI_FREE_SIZED, size, 0);
}

mi_operator void _ZdlPvSt11align_val_t(void* p, mi_align_val_t align) {
  _mi_free_checked(p, MI_FAMILY_NEW_ALIGNED | MI_FREE_ALIGNED, 0, align);
}

mi_operator void _ZdaPvSt11align_val_t(void* p, mi_align_val_t align) {
  if (MI_IS_REPLACED(_ZdlPvSt11align_val_t, mi_own_delete_aligned)) {
    _ZdlPvSt11align_val_t(p, align);
    return;
  }
  _mi_free_checked(p, MI_FAMILY_NEW_ARRAY_ALIGNED | MI_FREE_ALIGNED, 0, align);
}

mi_operator void MI_NEW(_ZdlPv, St11align_val_t)(void* p, size_t size, mi_align_val_t align) {
  if (MI_IS_REPLACED(_ZdlPvSt11align_val_t, mi_own_delete_aligned)) {
    _ZdlPvSt11align_val_t(p, align);
    return;
  }
  _mi_free_checked(p, MI_FAMILY_NEW_ALIGNED | MI_FREE_SIZED | MI_FREE_ALIGNED, size, align);
}

mi_operator void MI_NEW(_ZdaPv, St11align_val_t)(void* p, size_t size, mi_align_val_t align) {
  if (MI_IS_REPLACED(_ZdaPvSt11align_val_t, mi_own_delete_array_aligned) ||
      MI_IS_REPLACED(_ZdlPvSt11align_val_t, mi_own_delete_aligned)) {
    _ZdaPvSt11align_val_t(p, align);
    return;
  }
  _mi_free_checked(p, MI_FAMILY_NEW_ARRAY_ALIGNED | MI_FREE_SIZED | MI_FREE_ALIGNED, size, align);
}

mi_operator void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* p, mi_align_val_t align, mi_nothrow_t tag) {
  (void)tag;
  _ZdlPvSt11align_val_t(p, align);
}

mi_operator void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* p, mi_align_val_t align, mi_nothrow_t tag) {
  (void)tag;
  _ZdaPvSt11align_val_t(p, align);
}
