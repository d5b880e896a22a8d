// Owns: the comparison of the model with what visits and statistics tell.
// May include: fuzz/lib, mimalloc.h, mimalloc-stats.h.
// Called by: through model.h.
// Invariants: no thread acts meanwhile, so all of it is exact but peaks.
#include <string.h>

#include "fuzz/lib/model.h"
#include "mi-profile.h"
#include "mimalloc-stats.h"

typedef struct mi_fuzz_visit_s {
  uint8_t heap;
  size_t told;
  size_t used;  // as areas say
  bool seen[MI_FUZZ_BLOCKS];
} mi_fuzz_visit_t;

// A visit tells of a block from its beginning, which may lie before the address that the program has, to the same end.
static const mi_fuzz_block_t* mi_fuzz_block_ending_at(const uint8_t* p, size_t size) {
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    const mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[i];
    if (block->p != NULL && block->p >= p && block->p + block->usable == p + size) {
      return block;
    }
  }
  return NULL;
}

static bool mi_fuzz_on_visit(const mi_heap_t* heap, const mi_heap_area_t* area, void* p, size_t size, void* arg) {
  mi_fuzz_visit_t* const visit = arg;
  MI_FUZZ_CHECK(heap == mi_fuzz_model.heaps[visit->heap].heap && area->heap_tag == mi_fuzz_model.heaps[visit->heap].tag,
                "visit: an area of another heap");
  if (p == NULL) {
    visit->used += area->used;
    return true;
  }
  const mi_fuzz_block_t* const block = mi_fuzz_block_ending_at(p, size);
  MI_FUZZ_CHECK(block != NULL, "visit: %zu bytes at %p are told of and not live", size, p);
  MI_FUZZ_CHECK(block->heap == visit->heap && (p == block->p || block->placed != 0),
                "visit: %zu bytes at %p in heap %u are told of, where %zu at %p in heap %u are live", size, p, visit->heap,
                block->usable, (void*)block->p, block->heap);
  bool* const seen = &visit->seen[block - mi_fuzz_model.blocks];
  MI_FUZZ_CHECK(!*seen, "visit: the block at %p is told of twice", p);
  *seen = true;
  visit->told++;
  return true;
}

static size_t mi_fuzz_live_in(uint8_t heap) {
  size_t count = 0;
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    count += mi_fuzz_model.blocks[i].p != NULL && mi_fuzz_model.blocks[i].heap == heap;
  }
  return count;
}

void mi_fuzz_check_visits(void) {
  for (uint8_t heap = 0; heap < MI_FUZZ_HEAPS; heap++) {
    if (!mi_fuzz_model.heaps[heap].there) {
      continue;
    }
    mi_fuzz_visit_t visit = {.heap = heap};
    const size_t live = mi_fuzz_live_in(heap);
    MI_FUZZ_CHECK(mi_heap_visit_blocks(mi_fuzz_model.heaps[heap].heap, true, &mi_fuzz_on_visit, &visit), "visit: it did not end well");
    MI_FUZZ_CHECK(visit.told == live && visit.used == live, "visit: heap %u has %zu live blocks, %zu are told of, areas say %zu", heap,
                  live, visit.told, visit.used);
    mi_fuzz_visit_t abandoned = {.heap = heap};
    MI_FUZZ_CHECK(mi_heap_visit_abandoned_blocks(mi_fuzz_model.heaps[heap].heap, true, &mi_fuzz_on_visit, &abandoned),
                  "visit: it did not end well");
  }
}

static bool mi_fuzz_on_visit_of_any(const mi_heap_t* heap, const mi_heap_area_t* area, void* p, size_t size, void* arg) {
  mi_fuzz_visit_t* const visit = arg;
  for (visit->heap = 0; visit->heap < MI_FUZZ_HEAPS; visit->heap++) {
    if (mi_fuzz_model.heaps[visit->heap].there && mi_fuzz_model.heaps[visit->heap].heap == heap) {
      return mi_fuzz_on_visit(heap, area, p, size, arg);
    }
  }
  mi_fuzz_fail("visit: an area of a heap that there is not");
}

void mi_fuzz_check_thread_visits(uint8_t heap) {
  mi_fuzz_visit_t mine = {.heap = heap};
  if (!mi_fuzz_model.late[mi_fuzz_model.actor]) {
    MI_FUZZ_CHECK(mi_theap_visit_blocks(mi_heap_theap(mi_fuzz_model.heaps[heap].heap), true, &mi_fuzz_on_visit, &mine),
                  "visit: it did not end well");
  }
  mi_fuzz_visit_t nobodys = {.heap = 0};
  MI_FUZZ_CHECK(mi_abandoned_visit_blocks(mi_subproc_main(), -1, true, &mi_fuzz_on_visit_of_any, &nobodys), "visit: it did not end well");
}

// Statistics

static void mi_fuzz_check_count(const char* what, const mi_stat_count_t* count) {
  MI_FUZZ_CHECK(0 <= count->current && count->current <= count->peak && count->peak <= count->total,
                "stats: %s: total %lld, peak %lld, current %lld", what, (long long)count->total, (long long)count->peak,
                (long long)count->current);
}

// Blocks and bytes of one heap or of the process.
static void mi_fuzz_check_stats_of(const char* what, const mi_stats_t* stats, size_t live, size_t requested, size_t before,
                                   size_t usable) {
  int64_t blocks = 0;
  for (size_t bin = 0; bin <= MI_BIN_HUGE; bin++) {
    mi_fuzz_check_count("malloc_bins", &stats->malloc_bins[bin]);
    mi_fuzz_check_count("page_bins", &stats->page_bins[bin]);
    blocks += stats->malloc_bins[bin].current;
  }
  MI_FUZZ_CHECK(blocks == (int64_t)live, "stats: %s: %lld blocks are counted, %zu are live", what, (long long)blocks, live);
  mi_fuzz_check_count("pages", &stats->pages);
  mi_fuzz_check_count("malloc_normal", &stats->malloc_normal);
  mi_fuzz_check_count("malloc_huge", &stats->malloc_huge);
  mi_fuzz_check_count("malloc_requested", &stats->malloc_requested);
  mi_fuzz_check_count("pages_abandoned", &stats->pages_abandoned);
  const int64_t bytes = stats->malloc_normal.current + stats->malloc_huge.current;
  MI_FUZZ_CHECK(bytes >= (int64_t)usable, "stats: %s: %lld bytes are counted, %zu can be used", what, (long long)bytes, usable);
  if (MI_STATS_LEVEL >= 2) {
    const int64_t counted = stats->malloc_requested.current;
    MI_FUZZ_CHECK(counted >= (int64_t)requested && counted <= (int64_t)(requested + before),
                  "stats: %s: %lld bytes were asked for, it was %zu and up to %zu before them", what, (long long)counted, requested, before);
  }
}

void mi_fuzz_check_stats(void) {
  static mi_stats_t stats;
  size_t all = 0;
  size_t all_requested = 0;
  size_t all_before = 0;
  size_t all_usable = 0;
  for (uint8_t heap = 0; heap < MI_FUZZ_HEAPS; heap++) {
    if (!mi_fuzz_model.heaps[heap].there) {
      continue;
    }
    size_t requested = 0;
    size_t before = 0;  // at most, between the beginnings of blocks and their addresses
    size_t usable = 0;
    for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
      const mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[i];
      if (block->p != NULL && block->heap == heap) {
        requested += block->size;
        before += block->placed;
        usable += block->usable;
      }
    }
    mi_stats_init(&stats);
    MI_FUZZ_CHECK(mi_heap_stats_get(mi_fuzz_model.heaps[heap].heap, &stats), "stats: none of heap %u", heap);
    mi_fuzz_check_stats_of("heap", &stats, mi_fuzz_live_in(heap), requested, before, usable);
    all += mi_fuzz_live_in(heap);
    all_requested += requested;
    all_before += before;
    all_usable += usable;
  }
  mi_stats_init(&stats);
  MI_FUZZ_CHECK(mi_stats_get(&stats), "stats: none of the process");
  mi_fuzz_check_stats_of("process", &stats, all, all_requested, all_before, all_usable);
  mi_fuzz_check_count("committed", &stats.committed);
  mi_fuzz_check_count("reserved", &stats.reserved);
  mi_fuzz_check_count("page_committed", &stats.page_committed);
  mi_fuzz_check_count("heaps", &stats.heaps);
  mi_fuzz_check_count("threads", &stats.threads);
  mi_fuzz_check_count("theaps", &stats.theaps);
}
