// Owns: the public interface of heaps, visits of blocks, theaps and sub-processes.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_HEAP_H
#define MIMALLOC_HEAP_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

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

// mi_heap_guarded_set_sample_rate has one in sample_rate allocations of the heap (NULL: the main heap) guarded from now on, in
// place of what the options say; 0: none. The choice follows from seed; 0: from the process's. For the calling thread it
// takes effect at once, for others with their next call that finds no block in a list. No effect where the variant does not sample.
mi_decl_export void mi_heap_guarded_set_sample_rate(mi_heap_t* heap, size_t sample_rate, size_t seed) mi_attr_noexcept;

// mi_heap_guarded_set_size_bound has only allocations of the heap of min up to max bytes guarded, both included; likewise.
mi_decl_export void mi_heap_guarded_set_size_bound(mi_heap_t* heap, size_t min, size_t max) mi_attr_noexcept;

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
#define mi_theap_guarded_set_sample_rate(theap, sample_rate, seed) mi_heap_guarded_set_sample_rate(theap, sample_rate, seed)
#define mi_theap_guarded_set_size_bound(theap, min, max) mi_heap_guarded_set_size_bound(theap, min, max)
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

// mi_theap_guarded_set_sample_rate is mi_heap_guarded_set_sample_rate for one thread's part of a heap, in place of what the
// heap says.
mi_decl_export void mi_theap_guarded_set_sample_rate(mi_theap_t* theap, size_t sample_rate, size_t seed) mi_attr_noexcept;

// mi_theap_guarded_set_size_bound is mi_heap_guarded_set_size_bound for one thread's part of a heap, likewise.
mi_decl_export void mi_theap_guarded_set_size_bound(mi_theap_t* theap, size_t min, size_t max) mi_attr_noexcept;

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

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_HEAP_H
