// Owns: profilers: profiles that the program makes, attaches to heaps, starts and stops, and that write themselves to files.
// May include: base, sys, the public header.
// Called by: heap, api.
// Invariants: a profiler that is gone is known by its address or its number to be so, and nothing of it is read.
#pragma once

#include "mimalloc-profile.h"
#include "src/base/atomic.h"
#include "src/base/compiler.h"

// A profiler that samples nothing yet: with a sample in `rate` bytes (0: the option's), and files base.process.number.pb. NULL:
// errno is EINVAL for a name that is none or too long, EAGAIN where there are as many as there may be, ENOMEM. `time_interval`: seconds.
mi_profiler_t* _mi_profiler_new(size_t rate, const char* base, size_t alloc_interval, size_t inuse_interval, size_t time_interval);

// Its end, with all that it has recorded. Nothing happens if it is none.
void _mi_profiler_delete(mi_profiler_t* profiler);

// The number that heaps know it by; 0: it is no profiler.
uint32_t _mi_profiler_number(const mi_profiler_t* profiler);

// Begins, or goes on, to sample; ends. False: it does that already, or is no profiler, or a visitor calls.
bool _mi_profiler_set_sampling(mi_profiler_t* profiler, bool samples);

// Writes its next file. False: it is no profiler any more, a visitor calls, or it cannot be written.
bool _mi_profiler_write(uint32_t number);

// The profiler of the environment, made when the process starts: its number; 0: it asks for none. And its last file.
uint32_t _mi_profiler_load(void);
void _mi_profiler_process_done(void);
