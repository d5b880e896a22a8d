// Owns: the public interface of processes, threads, messages and plain statistics.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_PROCESS_H
#define MIMALLOC_PROCESS_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

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
// allocates afterwards is served, slowly and from the main heap, until mi_thread_init sets it up again; from a heap that is
// bound to an arena it gets whole slices of that arena, or NULL.
mi_decl_export void mi_thread_done(void) mi_attr_noexcept;

// mi_thread_set_in_threadpool tells that the calling thread is one of a pool, which works on blocks of other threads: from
// then on its frees take over no page that another thread has filled.
mi_decl_export void mi_thread_set_in_threadpool(void) mi_attr_noexcept;

// mi_process_info stores times in milliseconds, memory in bytes and the number of page faults that needed a read. Any
// of the pointers may be NULL. Resident memory is the system's figure, committed memory our own: what blocks lie in and what
// is kept for the next, without the allocator's tables; where the system charges memory when it is touched, arenas count as
// far as they have been in use since they were purged, those of the program that it wanted committed in full.
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

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_PROCESS_H
