// Owns: what the kernel itself says of the configuration and of metadata: read-only, and sealed.
// May include: test/lib, Linux headers.
// Called by: rows of test/death/rows.txt: sealed CASE; glibc's malloc, which seals nothing, is the control.
// Invariants: a kernel without mseal has no sealed memory of ours, and a program with it has some.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test/lib/test.h"

enum { AREAS = 64,
       MSEAL = 462 };

typedef struct area_s {
  uintptr_t start;
  uintptr_t end;
  bool writable;
  bool accessible;
} area_t;

static area_t areas[AREAS];
static size_t area_count;

// Whether the kernel has the call at all.
static bool kernel_seals(void) {
  void* const p = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  return syscall(MSEAL, p, 65536, 0) == 0;
}

// Sealed areas without a name: the kernel may seal some of its own, and those have one.
static void find(void) {
  char line[512];
  FILE* const f = fopen("/proc/self/smaps", "r");
  MI_REQUIRE(f != NULL);
  area_t area = {0, 0, false, false};
  bool anonymous = false;
  while (fgets(line, sizeof(line), f) != NULL) {
    unsigned long start, end;
    char perms[8], rest[300] = "";
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299s", &start, &end, perms, rest) >= 3) {
      area = (area_t){start, end, perms[1] == 'w', perms[0] == 'r'};
      anonymous = rest[0] == 0;
    } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " sl") != NULL && anonymous && area_count < AREAS) {
      areas[area_count++] = area;
    }
  }
  fclose(f);
}

static size_t count(bool writable, bool accessible) {
  size_t n = 0;
  for (size_t i = 0; i < area_count; i++) n += areas[i].writable == writable && areas[i].accessible == accessible;
  return n;
}

static void refuse_all(const area_t* a) {
  void* const p = (void*)a->start;
  const size_t size = a->end - a->start;
  MI_CHECK(mprotect(p, size, PROT_READ | PROT_WRITE) == -1 && errno == EPERM);
  MI_CHECK(munmap(p, size) == -1 && errno == EPERM);
  MI_CHECK(mmap(p, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EPERM);
  MI_CHECK(mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (char*)p + 2 * size) == MAP_FAILED);
}

static void check_life(void) {
  // All goes on in a child and after it.
  for (int i = 0; i < 1000; i++) free(malloc((size_t)i * 777));
}

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  mi_test_current = kind;
  free(malloc(100));
  const bool seals = kernel_seals();
  // The probe is one of them.
  find();
  const size_t own = area_count;
  if (strcmp(kind, "process") == 0) {
    if (!seals) {
      MI_CHECK_EQ(own, 0);
      return mi_test_status();
    }
    // What is fixed of the configuration, beside the probe; metadata; guards on both sides of it.
    MI_CHECK(count(false, true) >= 2);
    MI_CHECK(count(true, true) >= 3);
    MI_CHECK(count(false, false) >= 4);
    for (size_t i = 0; i < area_count; i++) refuse_all(&areas[i]);
    check_life();
    const pid_t pid = fork();
    MI_REQUIRE(pid >= 0);
    if (pid == 0) {
      check_life();
      for (size_t i = 0; i < area_count; i++) refuse_all(&areas[i]);
      _exit(mi_test_status());
    }
    int status = -1;
    waitpid(pid, &status, 0);
    MI_CHECK_EQ(status, 0);
  } else if (strcmp(kind, "none") == 0) {
    MI_CHECK_EQ(own, seals ? 1 : 0);
  } else {
    mi_test_say("unknown case %s", kind);
    return 2;
  }
  return mi_test_status();
}
