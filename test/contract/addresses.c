// Owns: two runs of one program give different addresses.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt.
// Invariants: the runs are this program itself, under the same preload.
// Flags: -fno-builtin
#define _GNU_SOURCE 1
#include <sys/personality.h>
#include <sys/wait.h>

#include "test/lib/test.h"

static const size_t sizes[] = {16, 100, 1000, 5000, 40000, 300000, 3 << 20, 80 << 20};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]),
       RUNS = 5 };

static int run(void) {
  uintptr_t at[SIZES];
  for (size_t i = 0; i < SIZES; i++) at[i] = (uintptr_t)malloc(sizes[i]);
  return write(1, at, sizeof(at)) == (ssize_t)sizeof(at) ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "run") == 0) return run();
  if ((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) {
    MI_TEST_SKIP("the system's own randomization is off for this process");
    return mi_test_status();
  }
  static uintptr_t at[RUNS][SIZES];
  for (size_t k = 0; k < RUNS; k++) {
    int fds[2];
    MI_REQUIRE(pipe(fds) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(fds[1], 1);
      execl("/proc/self/exe", argv[0], "run", (char*)NULL);
      _exit(9);
    }
    MI_REQUIRE(pid > 0);
    int status = 0;
    MI_REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
    MI_REQUIRE(read(fds[0], at[k], sizeof(at[k])) == (ssize_t)sizeof(at[k]));
    close(fds[0]);
    close(fds[1]);
  }
  for (size_t i = 0; i < SIZES; i++) {
    // All of a few runs alike by chance: one in 2 to the power of 4 times the bits of randomness.
    size_t alike = 0;
    for (size_t k = 1; k < RUNS; k++) alike += at[k][i] == at[0][i];
    MI_CHECK_MSG(alike < RUNS - 1, "blocks of %zu bytes are at %p in every run", sizes[i], (void*)at[0][i]);
  }
  return mi_test_status();
}
