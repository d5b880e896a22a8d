// Owns: arenas for tests: memory of the program's own, heaps in an arena, and their use.
// May include: test/lib/test.h, mimalloc.h, src/heap, src/region.
// Called by: unit tests of arenas.
// Invariants: what cannot be made ends the test; sizes are of every kind of page.
#pragma once

#include <sys/mman.h>

#include "mimalloc.h"
#include "src/base/bits.h"
#include "src/heap/heap.h"
#include "src/heap/process.h"
#include "src/region/arena-program.h"
#include "test/lib/test.h"

enum { MIB = 1024 * 1024,
       LENT = 16 * MIB,
       SLICE = MI_SLICE_SIZE };

static const size_t mi_test_arena_sizes[] = {1, 16, 100, 1000, 5000, 9000, 40000, 70000, 300000, 600000, 2000000};
enum { SIZES = sizeof(mi_test_arena_sizes) / sizeof(mi_test_arena_sizes[0]) };

// Memory of the program's own at a multiple of a slice.
static MI_TEST_UNUSED uint8_t* mi_test_arena_map(size_t size, int prot) {
  uint8_t* const p = mmap(NULL, size + SLICE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  return (uint8_t*)_mi_align_up_ptr((uintptr_t)p, SLICE);
}

static MI_TEST_UNUSED mi_arena_id_t mi_test_arena_lend(void* p, size_t size, bool is_pinned, bool is_zero) {
  mi_arena_id_t id = NULL;
  MI_REQUIRE(mi_manage_os_memory_ex(p, size, true, is_pinned, is_zero, -1, true, &id) && id != NULL);
  return id;
}

static MI_TEST_UNUSED mi_heap_t* mi_test_arena_heap(mi_arena_id_t id) {
  mi_heap_t* const heap = mi_heap_new_in_arena(id);
  MI_REQUIRE(heap != NULL);
  return heap;
}

// Nothing is in use, and nothing waits in a quarantine of addresses.
static MI_TEST_UNUSED bool mi_test_arena_is_unused(mi_arena_id_t id) {
  _mi_collect(true);
  const mi_arena_t* const arena = _mi_arena_of_id(id);
  return _mi_bitmap_count(arena->free, 0, arena->slice_count) == arena->slice_count;
}

static MI_TEST_UNUSED void mi_test_arena_fill(mi_heap_t* heap, mi_arena_id_t id) {
  size_t count = 0;
  for (int i = 0; i < 300; i++) {
    const size_t size = mi_test_arena_sizes[i % SIZES];
    errno = 0;
    uint8_t* const p = i % 3 == 0 ? mi_heap_zalloc(heap, size) : i % 3 == 1 ? mi_heap_malloc(heap, size)
                                                                            : mi_heap_malloc_aligned(heap, size, 8192);
    if (p == NULL) {
      MI_CHECK_EQ(errno, ENOMEM);
      continue;
    }
    MI_CHECK_MSG(mi_arena_contains(id, p) && mi_arena_contains(id, p + size - 1), "%zu bytes at %p", size, (void*)p);
    if (i % 3 == 0) {
      MI_CHECK(p[0] == 0 && mi_test_all_bytes(p, size, 0));
    }
    memset(p, 0xee, size);
    if (i % 5 == 0) {
      mi_free(p);
    }
    count++;
  }
  MI_CHECK(count > 20);
}
