// Owns: reading streams of operations.
// May include: fuzz/lib, mimalloc.h.
// Called by: through ops.h.
// Invariants: nothing is read beyond the end of an input.
#include "fuzz/lib/ops.h"

#include "mimalloc.h"

size_t mi_fuzz_read_head(const uint8_t* data, size_t size, mi_fuzz_head_t* head) {
  mi_fuzz_input_t input = {data, size};
  head->seed = (uint32_t)mi_fuzz_take(&input, 4);
  head->settings = (uint8_t)mi_fuzz_take(&input, 1);
  const size_t count = size < MI_FUZZ_HEAD ? 0 : (size - MI_FUZZ_HEAD) / MI_FUZZ_OP_SIZE;
  return count < MI_FUZZ_OPS_MAX ? count : MI_FUZZ_OPS_MAX;
}

mi_fuzz_op_t mi_fuzz_read_op(const uint8_t* data, size_t index) {
  mi_fuzz_input_t input = {data + MI_FUZZ_HEAD + index * MI_FUZZ_OP_SIZE, MI_FUZZ_OP_SIZE};
  mi_fuzz_op_t op;
  op.code = (uint8_t)mi_fuzz_take(&input, 1);
  op.slot = (uint8_t)mi_fuzz_take(&input, 1);
  op.form = (uint8_t)mi_fuzz_take(&input, 1);
  op.more = (uint8_t)mi_fuzz_take(&input, 1);
  op.n = (uint32_t)mi_fuzz_take(&input, 4);
  return op;
}

size_t mi_fuzz_size(uint8_t form, uint32_t n) {
  switch (form & 15) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: return n % 1025;
    case 5: return n % 129;
    case 6:
    case 7: return n % 8200;
    case 8:
    case 9: return n % 70000;
    case 10: return n % 530000;
    case 11: return n % 5000000;
    case 12: return ((size_t)1 << n % 23) + (n >> 8) % 33 - 16;
    case 13: return mi_good_size(n % 100000) + (n >> 20) % 3 - 1;
    case 14: return n % 4;
    default: return n % 16 != 0 ? n % 3000 : (size_t)PTRDIFF_MAX - (n >> 8) % 100000 + (n & 16 ? 50000 : 0);
  }
}
