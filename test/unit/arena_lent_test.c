// Owns: tests of memory that the program lends: what is in it, purges and guards, the program's own commit, and the end.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: the memory is mapped by the test, which looks at it from outside; no thread is started.
#include "src/region/arena-program.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "mimalloc.h"
#include "src/heap/heap.h"
#include "src/sys/guard.h"
#include "src/sys/options.h"
#include "src/sys/stats.h"
#include "test/lib/arena.h"
#include "test/lib/child.h"

enum { CHILD_MS = 60000 };

// What is in the memory

MI_TEST(zero_is_believed_and_nothing_else_is) {
  uint8_t* const p = mi_test_arena_map(4 * MIB, PROT_READ | PROT_WRITE);
  memset(p, 0xa5, 4 * MIB);
  const mi_arena_id_t dirty = mi_test_arena_lend(p, 4 * MIB, false, false);
  const mi_arena_id_t clean = mi_test_arena_lend(mi_test_arena_map(4 * MIB, PROT_READ | PROT_WRITE), 4 * MIB, false, true);
  for (int round = 0; round < 4; round++) {
    mi_heap_t* const heap = mi_test_arena_heap(round % 2 == 0 ? dirty : clean);
    for (size_t i = 0; i < SIZES - 1; i++) {
      uint8_t* const q = mi_heap_zalloc(heap, mi_test_arena_sizes[i]);
      MI_REQUIRE(q != NULL);
      MI_CHECK(q[0] == 0 && mi_test_all_bytes(q, mi_test_arena_sizes[i], 0));
      memset(q, 0x77, mi_test_arena_sizes[i]);
    }
    mi_heap_destroy(heap);
    mi_arenas_purge();
  }
}

// The system fills purged memory of a file from the file again.
MI_TEST(memory_of_a_file_is_not_zero_when_purged) {
  char name[] = "/tmp/mi-arena-XXXXXX";
  const int fd = mkstemp(name);
  MI_REQUIRE(fd >= 0 && unlink(name) == 0);
  static char bytes[SLICE];
  memset(bytes, 0xc3, sizeof(bytes));
  for (int i = 0; i < 64; i++) {
    MI_REQUIRE(write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
  }
  uint8_t* const p = mmap(NULL, 64 * SLICE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  MI_REQUIRE(p != MAP_FAILED);
  const mi_arena_id_t id = mi_test_arena_lend(p, 64 * SLICE, false, false);
  for (int round = 0; round < 4; round++) {
    mi_heap_t* const heap = mi_test_arena_heap(id);
    for (size_t i = 0; i < SIZES - 2; i++) {
      uint8_t* const q = mi_heap_zalloc(heap, mi_test_arena_sizes[i]);
      MI_REQUIRE(q != NULL);
      MI_CHECK(q[0] == 0 && mi_test_all_bytes(q, mi_test_arena_sizes[i], 0));
      memset(q, 0x77, mi_test_arena_sizes[i]);
    }
    mi_heap_destroy(heap);
    mi_arenas_purge();
  }
  close(fd);
}

static size_t mi_lent_test_resident(uint8_t* p, size_t size) {
  static unsigned char pages[LENT / 4096];
  const size_t page = _mi_os_page_size();
  size_t n = 0;
  MI_REQUIRE(size / page <= sizeof(pages) && mincore(p, size, pages) == 0);
  for (size_t i = 0; i < size / page; i++) {
    n += pages[i] & 1;
  }
  return n * page;
}

MI_TEST(unused_lent_memory_is_purged_and_stays_mapped) {
  uint8_t* const p = mi_test_arena_map(LENT, PROT_READ | PROT_WRITE);
  const mi_arena_id_t id = mi_test_arena_lend(p, LENT, false, true);
  const int64_t committed = _mi_stat_view(&_mi_stats.committed).current;
  mi_heap_t* const heap = mi_test_arena_heap(id);
  mi_test_arena_fill(heap, id);
  MI_CHECK(mi_lent_test_resident(p, LENT) > 2 * MIB);
  mi_heap_destroy(heap);
  MI_CHECK(mi_test_arena_is_unused(id));
  MI_CHECK_MSG(mi_lent_test_resident(p, LENT) == 0, "%zu bytes stay", mi_lent_test_resident(p, LENT));
  // Entries of the page map may have come to it.
  MI_CHECK(_mi_stat_view(&_mi_stats.committed).current < committed + MIB);
}

MI_TEST(pinned_memory_is_neither_purged_nor_guarded) {
  uint8_t* const p = mi_test_arena_map(LENT, PROT_READ | PROT_WRITE);
  memset(p, 0x11, LENT);
  const mi_arena_id_t id = mi_test_arena_lend(p, LENT, true, false);
  const int64_t skipped = _mi_counter_view(&_mi_stats.guards_skipped);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  mi_test_arena_fill(heap, id);
  void* const large = mi_heap_malloc(heap, 3 * MIB);
  mi_free(large);
  for (size_t at = 0; at < LENT; at += 4096) {
    const uint8_t byte = *(volatile uint8_t*)(p + at);
    (void)byte;
  }
  mi_heap_destroy(heap);
  MI_CHECK(mi_test_arena_is_unused(id));
  for (size_t at = 0; at < LENT; at += 4096) {
    p[at] = 1;
  }
  MI_CHECK_EQ(mi_lent_test_resident(p, LENT), LENT);
  MI_CHECK((_mi_counter_view(&_mi_stats.guards_skipped) > skipped) == (MI_HAS_GUARD_PAGES && _mi_guard_is_enabled()));
}

// The program's own commit

static struct {
  uint8_t* start;
  uint8_t committed[LENT / SLICE];
  long commits;
  long decommits;
  long refuse_commits;  // so many calls from now on
  long refuse_decommits;
  bool allocates;
  bool tells_zero;
} mi_lent_test_memory;

static bool mi_lent_test_commit(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  MI_CHECK_PTR_EQ(arg, &mi_lent_test_memory);
  MI_CHECK(size > 0 && size % mi_arena_min_alignment() == 0 && (uintptr_t)start % mi_arena_min_alignment() == 0);
  long* const refuse = commit ? &mi_lent_test_memory.refuse_commits : &mi_lent_test_memory.refuse_decommits;
  // The program's function may spoil errno and allocate elsewhere.
  errno = 99;
  if (mi_lent_test_memory.allocates) {
    void* const p = mi_malloc(100000);
    MI_CHECK(p != NULL);
    mi_free(p);
  }
  if (*refuse > 0) {
    --*refuse;
    return false;
  }
  const size_t first = (size_t)((uint8_t*)start - mi_lent_test_memory.start) / SLICE;
  for (size_t i = first; i < first + size / SLICE; i++) {
    MI_CHECK_MSG(mi_lent_test_memory.committed[i] != commit, "slice %zu twice", i);
    mi_lent_test_memory.committed[i] = commit;
  }
  *(commit ? &mi_lent_test_memory.commits : &mi_lent_test_memory.decommits) += 1;
  if (!commit) {
    memset(start, 0x3c, size);
    return mprotect(start, size, PROT_NONE) == 0;
  }
  MI_REQUIRE(mprotect(start, size, PROT_READ | PROT_WRITE) == 0);
  if (mi_lent_test_memory.tells_zero) {
    memset(start, 0, size);
    *is_zero = true;
  }
  return true;
}

static size_t mi_lent_test_committed(void) {
  size_t n = 0;
  for (size_t i = 0; i < sizeof(mi_lent_test_memory.committed); i++) {
    n += mi_lent_test_memory.committed[i];
  }
  return n;
}

static mi_arena_id_t mi_lent_test_lend_with_function(bool is_committed) {
  memset(&mi_lent_test_memory, 0, sizeof(mi_lent_test_memory));
  mi_lent_test_memory.start = mi_test_arena_map(LENT, is_committed ? PROT_READ | PROT_WRITE : PROT_NONE);
  memset(mi_lent_test_memory.committed, is_committed, sizeof(mi_lent_test_memory.committed));
  mi_arena_id_t id = NULL;
  MI_REQUIRE(mi_manage_memory(mi_lent_test_memory.start, LENT, is_committed, false, false, -1, true,
                              &mi_lent_test_commit, &mi_lent_test_memory, &id));
  return id;
}

static void mi_lent_test_function(void* arg) {
  const long means = (long)(intptr_t)arg;
  _mi_option_set(mi_option_guard_pages, means);
  for (int i = 0; i < 4; i++) {
    const mi_arena_id_t id = mi_lent_test_lend_with_function(i == 1);
    mi_lent_test_memory.tells_zero = i == 2;
    mi_lent_test_memory.allocates = i == 3;
    for (int round = 0; round < 4; round++) {
      mi_heap_t* const heap = mi_test_arena_heap(id);
      errno = 5;
      void* const p = mi_heap_malloc(heap, 100);
      MI_CHECK(p != NULL && errno == 5);
      mi_test_arena_fill(heap, id);
      MI_CHECK(mi_lent_test_committed() > 20);
      mi_heap_destroy(heap);
      MI_CHECK(mi_test_arena_is_unused(id));
      MI_CHECK_MSG(i == 1 || mi_lent_test_committed() == 0, "arena %d, round %d: %zu slices stay committed", i, round,
                   mi_lent_test_committed());
    }
    MI_CHECK(mi_lent_test_memory.commits > 0 && mi_lent_test_memory.decommits > 0);
  }
}

MI_TEST(the_programs_function_commits_and_takes_back) {
  MI_CHECK_IN_CHILD(&mi_lent_test_function, (void*)1, CHILD_MS);
  MI_CHECK_IN_CHILD(&mi_lent_test_function, (void*)2, CHILD_MS);
}

// What strict wipes when it is to be purged at once may not be what was never to be had.
MI_TEST(a_refused_commit_is_not_written_to) {
  _mi_option_set(mi_option_arena_purge_immediate_size, 1);
  const mi_arena_id_t id = mi_lent_test_lend_with_function(false);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  for (size_t i = 0; i < SIZES; i++) {
    mi_lent_test_memory.refuse_commits = 1000;
    MI_CHECK(mi_heap_malloc(heap, mi_test_arena_sizes[i]) == NULL);
    mi_lent_test_memory.refuse_commits = 0;
    void* const p = mi_heap_malloc(heap, mi_test_arena_sizes[i]);
    MI_CHECK(p != NULL);
    mi_free(p);
    _mi_collect(true);
  }
  mi_heap_destroy(heap);
  MI_CHECK(mi_test_arena_is_unused(id));
  _mi_option_set(mi_option_arena_purge_immediate_size, 0);
}

MI_TEST(a_refused_commit_is_out_of_memory) {
  const mi_arena_id_t id = mi_lent_test_lend_with_function(false);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  for (size_t i = 0; i < SIZES; i++) {
    mi_lent_test_memory.refuse_commits = 1000;
    errno = 0;
    MI_CHECK(mi_heap_malloc(heap, mi_test_arena_sizes[i]) == NULL);
    MI_CHECK_EQ(errno, ENOMEM);
    mi_lent_test_memory.refuse_commits = 0;
    void* const p = mi_heap_malloc(heap, mi_test_arena_sizes[i]);
    MI_CHECK(p != NULL);
    memset(p, 1, mi_test_arena_sizes[i]);
    mi_free(p);
    _mi_collect(true);
  }
  // A refusal in the middle leaves what was committed before it to be taken back.
  void* blocks[40];
  for (int i = 0; i < 40; i++) {
    blocks[i] = mi_heap_malloc(heap, 200000);
    MI_REQUIRE(blocks[i] != NULL);
  }
  for (int i = 0; i < 40; i += 2) {
    mi_free(blocks[i]);
  }
  _mi_collect(true);
  for (int i = 1; i < 40; i += 2) {
    mi_free(blocks[i]);
  }
  mi_lent_test_memory.refuse_commits = 1000;
  (void)!mi_heap_malloc(heap, 8 * MIB);
  mi_lent_test_memory.refuse_commits = 0;
  mi_heap_destroy(heap);
  MI_CHECK(mi_test_arena_is_unused(id));
  MI_CHECK_EQ(mi_lent_test_committed(), 0);
}

MI_TEST(memory_that_the_program_does_not_take_back_is_used_again) {
  const mi_arena_id_t id = mi_lent_test_lend_with_function(false);
  mi_lent_test_memory.refuse_decommits = 1000000;
  for (int round = 0; round < 5; round++) {
    mi_heap_t* const heap = mi_test_arena_heap(id);
    mi_test_arena_fill(heap, id);
    mi_heap_destroy(heap);
    MI_CHECK(mi_test_arena_is_unused(id));
  }
  MI_CHECK_EQ(mi_lent_test_memory.decommits, 0);
  mi_lent_test_memory.refuse_decommits = 0;
  mi_heap_t* const heap = mi_test_arena_heap(id);
  mi_free(mi_heap_malloc(heap, 100));
  mi_heap_destroy(heap);
  mi_arenas_purge();
  MI_CHECK_EQ(mi_lent_test_committed(), 0);
}

// Memory that is not committed and has no function is made accessible by the system's call.
MI_TEST(lent_memory_is_committed_by_the_system) {
  uint8_t* const p = mi_test_arena_map(LENT, PROT_NONE);
  mi_arena_id_t id = NULL;
  MI_REQUIRE(mi_manage_os_memory_ex(p, LENT, false, false, true, -1, true, &id));
  for (int round = 0; round < 3; round++) {
    mi_heap_t* const heap = mi_test_arena_heap(id);
    mi_test_arena_fill(heap, id);
    mi_heap_destroy(heap);
    MI_CHECK(mi_test_arena_is_unused(id));
  }
  MI_CHECK_EQ(mi_lent_test_resident(p, LENT), 0);
}

// The end. Nothing is released where there were other threads.

static void mi_lent_test_end(void* arg) {
  (void)arg;
  uint8_t* const p = mi_test_arena_map(LENT, PROT_READ | PROT_WRITE);
  const mi_arena_id_t id = mi_test_arena_lend(p, LENT, false, true);
  mi_heap_t* const heap = mi_test_arena_heap(id);
  mi_test_arena_fill(heap, id);
  mi_free(mi_heap_malloc(heap, 3 * MIB));
  uint8_t* const q = mi_heap_malloc(heap, 100);
  memset(q, 0x61, 100);
  MI_CHECK(_mi_heaps_destroy_all(false));
  MI_CHECK(mi_test_all_bytes(q, 100, 0x61));
  // Every page of it can be written to: it is mapped, and without our guards.
  for (size_t at = 0; at < LENT; at += 4096) {
    p[at] = 1;
  }
}

MI_TEST(the_end_leaves_lent_memory_alone) { MI_CHECK_IN_CHILD(&mi_lent_test_end, NULL, CHILD_MS); }

MI_TEST_MAIN()
