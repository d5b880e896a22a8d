// Owns: attacks by a handle of a heap that the attacker has replaced in the program's memory: it leads to a heap of their own making.
// May include: test/attack, test/lib.
// Called by: rows of test/attack/rows.txt: handles HOW.
// Invariants: the attacker knows the layout of heaps of this build, and gets as far as one wrong call of the program.
// Flags: -pthread -fno-builtin -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>

#include "test/attack/attack.h"

enum { WORDS = 4096,
       // Words of a heap: its number, its theaps, and its neighbours in the list of heaps.
       ID = 2,
       THEAPS = 3,
       NEXT = 4,
       PREV = 5 };

static uintptr_t fake[WORDS];
static uintptr_t zeroes[WORDS];
static uintptr_t before[WORDS];
static uintptr_t victim[WORDS];

static void* symbol(const char* name) {
  void* const s = dlsym(RTLD_DEFAULT, name);
  MI_REQUIRE(s != NULL);
  return s;
}

// Between two neighbours of which the one in front says that it is there.
static void forge(void) {
  for (size_t i = PREV + 1; i < WORDS; i++) fake[i] = (uintptr_t)zeroes;
  fake[ID] = 77;
  fake[PREV] = (uintptr_t)before;
  fake[NEXT] = (uintptr_t)victim;
  before[NEXT] = (uintptr_t)fake;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  void* (*const heap_new)(void) = (void* (*)(void))(uintptr_t)symbol("mi_heap_new");
  MI_REQUIRE(heap_new() != NULL);
  forge();
  void* const handle = attack_announce(fake);
  // What crashes on the way has followed the attacker's values.
  alarm(10);
  if (strcmp(how, "destroy") == 0 || strcmp(how, "delete") == 0) {
    char name[32];
    snprintf(name, sizeof(name), "mi_heap_%s", how);
    void (*const end)(void*) = (void (*)(void*))(uintptr_t)symbol(name);
    end(handle);
    // The unlinking has written what was asked for to where it was asked for.
    attack_end(victim[PREV] == (uintptr_t)before || before[NEXT] == (uintptr_t)victim);
  } else if (strcmp(how, "malloc") == 0) {
    void* (*const get)(void*, size_t) = (void* (*)(void*, size_t))(uintptr_t)symbol("mi_heap_malloc");
    fake[THEAPS] = 0;
    void* const p = get(handle, 100);
    // An address of metadata has been written into the attacker's memory.
    attack_end(p != NULL && fake[THEAPS] != 0);
  }
  attack_usage(how);
}
