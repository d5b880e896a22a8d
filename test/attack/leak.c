// Owns: attacks that read: addresses of the heap in memory that malloc gives out or that a run of reads reaches, bytes behind a string.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: leak HOW SIZE.
// Invariants: the goal is a word that the program did not write and that is an address near a block, or a byte of the neighbour's.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <sys/uio.h>

#include "test/attack/attack.h"

enum { BLOCKS = 200 };

static bool near(uintptr_t word, const char* p) {
  const uintptr_t distance = word > (uintptr_t)p ? word - (uintptr_t)p : (uintptr_t)p - word;
  return distance < ((uintptr_t)64 << 20);
}

// An address of the heap, or of the C library, whose data other allocators link their lists to.
static bool is_address(uintptr_t word, const char* p) {
  const uintptr_t code = (uintptr_t)stdout;
  const uintptr_t distance = word > code ? word - code : code - word;
  return near(word, p) || (word != 0 && distance < ((uintptr_t)4 << 20));
}

static bool has_address(const char* p, size_t size) {
  for (size_t i = 0; i + 8 <= size && i < 4096; i += 8) {
    if (is_address(attack_word_read(p + i), p)) return true;
  }
  return false;
}

// Reads on from a block as far as memory is accessible, at most 8 MiB either way. The kernel reads, so that nothing faults.
static bool address_in_reach(const char* p, size_t size, bool backwards) {
  static char bytes[4096];
  const char* const page = (const char*)((uintptr_t)p & ~(uintptr_t)4095);
  bool found = false;
  for (long i = 0; i < 2048 && !found; i++) {
    const char* const at = backwards ? page - i * 4096 : page + i * 4096;
    const struct iovec here = {bytes, sizeof(bytes)}, there = {(void*)(uintptr_t)at, sizeof(bytes)};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof(bytes)) break;
    for (size_t k = 0; k < sizeof(bytes); k += 8) {
      uintptr_t word;
      memcpy(&word, bytes + k, sizeof(word));
      found = found || near(word, p);
    }
  }
  (void)size;
  return found;
}

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  const char* const how = argv[1];
  const size_t size = (size_t)strtoull(argv[2], NULL, 10);
  static char* block[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    block[i] = attack_get(size);
    memset(block[i], 0, size);
  }
  if (strcmp(how, "behind-string") == 0) {
    static attack_row_t row;
    attack_row_full(&row, size);
    const size_t i = attack_neighbours(&row, 3);
    const size_t usable = malloc_usable_size(row.block[i]);
    for (size_t k = 0; k < 3; k++) memset(row.block[i + k], 'a' + (int)k, usable);
    // A string that fills its buffer: is there a zero before the next block's bytes?
    const char* s = row.block[i];
    size_t len = 0;
    while (*(const volatile char*)(s + len) != 0 && len < 2 * row.stride) len++;
    attack_end(len > row.stride);
  }
  for (int i = 0; i < BLOCKS; i += 2) free(block[i]);
  if (strcmp(how, "fresh") == 0) {
    bool found = false;
    for (int i = 0; i < BLOCKS * 4 && !found; i++) found = has_address(attack_get(size), size);
    attack_end(found);
  } else if (strcmp(how, "freed") == 0) {
    bool found = false;
    attack_expect_fault(block[0], block[0] + size);
    for (int i = 0; i < BLOCKS; i += 2) found = found || has_address((char*)mi_test_hide(block[i]), size);
    attack_end(found);
  } else if (strcmp(how, "reach") == 0) {
    attack_end(address_in_reach(block[BLOCKS / 2 + 1], size, false));
  } else if (strcmp(how, "reach-back") == 0) {
    attack_end(address_in_reach(block[BLOCKS / 2 + 1], size, true));
  } else if (strcmp(how, "calloc") == 0) {
    bool found = false;
    for (int i = 0; i < BLOCKS * 4 && !found; i++) {
      const char* const p = (char*)calloc(1, mi_test_hide_size(size));
      MI_REQUIRE(p != NULL);
      found = !mi_test_all_bytes(p, size, 0);
    }
    attack_end(found);
  }
  attack_usage(how);
}
