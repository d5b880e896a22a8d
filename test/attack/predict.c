// Owns: attacks by prediction: where the next block lies, in this run, in the next one, in another child of a server.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: predict HOW SIZE tries=N most=K. It runs itself anew with `show`.
// Invariants: the goal is to be right more often than `most` of the tries; tries are independent.
// Flags: -pthread -fno-builtin
#define _GNU_SOURCE 1
#include <sys/personality.h>

#include "test/attack/attack.h"

static const char* self;
static size_t size;

static void* alloc_in_thread(void* unused) {
  (void)unused;
  return attack_get(size);
}

// One number that says where things are, of a run of its own.
static uintptr_t look(const char* what) {
  char* const p = attack_get(size);
  if (strcmp(what, "absolute") == 0) return (uintptr_t)p;
  if (strcmp(what, "to-library") == 0) return (uintptr_t)p - (uintptr_t)&mmap;
  if (strcmp(what, "to-other-class") == 0) return (uintptr_t)p - (uintptr_t)attack_get(size * 5 + 64);
  if (strcmp(what, "to-large") == 0) return (uintptr_t)p - (uintptr_t)attack_get((size_t)3 << 20);
  if (strcmp(what, "to-huge") == 0) return (uintptr_t)p - (uintptr_t)attack_get((size_t)80 << 20);
  if (strcmp(what, "to-other-thread") == 0) return (uintptr_t)p - (uintptr_t)attack_run_thread(alloc_in_thread, NULL);
  if (strcmp(what, "to-metadata") == 0) {
    // Where the allocator keeps the address of the unit of 64 KiB that the block lies in.
    uintptr_t found[1] = {0};
    // What is not found cannot be predicted either; release shows that it is found.
    if (attack_find((uintptr_t)p & ~(uintptr_t)0xffff, found, 1) == 0) return (uintptr_t)getpid();
    return (uintptr_t)p - found[0];
  }
  if (strcmp(what, "order") == 0) {
    // Where the next 12 lie, seen from the first.
    uintptr_t mixed = 0;
    for (int i = 0; i < 12; i++) mixed = mixed * 31 + (uintptr_t)attack_get(size) - (uintptr_t)p;
    return mixed;
  }
  if (strcmp(what, "link") == 0) {
    // What stands in a freed block, as a bug that reads after free would show it.
    char* const q = attack_get(size);
    free(p);
    free(q);
    const uintptr_t word = attack_word_read(mi_test_hide(q));
    // Where freed memory is cleared and the block waits, there is no link yet, and nothing of one is learned.
    return word != 0 ? word : (uintptr_t)getpid();
  }
  attack_usage(what);
}

// The number as seen by a new process or, for a server that forks, by a child of this one.
static uintptr_t ask(const char* what, bool forked, bool fixed) {
  int fds[2];
  uintptr_t answer = 0;
  MI_REQUIRE(pipe(fds) == 0);
  const pid_t pid = fork();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    if (forked) {
      answer = look(what);
      mi_test_write(fds[1], (const char*)&answer, sizeof(answer));
      _exit(0);
    }
    char number[32];
    char out[16];
    snprintf(number, sizeof(number), "%zu", size);
    snprintf(out, sizeof(out), "%d", fds[1]);
    if (fixed) personality(ADDR_NO_RANDOMIZE);
    execl(self, self, "show", what, number, out, (char*)NULL);
    _exit(2);
  }
  close(fds[1]);
  MI_REQUIRE(read(fds[0], &answer, sizeof(answer)) == (ssize_t)sizeof(answer));
  close(fds[0]);
  waitpid(pid, NULL, 0);
  return answer;
}

static void compare(const char* what, bool forked, bool fixed, long tries, long most) {
  long hits = 0;
  const uintptr_t first = ask(what, forked, fixed);
  for (long i = 0; i < tries; i++) hits += ask(what, forked, fixed) == first;
  attack_end_rate(hits, tries, most);
}

// The victim is made right after the buffer that overflows: does it lie right behind?
static void neighbour(long tries, long most) {
  static attack_row_t row;
  attack_row_full(&row, size);
  long hits = 0;
  for (long i = 0; i < tries; i++) {
    char* const buffer = attack_get(size);
    char* const victim = attack_get(size);
    hits += victim > buffer && (size_t)(victim - buffer) == row.stride;
  }
  attack_end_rate(hits, tries, most);
}

// Holes are made in a known order: are they filled in that order, or the reverse?
static void holes(long tries, long most) {
  enum { N = 6 };
  long hits = 0;
  for (long i = 0; i < tries; i++) {
    char* p[N];
    char* q[N];
    char* between[N];
    for (int k = 0; k < N; k++) {
      p[k] = attack_get(size);
      between[k] = attack_get(size);
    }
    for (int k = 0; k < N; k++) free(p[k]);
    int last_first = 0, first_first = 0;
    for (int k = 0; k < N; k++) {
      q[k] = attack_get(size);
      last_first += q[k] == mi_test_hide(p[N - 1 - k]);
      first_first += q[k] == mi_test_hide(p[k]);
    }
    // Half of them right is enough.
    hits += last_first >= N / 2 || first_first >= N / 2;
    for (int k = 0; k < N; k++) free(between[k]);
    for (int k = 0; k < N; k++) free(q[k]);
  }
  attack_end_rate(hits, tries, most);
}

// A large block starts where a unit of the allocator starts, so that one address tells others.
static void offset(long tries, long most) {
  long hits = 0;
  char* const first = attack_get(size);
  for (long i = 0; i < tries; i++) hits += (((uintptr_t)attack_get(size) ^ (uintptr_t)first) & 0xffff) == 0;
  attack_end_rate(hits, tries, most);
}

int main(int argc, char** argv) {
  self = "/proc/self/exe";
  if (argc > 4 && strcmp(argv[1], "show") == 0) {
    size = (size_t)strtoull(argv[3], NULL, 10);
    const uintptr_t answer = look(argv[2]);
    mi_test_write((int)strtol(argv[4], NULL, 10), (const char*)&answer, sizeof(answer));
    return 0;
  }
  if (argc < 4) attack_usage("");
  const char* const how = argv[1];
  size = (size_t)strtoull(argv[3], NULL, 10);
  const long tries = attack_number(argc, argv, "tries", 1), most = attack_number(argc, argv, "most", 0);
  // A server that has used the class before it forks.
  if (attack_number(argc, argv, "warm", 0) != 0) free(attack_get(size));
  if (strcmp(how, "runs") == 0) compare(argv[2], false, false, tries, most);
  if (strcmp(how, "fixed-runs") == 0) compare(argv[2], false, true, tries, most);
  if (strcmp(how, "children") == 0) compare(argv[2], true, false, tries, most);
  if (strcmp(how, "here") == 0 && strcmp(argv[2], "neighbour") == 0) neighbour(tries, most);
  if (strcmp(how, "here") == 0 && strcmp(argv[2], "holes") == 0) holes(tries, most);
  if (strcmp(how, "here") == 0 && strcmp(argv[2], "offset") == 0) offset(tries, most);
  attack_usage(how);
}
