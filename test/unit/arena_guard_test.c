// Owns: tests of region/arena-guard: that guards lie where the bits say and nowhere else, whatever pages come and go.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: a block is written from end to end, so a guard in one is a fault; each test has a child and a means of its own.
#include "src/region/arena-guard.h"

#include <pthread.h>

#include "hardening/large-layout.h"
#include "src/alloc/alloc.h"
#include "src/heap/process.h"
#include "src/heap/single.h"
#include "src/region/arena-quarantine.h"
#include "src/region/meta.h"
#include "src/sys/options.h"
#include "test/lib/child.h"
#include "test/lib/pace.h"
#include "test/lib/probe.h"
#include "test/lib/test.h"

enum { THREADS = 3,
       SLOTS = 40 };

static uint64_t mi_arena_guard_test_deadline;

// Large ones are few: each of their OS pages is touched.
static size_t mi_arena_guard_test_size(uint64_t* seed) {
  static const size_t limits[] = {100, 100, 1000, 1000, 9000, 9000, 70000, 70000, 70000, 600000, 600000, 3000000, 9000000};
  return 1 + (size_t)(mi_test_random(seed) % limits[mi_test_random(seed) % (sizeof(limits) / sizeof(limits[0]))]);
}

static void mi_arena_guard_test_write(uint8_t* p) {
  const size_t usable = _mi_usable_size(p);
  for (size_t at = 0; at < usable; at += 2048) {
    p[at] = 1;
  }
  p[usable - 1] = 1;
}

static void* mi_arena_guard_test_mix(void* arg) {
  uint64_t seed = (uintptr_t)arg;
  uint8_t* blocks[SLOTS] = {NULL};
  const long steps = mi_test_scale("MI_TEST_ROUNDS", 250);
  for (long i = 0; mi_test_goes_on(i, steps, mi_arena_guard_test_deadline); i++) {
    const size_t k = mi_test_random(&seed) % SLOTS;
    const uint64_t what = mi_test_random(&seed) % 16;
    const size_t size = mi_arena_guard_test_size(&seed);
    uint8_t* p;
    if (what < 3 && blocks[k] != NULL) {
      p = _mi_realloc(NULL, blocks[k], size, false);
    } else {
      _mi_free(blocks[k]);
      p = what == 4 ? _mi_alloc_aligned(NULL, size, (size_t)16 << mi_test_random(&seed) % 18, 0, false) : _mi_theap_alloc(NULL, size, what == 5);
    }
    MI_REQUIRE(p != NULL);
    blocks[k] = p;
    mi_arena_guard_test_write(p);
    if (what == 6) {
      _mi_arenas_purge(0, true);
    } else if (what == 7 && i % 8 == 0) {
      _mi_collect(true);
    }
  }
  for (size_t k = 0; k < SLOTS; k += 1 + (seed & 1)) {
    _mi_free(blocks[k]);
  }
  return NULL;
}

// Nobody else runs.
static void mi_arena_guard_test_check(const char* when) {
  const size_t page_size = _mi_os_page_size();
  mi_arena_t* arena;
  size_t wrong = 0;
  for (size_t a = 0; (arena = _mi_arena_at(a)) != NULL; a++) {
    for (size_t i = 0; i < arena->slice_count; i++) {
      const uint8_t* const slice = arena->base + i * MI_SLICE_SIZE;
      const bool guarded = _mi_bitmap_count(arena->guarded, i, 1) == 1;
      const bool sealed = _mi_bitmap_count(arena->sealed, i, 1) == 1;
      const bool committed = _mi_bitmap_count(arena->committed, i, 1) == 1;
      // Slices that were never used are all alike: a sample of them is looked at.
      if (!committed || (!guarded && !sealed && _mi_bitmap_count(arena->dirty, i, 1) == 0 && i % 64 != 0)) {
        wrong += !committed && (guarded || sealed);
        continue;
      }
      wrong += mi_test_is_readable(slice + MI_SLICE_SIZE - 1) == guarded && !(sealed && !guarded);
      for (size_t at = 0; at < MI_SLICE_SIZE - page_size && !sealed; at += page_size) {
        wrong += !mi_test_is_readable(slice + at);
      }
    }
  }
  MI_CHECK_MSG(wrong == 0, "%s: %zu slices are not as their bits say", when, wrong);
}

typedef struct mi_arena_guard_test_mode_s {
  long guard_pages;
  long purge_delay;
  long purge_decommits;
  long eager_commit;
} mi_arena_guard_test_mode_t;

static const mi_arena_guard_test_mode_t mi_arena_guard_test_modes[] = {
    {1, 5, 1, 1},
    {1, 0, 1, 1},
    {1, 5, 0, 1},
    {1, 5, 1, 0},
    {1, -1, 1, 1},
    {2, 5, 1, 1},
    {2, 0, 1, 0},
    {2, 5, 0, 0},
    {0, 5, 1, 1},
};
enum { MODES = sizeof(mi_arena_guard_test_modes) / sizeof(mi_arena_guard_test_modes[0]) };

static void mi_arena_guard_test_set(const mi_arena_guard_test_mode_t* mode) {
  _mi_option_set(mi_option_guard_pages, mode->guard_pages);
  _mi_option_set(mi_option_purge_delay, mode->purge_delay);
  _mi_option_set(mi_option_purge_decommits, mode->purge_decommits);
  _mi_option_set(mi_option_arena_eager_commit, mode->eager_commit);
  MI_REQUIRE(_mi_process_init());
}

static void mi_arena_guard_test_in_child(void* arg) {
  mi_arena_guard_test_mix((void*)(uintptr_t)77);
  mi_arena_guard_test_check("in a forked child");
  (void)arg;
}

static bool mi_arena_guard_test_add_single(mi_page_t* page, void* bits) {
  *(size_t*)bits += (page->os_guards & MI_OS_GUARD_HEAD) != 0;
  *(size_t*)bits += (page->os_guards & MI_OS_GUARD_TAIL) != 0;
  return true;
}

static void mi_arena_guard_test_threads(void* arg) {
  const mi_arena_guard_test_mode_t* const mode = arg;
  mi_arena_guard_test_set(mode);
  mi_arena_guard_test_deadline = mi_test_deadline_among(2);
  mi_arena_guard_test_mix((void*)(uintptr_t)1);
  mi_arena_guard_test_check("after one thread");
  pthread_t threads[THREADS];
  for (uintptr_t t = 0; t < THREADS; t++) {
    MI_REQUIRE(pthread_create(&threads[t], NULL, &mi_arena_guard_test_mix, (void*)(t + 2)) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
  }
  mi_arena_guard_test_check("after several");
  if (mode->guard_pages == 2) {
    // Blocks that moved have mappings of their own.
    size_t bits = 0;
    _mi_single_visit(&mi_arena_guard_test_add_single, &bits);
    mi_arena_t* arena;
    for (size_t a = 0; (arena = _mi_arena_at(a)) != NULL; a++) {
      bits += _mi_bitmap_count(arena->guarded, 0, arena->slice_count) + _mi_bitmap_count(arena->sealed, 0, arena->slice_count);
    }
    MI_CHECK_EQ(bits, _mi_guard_units());
  }
  MI_CHECK_IN_CHILD(mi_arena_guard_test_in_child, NULL, 60000);
}

MI_TEST(mixes) {
  for (size_t i = 0; i < MODES; i++) {
    mi_arena_guard_test_mode_t mode = mi_arena_guard_test_modes[i];
    static mi_test_child_t r;
    mi_test_child_run(&r, mi_arena_guard_test_threads, &mode, 100000);
    MI_CHECK_MSG(mi_test_child_ok(&r, __FILE__, __LINE__, "mode"), "guard_pages %ld, delay %ld, decommits %ld, eager %ld", mode.guard_pages,
                 mode.purge_delay, mode.purge_decommits, mode.eager_commit);
  }
}

// Pages of blocks: the last OS page holds none, and cannot be read where the means is there.
static void mi_arena_guard_test_pages(void* arg) {
  (void)arg;
  mi_arena_guard_test_set(&mi_arena_guard_test_modes[0]);
  for (size_t size = 16; size + MI_BLOCK_EXTRA <= MI_LARGE_BLOCK_MAX; size *= 2) {
    uint8_t* const p = _mi_theap_alloc(NULL, size, false);
    const mi_page_t* const page = _mi_page_map_find(p);
    const size_t whole = page->slice_count * MI_SLICE_SIZE;
    const size_t guard = _mi_hard_guard_size(whole, _mi_os_page_size());
    MI_CHECK(page->reserved * page->block_size <= whole - guard);
    MI_CHECK_EQ(mi_test_is_readable(page->start + whole - 1), guard == 0);
    MI_CHECK(mi_test_is_readable(page->start + whole - guard - 1));
  }
}

MI_TEST(pages_of_blocks) { MI_CHECK_IN_CHILD(mi_arena_guard_test_pages, NULL, 10000); }

// Before and behind: every arena, its metadata, the chunks of other metadata, the page map.
// The metadata of a process without many heaps shares 64 MiB, readable from end to end; nothing of the program lies between the guards.
static void mi_arena_guard_test_lies_between_guards(const void* metadata) {
  const size_t page = _mi_os_page_size();
  const size_t most = ((size_t)64 * MI_MIB) / page;
  const uint8_t* const p = (const uint8_t*)((uintptr_t)metadata & ~(uintptr_t)(page - 1));
  size_t below = 0;
  while (below <= most && mi_test_is_readable(p - below * page)) {
    below++;
  }
  size_t above = 0;
  while (above <= most && mi_test_is_readable(p + above * page)) {
    above++;
  }
  MI_CHECK_MSG(below > 0 && above > 0 && below + above - 1 <= most, "%zu OS pages below, %zu above", below, above);
}

static void mi_arena_guard_test_surroundings(void* arg) {
  (void)arg;
  MI_REQUIRE(_mi_process_init());
  _mi_free(_mi_theap_alloc(NULL, 100, false));
  // A second arena.
  _mi_option_set(mi_option_arena_reserve, 64 * 1024);
  void* blocks[60];
  for (size_t i = 0; i < 60; i++) {
    blocks[i] = _mi_theap_alloc(NULL, (size_t)15 * MI_MIB, false);
  }
  mi_arena_t* arena;
  size_t arenas = 0;
  for (; (arena = _mi_arena_at(arenas)) != NULL; arenas++) {
    const mi_os_block_t parts[] = {arena->os, arena->meta_os};
    for (size_t i = 0; i < 2; i++) {
      const uint8_t* const base = parts[i].base;
      MI_CHECK(!mi_test_is_readable(base) && !mi_test_is_readable(base + parts[i].size - 1));
    }
    MI_CHECK(!mi_test_is_readable(arena->base - 1) && !mi_test_is_readable(arena->base + arena->slice_count * MI_SLICE_SIZE));
    // It is a mapping of its own, or lies with other metadata.
    MI_CHECK(mi_test_is_readable(arena));
    if (mi_test_is_readable((uint8_t*)arena - 1)) {
      mi_arena_guard_test_lies_between_guards(arena);
    }
  }
  MI_CHECK(arenas >= 1);
  const mi_page_map_tables_t* const tables = _mi_page_map.tables;
  const uint8_t* const end = (const uint8_t*)(uintptr_t)(tables->leaves + tables->empty.head.root_count);
  mi_arena_guard_test_lies_between_guards(tables);
  mi_arena_guard_test_lies_between_guards(end - 1);
  mi_arena_guard_test_lies_between_guards(_mi_meta_zalloc(64));
  for (size_t i = 0; i < 60; i++) {
    _mi_free(blocks[i]);
  }
}

MI_TEST(surroundings) { MI_CHECK_IN_CHILD(mi_arena_guard_test_surroundings, NULL, 10000); }

MI_TEST_MAIN()
