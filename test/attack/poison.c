// Owns: attacks on the link that stands in a freed block: overwritten, tweaked, replayed.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: poison once TARGET WAY SIZE | poison many WAY SIZE tries=N.
// Invariants: the goal is an address of the attacker's choice out of malloc, or two live blocks that overlap.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include "test/attack/attack.h"

enum { BLOCKS = 40 };

static char global_bytes[4096] __attribute__((aligned(64)));

static void die(void) { _exit(3); }

// What an attacker who has read the C library would store for a link to `target` in a block at `at`.
static uintptr_t forge(const char* way, uintptr_t at, uintptr_t target, uintptr_t old, size_t stride) {
  if (strcmp(way, "plain") == 0) return target;
  if (strcmp(way, "mangled") == 0) return target ^ (at >> 12);
  // What would change nothing is no attack, unless there is no link at all.
  if (strcmp(way, "low-byte") == 0) return (old & ~(uintptr_t)0xff) != old || old == 0 ? old & ~(uintptr_t)0xff : old ^ 0x80;
  if (strcmp(way, "low-bytes") == 0) return (old & ~(uintptr_t)0xffff) != old || old == 0 ? old & ~(uintptr_t)0xffff : old ^ 0x80;
  if (strcmp(way, "plus") == 0) return old + stride;
  if (strcmp(way, "minus") == 0) return old - stride;
  if (strcmp(way, "plus-16") == 0) return old + 16;
  if (strcmp(way, "increment") == 0) return old + 1;
  if (strcmp(way, "flip") == 0) return old ^ 0x40;
  if (strcmp(way, "ones") == 0) return UINTPTR_MAX;
  if (strcmp(way, "ascii") == 0) return (uintptr_t)0x4141414141414141ull;
  attack_usage(way);
}

static void once(const char* where, const char* way, size_t size) {
  char stack_bytes[4096] __attribute__((aligned(64)));
  memset(stack_bytes, 0, sizeof(stack_bytes));
  static attack_row_t row;
  attack_row(&row, size, BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++) memset(row.block[i], 0, size);
  char* const other = (char*)calloc(1, 6000);
  char *lo = stack_bytes, *hi = stack_bytes + sizeof(stack_bytes), *target = stack_bytes + 64;
  if (strcmp(where, "global") == 0) {
    lo = global_bytes, hi = lo + sizeof(global_bytes), target = lo + 64;
  } else if (strcmp(where, "live") == 0) {
    lo = row.block[5], hi = lo + size, target = lo;
  } else if (strcmp(where, "inside") == 0) {
    lo = row.block[5], hi = lo + size, target = lo + (size / 2 & ~(size_t)15);
  } else if (strcmp(where, "other") == 0) {
    lo = other, hi = lo + 6000, target = lo + 1024;
  } else if (strcmp(where, "code") == 0) {
    lo = (char*)((uintptr_t)&die & ~(uintptr_t)15), hi = lo + 16, target = lo;
  } else if (strcmp(where, "self") != 0 && strcmp(where, "any") != 0 && strcmp(where, "stack") != 0) {
    attack_usage(where);
  }
  char* const a = row.block[21];
  char* const b = row.block[20];
  if (strcmp(where, "self") == 0) lo = hi = NULL, target = a;
  if (strcmp(where, "any") == 0) lo = hi = NULL;
  if (strcmp(way, "replay-old") == 0) {
    // The link of an earlier life of the same block, which led to a block that lives by now.
    free(b);
    free(a);
    const uintptr_t old = attack_word_read(a);
    if (attack_take(size, NULL, NULL)) attack_end(true);
    // Another block, which may come to stand behind it in the list.
    const size_t second = attack_taken.block[3] == a ? 4 : 3;
    free(mi_test_hide(attack_taken.block[second]));
    bool back = false;
    for (size_t i = 0; i < attack_taken.count; i++) {
      if (attack_taken.block[i] != a) continue;
      free(a);
      attack_announce(a);
      attack_word_write(a, old);
      attack_taken.block[i] = NULL;
      back = true;
    }
    if (!back) attack_end(false);
    attack_taken.block[second] = NULL;
    for (size_t i = 0; i < 40; i++) attack_taken.block[attack_taken.count - 1 - i] = attack_get(size);
    attack_end(attack_overlap(attack_taken.block, attack_taken.count, size));
  }
  free(mi_test_hide(b));
  free(mi_test_hide(a));
  attack_announce(a);
  if (strcmp(way, "replay-other") == 0) {
    // The link to b is put into b, which leads to itself then if links are worth the same everywhere.
    attack_word_write(b, attack_word_read(a));
  } else if (strcmp(way, "byte") == 0) {
    *(volatile unsigned char*)mi_test_hide(a) ^= 0x10;
  } else {
    attack_word_write(a, forge(way, (uintptr_t)a, (uintptr_t)target, attack_word_read(a), row.stride));
  }
  // What the program still holds must not be handed out either.
  memcpy(attack_taken.block, row.block, 20 * sizeof(char*));
  memcpy(attack_taken.block + 20, row.block + 22, (BLOCKS - 22) * sizeof(char*));
  attack_taken.count = BLOCKS - 2;
  attack_end(attack_take(size, lo, hi));
}

// Many tries in one process, which goes on after each report.
static void many(const char* way, size_t size, long tries, long most) {
  char* p[16];
  char* more[64];
  long hits = 0;
  uint64_t seed = 7;
  uintptr_t kept = 0;
  for (long i = 0; i < tries; i++) {
    for (size_t k = 0; k < 16; k++) {
      p[k] = attack_get(size);
      memset(p[k], 0, size);
    }
    const size_t first = (size_t)(mi_test_random(&seed) % 8), second = 8 + first;
    free(mi_test_hide(p[first]));
    free(mi_test_hide(p[second]));
    char* const a = p[second];
    const uintptr_t old = attack_word_read(a);
    uintptr_t word = 0;
    if (strcmp(way, "random") == 0) {
      word = (uintptr_t)mi_test_random(&seed);
    } else if (strcmp(way, "chosen") == 0) {
      word = (uintptr_t)(global_bytes + 16 * (mi_test_random(&seed) % 200));
    } else if (strcmp(way, "replayed") == 0) {
      word = i % 2 == 0 ? attack_word_read(p[first]) : kept;
    } else if (strcmp(way, "added") == 0) {
      // A small change at any place of the word, as by a counter that a freed object holds.
      word = old + ((uintptr_t)(1 + mi_test_random(&seed) % 64) << (mi_test_random(&seed) % 60));
    } else {
      attack_usage(way);
    }
    kept = old;
    attack_word_write(a, word);
    for (size_t k = 0; k < 64; k++) more[k] = attack_get(size);
    char* live[16 + 64];
    size_t n = 0;
    for (size_t k = 0; k < 16; k++) {
      if (k != first && k != second) live[n++] = p[k];
    }
    for (size_t k = 0; k < 64; k++) live[n++] = more[k];
    bool hit = attack_overlap(live, n, size);
    for (size_t k = 0; k < 64; k++) hit = hit || (more[k] >= global_bytes && more[k] < global_bytes + sizeof(global_bytes));
    if (hit) {
      // The heap is spoilt; nothing more can be learned of it.
      if (++hits > most) break;
      continue;
    }
    for (size_t k = 0; k < n; k++) free(live[k]);
  }
  attack_end_rate(hits, tries, most);
}

int main(int argc, char** argv) {
  if (argc > 4 && strcmp(argv[1], "once") == 0) once(argv[2], argv[3], (size_t)strtoull(argv[4], NULL, 10));
  if (argc > 3 && strcmp(argv[1], "many") == 0) {
    many(argv[2], (size_t)strtoull(argv[3], NULL, 10), attack_number(argc, argv, "tries", 1), attack_number(argc, argv, "most", 0));
  }
  attack_usage(argc > 1 ? argv[1] : "");
}
