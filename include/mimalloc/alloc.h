// Owns: the public interface of allocation: basic, telling sizes, aligned, of other interfaces, of C++.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_ALLOC_H
#define MIMALLOC_ALLOC_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

// ---- Basic allocation. What C has, and what goes with it. ----

// MI_SMALL_WSIZE_MAX is the largest number of words that the functions of small sizes take.
// MI_SMALL_SIZE_MAX is the same in bytes.

#define MI_SMALL_WSIZE_MAX (128)
#define MI_SMALL_SIZE_MAX (MI_SMALL_WSIZE_MAX * sizeof(void*))

// mi_malloc allocates size bytes, as C's malloc. Their content is not specified.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_calloc allocates count * size zero bytes, as C's calloc.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_calloc(size_t count, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size2(1, 2);

// mi_realloc resizes p to newsize bytes, as C's realloc: it keeps the first min(old, new) bytes and may move the block.
mi_decl_nodiscard mi_decl_export void* mi_realloc(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_expand resizes p to newsize bytes where it stands and returns p; it never moves the block, and returns NULL where
// that is not possible or p is NULL.
mi_decl_export void* mi_expand(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_free frees p, as C's free. NULL is ignored.
mi_decl_export void mi_free(void* p) mi_attr_noexcept;

// mi_strdup returns a copy of the string s, as POSIX strdup; NULL, errno untouched, when s is NULL.
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_strdup(const char* s) mi_attr_noexcept mi_attr_malloc;

// mi_strndup returns a copy of at most n bytes of s and a terminating zero, as POSIX strndup; NULL, errno untouched,
// when s is NULL.
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_strndup(const char* s, size_t n) mi_attr_noexcept
    mi_attr_malloc;

// mi_realpath returns the canonical path of fname, as POSIX realpath: in resolved_name when that is not NULL (room for
// PATH_MAX bytes), else in a block of ours. On failure it returns NULL with realpath's errno.
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_realpath(const char* fname,
                                                                    char* resolved_name) mi_attr_noexcept;

// mi_malloc_small is mi_malloc for a size of at most MI_SMALL_SIZE_MAX.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc_small(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_zalloc_small is mi_zalloc for a size of at most MI_SMALL_SIZE_MAX.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc_small(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_wmalloc_small is mi_malloc_small of wsize words (of sizeof(void*) bytes), at most MI_SMALL_WSIZE_MAX.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_wmalloc_small(size_t wsize) mi_attr_noexcept mi_attr_malloc;

// mi_wzalloc_small is mi_zalloc_small of wsize words, at most MI_SMALL_WSIZE_MAX.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_wzalloc_small(size_t wsize) mi_attr_noexcept mi_attr_malloc;

// mi_zalloc allocates size zero bytes.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_zallocn allocates count * size zero bytes; it is mi_calloc by another name.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zallocn(size_t count, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size2(1, 2);

// mi_mallocn allocates count * size bytes of unspecified content.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_mallocn(size_t count, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size2(1, 2);

// mi_reallocn resizes p to count * size bytes.
mi_decl_nodiscard mi_decl_export void* mi_reallocn(void* p, size_t count, size_t size) mi_attr_noexcept
    mi_attr_alloc_size2(2, 3);

// mi_reallocf is mi_realloc that frees p when it fails, as BSD reallocf.
mi_decl_nodiscard mi_decl_export void* mi_reallocf(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_rezalloc resizes p to newsize bytes; what it adds reads zero if p was always allocated and resized by the zeroing
// functions, shrunk or not.
mi_decl_nodiscard mi_decl_export void* mi_rezalloc(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_recalloc is mi_rezalloc to newcount * size bytes.
mi_decl_nodiscard mi_decl_export void* mi_recalloc(void* p, size_t newcount, size_t size) mi_attr_noexcept
    mi_attr_alloc_size2(2, 3);

// mi_free_small frees a block that was allocated with a size of at most MI_SMALL_SIZE_MAX. NULL is ignored.
mi_decl_export void mi_free_small(void* p) mi_attr_noexcept;

// mi_free_small_nonnull is mi_free_small for a p that is not NULL.
mi_decl_export void mi_free_small_nonnull(void* p) mi_attr_noexcept;

// mi_free_small_local is mi_free_small for a block that the calling thread allocated.
mi_decl_export void mi_free_small_local(void* p) mi_attr_noexcept;

// mi_free_small_local_nonnull is mi_free_small_local for a p that is not NULL.
mi_decl_export void mi_free_small_local_nonnull(void* p) mi_attr_noexcept;

// mi_usable_size returns how many bytes of p may be used: at least what was asked for. 0 for NULL.
mi_decl_nodiscard mi_decl_export size_t mi_usable_size(const void* p) mi_attr_noexcept;

// mi_good_size returns the size that mi_malloc(size) would provide; asking for it wastes nothing.
mi_decl_nodiscard mi_decl_export size_t mi_good_size(size_t size) mi_attr_noexcept;

// ---- Usable sizes. The basic functions, telling how many bytes may be used. Any of the size pointers may be NULL; 0 is
// stored on failure. ----
//
// None says which parameter is the size of the result: where C's functions are compiled with checks (_FORTIFY_SOURCE), they
// would take that for all that may be written.

// mi_umalloc is mi_malloc; it stores the usable size in *block_size.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_umalloc(size_t size, size_t* block_size) mi_attr_noexcept
    mi_attr_malloc;

// mi_ucalloc is mi_calloc; it stores the usable size in *block_size.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_ucalloc(size_t count, size_t size, size_t* block_size)
    mi_attr_noexcept mi_attr_malloc;

// mi_urealloc is mi_realloc; it stores the usable size before in *block_size_pre and the one after in *block_size_post.
mi_decl_nodiscard mi_decl_export void* mi_urealloc(void* p, size_t newsize, size_t* block_size_pre,
                                                   size_t* block_size_post) mi_attr_noexcept;

// mi_ufree is mi_free; it stores the usable size that p had in *block_size, 0 for NULL.
mi_decl_export void mi_ufree(void* p, size_t* block_size) mi_attr_noexcept;

// mi_umalloc_aligned is mi_malloc_aligned; it stores the usable size in *block_size.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_umalloc_aligned(size_t size, size_t alignment,
                                                                           size_t* block_size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_align(2);

// mi_uzalloc_aligned is mi_zalloc_aligned; it stores the usable size in *block_size.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_uzalloc_aligned(size_t size, size_t alignment,
                                                                           size_t* block_size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_align(2);

// mi_umalloc_small is mi_malloc_small; it stores the usable size in *block_size.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_umalloc_small(size_t size, size_t* block_size)
    mi_attr_noexcept mi_attr_malloc;

// mi_uzalloc_small is mi_zalloc_small; it stores the usable size in *block_size.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_uzalloc_small(size_t size, size_t* block_size)
    mi_attr_noexcept mi_attr_malloc;

// ---- Aligned allocation. The size need not be a multiple of the alignment. Blocks are freed by mi_free. ----
// The forms that end in _at align p + offset instead of p.

// mi_malloc_aligned allocates size bytes at a multiple of alignment.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc_aligned(size_t size, size_t alignment)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);

// mi_malloc_aligned_at allocates size bytes such that p + offset is a multiple of alignment.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc_aligned_at(size_t size, size_t alignment,
                                                                             size_t offset) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(1);

// mi_zalloc_aligned is mi_malloc_aligned with zero bytes.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc_aligned(size_t size, size_t alignment)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);

// mi_zalloc_aligned_at is mi_malloc_aligned_at with zero bytes.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc_aligned_at(size_t size, size_t alignment,
                                                                             size_t offset) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(1);

// mi_calloc_aligned allocates count * size zero bytes at a multiple of alignment.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_calloc_aligned(size_t count, size_t size, size_t alignment)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2) mi_attr_alloc_align(3);

// mi_calloc_aligned_at allocates count * size zero bytes such that p + offset is a multiple of alignment.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_calloc_aligned_at(size_t count, size_t size,
                                                                             size_t alignment,
                                                                             size_t offset) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size2(1, 2);

// mi_realloc_aligned resizes p to newsize bytes at a multiple of alignment, whatever its alignment was.
mi_decl_nodiscard mi_decl_export void* mi_realloc_aligned(void* p, size_t newsize, size_t alignment) mi_attr_noexcept
    mi_attr_alloc_size(2) mi_attr_alloc_align(3);

// mi_realloc_aligned_at resizes p to newsize bytes such that p + offset is a multiple of alignment.
mi_decl_nodiscard mi_decl_export void* mi_realloc_aligned_at(void* p, size_t newsize, size_t alignment,
                                                             size_t offset) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_rezalloc_aligned is mi_realloc_aligned with the promise of mi_rezalloc.
mi_decl_nodiscard mi_decl_export void* mi_rezalloc_aligned(void* p, size_t newsize, size_t alignment) mi_attr_noexcept
    mi_attr_alloc_size(2) mi_attr_alloc_align(3);

// mi_rezalloc_aligned_at is mi_realloc_aligned_at with the promise of mi_rezalloc.
mi_decl_nodiscard mi_decl_export void* mi_rezalloc_aligned_at(void* p, size_t newsize, size_t alignment,
                                                              size_t offset) mi_attr_noexcept mi_attr_alloc_size(2);

// mi_recalloc_aligned is mi_rezalloc_aligned to newcount * size bytes.
mi_decl_nodiscard mi_decl_export void* mi_recalloc_aligned(void* p, size_t newcount, size_t size, size_t alignment)
    mi_attr_noexcept mi_attr_alloc_size2(2, 3) mi_attr_alloc_align(4);

// mi_recalloc_aligned_at is mi_rezalloc_aligned_at to newcount * size bytes.
mi_decl_nodiscard mi_decl_export void* mi_recalloc_aligned_at(void* p, size_t newcount, size_t size, size_t alignment,
                                                              size_t offset) mi_attr_noexcept mi_attr_alloc_size2(2, 3);

// ---- Other interfaces. The shapes of POSIX, BSD, C11, glibc, macOS and Microsoft. ----

// mi_cfree frees p if it lies in memory of this allocator and tells whether it did; any other address is left alone.
mi_decl_export bool mi_cfree(void* p) mi_attr_noexcept;

// mi__expand is mi_expand, after Microsoft's _expand.
mi_decl_export void* mi__expand(void* p, size_t newsize) mi_attr_noexcept;

// mi_malloc_size is mi_usable_size, after macOS.
mi_decl_nodiscard mi_decl_export size_t mi_malloc_size(const void* p) mi_attr_noexcept;

// mi_malloc_good_size is mi_good_size, after macOS.
mi_decl_nodiscard mi_decl_export size_t mi_malloc_good_size(size_t size) mi_attr_noexcept;

// malloc_object_size returns the bytes from p, which may point anywhere into a block, to the end of the block: an upper
// bound of what may be read or written there. 0 for NULL, SIZE_MAX for memory that is not of this allocator. A pointer
// into a block that has been freed is a violation. Declared also where malloc is not replaced.
mi_decl_nodiscard mi_decl_export size_t malloc_object_size(const void* p) mi_attr_noexcept;

// malloc_object_size_fast is malloc_object_size without the steps that may take long: it takes no lock, and answers
// SIZE_MAX where those would be needed.
mi_decl_nodiscard mi_decl_export size_t malloc_object_size_fast(const void* p) mi_attr_noexcept;

// mi_malloc_usable_size is mi_usable_size, after glibc.
mi_decl_nodiscard mi_decl_export size_t mi_malloc_usable_size(const void* p) mi_attr_noexcept;

// mi_posix_memalign stores in *p a block of size bytes at a multiple of alignment, as POSIX posix_memalign. It returns
// 0, EINVAL (p is NULL, or the alignment is no power of two or no multiple of sizeof(void*)) or ENOMEM; on error *p,
// and always errno, stay as they were.
mi_decl_export int mi_posix_memalign(void** p, size_t alignment, size_t size) mi_attr_noexcept;

// mi__posix_memalign is mi_posix_memalign.
mi_decl_export int mi__posix_memalign(void** p, size_t alignment, size_t size) mi_attr_noexcept;

// mi_memalign allocates size bytes at a multiple of alignment, after SunOS and glibc.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_memalign(size_t alignment, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(1);

// mi_valloc allocates size bytes at a multiple of the system's page size, after BSD.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_valloc(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_pvalloc is mi_valloc with the size rounded up to whole pages, after glibc.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_pvalloc(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_aligned_alloc allocates size bytes at a multiple of alignment, as C17 aligned_alloc.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_aligned_alloc(size_t alignment, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(1);

// mi_reallocarray resizes p to count * size bytes, as POSIX.1-2024 reallocarray.
mi_decl_nodiscard mi_decl_export void* mi_reallocarray(void* p, size_t count, size_t size) mi_attr_noexcept
    mi_attr_alloc_size2(2, 3);

// mi_reallocarr resizes the block that *(void**)ptrp points to, to count * size bytes, after NetBSD. A count of 0 frees
// it and stores NULL. It returns 0, EINVAL (ptrp is NULL, or size is 0), EOVERFLOW or ENOMEM; on error the block and
// the pointer, and always errno, stay as they were.
mi_decl_nodiscard mi_decl_export int mi_reallocarr(void* ptrp, size_t count, size_t size) mi_attr_noexcept;

// mi_aligned_recalloc is mi_recalloc_aligned, after Microsoft's _aligned_recalloc.
mi_decl_nodiscard mi_decl_export void* mi_aligned_recalloc(void* p, size_t newcount, size_t size,
                                                           size_t alignment) mi_attr_noexcept;

// mi_aligned_offset_recalloc is mi_recalloc_aligned_at, after Microsoft's _aligned_offset_recalloc.
mi_decl_nodiscard mi_decl_export void* mi_aligned_offset_recalloc(void* p, size_t newcount, size_t size,
                                                                  size_t alignment, size_t offset) mi_attr_noexcept;

// mi_wcsdup returns a copy of the wide string s; NULL, errno untouched, when s is NULL.
mi_decl_nodiscard mi_decl_export mi_decl_restrict wchar_t* mi_wcsdup(const wchar_t* s) mi_attr_noexcept mi_attr_malloc;

// mi_mbsdup returns a copy of the multibyte string s; NULL, errno untouched, when s is NULL.
mi_decl_nodiscard mi_decl_export mi_decl_restrict unsigned char* mi_mbsdup(const unsigned char* s) mi_attr_noexcept
    mi_attr_malloc;

// mi_dupenv_s stores a copy of the environment variable name in *buf and its length with the zero in *size (which may
// be NULL), after Microsoft's _dupenv_s; NULL and 0 where there is no such variable. It returns 0, EINVAL (buf or name
// is NULL) or ENOMEM. It reads the environment: no other thread may change that meanwhile.
mi_decl_export int mi_dupenv_s(char** buf, size_t* size, const char* name) mi_attr_noexcept;

// mi_wdupenv_s is mi_dupenv_s for wide strings, converted as the locale says, with the length in wide characters. It
// returns EILSEQ where there is no conversion.
mi_decl_export int mi_wdupenv_s(wchar_t** buf, size_t* size, const wchar_t* name) mi_attr_noexcept;

// mi_free_size frees p, which was allocated with the given size (or has that usable size), as C23 free_sized. A size that
// cannot be the block's is a violation in the secure and strict builds; what realloc left in place is known by its new
// size.
mi_decl_export void mi_free_size(void* p, size_t size) mi_attr_noexcept;

// mi_free_size_aligned frees p, which was allocated with the given size and alignment, as C23 free_aligned_sized. As with
// mi_free_size, what cannot be is a violation.
mi_decl_export void mi_free_size_aligned(void* p, size_t size, size_t alignment) mi_attr_noexcept;

// mi_free_aligned frees p, which was allocated with the given alignment.
mi_decl_export void mi_free_aligned(void* p, size_t alignment) mi_attr_noexcept;

// ---- C++ operators. What operator new and delete do, for C and C++. These never return NULL, but for the nothrow forms. ----
// Out of memory, they call the handler that std::set_new_handler installed, as long as there is one, and try again.
// Where there is none they throw std::bad_alloc; a program without a C++ library is aborted with one line of
// explanation.

// mi_new allocates size bytes, as C++ operator new.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new(size_t size) mi_attr_malloc mi_attr_alloc_size(1);

// mi_new_aligned allocates size bytes at a multiple of alignment, as C++17 operator new. An alignment that is no power
// of two is treated as lack of memory, without calls of the handler.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_aligned(size_t size, size_t alignment) mi_attr_malloc
    mi_attr_alloc_size(1) mi_attr_alloc_align(2);

// mi_new_nothrow is mi_new that returns NULL in the end.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_nothrow(size_t size) mi_attr_noexcept mi_attr_malloc
    mi_attr_alloc_size(1);

// mi_new_aligned_nothrow is mi_new_aligned that returns NULL in the end.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_aligned_nothrow(size_t size, size_t alignment)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);

// mi_new_n is mi_new of count * size bytes; a product that overflows throws at once.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_n(size_t count, size_t size) mi_attr_malloc
    mi_attr_alloc_size2(1, 2);

// mi_new_realloc is mi_realloc that fails as mi_new.
mi_decl_nodiscard mi_decl_export void* mi_new_realloc(void* p, size_t newsize) mi_attr_alloc_size(2);

// mi_new_reallocn is mi_reallocn that fails as mi_new_n.
mi_decl_nodiscard mi_decl_export void* mi_new_reallocn(void* p, size_t newcount, size_t size)
    mi_attr_alloc_size2(2, 3);

// mi_heap_alloc_new is mi_new in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_alloc_new(mi_heap_t* heap, size_t size) mi_attr_malloc
    mi_attr_alloc_size(2);

// mi_heap_alloc_new_n is mi_new_n in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_alloc_new_n(mi_heap_t* heap, size_t count, size_t size)
    mi_attr_malloc mi_attr_alloc_size2(2, 3);

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_ALLOC_H
