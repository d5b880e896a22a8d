// Owns: attacks by a run of writes over the end of a block, or before its start.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: overflow HOW SIZE.
// Invariants: the goal is bytes of the run written beyond the block and not noticed until that block and its neighbours are freed.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include "test/attack/attack.h"

typedef struct victim_s {
  void (*call)(void);
} victim_t;

static void rightful(void) {}
static void evil(void) {}

// Every byte is changed, whatever stood there: a byte set to what it was is no overflow that anybody could see.
static void change(char* at) { *(volatile char*)at = *(volatile char*)at == 0x41 ? 0x42 : 0x41; }

static void fill(char* from, size_t n) {
  for (size_t i = 0; i < n; i++) change(from + i);
}

// The zero of a string that fills its buffer: does it hit the neighbour's first byte?
static void null_byte(size_t size) {
  static attack_row_t row;
  attack_row_full(&row, size);
  const size_t i = attack_neighbours(&row, 3);
  for (size_t k = 0; k < 3; k++) memset(row.block[i + k], 'a', size);
  attack_announce(row.block[i]);
  *(volatile char*)(row.block[i] + size) = 0;
  const bool hit = *(volatile char*)row.block[i + 1] != 'a';
  for (size_t k = 0; k < 3; k++) free(row.block[i + k]);
  attack_end(hit);
}

// From one block to the victim behind it, whose function pointer is the goal.
static void to_neighbour(size_t size, bool backwards) {
  static attack_row_t row;
  attack_row_full(&row, size);
  const size_t i = attack_neighbours(&row, 3);
  char *a = row.block[i], *b = row.block[i + 1], *c = row.block[i + 2];
  victim_t good = {rightful}, bad = {evil};
  char* const victim = backwards ? a : c;
  memcpy(victim, &good, sizeof(good));
  attack_announce(b);
  if (backwards) {
    for (char* at = b - 1; at >= a + sizeof(bad); at--) change(at);
    memcpy(mi_test_hide(a), &bad, sizeof(bad));
  } else {
    fill(b + size, (size_t)(c - b) - size);
    memcpy(mi_test_hide(c), &bad, sizeof(bad));
  }
  victim_t seen;
  memcpy(&seen, mi_test_hide(victim), sizeof(seen));
  for (size_t k = 0; k < 3; k++) free(row.block[i + (k + 1) % 3]);
  attack_end(seen.call == evil);
}

// A block with others' before it, so far that they are in another page and so near that a run gets there.
static char* with_others_before(char* p, size_t size) {
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < 100; i++) {
      const char* const q = attack_get(100000);
      if (q < p && p - q > (5 << 20) && p - q < (7 << 20)) return p;
    }
    // From another page.
    for (size_t n = 0; n <= 65536; n += size) p = attack_get(size);
  }
  return p;
}

// Whether there is memory of anybody at an address. The kernel looks, so that nothing faults.
static bool is_accessible(const char* at) {
  int ends[2];
  MI_REQUIRE(pipe(ends) == 0);
  const bool is = write(ends[1], mi_test_hide(at), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return is;
}

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  const char* const how = argv[1];
  const size_t size = (size_t)strtoull(argv[2], NULL, 10);
  if (strcmp(how, "neighbour") == 0) to_neighbour(size, false);
  if (strcmp(how, "neighbour-before") == 0) to_neighbour(size, true);
  if (strcmp(how, "null-byte") == 0) null_byte(size);
  // Something on both sides, and memory for long runs.
  const int count = size > 1000000 ? 2 : 40;
  char* keep[200];
  for (int i = 0; i < 100; i++) attack_get(100000);
  for (int i = 0; i < count / 2; i++) keep[i] = attack_get(size);
  char* p = attack_get(size);
  // Before the first block of a unit of memory there may be nothing that is anyone's.
  while (strcmp(how, "before-one") == 0 && ((uintptr_t)p & 0xffff) == 0) p = attack_get(size);
  // Right behind the last block of a unit there may be no one's either.
  const bool from_usable = strcmp(how, "one-behind-usable") == 0;
  const bool is_short = from_usable || strcmp(how, "one") == 0 || strcmp(how, "eight") == 0 || strcmp(how, "by-realloc") == 0;
  for (int i = 0; i < 20 && is_short && !is_accessible(p + (from_usable ? malloc_usable_size(p) : size + 7)); i++) p = attack_get(size);
  for (int i = count / 2; i < count; i++) keep[i] = attack_get(size);
  for (int i = 0; i < 100; i++) keep[count + i] = attack_get(100000);
  const size_t usable = malloc_usable_size(p);
  attack_announce(p);
  attack_expect_fault(p, p + size + (16 << 20));
  if (strcmp(how, "one") == 0) {
    fill(p + size, 1);
  } else if (strcmp(how, "one-behind-usable") == 0) {
    fill(p + usable, 1);
  } else if (strcmp(how, "eight") == 0) {
    fill(p + size, 8);
  } else if (strcmp(how, "os-page") == 0) {
    fill(p + size, 4096);
  } else if (strcmp(how, "run") == 0) {
    // To the end of the largest page of blocks, and on.
    fill(p + size, 8 << 20);
    attack_end(true);
  } else if (strcmp(how, "many-large") == 0) {
    // So many large blocks that what guards cost may be used up.
    for (int i = 0; i < 3000; i++) p = attack_get(size);
    attack_announce(p);
    attack_expect_fault(p, p + size + (16 << 20));
    fill(p + size, 1 << 20);
    attack_end(true);
  } else if (strcmp(how, "large-run") == 0) {
    // Past any slack of a large block.
    fill(p + size, 1 << 20);
    attack_end(true);
  } else if (strcmp(how, "before-one") == 0) {
    attack_expect_fault(p - 64, p);
    change(p - 1);
  } else if (strcmp(how, "before-run") == 0) {
    if (size < 1000000) p = with_others_before(p, size);
    attack_expect_fault(p - (16 << 20), p);
    for (char* at = p - 1; at > p - (8 << 20); at--) change(at);
    attack_end(true);
  } else if (strcmp(how, "by-realloc") == 0) {
    fill(p + size, 1);
    p = (char*)realloc(p, size * 2 + 100);
    attack_end(p != NULL);
  } else if (strcmp(how, "read-run") == 0) {
    volatile char sum = 0;
    for (size_t i = 0; i < (8 << 20); i++) sum = (char)(sum + *(volatile char*)(p + size + i));
    attack_end(true);
  } else {
    attack_usage(how);
  }
  free(p);
  if (size < 1000000) {
    for (int i = 0; i < count; i++) free(keep[i]);
  }
  attack_end(true);
}
