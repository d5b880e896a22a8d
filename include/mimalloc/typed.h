// Owns: forms of the public interface that are compiled into the program: of sizes that the compiler knows, and of types.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_TYPED_H
#define MIMALLOC_TYPED_H

#include "alloc.h"
#include "heap.h"

#if defined(__cplusplus)
extern "C" {
#endif

// ---- Sizes known to the compiler. Each is the function of the same name without `c`. ----
//
// With a constant size they need no look at it when the program runs. None is exported: they are compiled into the program.

// mi_wsize_from_size returns how many words, of sizeof(void*) bytes, hold size bytes.
mi_decl_nodiscard static inline size_t mi_wsize_from_size(size_t size) mi_attr_noexcept {
  return size / sizeof(void*) + (size % sizeof(void*) != 0);
}

// mi_malloc_csize is mi_malloc for a size that the compiler knows.
mi_decl_nodiscard static inline void* mi_malloc_csize(size_t size) mi_attr_noexcept {
  return size <= MI_SMALL_SIZE_MAX ? mi_malloc_small(size) : mi_malloc(size);
}

// mi_zalloc_csize is mi_zalloc for a size that the compiler knows.
mi_decl_nodiscard static inline void* mi_zalloc_csize(size_t size) mi_attr_noexcept {
  return size <= MI_SMALL_SIZE_MAX ? mi_zalloc_small(size) : mi_zalloc(size);
}

// mi_theap_malloc_csize is mi_theap_malloc for a size that the compiler knows.
mi_decl_nodiscard static inline void* mi_theap_malloc_csize(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  return size <= MI_SMALL_SIZE_MAX ? mi_theap_malloc_small(theap, size) : mi_theap_malloc(theap, size);
}

// mi_theap_zalloc_csize is mi_theap_zalloc for a size that the compiler knows.
mi_decl_nodiscard static inline void* mi_theap_zalloc_csize(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  return size <= MI_SMALL_SIZE_MAX ? mi_theap_zalloc_small(theap, size) : mi_theap_zalloc(theap, size);
}

// mi_free_csize is mi_free_size for a size that the compiler knows.
static inline void mi_free_csize(void* p, size_t size) mi_attr_noexcept { mi_free_size(p, size); }

// mi_free_csize_nonnull is mi_free_csize for a p that is not NULL.
static inline void mi_free_csize_nonnull(void* p, size_t size) mi_attr_noexcept { mi_free_size(p, size); }

// mi_free_csize_aligned is mi_free_size_aligned for a size and an alignment that the compiler knows.
static inline void mi_free_csize_aligned(void* p, size_t size, size_t alignment) mi_attr_noexcept {
  mi_free_size_aligned(p, size, alignment);
}

// mi_free_csize_aligned_nonnull is mi_free_csize_aligned for a p that is not NULL.
static inline void mi_free_csize_aligned_nonnull(void* p, size_t size, size_t alignment) mi_attr_noexcept {
  mi_free_size_aligned(p, size, alignment);
}

#if defined(__cplusplus)
}  // extern "C"
#endif

// A sub-process of version 2 is an address. Where that and a struct of one are not returned alike (32 bits), the library
// has the struct, so each call goes through it. A macro is not expanded again in its own text.
#if defined(MI_API_V2)
typedef void* _mi_subproc_id_v2_t;
static inline mi_subproc_id_t _mi_subproc_of_v2(_mi_subproc_id_v2_t subproc) {
  mi_subproc_id_t id;
  id._mi_subproc_id = subproc;
  return id;
}
#define mi_subproc_id_t _mi_subproc_id_v2_t
#define mi_subproc_main() (mi_subproc_main()._mi_subproc_id)
#define mi_subproc_current() (mi_subproc_current()._mi_subproc_id)
#define mi_subproc_new() (mi_subproc_new()._mi_subproc_id)
#define mi_subproc_delete(subproc) mi_subproc_delete(_mi_subproc_of_v2(subproc))
#define mi_subproc_destroy(subproc) mi_subproc_destroy(_mi_subproc_of_v2(subproc))
#define mi_subproc_add_current_thread(subproc) mi_subproc_add_current_thread(_mi_subproc_of_v2(subproc))
#define mi_subproc_visit_heaps(subproc, visitor, arg) mi_subproc_visit_heaps(_mi_subproc_of_v2(subproc), visitor, arg)
#define mi_abandoned_visit_blocks(subproc, heap_tag, visit_blocks, visitor, arg) \
  mi_abandoned_visit_blocks(_mi_subproc_of_v2(subproc), heap_tag, visit_blocks, visitor, arg)
#endif

// ---- Typed forms. Macros whose tp is a type, and which return a pointer to it. ----
//
// MI_API_V2, defined before this header is included, gives those with a block or a heap the argument order of version 2 of
// the interface: block and heap first, then the type.

// mi_malloc_tp(tp) allocates a tp by mi_malloc.
// mi_zalloc_tp(tp) allocates a tp of zero bytes.
// mi_calloc_tp(tp, n) allocates n of them, of zero bytes.
// mi_mallocn_tp(tp, n) allocates n of them.
// mi_free_tp(tp, p) frees one that was allocated by mi_malloc_tp or mi_zalloc_tp.

#define mi_malloc_tp(tp) ((tp*)mi_malloc_csize(sizeof(tp)))
#define mi_zalloc_tp(tp) ((tp*)mi_zalloc_csize(sizeof(tp)))
#define mi_calloc_tp(tp, n) ((tp*)mi_calloc(n, sizeof(tp)))
#define mi_mallocn_tp(tp, n) ((tp*)mi_mallocn(n, sizeof(tp)))
#define mi_free_tp(tp, p) (mi_free_csize(p, sizeof(tp)))

// mi_reallocn_tp(tp, p, n) resizes p to n of them.
// mi_recalloc_tp(tp, p, n) resizes p to n of them, with the promise of mi_recalloc.
// mi_heap_malloc_tp(tp, hp) is mi_malloc_tp in a heap.
// mi_heap_zalloc_tp(tp, hp) is mi_zalloc_tp in a heap.
// mi_heap_calloc_tp(tp, hp, n) is mi_calloc_tp in a heap.
// mi_heap_mallocn_tp(tp, hp, n) is mi_mallocn_tp in a heap.
// mi_heap_reallocn_tp(tp, hp, p, n) is mi_reallocn_tp in a heap.
// mi_heap_recalloc_tp(tp, hp, p, n) is mi_recalloc_tp in a heap.

#if defined(MI_API_V2)
#define mi_reallocn_tp(p, tp, n) ((tp*)mi_reallocn(p, n, sizeof(tp)))
#define mi_recalloc_tp(p, tp, n) ((tp*)mi_recalloc(p, n, sizeof(tp)))
#define mi_heap_malloc_tp(hp, tp) ((tp*)mi_heap_malloc(hp, sizeof(tp)))
#define mi_heap_zalloc_tp(hp, tp) ((tp*)mi_heap_zalloc(hp, sizeof(tp)))
#define mi_heap_calloc_tp(hp, tp, n) ((tp*)mi_heap_calloc(hp, n, sizeof(tp)))
#define mi_heap_mallocn_tp(hp, tp, n) ((tp*)mi_heap_mallocn(hp, n, sizeof(tp)))
#define mi_heap_reallocn_tp(hp, p, tp, n) ((tp*)mi_heap_reallocn(hp, p, n, sizeof(tp)))
#define mi_heap_recalloc_tp(hp, p, tp, n) ((tp*)mi_heap_recalloc(hp, p, n, sizeof(tp)))
#else
#define mi_reallocn_tp(tp, p, n) ((tp*)mi_reallocn(p, n, sizeof(tp)))
#define mi_recalloc_tp(tp, p, n) ((tp*)mi_recalloc(p, n, sizeof(tp)))
#define mi_heap_malloc_tp(tp, hp) ((tp*)mi_heap_malloc(hp, sizeof(tp)))
#define mi_heap_zalloc_tp(tp, hp) ((tp*)mi_heap_zalloc(hp, sizeof(tp)))
#define mi_heap_calloc_tp(tp, hp, n) ((tp*)mi_heap_calloc(hp, n, sizeof(tp)))
#define mi_heap_mallocn_tp(tp, hp, n) ((tp*)mi_heap_mallocn(hp, n, sizeof(tp)))
#define mi_heap_reallocn_tp(tp, hp, p, n) ((tp*)mi_heap_reallocn(hp, p, n, sizeof(tp)))
#define mi_heap_recalloc_tp(tp, hp, p, n) ((tp*)mi_heap_recalloc(hp, p, n, sizeof(tp)))
#endif

#endif  // MIMALLOC_TYPED_H
