// Owns: tests of hardening/padding: every slack, and what each damaged byte is told.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: blocks stand in an array here; nothing is allocated.
#include "hardening/padding.h"

#include "test/lib/test.h"

enum { SIZE = 256,
       ROOM = SIZE - MI_PADDING_SIZE };

static mi_aligned(16) uint8_t mi_padding_test_block[SIZE];
static uint8_t* const mi_padding_test_trailer = mi_padding_test_block + ROOM;

static const mi_padding_key_t mi_padding_test_keys[] = {
    {0, 1}, {1, 3}, {UINT64_MAX, UINT64_MAX}, {UINT64_C(0x123456789abcdef1), UINT64_C(0x9e3779b97f4a7c15)}, {UINT64_C(0x8000000000000000), UINT64_C(0x8000000000000001)}};
enum { KEYS = sizeof(mi_padding_test_keys) / sizeof(mi_padding_test_keys[0]) };
static const mi_padding_key_t* const mi_padding_test_key = &mi_padding_test_keys[3];

// SIZE_MAX: no trailer.
static size_t mi_padding_test_slack(const mi_padding_key_t* key, uint64_t* difference) {
  size_t slack;
  const bool good = _mi_hard_padding_decode(_mi_hard_padding_load(mi_padding_test_trailer), (uintptr_t)mi_padding_test_trailer, ROOM,
                                            key, &slack, difference);
  return good ? slack : SIZE_MAX;
}

MI_TEST(every_slack) {
  for (size_t k = 0; k < KEYS; k++) {
    for (size_t slack = 0; slack <= ROOM; slack++) {
      for (int again = 0; again < (slack <= MI_PADDING_SHORT ? 3 : 2); again++) {
        // What is written at once goes into a block of zeroes.
        const uint8_t before = again == 2 ? 0 : 0x11;
        memset(mi_padding_test_block, before, SIZE);
        if (again == 2) {
          _mi_hard_padding_write_short(mi_padding_test_trailer, slack, &mi_padding_test_keys[k]);
        } else if (again == 0) {
          _mi_hard_padding_write(mi_padding_test_trailer, slack, &mi_padding_test_keys[k]);
        } else {
          _mi_hard_padding_rewrite(mi_padding_test_trailer, slack, &mi_padding_test_keys[k]);
        }
        uint64_t difference;
        MI_CHECK_EQ(mi_padding_test_slack(&mi_padding_test_keys[k], &difference), slack);
        MI_CHECK_EQ(_mi_hard_padding_compare(mi_padding_test_trailer, slack), slack);
        MI_CHECK_EQ(_mi_hard_padding_compare_bytes(mi_padding_test_trailer - slack, slack), slack);
        // The request is untouched, and a string in it ends at the latest behind it.
        MI_CHECK(mi_test_all_bytes(mi_padding_test_block, ROOM - slack, before));
        // The request may hold anything.
        memset(mi_padding_test_block, 0x99, ROOM - slack);
        MI_CHECK(_mi_hard_padding_is_right(mi_padding_test_trailer, ROOM, &mi_padding_test_keys[k]));
        MI_CHECK_EQ(_mi_hard_padding_is_right_and_short(mi_padding_test_trailer, &mi_padding_test_keys[k]), slack <= MI_PADDING_SHORT);
        MI_CHECK(_mi_hard_padding_is_trailer(mi_padding_test_trailer, _mi_hard_padding_load(mi_padding_test_trailer), ROOM, &mi_padding_test_keys[k]));
        // In a block that has less room it is none.
        MI_CHECK(slack == 0 || !_mi_hard_padding_is_trailer(mi_padding_test_trailer, _mi_hard_padding_load(mi_padding_test_trailer), slack - 1, &mi_padding_test_keys[k]));
        MI_CHECK(slack == 0 || !_mi_hard_padding_is_right(mi_padding_test_trailer, slack - 1, &mi_padding_test_keys[k]));
        MI_CHECK_EQ(mi_padding_test_block[ROOM - slack], 0);
        MI_CHECK_EQ(mi_padding_test_trailer[0], 0);
      }
    }
  }
}

MI_TEST(every_byte_of_slack) {
  for (size_t slack = 1; slack <= ROOM; slack += slack < 70 ? 1 : 37) {
    for (size_t bad = 0; bad < slack; bad++) {
      memset(mi_padding_test_block, 0, SIZE);
      _mi_hard_padding_write(mi_padding_test_trailer, slack, mi_padding_test_key);
      *(mi_padding_test_trailer - slack + bad) ^= 0x40;
      MI_CHECK_EQ(_mi_hard_padding_compare(mi_padding_test_trailer, slack), bad);
      MI_CHECK(!_mi_hard_padding_is_right(mi_padding_test_trailer, ROOM, mi_padding_test_key));
      MI_CHECK(!_mi_hard_padding_is_right_and_short(mi_padding_test_trailer, mi_padding_test_key));
      // The smallest block has less room than a short slack may need.
      MI_CHECK(slack > 8 || !_mi_hard_padding_is_right(mi_padding_test_trailer, 8, mi_padding_test_key));
      MI_CHECK_EQ(_mi_hard_padding_compare_bytes(mi_padding_test_trailer - slack, slack), bad);
    }
  }
}

// A request that becomes another in place.
MI_TEST(every_shift) {
  static uint8_t wanted[SIZE];
  for (size_t before = 0; before <= ROOM; before += 1 + before / 16) {
    for (size_t slack = 0; slack <= ROOM; slack += 1 + slack / 16) {
      memset(mi_padding_test_block, 0x55, SIZE);
      _mi_hard_padding_rewrite(mi_padding_test_trailer, slack, mi_padding_test_key);
      if (slack < before) {
        memset(mi_padding_test_trailer - before, 0, before - slack);
      }
      memcpy(wanted, mi_padding_test_block, SIZE);
      memset(mi_padding_test_block, 0x55, SIZE);
      _mi_hard_padding_rewrite(mi_padding_test_trailer, before, mi_padding_test_key);
      _mi_hard_padding_shift(mi_padding_test_trailer, before, slack, mi_padding_test_key);
      MI_CHECK_MSG(memcmp(wanted, mi_padding_test_block, SIZE) == 0, "slack of %zu bytes becomes %zu", before, slack);
    }
  }
}

MI_TEST(part_of_the_slack) {
  for (size_t slack = 1; slack <= ROOM; slack += slack < 70 ? 1 : 37) {
    for (size_t part = 0; part <= slack + 1; part++) {
      memset(mi_padding_test_block, 0x55, SIZE);
      _mi_hard_padding_rewrite(mi_padding_test_trailer, slack, mi_padding_test_key);
      MI_CHECK_EQ(_mi_hard_padding_compare_part(mi_padding_test_trailer, slack, part), slack);
      for (size_t bad = 0; bad < slack; bad += 1 + bad / 8) {
        *(mi_padding_test_trailer - (slack - bad)) ^= 0x40;
        MI_CHECK_EQ(_mi_hard_padding_compare_part(mi_padding_test_trailer, slack, part), bad < part ? bad : slack);
        *(mi_padding_test_trailer - (slack - bad)) ^= 0x40;
      }
    }
  }
}

// Any change of the bytes that a linear write meets first, from either side, is seen, and its side told.
MI_TEST(every_byte_of_the_trailer) {
  static const struct {
    size_t byte;
    bool from_behind;
  } rows[] = {{0, false}, {1, false}, {2, false}, {6, true}, {7, true}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    for (unsigned change = 1; change < 256; change++) {
      _mi_hard_padding_write(mi_padding_test_trailer, 5, mi_padding_test_key);
      mi_padding_test_trailer[rows[i].byte] ^= (uint8_t)change;
      uint64_t difference;
      MI_CHECK_EQ(mi_padding_test_slack(mi_padding_test_key, &difference), SIZE_MAX);
      MI_CHECK(!_mi_hard_padding_is_right(mi_padding_test_trailer, ROOM, mi_padding_test_key));
      MI_CHECK(!_mi_hard_padding_is_trailer(mi_padding_test_trailer, _mi_hard_padding_load(mi_padding_test_trailer), ROOM, mi_padding_test_key));
      MI_CHECK_EQ(_mi_hard_padding_hit_from_behind(difference), rows[i].from_behind);
      MI_CHECK_EQ(_mi_hard_padding_bad_byte(difference), rows[i].byte);
    }
  }
}

// What a damaged byte should hold is told, of all but those with bits of the slack.
MI_TEST(what_a_byte_should_hold) {
  for (size_t at = 0; at < MI_PADDING_SIZE; at++) {
    _mi_hard_padding_write(mi_padding_test_trailer, 5, mi_padding_test_key);
    const uint8_t right = mi_padding_test_trailer[at];
    mi_padding_test_trailer[at] ^= 0x81;
    uint64_t difference;
    (void)mi_padding_test_slack(mi_padding_test_key, &difference);
    MI_CHECK_EQ(_mi_hard_padding_is_certain(at), at < 3 || at > 5);
    if (_mi_hard_padding_is_certain(at)) {
      MI_CHECK_EQ(_mi_hard_padding_wanted(difference, at, mi_padding_test_trailer[at]), right);
    }
  }
  for (size_t slack = 1; slack <= ROOM; slack += slack < 70 ? 1 : 37) {
    _mi_hard_padding_write(mi_padding_test_trailer, slack, mi_padding_test_key);
    for (size_t at = 0; at < slack; at++) {
      MI_CHECK_EQ(_mi_hard_padding_slack_byte(at), *(mi_padding_test_trailer - slack + at));
    }
  }
}

// A trailer from another place, under another key, or made up, is none; by chance one in 2^36 and the slack's bound.
MI_TEST(not_transferable) {
  uint64_t difference;
  size_t slack;
  size_t taken = 0;
  for (uint64_t i = 1; i <= 10000; i++) {
    const uint64_t other = _mi_hard_padding_encode((uintptr_t)mi_padding_test_trailer + 16 * i, 5, mi_padding_test_key);
    taken += _mi_hard_padding_decode(other, (uintptr_t)mi_padding_test_trailer, ROOM, mi_padding_test_key, &slack, &difference);
    const mi_padding_key_t other_key = {mi_padding_test_key->place + i, mi_padding_test_key->factor};
    const uint64_t key = _mi_hard_padding_encode((uintptr_t)mi_padding_test_trailer, 5, &other_key);
    taken += _mi_hard_padding_decode(key, (uintptr_t)mi_padding_test_trailer, ROOM, mi_padding_test_key, &slack, &difference);
    uint64_t seed = i;
    taken += _mi_hard_padding_decode(mi_test_random(&seed) << 8, (uintptr_t)mi_padding_test_trailer, ROOM, mi_padding_test_key, &slack, &difference);
  }
  MI_CHECK_EQ(taken, 0);
}

MI_TEST_MAIN()
