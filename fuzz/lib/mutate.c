// Owns: changing streams of operations.
// May include: fuzz/lib.
// Called by: through ops.h.
// Invariants: what it makes is a head and whole operations, within max_size; it needs no allocator, so that engines load it alone.
#include <string.h>

#include "fuzz/lib/ops.h"

// Engines other than libFuzzer have none.
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

static void mi_fuzz_random_op(uint8_t* op, uint64_t* seed, unsigned codes) {
  const uint64_t r = mi_fuzz_random(seed);
  memcpy(op, &r, MI_FUZZ_OP_SIZE);
  // A code beyond the last would stand for one all the same; so each is as likely, and inputs stay alike.
  op[0] = (uint8_t)(op[0] % codes);
}

static void mi_fuzz_change_field(uint8_t* op, uint64_t* seed, unsigned codes) {
  const uint64_t r = mi_fuzz_random(seed);
  switch (r % 8) {
    case 0: op[0] = (uint8_t)((r >> 8) % codes); break;
    case 1: op[1] = (uint8_t)(r >> 8); break;
    case 2: op[1] = (uint8_t)(op[1] + (r & 256 ? 1 : -1)); break;
    case 3: op[2] = (uint8_t)(r >> 8); break;
    case 4: op[3] = (uint8_t)(r >> 8); break;
    case 5: memcpy(op + 4, (const uint8_t*)&r + 2, 4); break;
    default: {
      uint32_t n;
      memcpy(&n, op + 4, sizeof(n));
      n += (uint32_t)(r >> 8) % 17 - 8;
      memcpy(op + 4, &n, sizeof(n));
      break;
    }
  }
}

size_t mi_fuzz_mutate_ops(uint8_t* data, size_t size, size_t max_size, uint64_t seed, unsigned codes) {
  if (max_size < MI_FUZZ_HEAD + MI_FUZZ_OP_SIZE) {
    return size < max_size ? size : max_size;
  }
  if (size < MI_FUZZ_HEAD) {
    memset(data + size, 0, MI_FUZZ_HEAD - size);
    size = MI_FUZZ_HEAD;
  }
  uint8_t* const ops = data + MI_FUZZ_HEAD;
  size_t count = (size - MI_FUZZ_HEAD) / MI_FUZZ_OP_SIZE;
  size_t room = (max_size - MI_FUZZ_HEAD) / MI_FUZZ_OP_SIZE;
  room = room < MI_FUZZ_OPS_MAX ? room : MI_FUZZ_OPS_MAX;
  count = count < room ? count : room;
  for (uint64_t rounds = 1 + mi_fuzz_random(&seed) % 4; rounds > 0; rounds--) {
    const uint64_t r = mi_fuzz_random(&seed);
    const size_t at = count == 0 ? 0 : (size_t)(r >> 8) % count;
    const size_t run = 1 + (size_t)(r >> 40) % (r & 128 ? 4 : 32);
    uint8_t* const here = ops + at * MI_FUZZ_OP_SIZE;
    const size_t behind = (count - at) * MI_FUZZ_OP_SIZE;
    switch (count == 0 ? 0 : r % 16) {
      case 0:
      case 1:
      case 2:
      case 3: {  // insert
        const size_t fresh = run < room - count ? run : room - count;
        memmove(here + fresh * MI_FUZZ_OP_SIZE, here, behind);
        for (size_t i = 0; i < fresh; i++) {
          mi_fuzz_random_op(here + i * MI_FUZZ_OP_SIZE, &seed, codes);
        }
        count += fresh;
        break;
      }
      case 4:
      case 5: {  // delete
        const size_t gone = run < count - at ? run : count - at;
        memmove(here, here + gone * MI_FUZZ_OP_SIZE, behind - gone * MI_FUZZ_OP_SIZE);
        count -= gone;
        break;
      }
      case 6:
      case 7: {  // repeat, often with other slots
        size_t again = run < count - at ? run : count - at;
        again = again < room - count ? again : room - count;
        memmove(here + again * MI_FUZZ_OP_SIZE, here, behind);
        const uint8_t shift = r & 64 ? (uint8_t)(r >> 56) : 0;
        for (size_t i = 0; i < again; i++) {
          here[i * MI_FUZZ_OP_SIZE + 1] = (uint8_t)(here[i * MI_FUZZ_OP_SIZE + 1] + shift);
        }
        count += again;
        break;
      }
      case 8: {  // move one
        const size_t to = (size_t)(r >> 20) % count;
        uint8_t other[MI_FUZZ_OP_SIZE];
        memcpy(other, here, sizeof(other));
        memcpy(here, ops + to * MI_FUZZ_OP_SIZE, sizeof(other));
        memcpy(ops + to * MI_FUZZ_OP_SIZE, other, sizeof(other));
        break;
      }
      case 9: mi_fuzz_random_op(here, &seed, codes); break;
      case 10: data[r >> 32 & 7] = (uint8_t)(r >> 48); break;
      case 11:
        // What libFuzzer knows of values that were compared with.
        if (LLVMFuzzerMutate != NULL) {
          (void)LLVMFuzzerMutate(here, MI_FUZZ_OP_SIZE, MI_FUZZ_OP_SIZE);
        }
        break;
      default: mi_fuzz_change_field(here, &seed, codes); break;
    }
  }
  return MI_FUZZ_HEAD + count * MI_FUZZ_OP_SIZE;
}

size_t mi_fuzz_cross_ops(const uint8_t* one, size_t one_size, const uint8_t* two, size_t two_size, uint8_t* out, size_t max_size,
                         uint64_t seed) {
  if (one_size < MI_FUZZ_HEAD || two_size < MI_FUZZ_HEAD || max_size < MI_FUZZ_HEAD) {
    return 0;
  }
  const size_t one_ops = (one_size - MI_FUZZ_HEAD) / MI_FUZZ_OP_SIZE;
  const size_t two_ops = (two_size - MI_FUZZ_HEAD) / MI_FUZZ_OP_SIZE;
  size_t room = (max_size - MI_FUZZ_HEAD) / MI_FUZZ_OP_SIZE;
  size_t head = (size_t)(mi_fuzz_random(&seed) % (one_ops + 1));
  const size_t skip = (size_t)(mi_fuzz_random(&seed) % (two_ops + 1));
  head = head < room ? head : room;
  room -= head;
  const size_t tail = two_ops - skip < room ? two_ops - skip : room;
  memcpy(out, one, MI_FUZZ_HEAD + head * MI_FUZZ_OP_SIZE);
  memcpy(out + MI_FUZZ_HEAD + head * MI_FUZZ_OP_SIZE, two + MI_FUZZ_HEAD + skip * MI_FUZZ_OP_SIZE, tail * MI_FUZZ_OP_SIZE);
  return MI_FUZZ_HEAD + (head + tail) * MI_FUZZ_OP_SIZE;
}
