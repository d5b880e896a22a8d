// Owns: attacks by one call of the memcpy and strcpy family with a length beyond a block.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: copies CALL SIZE.
// Invariants: the goal is that the call comes back and the neighbour's bytes are changed, or copied to the reader.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#define ATTACK_BY_COPIES 1
#include "test/attack/attack.h"

enum { BEYOND = 64 };

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  const char* const how = argv[1];
  const size_t size = (size_t)strtoull(argv[2], NULL, 10);
  static attack_row_t row;
  attack_row_full(&row, size);
  const size_t i = attack_neighbours(&row, 3);
  char *p = row.block[i], *next = row.block[i + 1];
  for (size_t k = 0; k < 3; k++) memset(row.block[i + k], 'v', size);
  const size_t n = mi_test_hide_size(row.stride + BEYOND);
  char* const source = (char*)mmap(NULL, n + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(source != MAP_FAILED);
  for (size_t k = 0; k < n; k++) source[k] = 'E';
  source[n] = 0;
  attack_announce(p);
  if (strcmp(how, "memcpy") == 0) {
    memcpy(p, source, n);
  } else if (strcmp(how, "memmove") == 0) {
    memmove(p, source, n);
  } else if (strcmp(how, "memset") == 0) {
    memset(p, 'E', n);
  } else if (strcmp(how, "strcpy") == 0) {
    strcpy(p, source);
  } else if (strcmp(how, "strncpy") == 0) {
    strncpy(p, source, n);
  } else if (strcmp(how, "strcat") == 0) {
    p[0] = 0;
    strcat(p, source);
  } else if (strcmp(how, "memcpy-inside") == 0) {
    // From the middle of the block on, with a length that would fit its start.
    memcpy(p + size / 2, source, n - size / 2);
  } else if (strcmp(how, "memcpy-read") == 0) {
    memcpy(source, p, n);
    attack_end(source[n - 1] == 'v');
  } else if (strcmp(how, "memcpy-freed") == 0) {
    free(p);
    memcpy(mi_test_hide(p), source, size);
    attack_take(size, NULL, NULL);
    attack_end(true);
  } else {
    attack_usage(how);
  }
  attack_end(next[0] == 'E');
}
