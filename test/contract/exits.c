// Owns: what is left of the allocator's memory when the process ends: option destroy_on_exit gives all back after the last destructor.
// May include: test/lib, Linux.
// Called by: rows of test/contract/rows.txt: exits gone|kept, with MIMALLOC_DESTROY_ON_EXIT=1 or 0.
// Invariants: the child's mappings are read when it has done everything but end, where ptrace stops it.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "test/lib/test.h"

enum { BLOCKS = 6 };
static void* blocks[BLOCKS];
static bool is_child;

// Constructed first, destructed last, as far as a program can be: after everything of its own.
__attribute__((destructor(101))) static void last(void) {
  if (!is_child) return;
  for (size_t i = 0; i < BLOCKS; i++) {
    // Still there, and still an allocator.
    MI_CHECK(mi_test_filled(blocks[i], 100, i));
    void* p = malloc((size_t)100 << (2 * i));
    MI_CHECK(p != NULL);
    free(p);
    if (i % 2 == 0) free(blocks[i]);
  }
  if (mi_test_failure_count() > 0) _exit(1);
}

static int child(void) {
  is_child = true;
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc((size_t)100 << (3 * i));
    MI_REQUIRE(blocks[i] != NULL);
    mi_test_fill(blocks[i], 100, i);
  }
  MI_REQUIRE(write(3, blocks, sizeof(blocks)) == (ssize_t)sizeof(blocks));
  return 0;
}

static bool is_mapped(pid_t pid, uintptr_t address) {
  char path[64], line[512];
  snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
  FILE* f = fopen(path, "r");
  MI_REQUIRE(f != NULL);
  bool found = false;
  while (!found && fgets(line, sizeof(line), f) != NULL) {
    unsigned long long from = 0, to = 0;
    found = sscanf(line, "%llx-%llx", &from, &to) == 2 && address >= from && address < to;
  }
  fclose(f);
  return found;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "child") == 0) return child();
  if (argc != 2) {
    mi_test_say("usage: exits gone|kept");
    return 2;
  }
  const bool gone = strcmp(argv[1], "gone") == 0;
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(fds[1], 3);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execl("/proc/self/exe", argv[0], "child", (char*)NULL);
    _exit(9);
  }
  int status = 0;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid);
  if (!WIFSTOPPED(status)) {
    MI_TEST_SKIP("a process cannot be traced here");
    return mi_test_status();
  }
  MI_REQUIRE(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void*)(uintptr_t)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)) == 0);
  uintptr_t seen[BLOCKS] = {0};
  bool stopped = false;
  for (;;) {
    MI_REQUIRE(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
    MI_REQUIRE(waitpid(pid, &status, 0) == pid);
    if (!WIFSTOPPED(status)) break;
    if (status >> 8 != (SIGTRAP | (PTRACE_EVENT_EXIT << 8))) continue;
    stopped = true;
    MI_REQUIRE(read(fds[0], seen, sizeof(seen)) == (ssize_t)sizeof(seen));
    for (size_t i = 0; i < BLOCKS; i++) {
      // What the program had freed may be gone in any case.
      if (gone || i % 2 != 0) MI_CHECK_MSG(is_mapped(pid, seen[i]) == !gone, "block %zu at %p", i, (void*)seen[i]);
    }
  }
  MI_CHECK(stopped);
  MI_CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x", (unsigned)status);
  return mi_test_status();
}
