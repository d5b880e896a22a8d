// Owns: the target that enters pages in the page map at any address and looks them up.
// May include: fuzz/lib, src/region.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: the addresses are of one part of the address space that the system does not use; what is entered is taken out again.
#include "fuzz/lib/fuzz.h"
#include "mimalloc.h"
#include "src/region/page-map.h"

enum { PAGES = 24,
       LEAVES = 3 };

typedef struct mi_entered_s {
  uintptr_t start;
  size_t slices;  // 0: it is not entered
} mi_entered_t;

static mi_entered_t model[PAGES];
static uint64_t pages[PAGES][8];  // only their addresses are used

static mi_page_t* mi_model_find(uintptr_t address) {
  for (size_t i = 0; i < PAGES; i++) {
    const size_t slices = model[i].slices < MI_PAGE_MAP_SLICES_MAX ? model[i].slices : MI_PAGE_MAP_SLICES_MAX;
    if (address - model[i].start < slices * MI_SLICE_SIZE) {
      return (mi_page_t*)(void*)pages[i];
    }
  }
  return NULL;
}

static void mi_check(uintptr_t address) {
  MI_FUZZ_CHECK(_mi_page_map_find((const void*)address) == mi_model_find(address), "0x%zx is found in page %p instead of %p", (size_t)address,
                (void*)_mi_page_map_find((const void*)address), (void*)mi_model_find(address));
}

static bool mi_is_free(uintptr_t start, size_t slices) {
  for (size_t i = 0; i < PAGES; i++) {
    if (model[i].slices != 0 && start < model[i].start + model[i].slices * MI_SLICE_SIZE && model[i].start < start + slices * MI_SLICE_SIZE) {
      return false;
    }
  }
  return true;
}

// The process's own map is used.
int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  mi_process_init();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  // The sixth to eighth leaf, with what crosses from one to the next.
  const uintptr_t base = (uintptr_t)5 << MI_PAGE_MAP_ROOT_SHIFT;
  const size_t span = (size_t)LEAVES * MI_PAGE_MAP_LEAF_ENTRIES;
  while (input.left > 0) {
    const size_t i = (size_t)mi_fuzz_take(&input, 1);
    size_t at = (size_t)mi_fuzz_take(&input, 3) % span;
    const size_t slices = 1 + (size_t)mi_fuzz_take(&input, 2) % (i & 128 ? 70000 : 80);
    if ((i & 64) != 0) {
      // Near the border of leaves.
      at = MI_PAGE_MAP_LEAF_ENTRIES - 40 + at % 80;
    }
    mi_entered_t* const page = &model[i % PAGES];
    const uintptr_t start = base + at * MI_SLICE_SIZE;
    if (page->slices != 0) {
      _mi_page_map_unregister((const void*)page->start, page->slices);
      const mi_entered_t old = *page;
      page->slices = 0;
      mi_check(old.start);
      mi_check(old.start + old.slices * MI_SLICE_SIZE - 1);
    } else if (mi_is_free(start, slices)) {
      MI_FUZZ_CHECK(_mi_page_map_register((const void*)start, slices, (mi_page_t*)(void*)pages[i % PAGES]), "0x%zx is refused", (size_t)start);
      *page = (mi_entered_t){start, slices};
      mi_check(start);
      mi_check(start - 1);
      mi_check(start + slices * MI_SLICE_SIZE - 1);
      mi_check(start + slices * MI_SLICE_SIZE);
    }
    mi_check(base + (at + slices) % span * MI_SLICE_SIZE + slices % MI_SLICE_SIZE);
    // Any address at all.
    const uintptr_t any = (uintptr_t)mi_fuzz_take(&input, 8);
    if (any - base >= span * MI_SLICE_SIZE) {
      (void)_mi_page_map_find((const void*)any);
    } else {
      mi_check(any);
    }
  }
  for (size_t i = 0; i < PAGES; i++) {
    if (model[i].slices != 0) {
      _mi_page_map_unregister((const void*)model[i].start, model[i].slices);
      model[i].slices = 0;
      mi_check(model[i].start);
    }
  }
  return 0;
}
