// Owns: the statistics functions.
// May include: base, sys, heap, alloc, mimalloc-stats.h.
// Called by: programs.
// Invariants: a layout is known by its size and version together, as two lines of releases used one version for two layouts;
// nothing of a struct is written before both are known.
#include <errno.h>
#include <string.h>

#include "mimalloc-stats.h"
#include "src/api/api.h"
#include "src/heap/heap-stats.h"
#include "src/heap/subproc.h"

// The layout of version 4 that has no heaps, theaps, heaps_delete_wait and chunk_bins.
typedef struct mi_stats_v4_s {
  uint8_t head[offsetof(mi_stats_t, heaps)];
  mi_stat_counter_t pages[4];  // from pages_reclaim_on_alloc to pages_unabandon_busy_wait
  mi_stat_count_t _stat_reserved[4];
  mi_stat_counter_t _stat_counter_reserved[4];
  mi_stat_count_t bins[2 * MI_STAT_BINS];  // malloc_bins and page_bins
} mi_stats_v4_t;

enum { MI_STATS_V4 = 4,
       MI_STATS_V4_SIZE = sizeof(mi_stats_v4_t) };

_Static_assert(sizeof(mi_stats_t) == 4352 + 2 * sizeof(size_t), "version 5 is as it was released");
_Static_assert((int)MI_STATS_V4_SIZE == 4152 + 2 * (int)sizeof(size_t), "and so is version 4");

static bool mi_stats_are_known(const mi_stats_t* stats) {
  return stats != NULL && ((stats->size == sizeof(mi_stats_t) && stats->version == MI_STAT_VERSION) || (stats->size == MI_STATS_V4_SIZE && stats->version == MI_STATS_V4));
}

// Gives the caller what was read, in the caller's layout.
static bool mi_stats_give(const mi_stats_t* read, mi_stats_t* stats) {
  if (stats->version == MI_STAT_VERSION) {
    *stats = *read;
    return true;
  }
  uint8_t* const old = (uint8_t*)stats;
  const size_t header = offsetof(mi_stats_t, pages);
  memset(old + header, 0, MI_STATS_V4_SIZE - header);
  memcpy(old + header, (const uint8_t*)read + header, offsetof(mi_stats_v4_t, pages) - header);
  memcpy(old + offsetof(mi_stats_v4_t, pages), &read->pages_reclaim_on_alloc, sizeof(((mi_stats_v4_t*)0)->pages));
  memcpy(old + offsetof(mi_stats_v4_t, bins), read->malloc_bins, sizeof(((mi_stats_v4_t*)0)->bins));
  return true;
}

// Takes what a caller read before.
static void mi_stats_take(const mi_stats_t* stats, mi_stats_t* read) {
  mi_stats_init(read);
  if (stats->version == MI_STAT_VERSION) {
    *read = *stats;
    return;
  }
  const uint8_t* const old = (const uint8_t*)stats;
  const size_t header = offsetof(mi_stats_t, pages);
  memcpy((uint8_t*)read + header, old + header, offsetof(mi_stats_v4_t, pages) - header);
  memcpy(&read->pages_reclaim_on_alloc, old + offsetof(mi_stats_v4_t, pages), sizeof(((mi_stats_v4_t*)0)->pages));
  memcpy(read->malloc_bins, old + offsetof(mi_stats_v4_t, bins), sizeof(((mi_stats_v4_t*)0)->bins));
}

// As JSON in the caller's buffer, or in a new block.
static char* mi_stats_to_json(const mi_stats_t* read, size_t buf_size, char* buf) {
  const mi_stats_process_t process = _mi_stats_process();
  if (buf == NULL) {
    buf_size = _mi_stats_json(read, &process, NULL, 0) + 1;
    buf = _mi_alloc(buf_size);
    if (buf != NULL) {
      (void)_mi_stats_json(read, &process, buf, buf_size);
    }
    return buf;
  }
  if (_mi_stats_json(read, &process, buf, buf_size) < buf_size) {
    return buf;
  }
  if (buf_size > 0) {
    buf[0] = 0;
  }
  return NULL;
}

bool mi_stats_get(mi_stats_t* stats) {
  if (!mi_stats_are_known(stats)) {
    return false;
  }
  mi_stats_t read;
  _mi_heap_stats_read(NULL, &read);
  return mi_stats_give(&read, stats);
}

char* mi_stats_get_json(size_t buf_size, char* buf) {
  mi_stats_t read;
  _mi_heap_stats_read(NULL, &read);
  return mi_stats_to_json(&read, buf_size, buf);
}

char* mi_stats_as_json(mi_stats_t* stats, size_t buf_size, char* buf) {
  if (!mi_stats_are_known(stats)) {
    return NULL;
  }
  mi_stats_t read;
  mi_stats_take(stats, &read);
  return mi_stats_to_json(&read, buf_size, buf);
}

size_t mi_stats_get_bin_size(size_t bin) { return _mi_stat_bin_size(bin); }

void mi_stats_print_out(mi_output_fun* out, void* arg) {
  mi_stats_t read;
  _mi_heap_stats_read(NULL, &read);
  _mi_stats_print(&read, "the process", true, out, arg);
}

void mi_stats_print(void* out) {
  (void)out;
  mi_stats_print_out(NULL, NULL);
}

void mi_thread_stats_print_out(mi_output_fun* out, void* arg) {
  mi_stats_t read;
  _mi_theap_stats_read(NULL, &read);
  _mi_stats_print(&read, "this thread", false, out, arg);
}

void mi_stats_reset(void) { _mi_heap_stats_reset(); }
void mi_stats_merge(void) { _mi_thread_each_theap(&_mi_theap_count_publish); }

bool mi_heap_stats_get(mi_heap_t* heap, mi_stats_t* stats) {
  if (!mi_stats_are_known(stats)) {
    return false;
  }
  mi_stats_t read;
  _mi_heap_stats_read(heap != NULL ? heap : _mi_heap_main(), &read);
  return mi_stats_give(&read, stats);
}

char* mi_heap_stats_get_json(mi_heap_t* heap, size_t buf_size, char* buf) {
  mi_stats_t read;
  _mi_heap_stats_read(heap != NULL ? heap : _mi_heap_main(), &read);
  return mi_stats_to_json(&read, buf_size, buf);
}

void mi_heap_stats_print_out(mi_heap_t* heap, mi_output_fun* out, void* arg) {
  mi_stats_t read;
  _mi_heap_stats_read(heap != NULL ? heap : _mi_heap_main(), &read);
  _mi_stats_print(&read, "a heap", false, out, arg);
}

void mi_heap_stats_merge_to_subproc(mi_heap_t* heap) { _mi_heap_count_merge(heap != NULL ? heap : _mi_heap_main()); }

bool mi_theap_stats_get(mi_theap_t* theap, mi_stats_t* stats) {
  if (!mi_stats_are_known(stats)) {
    return false;
  }
  mi_stats_t read;
  _mi_theap_stats_read(theap, &read);
  return mi_stats_give(&read, stats);
}

void mi_theap_stats_merge_to_heap(mi_theap_t* theap) {
  if (theap != NULL) {
    _mi_theap_count_merge(theap);
  } else if (!_mi_heaps_are_busy_here()) {
    _mi_thread_each_theap(&_mi_theap_count_merge);
  }
}

// Sub-processes

static bool mi_subproc_read(mi_subproc_id_t subproc_id, bool exclusive, mi_stats_t* read) {
  return _mi_subproc_stats_read((uintptr_t)subproc_id._mi_subproc_id, exclusive, read);
}

bool mi_subproc_stats_get(mi_subproc_id_t subproc_id, mi_stats_t* stats) {
  mi_stats_t read;
  return mi_stats_are_known(stats) && mi_subproc_read(subproc_id, false, &read) && mi_stats_give(&read, stats);
}

bool mi_subproc_stats_get_exclusive(mi_subproc_id_t subproc_id, mi_stats_t* stats) {
  mi_stats_t read;
  return mi_stats_are_known(stats) && mi_subproc_read(subproc_id, true, &read) && mi_stats_give(&read, stats);
}

char* mi_subproc_stats_get_json(mi_subproc_id_t subproc_id, size_t buf_size, char* buf) {
  mi_stats_t read;
  return mi_subproc_read(subproc_id, false, &read) ? mi_stats_to_json(&read, buf_size, buf) : NULL;
}

void mi_subproc_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg) {
  mi_stats_t read;
  if (mi_subproc_read(subproc_id, false, &read)) {
    _mi_stats_print(&read, "a sub-process", true, out, arg);
  }
}

typedef struct mi_printing_s {
  mi_output_fun* out;
  void* arg;
} mi_printing_t;

static bool mi_print_heap(mi_heap_t* heap, void* arg) {
  const mi_printing_t* const printing = arg;
  mi_heap_stats_print_out(heap, printing->out, printing->arg);
  return true;
}

void mi_subproc_heap_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg) {
  mi_printing_t printing = {out, arg};
  mi_subproc_stats_print_out(subproc_id, out, arg);
  (void)_mi_subproc_visit_heaps((uintptr_t)subproc_id._mi_subproc_id, &mi_print_heap, &printing);
}
