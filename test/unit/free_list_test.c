// Owns: tests of hardening/free-list: that links come back, and that others do not make sense.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the generator is seeded, so a chance hit would always be the same.
#include "hardening/free-list.h"

#include "src/base/geometry.h"
#include "test/lib/test.h"

static mi_link_key_t mi_free_list_test_key(uint64_t* seed) {
  const uint64_t a = mi_test_random(seed);
  const uint64_t b = mi_test_random(seed);
  return _mi_hard_link_key(a, b, mi_test_random(seed));
}

static uintptr_t mi_free_list_test_decode(uintptr_t stored, uintptr_t at, const mi_link_key_t* key) {
  return _mi_hard_link_decode(stored, at, key, _mi_hard_link_inverse(key->factor));
}

MI_TEST(inverse) {
  static const uintptr_t edges[] = {1, 3, UINTPTR_MAX, UINTPTR_MAX / 2 + 2, 0x55555555U};
  uint64_t seed = 3;
  for (size_t i = 0; i < 10000; i++) {
    const uintptr_t factor = i < 5 ? edges[i] : (uintptr_t)mi_test_random(&seed) | 1;
    MI_CHECK_EQ((uintptr_t)(factor * _mi_hard_link_inverse(factor)), 1);
  }
}

MI_TEST(round_trip) {
  static const uintptr_t edges[] = {0, 1, 16, 0x7fffffff, UINTPTR_MAX, UINTPTR_MAX / 2 + 1};
  uint64_t seed = 1;
  for (int i = 0; i < 10000; i++) {
    const mi_link_key_t key = mi_free_list_test_key(&seed);
    const uintptr_t at = (uintptr_t)mi_test_random(&seed);
    const uintptr_t next = i < 6 ? edges[i] : (uintptr_t)mi_test_random(&seed);
    MI_CHECK_EQ(mi_free_list_test_decode(_mi_hard_link_encode(next, at, &key), at, &key), next);
  }
  for (size_t i = 0; i < 6; i++) {
    for (size_t k = 0; k < 6; k++) {
      const mi_link_key_t extreme = _mi_hard_link_key(edges[k], edges[5 - k], edges[i]);
      MI_CHECK_EQ(mi_free_list_test_decode(_mi_hard_link_encode(edges[i], edges[k], &extreme), edges[k], &extreme), edges[i]);
    }
  }
}

// What a program may store instead: how often it decodes to a granule of the page.
typedef enum mi_free_list_test_forgery_e {
  PLAIN,       // an address of the page
  COPIED,      // the stored link of another block
  BIT_FLIP,    // one bit of the true link
  ADDED,       // a small number, either sign
  ADDED_HIGH,  // a small number at any byte
  XORED,       // any low half
  OTHER_PAGE,  // a link made with another page's key
  CLEARED,     // zeroes
  FORGERIES
} mi_free_list_test_forgery_t;

static uintptr_t mi_free_list_test_forge(int forgery, uintptr_t link, int i, uint64_t r) {
  const uintptr_t amount = (uintptr_t)(r % 4096 + 1);
  switch (forgery) {
    case BIT_FLIP:
      return link ^ ((uintptr_t)1 << ((unsigned)i % (8 * sizeof(link))));
    case ADDED:
      return (i & 1) != 0 ? link + amount : link - amount;
    case ADDED_HIGH:
      return link + (amount << (8 * ((unsigned)i % sizeof(link))));
    case XORED:
      return link ^ ((uintptr_t)(r | 1) & (((uintptr_t)1 << (4 * sizeof(link))) - 1));
    default:
      return 0;
  }
}

MI_TEST(forgeries) {
  enum { TRIES = 20000 };
  static const unsigned shifts[] = {MI_SMALL_PAGE_SHIFT, MI_MEDIUM_PAGE_SHIFT, MI_LARGE_PAGE_SHIFT};
  uint64_t seed = 2;
  for (int forgery = 0; forgery < FORGERIES; forgery++) {
    for (size_t kind = 0; kind < 3; kind++) {
      const size_t size = (size_t)1 << shifts[kind];
      const size_t granule = size / MI_PAGE_GRANULES;
      const uintptr_t start = (uintptr_t)0x7f0012400000;
      long hits = 0;
      for (int i = 0; i < TRIES; i++) {
        const mi_link_key_t key = mi_free_list_test_key(&seed);
        const mi_link_key_t others = mi_free_list_test_key(&seed);
        const uintptr_t at = start + (uintptr_t)mi_test_random(&seed) % size / granule * granule;
        const uintptr_t elsewhere = at ^ ((uintptr_t)granule << (i % 12));
        const uintptr_t next = start + (uintptr_t)mi_test_random(&seed) % size / granule * granule;
        const uintptr_t link = _mi_hard_link_encode(next, at, &key);
        const uintptr_t stored = forgery == PLAIN ? next
            : forgery == COPIED                   ? _mi_hard_link_encode(next, elsewhere, &key)
            : forgery == OTHER_PAGE               ? _mi_hard_link_encode(next, at, &others)
                                                  : mi_free_list_test_forge(forgery, link, i, mi_test_random(&seed));
        const uintptr_t decoded = mi_free_list_test_decode(stored, at, &key);
        MI_CHECK(decoded != next || stored == link);
        hits += stored != link && decoded - start < size && decoded % granule == 0;
      }
      // On 64 bits the chance of one is below 2^-33 in all tries.
      const long allowed = sizeof(uintptr_t) == 8 ? 0 : TRIES / 100;
      MI_CHECK_MSG(hits <= allowed, "forgery %d, page kind %zu: %ld of %d lead into the page", forgery, kind, hits, (int)TRIES);
    }
  }
}

MI_TEST_MAIN()
