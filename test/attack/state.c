// Owns: attacks by one write to what the allocator itself keeps: options, registered functions; and by zero-size blocks.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: state HOW.
// Invariants: the attacker is generous to themselves: they find the place by looking through all writable memory of the process.
// Flags: -pthread -fno-builtin -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <fcntl.h>

#include "test/attack/attack.h"

enum { PURGE_DELAY = 15,  // number of an option that takes any value
       FOUND_MAX = 64 };

static uintptr_t* found[FOUND_MAX];
static size_t found_count;

static void rightful(int err, void* arg) {
  (void)err;
  (void)arg;
}

static void evil(int err, void* arg) {
  (void)err;
  (void)arg;
  attack_end(true);
}

// Finds a word in readable memory outside the program's own image and stack.
static void find(uintptr_t word) {
  static struct {
    uintptr_t lo, hi;
  } range[512];
  size_t count = 0;
  static char line[1024];
  FILE* const f = fopen("/proc/self/maps", "r");
  MI_REQUIRE(f != NULL);
  while (count < 512 && fgets(line, sizeof(line), f) != NULL) {
    unsigned long lo, hi;
    char mode[8];
    if (sscanf(line, "%lx-%lx %7s", &lo, &hi, mode) != 3 || mode[0] != 'r' || mode[3] != 'p' || strstr(line, "[") != NULL) continue;
    if (lo <= (uintptr_t)&found && hi > (uintptr_t)&found) continue;
    if (lo <= (uintptr_t)&rightful && hi > (uintptr_t)&rightful) continue;
    range[count].lo = lo;
    range[count++].hi = hi;
  }
  fclose(f);
  for (size_t i = 0; i < count; i++) {
    for (uintptr_t at = range[i].lo; at < range[i].hi; at += 4096) {
      unsigned char there = 1;
      // What was never touched holds nothing, and much is reserved.
      if (mincore((void*)at, 4096, &there) != 0 || (there & 1) == 0) continue;
      static uintptr_t words[512];
      const int fd = open("/proc/self/mem", O_RDONLY);
      const ssize_t n = pread(fd, words, sizeof(words), (off_t)at);
      close(fd);
      for (size_t k = 0; n == (ssize_t)sizeof(words) && k < 512; k++) {
        if (words[k] == word && found_count < FOUND_MAX) found[found_count++] = (uintptr_t*)at + k;
      }
    }
  }
}

static void overwrite_all(uintptr_t word) {
  MI_REQUIRE(found_count > 0);
  for (size_t i = 0; i < found_count; i++) {
    attack_expect_fault(found[i], found[i] + 1);
    attack_word_write(found[i], word);
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
    find((uintptr_t)&rightful);
    overwrite_all((uintptr_t)&evil);
    free(attack_announce(stack_bytes + 16));
    attack_end(false);
  } else if (strcmp(how, "option") == 0) {
    void (*const set)(int, long) = (void (*)(int, long))(uintptr_t)symbol("mi_option_set");
    long (*const get)(int) = (long (*)(int))(uintptr_t)symbol("mi_option_get");
    const long mark = 0x5a17e0b3;
    set(PURGE_DELAY, mark);
    find((uintptr_t)mark);
    overwrite_all((uintptr_t)mark + 1);
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
