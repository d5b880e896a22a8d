// Owns: the form of an input that is a stream of operations, and how one is changed into another that is still one.
// May include: fuzz/lib.
// Called by: fuzz_ops, fuzz_misuse.
// Invariants: any bytes are a stream: what is no whole operation at the end is not there, and every field stands for something
// whatever it holds, so that a change of one byte changes one thing.
#pragma once

#include "fuzz/lib/fuzz.h"

enum {
  MI_FUZZ_HEAD = 8,       // bytes before the first operation
  MI_FUZZ_OP_SIZE = 8,    // bytes of one
  MI_FUZZ_OPS_MAX = 800,  // what lies behind these is not there
};

// What a run begins with.
typedef struct mi_fuzz_head_s {
  uint32_t seed;     // of the allocator's random numbers and of contents
  uint8_t settings;  // bits that choose values of options
  uint8_t reserved[3];
} mi_fuzz_head_t;

typedef struct mi_fuzz_op_s {
  uint8_t code;  // what is done, modulo how much there is
  uint8_t slot;  // the block it is done with
  uint8_t form;  // which function of a kind does it
  uint8_t more;  // heap, alignment, thread
  uint32_t n;    // what a size is made of
} mi_fuzz_op_t;

// The head of an input, and the number of its operations.
size_t mi_fuzz_read_head(const uint8_t* data, size_t size, mi_fuzz_head_t* head);

mi_fuzz_op_t mi_fuzz_read_op(const uint8_t* data, size_t index);

// Changes a stream: inserts, deletes, repeats, moves and changes operations. `codes`: how many there are of them.
size_t mi_fuzz_mutate_ops(uint8_t* data, size_t size, size_t max_size, uint64_t seed, unsigned codes);

// A stream that begins as one and goes on as another.
size_t mi_fuzz_cross_ops(const uint8_t* one, size_t one_size, const uint8_t* two, size_t two_size, uint8_t* out, size_t max_size,
                         uint64_t seed);

// A size that operations ask for: the low bits of `form` choose the kind, `n` the size. Mostly small, with all kinds of pages, the
// edges of classes, and what nothing can serve.
size_t mi_fuzz_size(uint8_t form, uint32_t n);
