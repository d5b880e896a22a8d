// Owns: attacks by forged metadata: sizes and links that other allocators keep beside or in blocks, "houses".
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: house NAME [SIZE].
// Invariants: each is written as it works on an allocator with a size before each block and links in free ones (glibc 2.36); the goal
//   is said at each.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include "test/attack/attack.h"

static uintptr_t global_words[512] __attribute__((aligned(64)));
static char* global_pointer;

// A forged block outside any heap, or in the middle of a block: free it, and get it from malloc.
static void spirit(const char* where) {
  uintptr_t stack_words[64] __attribute__((aligned(64)));
  memset(stack_words, 0, sizeof(stack_words));
  uintptr_t* words = stack_words;
  if (strcmp(where, "bss") == 0) words = global_words;
  if (strcmp(where, "block") == 0) {
    words = (uintptr_t*)attack_get(0x70);
    memset(words, 0, 0x70);
  }
  if (strcmp(where, "mmap") == 0) {
    void* m = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MI_REQUIRE(m != MAP_FAILED);
    words = (uintptr_t*)m;
  }
  words[3] = 0x81;  // size of the forged block, before its start
  char* const forged = (char*)attack_announce(words + 4);
  free(forged);
  attack_end(attack_take(0x70, words, words + 14));
}

// The size of a live block is enlarged from its left neighbour; freed and taken again it reaches over its right neighbour.
static void enlarge(size_t size) {
  static attack_row_t row;
  attack_row_full(&row, size);
  const size_t i = attack_neighbours(&row, 3);
  char *b = row.block[i + 1], *c = row.block[i + 2];
  attack_announce(row.block[i]);
  attack_word_write(b - 8, 2 * row.stride + 1);
  free(b);
  memcpy(attack_taken.block, &row.block[i + 2], sizeof(char*));
  const size_t big = 2 * row.stride - 8;
  char* d[32];
  bool hit = false;
  for (size_t k = 0; k < 32; k++) {
    d[k] = attack_get(big);
    hit = hit || (d[k] < c + size && d[k] + big > c);
  }
  free(row.block[i]);
  free(c);
  attack_end(hit);
}

// The size of what is left behind the last block becomes endless, and one large request moves the rest to the target.
static void force(void) {
  char* const last = attack_get(24);
  attack_word_write(last + 24, UINTPTR_MAX);
  char* const target = (char*)mi_test_hide(global_words);
  char* const p = (char*)malloc(mi_test_hide_size((size_t)(target - last - 64)));
  (void)p;
  char* const q = attack_get(256);
  attack_end(q >= target - 512 && q < target + sizeof(global_words));
}

// A forged free block with links in a live one: joining with it writes to a pointer of the program.
static void unlinked(void) {
  char* const a = attack_get(0x420);
  char* const b = attack_get(0x420);
  char* const end = attack_get(24);
  global_pointer = a;
  uintptr_t* const w = (uintptr_t*)mi_test_hide(a);
  w[1] = 0x420;
  w[2] = (uintptr_t)&global_pointer - 24;
  w[3] = (uintptr_t)&global_pointer - 16;
  attack_announce(b);
  attack_word_write(a + 0x420, 0x420);
  attack_word_write(a + 0x428, 0x430);
  free(b);
  free(end);
  attack_end(global_pointer != a);
}

// Forged links in a block that is free, beside one that is freed then: the joining of the two writes to the target.
static void unlinked_free(void) {
  char* const a = attack_get(0x420);
  char* const b = attack_get(0x420);
  char* const end = attack_get(24);
  attack_announce(a);
  free(a);
  attack_word_write(a, (uintptr_t)&global_words[8] - 24);
  attack_word_write(a + 8, (uintptr_t)&global_words[16]);
  free(b);
  const bool hit = attack_take(0x420, global_words, global_words + 512);
  (void)end;
  attack_end(hit || global_words[8] != 0 || global_words[16] != 0 || global_words[18] != 0);
}

// One null byte behind a block says that what is before the next is free, and a forged size how much that is.
static void einherjar(void) {
  char* filler[7];
  for (int i = 0; i < 7; i++) filler[i] = attack_get(0xf8);
  char* const a = attack_get(0x38);
  char* const b = attack_get(0x28);
  char* const c = attack_get(0xf8);
  const uintptr_t span = (uintptr_t)(b + 0x20) - (uintptr_t)a;
  uintptr_t* const w = (uintptr_t*)mi_test_hide(a);
  w[0] = 0;
  w[1] = span;
  w[2] = (uintptr_t)a;
  w[3] = (uintptr_t)a;
  attack_announce(b);
  attack_word_write(b + 0x20, span);
  *(char*)mi_test_hide(b + 0x28) = 0;
  for (int i = 0; i < 7; i++) free(filler[i]);
  free(c);
  bool hit = false;
  for (int i = 0; i < 32; i++) {
    char* const d = attack_get(0x158);
    hit = hit || (d < b + 0x28 && d + 0x158 > b);
  }
  free(b);
  free(a);
  attack_end(hit);
}

// A block is freed into a larger free one, and freed again into a cache.
static void botcake(void) {
  char* filler[7];
  for (int i = 0; i < 7; i++) filler[i] = attack_get(0x100);
  char* const prev = attack_get(0x100);
  char* const a = attack_get(0x100);
  char* const end = attack_get(16);
  for (int i = 0; i < 7; i++) free(filler[i]);
  free(a);
  free(prev);
  filler[0] = attack_get(0x100);
  attack_announce(a);
  free(mi_test_hide(a));
  char* const x = attack_get(0x120);
  char* const y = attack_get(0x100);
  (void)end;
  attack_taken.block[0] = y;
  attack_end((x < y + 0x100 && y < x + 0x120) || attack_take(0x100, NULL, NULL));
}

// A forged link of a large free block has the address of another written to the target.
static void large_list(size_t size) {
  char* const p1 = attack_get(size + 0x10);
  char* const g1 = attack_get(24);
  char* const p2 = attack_get(size);
  char* const g2 = attack_get(24);
  free(p1);
  char* const g3 = attack_get(size + 0x20);
  free(p2);
  attack_announce(p1);
  attack_word_write(p1 + 24, (uintptr_t)&global_words[4] - 32);
  char* const g4 = attack_get(size + 0x20);
  (void)g1, (void)g2, (void)g3, (void)g4;
  attack_end(global_words[4] != 0);
}

// The second link of a free block, which other allocators follow backwards and write through.
static void back_link(size_t size) {
  char* const p = attack_get(size);
  char* const end = attack_get(24);
  free(p);
  attack_announce(p);
  attack_word_write(p + 8, (uintptr_t)&global_words[4] - 16);
  const bool hit = attack_take(size, global_words, global_words + 512);
  (void)end;
  attack_end(hit || global_words[4] != 0);
}

// The backward link of a small free block while a cache is filled from its list.
static void stash(void) {
  uintptr_t target[16] __attribute__((aligned(64)));
  char* c[9];
  memset(target, 0, sizeof(target));
  target[3] = (uintptr_t)&target[2];
  for (int i = 0; i < 9; i++) c[i] = attack_get(0x90);
  for (int i = 3; i < 9; i++) free(c[i]);
  free(c[1]);
  free(c[0]);
  free(c[2]);
  char* const sorter = attack_get(0xa0);
  char* const x = attack_get(0x90);
  char* const y = attack_get(0x90);
  attack_announce(c[2]);
  attack_word_write(c[2] + 8, (uintptr_t)target);
  char* const z = (char*)calloc(1, mi_test_hide_size(0x90));
  (void)sorter, (void)x, (void)y, (void)z;
  attack_end(attack_take(0x90, target, target + 16));
}

// A size before a block with a mapping of its own grows, so that its free takes the neighbour's memory with it.
static void large_header(size_t size) {
  char* a = attack_get(size);
  char* b = attack_get(size);
  // Where places are random, not right behind a guard.
  bool random = false;
  for (int i = 0; i < 4; i++) random = random || (uintptr_t)attack_get(size) % 4096 != 0;
  while (random && (uintptr_t)a % 4096 == 0) a = attack_get(size);
  while (random && (uintptr_t)b % 4096 == 0) b = attack_get(size);
  char *lo = a < b ? a : b, *hi = a < b ? b : a;
  memset(hi, 1, 4096);
  attack_announce(lo);
  attack_expect_fault(lo - 4096, lo);
  const uintptr_t span = (size + 8 + 8 + 4095) & ~(uintptr_t)4095;
  attack_word_write(lo - 8, 2 * span | 2);
  free(lo);
  char* const c = attack_get(2 * size);
  attack_end(c < hi + size && c + 2 * size > hi);
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  const size_t size = argc > 2 ? (size_t)strtoull(argv[2], NULL, 10) : 0;
  if (strcmp(name, "spirit") == 0 && argc > 2) spirit(argv[2]);
  if (strcmp(name, "enlarge") == 0) enlarge(size);
  if (strcmp(name, "force") == 0) force();
  if (strcmp(name, "unlinked") == 0) unlinked();
  if (strcmp(name, "unlinked-free") == 0) unlinked_free();
  if (strcmp(name, "einherjar") == 0) einherjar();
  if (strcmp(name, "botcake") == 0) botcake();
  if (strcmp(name, "large-list") == 0) large_list(size);
  if (strcmp(name, "back-link") == 0) back_link(size);
  if (strcmp(name, "stash") == 0) stash();
  if (strcmp(name, "large-header") == 0) large_header(size);
  attack_usage(name);
}
