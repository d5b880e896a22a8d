// Owns: the target that writes the end of a block, overwrites some of it, and has it checked.
// May include: fuzz/lib, hardening.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: a changed byte behind the request is seen; one of the request is not; all ways to write and to compare agree.
#include <string.h>

#include "fuzz/lib/fuzz.h"
#include "hardening/padding.h"

enum { ROOM_MAX = 2048 };

// Aligned as blocks are; the end is the end of what may be touched.
static uint64_t memory[(ROOM_MAX + MI_PADDING_SIZE) / 8];

static void mi_check_right(const uint8_t* trailer, size_t room, size_t slack, const mi_padding_key_t* key, const char* how) {
  size_t told = SIZE_MAX;
  uint64_t difference;
  const uint64_t word = _mi_hard_padding_load(trailer);
  MI_FUZZ_CHECK(_mi_hard_padding_decode(word, (uintptr_t)trailer, room, key, &told, &difference) && told == slack,
                "%s: slack %zu of %zu is told as %zu", how, slack, room, told);
  MI_FUZZ_CHECK(_mi_hard_padding_is_trailer(trailer, word, room, key), "%s: slack %zu: no trailer", how, slack);
  MI_FUZZ_CHECK(_mi_hard_padding_is_right(trailer, room, key), "%s: slack %zu of %zu: not right", how, slack, room);
  MI_FUZZ_CHECK(_mi_hard_padding_compare(trailer, slack) == slack && _mi_hard_padding_compare_bytes(trailer - slack, slack) == slack,
                "%s: slack %zu: a byte is said to be bad", how, slack);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  const uint64_t a = mi_fuzz_take(&input, 8);
  const mi_padding_key_t key = _mi_hard_padding_key(a, mi_fuzz_take(&input, 8));
  // Blocks are multiples of 16, so there are 8 bytes and a multiple of 16 before a trailer.
  const size_t room = 8 + 16 * ((size_t)mi_fuzz_take(&input, 1) % (ROOM_MAX / 16));
  const size_t slack = (size_t)mi_fuzz_take(&input, 2) % (room + 1);
  const unsigned how = (unsigned)mi_fuzz_take(&input, 1);
  uint8_t* const block = (uint8_t*)memory;
  uint8_t* const trailer = block + room;
  memset(memory, 0, sizeof(memory));
  if (how % 4 == 0) {
    _mi_hard_padding_rewrite(trailer, slack, &key);
    mi_check_right(trailer, room, slack, &key, "rewrite");
  } else if (how % 4 == 1 && slack <= MI_PADDING_SHORT && room >= MI_PADDING_SHORT) {
    _mi_hard_padding_write_short(trailer, slack, &key);
    mi_check_right(trailer, room, slack, &key, "write_short");
  } else {
    _mi_hard_padding_write(trailer, slack, &key);
    mi_check_right(trailer, room, slack, &key, "write");
  }
  // The program writes what it asked for.
  const size_t request = room - slack;
  for (size_t i = 0; i < request; i++) {
    block[i] = (uint8_t)(a >> i % 57);
  }
  mi_check_right(trailer, room, slack, &key, "after the program wrote");
  // And resizes within the block.
  if ((how & 16) != 0) {
    const size_t other = (size_t)mi_fuzz_take(&input, 2) % (room + 1);
    _mi_hard_padding_rewrite(trailer, other, &key);
    mi_check_right(trailer, room, other, &key, "resized");
    _mi_hard_padding_rewrite(trailer, slack, &key);
  }
  uint8_t before[ROOM_MAX + MI_PADDING_SIZE];
  memcpy(before, block, room + MI_PADDING_SIZE);
  size_t bad = room + MI_PADDING_SIZE;
  while (input.left > 0) {
    const size_t at = request + (size_t)mi_fuzz_take(&input, 2) % (slack + MI_PADDING_SIZE);
    block[at] = (uint8_t)mi_fuzz_take(&input, 1);
  }
  for (size_t i = request; i < room + MI_PADDING_SIZE; i++) {
    bad = block[i] != before[i] && i < bad ? i : bad;
  }
  if (bad == room + MI_PADDING_SIZE) {
    mi_check_right(trailer, room, slack, &key, "as it was");
    return 0;
  }
  // What changes the slack in the trailer alone may name another right one, if the bytes before it happen to fit: then the
  // canary above and below it are what an attacker would have to leave alone, and the bytes in the new slack decide.
  const bool only_slack_bits = ((_mi_hard_padding_load(trailer) ^ mi_padding_get(before + room)) & (MI_PADDING_LOW_MASK | MI_PADDING_HIGH_MASK)) == 0;
  if (bad < room || !only_slack_bits) {
    const uint64_t now = _mi_hard_padding_load(trailer) ^ mi_padding_canary((uintptr_t)trailer, &key);
    // Bytes that became part of the request by that are nobody's to check.
    const bool moved = only_slack_bits && (now >> MI_PADDING_SLACK_SHIFT) != slack;
    MI_FUZZ_CHECK(moved || !_mi_hard_padding_is_right(trailer, room, &key), "byte %zu of %zu was overwritten, request %zu: not seen", bad, room,
                  request);
  }
  if (bad < room) {
    MI_FUZZ_CHECK(_mi_hard_padding_compare_bytes(trailer - slack, slack) == bad - request, "byte %zu is bad, %zu is told", bad - request,
                  _mi_hard_padding_compare_bytes(trailer - slack, slack));
    MI_FUZZ_CHECK(_mi_hard_padding_compare(trailer, slack) == bad - request, "byte %zu is bad, %zu is told", bad - request,
                  _mi_hard_padding_compare(trailer, slack));
  }
  return 0;
}
