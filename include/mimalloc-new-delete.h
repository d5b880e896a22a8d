// Owns: definitions of the global C++ operators new and delete on top of mi_new and mi_free.
// May include: mimalloc.h.
// Called by: exactly one source file of a C++ program.
// Invariants: every form that the language standard in use can call is replaced, so that new and delete always pair up.
#ifndef MIMALLOC_NEW_DELETE_H
#define MIMALLOC_NEW_DELETE_H

#if defined(__cplusplus)
#include <new>

#include "mimalloc.h"

void* operator new(std::size_t n) { return mi_new(n); }
void* operator new[](std::size_t n) { return mi_new(n); }
void* operator new(std::size_t n, const std::nothrow_t&) mi_attr_noexcept { return mi_new_nothrow(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) mi_attr_noexcept { return mi_new_nothrow(n); }

void operator delete(void* p) mi_attr_noexcept { mi_free(p); }
void operator delete[](void* p) mi_attr_noexcept { mi_free(p); }
void operator delete(void* p, const std::nothrow_t&) mi_attr_noexcept { mi_free(p); }
void operator delete[](void* p, const std::nothrow_t&) mi_attr_noexcept { mi_free(p); }

#if __cplusplus >= 201402L || (defined(_MSC_VER) && _MSC_VER >= 1916)
void operator delete(void* p, std::size_t n) mi_attr_noexcept { mi_free_size(p, n); }
void operator delete[](void* p, std::size_t n) mi_attr_noexcept { mi_free_size(p, n); }
#endif

#if defined(__cpp_aligned_new)
void* operator new(std::size_t n, std::align_val_t a) { return mi_new_aligned(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return mi_new_aligned(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) mi_attr_noexcept {
  return mi_new_aligned_nothrow(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) mi_attr_noexcept {
  return mi_new_aligned_nothrow(n, static_cast<std::size_t>(a));
}

void operator delete(void* p, std::align_val_t a) mi_attr_noexcept { mi_free_aligned(p, static_cast<std::size_t>(a)); }
void operator delete[](void* p, std::align_val_t a) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(a));
}
void operator delete(void* p, std::size_t n, std::align_val_t a) mi_attr_noexcept {
  mi_free_size_aligned(p, n, static_cast<std::size_t>(a));
}
void operator delete[](void* p, std::size_t n, std::align_val_t a) mi_attr_noexcept {
  mi_free_size_aligned(p, n, static_cast<std::size_t>(a));
}
void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(a));
}
void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(a));
}
#endif  // __cpp_aligned_new

#endif  // __cplusplus

#endif  // MIMALLOC_NEW_DELETE_H
