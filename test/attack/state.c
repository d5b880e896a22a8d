// Owns: attacks by one write to what the allocator itself keeps: options, registered functions; and by zero-size blocks.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: state HOW.
// Invariants: the attacker is generous to themselves: they find the place by looking through all writable memory of the process.
// Flags: -pthread -fno-builtin -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>

#include "test/attack/attack.h"

enum { PURGE_DELAY = 15 };  // number of an option that takes any value

static void rightful(int err, void* arg) {
  (void)err;
  (void)arg;
}

static void evil(int err, void* arg) {
  (void)err;
  (void)arg;
  attack_end(true);
}

static void overwrite_all(uintptr_t old, uintptr_t word) {
  static uintptr_t found[64];
  const size_t found_count = attack_find(old, found, 64);
  MI_REQUIRE(found_count > 0);
  for (size_t i = 0; i < found_count; i++) {
    attack_expect_fault((void*)found[i], (void*)(found[i] + sizeof(word)));
    attack_word_write((void*)found[i], word);
  }
}

static void* symbol(const char* name) {
  void* const s = dlsym(RTLD_DEFAULT, name);
  MI_REQUIRE(s != NULL);
  return s;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  char stack_bytes[64] __attribute__((aligned(64)));
  if (strcmp(how, "error-function") == 0) {
    void (*const set)(void (*)(int, void*), void*) = (void (*)(void (*)(int, void*), void*))(uintptr_t)symbol("mi_register_error");
    set(rightful, NULL);
    overwrite_all((uintptr_t)&rightful, (uintptr_t)&evil);
    free(attack_announce(stack_bytes + 16));
    attack_end(false);
  } else if (strcmp(how, "option") == 0) {
    void (*const set)(int, long) = (void (*)(int, long))(uintptr_t)symbol("mi_option_set");
    long (*const get)(int) = (long (*)(int))(uintptr_t)symbol("mi_option_get");
    const long mark = 0x5a17e0b3;
    set(PURGE_DELAY, mark);
    overwrite_all((uintptr_t)mark, (uintptr_t)mark + 1);
    attack_end(get(PURGE_DELAY) == mark + 1);
  } else if (strcmp(how, "zero-size-write") == 0 || strcmp(how, "zero-size-read") == 0) {
    char* const p = attack_get(0);
    attack_announce(p);
    attack_expect_fault(p, p + 16);
    if (how[10] == 'w') {
      *(volatile char*)p = 1;
    } else {
      (void)*(volatile char*)p;
    }
    free(p);
    attack_end(true);
  } else if (strcmp(how, "zero-size-run") == 0) {
    char* const p = attack_get(0);
    attack_announce(p);
    attack_expect_fault(p, p + (16 << 20));
    for (int i = 0; i < 100; i++) attack_get(100000);
    for (size_t i = 0; i < (8 << 20); i++) *(volatile char*)(p + i) = 1;
    attack_end(true);
  }
  attack_usage(how);
}
