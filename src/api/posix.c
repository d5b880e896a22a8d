// Owns: allocation in the shapes of POSIX, BSD, C11, glibc and Microsoft.
// May include: base, sys, heap, alloc, include/mimalloc.h.
// Called by: programs, the override files.
// Invariants: functions that return an error leave errno alone.
#include "src/alloc/free-checked.h"
#include "src/api/api.h"
#include "src/sys/os.h"

bool mi_cfree(void* p) {
  if (!_mi_is_in_heap(p)) {
    return false;
  }
  _mi_free(p);
  return true;
}

void* mi__expand(void* p, size_t newsize) { return mi_expand(p, newsize); }
size_t mi_malloc_size(const void* p) { return _mi_usable_size(p); }
size_t mi_malloc_good_size(size_t size) { return _mi_good_size(size); }
size_t mi_malloc_usable_size(const void* p) { return _mi_usable_size(p); }

int mi_posix_memalign(void** p, size_t alignment, size_t size) {
  if (p == NULL || !_mi_is_power_of_two(alignment) || alignment % sizeof(void*) != 0) {
    return EINVAL;
  }
  const int saved_errno = errno;
  void* const q = _mi_alloc_aligned(NULL, size, alignment, 0, false);
  if (mi_unlikely(q == NULL)) {
    errno = saved_errno;
    return ENOMEM;
  }
  *p = q;
  return 0;
}

int mi__posix_memalign(void** p, size_t alignment, size_t size) { return mi_posix_memalign(p, alignment, size); }
void* mi_memalign(size_t alignment, size_t size) { return _mi_alloc_aligned(NULL, size, alignment, 0, false); }
void* mi_aligned_alloc(size_t alignment, size_t size) { return _mi_alloc_aligned(NULL, size, alignment, 0, false); }
void* mi_valloc(size_t size) { return _mi_alloc_aligned(NULL, size, _mi_os_page_size(), 0, false); }

void* mi_pvalloc(size_t size) {
  const size_t page_size = _mi_os_page_size();
  // The size that is rounded past the end of the address space stays as it is: it is refused just as well.
  const size_t whole = size <= SIZE_MAX - page_size ? _mi_align_up(size, page_size) : size;
  return _mi_alloc_aligned(NULL, whole, page_size, 0, false);
}

void* mi_reallocarray(void* p, size_t count, size_t size) {
  return _mi_realloc(NULL, p, _mi_api_total(count, size), false);
}

int mi_reallocarr(void* ptrp, size_t count, size_t size) {
  if (ptrp == NULL || size == 0) {
    return EINVAL;
  }
  void** const slot = ptrp;
  if (count == 0) {
    _mi_free(*slot);
    *slot = NULL;
    return 0;
  }
  size_t total;
  if (_mi_mul_overflow(count, size, &total)) {
    return EOVERFLOW;
  }
  const int saved_errno = errno;
  void* const q = _mi_realloc(NULL, *slot, total, false);
  if (mi_unlikely(q == NULL)) {
    errno = saved_errno;
    return ENOMEM;
  }
  *slot = q;
  return 0;
}

void* mi_aligned_recalloc(void* p, size_t newcount, size_t size, size_t alignment) {
  return mi_recalloc_aligned(p, newcount, size, alignment);
}

void* mi_aligned_offset_recalloc(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) {
  return mi_recalloc_aligned_at(p, newcount, size, alignment, offset);
}

void mi_free_size(void* p, size_t size) { _mi_free_checked(p, MI_FAMILY_ANY | MI_FREE_SIZED, size, 0); }

void mi_free_size_aligned(void* p, size_t size, size_t alignment) {
  _mi_free_checked(p, MI_FAMILY_ANY | MI_FREE_SIZED | MI_FREE_ALIGNED, size, alignment);
}

void mi_free_aligned(void* p, size_t alignment) {
  _mi_free_checked(p, MI_FAMILY_ANY | MI_FREE_ALIGNED, 0, alignment);
}

size_t malloc_object_size(const void* p) { return _mi_object_size(p); }
size_t malloc_object_size_fast(const void* p) { return _mi_object_size_fast(p); }
