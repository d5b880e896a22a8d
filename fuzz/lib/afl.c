// Owns: a target's changes of streams as AFL++ calls them, from a library of its own.
// May include: fuzz/lib.
// Called by: afl-fuzz, which loads what fuzz/make makes of this, a target and mutate.c (AFL_CUSTOM_MUTATOR_LIBRARY).
// Invariants: the changes are those that libFuzzer gets from the target; the same seed and inputs give the same streams.
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/ops.h"

void* afl_custom_init(void* afl, unsigned seed);
size_t afl_custom_fuzz(void* state, uint8_t* buf, size_t buf_size, uint8_t** out_buf, uint8_t* add_buf, size_t add_buf_size, size_t max_size);
void afl_custom_deinit(void* state);

typedef struct mi_afl_s {
  uint64_t seed;
  uint8_t out[MI_FUZZ_HEAD + MI_FUZZ_OPS_MAX * MI_FUZZ_OP_SIZE];
} mi_afl_t;

void* afl_custom_init(void* afl, unsigned seed) {
  (void)afl;
  mi_afl_t* const state = calloc(1, sizeof(*state));
  if (state != NULL) {
    state->seed = seed;
  }
  return state;
}

size_t afl_custom_fuzz(void* state, uint8_t* buf, size_t buf_size, uint8_t** out_buf, uint8_t* add_buf, size_t add_buf_size, size_t max_size) {
  mi_afl_t* const own = state;
  const size_t room = max_size < sizeof(own->out) ? max_size : sizeof(own->out);
  const uint64_t r = mi_fuzz_random(&own->seed);
  size_t size = 0;
  // As often as libFuzzer does.
  if (add_buf != NULL && r % 8 == 0) {
    size = LLVMFuzzerCustomCrossOver(buf, buf_size, add_buf, add_buf_size, own->out, room, (unsigned)(r >> 32));
  }
  if (size == 0) {
    size = buf_size < room ? buf_size : room;
    memcpy(own->out, buf, size);
    size = LLVMFuzzerCustomMutator(own->out, size, room, (unsigned)(r >> 32));
  }
  *out_buf = own->out;
  return size;
}

void afl_custom_deinit(void* state) { free(state); }
