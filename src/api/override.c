// Owns: the C library's names for allocation, as C, POSIX and the BSDs have them.
// May include: base, sys, heap, alloc, mimalloc.h; no header of the C library that declares them.
// Called by: programs.
// Invariants: a name defined here is in exports.map; whatever pairs with malloc is here, so that no block is freed by
// another allocator than its own.
#include "src/alloc/free-checked.h"
#include "src/api/api.h"
#include "src/sys/os.h"

// An aligned block of these names.
mi_inline void* mi_as_memalign(void* p, size_t alignment) { return _mi_origin_mark(p, MI_FAMILY_MEMALIGN, alignment); }

static int mi_posix_memalign_as(void** p, size_t alignment, size_t size) {
  const int error = mi_posix_memalign(p, alignment, size);
  if (error == 0) {
    mi_as_memalign(*p, alignment);
  }
  return error;
}

mi_exported mi_hot void* malloc(size_t size) { return _mi_alloc_as(size, MI_FAMILY_MALLOC); }
mi_exported mi_hot void free(void* p) { _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0); }
mi_exported mi_hot void* calloc(size_t count, size_t size) { return _mi_alloc_zero_as(_mi_api_total(count, size), MI_FAMILY_MALLOC); }
mi_exported mi_hot void* realloc(void* p, size_t size) { return _mi_realloc_as_malloc(p, size); }

// C17, C23, POSIX, SunOS
mi_exported void* aligned_alloc(size_t alignment, size_t size) {
  return mi_as_memalign(_mi_alloc_aligned(NULL, size, alignment, 0, false), alignment);
}

mi_exported void* memalign(size_t alignment, size_t size) {
  return mi_as_memalign(_mi_alloc_aligned(NULL, size, alignment, 0, false), alignment);
}

mi_exported int posix_memalign(void** p, size_t alignment, size_t size) {
  return mi_posix_memalign_as(p, alignment, size);
}

mi_exported void free_sized(void* p, size_t size) {
  _mi_free_checked(p, MI_FAMILY_MALLOC | MI_FREE_SIZED, size, 0);
}

mi_exported void free_aligned_sized(void* p, size_t alignment, size_t size) {
  _mi_free_checked(p, MI_FAMILY_MEMALIGN | MI_FREE_SIZED | MI_FREE_ALIGNED, size, alignment);
}

mi_exported void* valloc(size_t size) { return mi_as_memalign(mi_valloc(size), _mi_os_page_size()); }
mi_exported void* pvalloc(size_t size) { return mi_as_memalign(mi_pvalloc(size), _mi_os_page_size()); }

// BSD, macOS, glibc
mi_exported int reallocarr(void* p, size_t count, size_t size) { return mi_reallocarr(p, count, size); }
mi_exported void cfree(void* p) { _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0); }
mi_exported void vfree(void* p) { _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0); }
mi_exported size_t malloc_size(const void* p) { return _mi_usable_size(p); }
mi_exported size_t malloc_usable_size(const void* p) { return _mi_usable_size(p); }
mi_exported size_t malloc_good_size(size_t size) { return _mi_good_size(size); }

// Microsoft
mi_exported void* _aligned_malloc(size_t size, size_t alignment) {
  return _mi_alloc_aligned(NULL, size, alignment, 0, false);
}

// glibc's names for the same functions, which some programs call to get around a replaced malloc.
mi_exported void* __libc_malloc(size_t size) { return _mi_alloc_as(size, MI_FAMILY_MALLOC); }
mi_exported void __libc_free(void* p) { _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0); }
mi_exported void __libc_cfree(void* p) { _mi_free_checked(p, MI_FAMILY_MALLOC, 0, 0); }
mi_exported void* __libc_calloc(size_t count, size_t size) { return _mi_alloc_zero_as(_mi_api_total(count, size), MI_FAMILY_MALLOC); }
mi_exported void* __libc_realloc(void* p, size_t size) { return _mi_realloc_as_malloc(p, size); }
mi_exported void* __libc_valloc(size_t size) { return mi_as_memalign(mi_valloc(size), _mi_os_page_size()); }
mi_exported void* __libc_pvalloc(size_t size) { return mi_as_memalign(mi_pvalloc(size), _mi_os_page_size()); }
mi_exported void* __libc_memalign(size_t alignment, size_t size) { return memalign(alignment, size); }
mi_exported int __posix_memalign(void** p, size_t alignment, size_t size) {
  return mi_posix_memalign_as(p, alignment, size);
}
