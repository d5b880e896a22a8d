// Owns: what the compiler's tables say of the frame that an instruction has: where its function goes back to.
// May include: prim, base, the C library's headers.
// Called by: stack.c.
// Invariants: async-signal-safe: no lock, no allocation. Nothing is read but the tables of a file that is loaded, between the
// bounds that these have themselves; what is not of the usual form is not known.
#include <elf.h>
#include <link.h>

#include "src/prim/linux/linux.h"
#include "src/prim/prim.h"

// Registers by the numbers of the tables.
#if defined(__x86_64__)
enum { MI_FRAME_STACK = 7,
       MI_FRAME_IS_KNOWN = 1 };
#elif defined(__i386__)
enum { MI_FRAME_STACK = 4,
       MI_FRAME_IS_KNOWN = 1 };
#elif defined(__aarch64__)
enum { MI_FRAME_STACK = 31,
       MI_FRAME_IS_KNOWN = 1 };
#else
enum { MI_FRAME_STACK = 0,
       MI_FRAME_IS_KNOWN = 0 };
#endif

enum {
  // Encodings of addresses: signed, four bytes, from where they stand or from the table's start.
  MI_FRAME_FROM_HERE = 0x1b,
  MI_FRAME_FROM_TABLE = 0x3b,
  MI_FRAME_UNSIGNED = 0x03,
  MI_FRAME_REMEMBERED = 8,
};

// Reads from `at`, and fails for good where that would go beyond `end`.
typedef struct mi_frame_reader_s {
  const uint8_t* at;
  const uint8_t* end;
  bool failed;
} mi_frame_reader_t;

static uint64_t mi_frame_bytes(mi_frame_reader_t* reader, size_t count) {
  uint64_t value = 0;
  if (reader->failed || (size_t)(reader->end - reader->at) < count) {
    reader->failed = true;
    return 0;
  }
  __builtin_memcpy(&value, reader->at, count);
  reader->at += count;
  return value;
}

static int32_t mi_frame_int32(mi_frame_reader_t* reader) { return (int32_t)mi_frame_bytes(reader, sizeof(int32_t)); }

// A number of groups of seven bits, the lowest first.
static uint64_t mi_frame_unsigned(mi_frame_reader_t* reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint64_t byte = mi_frame_bytes(reader, 1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  reader->failed = true;
  return 0;
}

// Wraps: the bits above those of a negative number are lost.
static mi_wraps int64_t mi_frame_signed(mi_frame_reader_t* reader) {
  const uint8_t* const start = reader->at;
  const uint64_t value = mi_frame_unsigned(reader);
  const unsigned bits = 7 * (unsigned)(reader->at - start);
  const bool is_negative = !reader->failed && bits < 64 && ((value >> (bits - 1)) & 1) != 0;
  return (int64_t)(is_negative ? value | ~UINT64_C(0) << bits : value);
}

static void mi_frame_skip(mi_frame_reader_t* reader, uint64_t count) {
  if (reader->failed || count > (uint64_t)(reader->end - reader->at)) {
    reader->failed = true;
  } else {
    reader->at += count;
  }
}

// The entries of the table are sorted by the address that they begin at. NULL: none covers `code`, as far as can be seen.
// Wraps: an entry may lie before the table.
static mi_wraps const uint8_t* mi_frame_find(const uint8_t* table, uintptr_t code) {
  typedef struct mi_frame_row_s {
    int32_t start;
    int32_t entry;
  } mi_frame_row_t;
  if (table[0] != 1 || table[1] != MI_FRAME_FROM_HERE || table[2] != MI_FRAME_UNSIGNED || table[3] != MI_FRAME_FROM_TABLE) {
    return NULL;
  }
  uint32_t count;
  __builtin_memcpy(&count, table + 8, sizeof(count));
  const uint8_t* const rows = table + 12;
  mi_frame_row_t row;
  uint32_t low = 0;
  for (uint32_t high = count; low < high;) {
    const uint32_t middle = low + (high - low) / 2;
    __builtin_memcpy(&row, rows + middle * sizeof(row), sizeof(row));
    if ((uintptr_t)table + (uintptr_t)(intptr_t)row.start <= code) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) {
    return NULL;
  }
  __builtin_memcpy(&row, rows + (low - 1) * sizeof(row), sizeof(row));
  return table + row.entry;
}

// An entry begins with its length; what is longer than 4 GiB is none of ours.
static mi_frame_reader_t mi_frame_entry(const uint8_t* at) {
  uint32_t length;
  __builtin_memcpy(&length, at, sizeof(length));
  mi_frame_reader_t reader = {at + sizeof(length), at + sizeof(length), length >= 0xfffffff0};
  reader.end += reader.failed ? 0 : length;
  return reader;
}

// What is common to functions of a file.
typedef struct mi_frame_common_s {
  uint64_t code_unit;
  int64_t data_unit;
  bool has_more;  // each entry has data of its own before its instructions
} mi_frame_common_t;

static bool mi_frame_read_common(mi_frame_reader_t* reader, mi_frame_common_t* common) {
  const uint64_t id = mi_frame_bytes(reader, 4);
  const uint64_t version = mi_frame_bytes(reader, 1);
  const char* const letters = (const char*)reader->at;
  while (mi_frame_bytes(reader, 1) != 0) {
  }
  common->code_unit = mi_frame_unsigned(reader);
  common->data_unit = mi_frame_signed(reader);
  (void)(version == 1 ? mi_frame_bytes(reader, 1) : mi_frame_unsigned(reader));
  if (reader->failed || id != 0 || (version != 1 && version != 3)) {
    return false;
  }
  common->has_more = letters[0] == 'z';
  uint64_t encoding = 0;
  if (common->has_more) {
    const uint64_t length = mi_frame_unsigned(reader);
    mi_frame_reader_t more = *reader;
    mi_frame_skip(reader, length);
    for (const char* letter = letters + 1; *letter != 0; letter++) {
      if (*letter == 'R') {
        encoding = mi_frame_bytes(&more, 1);
      } else if (*letter == 'L') {
        (void)mi_frame_bytes(&more, 1);
      } else if (*letter == 'P') {
        const uint64_t size = mi_frame_bytes(&more, 1) & 7;
        mi_frame_skip(&more, size == 3 ? 4 : size == 4 ? 8
                                                       : sizeof(uintptr_t));
      } else if (*letter != 'B') {
        // A frame of a signal, or what is not known.
        return false;
      }
    }
  }
  return !reader->failed && encoding == MI_FRAME_FROM_HERE;
}

// Where the frame ends: `offset` beyond a register.
typedef struct mi_frame_rule_s {
  uint64_t reg;
  uint64_t offset;
} mi_frame_rule_t;

typedef struct mi_frame_state_s {
  mi_frame_rule_t now;
  mi_frame_rule_t remembered[MI_FRAME_REMEMBERED];
  size_t depth;
  uint64_t place;  // in the function, in bytes
} mi_frame_state_t;

// One instruction of the tables that needs more than its own byte. False: not known.
static bool mi_frame_step(mi_frame_reader_t* reader, unsigned op, const mi_frame_common_t* common, mi_frame_state_t* state) {
  switch (op) {
    case 0x00:  // nothing
    case 0x2d:  // the return address is signed from here on
      return true;
    case 0x02:  // forward, by 1, 2 and 4 bytes
    case 0x03:
    case 0x04:
      state->place += mi_frame_bytes(reader, (size_t)1 << (op - 2)) * common->code_unit;
      return true;
    case 0x05:  // where a register is kept, or that it is not
    case 0x09:
    case 0x11:
    case 0x2f:
      (void)mi_frame_unsigned(reader);
      (void)mi_frame_unsigned(reader);
      return true;
    case 0x06:
    case 0x07:
    case 0x08:
    case 0x2e:
      (void)mi_frame_unsigned(reader);
      return true;
    case 0x0a:
      if (state->depth == MI_FRAME_REMEMBERED) {
        return false;
      }
      state->remembered[state->depth++] = state->now;
      return true;
    case 0x0b:
      if (state->depth == 0) {
        return false;
      }
      state->now = state->remembered[--state->depth];
      return true;
    case 0x0c:
      state->now.reg = mi_frame_unsigned(reader);
      state->now.offset = mi_frame_unsigned(reader);
      return true;
    case 0x0d:
      state->now.reg = mi_frame_unsigned(reader);
      return true;
    case 0x0e:
      state->now.offset = mi_frame_unsigned(reader);
      return true;
    case 0x10:  // a register's place by an expression
    case 0x16:
      (void)mi_frame_unsigned(reader);
      mi_frame_skip(reader, mi_frame_unsigned(reader));
      return true;
    default:
      return false;
  }
}

// Follows the instructions up to `place` in the function.
static bool mi_frame_run(mi_frame_reader_t* reader, const mi_frame_common_t* common, uint64_t place, mi_frame_state_t* state) {
  while (reader->at < reader->end) {
    const unsigned op = (unsigned)mi_frame_bytes(reader, 1);
    if ((op & 0xc0) == 0x40) {
      state->place += (op & 0x3f) * common->code_unit;
    } else if ((op & 0xc0) == 0x80) {
      (void)mi_frame_unsigned(reader);
    } else if ((op & 0xc0) == 0 && !mi_frame_step(reader, op, common, state)) {
      return false;
    }
    if (reader->failed) {
      return false;
    }
    if (state->place > place) {
      return true;
    }
  }
  return true;
}

// Wraps: a function may lie before its entry, and code before the function is far behind it.
mi_wraps mi_linux_frame_t _mi_prim_linux_frame(const void* table, uintptr_t code, size_t* size) {
  const uint8_t* const entry = MI_FRAME_IS_KNOWN && table != NULL ? mi_frame_find(table, code) : NULL;
  if (entry == NULL) {
    return MI_LINUX_FRAME_UNKNOWN;
  }
  mi_frame_reader_t reader = mi_frame_entry(entry);
  const uint8_t* const here = reader.at;
  const uint64_t back = mi_frame_bytes(&reader, 4);
  const uintptr_t start = (uintptr_t)reader.at + (uintptr_t)(intptr_t)mi_frame_int32(&reader);
  const uint64_t length = mi_frame_bytes(&reader, 4);
  if (reader.failed || back == 0 || code - start >= length) {
    return MI_LINUX_FRAME_UNKNOWN;
  }
  mi_frame_reader_t first = mi_frame_entry(here - back);
  mi_frame_common_t common;
  if (!mi_frame_read_common(&first, &common)) {
    return MI_LINUX_FRAME_UNKNOWN;
  }
  if (common.has_more) {
    mi_frame_skip(&reader, mi_frame_unsigned(&reader));
  }
  mi_frame_state_t state = {.now = {UINT64_MAX, 0}};
  if (!mi_frame_run(&first, &common, 0, &state) || state.place != 0 || !mi_frame_run(&reader, &common, code - start, &state)) {
    return MI_LINUX_FRAME_UNKNOWN;
  }
  if (state.now.reg != MI_FRAME_STACK) {
    return MI_LINUX_FRAME_BY_POINTER;
  }
  *size = (size_t)state.now.offset;
  return MI_LINUX_FRAME_BY_STACK;
}
