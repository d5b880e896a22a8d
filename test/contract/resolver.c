// Owns: an allocation inside an IFUNC resolver: the loader calls it while it relocates the program, before thread-local data is set to its first values.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt.
// Invariants: the resolver calls nothing but the allocator; a block that it leaves is used and freed by main.
// Flags: -fno-builtin -fno-pie -no-pie -Wl,-z,lazy
#include "test/lib/test.h"

static void* from_resolver;

static int resolved_early(void) { return 2; }
typedef int (*resolved_t)(void);

// Bound through the PLT, whose entries are relocated before the resolvers run.
__attribute__((used)) static resolved_t resolve(void) {
  free(malloc(24));
  from_resolver = malloc(100);
  return &resolved_early;
}
int resolved(void) __attribute__((ifunc("resolve")));

MI_TEST(resolver) {
  MI_CHECK_EQ(resolved(), 2);
  MI_REQUIRE(from_resolver != NULL);
  mi_test_fill(from_resolver, 100, 3);
  void* more[100];
  for (int i = 0; i < 100; i++) {
    more[i] = malloc(100);
    MI_CHECK(more[i] != NULL && more[i] != from_resolver);
    memset(more[i], 1, 100);
  }
  MI_CHECK(mi_test_filled(from_resolver, 100, 3));
  free(from_resolver);
  for (int i = 0; i < 100; i++) free(more[i]);
}

MI_TEST_MAIN()
