// Owns: the target that keeps lists of free blocks with encoded links, overwrites some of the links, and follows them.
// May include: fuzz/lib, hardening.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: what was stored is read back; a link that was overwritten or copied leads out of the page, but for a chance that no
// campaign meets.
#include <string.h>

#include "fuzz/lib/fuzz.h"
#include "hardening/free-list.h"

enum { PAGE = 65536,
       BLOCKS_MAX = 4096 };

static uintptr_t memory[PAGE / sizeof(uintptr_t)] __attribute__((aligned(65536)));
static uint16_t model[BLOCKS_MAX];  // the list, last pushed last
static bool listed[BLOCKS_MAX];

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  uint64_t seed = mi_fuzz_take(&input, 8);
  const uint64_t a = mi_fuzz_random(&seed);
  const uint64_t b = mi_fuzz_random(&seed);
  const mi_link_key_t key = _mi_hard_link_key(a, b, mi_fuzz_random(&seed));
  const uintptr_t inverse = _mi_hard_link_inverse(key.factor);
  MI_FUZZ_CHECK((uintptr_t)(key.factor * inverse) == 1, "the inverse of 0x%zx is not 0x%zx", (size_t)key.factor, (size_t)inverse);
  const size_t block = 16 * (1 + (size_t)mi_fuzz_take(&input, 1));
  const size_t count = PAGE / block;
  const uintptr_t page = (uintptr_t)memory;
  memset(listed, 0, sizeof(listed));
  size_t depth = 0;
  uintptr_t head = 0;
  while (input.left > 0) {
    const unsigned op = (unsigned)mi_fuzz_take(&input, 1);
    const size_t i = (size_t)mi_fuzz_take(&input, 2) % count;
    uintptr_t* const at = (uintptr_t*)(page + i * block);
    if (op % 4 < 2 && !listed[i]) {
      *at = _mi_hard_link_encode(head, (uintptr_t)at, &key);
      head = (uintptr_t)at;
      listed[i] = true;
      model[depth++] = (uint16_t)i;
    } else if (op % 4 == 2 && depth > 0) {
      const size_t top = model[--depth];
      MI_FUZZ_CHECK(head == page + top * block, "the list leads to 0x%zx instead of block %zu", (size_t)head, top);
      head = _mi_hard_link_decode(*(const uintptr_t*)head, head, &key, inverse);
      listed[top] = false;
      const uintptr_t next = depth == 0 ? 0 : page + model[depth - 1] * block;
      MI_FUZZ_CHECK(head == next, "a link is read as 0x%zx instead of 0x%zx", (size_t)head, (size_t)next);
    } else if (op % 4 == 3 && listed[i]) {
      const uintptr_t stored = *at;
      uintptr_t forged = (uintptr_t)mi_fuzz_take(&input, 8);
      switch (op >> 2 & 7) {
        case 0: forged = stored ^ (uintptr_t)1 << forged % (8 * sizeof(forged)); break;
        case 1: forged = (stored & ~(uintptr_t)0xff) | (forged & 0xff); break;
        case 2: forged = (stored & ~(uintptr_t)0xffff) | (forged & 0xffff); break;
        case 3: forged = (uintptr_t)(page + (forged % count) * block); break;
        case 4: forged = stored + forged % 4096 * 16; break;
        case 5: forged = *(const uintptr_t*)(page + model[forged % depth] * block); break;
        default: break;
      }
      if (forged != stored) {
        const uintptr_t next = _mi_hard_link_decode(forged, (uintptr_t)at, &key, inverse);
        MI_FUZZ_CHECK(next - page >= PAGE && next != 0, "a forged link of block %zu leads to 0x%zx, in the page", i, (size_t)next);
      }
    }
  }
  return 0;
}
