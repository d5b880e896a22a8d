// Owns: profile.proto, written by hand.
// May include: base, prim, profile.
// Called by: through encode.h.
// Invariants: a message is whole in a buffer before its length is written; memory for the tables comes from the system.
#include <string.h>

#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/prim/prim.h"
#include "src/profile/encode.h"
#include "src/profile/snapshot.h"

enum {
  MI_PROTO_MODULES_MAX = 512,
  MI_PROTO_VARINT_MAX = 10,
  MI_PROTO_VARINT = 0,  // wire types
  MI_PROTO_BYTES = 2,
};

// Numbers of the fields, and of the strings that are always there.
enum {
  MI_PROFILE_SAMPLE_TYPE = 1,
  MI_PROFILE_SAMPLE = 2,
  MI_PROFILE_MAPPING = 3,
  MI_PROFILE_LOCATION = 4,
  MI_PROFILE_STRING_TABLE = 6,
  MI_PROFILE_PERIOD_TYPE = 11,
  MI_PROFILE_PERIOD = 12,
  MI_PROFILE_COMMENT = 13,
  MI_PROFILE_DEFAULT_SAMPLE_TYPE = 14,
  MI_VALUE_TYPE_TYPE = 1,
  MI_VALUE_TYPE_UNIT = 2,
  MI_SAMPLE_LOCATION_ID = 1,
  MI_SAMPLE_VALUE = 2,
  MI_MAPPING_ID = 1,
  MI_MAPPING_START = 2,
  MI_MAPPING_LIMIT = 3,
  MI_MAPPING_OFFSET = 4,
  MI_MAPPING_FILENAME = 5,
  MI_LOCATION_ID = 1,
  MI_LOCATION_MAPPING_ID = 2,
  MI_LOCATION_ADDRESS = 3,
};

static const char* const mi_proto_strings[] = {"", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "space"};
enum { MI_STRING_ALLOC_OBJECTS = 1,
       MI_STRING_COUNT = 2,
       MI_STRING_ALLOC_SPACE = 3,
       MI_STRING_BYTES = 4,
       MI_STRING_INUSE_OBJECTS = 5,
       MI_STRING_INUSE_SPACE = 6,
       MI_STRING_SPACE = 7,
       MI_STRINGS = 8 };

// A message, or a packed field of one.
typedef struct mi_proto_message_s {
  size_t size;
  uint8_t bytes[(MI_PROFILE_DEPTH_MAX + 8) * MI_PROTO_VARINT_MAX];
} mi_proto_message_t;

typedef struct mi_proto_s {
  mi_profile_writer_t writer;
  mi_proto_message_t message;
  mi_proto_message_t packed;
  size_t modules;
  size_t locations;
  size_t buckets;      // a power of two
  uintptr_t* address;  // of location number i + 1
  uint32_t* table;     // numbers of locations, by their addresses; 0: none
  mi_prim_mapped_t module[MI_PROTO_MODULES_MAX];
} mi_proto_t;

static size_t mi_proto_varint(uint8_t* bytes, uint64_t value) {
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) {
    bytes[size++] = (uint8_t)(value | 0x80);
  }
  bytes[size++] = (uint8_t)value;
  return size;
}

static void mi_proto_add(mi_proto_message_t* message, uint64_t value) {
  message->size += mi_proto_varint(message->bytes + message->size, value);
}

static void mi_proto_add_field(mi_proto_message_t* message, unsigned field, uint64_t value) {
  mi_proto_add(message, field << 3 | MI_PROTO_VARINT);
  mi_proto_add(message, value);
}

static void mi_proto_add_packed(mi_proto_message_t* message, unsigned field, const mi_proto_message_t* packed) {
  mi_proto_add(message, field << 3 | MI_PROTO_BYTES);
  mi_proto_add(message, packed->size);
  memcpy(message->bytes + message->size, packed->bytes, packed->size);
  message->size += packed->size;
}

static void mi_proto_put_bytes(mi_proto_t* proto, unsigned field, const void* bytes, size_t size) {
  uint8_t head[2 * MI_PROTO_VARINT_MAX];
  size_t length = mi_proto_varint(head, field << 3 | MI_PROTO_BYTES);
  length += mi_proto_varint(head + length, size);
  _mi_profile_put(&proto->writer, head, length);
  _mi_profile_put(&proto->writer, bytes, size);
}

// Puts the message under a field of the profile, and begins the next.
static void mi_proto_put(mi_proto_t* proto, unsigned field) {
  mi_proto_put_bytes(proto, field, proto->message.bytes, proto->message.size);
  proto->message.size = 0;
}

static void mi_proto_put_string(mi_proto_t* proto, const char* text) { mi_proto_put_bytes(proto, MI_PROFILE_STRING_TABLE, text, strlen(text)); }

static void mi_proto_put_number(mi_proto_t* proto, unsigned field, uint64_t value) {
  uint8_t bytes[2 * MI_PROTO_VARINT_MAX];
  size_t size = mi_proto_varint(bytes, field << 3 | MI_PROTO_VARINT);
  size += mi_proto_varint(bytes + size, value);
  _mi_profile_put(&proto->writer, bytes, size);
}

static void mi_proto_put_type(mi_proto_t* proto, unsigned field, uint64_t type, uint64_t unit) {
  mi_proto_add_field(&proto->message, MI_VALUE_TYPE_TYPE, type);
  mi_proto_add_field(&proto->message, MI_VALUE_TYPE_UNIT, unit);
  mi_proto_put(proto, field);
}

// The number of the location with this address, which is inside of a call. Wraps: the hash mixes.
static mi_wraps uint32_t mi_proto_location(mi_proto_t* proto, uintptr_t address) {
  uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
  size_t at = (size_t)(hash >> 32) & (proto->buckets - 1);
  while (proto->table[at] != 0 && proto->address[proto->table[at] - 1] != address) {
    at = (at + 1) & (proto->buckets - 1);
  }
  if (proto->table[at] == 0) {
    proto->address[proto->locations] = address;
    proto->table[at] = (uint32_t)++proto->locations;
  }
  return proto->table[at];
}

static void mi_proto_put_sample(mi_proto_t* proto, const mi_prof_sample_info_t* sample, size_t rate) {
  const struct {
    size_t objects;
    size_t bytes;
  } counts[] = {{sample->accum_objects, sample->accum_bytes}, {sample->live_objects, sample->live_bytes}};
  proto->packed.size = 0;
  for (size_t i = 0; i < sample->depth; i++) {
    mi_proto_add(&proto->packed, mi_proto_location(proto, (uintptr_t)sample->stack[i] - 1));
  }
  mi_proto_add_packed(&proto->message, MI_SAMPLE_LOCATION_ID, &proto->packed);
  proto->packed.size = 0;
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
    uint64_t objects;
    uint64_t bytes;
    _mi_profile_scale(counts[i].objects, counts[i].bytes, rate, &objects, &bytes);
    mi_proto_add(&proto->packed, objects);
    mi_proto_add(&proto->packed, bytes);
  }
  mi_proto_add_packed(&proto->message, MI_SAMPLE_VALUE, &proto->packed);
  mi_proto_put(proto, MI_PROFILE_SAMPLE);
}

// The code of the module: that is what readers look functions up by.
static void mi_proto_put_mappings(mi_proto_t* proto) {
  for (size_t i = 0; i < proto->modules; i++) {
    const mi_prim_mapped_t* const module = &proto->module[i];
    mi_proto_add_field(&proto->message, MI_MAPPING_ID, i + 1);
    mi_proto_add_field(&proto->message, MI_MAPPING_START, module->code);
    mi_proto_add_field(&proto->message, MI_MAPPING_LIMIT, module->code + module->code_size);
    mi_proto_add_field(&proto->message, MI_MAPPING_OFFSET, module->code_offset);
    mi_proto_add_field(&proto->message, MI_MAPPING_FILENAME, MI_STRINGS + i);
    mi_proto_put(proto, MI_PROFILE_MAPPING);
  }
}

// Wraps: an address before a module is far behind it.
static mi_wraps void mi_proto_put_locations(mi_proto_t* proto) {
  for (size_t i = 0; i < proto->locations; i++) {
    const uintptr_t address = proto->address[i];
    size_t module = 0;
    while (module < proto->modules && address - proto->module[module].code >= proto->module[module].code_size) {
      module++;
    }
    mi_proto_add_field(&proto->message, MI_LOCATION_ID, i + 1);
    if (module < proto->modules) {
      mi_proto_add_field(&proto->message, MI_LOCATION_MAPPING_ID, module + 1);
    }
    mi_proto_add_field(&proto->message, MI_LOCATION_ADDRESS, address);
    mi_proto_put(proto, MI_PROFILE_LOCATION);
  }
}

static bool mi_proto_add_module(const mi_prim_mapped_t* mapped, void* arg) {
  mi_proto_t* const proto = arg;
  if (mapped->code_size != 0) {
    proto->module[proto->modules++] = *mapped;
  }
  return proto->modules < MI_PROTO_MODULES_MAX;
}

static void mi_proto_write(mi_proto_t* proto, const mi_prof_snapshot_t* snapshot) {
  mi_proto_put_type(proto, MI_PROFILE_SAMPLE_TYPE, MI_STRING_ALLOC_OBJECTS, MI_STRING_COUNT);
  mi_proto_put_type(proto, MI_PROFILE_SAMPLE_TYPE, MI_STRING_ALLOC_SPACE, MI_STRING_BYTES);
  mi_proto_put_type(proto, MI_PROFILE_SAMPLE_TYPE, MI_STRING_INUSE_OBJECTS, MI_STRING_COUNT);
  mi_proto_put_type(proto, MI_PROFILE_SAMPLE_TYPE, MI_STRING_INUSE_SPACE, MI_STRING_BYTES);
  for (size_t i = 0; i < snapshot->count; i++) {
    mi_proto_put_sample(proto, &snapshot->samples[i], snapshot->rate);
  }
  mi_proto_put_mappings(proto);
  mi_proto_put_locations(proto);
  for (size_t i = 0; i < MI_STRINGS; i++) {
    mi_proto_put_string(proto, mi_proto_strings[i]);
  }
  for (size_t i = 0; i < proto->modules; i++) {
    mi_proto_put_string(proto, proto->module[i].path);
  }
  char comment[128];
  (void)_mi_fmt(comment, sizeof(comment), "dropped_samples=%zu stack_table_overflows=%zu", snapshot->dropped, snapshot->overflows);
  mi_proto_put_string(proto, comment);
  mi_proto_add(&proto->message, MI_STRINGS + proto->modules);
  mi_proto_put(proto, MI_PROFILE_COMMENT);
  mi_proto_put_type(proto, MI_PROFILE_PERIOD_TYPE, MI_STRING_SPACE, MI_STRING_BYTES);
  mi_proto_put_number(proto, MI_PROFILE_PERIOD, snapshot->rate);
  mi_proto_put_number(proto, MI_PROFILE_DEFAULT_SAMPLE_TYPE, MI_STRING_INUSE_SPACE);
}

bool _mi_profile_write_proto(const mi_prof_snapshot_t* snapshot, mi_prof_write_fun* write, void* arg) {
  size_t buckets = 64;
  while (buckets < 2 * snapshot->frames) {
    buckets *= 2;
  }
  mi_proto_t* const proto = _mi_profile_scratch(sizeof(*proto) + snapshot->frames * sizeof(uintptr_t) + buckets * sizeof(uint32_t));
  if (proto == NULL) {
    return false;
  }
  proto->buckets = buckets;
  proto->address = (uintptr_t*)(void*)(proto + 1);
  proto->table = (uint32_t*)(void*)(proto->address + snapshot->frames);
  const bool listed = _mi_prim_modules_visit(&mi_proto_add_module, proto);
  if (listed) {
    _mi_profile_writer_begin(&proto->writer, write, arg);
    mi_proto_write(proto, snapshot);
    _mi_profile_writer_end(&proto->writer);
  }
  _mi_profile_scratch_free(proto);
  return listed;
}
