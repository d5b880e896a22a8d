// Owns: macros that turn the C library's allocation functions, by name, into ours in the sources that include this.
// May include: mimalloc.h.
// Called by: programs that cannot be linked or preloaded with an overriding library.
// Invariants: object-like macros where the argument order allows it, so that a function's address is redirected too;
// an argument order is that of the system whose name it is.
#ifndef MIMALLOC_OVERRIDE_H
#define MIMALLOC_OVERRIDE_H

#include "mimalloc.h"

// C and POSIX
#define malloc mi_malloc
#define calloc mi_calloc
#define realloc mi_realloc
#define free mi_free
#define strdup mi_strdup
#define strndup mi_strndup
#define realpath mi_realpath
#define memalign mi_memalign
#define aligned_alloc mi_aligned_alloc
#define posix_memalign mi_posix_memalign
#define _posix_memalign mi_posix_memalign
#define cfree mi_cfree
#define valloc mi_valloc
#define pvalloc mi_pvalloc

// BSD, macOS, glibc
#define reallocf mi_reallocf
#define reallocarray mi_reallocarray
#define reallocarr mi_reallocarr
#define malloc_size mi_malloc_size
#define malloc_usable_size mi_malloc_usable_size
#define malloc_good_size mi_malloc_good_size

// C23
#define free_sized mi_free_size
// (pointer, alignment, size): C23 names the alignment first.
#define free_aligned_sized(p, alignment, size) mi_free_size_aligned(p, size, alignment)

// Microsoft
#define _expand mi_expand
#define _msize mi_usable_size
#define _recalloc mi_recalloc
#define _strdup mi_strdup
#define _strndup mi_strndup
#define _wcsdup mi_wcsdup
#define _mbsdup mi_mbsdup
#define _dupenv_s mi_dupenv_s
#define _wdupenv_s mi_wdupenv_s
#define _aligned_malloc mi_malloc_aligned
#define _aligned_realloc mi_realloc_aligned
#define _aligned_recalloc mi_aligned_recalloc
#define _aligned_msize(p, alignment, offset) mi_usable_size(p)
#define _aligned_free mi_free
#define _aligned_offset_malloc mi_malloc_aligned_at
#define _aligned_offset_realloc mi_realloc_aligned_at
#define _aligned_offset_recalloc mi_aligned_offset_recalloc

#endif  // MIMALLOC_OVERRIDE_H
