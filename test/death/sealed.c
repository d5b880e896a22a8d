// Owns: what the kernel itself says of the configuration and of metadata: read-only, and sealed.
// May include: test/lib, Linux headers.
// Called by: rows of test/death/rows.txt: sealed CASE; glibc's malloc, which seals nothing, and options are the control.
// Invariants: a kernel without mseal has no sealed memory of ours, and a program with it has some.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test/lib/test.h"

enum { AREAS = 256,
       MSEAL = 462 };

typedef struct area_s {
  uintptr_t start;
  uintptr_t end;
  bool writable;
  bool accessible;
} area_t;

static area_t areas[AREAS];
static size_t area_count;

// The mappings around a block: what is accessible without a gap, and whether inaccessible memory before and behind is sealed.
static uintptr_t block;
static bool block_before, block_behind;

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
  // Of the mapping before this one, and the inaccessible one that the run of accessible ones began behind.
  uintptr_t end_before = 0;
  bool run_guarded = false, guard_sealed = false, run_has_block = false;
  area_count = 0;
  block_before = block_behind = false;
  while (fgets(line, sizeof(line), f) != NULL) {
    unsigned long start, end;
    char perms[8], rest[300] = "";
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299s", &start, &end, perms, rest) >= 3) {
      end_before = area.end;
      area = (area_t){start, end, perms[1] == 'w', perms[0] == 'r'};
      anonymous = rest[0] == 0;
    } else if (strncmp(line, "VmFlags:", 8) == 0) {
      const bool sealed = strstr(line, " sl") != NULL;
      const bool joined = area.start == end_before;
      if (!area.accessible) {
        block_behind = block_behind || (run_has_block && joined && sealed);
        guard_sealed = sealed;
        run_has_block = false;
        run_guarded = false;
      } else {
        if (!joined) run_has_block = false;
        run_guarded = joined && (run_guarded || guard_sealed);
        guard_sealed = false;
        if (area.start <= block && block < area.end) {
          run_has_block = true;
          block_before = run_guarded;
        }
      }
      if (sealed && anonymous && area_count < AREAS) areas[area_count++] = area;
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

static void refuse_each(void) {
  for (size_t i = 0; i < area_count; i++) refuse_all(&areas[i]);
}

static void check_child(void) {
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    check_life();
    refuse_each();
    _exit(mi_test_status());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  MI_CHECK_EQ(status, 0);
}

// Blocks of a further arena: some 1.5 GiB of addresses, of which nothing is touched.
static void take_much(void) {
  enum { BLOCKS = 1500 };
  static void* blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) MI_REQUIRE((blocks[i] = malloc(1 << 20)) != NULL);
  block = (uintptr_t)blocks[BLOCKS - 1];
}

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  mi_test_current = kind;
  block = (uintptr_t)malloc(100);
  const bool seals = kernel_seals();
  // The probe is one of them.
  find();
  if (strcmp(kind, "none") == 0) {
    MI_CHECK_EQ(area_count, seals ? 1 : 0);
    return mi_test_status();
  }
  if (!seals) {
    MI_CHECK_EQ(area_count, 0);
    return mi_test_status();
  }
  // What is fixed of the configuration, beside the probe; metadata; guards on both sides of it, and of the first arena where that
  // is there when the process has started.
  const bool has_arena = strcmp(kind, "metadata") != 0;
  MI_CHECK(count(false, true) >= 2);
  MI_CHECK(count(true, true) >= (strcmp(kind, "process") == 0 ? 3 : 1));
  MI_CHECK(count(false, false) >= (strcmp(kind, "process") == 0 ? 6 : has_arena ? 4
                                                                                : 2));
  MI_CHECK(block_before == has_arena && block_behind == has_arena);
  const size_t at_start = area_count;
  take_much();
  find();
  if (strcmp(kind, "process") == 0 || strcmp(kind, "metadata") == 0) {
    // No further call was made: a sandbox may forbid it.
    MI_CHECK(!block_before && !block_behind);
    MI_CHECK_EQ(area_count, at_start);
  } else if (strcmp(kind, "later") == 0) {
    // Both sides of the further arena, its metadata and what guards that.
    MI_CHECK(block_before && block_behind);
    MI_CHECK_MSG(area_count >= at_start + 3, "%zu sealed areas, and %zu at the start", area_count, at_start);
  } else {
    mi_test_say("unknown case %s", kind);
    return 2;
  }
  refuse_each();
  check_life();
  check_child();
  return mi_test_status();
}
