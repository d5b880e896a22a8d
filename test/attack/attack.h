// Owns: what the programs of attacks share: saying whether the goal was reached, taking blocks and looking at where they lie, faults.
// May include: test/lib, POSIX.
// Called by: every program of test/attack.
// Invariants: an attack that runs to its end says `attack: succeeded` or `attack: failed` once and ends with 20 or 10; a program
//   that is used wrongly ends with 2. Which it was is decided by the program alone, and does not depend on the allocator.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test/lib/test.h"

// The program that tests checked copies calls them.
#ifndef ATTACK_BY_COPIES
#include "test/lib/plain.h"
#endif

enum { ATTACK_FAILED = 10,
       ATTACK_SUCCEEDED = 20,
       ATTACK_TAKEN_MAX = 4096 };

// Ends the attack. `tries` of 0: one try, which `hits` tells about; else the goal is to be lucky more than `most` times.
__attribute__((noreturn)) static MI_TEST_UNUSED void attack_end_rate(long hits, long tries, long most) {
  char line[128];
  const bool reached = hits > most;
  int n;
  if (tries == 0) {
    n = snprintf(line, sizeof(line), "attack: %s\n", reached ? "succeeded" : "failed");
  } else {
    n = snprintf(line, sizeof(line), "attack: %s: %ld of %ld, more than %ld were wanted\n", reached ? "succeeded" : "failed", hits, tries, most);
  }
  mi_test_write(1, line, (size_t)n);
  _exit(reached ? ATTACK_SUCCEEDED : ATTACK_FAILED);
}

__attribute__((noreturn)) static MI_TEST_UNUSED void attack_end(bool reached) { attack_end_rate(reached ? 1 : 0, 0, 0); }

__attribute__((noreturn)) static MI_TEST_UNUSED void attack_usage(const char* what) {
  mi_test_say("no such attack: %s", what);
  _exit(2);
}

// A number given as `name=123` among the arguments, or what it is without.
static MI_TEST_UNUSED long attack_number(int argc, char** argv, const char* name, long otherwise) {
  const size_t len = strlen(name);
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=') return strtol(argv[i] + len + 1, NULL, 10);
  }
  return otherwise;
}

// Says which address is misused; the runner looks for it in the report.
static MI_TEST_UNUSED void* attack_announce(const volatile void* p) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)p);
  mi_test_write(1, line, (size_t)n);
  return mi_test_hide(p);
}

static MI_TEST_UNUSED char* attack_get(size_t n) {
  void* p = malloc(mi_test_hide_size(n));
  MI_REQUIRE(p != NULL);
  return (char*)mi_test_hide(p);
}

static MI_TEST_UNUSED void* attack_free_in_thread(void* p) {
  free(p);
  return NULL;
}

static MI_TEST_UNUSED void* attack_run_thread(void* (*run)(void*), void* arg) {
  pthread_t thread;
  void* result = NULL;
  MI_REQUIRE(pthread_create(&thread, NULL, run, arg) == 0);
  MI_REQUIRE(pthread_join(thread, &result) == 0);
  return result;
}

static MI_TEST_UNUSED void attack_word_write(void* at, uintptr_t word) { memcpy(mi_test_hide(at), &word, sizeof(word)); }

static MI_TEST_UNUSED uintptr_t attack_word_read(const void* at) {
  uintptr_t word;
  memcpy(&word, mi_test_hide(at), sizeof(word));
  return word;
}

// Faults

static MI_TEST_UNUSED uintptr_t attack_fault_lo, attack_fault_hi;

static MI_TEST_UNUSED void attack_on_fault(int sig, siginfo_t* info, void* context) {
  (void)context;
  const uintptr_t at = (uintptr_t)info->si_addr;
  const bool expected = at >= attack_fault_lo && at < attack_fault_hi;
  mi_test_say("attack: %s at %p", expected ? "stopped by inaccessible memory" : "crashed", info->si_addr);
  signal(sig, SIG_DFL);
}

// A fault between lo and hi is said to be what stopped the attack; every other one is a crash.
static MI_TEST_UNUSED void attack_expect_fault(const void* lo, const void* hi) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = attack_on_fault;
  action.sa_flags = SA_SIGINFO;
  attack_fault_lo = (uintptr_t)lo;
  attack_fault_hi = (uintptr_t)hi;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}

// Blocks taken

static MI_TEST_UNUSED struct {
  char* block[ATTACK_TAKEN_MAX];
  size_t count;
  size_t size;
  uintptr_t lo, hi;  // of what must not be handed out
  bool hit;          // something of it was
} attack_taken;

static MI_TEST_UNUSED int attack_compare(const void* a, const void* b) {
  const uintptr_t x = *(const uintptr_t*)a, y = *(const uintptr_t*)b;
  return x < y ? -1 : x > y;
}

// Whether two of `count` blocks of `size` bytes share a byte.
static MI_TEST_UNUSED bool attack_overlap(char* const* block, size_t count, size_t size) {
  static uintptr_t sorted[ATTACK_TAKEN_MAX];
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    if (block[i] != NULL) sorted[n++] = (uintptr_t)block[i];
  }
  qsort(sorted, n, sizeof(sorted[0]), attack_compare);
  for (size_t i = 0; i + 1 < n; i++) {
    if (sorted[i + 1] - sorted[i] < size) return true;
  }
  return false;
}

static MI_TEST_UNUSED char* attack_take_one(void) {
  char* p = attack_get(attack_taken.size);
  attack_taken.hit = attack_taken.hit || ((uintptr_t)p < attack_taken.hi && (uintptr_t)p + attack_taken.size > attack_taken.lo);
  return p;
}

// Takes what there is of a size, and then goes on to free and take blocks of it, so that a freed block comes back however long
// it is held back. True when malloc gave out something of lo..hi, or two blocks that overlap.
static MI_TEST_UNUSED bool attack_take(size_t size, const void* lo, const void* hi) {
  uint64_t seed = 1;
  attack_taken.size = size;
  attack_taken.lo = (uintptr_t)lo;
  attack_taken.hi = (uintptr_t)hi;
  const size_t fit = ((size_t)96 << 20) / (size + 1);
  size_t wanted = ATTACK_TAKEN_MAX - attack_taken.count;
  if (wanted > fit) wanted = fit;
  if (wanted < 4) wanted = 4;
  for (size_t i = 0; i < wanted && !attack_taken.hit; i++) attack_taken.block[attack_taken.count++] = attack_take_one();
  bool overlap = attack_overlap(attack_taken.block, attack_taken.count, size);
  for (size_t i = 0; i < 4 * wanted && !attack_taken.hit && !overlap; i++) {
    const size_t k = (size_t)(mi_test_random(&seed) % attack_taken.count);
    free(attack_taken.block[k]);
    attack_taken.block[k] = attack_take_one();
    if (i % wanted == wanted - 1) overlap = attack_overlap(attack_taken.block, attack_taken.count, size);
  }
  return attack_taken.hit || overlap;
}

// Blocks beside each other

enum { ATTACK_ROW_MAX = 8192 };

typedef struct attack_row_s {
  char* block[ATTACK_ROW_MAX];  // in the order of their addresses
  size_t count;
  size_t stride;  // smallest distance of two
} attack_row_t;

static MI_TEST_UNUSED void attack_row(attack_row_t* row, size_t size, size_t count) {
  for (size_t i = 0; i < count; i++) row->block[i] = attack_get(size);
  qsort(row->block, count, sizeof(row->block[0]), attack_compare);
  row->count = count;
  row->stride = SIZE_MAX;
  for (size_t i = 0; i + 1 < count; i++) {
    const size_t d = (size_t)(row->block[i + 1] - row->block[i]);
    if (d < row->stride) row->stride = d;
  }
}

// So many that pages are filled and blocks have neighbours, in whatever order a page hands them out.
static MI_TEST_UNUSED void attack_row_full(attack_row_t* row, size_t size) {
  const size_t wanted = 64 + ((size_t)3 << 16) / (size < 16 ? 16 : size);
  attack_row(row, size, wanted < ATTACK_ROW_MAX ? wanted : (size_t)ATTACK_ROW_MAX);
}

// The first of `run` blocks that follow each other without a gap.
static MI_TEST_UNUSED size_t attack_neighbours(const attack_row_t* row, size_t run) {
  for (size_t i = 1; i + run < row->count; i++) {
    size_t k = 1;
    while (k < run && (size_t)(row->block[i + k] - row->block[i + k - 1]) == row->stride) k++;
    if (k == run) return i;
  }
  mi_test_say("no %zu blocks stand beside each other", run);
  _exit(2);
}

// Looks through all memory

// The places of a word in writable memory, but for the program's own data and its stack. Of memory that was never touched
// nothing is read; reading is done by the kernel, so that nothing faults.
static MI_TEST_UNUSED size_t attack_find(uintptr_t word, uintptr_t* found, size_t max) {
  enum { OS_PAGE = 4096,
         AT_ONCE = 1024 };
  static struct {
    uintptr_t lo, hi;
  } range[512];
  static char line[1024];
  static unsigned char there[AT_ONCE];
  static uintptr_t words[OS_PAGE / sizeof(uintptr_t)];
  size_t ranges = 0, count = 0;
  FILE* const f = fopen("/proc/self/maps", "r");
  MI_REQUIRE(f != NULL);
  while (ranges < 512 && fgets(line, sizeof(line), f) != NULL) {
    unsigned long lo, hi;
    char mode[8];
    if (sscanf(line, "%lx-%lx %7s", &lo, &hi, mode) != 3 || mode[0] != 'r' || mode[3] != 'p' || strchr(line, '[') != NULL) continue;
    const uintptr_t own = (uintptr_t)&attack_fault_lo, code = (uintptr_t)&attack_on_fault;
    if ((lo <= own && hi > own) || (lo <= code && hi > code)) continue;
    range[ranges].lo = lo;
    range[ranges++].hi = hi;
  }
  fclose(f);
  const int fd = open("/proc/self/mem", O_RDONLY);
  MI_REQUIRE(fd >= 0);
  for (size_t i = 0; i < ranges; i++) {
    for (uintptr_t at = range[i].lo; at < range[i].hi && count < max; at += OS_PAGE) {
      const size_t k = (at - range[i].lo) / OS_PAGE % AT_ONCE;
      if (k == 0) {
        const size_t left = range[i].hi - at;
        memset(there, 0, sizeof(there));
        mincore((void*)at, left < sizeof(there) * OS_PAGE ? left : sizeof(there) * OS_PAGE, there);
      }
      if ((there[k] & 1) == 0 || pread(fd, words, sizeof(words), (off_t)at) != (ssize_t)sizeof(words)) continue;
      for (size_t n = 0; n < sizeof(words) / sizeof(words[0]) && count < max; n++) {
        if (words[n] == word) found[count++] = at + n * sizeof(uintptr_t);
      }
    }
  }
  close(fd);
  return count;
}
