// Owns: life of a process that locks its memory (mlockall): what it holds is what it uses, and a modest limit is enough.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt.
// Invariants: figures are the kernel's; nothing is locked when the program has ended.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { MIB = 1 << 20,
       COUNT = 4000 };

static char* blocks[COUNT];
static size_t count;

// Blocks of many sizes, and a few large ones, up to 11 MiB in all; each is written.
static size_t use(size_t limit) {
  size_t total = 0;
  for (count = 0; count < COUNT && total < limit; count++) {
    const size_t i = count;
    const size_t size = i % 400 == 399 ? 600000 : 16 + i * 7 % 2500;
    blocks[i] = (char*)malloc(size);
    MI_REQUIRE(blocks[i] != NULL);
    memset(blocks[i], (int)i, size);
    total += size;
  }
  return total;
}

static void drop(void) {
  for (size_t i = 0; i < count; i++) {
    MI_CHECK(blocks[i][0] == (char)i);
    free(blocks[i]);
  }
}

// Whether a page in a mapping can be made inaccessible by itself, which is where the kernel ends when it populates the mapping.
static bool has_light_guards(void) {
  enum { GUARD_INSTALL = 102 };
  void* const p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  const bool has = madvise(p, 4096, GUARD_INSTALL) == 0;
  munmap(p, 4096);
  return has;
}

MI_TEST(everything_is_locked) {
  // The first block is there before: what is reserved for it is among what is locked.
  free(malloc(100));
  const size_t before = mi_test_rss();
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    MI_TEST_SKIP("the process may not lock all its addresses");
    return;
  }
  // Metadata at random places is written to here and there, and locked as a whole.
  const size_t bound = (has_light_guards() ? 56 : 136) * (size_t)MIB;
  const size_t locked = mi_test_rss();
  MI_CHECK_MSG(locked <= before + bound, "locking makes %zu MiB of %zu KiB", locked >> 20, before >> 10);
  const size_t total = use(SIZE_MAX);
  const size_t used = mi_test_rss();
  MI_CHECK_MSG(used <= locked + 3 * total + 8 * MIB, "%zu MiB of blocks take %zu MiB", total >> 20, (used - locked) >> 20);
  drop();
  munlockall();
}

MI_TEST(a_modest_limit_is_enough) {
  enum { LEAST = 4 * MIB };
  struct rlimit limit;
  MI_REQUIRE(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  limit.rlim_cur = limit.rlim_max < 64 * MIB ? limit.rlim_max : 64 * MIB;
  if (limit.rlim_cur < LEAST || setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    MI_TEST_SKIP("the process may not lock so much");
    return;
  }
  // Whoever has the privilege has no limit. Without the second call the kernel's figures are for others.
  MI_REQUIRE(geteuid() != 0 || setuid(65534) == 0);
  MI_REQUIRE(prctl(PR_SET_DUMPABLE, 1) == 0);
  MI_REQUIRE(mlockall(MCL_FUTURE) == 0);
  const size_t before = mi_test_rss();
  free(malloc(100));
  const size_t first = mi_test_rss();
  MI_CHECK_MSG(first <= before + 12 * MIB, "a block takes %zu MiB", (first - before) >> 20);
  const size_t total = use((size_t)limit.rlim_cur / 8);
  const size_t used = mi_test_rss();
  MI_CHECK_MSG(used <= before + 3 * limit.rlim_cur / 4, "%zu KiB of blocks take %zu KiB", total >> 10, (used - before) >> 10);
  drop();
}

MI_TEST_MAIN()
