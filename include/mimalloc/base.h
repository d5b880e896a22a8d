// Owns: what all parts of the public interface need: attributes, conventions, types.
// May include: nothing but the language's own headers.
// Called by: mimalloc.h, which programs include, and its parts.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_BASE_H
#define MIMALLOC_BASE_H

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

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_BASE_H
