// Owns: the moment in which an arena of a process with a limit of addresses gives its memory back, and somebody else wants an arena.
// May include: everything; linked with _mi_prim_release wrapped.
// Called by: the test runner, under every variant.
// Invariants: what another thread could do at that moment is done in the call that gives the memory back, so nothing depends on time.
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/heap/process.h"
#include "src/prim/prim.h"
#include "src/region/arena-create.h"
#include "test/lib/test.h"

enum { SLICES = 64,
       LIMIT_MIB = 1536 };

int __real__mi_prim_release(void* addr, size_t size);
int __wrap__mi_prim_release(void* addr, size_t size);

static bool mi_vacate_test_watches;
static mi_run_t mi_vacate_test_between;

int __wrap__mi_prim_release(void* addr, size_t size) {
  if (mi_vacate_test_watches) {
    mi_vacate_test_watches = false;
    MI_REQUIRE(_mi_arena_claim(SLICES, MI_SLICE_SIZE, false, &mi_vacate_test_between));
  }
  return __real__mi_prim_release(addr, size);
}

// Before the allocator looks how much there is, which it does in a constructor of its own.
__attribute__((constructor(101))) static void mi_vacate_test_limit(void) {
  // What is mapped already counts, as the shadow of a sanitizer.
  unsigned long long pages = 0;
  FILE* const statm = fopen("/proc/self/statm", "r");
  MI_REQUIRE(statm != NULL && fscanf(statm, "%llu", &pages) == 1);
  fclose(statm);
  const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)LIMIT_MIB * MI_MIB;
  const struct rlimit limit = {bytes, bytes};
  MI_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
}

MI_TEST(claim_while_an_arena_is_vacated) {
  MI_REQUIRE(_mi_process_init() && _mi_arenas_are_limited());
  mi_run_t run;
  MI_REQUIRE(_mi_arena_claim(SLICES, MI_SLICE_SIZE, false, &run));
  mi_arena_t* const arena = run.arena;
  MI_REQUIRE(_mi_bitmap_count(arena->free, 0, arena->slice_count) == arena->slice_count - SLICES);
  mi_vacate_test_watches = true;
  _mi_arena_release(arena, run.index, SLICES, false);
  MI_REQUIRE(!mi_vacate_test_watches && mi_vacate_test_between.arena != NULL);
  // Its memory is on the way out, and its bitmaps are about to be cleared.
  MI_CHECK(mi_vacate_test_between.arena != arena);
  MI_CHECK(mi_atomic_load_relaxed(&arena->vacant) && _mi_bitmap_count(arena->free, 0, arena->slice_count) == 0);
  const mi_run_t* const between = &mi_vacate_test_between;
  MI_CHECK(_mi_bitmap_count(between->arena->dirty, between->index, SLICES) == SLICES);
  memset(between->start, 0x5a, SLICES * MI_SLICE_SIZE);
  // Afterwards it may serve again: nothing else has room for as much.
  MI_REQUIRE(between->arena->slice_count <= arena->slice_count);
  MI_REQUIRE(_mi_arena_claim(arena->slice_count, MI_SLICE_SIZE, false, &run));
  MI_CHECK(run.arena == arena && !mi_atomic_load_relaxed(&arena->vacant));
  run.start[0] = 1;
  run.start[run.slices * MI_SLICE_SIZE - 1] = 1;
  MI_CHECK(between->start[0] == 0x5a && between->start[SLICES * MI_SLICE_SIZE - 1] == 0x5a);
  _mi_arena_release(run.arena, run.index, run.slices, false);
  _mi_arena_release(between->arena, between->index, SLICES, false);
  MI_CHECK(mi_atomic_load_relaxed(&arena->vacant) && mi_atomic_load_relaxed(&between->arena->vacant));
}

MI_TEST_MAIN()
