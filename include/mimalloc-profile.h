// Owns: profilers: heap profiles of the whole program, of a sub-process or of one heap, that write themselves to files.
// May include: mimalloc.h.
// Called by: programs.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_PROFILE_H
#define MIMALLOC_PROFILE_H

#include "mimalloc.h"

#if defined(__cplusplus)
extern "C" {
#endif

// ---- Profilers. Heap profiles of the program, of a sub-process or of a heap, written to files that pprof reads. ----
//
// A profiler is made, attached to heaps, and started. Then it samples what is allocated there, as the profile of
// mimalloc/profile.h does: each sampled block is recorded with the calls that led to it, and not any more when it is freed. There
// can be 127 profilers at once. A heap follows one: its own, if that samples; else the one of its sub-process; else the profile of
// mi_prof_start, if that runs. What is allocated for one profile is in no other.
//
// A profiler writes files in the format profile.proto, named base.process.number.pb, where process is the process's number and
// number counts from 0001: when the program asks for it, and whenever one of the intervals that it was made with has ended, which
// is found out by the next sample, in the call that allocates it. Each file has what was allocated since the start (alloc_space,
// alloc_objects) and what of that lives (inuse_space, inuse_objects), estimated from the samples. It is made for its owner alone;
// one that is there already is written only if it is a plain file of this user with no other name.
//
// With the environment variable MIMALLOC_PROFILE=base a process has a profiler of all heaps of the main sub-process from its
// start, with options profile_sample_rate and profile_alloc_interval, profile_inuse_interval, profile_time_interval; it writes
// its last file when the process ends. A process with more rights than its starter ignores all that.
//
// All functions may be called from any thread; from inside of a visitor of the profile (mi_prof_visit) they do nothing, and
// return false or NULL. What they change holds for the calling thread at once, for each other thread with its next allocation that finds
// no block at hand. A forked child goes on with its copies, and writes files with its own number.

// mi_profiler_t is a profiler.
typedef struct mi_profiler_s mi_profiler_t;

// mi_pprof_profiler_new makes a profiler that samples one allocation in initial_threshold bytes, on average; 0: as option
// profile_sample_rate says, 524288 by default. Its files' names begin with base_file_name, of 1023 bytes at most. It writes one
// whenever alloc_interval_size bytes were allocated, inuse_interval_size bytes more are in use than ever before, or
// time_interval_secs seconds have passed; 0: never for that reason. NULL: errno is EINVAL for a name that is none or too long,
// EAGAIN where there are 127, ENOMEM where there is no memory.
mi_decl_nodiscard mi_decl_export mi_profiler_t* mi_pprof_profiler_new(size_t initial_threshold, const char* base_file_name,
                                                                      size_t alloc_interval_size, size_t inuse_interval_size,
                                                                      size_t time_interval_secs) mi_attr_noexcept;

// mi_pprof_profiler_delete ends a profiler with all that it has recorded, without a last file; NULL is ignored. Heaps that it is
// attached to have none any more.
mi_decl_export void mi_pprof_profiler_delete(mi_profiler_t* profiler) mi_attr_noexcept;

// mi_profile attaches a profiler to the heaps of the main sub-process, those that there will be as well, but not to those that
// have one of their own or are excluded. NULL detaches the one that was attached so. False: it is no profiler.
mi_decl_export bool mi_profile(mi_profiler_t* profiler) mi_attr_noexcept;

// mi_subproc_profile is mi_profile for another sub-process. False also if there is no such sub-process.
mi_decl_export bool mi_subproc_profile(mi_subproc_id_t subproc_id, mi_profiler_t* profiler) mi_attr_noexcept;

// mi_heap_profile attaches a profiler to a heap (NULL: the main heap) in place of any other. A profiler of NULL detaches: the heap
// has none, until mi_subproc_profile attaches one to its sub-process again. False: it is no profiler, or no heap.
mi_decl_export bool mi_heap_profile(mi_heap_t* heap, mi_profiler_t* profiler) mi_attr_noexcept;

// mi_heap_profile_disable excludes a heap (NULL: the main heap) from all profiles, that of mi_prof_start too, whatever is attached
// to its sub-process later; until mi_heap_profile is called for it.
mi_decl_export void mi_heap_profile_disable(mi_heap_t* heap) mi_attr_noexcept;

// mi_profiler_start lets a profiler sample, from now on or again. False: it does, or it is no profiler.
mi_decl_export bool mi_profiler_start(mi_profiler_t* profiler) mi_attr_noexcept;

// mi_profiler_stop ends that. What was sampled stays recorded, and the frees of it are noted. False: it does not sample, or it is no
// profiler.
mi_decl_export bool mi_profiler_stop(mi_profiler_t* profiler) mi_attr_noexcept;

// mi_profiler_snapshot writes the next file now, whether the profiler samples or not. False: it cannot be written, or it is no
// profiler.
mi_decl_export bool mi_profiler_snapshot(mi_profiler_t* profiler) mi_attr_noexcept;

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_PROFILE_H
