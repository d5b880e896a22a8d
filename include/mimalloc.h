// Owns: the public interface in C and C++: every function, its promise and its errors.
// May include: nothing but the language's own headers.
// Called by: programs; and by our own units, for the public types.
// Invariants: each function here is exported and defined in every variant; none is declared ahead of its definition.
#ifndef MIMALLOC_H
#define MIMALLOC_H

// MI_MALLOC_VERSION is the version of the interface: major * 10000 + minor * 100 + patch.
#define MI_MALLOC_VERSION 30403

#if defined(__cplusplus)
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#endif
#include <stdbool.h>
#include <stddef.h>

// ---- Attributes. Programs may use these names as well. ----
//
// On Windows, a program that links the DLL defines MI_SHARED_LIB, and what builds the DLL MI_SHARED_LIB_EXPORT as well.

// mi_attr_noexcept says that a function throws nothing.
// mi_decl_nodiscard makes the compiler warn where a result is not used.
// mi_decl_export makes a name visible to other modules.
// mi_decl_restrict says, before a result, that no other pointer leads to it, where mi_attr_malloc cannot.
// mi_attr_malloc says so behind the parameters.
// mi_attr_alloc_size(s) says which parameter is the size of the result.
// mi_attr_alloc_size2(s1, s2) says which two parameters multiply to it.
// mi_attr_alloc_align(a) says which parameter is the alignment of the result.
// mi_cdecl is the calling convention of the functions that programs hand over.

#if defined(__cplusplus)
#if __cplusplus >= 201103L
#define mi_attr_noexcept noexcept
#else
#define mi_attr_noexcept throw()
#endif
#else
#define mi_attr_noexcept
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L
#define mi_decl_nodiscard [[nodiscard]]
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L
#define mi_decl_nodiscard [[nodiscard]]
#elif defined(__GNUC__)
#define mi_decl_nodiscard __attribute__((warn_unused_result))
#else
#define mi_decl_nodiscard
#endif

#if defined(_WIN32) && defined(MI_SHARED_LIB_EXPORT)
#define mi_decl_export __declspec(dllexport)
#elif defined(_WIN32) && defined(MI_SHARED_LIB)
#define mi_decl_export __declspec(dllimport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define mi_decl_export __attribute__((visibility("default")))
#else
#define mi_decl_export
#endif

#if defined(_WIN32)
#define mi_cdecl __cdecl
#else
#define mi_cdecl
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define mi_decl_restrict __declspec(restrict)
#else
#define mi_decl_restrict
#endif

#if defined(__GNUC__)
#define mi_attr_malloc __attribute__((malloc))
#define mi_attr_alloc_size(s) __attribute__((alloc_size(s)))
#define mi_attr_alloc_size2(s1, s2) __attribute__((alloc_size(s1, s2)))
#define mi_attr_alloc_align(a) __attribute__((alloc_align(a)))
#else
#define mi_attr_malloc
#define mi_attr_alloc_size(s)
#define mi_attr_alloc_size2(s1, s2)
#define mi_attr_alloc_align(a)
#endif

// ---- Conventions. They hold for every function below unless its own comment says otherwise. ----
//
// * Sizes, alignments and offsets are bytes.
// * A block is aligned to at least 16 bytes, as max_align_t asks. A size of 0 gives a unique block that must be freed.
// * A failed allocation returns NULL with errno ENOMEM; so does one whose size, or count * size, exceeds PTRDIFF_MAX.
// * An alignment is a power of two, up to at least 1 GiB; any other returns NULL with errno EINVAL.
// * Success, and every way of freeing, leave errno as it was.
// * A reallocation that fails leaves the old block as it was. A NULL block is allocated anew. A new size of 0 keeps a
//   unique block of no bytes.
// * Every function may be called from any thread at any time, also before main and after exit; a block may be freed or
//   resized by another thread than the one that allocated it. None may be called from a signal handler.
// * A pointer given to be freed, resized or measured is NULL or a live block of this allocator. Anything else is a
//   violation: what follows is up to the variant and to the option on_violation.

#if defined(__cplusplus)
extern "C" {
#endif

// ---- Types. What the functions take and give. ----

// mi_heap_t is a heap: a set of blocks that can be freed as a whole. It may be used by any thread.
typedef struct mi_heap_s mi_heap_t;

// MI_API_V2, defined before this header is included, gives a program that was written for version 2 of the interface the
// types and argument orders that it knows: a number instead of an address for an arena, an address instead of a struct for
// a sub-process, and threads' heaps that are heaps.
#if defined(MI_API_V2)
typedef mi_heap_t mi_theap_t;
typedef int mi_arena_id_t;
#else
// mi_theap_t is what one thread has of a heap. It is for that thread only.
typedef struct mi_theap_s mi_theap_t;

// mi_arena_id_t names an arena: memory that was reserved in one piece. NULL (0 with MI_API_V2) stands for none.
typedef void* mi_arena_id_t;
#endif

// mi_subproc_id_t names a sub-process: threads, and heaps that they share with each other only. A null pointer in it stands
// for the main sub-process.
typedef struct mi_subproc_id_s {
  void* _mi_subproc_id;
} mi_subproc_id_t;

// mi_heap_area_t is what the visitor of a heap's blocks is told of the memory that they lie in.
typedef struct mi_heap_area_s {
  void* blocks;            // where the blocks begin
  size_t reserved;         // bytes of address space
  size_t committed;        // bytes that are in use or ready to be
  size_t used;             // how many blocks are live
  size_t block_size;       // bytes of a block that may be used
  size_t full_block_size;  // bytes from one block to the next
  union {
    int heap_tag;     // the tag of the heap
    void* reserved1;  // nothing, in version 3 of the interface
  };
} mi_heap_area_t;

// mi_block_visit_fun receives an area, and then each live block of it; block is NULL the first time. It returns whether
// to go on.
typedef bool(mi_cdecl mi_block_visit_fun)(const mi_heap_t* heap, const mi_heap_area_t* area, void* block,
                                          size_t block_size, void* arg);

// mi_heap_visit_fun receives a heap and returns whether to go on.
typedef bool(mi_cdecl mi_heap_visit_fun)(mi_heap_t* heap, void* arg);

// mi_commit_fun_t makes size bytes at start usable (commit) or takes them back, and returns whether it did. Both are
// multiples of mi_arena_min_alignment. When it commits it may store true in *is_zero: the bytes read as zeroes now. Any
// thread that allocates or frees calls it; it must not allocate from the arena it serves.
typedef bool(mi_cdecl mi_commit_fun_t)(bool commit, void* start, size_t size, bool* is_zero, void* user_arg);

// mi_deferred_free_fun frees what a program has put off freeing: all of it if forced. The heartbeat counts its calls.
typedef void(mi_cdecl mi_deferred_free_fun)(bool force, unsigned long long heartbeat, void* arg);

// mi_output_fun receives one piece of a message, zero-terminated, and the argument it was registered with.
typedef void(mi_cdecl mi_output_fun)(const char* msg, void* arg);

// mi_error_fun receives an error code of errno.h and the argument it was registered with.
typedef void(mi_cdecl mi_error_fun)(int err, void* arg);

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

// ---- Heaps. Sets of blocks that can be ended as a whole. ----

// A heap is a set of blocks: it can be ended with all of them at once. Every thread may allocate from every heap, and free
// its blocks with mi_free, at any time. Whoever ends a heap, by mi_heap_delete or mi_heap_destroy, may be any thread, also
// when the heap's maker has ended. No call may be given a heap that is being ended or has ended; one that comes later is
// reported as use-after-free and served from the main heap, as long as no new heap has taken the place.

// mi_heap_new makes a heap; NULL with errno ENOMEM when there is no memory for it.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new(void);

#if defined(MI_API_V2)
#define mi_heap_new_ex mi_heap_new_ex_v2
#define mi_heap_new_in_arena mi_heap_new_in_arena_v2
#else
// mi_heap_new_ex makes a heap with a tag of 0 to 255, which visits show; mi_heap_destroy ends it like mi_heap_delete unless
// allow_destroy; its blocks come from one arena unless arena_id is NULL (0 with MI_API_V2). NULL with errno EINVAL for a tag
// or an arena that there is not.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_ex(int heap_tag, bool allow_destroy, mi_arena_id_t arena_id);

// mi_heap_new_in_arena makes a heap whose blocks come from one arena: when that is full its functions fail. An arena_id of
// NULL is as mi_heap_new; errors as mi_heap_new_ex.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t arena_id);
#endif

// mi_heap_new_ex_v2 is mi_heap_new_ex for programs of version 2, where an arena is a number. With MI_API_V2 the name
// without _v2 stands for it.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_ex_v2(int heap_tag, bool allow_destroy, int arena_id);

// mi_heap_new_in_arena_v2 is mi_heap_new_in_arena likewise.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_in_arena_v2(int arena_id);

// mi_heap_try_new is mi_heap_new, but leaves errno as it is when it returns NULL.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_try_new(void);

// mi_heap_new_qsbr makes a heap for threads that say when they are quiescent, by mi_theap_quiescent_abandon. Every heap can
// be used so: this is mi_heap_new.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_qsbr(void);

// mi_heap_delete ends a heap; its live blocks belong to the main heap from then on. Other threads may meanwhile free,
// resize and use the heap's blocks, and those whose default heap it is may allocate: they have the main heap for it then.
// NULL is ignored; the main heap is refused with a warning, and a heap that has ended is reported as double-free.
mi_decl_export void mi_heap_delete(mi_heap_t* heap);

// mi_heap_destroy ends a heap and frees all of its blocks at once. Meanwhile no thread may use its blocks, or allocate from
// it, also as its default heap; those whose default it is have the main heap for it then. Where blocks have checked ends
// those of live ones are checked as by a free. Exceptions as in mi_heap_delete.
mi_decl_export void mi_heap_destroy(mi_heap_t* heap);

// mi_heap_main returns the heap that functions without a heap argument allocate from, unless the thread chose another.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_main(void);

// mi_heap_get_default returns the heap that functions without a heap argument allocate from in the calling thread, malloc
// and new included.
mi_decl_export mi_heap_t* mi_heap_get_default(void);

// mi_heap_set_default makes a heap (NULL: the main heap) the calling thread's default one, and returns the one before. A
// thread begins with the main heap, and a forked child with what the forking thread had.
mi_decl_export mi_heap_t* mi_heap_set_default(mi_heap_t* heap);

// mi_heap_get_backing returns the heap that a thread's default heap is at first: the main heap.
mi_decl_export mi_heap_t* mi_heap_get_backing(void);

// mi_heap_collect frees what the calling thread keeps for reuse in this heap; with force also what it would soon need.
mi_decl_export void mi_heap_collect(mi_heap_t* heap, bool force);

// mi_heap_set_numa_affinity asks for the heap's memory to be near a NUMA node from now on; a negative one: anywhere.
mi_decl_export void mi_heap_set_numa_affinity(mi_heap_t* heap, int numa_node);

// mi_heap_set_debug_fill_preserve keeps the first `preserve` bytes (a multiple of 8 is made of it) of the heap's blocks from being filled when they are
// freed, where the variant fills freed blocks (debug), but for the 8 bytes of the link. It holds for memory that the heap gets
// from now on: call it before the first allocation. The strict variant zeroes freed blocks whatever this says.
mi_decl_export void mi_heap_set_debug_fill_preserve(mi_heap_t* heap, size_t preserve);

// mi_heap_of returns the heap that has a block at p, or anywhere around it; NULL if there is none. Any address may be asked.
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_of(const void* p);

// mi_heap_contains tells whether p points into memory that the heap (NULL: the main heap) has blocks in. Any address may be
// asked.
mi_decl_nodiscard mi_decl_export bool mi_heap_contains(const mi_heap_t* heap, const void* p);

// mi_any_heap_contains tells whether p points into memory that any heap has blocks in. Any address may be asked.
mi_decl_nodiscard mi_decl_export bool mi_any_heap_contains(const void* p);

// mi_heap_contains_block tells whether p, a live block, is the heap's. Of other addresses it tells what mi_heap_contains does.
mi_decl_export bool mi_heap_contains_block(mi_heap_t* heap, const void* p);

// mi_heap_check_owned is mi_heap_contains under the name of version 2.
mi_decl_export bool mi_heap_check_owned(mi_heap_t* heap, const void* p);

// mi_unsafe_heap_page_is_under_utilized tells whether less than perc_threshold percent of the blocks are in use where p, a
// live block, lies, so that a copy of it made now would let memory go. It is for blocks that the calling thread allocated
// from the heap (NULL: the main heap), and may err for others'; false for those that stand alone.
mi_decl_export bool mi_unsafe_heap_page_is_under_utilized(mi_heap_t* heap, void* p, size_t perc_threshold) mi_attr_noexcept;

// The following are the functions of the same name without `heap_`, in a heap. A NULL heap stands for the default one.

// mi_heap_malloc is mi_malloc in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_malloc(mi_heap_t* heap, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2);

// mi_heap_zalloc is mi_zalloc in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_zalloc(mi_heap_t* heap, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2);

// mi_heap_calloc is mi_calloc in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_calloc(mi_heap_t* heap, size_t count, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);

// mi_heap_mallocn is mi_mallocn in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_mallocn(mi_heap_t* heap, size_t count, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);

// mi_heap_malloc_small is mi_malloc_small in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_malloc_small(mi_heap_t* heap, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

// mi_heap_zalloc_small is mi_zalloc_small in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_zalloc_small(mi_heap_t* heap, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

// mi_heap_realloc is mi_realloc in a heap; a block that moves, moves into this heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_realloc(mi_heap_t* heap, void* p, size_t newsize) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_heap_reallocn is mi_reallocn in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_reallocn(mi_heap_t* heap, void* p, size_t count, size_t size)
    mi_attr_noexcept mi_attr_alloc_size2(3, 4);

// mi_heap_reallocf is mi_reallocf in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_reallocf(mi_heap_t* heap, void* p, size_t newsize) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_heap_rezalloc is mi_rezalloc in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_rezalloc(mi_heap_t* heap, void* p, size_t newsize) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_heap_recalloc is mi_recalloc in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_recalloc(mi_heap_t* heap, void* p, size_t newcount, size_t size)
    mi_attr_noexcept mi_attr_alloc_size2(3, 4);

// mi_heap_strdup is mi_strdup in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_heap_strdup(mi_heap_t* heap, const char* s) mi_attr_noexcept
    mi_attr_malloc;

// mi_heap_strndup is mi_strndup in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_heap_strndup(mi_heap_t* heap, const char* s, size_t n)
    mi_attr_noexcept mi_attr_malloc;

// mi_heap_realpath is mi_realpath in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_heap_realpath(mi_heap_t* heap, const char* fname,
                                                                         char* resolved_name) mi_attr_noexcept;

// mi_heap_malloc_aligned is mi_malloc_aligned in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_malloc_aligned(mi_heap_t* heap, size_t size,
                                                                               size_t alignment) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);

// mi_heap_malloc_aligned_at is mi_malloc_aligned_at in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_malloc_aligned_at(mi_heap_t* heap, size_t size,
                                                                                  size_t alignment, size_t offset)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

// mi_heap_zalloc_aligned is mi_zalloc_aligned in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_zalloc_aligned(mi_heap_t* heap, size_t size,
                                                                               size_t alignment) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);

// mi_heap_zalloc_aligned_at is mi_zalloc_aligned_at in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_zalloc_aligned_at(mi_heap_t* heap, size_t size,
                                                                                  size_t alignment, size_t offset)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

// mi_heap_calloc_aligned is mi_calloc_aligned in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_calloc_aligned(mi_heap_t* heap, size_t count,
                                                                               size_t size, size_t alignment)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3) mi_attr_alloc_align(4);

// mi_heap_calloc_aligned_at is mi_calloc_aligned_at in a heap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_calloc_aligned_at(mi_heap_t* heap, size_t count,
                                                                                  size_t size, size_t alignment,
                                                                                  size_t offset) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size2(2, 3);

// mi_heap_realloc_aligned is mi_realloc_aligned in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_realloc_aligned(mi_heap_t* heap, void* p, size_t newsize,
                                                               size_t alignment) mi_attr_noexcept mi_attr_alloc_size(3)
    mi_attr_alloc_align(4);

// mi_heap_realloc_aligned_at is mi_realloc_aligned_at in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize,
                                                                  size_t alignment, size_t offset) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_heap_rezalloc_aligned is mi_rezalloc_aligned in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_rezalloc_aligned(mi_heap_t* heap, void* p, size_t newsize,
                                                                size_t alignment) mi_attr_noexcept mi_attr_alloc_size(3)
    mi_attr_alloc_align(4);

// mi_heap_rezalloc_aligned_at is mi_rezalloc_aligned_at in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_rezalloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize,
                                                                   size_t alignment, size_t offset) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_heap_recalloc_aligned is mi_recalloc_aligned in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_recalloc_aligned(mi_heap_t* heap, void* p, size_t newcount,
                                                                size_t size, size_t alignment) mi_attr_noexcept
    mi_attr_alloc_size2(3, 4) mi_attr_alloc_align(5);

// mi_heap_recalloc_aligned_at is mi_recalloc_aligned_at in a heap.
mi_decl_nodiscard mi_decl_export void* mi_heap_recalloc_aligned_at(mi_heap_t* heap, void* p, size_t newcount,
                                                                   size_t size, size_t alignment, size_t offset)
    mi_attr_noexcept mi_attr_alloc_size2(3, 4);

// ---- Visits of blocks. A function of the program is told of all that is live. ----

// A visit calls the visitor for each area of memory that the heap has blocks in, with block NULL, and then, with
// visit_blocks, for each live block in it with the size that mi_usable_size would tell. It returns false if the visitor did,
// which ends the visit at once, or if more than 30 visits are under way.
//
// * Of a block that was aligned with an offset the visitor gets the beginning, which may lie before the address that the
//   program has; its size counts from there. Such an address may be given to mi_free and the rest all the same.
// * What waits in a quarantine is not live.
// * The visitor may allocate and free, also the block that it is told of and others, and may visit. It may not end the heap.
// * Other threads may go on meanwhile, and may end. In variants with live bits (secure, strict, debug) each block that is live
//   throughout the visit is told once; of those that come or go meanwhile some are. Without (release) that holds as long as
//   no other thread allocates from the heap or frees its blocks meanwhile; if one does, blocks of memory that other
//   threads allocate from may be left out, or be told when they are free, but nothing worse happens.

// mi_heap_visit_blocks visits all blocks of a heap (NULL: the main heap), whichever thread allocated them.
mi_decl_export bool mi_heap_visit_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);

// mi_heap_visit_abandoned_blocks visits those of a heap (NULL: the main heap) in memory that no thread owns: what threads
// have left that have ended, what was full when its thread looked for room, and blocks that stand alone.
mi_decl_export bool mi_heap_visit_abandoned_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);

// mi_abandoned_visit_blocks is mi_heap_visit_abandoned_blocks of each heap of a sub-process that has a tag, or any for -1.
// False as well when there is no such sub-process.
mi_decl_export bool mi_abandoned_visit_blocks(mi_subproc_id_t subproc_id, int heap_tag, bool visit_blocks,
                                              mi_block_visit_fun* visitor, void* arg);

// ---- Theaps. Threads' parts of heaps: to name one spares looking for it. ----

// A theap lasts as long as its thread and its heap, and until mi_theap_delete. Used by another thread it stands for that
// thread's theap of the same heap. NULL stands for the default theap of the calling thread.

// With MI_API_V2 threads' heaps are heaps, and the names that version 2 had stand for those of heaps.
#if defined(MI_API_V2)
#define mi_theap_get_default() mi_heap_get_default()
#define mi_theap_set_default(theap) mi_heap_set_default(theap)
#define mi_theap_collect(theap, force) mi_heap_collect(theap, force)
#define mi_theap_malloc(theap, size) mi_heap_malloc(theap, size)
#define mi_theap_zalloc(theap, size) mi_heap_zalloc(theap, size)
#define mi_theap_calloc(theap, count, size) mi_heap_calloc(theap, count, size)
#define mi_theap_malloc_small(theap, size) mi_heap_malloc_small(theap, size)
#define mi_theap_zalloc_small(theap, size) mi_heap_zalloc_small(theap, size)
#define mi_theap_malloc_aligned(theap, size, alignment) mi_heap_malloc_aligned(theap, size, alignment)
#define mi_theap_realloc(theap, p, newsize) mi_heap_realloc(theap, p, newsize)
#else

// mi_heap_theap returns the calling thread's theap of a heap (NULL: the main heap); NULL when there is no memory for it.
mi_decl_export mi_theap_t* mi_heap_theap(mi_heap_t* heap);

// mi_theap_get_default returns the theap that functions without a heap argument allocate from in the calling thread.
mi_decl_export mi_theap_t* mi_theap_get_default(void);

// mi_theap_set_default makes a theap of the calling thread its default one, and returns the one before. NULL: that of the
// main heap.
mi_decl_export mi_theap_t* mi_theap_set_default(mi_theap_t* theap);

// mi_theap_collect is mi_heap_collect for a theap.
mi_decl_export void mi_theap_collect(mi_theap_t* theap, bool force) mi_attr_noexcept;

// mi_theap_delete ends a theap ahead of its thread; its blocks stay as they are, with the heap. That of the main heap is
// refused with a warning.
mi_decl_export void mi_theap_delete(mi_theap_t* theap);

// mi_theap_quiescent_abandon lets go of the memory that the theap allocates from, for a thread that will not for a while:
// other threads that use the heap may have what is free of it. The theap goes on to be usable, and takes memory again then.
mi_decl_export void mi_theap_quiescent_abandon(mi_theap_t* theap);

// mi_theap_visit_blocks visits, like mi_heap_visit_blocks, the blocks in memory that the theap's thread was the last to
// allocate from. Blocks of no bytes are no thread's.
mi_decl_export bool mi_theap_visit_blocks(const mi_theap_t* theap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);

// The following are the functions of the same name without `theap_`, in a theap.

// mi_theap_malloc is mi_malloc in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_malloc(mi_theap_t* theap, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2);

// mi_theap_zalloc is mi_zalloc in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_zalloc(mi_theap_t* theap, size_t size) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2);

// mi_theap_calloc is mi_calloc in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_calloc(mi_theap_t* theap, size_t count, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);

// mi_theap_malloc_small is mi_malloc_small in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_malloc_small(mi_theap_t* theap, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

// mi_theap_zalloc_small is mi_zalloc_small in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_zalloc_small(mi_theap_t* theap, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

// mi_theap_wmalloc_small is mi_wmalloc_small in a theap: the size is in words.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_wmalloc_small(mi_theap_t* theap, size_t wsize)
    mi_attr_noexcept mi_attr_malloc;

// mi_theap_wzalloc_small is mi_wzalloc_small in a theap: the size is in words.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_wzalloc_small(mi_theap_t* theap, size_t wsize)
    mi_attr_noexcept mi_attr_malloc;

// mi_theap_malloc_aligned is mi_malloc_aligned in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_malloc_aligned(mi_theap_t* theap, size_t size,
                                                                                size_t alignment) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);

// mi_theap_zalloc_aligned is mi_zalloc_aligned in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_zalloc_aligned(mi_theap_t* theap, size_t size,
                                                                                size_t alignment) mi_attr_noexcept
    mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);

// mi_theap_realloc is mi_realloc in a theap; a block that moves, moves into its heap.
mi_decl_nodiscard mi_decl_export void* mi_theap_realloc(mi_theap_t* theap, void* p, size_t newsize) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_theap_rezalloc is mi_rezalloc in a theap.
mi_decl_nodiscard mi_decl_export void* mi_theap_rezalloc(mi_theap_t* theap, void* p, size_t newsize) mi_attr_noexcept
    mi_attr_alloc_size(3);

// mi_theap_alloc_new is mi_new in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_alloc_new(mi_theap_t* theap, size_t size) mi_attr_malloc
    mi_attr_alloc_size(2);

// mi_theap_alloc_new_n is mi_new_n in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_alloc_new_n(mi_theap_t* theap, size_t count, size_t size)
    mi_attr_malloc mi_attr_alloc_size2(2, 3);

// mi_theap_alloc_new_nothrow is mi_new_nothrow in a theap.
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_alloc_new_nothrow(mi_theap_t* theap, size_t size)
    mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

#endif

// ---- Sub-processes. Each has threads and heaps of its own; a thread is in the main one at first. ----
//
// A thread allocates from the main heap of its sub-process, mi_heap_main() returns that heap, and mi_heap_new() makes heaps in
// it. Memory that a thread leaves when it ends is used again by threads of its sub-process only. Blocks may be used and freed
// by every thread of the process.

// mi_subproc_main names the sub-process that there is from the start.
mi_decl_export mi_subproc_id_t mi_subproc_main(void);

// mi_subproc_current names the sub-process of the calling thread.
mi_decl_export mi_subproc_id_t mi_subproc_current(void);

// mi_subproc_new makes a sub-process without threads; a null pointer in the result, with errno ENOMEM, when there is no memory
// for it.
mi_decl_export mi_subproc_id_t mi_subproc_new(void);

// mi_subproc_delete ends a sub-process and its heaps. It is refused, with a warning, for the main sub-process, and while one
// of its threads or blocks lives; blocks that another thread has freed count until that thread collects, where freed blocks
// wait. A null pointer is ignored.
mi_decl_export void mi_subproc_delete(mi_subproc_id_t subproc);

// mi_subproc_destroy ends a sub-process, its heaps, and all blocks in them at once. Meanwhile no thread may be in a call that
// allocates or frees in them, or use such a block. Threads that it still has are in the main sub-process from their next
// allocation on. The main sub-process is refused with a warning; a null pointer is ignored.
mi_decl_export void mi_subproc_destroy(mi_subproc_id_t subproc);

// mi_subproc_add_current_thread makes the calling thread one of the sub-process until the thread ends, mi_thread_done is
// called, or another call of this. It may have allocated before: those blocks stay where they are, and so do heaps, which it
// may go on using. Its default heap is the sub-process's main heap then. Nothing changes, but for a warning, where there is no
// such sub-process or no memory. Not for deferred frees and output functions.
mi_decl_export void mi_subproc_add_current_thread(mi_subproc_id_t subproc);

// mi_subproc_visit_heaps calls visitor for each heap of the sub-process, the main heap first, until it returns false. No lock
// is held: heaps may be made and ended by any thread, but the one being visited by the visitor only. It returns false if the
// visitor did, or there is no such sub-process.
mi_decl_export bool mi_subproc_visit_heaps(mi_subproc_id_t subproc, mi_heap_visit_fun* visitor, void* arg);

// ---- Arenas. Blocks lie in large pieces of memory. The process makes what it needs; a program may reserve some ahead, lend
// its own, and keep a piece for certain heaps (exclusive). Such an arena stays to the end of the process. ----

// mi_reserve_os_memory reserves an arena of at least size bytes from the system: committed, if commit says so, else
// bit by bit when it is used; with allow_large in OS pages of 2 MiB if the administrator has set enough of them aside
// (vm.nr_hugepages), and if not, after a warning, in ordinary ones. Large and huge OS pages are never purged or guarded;
// after a fork whoever writes to them needs free ones to copy to, or the system ends the child. Returns 0 or ENOMEM.
mi_decl_export int mi_reserve_os_memory(size_t size, bool commit, bool allow_large) mi_attr_noexcept;

// mi_manage_os_memory lends size bytes at start to the allocator, for good. The whole slices in it are used, see
// mi_arena_min_alignment; the metadata stands elsewhere. is_committed: they are readable and writable, else the
// allocator makes them so when it needs them; is_pinned: they are never purged or guarded; is_zero: they read as zeroes;
// numa_node: the node of their memory, -1 for none. The memory is never unmapped. Returns false, after a warning, where no
// whole slice is in it, it overlaps an arena or a block of this allocator, or its addresses are out of reach.
mi_decl_export bool mi_manage_os_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                        int numa_node) mi_attr_noexcept;

// mi_reserve_huge_os_pages_at reserves an arena of pages OS pages of 1 GiB, or of OS pages of 2 MiB where there are none of
// those, on a node of memory, or anywhere for -1. It stops after about timeout_msecs milliseconds, 0 for never, or when no
// more can be had, with a warning and with what it has. Returns 0, or ENOMEM if that is nothing.
mi_decl_export int mi_reserve_huge_os_pages_at(size_t pages, int numa_node, size_t timeout_msecs) mi_attr_noexcept;

// mi_reserve_huge_os_pages_interleave does the same spread over the first numa_nodes nodes, 0 for all there are, with an
// arena on each. Returns 0, or ENOMEM if no node had any.
mi_decl_export int mi_reserve_huge_os_pages_interleave(size_t pages, size_t numa_nodes,
                                                       size_t timeout_msecs) mi_attr_noexcept;

// mi_reserve_huge_os_pages is mi_reserve_huge_os_pages_interleave over all nodes by its old name, in at most max_secs seconds, 0
// for any time; it stores how many pages there are. pages_reserved may be NULL.
mi_decl_export int mi_reserve_huge_os_pages(size_t pages, double max_secs, size_t* pages_reserved) mi_attr_noexcept;

// In the forms that follow an exclusive arena serves only heaps that are made in it. They store the arena's id, or none on
// failure; arena_id may be NULL. With MI_API_V2 an id is an int, and the names stand for those that end in _v2.
#if defined(MI_API_V2)
#define mi_reserve_os_memory_ex mi_reserve_os_memory_ex_v2
#define mi_manage_os_memory_ex mi_manage_os_memory_ex_v2
#define mi_reserve_huge_os_pages_at_ex mi_reserve_huge_os_pages_at_ex_v2
#define mi_arena_area mi_arena_area_v2
#else
// mi_reserve_os_memory_ex is mi_reserve_os_memory for an arena that may be exclusive.
mi_decl_export int mi_reserve_os_memory_ex(size_t size, bool commit, bool allow_large, bool exclusive,
                                           mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_manage_os_memory_ex is mi_manage_os_memory for an arena that may be exclusive.
mi_decl_export bool mi_manage_os_memory_ex(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                           int numa_node, bool exclusive, mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_manage_memory is mi_manage_os_memory_ex for memory that commit_fun commits and takes back; it gets commit_fun_arg
// each time. Where it refuses to commit an allocation fails, where it refuses to take back the memory stays committed.
// With a commit_fun of NULL the system's own calls do both.
mi_decl_export bool mi_manage_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                     int numa_node, bool exclusive, mi_commit_fun_t* commit_fun, void* commit_fun_arg,
                                     mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_reserve_huge_os_pages_at_ex is mi_reserve_huge_os_pages_at for an arena that may be exclusive.
mi_decl_export int mi_reserve_huge_os_pages_at_ex(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                                  mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_arena_area returns where an arena begins and stores its size, which may be NULL; NULL and 0 for no arena.
mi_decl_export void* mi_arena_area(mi_arena_id_t arena_id, size_t* size);

// mi_arena_contains tells whether p points into the arena. Any address may be asked.
mi_decl_export bool mi_arena_contains(mi_arena_id_t arena_id, const void* p);
#endif

// mi_reserve_os_memory_ex_v2 is mi_reserve_os_memory_ex in version 2 of the interface.
mi_decl_export int mi_reserve_os_memory_ex_v2(size_t size, bool commit, bool allow_large, bool exclusive,
                                              int* arena_id) mi_attr_noexcept;

// mi_manage_os_memory_ex_v2 is mi_manage_os_memory_ex in version 2 of the interface.
mi_decl_export bool mi_manage_os_memory_ex_v2(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                              int numa_node, bool exclusive, int* arena_id) mi_attr_noexcept;

// mi_reserve_huge_os_pages_at_ex_v2 is mi_reserve_huge_os_pages_at_ex in version 2 of the interface.
mi_decl_export int mi_reserve_huge_os_pages_at_ex_v2(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                                     int* arena_id) mi_attr_noexcept;

// mi_arena_area_v2 is mi_arena_area in version 2 of the interface.
mi_decl_export void* mi_arena_area_v2(int arena_id, size_t* size);

// mi_arena_min_alignment returns what the start of an arena is a multiple of, and its size: a slice.
mi_decl_export size_t mi_arena_min_alignment(void);

// mi_arena_min_size returns the size of the smallest arena.
mi_decl_export size_t mi_arena_min_size(void);

// mi_arena_max_object_size returns the size up to which blocks are placed in arenas, other than those of heaps that were
// made in one.
mi_decl_export size_t mi_arena_max_object_size(void);

// mi_arenas_purge gives the unused memory of all arenas back to the system now, whatever the option purge_delay says.
mi_decl_export void mi_arenas_purge(void) mi_attr_noexcept;

// mi_arenas_print writes a line for each arena to the registered output: its place, size, what of it is in use, and kind.
mi_decl_export void mi_arenas_print(void) mi_attr_noexcept;

// mi_debug_show_arenas is mi_arenas_print by another name.
mi_decl_export void mi_debug_show_arenas(void) mi_attr_noexcept;

// ---- Processes and threads. Their beginning and end, and messages. ----

// mi_version returns the MI_MALLOC_VERSION of the library that runs.
mi_decl_export int mi_version(void) mi_attr_noexcept;

// mi_collect frees what the calling thread keeps for reuse and purges what is due; with force it gives back to the
// system whatever can be given back now.
mi_decl_export void mi_collect(bool force) mi_attr_noexcept;

// mi_collect_reduce frees what the calling thread keeps for reuse, and lets other threads have the memory that it allocates
// from, until what it owns is at most target_thread_owned bytes. Live blocks stay where they are.
mi_decl_export void mi_collect_reduce(size_t target_thread_owned) mi_attr_noexcept;

// mi_thread_id_of returns a number for the thread that owns the memory around p, a live block: the same for all that this
// thread allocates from, and never that of another thread. 0 where no thread does: of blocks that stand alone, whose
// thread has ended, or where all around is in use. Any address may be asked.
mi_decl_nodiscard mi_decl_export size_t mi_thread_id_of(const void* p);

// mi_process_init sets the allocator up; it happens by itself and may be called again without effect.
mi_decl_export void mi_process_init(void) mi_attr_noexcept;

// mi_process_done does what is due at exit: statistics, if asked for, and with the option destroy_on_exit the release
// of all memory. It happens by itself at the end of the process.
mi_decl_export void mi_process_done(void) mi_attr_noexcept;

// mi_thread_init sets the calling thread up; it happens by itself and may be called again without effect.
mi_decl_export void mi_thread_init(void) mi_attr_noexcept;

// mi_thread_done gives up what the calling thread owns; it happens by itself when a thread ends. A thread that
// allocates afterwards is served, slowly and from the main heap, until mi_thread_init sets it up again.
mi_decl_export void mi_thread_done(void) mi_attr_noexcept;

// mi_thread_set_in_threadpool tells that the calling thread is one of a pool, which works on blocks of other threads: from
// then on its frees take over no page that another thread has filled.
mi_decl_export void mi_thread_set_in_threadpool(void) mi_attr_noexcept;

// mi_process_info stores times in milliseconds, memory in bytes and the number of page faults that needed a read. Any
// of the pointers may be NULL. Resident memory is the system's figure, committed memory our own.
mi_decl_export void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs,
                                    size_t* current_rss, size_t* peak_rss, size_t* current_commit, size_t* peak_commit,
                                    size_t* page_faults) mi_attr_noexcept;

// mi_process_info_print writes a line with the figures of mi_process_info to the registered output.
mi_decl_export void mi_process_info_print(void) mi_attr_noexcept;

// mi_process_info_print_out is mi_process_info_print to out, or to the registered output if out is NULL.
mi_decl_export void mi_process_info_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

// mi_is_in_heap_region tells whether p points into a block's memory of this allocator. Any address may be asked.
mi_decl_nodiscard mi_decl_export bool mi_is_in_heap_region(const void* p) mi_attr_noexcept;

// mi_check_owned tells whether p points into memory that a heap of this process has blocks in. Any address may be
// asked.
mi_decl_export bool mi_check_owned(const void* p) mi_attr_noexcept;

// mi_is_redirected tells whether the program's calls of malloc arrive at this allocator.
mi_decl_nodiscard mi_decl_export bool mi_is_redirected(void) mi_attr_noexcept;

// mi_register_deferred_free registers a function that frees what the program has put off freeing; NULL unregisters it. A
// thread calls it from its own allocations, once for every 100 or so that are off the fast path, before it takes memory; from
// mi_collect and mi_heap_collect; and, with force true, from mi_collect(true) and when memory runs out: then it should free
// all that it can. heartbeat is 1 at a thread's first call and grows by 1 at each. The function may allocate and free, and
// is not called from inside itself; it must not end the heap that is allocated from, nor the thread. Threads call it at the
// same time. Not for signal handlers.
mi_decl_export void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) mi_attr_noexcept;

// mi_register_output makes out the receiver of all messages; NULL stands for standard error. The first function that is
// registered also gets what was written before, as far as it fits in 16 KiB. out must not allocate. Not for signal handlers.
mi_decl_export void mi_register_output(mi_output_fun* out, void* arg) mi_attr_noexcept;

// mi_register_error makes fun the first to learn of an error, before its message: EAGAIN for a double free, EFAULT for
// corrupted data of the allocator, EINVAL for an invalid pointer, ENOMEM and EOVERFLOW for a request that cannot be
// met. Of an error that ends the process it learns when the message is on standard error, and cannot change that by setting
// an option. NULL unregisters it. Not for signal handlers.
mi_decl_export void mi_register_error(mi_error_fun* fun, void* arg);

// ---- Statistics. Counts of memory and calls; the figures themselves are in mimalloc-stats.h. ----

// mi_stats_print writes the statistics of the process to the registered output; pass NULL for out.
mi_decl_export void mi_stats_print(void* out) mi_attr_noexcept;

// mi_stats_print_out is mi_stats_print to out, or to the registered output if out is NULL.
mi_decl_export void mi_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

// mi_heap_stats_print_out writes the statistics of one heap, which must exist, likewise; NULL: of the main heap.
mi_decl_export void mi_heap_stats_print_out(mi_heap_t* heap, mi_output_fun* out, void* arg) mi_attr_noexcept;

// mi_thread_stats_print_out writes, likewise, what the calling thread has: the blocks of the pages that are in its hands, and
// how many its pages have handed out.
mi_decl_export void mi_thread_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

// mi_stats_reset starts the counting anew, in the process and in every heap: totals and peaks are what there is now, and
// what only goes up is 0.
mi_decl_export void mi_stats_reset(void) mi_attr_noexcept;

// mi_stats_merge tells the heaps what the calling thread has noted for their peaks and has not told them yet. Functions that
// read statistics do so themselves.
mi_decl_export void mi_stats_merge(void) mi_attr_noexcept;

// ---- Options. What can be set by the environment or the program. ----

// mi_option_t names an option. Its value is a long, in the unit named here; the environment variable MIMALLOC_<NAME>
// sets it at the start of the process. The numbers are part of the binary interface.
typedef enum mi_option_e {
  mi_option_show_errors = 0,                       // write messages of errors and warnings
  mi_option_show_stats = 1,                        // write statistics at exit
  mi_option_verbose = 2,                           // write what is being done; 2 and above: in detail
  mi_option_deprecated_eager_commit = 3,           // no effect
  mi_option_arena_eager_commit = 4,                // commit arenas at once: 0 no, 1 yes, 2 where the system overcommits
  mi_option_purge_decommits = 5,                   // purge by giving memory back (1) or by marking it unused (0)
  mi_option_allow_large_os_pages = 6,              // use OS pages of 2 MiB where the administrator has set some aside
  mi_option_reserve_huge_os_pages = 7,             // so many OS pages of 1 GiB are reserved at start
  mi_option_reserve_huge_os_pages_at = 8,          // the node of memory they come from; -1 all
  mi_option_reserve_os_memory = 9,                 // KiB that are reserved and committed at start
  mi_option_deprecated_segment_cache = 10,         // no effect
  mi_option_deprecated_page_reset = 11,            // no effect
  mi_option_deprecated_abandoned_page_purge = 12,  // no effect
  mi_option_deprecated_segment_reset = 13,         // no effect
  mi_option_deprecated_eager_commit_delay = 14,    // no effect
  mi_option_purge_delay = 15,                      // milliseconds until unused memory is purged; 0 at once, -1 never
  mi_option_use_numa_nodes = 16,                   // so many nodes of memory are told apart; 0 those of the machine
  mi_option_disallow_os_alloc = 17,                // blocks come only from arenas that were reserved or lent
  mi_option_os_tag = 18,                           // no effect but on macOS
  mi_option_max_errors = 19,                       // so many error messages at most; -1 no limit
  mi_option_max_warnings = 20,                     // so many warnings at most; -1 no limit
  mi_option_deprecated_max_segment_reclaim = 21,   // no effect
  mi_option_destroy_on_exit = 22,                  // release all memory at exit
  mi_option_arena_reserve = 23,                    // KiB of address space to reserve at a time
  mi_option_arena_purge_mult = 24,                 // purge_delay times this is the delay of arenas
  mi_option_deprecated_purge_extend_delay = 25,    // no effect
  mi_option_disallow_arena_alloc = 26,             // arenas that were reserved or lent serve only heaps in them
  mi_option_retry_on_oom = 27,                     // milliseconds to try again for when there is no memory
  mi_option_deprecated_visit_abandoned = 28,       // no effect: abandoned blocks can always be visited
  mi_option_guarded_min = 29,                      // no effect yet
  mi_option_guarded_max = 30,                      // no effect yet
  mi_option_unsafe_guarded_precise = 31,           // no effect yet
  mi_option_guarded_sample_rate = 32,              // no effect yet
  mi_option_guarded_sample_seed = 33,              // no effect yet
  mi_option_generic_collect = 34,                  // collect after so many slow allocations of a thread
  mi_option_page_reclaim_on_free = 35,             // take a full page over when freeing into it: 1, 0 only one's own, -1 never
  mi_option_page_full_retain = 36,                 // so many full pages stay with their thread in each size class
  mi_option_page_max_candidates = 37,              // so many pages are compared when one to allocate from is looked for
  mi_option_max_vabits = 38,                       // addresses have at most so many bits; 0 as the system says; read at start
  mi_option_pagemap_commit = 39,                   // commit the page map many entries at a time
  mi_option_page_commit_on_demand = 40,            // no effect
  mi_option_page_max_reclaim = 41,                 // take over one's own pages up to so many of a size class; -1 no limit
  mi_option_page_cross_thread_max_reclaim = 42,    // take over others' pages up to so many of a size class
  mi_option_allow_thp = 43,                        // let the system use transparent huge pages
  mi_option_arena_purge_min_size = 44,             // KiB that are purged at least; 0 the system's page size
  mi_option_arena_max_object_size = 45,            // KiB of the largest block that is placed in an arena
  mi_option_arena_is_numa_local = 46,              // an arena serves the node of memory that it was made on
  mi_option_stats_merge_on_collect = 47,           // no effect
  mi_option_profile_alloc_interval = 48,           // no effect yet, like the next three
  mi_option_profile_inuse_interval = 49,
  mi_option_profile_time_interval = 50,
  mi_option_profile_sample_rate = 51,
  mi_option_stats_merge_threshold = 52,       // no effect
  mi_option_arena_purge_immediate_size = 53,  // KiB from which on a piece is purged at once when freed; 0 none
  mi_option_prof = 54,                        // no effect yet, like the next six
  mi_option_prof_sample_rate = 55,
  mi_option_prof_bt_max = 56,
  mi_option_prof_accum = 57,
  mi_option_prof_seed = 58,
  mi_option_prof_max_bytes = 59,
  mi_option_memory_events = 60,
  mi_option_purge_zeroes = 61,                 // no effect
  mi_option_on_violation = 64,                 // 0 abort, 1 report, 2 ignore: what follows the report of bad use
  mi_option_guard_pages = 65,                  // 0 none, 1 the cheapest means the system has, 2 by mappings only
  mi_option_checked_copies = 66,               // check memcpy and its kin against the bounds of blocks; read at start
  mi_option_quarantine_blocks = 70,            // freed blocks of a class that wait in a thread; 0 none
  mi_option_quarantine_size = 71,              // KiB that they have at most; 0 none
  mi_option_family_check = 80,                 // 0 as on_violation, 1 report, 2 ignore: a free by another family
  mi_option_backtrace = 90,                    // so many calls are listed below a report of bad use
  mi_option_show_hardening = 91,               // write which mitigations are active when the process starts
  mi_option_target_segments_per_thread = 100,  // no effect
  _mi_option_last = 101,

  // Other names of the same options: older ones.
  mi_option_eager_commit = mi_option_deprecated_eager_commit,
  mi_option_eager_region_commit = mi_option_arena_eager_commit,
  mi_option_reset_decommits = mi_option_purge_decommits,
  mi_option_abandoned_page_purge = mi_option_deprecated_abandoned_page_purge,
  mi_option_abandoned_page_reset = mi_option_deprecated_abandoned_page_purge,
  mi_option_eager_commit_delay = mi_option_deprecated_eager_commit_delay,
  mi_option_reset_delay = mi_option_purge_delay,
  mi_option_large_os_pages = mi_option_allow_large_os_pages,
  mi_option_limit_os_alloc = mi_option_disallow_os_alloc,
  mi_option_max_segment_reclaim = mi_option_deprecated_max_segment_reclaim,
  mi_option_purge_extend_delay = mi_option_deprecated_purge_extend_delay,
  mi_option_visit_abandoned = mi_option_deprecated_visit_abandoned,
  mi_option_guarded_precise = mi_option_unsafe_guarded_precise,
  mi_option_abandoned_reclaim_on_free = mi_option_page_reclaim_on_free,
  mi_option_minimal_purge_size = mi_option_arena_purge_min_size
} mi_option_t;

// For all functions: a number that is no option reads 0 and cannot be set. An option changed while other threads run
// takes effect from their next look at it; some are looked at only when the process starts. Options are read-only memory
// but while one is set: where the system does not let that be opened, or a signal handler sets one while the code it
// interrupted does, the option stays as it was, and a line says so.

// mi_option_is_enabled tells whether the option's value is not 0.
mi_decl_nodiscard mi_decl_export bool mi_option_is_enabled(mi_option_t option);

// mi_option_enable sets the option to 1.
mi_decl_export void mi_option_enable(mi_option_t option);

// mi_option_disable sets the option to 0.
mi_decl_export void mi_option_disable(mi_option_t option);

// mi_option_set_enabled sets the option to 1 or 0.
mi_decl_export void mi_option_set_enabled(mi_option_t option, bool enable);

// mi_option_set_enabled_default is mi_option_set_default of 1 or 0.
mi_decl_export void mi_option_set_enabled_default(mi_option_t option, bool enable);

// mi_option_get returns the option's value, in the option's unit.
mi_decl_nodiscard mi_decl_export long mi_option_get(mi_option_t option);

// mi_option_get_clamp returns the option's value, or the nearer of min and max if it lies outside of them.
mi_decl_nodiscard mi_decl_export long mi_option_get_clamp(mi_option_t option, long min, long max);

// mi_option_get_size returns the option's value in bytes where its unit is KiB; a negative value as 0.
mi_decl_nodiscard mi_decl_export size_t mi_option_get_size(mi_option_t option);

// mi_option_set sets the option's value, in the option's unit.
mi_decl_export void mi_option_set(mi_option_t option, long value);

// mi_option_set_default sets the value unless the environment or the program has set one.
mi_decl_export void mi_option_set_default(mi_option_t option, long value);

// mi_options_print writes all options and their values to the registered output.
mi_decl_export void mi_options_print(void) mi_attr_noexcept;

// mi_options_print_out is mi_options_print to out, or to the registered output if out is NULL.
mi_decl_export void mi_options_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

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

#if defined(__cplusplus)

// ---- Allocators for containers of C++. They may be used wherever an allocator of the C++ library may. ----

// What the allocators below have in common: their types, and members that C++20 dropped but containers of C++11 call.
template <class T>
struct _mi_stl_allocator_base {
  typedef T value_type;
  typedef std::size_t size_type;
  typedef std::ptrdiff_t difference_type;
  typedef T& reference;
  typedef const T& const_reference;
  typedef T* pointer;
  typedef const T* const_pointer;
  typedef std::true_type propagate_on_container_copy_assignment;
  typedef std::true_type propagate_on_container_move_assignment;
  typedef std::true_type propagate_on_container_swap;

  size_type max_size() const noexcept { return static_cast<size_type>(PTRDIFF_MAX) / sizeof(T); }
  pointer address(reference x) const noexcept { return std::addressof(x); }
  const_pointer address(const_reference x) const noexcept { return std::addressof(x); }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  template <class U>
  void destroy(U* p) noexcept {
    p->~U();
  }

 protected:
  // mi_new and its kin know no alignment that is below this one.
  static constexpr bool is_over_aligned() { return alignof(T) > alignof(std::max_align_t); }
  static void free_n(T* p, size_type count) noexcept {
    if (is_over_aligned()) {
      mi_free_size_aligned(p, count * sizeof(T), alignof(T));
    } else {
      mi_free_size(p, count * sizeof(T));
    }
  }
};

// mi_stl_allocator allocates for the containers of the C++ library, from the main heap. It has no state: any instance
// frees what another allocated. It fails as mi_new.
template <class T>
struct mi_stl_allocator : public _mi_stl_allocator_base<T> {
  typedef std::size_t size_type;
  typedef std::true_type is_always_equal;
  // The same for other types.
  template <class U>
  struct rebind {
    typedef mi_stl_allocator<U> other;
  };

  mi_stl_allocator() noexcept = default;
  mi_stl_allocator(const mi_stl_allocator&) noexcept = default;
  mi_stl_allocator& operator=(const mi_stl_allocator&) noexcept = default;
  template <class U>
  mi_stl_allocator(const mi_stl_allocator<U>&) noexcept {}
  mi_stl_allocator select_on_container_copy_construction() const { return *this; }

  mi_decl_nodiscard T* allocate(size_type count, const void* = nullptr) {
    if (!this->is_over_aligned() || count > this->max_size()) {
      return static_cast<T*>(mi_new_n(count, sizeof(T)));
    }
    return static_cast<T*>(mi_new_aligned(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, size_type count) noexcept { this->free_n(p, count); }
};

template <class T, class U>
bool operator==(const mi_stl_allocator<T>&, const mi_stl_allocator<U>&) noexcept {
  return true;
}
template <class T, class U>
bool operator!=(const mi_stl_allocator<T>&, const mi_stl_allocator<U>&) noexcept {
  return false;
}

// MI_HAS_HEAP_STL_ALLOCATOR says that there are allocators that hold a heap.

#define MI_HAS_HEAP_STL_ALLOCATOR 1

// What allocators that hold a heap have in common. Copies share the heap; so do copies for another type. The last of
// those that share a heap of their own ends it.
template <class T, bool is_destroyed>
struct _mi_heap_stl_allocator_base : public _mi_stl_allocator_base<T> {
  typedef std::size_t size_type;
  typedef std::false_type is_always_equal;

  mi_decl_nodiscard T* allocate(size_type count, const void* = nullptr) {
    if (!this->is_over_aligned() || count > this->max_size()) {
      return static_cast<T*>(mi_heap_alloc_new_n(heap.get(), count, sizeof(T)));
    }
    for (;;) {
      void* const p = mi_heap_malloc_aligned(heap.get(), count * sizeof(T), alignof(T));
      if (p != nullptr) return static_cast<T*>(p);
      const std::new_handler handler = std::get_new_handler();
      if (handler == nullptr) return static_cast<T*>(fail());
      handler();
    }
  }
  void deallocate(T* p, size_type count) noexcept {
    if (!is_destroyed) this->free_n(p, count);
  }

  // Whether what one allocates the other can free: whether they hold the same heap.
  template <class U>
  bool is_equal(const _mi_heap_stl_allocator_base<U, is_destroyed>& other) const noexcept {
    return heap == other.heap;
  }

 protected:
  template <class U, bool d>
  friend struct _mi_heap_stl_allocator_base;

  // Throws std::bad_alloc: out of the library, since a program may be compiled without exceptions. The compiler would warn
  // of a product that it knows to overflow.
  static void* fail() {
    volatile std::size_t all = SIZE_MAX;
    return mi_new_n(all, 2);
  }
  static mi_heap_t* checked(mi_heap_t* h) { return h != nullptr ? h : static_cast<mi_heap_t*>(fail()); }
  static void end(mi_heap_t* h) { is_destroyed ? mi_heap_destroy(h) : mi_heap_delete(h); }
  static void keep(mi_heap_t*) {}

  _mi_heap_stl_allocator_base() : heap(checked(mi_heap_new()), end) {}
  explicit _mi_heap_stl_allocator_base(mi_heap_t* h) : heap(h, keep) {}
  // Copies only: an allocator that was moved from must still be equal to what it was.
  _mi_heap_stl_allocator_base(const _mi_heap_stl_allocator_base&) noexcept = default;
  _mi_heap_stl_allocator_base& operator=(const _mi_heap_stl_allocator_base&) noexcept = default;
  template <class U>
  explicit _mi_heap_stl_allocator_base(const _mi_heap_stl_allocator_base<U, is_destroyed>& other) noexcept
      : heap(other.heap) {}

  std::shared_ptr<mi_heap_t> heap;
};

// mi_heap_stl_allocator allocates for the containers of the C++ library from a heap: one given to it, which it does not
// end and which must outlive it, or else a new one, which ends with the last copy as by mi_heap_delete. It fails as
// mi_new; so does the making of a heap.
template <class T>
struct mi_heap_stl_allocator : public _mi_heap_stl_allocator_base<T, false> {
  // The same for other types.
  template <class U>
  struct rebind {
    typedef mi_heap_stl_allocator<U> other;
  };

  mi_heap_stl_allocator() = default;
  mi_heap_stl_allocator(mi_heap_t* hp) : _mi_heap_stl_allocator_base<T, false>(hp) {}
  mi_heap_stl_allocator(const mi_heap_stl_allocator&) noexcept = default;
  mi_heap_stl_allocator& operator=(const mi_heap_stl_allocator&) noexcept = default;
  template <class U>
  mi_heap_stl_allocator(const mi_heap_stl_allocator<U>& other) noexcept
      : _mi_heap_stl_allocator_base<T, false>(other) {}
  mi_heap_stl_allocator select_on_container_copy_construction() const { return *this; }
};

template <class T, class U>
bool operator==(const mi_heap_stl_allocator<T>& a, const mi_heap_stl_allocator<U>& b) noexcept {
  return a.is_equal(b);
}
template <class T, class U>
bool operator!=(const mi_heap_stl_allocator<T>& a, const mi_heap_stl_allocator<U>& b) noexcept {
  return !a.is_equal(b);
}

// mi_heap_destroy_stl_allocator is mi_heap_stl_allocator that frees nothing one by one: its own heap is destroyed with
// the last copy, as by mi_heap_destroy, and all blocks with it. With a heap given to it, that is left to the giver.
template <class T>
struct mi_heap_destroy_stl_allocator : public _mi_heap_stl_allocator_base<T, true> {
  // The same for other types.
  template <class U>
  struct rebind {
    typedef mi_heap_destroy_stl_allocator<U> other;
  };

  mi_heap_destroy_stl_allocator() = default;
  mi_heap_destroy_stl_allocator(mi_heap_t* hp) : _mi_heap_stl_allocator_base<T, true>(hp) {}
  mi_heap_destroy_stl_allocator(const mi_heap_destroy_stl_allocator&) noexcept = default;
  mi_heap_destroy_stl_allocator& operator=(const mi_heap_destroy_stl_allocator&) noexcept = default;
  template <class U>
  mi_heap_destroy_stl_allocator(const mi_heap_destroy_stl_allocator<U>& other) noexcept
      : _mi_heap_stl_allocator_base<T, true>(other) {}
  mi_heap_destroy_stl_allocator select_on_container_copy_construction() const { return *this; }
};

template <class T, class U>
bool operator==(const mi_heap_destroy_stl_allocator<T>& a, const mi_heap_destroy_stl_allocator<U>& b) noexcept {
  return a.is_equal(b);
}
template <class T, class U>
bool operator!=(const mi_heap_destroy_stl_allocator<T>& a, const mi_heap_destroy_stl_allocator<U>& b) noexcept {
  return !a.is_equal(b);
}

#endif  // __cplusplus

#endif  // MIMALLOC_H
