// Owns: measurements of what an attacker has to guess: places of arenas, of their metadata, of pages, of blocks in pages and of
// large blocks, which page serves next, and the keys of ends.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: each sample is a process of its own that had no arena before, so what is measured is what processes differ in.
// There are fewer than 50 statistics, each with a chance of a false alarm of at most 1.4e-11: of all, less than 1e-9. A run with
// a bit less of randomness fails, which `control` shows.
#include <sys/wait.h>

#include "hardening/place.h"
#include "src/alloc/alloc.h"
#include "src/heap/heap.h"
#include "src/region/arena-create.h"
#include "src/sys/options.h"
#include "src/sys/os.h"
#include "test/lib/chi.h"
#include "test/lib/test.h"

enum { SAMPLES = 3200,
       CELLS = 64,
       CLASSES = 3,
       LARGE = 600000,
       NEXT_PAGES = 4,
       NEXT_TRIES = 4000 };

static const size_t mi_entropy_test_sizes[CLASSES] = {100, 900, 1900};

typedef struct mi_sample_s {
  uint64_t arena;   // the number of its place
  uint64_t places;  // of how many
  uint64_t meta;
  uint64_t meta_places;
  uint64_t hint;   // the slice at which the first search begins
  uint64_t slice;  // of the first page, behind that
  uint64_t large;  // the place of a large block in its slice
  uint64_t large_places;
  uint64_t block[CLASSES];  // the number of the first block of a page
  uint64_t blocks[CLASSES];
  uint64_t key;  // of the ends of blocks
} mi_sample_t;

static mi_sample_t mi_samples[SAMPLES];

static bool mi_entropy_test_applies(void) {
  // Where the system limits or charges addresses, it has its own to do (threat model).
  return MI_HAS_RANDOM_PLACE && sizeof(void*) == 8 && _mi_os_config.address_space_limit == SIZE_MAX && _mi_os_config.has_overcommit &&
      _mi_os_page_size() == 4096;
}

// The number of an address among those that may be wished for.
static void mi_entropy_test_place(const void* p, size_t size, size_t align, uint64_t* number, uint64_t* places) {
  const unsigned bits = (unsigned)_mi_min(_mi_os_config.address_bits, MI_PLACE_ADDRESS_BITS_MAX);
  const uint64_t low = UINT64_C(1) << (bits - MI_PLACE_LOW_SHARE_SHIFT);
  const uint64_t high = UINT64_C(1) << (bits - 1);
  *number = ((uintptr_t)p - low) / align;
  *places = (high - low - size) / align + 1;
}

static void mi_entropy_test_take(mi_sample_t* s) {
  MI_REQUIRE(_mi_arena_at(0) == NULL);
  for (size_t i = 0; i < CLASSES; i++) {
    void* const p = mi_malloc(mi_entropy_test_sizes[i]);
    MI_REQUIRE(p != NULL);
    const mi_page_t* const page = _mi_page_map_find(p);
    MI_REQUIRE(page != NULL);
    s->block[i] = (uint64_t)((uintptr_t)p - (uintptr_t)page->start) / page->block_size;
    s->blocks[i] = page->reserved;
    if (i == 0) {
      const mi_arena_t* const arena = _mi_arena_at(0);
      MI_REQUIRE(arena != NULL && page->arena == arena && _mi_arena_has_room(arena));
      const size_t page_size = _mi_os_page_size();
      mi_entropy_test_place(arena->base, arena->slice_count * MI_SLICE_SIZE + page_size, (size_t)32 << 20, &s->arena, &s->places);
      mi_entropy_test_place(arena, _mi_arena_meta_size(arena->slice_count) + page_size, page_size, &s->meta, &s->meta_places);
      // Nothing has been freed, so the hint is where it was unless the page lies there.
      const uint64_t hint = mi_atomic_load_relaxed(&arena->hint);
      s->hint = hint;
      s->slice = page->slice_index - hint;
      s->key = MI_HAS_PADDING ? page->canary_key.place : 0;
    }
  }
  const size_t first = MI_HAS_GUARD_PAGES ? _mi_os_page_size() : 0;
  void* const p = mi_malloc(LARGE);
  MI_REQUIRE(p != NULL);
  const mi_page_t* const page = _mi_page_map_find(p);
  MI_REQUIRE(page != NULL);
  s->large = ((uint64_t)((uintptr_t)p - (uintptr_t)page->start) - first) / 64;
  s->large_places = (MI_SLICE_SIZE - first) / 64 + 1;
}

static void mi_entropy_test_sample(mi_sample_t* s) {
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    mi_entropy_test_take(s);
    _exit(write(fds[1], s, sizeof(*s)) == (ssize_t)sizeof(*s) ? mi_test_status() : 2);
  }
  close(fds[1]);
  MI_REQUIRE(read(fds[0], s, sizeof(*s)) == (ssize_t)sizeof(*s));
  close(fds[0]);
  int status = -1;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
}

// The figure of sample i, below `cells`.
typedef size_t mi_figure_t(size_t i, size_t cells);

static double mi_entropy_test_chi(mi_figure_t* figure, size_t cells) {
  static uint32_t counts[CELLS];
  size_t outside = 0;
  memset(counts, 0, sizeof(counts));
  for (size_t i = 0; i < SAMPLES; i++) {
    const size_t cell = figure(i, cells);
    if (cell < cells) {
      counts[cell]++;
    } else {
      outside++;
    }
  }
  // Where a wish was refused, as the arena lies where its metadata was to be: a chance of 1.6e-5, and of 1e-15 for more than 7.
  MI_CHECK_MSG(outside <= 7, "%zu samples are of no place", outside);
  return mi_test_chi(counts, cells);
}

#define MI_FIGURE(name, expression) \
  static size_t mi_figure_##name(size_t i, size_t cells) { return (size_t)(expression); }

MI_FIGURE(arena_high, mi_samples[i].arena* cells / mi_samples[i].places)
MI_FIGURE(arena_low, mi_samples[i].arena % cells)
MI_FIGURE(meta_high, mi_samples[i].meta* cells / mi_samples[i].meta_places)
MI_FIGURE(meta_middle, (mi_samples[i].meta >> 14) % cells)
MI_FIGURE(meta_low, mi_samples[i].meta % cells)
MI_FIGURE(hint_high, mi_samples[i].hint* cells / 128)
MI_FIGURE(hint_low, mi_samples[i].hint % cells)
MI_FIGURE(slice, mi_samples[i].slice % cells)
MI_FIGURE(large_high, mi_samples[i].large* cells / mi_samples[i].large_places)
MI_FIGURE(large_low, mi_samples[i].large % cells)
MI_FIGURE(block_100, mi_samples[i].block[0] * cells / mi_samples[i].blocks[0])
MI_FIGURE(block_900, mi_samples[i].block[1] % cells)
MI_FIGURE(block_1900, mi_samples[i].block[2] % cells)

// How often two samples have the same figure.
static uint32_t mi_entropy_test_twins(size_t offset) {
  uint32_t twins = 0;
  for (size_t i = 0; i < SAMPLES; i++) {
    for (size_t j = 0; j < i; j++) {
      twins += memcmp((const char*)&mi_samples[i] + offset, (const char*)&mi_samples[j] + offset, sizeof(uint64_t)) == 0;
    }
  }
  return twins;
}

MI_TEST(places) {
  if (!mi_entropy_test_applies()) {
    return;
  }
  for (size_t i = 0; i < SAMPLES; i++) {
    mi_entropy_test_sample(&mi_samples[i]);
  }
  const mi_sample_t* const s = &mi_samples[0];
  const struct {
    const char* name;
    mi_figure_t* figure;
    size_t cells;
  } rows[] = {
      {"arena base, high bits", &mi_figure_arena_high, CELLS},
      {"arena base, low bits", &mi_figure_arena_low, CELLS},
      {"metadata, high bits", &mi_figure_meta_high, CELLS},
      {"metadata, middle bits", &mi_figure_meta_middle, CELLS},
      {"metadata, low bits", &mi_figure_meta_low, CELLS},
      {"first slice, high bits", &mi_figure_hint_high, CELLS},
      {"first slice, low bits", &mi_figure_hint_low, CELLS},
      {"slice of a page", &mi_figure_slice, CELLS},
      {"large block, high bits", &mi_figure_large_high, 31},
      {"large block, low bits", &mi_figure_large_low, 31},
      {"first block of 100 bytes", &mi_figure_block_100, CELLS},
      {"first block of 900 bytes", &mi_figure_block_900, s->blocks[1] < CELLS ? s->blocks[1] : CELLS},
      {"first block of 1900 bytes", &mi_figure_block_1900, s->blocks[2]},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const double chi = mi_entropy_test_chi(rows[i].figure, rows[i].cells);
    MI_CHECK_MSG(chi < mi_test_chi_bound(rows[i].cells), "%s: chi-square %f with %zu cells, bound %f", rows[i].name, chi, rows[i].cells,
                 mi_test_chi_bound(rows[i].cells));
  }
  // As many choices as the threat model says: 20.9 bits and 33.9 with 47 address bits, 9.9 of a large block.
  if (_mi_os_config.address_bits >= 47) {
    MI_CHECK(s->places > UINT64_C(1957103) && s->meta_places > UINT64_C(16032589000));
  }
  MI_CHECK_EQ(s->large_places, MI_HAS_GUARD_PAGES ? 961 : 1025);
  // All bits together, by how often two of 5.1 million pairs agree: 2.6 times are expected of 20.9 bits, and more than 20 have a
  // chance of 1e-12. Of the others none is expected; more than two have a chance of 1e-11.
  MI_CHECK_MSG(mi_entropy_test_twins(offsetof(mi_sample_t, arena)) <= 20, "%u arenas at the same place", mi_entropy_test_twins(offsetof(mi_sample_t, arena)));
  MI_CHECK_MSG(mi_entropy_test_twins(offsetof(mi_sample_t, meta)) <= 2, "%u at the same place", mi_entropy_test_twins(offsetof(mi_sample_t, meta)));
}

// Half of the 64 bits are one, each in half of the samples: 7 standard deviations are a chance of 2.6e-12, of 64 bits 1.7e-10.
MI_TEST(keys_of_ends) {
  if (!mi_entropy_test_applies() || !MI_HAS_PADDING) {
    return;
  }
  for (unsigned bit = 0; bit < 64; bit++) {
    double ones = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
      ones += (double)((mi_samples[i].key >> bit) & 1);
    }
    const double away = ones - SAMPLES / 2.0;
    MI_CHECK_MSG(away * away < 49 * SAMPLES / 4.0, "bit %u is one in %f of %d", bit, ones, (int)SAMPLES);
  }
  MI_CHECK_EQ(mi_entropy_test_twins(offsetof(mi_sample_t, key)), 0);
}

// Without one bit of it, each of these is far beyond its bound.
static size_t mi_figure_half(size_t i, size_t cells) { return mi_figure_slice(i, cells) & ~(size_t)1; }

MI_TEST(control) {
  if (!mi_entropy_test_applies()) {
    return;
  }
  MI_CHECK(mi_entropy_test_chi(&mi_figure_half, CELLS) > 4 * mi_test_chi_bound(CELLS));
}

// Which block a freed one takes the place of, in a quarantine: 5 bits, drawn in advance. Numbers that leave one bit out are seen.
MI_TEST(quarantine_places) {
  if (!MI_HAS_QUARANTINE) {
    return;
  }
  enum { PLACES = 32,
         SIZE = 40,
         REFILLS = 400 };
  MI_REQUIRE(_mi_process_init());
  _mi_free(_mi_alloc(SIZE));
  mi_quarantine_t* const quarantine = _mi_theap_own()->quarantines[_mi_bin_of_size(SIZE + MI_BLOCK_EXTRA)];
  MI_REQUIRE(quarantine->half == PLACES);
  uint32_t counts[PLACES] = {0};
  uint32_t even[PLACES / 2] = {0};
  for (int refill = 0; refill < REFILLS;) {
    const uint32_t before = quarantine->drawn;
    _mi_free(_mi_alloc(SIZE));
    if (quarantine->drawn <= before) {
      continue;
    }
    refill++;
    for (size_t i = 0; i < MI_QUARANTINE_DRAWS; i++) {
      MI_REQUIRE(quarantine->draws[i] < PLACES);
      counts[quarantine->draws[i]]++;
      even[quarantine->draws[i] & (PLACES / 2 - 2)]++;
    }
  }
  MI_CHECK(mi_test_chi(counts, PLACES) < mi_test_chi_bound(PLACES));
  MI_CHECK(mi_test_chi(even, PLACES / 2) > 4 * mi_test_chi_bound(PLACES / 2));
}

// Where a page is used up, which of three others with free blocks serves next: 1.6 bits.
MI_TEST(next_page) {
  if (!mi_entropy_test_applies()) {
    return;
  }
  enum { SIZE = 900,
         BLOCKS = 80,
         FREE = 8,
         OTHERS = NEXT_PAGES - 1 };
  _mi_option_set(mi_option_quarantine_blocks, 0);
  _mi_option_set(mi_option_page_full_retain, 100);
  mi_heap_t* const heap = mi_heap_new();
  MI_REQUIRE(heap != NULL);
  static void* held[NEXT_PAGES * BLOCKS];
  mi_page_t* pages[NEXT_PAGES];
  size_t count = 0;
  for (size_t n = 0; n < NEXT_PAGES; n++) {
    held[count] = mi_heap_malloc(heap, SIZE);
    pages[n] = _mi_page_map_find(held[count++]);
    MI_REQUIRE(pages[n] != NULL && (n == 0 || pages[n] != pages[n - 1]) && pages[n]->reserved <= BLOCKS);
    for (uint32_t i = 1; i < pages[n]->reserved; i++) {
      held[count++] = mi_heap_malloc(heap, SIZE);
    }
  }
  for (size_t n = 0, at = 0; n < NEXT_PAGES; at += pages[n]->reserved, n++) {
    for (size_t i = 0; i < FREE; i++) {
      mi_free(held[at + i]);
    }
  }
  uint32_t counts[OTHERS] = {0};
  void* taken[FREE];
  size_t taken_count = 0;
  size_t current = NEXT_PAGES;
  for (size_t tries = 0; tries < NEXT_TRIES;) {
    void* const p = mi_heap_malloc(heap, SIZE);
    size_t n = 0;
    while (n < NEXT_PAGES && pages[n] != _mi_page_map_find(p)) {
      n++;
    }
    MI_REQUIRE(n < NEXT_PAGES);
    if (n != current && current != NEXT_PAGES) {
      counts[(n + NEXT_PAGES - current) % NEXT_PAGES - 1]++;
      tries++;
      for (size_t i = 0; i < taken_count; i++) {
        mi_free(taken[i]);
      }
      taken_count = 0;
    }
    current = n;
    MI_REQUIRE(taken_count < FREE);
    taken[taken_count++] = p;
  }
  const double chi = mi_test_chi(counts, OTHERS);
  MI_CHECK_MSG(chi < mi_test_chi_bound(OTHERS), "chi-square %f, bound %f: %u %u %u", chi, mi_test_chi_bound(OTHERS), counts[0], counts[1], counts[2]);
  mi_heap_destroy(heap);
}

MI_TEST_MAIN()
