// Owns: pieces, estimates, and the text heap_v2.
// May include: base, prim, profile.
// Called by: through encode.h.
// Invariants: a line of the text is whole in the buffer before it is put.
#include "src/profile/encode.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/prim/prim.h"
#include "src/profile/chance.h"
#include "src/profile/snapshot.h"

// Pieces

void _mi_profile_writer_begin(mi_profile_writer_t* writer, mi_prof_write_fun* write, void* arg) {
  writer->write = write;
  writer->arg = arg;
  writer->used = 0;
}

void _mi_profile_writer_end(mi_profile_writer_t* writer) {
  if (writer->used > 0) {
    writer->write(writer->arg, writer->buffer, writer->used);
    writer->used = 0;
  }
}

void _mi_profile_put(mi_profile_writer_t* writer, const void* bytes, size_t size) {
  const char* from = bytes;
  while (size > 0) {
    const size_t part = _mi_min(size, MI_PROFILE_BUFFER_SIZE - writer->used);
    memcpy(writer->buffer + writer->used, from, part);
    writer->used += part;
    from += part;
    size -= part;
    if (writer->used == MI_PROFILE_BUFFER_SIZE) {
      _mi_profile_writer_end(writer);
    }
  }
}

// Estimates

void _mi_profile_scale(size_t objects, size_t bytes, size_t rate, uint64_t* likely_objects, uint64_t* likely_bytes) {
  if (objects == 0 || bytes == 0) {
    *likely_objects = 0;
    *likely_bytes = 0;
    return;
  }
  const double factor = rate <= 1 ? 1 : 1 / _mi_profile_chance((double)bytes / (double)objects / (double)rate);
  *likely_objects = (uint64_t)((double)objects * factor);
  *likely_bytes = (uint64_t)((double)bytes * factor);
}

// Text

mi_printf_like(2, 3) static void mi_text_put(mi_profile_writer_t* writer, const char* fmt, ...) {
  char line[256];
  va_list args;
  va_start(args, fmt);
  const size_t length = _mi_fmt_va(line, sizeof(line), fmt, args);
  va_end(args);
  _mi_profile_put(writer, line, _mi_min(length, sizeof(line) - 1));
}

static void mi_text_counts(mi_profile_writer_t* writer, const char* before, const mi_profile_counts_t* counts, const char* behind) {
  mi_text_put(writer, "%s%7zu: %zu [%7zu: %zu] @%s", before, counts->live_objects, counts->live_bytes, counts->accum_objects,
              counts->accum_bytes, behind);
}

static void mi_text_sample(mi_profile_writer_t* writer, const mi_prof_sample_info_t* sample) {
  const mi_profile_counts_t counts = {sample->live_objects, sample->live_bytes, sample->accum_objects, sample->accum_bytes};
  mi_text_counts(writer, "", &counts, "");
  for (size_t i = 0; i < sample->depth; i++) {
    mi_text_put(writer, " 0x%zx", (size_t)sample->stack[i]);
  }
  _mi_profile_put(writer, "\n", 1);
}

static void mi_text_figures(mi_profile_writer_t* writer, const mi_profile_figures_t* figures, size_t dropped) {
  mi_text_put(writer, "# mimalloc heap stats\n# committed = %zu\n# reserved = %zu\n", figures->committed, figures->reserved);
  mi_text_put(writer, "# malloc_requested = %zu\n# pages = %zu\n# pages_abandoned = %zu\n", figures->malloc_requested, figures->pages,
              figures->pages_abandoned);
  mi_text_put(writer, "# heaps = %zu\n# theaps = %zu\n# purged = %zu\n", figures->heaps, figures->theaps, figures->purged);
  mi_text_put(writer, "# profiler_dropped_samples = %zu\n# detailed_stats = %d\n", dropped, figures->detailed ? 1 : 0);
}

static void mi_text_maps(void* writer, const char* text, size_t length) { _mi_profile_put(writer, text, length); }

bool _mi_profile_write_text(const mi_prof_snapshot_t* snapshot, const mi_profile_figures_t* figures, mi_prof_write_fun* write, void* arg) {
  mi_profile_writer_t writer;
  _mi_profile_writer_begin(&writer, write, arg);
  mi_text_counts(&writer, "heap profile: ", &snapshot->sum, " heap_v2/");
  mi_text_put(&writer, "%zu\n", snapshot->rate);
  for (size_t i = 0; i < snapshot->count; i++) {
    mi_text_sample(&writer, &snapshot->samples[i]);
  }
  mi_text_figures(&writer, figures, snapshot->dropped);
  mi_text_put(&writer, "MAPPED_LIBRARIES:\n");
  const bool listed = _mi_prim_maps_copy(&mi_text_maps, &writer);
  _mi_profile_writer_end(&writer);
  return listed;
}

// Files

typedef struct mi_profile_file_s {
  intptr_t file;
  int error;
} mi_profile_file_t;

static void mi_profile_file_write(void* arg, const char* buf, size_t len) {
  mi_profile_file_t* const to = arg;
  if (to->error == 0) {
    to->error = _mi_prim_file_write(to->file, buf, len);
  }
}

bool _mi_profile_write_file(const mi_prof_snapshot_t* snapshot, const mi_profile_figures_t* figures, const char* path, bool careful) {
  mi_profile_file_t to = {.error = 0};
  if (path == NULL || _mi_prim_file_create(path, careful, &to.file) != 0) {
    return false;
  }
  const bool written = figures != NULL ? _mi_profile_write_text(snapshot, figures, &mi_profile_file_write, &to)
                                       : _mi_profile_write_proto(snapshot, &mi_profile_file_write, &to);
  const bool closed = _mi_prim_file_close(to.file) == 0;
  return written && closed && to.error == 0;
}
