// Owns: what stands around each call of the interface: errno, the errors it may report, and what an operation names.
// May include: fuzz/lib, mimalloc.h.
// Called by: the files of fuzz/lib that call.
// Invariants: between mi_fuzz_begin and mi_fuzz_end there is one call of the allocator.
#pragma once

#include "fuzz/lib/model.h"
#include "fuzz/lib/ops.h"

enum { MI_FUZZ_ERRNO = 4711 };

// A heap that is there, and the acting thread's part of it.
mi_heap_t* mi_fuzz_heap(uint8_t index);
mi_theap_t* mi_fuzz_theap(uint8_t index);

// A call begins. `size` is what it asks for.
void mi_fuzz_begin(const char* name, size_t size);

// It has ended with p: errno is as it was, or ENOMEM where that is NULL.
void mi_fuzz_end(const void* p);

// Mostly small alignments; up to 64 MiB.
size_t mi_fuzz_align(uint8_t more);

// Rarely more than the alignment; often no multiple of 16.
size_t mi_fuzz_offset(const mi_fuzz_op_t* op);

// What is known of the address after a call that names no alignment: a block that stays is aligned as it was.
void mi_fuzz_expect_stays(const mi_fuzz_block_t* block, const void* p, mi_fuzz_expect_t* expect);

// Whether a request can be met for certain: some functions end the process where there is no memory.
bool mi_fuzz_is_servable(size_t size);

// For functions with `size`, `p`, and for the second `expect` and `index`: does it, and says what it was.
#define CALL(call) (mi_fuzz_begin(#call, size), p = (call), mi_fuzz_end(p))
#define HEAP_CALL(call) (expect.heap = index, CALL(call))
