// Owns: the tests of prim's memory calls, and of what they do on kernels that lack some.
// May include: base, prim, test/lib, the C library's headers.
// Called by: the build.
// Invariants: access is probed by system calls, which say EFAULT instead of dying; refusals are made in children.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "src/prim/prim.h"
#include "test/lib/child.h"
#include "test/lib/deny.h"
#include "test/lib/test.h"

// More than any address space has.
#define TOO_MUCH (0 - 2 * page())
#define MIB ((size_t)1 << 20)

static mi_prim_config_t config;

static size_t page(void) {
  if (config.page_size == 0) _mi_prim_init(&config);
  return config.page_size;
}

// The first byte of each page can be read, or written.
static bool accessible(const void* p, size_t size, bool for_writing) {
  static int fds[2] = {-1, -1};
  if (fds[0] < 0) MI_REQUIRE(pipe(fds) == 0);
  char byte = 0;
  for (size_t at = 0; at < size; at += page()) {
    void* const address = (void*)((uintptr_t)p + at);
    if (for_writing) {
      // Puts back what was there, so the byte has to be readable as well.
      if (write(fds[1], address, 1) != 1) return false;
      if (read(fds[0], address, 1) != 1) {
        MI_REQUIRE(errno == EFAULT && read(fds[0], &byte, 1) == 1);
        return false;
      }
    } else {
      if (write(fds[1], address, 1) != 1) return false;
      MI_REQUIRE(read(fds[0], &byte, 1) == 1);
    }
  }
  return true;
}

// None of the pages can be read.
static bool inaccessible(const void* p, size_t size) {
  for (size_t at = 0; at < size; at += page()) {
    if (accessible((const char*)p + at, 1, false)) return false;
  }
  return true;
}

static uint8_t* reserve(size_t size, bool commit) {
  void* p = NULL;
  (void)page();
  errno = 1234;
  MI_REQUIRE(_mi_prim_reserve(size, commit, &p) == 0);
  MI_CHECK_EQ(errno, 1234);
  MI_REQUIRE(p != NULL && (uintptr_t)p % config.alloc_granularity == 0);
  MI_CHECK(sizeof(void*) == 4 || ((uintptr_t)p + size - 1) >> config.address_bits == 0);
  return p;
}

#define OK(call)              \
  do {                        \
    errno = 1234;             \
    MI_CHECK_EQ((call), 0);   \
    MI_CHECK_EQ(errno, 1234); \
  } while (0)

#define FAILS(err, call)      \
  do {                        \
    errno = 1234;             \
    MI_CHECK_EQ((call), err); \
    MI_CHECK_EQ(errno, 1234); \
  } while (0)

MI_TEST(reserve_and_commit) {
  const size_t size = 64 * page();
  uint8_t* const p = reserve(size, false);
  MI_CHECK(inaccessible(p, size));
  OK(_mi_prim_commit(p + 8 * page(), 16 * page()));
  MI_CHECK(inaccessible(p, 8 * page()) && inaccessible(p + 24 * page(), 40 * page()));
  MI_CHECK(accessible(p + 8 * page(), 16 * page(), true));
  MI_CHECK(mi_test_all_bytes(p + 8 * page(), 16 * page(), 0));
  mi_test_fill(p + 8 * page(), 16 * page(), 1);
  OK(_mi_prim_commit(p, size));
  MI_CHECK(mi_test_filled(p + 8 * page(), 16 * page(), 1));
  MI_CHECK(mi_test_all_bytes(p, 8 * page(), 0) && mi_test_all_bytes(p + 24 * page(), 40 * page(), 0));
  OK(_mi_prim_release(p, size));
  MI_CHECK(inaccessible(p, size));

  uint8_t* const q = reserve(size, true);
  MI_CHECK(accessible(q, size, true) && mi_test_all_bytes(q, size, 0));
  OK(_mi_prim_release(q, size));
}

MI_TEST(release_of_parts) {
  MI_CHECK(page() != 0 && config.has_partial_release);
  uint8_t* const p = reserve(4 * page(), true);
  mi_test_fill(p, 4 * page(), 2);
  OK(_mi_prim_release(p + page(), page()));
  MI_CHECK(inaccessible(p + page(), page()) && accessible(p + 2 * page(), 2 * page(), true));
  OK(_mi_prim_release(p + 3 * page(), page()));
  MI_CHECK(mi_test_filled(p, page(), 2));
  OK(_mi_prim_release(p, page()));
  OK(_mi_prim_release(p + 2 * page(), page()));
}

MI_TEST(reserve_too_much) {
  void* p = &config;
  FAILS(ENOMEM, _mi_prim_reserve(TOO_MUCH, false, &p));
  MI_CHECK(p == &config);
}

MI_TEST(decommit) {
  const size_t size = 16 * page();
  uint8_t* const p = reserve(size, true);
  mi_test_fill(p, size, 3);
  OK(_mi_prim_decommit(p + 4 * page(), 4 * page()));
  MI_CHECK(inaccessible(p + 4 * page(), 4 * page()));
  MI_CHECK(accessible(p, 4 * page(), true) && accessible(p + 8 * page(), 8 * page(), true));
  OK(_mi_prim_commit(p + 4 * page(), 4 * page()));
  MI_CHECK(mi_test_all_bytes(p + 4 * page(), 4 * page(), 0));
  memset(p + 4 * page(), 1, 4 * page());
  MI_CHECK(mi_test_filled(p, 4 * page(), 3));
  OK(_mi_prim_release(p, size));
}

MI_TEST(purge_and_reset) {
  const size_t size = 16 * page();
  uint8_t* const p = reserve(size, true);
  mi_test_fill(p, size, 4);
  bool is_zero = false;
  OK(_mi_prim_purge(p + page(), 2 * page(), &is_zero));
  MI_CHECK(is_zero && mi_test_all_bytes(p + page(), 2 * page(), 0));
  MI_CHECK(accessible(p, size, true) && mi_test_filled(p, page(), 4));
  memset(p, 5, size);
  OK(_mi_prim_reset(p, size));
  for (size_t at = 0; at < size; at += page()) {
    MI_CHECK(mi_test_all_bytes(p + at, page(), 5) || mi_test_all_bytes(p + at, page(), 0));
  }
  memset(p, 6, size);
  MI_CHECK(mi_test_all_bytes(p, size, 6));
  OK(_mi_prim_release(p, size));
}

MI_TEST(locked_memory) {
  uint8_t* const p = reserve(page(), true);
  // By the raw call: sanitizers make the function do nothing.
  if (syscall(SYS_mlock, p, page()) != 0) {
    MI_TEST_SKIP("no memory may be locked");
  } else {
    memset(p, 7, page());
    bool is_zero = true;
    FAILS(EINVAL, _mi_prim_purge(p, page(), &is_zero));
    MI_CHECK(!is_zero);
    FAILS(EINVAL, _mi_prim_reset(p, page()));
    MI_CHECK(mi_test_all_bytes(p, page(), 7));
  }
  OK(_mi_prim_release(p, page()));
}

MI_TEST(protect) {
  uint8_t* const p = reserve(3 * page(), true);
  mi_test_fill(p, 3 * page(), 8);
  OK(_mi_prim_protect(p, page(), false));
  OK(_mi_prim_protect(p + page(), page(), true));
  MI_CHECK(inaccessible(p, page()));
  MI_CHECK(accessible(p + page(), page(), false) && !accessible(p + page(), page(), true));
  MI_CHECK(accessible(p + 2 * page(), page(), true));
  OK(_mi_prim_unprotect(p, 2 * page()));
  MI_CHECK(accessible(p, 3 * page(), true) && mi_test_filled(p, 3 * page(), 8));
  OK(_mi_prim_release(p, 3 * page()));
}

MI_TEST(grow) {
  void* grown = NULL;
  uint8_t* const p = reserve(16 * page(), true);
  // Something directly behind, so that it has to move.
  OK(_mi_prim_protect(p + 8 * page(), 8 * page(), true));
  mi_test_fill(p, 8 * page(), 9);
  FAILS(ENOMEM, _mi_prim_grow(p, 8 * page(), 32 * page(), false, &grown));
  MI_CHECK(grown == NULL && mi_test_filled(p, 8 * page(), 9));
  OK(_mi_prim_grow(p, 8 * page(), 32 * page(), true, &grown));
  MI_REQUIRE(grown != NULL && grown != p);
  MI_CHECK(mi_test_filled(grown, 8 * page(), 9) && mi_test_all_bytes((uint8_t*)grown + 8 * page(), 24 * page(), 0));
  MI_CHECK(accessible(grown, 32 * page(), true) && inaccessible(p, 8 * page()));
  void* again = &config;
  FAILS(ENOMEM, _mi_prim_grow(grown, 32 * page(), TOO_MUCH, true, &again));
  MI_CHECK(again == &config && mi_test_filled(grown, 8 * page(), 9));
  OK(_mi_prim_release(grown, 32 * page()));
  OK(_mi_prim_release(p + 8 * page(), 8 * page()));
}

static void check_moved(const uint8_t* from, const uint8_t* to, size_t size, uint64_t key) {
  MI_CHECK(mi_test_filled(to, size, key) && mi_test_all_bytes(from, size, 0));
  MI_CHECK(accessible(from, size, true) && accessible(to, size, true));
}

MI_TEST(move) {
  const size_t sizes[] = {page(), 7 * page(), 4 * MIB};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    const size_t size = sizes[i];
    // Neighbours on both sides of both ranges stay as they are.
    uint8_t* const a = reserve(size + 2 * page(), true);
    uint8_t* const b = reserve(size + 2 * page(), true);
    uint8_t* const from = a + page();
    uint8_t* const to = b + page();
    mi_test_fill(a, size + 2 * page(), 10);
    memset(b, 11, size + 2 * page());
    mi_test_fill(from, size, 12);
    const int err = _mi_prim_move(from, to, size, size);
    if (err == ENOTSUP) {
      MI_TEST_SKIP("the kernel cannot move the content of mappings");
      return;
    }
    MI_CHECK_EQ(err, 0);
    check_moved(from, to, size, 12);
    MI_CHECK(mi_test_filled(a, page(), 10));
    MI_CHECK(mi_test_all_bytes(b, page(), 11) && mi_test_all_bytes(b + page() + size, page(), 11));
    // And back, now that the mappings are in pieces.
    OK(_mi_prim_move(to, from, size, size));
    check_moved(to, from, size, 12);
    OK(_mi_prim_release(a, size + 2 * page()));
    OK(_mi_prim_release(b, size + 2 * page()));
  }
}

// What has grown as it was moved is moved whole again, and grows in place by its end though its beginning is of another mapping.
MI_TEST(move_again_and_again) {
  const size_t size = 16 * page();
  uint8_t* from = reserve(size, true);
  mi_test_fill(from + page(), size - page(), 16);
  for (size_t n = 2; n <= 32; n *= 2) {
    uint8_t* const to = reserve(n * size, true);
    const int err = _mi_prim_move(from + page(), to + page(), n / 2 * size - page(), n * size - page());
    if (err == ENOTSUP) {
      MI_TEST_SKIP("the kernel cannot move the content of mappings");
      return;
    }
    MI_CHECK_EQ(err, 0);
    MI_CHECK(mi_test_all_bytes(to, page(), 0) && mi_test_all_bytes(to + n / 2 * size, n / 2 * size, 0));
    check_moved(from + page(), to + page(), n / 2 * size - page(), n == 2 ? 16 : 17);
    mi_test_fill(to + page(), n * size - page(), 17);
    OK(_mi_prim_release(from, n / 2 * size));
    from = to;
  }
  uint8_t* const room = reserve(128 * size, true);
  OK(_mi_prim_move(from + page(), room + page(), 32 * size - page(), 64 * size - page()));
  OK(_mi_prim_release(room + 64 * size, 64 * size));
  void* grown = NULL;
  OK(_mi_prim_grow(room, 64 * size, 128 * size, false, &grown));
  MI_CHECK_PTR_EQ(grown, room);
  MI_CHECK(mi_test_filled(room + page(), 32 * size - page(), 17) && mi_test_all_bytes(room + 32 * size, 96 * size, 0));
  OK(_mi_prim_release(room, 128 * size));
  OK(_mi_prim_release(from, 32 * size));
}

// What makes MREMAP_FIXED fail after it has unmapped the target must not cost the target anything.
static void check_move_fails(uint8_t* from, uint8_t* to, size_t size) {
  mi_test_fill(to, size, 14);
  errno = 1234;
  MI_CHECK(_mi_prim_move(from, to, size, size) != 0);
  MI_CHECK_EQ(errno, 1234);
  MI_CHECK(mi_test_filled(from, size, 13) && mi_test_filled(to, size, 14));
  MI_CHECK(accessible(to, size, true));
}

MI_TEST(move_of_several_mappings) {
  uint8_t* const from = reserve(4 * page(), true);
  uint8_t* const to = reserve(4 * page(), true);
  mi_test_fill(from, 4 * page(), 13);
  OK(_mi_prim_protect(from + 2 * page(), 2 * page(), true));
  check_move_fails(from, to, 4 * page());
  OK(_mi_prim_release(from, 4 * page()));
  OK(_mi_prim_release(to, 4 * page()));
}

static void move_without_addresses(void* arg) {
  (void)arg;
  const size_t size = 64 * MIB;
  uint8_t* const from = reserve(size, true);
  uint8_t* const to = reserve(size, true);
  mi_test_fill(from, size, 13);
  // Less than one range above what is mapped now.
  FILE* const statm = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (statm == NULL || fscanf(statm, "%lu", &pages) != 1) return;
  const size_t most = pages * page() + size / 4 * 3;
  const struct rlimit limit = {most, most};
  MI_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  check_move_fails(from, to, size);
  // Enough to move a half of it, which is all the same though it cannot grow on the way.
  OK(_mi_prim_move(from, to, size / 2, size));
  check_moved(from, to, size / 2, 13);
  MI_CHECK(accessible(to + size / 2, size / 2, true) && !mi_test_all_bytes(to + size / 2, size / 2, 0));
}

MI_TEST(move_without_addresses_to_spare) { MI_CHECK_IN_CHILD(move_without_addresses, NULL, 20000); }

// Where the system cannot, the memory comes when it is touched.
MI_TEST(populate) {
  uint8_t* const p = reserve(16 * page(), true);
  unsigned char there[16];
  enum { POPULATE_WRITE = 23 };
  const int can = madvise(p + 12 * page(), page(), POPULATE_WRITE) == 0;
  _mi_prim_populate(p + page(), 8 * page());
  MI_CHECK(mincore(p, 16 * page(), there) == 0);
  MI_CHECK((there[0] & 1) == 0 && (there[9] & 1) == 0);
  MI_CHECK((there[1] & 1) == can && (there[8] & 1) == can);
  MI_CHECK(mi_test_all_bytes(p, 16 * page(), 0));
  memset(p, 1, 16 * page());
  OK(_mi_prim_release(p, 16 * page()));
}

MI_TEST(huge_page_advice) {
  uint8_t* const p = reserve(8 * MIB, true);
  const int err = _mi_prim_huge_page_advice(p, 4 * MIB, true);
  MI_CHECK(err == 0 || err == EINVAL);
  MI_CHECK_EQ(_mi_prim_huge_page_advice(p, 8 * MIB, false), err);
  memset(p, 1, 8 * MIB);
  OK(_mi_prim_release(p, 8 * MIB));
}

static void check_wiped(void* p) { MI_CHECK(mi_test_all_bytes(p, page(), 0)); }

MI_TEST(wipe_on_fork) {
  uint8_t* const p = reserve(2 * page(), true);
  mi_test_fill(p, 2 * page(), 15);
  _mi_prim_wipe_on_fork(p, page());
  MI_CHECK_IN_CHILD(check_wiped, p, 20000);
  MI_CHECK(mi_test_filled(p, 2 * page(), 15));
  OK(_mi_prim_release(p, 2 * page()));
}

// Refusals

static void deny(long nr, int index, uint32_t value, int err) {
  if (!mi_test_deny(nr, index, value, err)) _exit(MI_TEST_SKIPPED);
}

static void populate_is_denied(void* arg) {
  (void)arg;
  uint8_t* const p = reserve(4 * page(), true);
  deny(SYS_madvise, 2, 23, EINVAL);
  const int saved = errno;
  _mi_prim_populate(p, 4 * page());
  MI_CHECK_EQ(errno, saved);
  memset(p, 1, 4 * page());
}

MI_TEST(populate_where_the_system_does_not_know_it) { MI_CHECK_IN_CHILD(populate_is_denied, NULL, 20000); }

static void reset_without_free(void* arg) {
  (void)arg;
  uint8_t* const p = reserve(4 * page(), true);
  deny(SYS_madvise, 2, 8, EINVAL);
  memset(p, 1, 4 * page());
  OK(_mi_prim_reset(p, 4 * page()));
  MI_CHECK(mi_test_all_bytes(p, 4 * page(), 0));
  // It is not tried again: an answer of another kind would be passed on.
  deny(SYS_madvise, 2, 8, EIO);
  memset(p, 1, 4 * page());
  OK(_mi_prim_reset(p, 4 * page()));
  MI_CHECK(mi_test_all_bytes(p, 4 * page(), 0));
}

static void madvise_never_ready(void* arg) {
  (void)arg;
  uint8_t* const p = reserve(page(), true);
  bool is_zero = true;
  deny(SYS_madvise, MI_TEST_ANY, 0, EAGAIN);
  memset(p, 1, page());
  FAILS(EAGAIN, _mi_prim_purge(p, page(), &is_zero));
  MI_CHECK(!is_zero);
  FAILS(EAGAIN, _mi_prim_reset(p, page()));
  MI_CHECK(mi_test_all_bytes(p, page(), 1));
  _mi_prim_wipe_on_fork(p, page());
}

static void move_on_old_kernel(void* arg) {
  (void)arg;
  uint8_t* const from = reserve(2 * page(), true);
  mi_test_fill(from, 2 * page(), 13);
  uint8_t* const to = reserve(2 * page(), true);
  // MREMAP_MAYMOVE | MREMAP_DONTUNMAP
  deny(SYS_mremap, 3, 5, EINVAL);
  FAILS(ENOTSUP, _mi_prim_move(from, to, 2 * page(), 2 * page()));
  check_move_fails(from, to, 2 * page());
}

// The second step fails, and with `arg` the way back as well.
static void move_fails_half_way(void* arg) {
  uint8_t* const from = reserve(2 * page(), true);
  mi_test_fill(from, 2 * page(), 13);
  uint8_t* const to = reserve(2 * page(), true);
  // The fifth argument is the new address.
  deny(SYS_mremap, 4, (uint32_t)(uintptr_t)to, ENOMEM);
  if (arg != NULL) deny(SYS_mremap, 4, (uint32_t)(uintptr_t)from, ENOMEM);
  check_move_fails(from, to, 2 * page());
}

static void without_mremap(void* arg) {
  (void)arg;
  void* grown = NULL;
  uint8_t* const from = reserve(2 * page(), true);
  mi_test_fill(from, 2 * page(), 13);
  uint8_t* const to = reserve(2 * page(), true);
  deny(SYS_mremap, MI_TEST_ANY, 0, ENOSYS);
  FAILS(ENOTSUP, _mi_prim_grow(from, 2 * page(), 4 * page(), true, &grown));
  FAILS(ENOTSUP, _mi_prim_move(from, to, 2 * page(), 2 * page()));
  check_move_fails(from, to, 2 * page());
}

#define REFUSAL(name, fn, arg)                                                 \
  MI_TEST(name) {                                                              \
    static mi_test_child_t child;                                              \
    mi_test_child_run(&child, fn, arg, 10000);                                 \
    if (child.status == MI_TEST_SKIPPED) MI_TEST_SKIP("no filters for calls"); \
    else MI_CHECK_CHILD_OK(&child, #fn);                                       \
  }

REFUSAL(kernel_without_madv_free, reset_without_free, NULL)
REFUSAL(kernel_that_is_never_ready, madvise_never_ready, NULL)
REFUSAL(kernel_without_dontunmap, move_on_old_kernel, NULL)
REFUSAL(kernel_that_fails_half_way, move_fails_half_way, NULL)
REFUSAL(kernel_that_fails_both_ways, move_fails_half_way, &config)
REFUSAL(kernel_without_mremap, without_mremap, NULL)

MI_TEST_MAIN()
