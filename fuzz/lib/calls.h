// Owns: the functions of the interface that make, resize and free blocks, as operations choose them.
// May include: fuzz/lib, mimalloc.h.
// Called by: fuzz_ops, fuzz_misuse.
// Invariants: each call is a right one, and what it returned is in the model afterwards.
#pragma once

#include "fuzz/lib/model.h"
#include "fuzz/lib/ops.h"

// Into an empty slot; nothing happens where there is no room.
void mi_fuzz_call_alloc(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);
void mi_fuzz_call_aligned(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);
void mi_fuzz_call_more(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);
void mi_fuzz_call_string(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);

// Of a live block.
void mi_fuzz_call_realloc(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);
void mi_fuzz_call_rezalloc(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);
void mi_fuzz_call_expand(mi_fuzz_block_t* block, const mi_fuzz_op_t* op);
void mi_fuzz_call_free(mi_fuzz_block_t* block, unsigned form);
