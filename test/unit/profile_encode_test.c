// Owns: tests of profile/encode and proto: each line and field of a dump, estimates, pieces, files.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: samples are made by hand, with stacks of known addresses.
#include <math.h>
#include <sys/stat.h>
#include <fcntl.h>

#include "src/base/bits.h"
#include "src/prim/prim.h"
#include "src/profile/encode.h"
#include "src/profile/snapshot.h"
#include "test/lib/test.h"

enum { MI_ENCODE_TEST_SIZE = 4 * 1024 * 1024 };

static struct {
  size_t size;
  size_t pieces;
  char bytes[MI_ENCODE_TEST_SIZE];
} mi_written;

static void mi_encode_test_write(void* arg, const char* buf, size_t len) {
  MI_CHECK(arg == &mi_written && len > 0 && len <= MI_PROFILE_BUFFER_SIZE);
  MI_REQUIRE(mi_written.size + len < MI_ENCODE_TEST_SIZE);
  memcpy(mi_written.bytes + mi_written.size, buf, len);
  mi_written.size += len;
  mi_written.bytes[mi_written.size] = 0;
  mi_written.pieces++;
}

static mi_prof_snapshot_t* mi_encode_test_snapshot(void) {
  static const void* const first[] = {(const void*)0x1001, (const void*)0x2001};
  static const void* second[MI_PROFILE_DEPTH_MAX];
  for (size_t i = 0; i < MI_PROFILE_DEPTH_MAX; i++) {
    second[i] = (const void*)((uintptr_t)&mi_encode_test_snapshot + i);
  }
  mi_prof_snapshot_t* const snapshot = _mi_profile_scratch(sizeof(*snapshot) + 2 * sizeof(snapshot->samples[0]));
  MI_REQUIRE(snapshot != NULL);
  snapshot->rate = 1000;
  snapshot->dropped = 3;
  snapshot->overflows = 2;
  snapshot->count = 2;
  snapshot->frames = 2 + MI_PROFILE_DEPTH_MAX;
  snapshot->sum = (mi_profile_counts_t){3, 1600, 5, 2600};
  snapshot->samples[0] = (mi_prof_sample_info_t){first, 2, 2, 600, 4, 1600};
  snapshot->samples[1] = (mi_prof_sample_info_t){second, MI_PROFILE_DEPTH_MAX, 1, 1000, 1, 1000};
  return snapshot;
}

MI_TEST(text) {
  mi_prof_snapshot_t* const snapshot = mi_encode_test_snapshot();
  const mi_profile_figures_t figures = {11, 12, 13, 14, 15, 16, 17, 18, true};
  mi_written.size = 0;
  mi_written.pieces = 0;
  MI_REQUIRE(_mi_profile_write_text(snapshot, &figures, &mi_encode_test_write, &mi_written));
  MI_CHECK(mi_written.pieces > 0);
  static const char head[] =
      "heap profile:       3: 1600 [      5: 2600] @ heap_v2/1000\n"
      "      2: 600 [      4: 1600] @ 0x1001 0x2001\n"
      "      1: 1000 [      1: 1000] @ 0x";
  MI_CHECK(strncmp(mi_written.bytes, head, sizeof(head) - 1) == 0);
  static const char figures_text[] =
      "\n# mimalloc heap stats\n# committed = 11\n# reserved = 12\n# malloc_requested = 13\n# pages = 14\n# pages_abandoned = 15\n"
      "# heaps = 16\n# theaps = 17\n# purged = 18\n# profiler_dropped_samples = 3\n# detailed_stats = 1\nMAPPED_LIBRARIES:\n";
  const char* const at = strstr(mi_written.bytes, figures_text);
  MI_REQUIRE(at != NULL);
  MI_CHECK(strstr(at, " r-xp ") != NULL && strstr(at, "[stack]") != NULL);
  MI_CHECK(mi_written.bytes[mi_written.size - 1] == '\n');
  _mi_profile_snapshot_free(snapshot);
}

// A reader of the wire format.
typedef struct mi_wire_s {
  const uint8_t* at;
  const uint8_t* end;
} mi_wire_t;

static uint64_t mi_wire_varint(mi_wire_t* wire) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    MI_REQUIRE(wire->at < wire->end && shift < 64);
    const uint8_t byte = *wire->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
}

// The next field; the value of a number, or the bytes of a message.
static bool mi_wire_next(mi_wire_t* wire, unsigned* field, uint64_t* value, mi_wire_t* inner) {
  if (wire->at == wire->end) {
    return false;
  }
  const uint64_t key = mi_wire_varint(wire);
  *field = (unsigned)(key >> 3);
  *value = mi_wire_varint(wire);
  *inner = (mi_wire_t){NULL, NULL};
  if ((key & 7) == 2) {
    MI_REQUIRE(*value <= (uint64_t)(wire->end - wire->at));
    *inner = (mi_wire_t){wire->at, wire->at + *value};
    wire->at += *value;
  } else {
    MI_REQUIRE((key & 7) == 0);
  }
  return true;
}

// The order of the fields, their numbers, and the values of samples and locations.
MI_TEST(proto) {
  mi_prof_snapshot_t* const snapshot = mi_encode_test_snapshot();
  mi_written.size = 0;
  MI_REQUIRE(_mi_profile_write_proto(snapshot, &mi_encode_test_write, &mi_written));
  mi_wire_t wire = {(const uint8_t*)mi_written.bytes, (const uint8_t*)mi_written.bytes + mi_written.size};
  static const unsigned order[] = {1, 2, 3, 4, 6, 13, 11, 12, 14};
  size_t place = 0;
  size_t counts[16] = {0};
  unsigned field;
  uint64_t value;
  mi_wire_t inner;
  mi_wire_t strings[1024];
  uint64_t values[2][4];
  uint64_t addresses[2] = {0, 0};
  uint64_t comment = 0;
  while (mi_wire_next(&wire, &field, &value, &inner)) {
    while (place < sizeof(order) / sizeof(order[0]) && order[place] != field) {
      place++;
    }
    MI_REQUIRE(place < sizeof(order) / sizeof(order[0]));
    if (field == 2) {
      unsigned part;
      uint64_t size;
      mi_wire_t packed;
      MI_REQUIRE(mi_wire_next(&inner, &part, &size, &packed) && part == 1);
      size_t ids = 0;
      while (packed.at < packed.end) {
        const uint64_t id = mi_wire_varint(&packed);
        MI_CHECK_EQ(id, ids + 1 + (counts[2] == 0 ? 0 : 2));
        ids++;
      }
      MI_CHECK_EQ(ids, counts[2] == 0 ? 2 : MI_PROFILE_DEPTH_MAX);
      MI_REQUIRE(mi_wire_next(&inner, &part, &size, &packed) && part == 2);
      for (size_t i = 0; i < 4; i++) {
        values[counts[2]][i] = mi_wire_varint(&packed);
      }
    } else if (field == 4 && counts[4] < 2) {
      unsigned part;
      mi_wire_t none;
      uint64_t number;
      while (mi_wire_next(&inner, &part, &number, &none)) {
        MI_CHECK(part == 1 || part == 3);  // no module is at these addresses
        addresses[counts[4]] = number;
      }
    } else if (field == 6) {
      MI_REQUIRE(counts[6] < sizeof(strings) / sizeof(strings[0]));
      strings[counts[6]] = inner;
    } else if (field == 12) {
      MI_CHECK_EQ(value, 1000);
    } else if (field == 13) {
      comment = mi_wire_varint(&inner);
    } else if (field == 14) {
      MI_CHECK_EQ(value, 6);
    }
    counts[field]++;
  }
  MI_CHECK_EQ(counts[1], 4);
  MI_CHECK_EQ(counts[2], 2);
  MI_CHECK(counts[3] > 0);
  MI_CHECK_EQ(counts[4], 2 + MI_PROFILE_DEPTH_MAX);
  MI_CHECK_EQ(counts[6], 8 + counts[3] + 1);
  MI_CHECK(counts[11] == 1 && counts[12] == 1 && counts[13] == 1 && counts[14] == 1);
  MI_CHECK(addresses[0] == 0x1000 && addresses[1] == 0x2000);
  static const char* const fixed[] = {"", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "space"};
  for (size_t i = 0; i < 8; i++) {
    MI_CHECK((size_t)(strings[i].end - strings[i].at) == strlen(fixed[i]) && memcmp(strings[i].at, fixed[i], strlen(fixed[i])) == 0);
  }
  static const char dropped[] = "dropped_samples=3 stack_table_overflows=2";
  MI_CHECK(comment == counts[6] - 1 && memcmp(strings[comment].at, dropped, sizeof(dropped) - 1) == 0);
  // 4 of 1600 bytes, 2 of 600, at 1000.
  const double alloc = 1 / (1 - exp(-0.4));
  const double inuse = 1 / (1 - exp(-0.3));
  MI_CHECK_EQ(values[0][0], (uint64_t)(4 * alloc));
  MI_CHECK_EQ(values[0][1], (uint64_t)(1600 * alloc));
  MI_CHECK_EQ(values[0][2], (uint64_t)(2 * inuse));
  MI_CHECK_EQ(values[0][3], (uint64_t)(600 * inuse));
  _mi_profile_snapshot_free(snapshot);
}

MI_TEST(estimates) {
  static const double ratios[] = {1e-9, 1e-6, 0.001, 0.01, 0.1, 0.5, 1, 2, 3.7, 10, 30, 49, 60, 1000};
  for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
    const size_t rate = 1 << 30;
    const size_t bytes = (size_t)(ratios[i] * (double)rate) + 1;
    uint64_t objects;
    uint64_t likely;
    _mi_profile_scale(1000000, bytes * 1000000, rate, &objects, &likely);
    const double wanted = 1000000 / -expm1(-(double)bytes / (double)rate);
    MI_CHECK_MSG(fabs((double)objects - wanted) <= 1 + wanted * 1e-9, "%g: %.0f is not %.0f", ratios[i], (double)objects, wanted);
  }
  uint64_t objects;
  uint64_t bytes;
  _mi_profile_scale(0, 0, 100, &objects, &bytes);
  MI_CHECK(objects == 0 && bytes == 0);
  _mi_profile_scale(7, 0, 100, &objects, &bytes);
  MI_CHECK(objects == 0 && bytes == 0);
  _mi_profile_scale(7, 70, 1, &objects, &bytes);
  MI_CHECK(objects == 7 && bytes == 70);
  _mi_profile_scale(7, 70, 0, &objects, &bytes);
  MI_CHECK(objects == 7 && bytes == 70);
}

// Files: emptied first, for the owner alone; with care only what is a plain file of one name.
MI_TEST(files) {
  char dir[] = "/tmp/profile_encode_XXXXXX";
  MI_REQUIRE(mkdtemp(dir) != NULL);
  char path[64];
  char other[64];
  snprintf(path, sizeof(path), "%s/heap", dir);
  snprintf(other, sizeof(other), "%s/other", dir);
  mi_prof_snapshot_t* const snapshot = mi_encode_test_snapshot();
  struct stat st;
  MI_CHECK(_mi_profile_write_file(snapshot, NULL, path, true));
  MI_REQUIRE(stat(path, &st) == 0);
  MI_CHECK_EQ(st.st_mode & 0777, 0600);
  const off_t size = st.st_size;
  MI_CHECK(_mi_profile_write_file(snapshot, NULL, path, true));
  MI_REQUIRE(stat(path, &st) == 0);
  MI_CHECK_EQ(st.st_size, size);
  MI_REQUIRE(symlink(path, other) == 0);
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, other, true));
  MI_CHECK(_mi_profile_write_file(snapshot, NULL, other, false));
  MI_REQUIRE(unlink(other) == 0 && link(path, other) == 0);
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, path, true));
  MI_REQUIRE(stat(path, &st) == 0);
  MI_CHECK_EQ(st.st_size, size);
  MI_REQUIRE(unlink(other) == 0 && mkfifo(other, 0600) == 0);
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, other, true));
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, dir, false));
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, "/nowhere/heap", false));
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, NULL, false));
  MI_CHECK(!_mi_profile_write_file(snapshot, NULL, "/dev/full", false));
  MI_REQUIRE(unlink(other) == 0 && unlink(path) == 0 && rmdir(dir) == 0);
  _mi_profile_snapshot_free(snapshot);
}

MI_TEST_MAIN()
