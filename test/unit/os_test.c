// Owns: tests of sys/os: alignment, guards, commit, purge, growth, counts, and what happens when the system refuses.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: what a test reserves it releases; limits are set in children only.
#include "src/sys/os.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static volatile unsigned char* mi_os_test_target;

static void mi_os_test_read(void* arg) {
  (void)arg;
  // A sanitizer's handler would end the child in its own way.
  signal(SIGSEGV, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
  (void)*mi_os_test_target;
}

static void mi_os_test_write(void* arg) {
  (void)arg;
  signal(SIGSEGV, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
  *mi_os_test_target = 1;
}

static bool mi_os_test_faults(void (*access)(void*), void* p) {
  static mi_test_child_t child;
  mi_os_test_target = p;
  mi_test_child_run(&child, access, NULL, 10000);
  return child.signal == SIGSEGV || child.signal == SIGBUS;
}

MI_TEST(config) {
  MI_CHECK_EQ(_mi_os_page_size(), sysconf(_SC_PAGESIZE));
  MI_CHECK(_mi_os_config.alloc_granularity >= _mi_os_page_size());
}

MI_TEST(aligned) {
  static const struct {
    size_t size, align, guard;
    bool commit;
  } rows[] = {
      {1, 1, 0, true},
      {1, 1, 1, true},
      {1, 64 * KIB, 0, true},
      {16, 64 * KIB, 1, true},
      {256, 4 * MIB, 1, true},
      {256, 32 * MIB, 0, true},
      {16, 64 * KIB, 1, false},
      {256, 4 * MIB, 0, false},
      {4096, 256 * MIB, 2, false},
  };
  const size_t page = _mi_os_page_size();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const size_t size = rows[i].size * page;
    const mi_stat_view_t reserved = _mi_stat_view(&_mi_stats.reserved);
    const mi_stat_view_t committed = _mi_stat_view(&_mi_stats.committed);
    mi_os_block_t os;
    errno = 12345;
    unsigned char* const p = _mi_os_reserve_aligned(size, rows[i].align, rows[i].guard * page, rows[i].commit, &os);
    MI_CHECK_EQ(errno, 12345);
    if (!MI_CHECK_MSG(p != NULL, "row %zu", i)) {
      continue;
    }
    MI_CHECK_MSG((uintptr_t)p % rows[i].align == 0, "row %zu: %p", i, (void*)p);
    MI_CHECK((unsigned char*)os.base <= p - rows[i].guard * page);
    MI_CHECK((unsigned char*)os.base + os.size >= p + size + rows[i].guard * page);
    MI_CHECK_EQ(_mi_stat_view(&_mi_stats.reserved).current - reserved.current, os.size);
    MI_CHECK_EQ(_mi_stat_view(&_mi_stats.committed).current - committed.current, rows[i].commit ? size : 0);
    if (rows[i].commit) {
      MI_CHECK(mi_test_all_bytes(p, size, 0));
      memset(p, 0xa5, size);
    } else {
      MI_CHECK(mi_os_test_faults(&mi_os_test_read, p));
    }
    if (rows[i].guard > 0) {
      MI_CHECK(mi_os_test_faults(&mi_os_test_read, p - 1));
      MI_CHECK(mi_os_test_faults(&mi_os_test_read, p + size));
    }
    _mi_os_release(&os);
    MI_CHECK_EQ(_mi_stat_view(&_mi_stats.reserved).current, reserved.current);
    MI_CHECK_EQ(_mi_stat_view(&_mi_stats.committed).current, committed.current);
    // The thread sanitizer maps memory of its own there.
    MI_CHECK(MI_TSAN_BUILD || mi_os_test_faults(&mi_os_test_read, p));
  }
}

MI_TEST(commit_and_decommit) {
  const size_t page = _mi_os_page_size();
  mi_os_block_t os;
  unsigned char* const p = _mi_os_reserve_aligned(16 * page, page, page, false, &os);
  MI_REQUIRE(p != NULL);
  MI_CHECK(_mi_os_commit(p + 4 * page, 4 * page));
  MI_CHECK(mi_test_all_bytes(p + 4 * page, 4 * page, 0));
  memset(p + 4 * page, 1, 4 * page);
  MI_CHECK(mi_os_test_faults(&mi_os_test_read, p + 3 * page));
  MI_CHECK(mi_os_test_faults(&mi_os_test_read, p + 8 * page));
  MI_CHECK(_mi_os_decommit(p + 4 * page, 4 * page));
  MI_CHECK(mi_os_test_faults(&mi_os_test_read, p + 4 * page));
  MI_CHECK(_mi_os_commit(p + 4 * page, 2 * page));
  MI_CHECK(mi_test_all_bytes(p + 4 * page, 2 * page, 0));
  MI_CHECK(_mi_os_decommit(p + 4 * page, 2 * page));
  _mi_os_release(&os);
}

MI_TEST(purge) {
  const size_t page = _mi_os_page_size();
  const long before = _mi_option_get(mi_option_purge_decommits);
  mi_os_block_t os;
  unsigned char* const p = _mi_os_reserve_aligned(16 * page, page, 0, true, &os);
  MI_REQUIRE(p != NULL);
  bool is_zero = false;
  memset(p, 1, 16 * page);
  _mi_option_set(mi_option_purge_decommits, 1);
  MI_CHECK(_mi_os_purge(p, 8 * page, &is_zero));
  MI_CHECK(is_zero);
  MI_CHECK(mi_test_all_bytes(p, 8 * page, 0));
  MI_CHECK(mi_test_all_bytes(p + 8 * page, 8 * page, 1));
  _mi_option_set(mi_option_purge_decommits, 0);
  is_zero = true;
  memset(p, 1, 16 * page);
  MI_CHECK(_mi_os_purge(p, 8 * page, &is_zero));
  MI_CHECK(!is_zero);
  memset(p, 2, 16 * page);
  MI_CHECK(mi_test_all_bytes(p, 16 * page, 2));
  _mi_option_set(mi_option_purge_decommits, before);
  _mi_os_release(&os);
}

MI_TEST(protect) {
  const size_t page = _mi_os_page_size();
  mi_os_block_t os;
  unsigned char* const p = _mi_os_reserve_aligned(4 * page, page, 0, true, &os);
  MI_REQUIRE(p != NULL);
  p[page] = 7;
  MI_CHECK(_mi_os_protect(p + page, page, true));
  MI_CHECK_EQ(p[page], 7);
  MI_CHECK(mi_os_test_faults(&mi_os_test_write, p + page));
  MI_CHECK(_mi_os_protect(p + page, page, false));
  MI_CHECK(mi_os_test_faults(&mi_os_test_read, p + page));
  MI_CHECK(_mi_os_unprotect(p + page, page));
  MI_CHECK_EQ(p[page]++, 7);
  _mi_os_release(&os);
}

MI_TEST(grow) {
  const size_t page = _mi_os_page_size();
  mi_os_block_t os;
  unsigned char* p = _mi_os_reserve_aligned(16 * page, page, 0, true, &os);
  MI_REQUIRE(p != NULL);
  mi_test_fill(p, 16 * page, 1);
  unsigned char* const grown = _mi_os_grow(&os, 64 * page, true);
  if (grown != NULL) {
    MI_CHECK_PTR_EQ(os.base, grown);
    MI_CHECK_EQ(os.size, 64 * page);
    MI_CHECK_EQ(os.committed, 64 * page);
    MI_CHECK(mi_test_filled(grown, 16 * page, 1));
    MI_CHECK(mi_test_all_bytes(grown + 16 * page, 48 * page, 0));
  } else {
    MI_TEST_SKIP("mappings do not grow here");
  }
  _mi_os_release(&os);
}

MI_TEST(refused) {
  const size_t page = _mi_os_page_size();
  const size_t too_large[] = {SIZE_MAX - 16 * page + 1, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX - page + 1, 0};
  const mi_stat_view_t before = _mi_stat_view(&_mi_stats.reserved);
  for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
    mi_os_block_t os;
    const size_t size = too_large[i] & ~(page - 1);
    errno = 12345;
    MI_CHECK(_mi_os_reserve_aligned(size, page, page, true, &os) == NULL);
    MI_CHECK(_mi_os_reserve_aligned(size, 64 * MIB, 0, false, &os) == NULL);
    MI_CHECK_EQ(errno, 12345);
  }
  MI_CHECK_EQ(_mi_stat_view(&_mi_stats.reserved).current, before.current);
}

// No room to align in does not hinder what fits exactly.
static void mi_os_test_limited(void* arg) {
  (void)arg;
  const size_t page = _mi_os_page_size();
  // What is mapped already counts: a sanitizer's shadow is larger than any limit of interest.
  unsigned long long pages = 0;
  FILE* const statm = fopen("/proc/self/statm", "r");
  MI_REQUIRE(statm != NULL && fscanf(statm, "%llu", &pages) == 1);
  fclose(statm);
  const rlim_t bytes = (rlim_t)(pages * page + 256 * MIB);
  const struct rlimit limit = {bytes, bytes};
  MI_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  mi_os_block_t os;
  MI_CHECK(_mi_os_reserve_aligned(1024 * MIB, page, page, true, &os) == NULL);
  const size_t sizes[] = {MIB, 8 * MIB, 64 * MIB};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    unsigned char* const p = _mi_os_reserve_aligned(sizes[i], 64 * KIB, page, true, &os);
    if (MI_CHECK(p != NULL)) {
      memset(p, 1, sizes[i]);
      _mi_os_release(&os);
    }
  }
}

MI_TEST(address_space_limit) { MI_CHECK_IN_CHILD(&mi_os_test_limited, NULL, 20000); }

// With mappings for one more piece but not for its guards the memory is given, and the missing guards are counted.
static void mi_os_test_no_mappings(void* arg) {
  (void)arg;
  const size_t page = _mi_os_page_size();
  enum { TRIES = 300000,
         SPARE = 4096 };
  static void* spare[SPARE];
  size_t n = 0;
  for (; n < TRIES; n++) {
    void* const p = mmap(NULL, page, n % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      break;
    }
    spare[n % SPARE] = p;
  }
  if (n == TRIES) {
    _exit(MI_TEST_SKIPPED);
  }
  int64_t skipped = 0;
  for (size_t i = 0; i < 8 && skipped == 0; i++) {
    munmap(spare[(i * 2) % SPARE], page);
    mi_os_block_t os;
    const int64_t before = _mi_counter_view(&_mi_stats.guards_skipped);
    unsigned char* const p = _mi_os_reserve_aligned(16 * page, page, page, true, &os);
    if (p != NULL) {
      memset(p, 1, 16 * page);
      skipped = _mi_counter_view(&_mi_stats.guards_skipped) - before;
    }
  }
  MI_CHECK_EQ(skipped, 1);
}

// The memory sanitizer needs mappings of its own, and ends the process where there are none left.
MI_TEST(mappings_exhausted) {
  if (MI_MSAN_BUILD) {
    return;
  }
  static mi_test_child_t child;
  mi_test_child_run(&child, &mi_os_test_no_mappings, NULL, 60000);
  if (child.status == MI_TEST_SKIPPED) {
    MI_TEST_SKIP("this system has no low limit of mappings");
  } else {
    MI_CHECK_CHILD_OK(&child, "memory without guards");
  }
}

MI_TEST_MAIN()
