// Owns: what every fuzz target shares: how a finding is told, and the input as a stream of numbers.
// May include: the C library only.
// Called by: the targets and the other files of fuzz/lib.
// Invariants: a finding is one line that begins `==<process>==ERROR: `, as those of the sanitizers do, and then SIGABRT, for which
// libFuzzer keeps the input. Reading beyond the end of an input gives zeroes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What libFuzzer calls, and in its place fuzz/lib/replay.c.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerInitialize(int* argc, char*** argv);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* two, size_t two_size, uint8_t* out,
                                 size_t max_size, unsigned seed);

// Says what was found and ends the process.
__attribute__((noreturn, format(printf, 1, 2))) void mi_fuzz_fail(const char* fmt, ...);

// A finding unless the condition holds; the text tells what was there and what should be.
#define MI_FUZZ_CHECK(cond, ...)            \
  do {                                      \
    if (!(cond)) mi_fuzz_fail(__VA_ARGS__); \
  } while (0)

typedef struct mi_fuzz_input_s {
  const uint8_t* at;
  size_t left;
} mi_fuzz_input_t;

static inline uint64_t mi_fuzz_take(mi_fuzz_input_t* input, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes && input->left > 0; i++) {
    value |= (uint64_t)*input->at << (8 * i);
    input->at++;
    input->left--;
  }
  return value;
}

// A small generator, for what an input should not have to spell out.
static inline uint64_t mi_fuzz_random(uint64_t* state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}
