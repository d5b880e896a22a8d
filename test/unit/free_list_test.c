// Owns: tests of hardening/free-list: that links come back, and that others do not make sense.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the generator is seeded, so a chance hit would always be the same.
#include "hardening/free-list.h"

#include "src/base/geometry.h"
#include "test/lib/test.h"

static void mi_free_list_test_keys(uint64_t* seed, uintptr_t keys[2]) {
  keys[0] = (uintptr_t)mi_test_random(seed);
  keys[1] = (uintptr_t)mi_test_random(seed);
}

MI_TEST(round_trip) {
  static const uintptr_t edges[] = {0, 1, 16, 0x7fffffffffff, UINTPTR_MAX, UINTPTR_MAX / 2 + 1};
  uint64_t seed = 1;
  uintptr_t keys[2];
  for (int i = 0; i < 10000; i++) {
    mi_free_list_test_keys(&seed, keys);
    const uintptr_t at = (uintptr_t)mi_test_random(&seed);
    const uintptr_t next = i < 6 ? edges[i] : (uintptr_t)mi_test_random(&seed);
    MI_CHECK_EQ(_mi_hard_link_decode(_mi_hard_link_encode(next, at, keys), at, keys), next);
    MI_CHECK_EQ(mi_link_rotate_right(mi_link_rotate_left(next)), next);
  }
  for (size_t i = 0; i < 6; i++) {
    for (size_t k = 0; k < 6; k++) {
      const uintptr_t extreme[2] = {edges[k], edges[5 - k]};
      MI_CHECK_EQ(_mi_hard_link_decode(_mi_hard_link_encode(edges[i], edges[k], extreme), edges[k], extreme), edges[i]);
    }
  }
}

// What a program may store instead: how often it decodes to a block of the page of the largest kind.
typedef enum mi_free_list_test_forgery_e {
  PLAIN,       // an address of the page
  COPIED,      // the stored link of another block
  BIT_FLIP,    // one bit of the true link, or a low one that leads to a neighbour at best
  OTHER_PAGE,  // a link made with another page's keys
  CLEARED,     // zeroes
  FORGERIES
} mi_free_list_test_forgery_t;

MI_TEST(forgeries) {
  enum { TRIES = 20000 };
  const uintptr_t start = 0x7f0012340000;
  const size_t size = (size_t)1 << MI_LARGE_PAGE_SHIFT;
  const size_t granule = size / MI_PAGE_GRANULES;
  uint64_t seed = 2;
  for (int forgery = 0; forgery < FORGERIES; forgery++) {
    long hits = 0;
    for (int i = 0; i < TRIES; i++) {
      uintptr_t keys[2];
      uintptr_t others[2];
      mi_free_list_test_keys(&seed, keys);
      mi_free_list_test_keys(&seed, others);
      const uintptr_t at = start + mi_test_random(&seed) % size / granule * granule;
      const uintptr_t elsewhere = at ^ (UINT64_C(1) << (10 + i % 12));
      const uintptr_t next = start + mi_test_random(&seed) % size / granule * granule;
      const uintptr_t link = _mi_hard_link_encode(next, at, keys);
      const uintptr_t stored = forgery == PLAIN ? next
          : forgery == COPIED                   ? _mi_hard_link_encode(next, elsewhere, keys)
          : forgery == BIT_FLIP                 ? link ^ (UINT64_C(1) << (i % 64))
          : forgery == OTHER_PAGE               ? _mi_hard_link_encode(next, at, others)
                                                : 0;
      const uintptr_t decoded = _mi_hard_link_decode(stored, at, keys);
      MI_CHECK(decoded != next || stored == link);
      hits += decoded - start < size && decoded % granule == 0;
    }
    // A flipped bit leads to another block of the page when it is one of those that tell blocks apart.
    const long allowed = forgery == BIT_FLIP ? TRIES * 13L / 64 : TRIES / 1000;
    MI_CHECK_MSG(hits <= allowed, "forgery %d: %ld of %d lead to a block", forgery, hits, (int)TRIES);
  }
}

MI_TEST_MAIN()
