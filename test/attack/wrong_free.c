// Owns: attacks by a free of what is no block, and by calls that name a freed one.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: wrong_free PLACE SIZE | wrong_free CALL SIZE.
// Invariants: the goal of a free is to get the place from malloc, or blocks that overlap; the goal of a call is an answer.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include "test/attack/attack.h"

static char global_bytes[4096] __attribute__((aligned(64)));

static void function(void) { _exit(3); }

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  char stack_bytes[4096] __attribute__((aligned(64)));
  const char* const how = argv[1];
  const size_t size = (size_t)strtoull(argv[2], NULL, 10);
  char* const keep = attack_get(size);
  char* const p = attack_get(size);
  char *at = NULL, *lo = p, *hi = p + size;
  memset(stack_bytes, 0, sizeof(stack_bytes));
  memset(p, 0, size);
  attack_expect_fault(NULL, NULL);
  if (strcmp(how, "middle") == 0) at = p + (size / 2 & ~(size_t)15);
  if (strcmp(how, "plus-16") == 0) at = p + 16;
  if (strcmp(how, "plus-8") == 0) at = p + 8;
  if (strcmp(how, "plus-1") == 0) at = p + 1;
  if (strcmp(how, "os-page") == 0) at = p + 4096;
  if (strcmp(how, "stack") == 0) at = stack_bytes + 64, lo = stack_bytes, hi = lo + sizeof(stack_bytes);
  if (strcmp(how, "global") == 0) at = global_bytes + 64, lo = global_bytes, hi = lo + sizeof(global_bytes);
  if (strcmp(how, "function") == 0) at = (char*)((uintptr_t)&function & ~(uintptr_t)15), lo = at, hi = at + 16;
  if (at != NULL) {
    free(attack_announce(at));
    attack_taken.block[0] = p;
    attack_taken.block[1] = keep;
    attack_taken.count = lo == p ? 0 : 2;
    attack_end(attack_take(size, lo, hi));
  }
  free(p);
  attack_announce(p);
  // Of large blocks other allocators read a size that is not mapped any more.
  attack_expect_fault(p - 64, p + size);
  if (strcmp(how, "usable-size") == 0) attack_end(malloc_usable_size(mi_test_hide(p)) >= size);
  if (strcmp(how, "realloc-grow") == 0) attack_end(realloc(mi_test_hide(p), size * 2 + 100) != NULL);
  if (strcmp(how, "realloc-shrink") == 0) attack_end(realloc(mi_test_hide(p), size / 2 + 1) != NULL);
  if (strcmp(how, "realloc-twice") == 0) attack_end(realloc(mi_test_hide(p), size) != NULL && attack_take(size, NULL, NULL));
  attack_usage(how);
}
