// Owns: the target that writes dumps of arbitrary profiles, in both formats, and reads them back with a reader of its own.
// May include: fuzz/lib, src/profile, src/prim, the C library.
// Called by: libFuzzer, fuzz/lib/replay.c.
// Invariants: the system's list of modules is the input's: the linker's --wrap puts it there. What is read back is what was written.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/fuzz.h"
#include "src/prim/prim.h"
#include "src/profile/encode.h"
#include "src/profile/snapshot.h"

enum { SAMPLES_MAX = 40,
       FRAMES_MAX = 2000,
       MODULES_MAX = 30,
       STRINGS_MAX = 8 + MODULES_MAX + 1,
       FIXED_STRINGS = 8 };

// The profile, as the input has it.
static mi_prof_snapshot_t* mi_made;
static const void* mi_frames[FRAMES_MAX];
static mi_prim_mapped_t mi_modules[MODULES_MAX];
static size_t mi_module_count;
static bool mi_has_modules;

bool __wrap__mi_prim_modules_visit(bool (*visit)(const mi_prim_mapped_t* mapped, void* arg), void* arg);
bool __wrap__mi_prim_maps_copy(void (*write)(void* arg, const char* text, size_t length), void* arg);

bool __wrap__mi_prim_modules_visit(bool (*visit)(const mi_prim_mapped_t* mapped, void* arg), void* arg) {
  for (size_t i = 0; mi_has_modules && i < mi_module_count; i++) {
    if (!visit(&mi_modules[i], arg)) {
      break;
    }
  }
  return mi_has_modules;
}

bool __wrap__mi_prim_maps_copy(void (*write)(void* arg, const char* text, size_t length), void* arg) {
  for (size_t i = 0; mi_has_modules && i < mi_module_count; i++) {
    write(arg, mi_modules[i].path, strlen(mi_modules[i].path));
    write(arg, "\n", 1);
  }
  return mi_has_modules;
}

// What was written

typedef struct mi_written_s {
  uint8_t* bytes;
  size_t size;
  size_t room;
} mi_written_t;

static void mi_on_piece(void* arg, const char* bytes, size_t size) {
  mi_written_t* const written = arg;
  MI_FUZZ_CHECK(size > 0, "a piece of no bytes is written");
  if (written->size + size > written->room) {
    written->room = 2 * (written->size + size);
    written->bytes = realloc(written->bytes, written->room);
    MI_FUZZ_CHECK(written->bytes != NULL, "the system has no memory");
  }
  memcpy(written->bytes + written->size, bytes, size);
  written->size += size;
}

// A reader of the wire format

typedef struct mi_field_s {
  unsigned number;
  bool is_bytes;
  uint64_t value;
  mi_fuzz_input_t bytes;
} mi_field_t;

static uint64_t mi_read_varint(mi_fuzz_input_t* input) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    MI_FUZZ_CHECK(input->left > 0 && shift < 70, "proto: a number has no end");
    const uint8_t byte = (uint8_t)mi_fuzz_take(input, 1);
    MI_FUZZ_CHECK(shift < 63 || byte <= 1, "proto: a number has more than 64 bits");
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      MI_FUZZ_CHECK(byte != 0 || shift == 0, "proto: a number is longer than it need be");
      return value;
    }
  }
}

static mi_field_t mi_read_field(mi_fuzz_input_t* input) {
  const uint64_t head = mi_read_varint(input);
  mi_field_t field = {.number = (unsigned)(head >> 3), .is_bytes = (head & 7) == 2, .value = mi_read_varint(input)};
  MI_FUZZ_CHECK((head & 7) == 0 || (head & 7) == 2, "proto: field %u has wire type %u", field.number, (unsigned)(head & 7));
  if (field.is_bytes) {
    MI_FUZZ_CHECK(field.value <= input->left, "proto: field %u is longer than what is there", field.number);
    field.bytes = (mi_fuzz_input_t){input->at, (size_t)field.value};
    input->at += field.value;
    input->left -= (size_t)field.value;
  }
  return field;
}

typedef struct mi_read_s {
  mi_fuzz_input_t strings[STRINGS_MAX];
  size_t string_count;
  uint64_t comment;
  uint64_t locations[FRAMES_MAX];  // addresses, by number less one
  uint64_t location_modules[FRAMES_MAX];
  size_t location_count;
  mi_fuzz_input_t samples[SAMPLES_MAX];
  size_t sample_count;
  size_t mapping_count;
} mi_read_t;

static mi_read_t mi_read;

// The modules that have code are what there are mappings of.
static const mi_prim_mapped_t* mi_module_with_code(size_t number) {
  for (size_t i = 0; i < mi_module_count; i++) {
    if (mi_modules[i].code_size != 0 && number-- == 0) {
      return &mi_modules[i];
    }
  }
  return NULL;
}

static void mi_read_mapping(mi_fuzz_input_t bytes) {
  uint64_t fields[6] = {0};
  while (bytes.left > 0) {
    const mi_field_t field = mi_read_field(&bytes);
    MI_FUZZ_CHECK(field.number >= 1 && field.number <= 5 && !field.is_bytes, "proto: field %u of a mapping", field.number);
    fields[field.number] = field.value;
  }
  const mi_prim_mapped_t* const module = mi_module_with_code(mi_read.mapping_count++);
  MI_FUZZ_CHECK(module != NULL && fields[1] == mi_read.mapping_count && fields[2] == module->code && fields[3] == module->code + module->code_size &&
                    fields[4] == module->code_offset && fields[5] == FIXED_STRINGS + mi_read.mapping_count - 1,
                "proto: mapping %zu is another", mi_read.mapping_count);
}

static void mi_read_location(mi_fuzz_input_t bytes) {
  uint64_t fields[4] = {0};
  while (bytes.left > 0) {
    const mi_field_t field = mi_read_field(&bytes);
    MI_FUZZ_CHECK(field.number >= 1 && field.number <= 3 && !field.is_bytes, "proto: field %u of a location", field.number);
    fields[field.number] = field.value;
  }
  MI_FUZZ_CHECK(fields[1] == mi_read.location_count + 1 && mi_read.location_count < FRAMES_MAX, "proto: location %zu has number %llu",
                mi_read.location_count + 1, (unsigned long long)fields[1]);
  for (size_t i = 0; i < mi_read.location_count; i++) {
    MI_FUZZ_CHECK(mi_read.locations[i] != fields[3], "proto: there are two locations of address 0x%llx", (unsigned long long)fields[3]);
  }
  mi_read.locations[mi_read.location_count] = fields[3];
  mi_read.location_modules[mi_read.location_count++] = fields[2];
}

static void mi_read_profile(mi_fuzz_input_t input) {
  uint64_t type[2] = {0};
  size_t types = 0;
  memset(&mi_read, 0, sizeof(mi_read));
  while (input.left > 0) {
    const mi_field_t field = mi_read_field(&input);
    switch (field.number) {
      case 1: types++; break;
      case 2:
        MI_FUZZ_CHECK(mi_read.sample_count < SAMPLES_MAX, "proto: there are too many samples");
        mi_read.samples[mi_read.sample_count++] = field.bytes;
        break;
      case 3: mi_read_mapping(field.bytes); break;
      case 4: mi_read_location(field.bytes); break;
      case 6:
        MI_FUZZ_CHECK(mi_read.string_count < STRINGS_MAX, "proto: there are too many strings");
        mi_read.strings[mi_read.string_count++] = field.bytes;
        break;
      case 11: type[0]++; break;
      case 12: MI_FUZZ_CHECK(field.value == mi_made->rate, "proto: the period is %llu", (unsigned long long)field.value); break;
      case 13: mi_read.comment = mi_read_varint(&(mi_fuzz_input_t){field.bytes.at, field.bytes.left}); break;
      case 14: type[1] = field.value; break;
      default: mi_fuzz_fail("proto: field %u", field.number);
    }
  }
  MI_FUZZ_CHECK(types == 4 && type[0] == 1 && type[1] < mi_read.string_count, "proto: %zu types", types);
  MI_FUZZ_CHECK(mi_module_with_code(mi_read.mapping_count) == NULL, "proto: a mapping is missing");
  MI_FUZZ_CHECK(mi_read.string_count == FIXED_STRINGS + mi_read.mapping_count + 1 && mi_read.strings[0].left == 0 &&
                    mi_read.comment == mi_read.string_count - 1,
                "proto: %zu strings", mi_read.string_count);
  for (size_t i = 0; i < mi_read.mapping_count; i++) {
    const mi_fuzz_input_t text = mi_read.strings[FIXED_STRINGS + i];
    const char* const path = mi_module_with_code(i)->path;
    MI_FUZZ_CHECK(text.left == strlen(path) && memcmp(text.at, path, text.left) == 0, "proto: the name of module %zu is another", i);
  }
}

// Comparing

static bool mi_is_near(uint64_t value, size_t count, double bytes, double objects) {
  const double rate = (double)mi_made->rate;
  const double expected = objects == 0 || bytes == 0 ? 0 : rate <= 1 ? (double)count
                                                                     : (double)count / -expm1(-(bytes / objects / rate));
  return fabs((double)value - expected) <= 1 + expected * 1e-9;
}

static void mi_compare_sample(const mi_prof_sample_info_t* sample, mi_fuzz_input_t bytes) {
  mi_field_t ids = mi_read_field(&bytes);
  mi_field_t values = mi_read_field(&bytes);
  MI_FUZZ_CHECK(ids.number == 1 && ids.is_bytes && values.number == 2 && values.is_bytes && bytes.left == 0, "proto: a sample is none");
  for (size_t i = 0; i < sample->depth; i++) {
    const uint64_t id = mi_read_varint(&ids.bytes);
    MI_FUZZ_CHECK(id >= 1 && id <= mi_read.location_count, "proto: there is no location %llu", (unsigned long long)id);
    const uint64_t address = (uint64_t)(uintptr_t)sample->stack[i] - 1;
    MI_FUZZ_CHECK(mi_read.locations[id - 1] == address, "proto: call %zu is at 0x%llx instead of 0x%llx", i,
                  (unsigned long long)mi_read.locations[id - 1], (unsigned long long)address);
    const uint64_t module = mi_read.location_modules[id - 1];
    const mi_prim_mapped_t* const mapped = module == 0 ? NULL : mi_module_with_code((size_t)module - 1);
    MI_FUZZ_CHECK(module == 0 || (mapped != NULL && address - mapped->code < mapped->code_size), "proto: 0x%llx is not in module %llu",
                  (unsigned long long)address, (unsigned long long)module);
    for (size_t j = 0; module == 0 && j < mi_module_count; j++) {
      MI_FUZZ_CHECK(address - mi_modules[j].code >= mi_modules[j].code_size, "proto: 0x%llx has a module and is given none",
                    (unsigned long long)address);
    }
  }
  const struct {
    size_t objects;
    size_t bytes;
  } counts[] = {{sample->accum_objects, sample->accum_bytes}, {sample->live_objects, sample->live_bytes}};
  for (size_t i = 0; i < 2; i++) {
    const uint64_t objects = mi_read_varint(&values.bytes);
    const uint64_t size = mi_read_varint(&values.bytes);
    MI_FUZZ_CHECK(mi_is_near(objects, counts[i].objects, (double)counts[i].bytes, (double)counts[i].objects) &&
                      mi_is_near(size, counts[i].bytes, (double)counts[i].bytes, (double)counts[i].objects),
                  "proto: %zu blocks and %zu bytes are estimated as %llu and %llu", counts[i].objects, counts[i].bytes, (unsigned long long)objects,
                  (unsigned long long)size);
  }
  MI_FUZZ_CHECK(ids.bytes.left == 0 && values.bytes.left == 0, "proto: a sample has more than its own");
}

static void mi_compare_proto(void) {
  mi_written_t written = {0};
  const bool done = _mi_profile_write_proto(mi_made, &mi_on_piece, &written);
  MI_FUZZ_CHECK(done == mi_has_modules, "proto: written is %d", done);
  if (done) {
    mi_read_profile((mi_fuzz_input_t){written.bytes, written.size});
    MI_FUZZ_CHECK(mi_read.sample_count == mi_made->count, "proto: %zu samples instead of %zu", mi_read.sample_count, mi_made->count);
    for (size_t i = 0; i < mi_made->count; i++) {
      mi_compare_sample(&mi_made->samples[i], mi_read.samples[i]);
    }
  }
  free(written.bytes);
}

// The text that one line should be, compared and passed by.
__attribute__((format(printf, 2, 3))) static void mi_expect(mi_fuzz_input_t* input, const char* fmt, ...) {
  static char text[200];
  va_list args;
  va_start(args, fmt);
  const size_t length = (size_t)vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  MI_FUZZ_CHECK(length <= input->left && memcmp(input->at, text, length) == 0, "text: \"%.*s\" instead of \"%s\"",
                (int)(input->left < 60 ? input->left : 60), (const char*)input->at, text);
  input->at += length;
  input->left -= length;
}

static void mi_compare_text(void) {
  const mi_profile_figures_t figures = {.committed = mi_made->rate, .pages = mi_made->count, .detailed = mi_made->count % 2 == 0};
  mi_written_t written = {0};
  const bool done = _mi_profile_write_text(mi_made, &figures, &mi_on_piece, &written);
  MI_FUZZ_CHECK(done == mi_has_modules, "text: written is %d", done);
  mi_fuzz_input_t text = {written.bytes, written.size};
  mi_expect(&text, "heap profile: %7zu: %zu [%7zu: %zu] @ heap_v2/%zu\n", mi_made->sum.live_objects, mi_made->sum.live_bytes,
            mi_made->sum.accum_objects, mi_made->sum.accum_bytes, mi_made->rate);
  for (size_t i = 0; i < mi_made->count; i++) {
    const mi_prof_sample_info_t* const sample = &mi_made->samples[i];
    mi_expect(&text, "%7zu: %zu [%7zu: %zu] @", sample->live_objects, sample->live_bytes, sample->accum_objects, sample->accum_bytes);
    for (size_t j = 0; j < sample->depth; j++) {
      mi_expect(&text, " 0x%zx", (size_t)sample->stack[j]);
    }
    mi_expect(&text, "\n");
  }
  mi_expect(&text, "# mimalloc heap stats\n# committed = %zu\n", figures.committed);
  static const char mark[] = "MAPPED_LIBRARIES:\n";
  while (text.left >= sizeof(mark) - 1 && memcmp(text.at, mark, sizeof(mark) - 1) != 0) {
    text.at++;
    text.left--;
  }
  mi_expect(&text, "%s", mark);
  for (size_t i = 0; mi_has_modules && i < mi_module_count; i++) {
    const size_t length = strlen(mi_modules[i].path);
    MI_FUZZ_CHECK(length < text.left && memcmp(text.at, mi_modules[i].path, length) == 0 && text.at[length] == '\n',
                  "text: the name of module %zu is another", i);
    text.at += length + 1;
    text.left -= length + 1;
  }
  MI_FUZZ_CHECK(text.left == 0, "text: something stands behind the end");
  free(written.bytes);
}

// Making one

static void mi_make_modules(mi_fuzz_input_t* input) {
  mi_has_modules = mi_fuzz_take(input, 1) != 0xff;
  mi_module_count = (size_t)mi_fuzz_take(input, 1) % (MODULES_MAX + 1);
  uintptr_t at = 0x1000;
  for (size_t i = 0; i < mi_module_count; i++) {
    mi_prim_mapped_t* const module = &mi_modules[i];
    memset(module, 0, sizeof(*module));
    // Files do not overlap.
    module->base = at + (uintptr_t)mi_fuzz_take(input, 2) * 4096;
    module->code = module->base + (uintptr_t)mi_fuzz_take(input, 1) * 4096;
    module->code_size = (size_t)mi_fuzz_take(input, 1) * 4096;
    module->code_offset = (uintptr_t)mi_fuzz_take(input, 3);
    module->size = module->code - module->base + module->code_size;
    at = module->base + module->size;
    const size_t length = (size_t)mi_fuzz_take(input, 1) % sizeof(module->path);
    for (size_t j = 0; j < length; j++) {
      // Any byte of a name but a zero and, in the text, the end of a line.
      const char c = (char)mi_fuzz_take(input, 1);
      module->path[j] = c == 0 || c == '\n' ? '?' : c;
    }
  }
}

static void mi_make_counts(mi_fuzz_input_t* input, size_t* objects, size_t* bytes) {
  *objects = (size_t)mi_fuzz_take(input, 2);
  *bytes = *objects == 0 ? 0 : *objects + (size_t)mi_fuzz_take(input, 4);
}

static void mi_make_samples(mi_fuzz_input_t* input) {
  mi_made->rate = (size_t)mi_fuzz_take(input, 1) << (mi_fuzz_take(input, 1) % 24);
  mi_made->dropped = (size_t)mi_fuzz_take(input, 4);
  mi_made->overflows = (size_t)mi_fuzz_take(input, 8);
  while (input->left > 0 && mi_made->count < SAMPLES_MAX) {
    mi_prof_sample_info_t* const sample = &mi_made->samples[mi_made->count];
    const size_t depth = (size_t)mi_fuzz_take(input, 1) % (MI_PROFILE_DEPTH_MAX + 1);
    if (mi_made->frames + depth > FRAMES_MAX) {
      break;
    }
    mi_made->count++;
    sample->stack = mi_frames + mi_made->frames;
    sample->depth = depth;
    for (size_t i = 0; i < depth; i++) {
      const unsigned how = (unsigned)mi_fuzz_take(input, 1);
      uintptr_t address = 0;
      if (how < 80 && mi_made->frames > 0) {
        address = (uintptr_t)mi_frames[how % mi_made->frames];
      } else if (how < 200 && mi_module_count > 0) {
        const mi_prim_mapped_t* const module = &mi_modules[how % mi_module_count];
        address = module->code + (uintptr_t)mi_fuzz_take(input, 2);
      } else {
        address = (uintptr_t)mi_fuzz_take(input, how % 9);
      }
      mi_frames[mi_made->frames++] = (const void*)address;
    }
    mi_make_counts(input, &sample->live_objects, &sample->live_bytes);
    mi_make_counts(input, &sample->accum_objects, &sample->accum_bytes);
    mi_made->sum.live_objects += sample->live_objects;
    mi_made->sum.live_bytes += sample->live_bytes;
    mi_made->sum.accum_objects += sample->accum_objects;
    mi_made->sum.accum_bytes += sample->accum_bytes;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_input_t input = {data, size};
  if (mi_made == NULL) {
    mi_made = malloc(sizeof(*mi_made) + SAMPLES_MAX * sizeof(mi_made->samples[0]));
  }
  memset(mi_made, 0, sizeof(*mi_made) + SAMPLES_MAX * sizeof(mi_made->samples[0]));
  mi_make_modules(&input);
  mi_make_samples(&input);
  mi_compare_proto();
  mi_compare_text();
  return 0;
}
