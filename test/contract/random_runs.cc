// Owns: two runs of the same program get different addresses and orders, from the first block of a static constructor on.
// May include: test/lib, the C and C++ libraries, POSIX.
// Called by: rows of test/contract/rows.txt.
// Invariants: runs itself with the system's own randomisation off, so that what differs is the allocator's.
// Flags: -fno-builtin
#include <sys/personality.h>
#include <sys/wait.h>

#include "test/lib/test.h"

enum { BLOCKS = 32,
       CLASSES = 8,
       RUNS = 48 };

// What a run saw, as addresses: each is the first of its kind in the process.
struct Seen {
  uintptr_t order[BLOCKS];   // blocks of one class, in the order in which they came
  uintptr_t pages[CLASSES];  // the pages of classes that follow
  uintptr_t large;
  uintptr_t child;  // in a forked child
};

static Seen seen;

// Before main, and before any other constructor of this program.
struct First {
  First() {
    for (int i = 0; i < BLOCKS; i++) seen.order[i] = (uintptr_t)::operator new(100);
  }
};

__attribute__((init_priority(102))) static First first;

static void write_all(int fd, const void* bytes, size_t n) { MI_REQUIRE(write(fd, bytes, n) == (ssize_t)n); }

static int look() {
  for (size_t i = 0; i < CLASSES; i++) {
    void* p = malloc(2000 + 1000 * i);
    MI_REQUIRE(p != NULL);
    seen.pages[i] = (uintptr_t)p & ~(uintptr_t)0xffff;
  }
  seen.large = (uintptr_t)malloc(600000);
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    const uintptr_t p = (uintptr_t)malloc(7000);
    write_all(fds[1], &p, sizeof(p));
    _exit(0);
  }
  MI_REQUIRE(read(fds[0], &seen.child, sizeof(seen.child)) == (ssize_t)sizeof(seen.child));
  int status = 1;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
  write_all(1, &seen, sizeof(seen));
  return 0;
}

static void run(const char* program, Seen* result) {
  int fds[2];
  MI_REQUIRE(pipe(fds) == 0);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    MI_REQUIRE(dup2(fds[1], 1) == 1);
    MI_REQUIRE(personality(ADDR_NO_RANDOMIZE) >= 0);
    execl(program, program, "look", (char*)NULL);
    _exit(127);
  }
  close(fds[1]);
  MI_REQUIRE(read(fds[0], result, sizeof(*result)) == (ssize_t)sizeof(*result));
  close(fds[0]);
  int status = 1;
  MI_REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
}

static Seen runs[RUNS];

// How many different values a figure of the runs has.
static int distinct(uintptr_t (*figure)(const Seen&)) {
  int count = 0;
  for (int i = 0; i < RUNS; i++) {
    bool is_new = true;
    for (int j = 0; j < i; j++) is_new = is_new && figure(runs[i]) != figure(runs[j]);
    count += is_new;
  }
  return count;
}

static uintptr_t arena_base(const Seen& s) { return s.order[0] >> 25; }
static uintptr_t first_slice(const Seen& s) { return (s.order[0] >> 16) & 511; }
static uintptr_t first_in_page(const Seen& s) { return s.order[0] & 0xffff; }
static uintptr_t second_page(const Seen& s) { return s.pages[1] - s.pages[0]; }
static uintptr_t large_block(const Seen& s) { return s.large - s.pages[0]; }
static uintptr_t in_child(const Seen& s) { return s.child - s.pages[0]; }
static uintptr_t order(const Seen& s) {
  uintptr_t hash = 0;
  for (int i = 1; i < BLOCKS; i++) hash = hash * 31 + ((s.order[i] - s.order[0]) & 0xffff);
  return hash;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "look") == 0) return look();
  mi_test_current = "random runs";
  for (int i = 0; i < RUNS; i++) run(argv[0], &runs[i]);
  const struct {
    const char* name;
    uintptr_t (*figure)(const Seen&);
    int least;
  } figures[] = {
      // Of 2^20 and more none comes twice in 48 runs, but for chance.
      {"arena base", &arena_base, RUNS - 2},
      {"order of blocks", &order, RUNS - 2},
      // 128 places and a window of 64; 585 places; then the window alone.
      {"first slice", &first_slice, RUNS / 2},
      {"first block in its page", &first_in_page, RUNS - 14},
      {"second page", &second_page, RUNS / 3},
      {"large block", &large_block, RUNS / 3},
      {"page made by a child", &in_child, RUNS / 3},
  };
  for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
    const int n = distinct(figures[i].figure);
    MI_CHECK_MSG(n >= figures[i].least, "%s: %d different in %d runs, not %d", figures[i].name, n, RUNS, figures[i].least);
  }
  int neighbours = 0;
  for (int r = 0; r < RUNS; r++) {
    for (int i = 1; i < BLOCKS; i++) neighbours += runs[r].order[i] - runs[r].order[i - 1] == 112;
  }
  MI_CHECK_MSG(neighbours < RUNS * BLOCKS / 8, "%d of %d blocks lie behind the one before", neighbours, RUNS * BLOCKS);
  return mi_test_status();
}
