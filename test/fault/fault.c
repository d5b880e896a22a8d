// Owns: failures of the operating system at each call in turn: no crash, no lost or shared block, ENOMEM, and all is well afterwards.
// May include: test/fault/prim_wrap.h, test/lib, mimalloc.h.
// Called by: the fault targets; linked with the layers of a variant and -Wl,--wrap of the primitives.
// Invariants: each plan has a process of its own: the failures may hit its very first call. A failure must be allowed for only while the plan is on.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "mimalloc.h"
#include "test/fault/prim_wrap.h"
#include "test/lib/pace.h"

enum { SLOTS = 400 };

typedef struct slot_s {
  unsigned char* p;
  size_t n;
  uint64_t key;
} slot_t;

static bool may_fail(void) { return __atomic_load_n(&fault_mode, __ATOMIC_SEQ_CST) != FAULT_NONE; }

// Large blocks are checked at the ends.
static size_t seen(size_t n) { return n > 20000 ? 4096 : n; }

static void fill(slot_t* s, uint64_t key) {
  s->key = key;
  mi_test_fill(s->p, seen(s->n), key);
  if (s->n > 20000) s->p[s->n - 1] = (unsigned char)key;
}

static void verify(const slot_t* s) {
  MI_CHECK_MSG(mi_test_filled(s->p, seen(s->n), s->key), "block %p of %zu bytes was spoiled", (void*)s->p, s->n);
  if (s->n > 20000) MI_CHECK(s->p[s->n - 1] == (unsigned char)s->key);
}

static void check_refusal(const void* p, size_t n, const char* what) {
  if (p != NULL) return;
  MI_CHECK_MSG(may_fail(), "%s of %zu bytes is refused though nothing fails", what, n);
  MI_CHECK_MSG(errno == ENOMEM, "%s of %zu bytes is refused with errno %d", what, n, errno);
}

static size_t some_size(uint64_t r) {
  const size_t n = (size_t)(r >> 16);
  switch (r % 40) {
    // Few are as large as that: each OS page that is touched may cost a virtual machine 20 µs.
    case 0: return n % ((r >> 8) % 4 == 0 ? 12 << 20 : 2 << 20);
    case 1:
    case 2:
    case 3: return n % 900000;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: return n % 70000;
    default: return n % 1200;
  }
}

static void step(slot_t* slots, uint64_t* seed) {
  const uint64_t r = mi_test_random(seed);
  slot_t* s = &slots[(r >> 32) % SLOTS];
  const size_t n = some_size(mi_test_random(seed));
  errno = 0;
  if (s->p != NULL && r % 4 == 0) {
    verify(s);
    unsigned char* q = (unsigned char*)(r % 8 == 0 ? mi_realloc(s->p, n) : mi_realloc_aligned(s->p, n, 64));
    check_refusal(q, n, "realloc");
    if (q == NULL) {
      // The old block is untouched.
      verify(s);
      return;
    }
    const size_t kept = seen(s->n < n ? s->n : n) & ~(size_t)7;
    if (s->n <= 20000) MI_CHECK_MSG(mi_test_filled(q, kept < s->n ? kept : s->n & ~(size_t)7, s->key), "realloc from %zu to %zu lost bytes", s->n, n);
    s->p = q;
    s->n = n;
    fill(s, r);
    return;
  }
  if (s->p != NULL) {
    verify(s);
    mi_free(s->p);
    s->p = NULL;
  }
  unsigned char* p;
  switch ((r >> 8) % 6) {
    case 0:
      p = (unsigned char*)mi_calloc(1, n);
      if (p != NULL) {
        // Of the large ones some are read whole, the others at the beginning.
        const size_t read = (r >> 16) % 4 == 0 ? n : seen(n);
        MI_CHECK_MSG(mi_test_all_bytes(p, read, 0) && (n == 0 || (p[0] == 0 && p[n - 1] == 0)), "calloc of %zu bytes is not zero", n);
      }
      break;
    case 1: {
      const size_t align = (size_t)8 << (r >> 16) % 16;
      p = (unsigned char*)mi_malloc_aligned(n, align);
      MI_CHECK(((uintptr_t)p & (align - 1)) == 0);
      break;
    }
    case 2: {
      void* out = &slots[0];
      const int e = mi_posix_memalign(&out, 4096, n);
      MI_CHECK(e == 0 || (e == ENOMEM && out == &slots[0]));
      p = e == 0 ? (unsigned char*)out : NULL;
      errno = ENOMEM;
      break;
    }
    default: p = (unsigned char*)mi_malloc(n); break;
  }
  check_refusal(p, n, "malloc");
  if (p == NULL) return;
  MI_CHECK(mi_usable_size(p) >= n);
  s->p = p;
  s->n = n;
  fill(s, r);
}

static void steps(slot_t* slots, uint64_t seed, int count) {
  for (int i = 0; i < count; i++) step(slots, &seed);
}

static void clear(slot_t* slots) {
  for (int i = 0; i < SLOTS; i++) {
    if (slots[i].p == NULL) continue;
    verify(&slots[i]);
    mi_free(slots[i].p);
    slots[i].p = NULL;
  }
}

static int steps_of_a_thread;

static void* in_thread(void* arg) {
  slot_t* slots = (slot_t*)arg;
  steps(slots, (uintptr_t)slots, steps_of_a_thread);
  return NULL;
}

static slot_t main_slots[SLOTS], thread_slots[2][SLOTS];

// Everything that asks the system for something, with two threads that leave their blocks behind.
static void workload(uint64_t seed, int count) {
  steps(main_slots, seed, count);
  steps_of_a_thread = count / 4 * 3;
  pthread_t t[2];
  for (int i = 0; i < 2; i++) {
    const int e = pthread_create(&t[i], NULL, in_thread, thread_slots[i]);
    MI_REQUIRE(e == 0);
  }
  steps(main_slots, seed + 1, count / 2);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  mi_collect(seed % 2 == 0);
  // Blocks of ended threads are freed here.
  clear(thread_slots[0]);
  clear(thread_slots[1]);
  steps(main_slots, seed + 2, count / 2);
  mi_collect(true);
}

// One plan: under it, then without it, when all must work and all that was given must still be there.
static void under_plan(uint64_t seed) {
  workload(seed, 200);
  __atomic_store_n(&fault_mode, FAULT_NONE, __ATOMIC_SEQ_CST);
  for (int i = 0; i < SLOTS; i++) {
    if (main_slots[i].p != NULL) verify(&main_slots[i]);
  }
  workload(seed + 10, 100);
  clear(main_slots);
}

// ---- the plans. Each runs in a new process of this program, named in the environment.

static char* own_path;

static void run_plan(int mode, long first, const char* purge_delay, const char* eager) {
  char plan[64], delay[64], commit[64];
  snprintf(plan, sizeof(plan), "MI_FAULT=%d:%ld", mode, first);
  snprintf(delay, sizeof(delay), "MIMALLOC_PURGE_DELAY=%s", purge_delay);
  snprintf(commit, sizeof(commit), "MIMALLOC_ARENA_EAGER_COMMIT=%s", eager);
  // A refusal is expected here and needs no line.
  char quiet[] = "MIMALLOC_SHOW_ERRORS=0";
  char* env[] = {plan, delay, commit, quiet, NULL};
  char child[] = "--child";
  char* argv[] = {own_path, child, NULL};
  pid_t pid = 0;
  MI_REQUIRE(posix_spawn(&pid, own_path, NULL, NULL, argv, env) == 0);
  int status = 0;
  const uint64_t end = mi_test_now_ms() + 20000;
  pid_t got;
  while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
    if (mi_test_now_ms() > end) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      MI_CHECK_MSG(false, "%s, delay %s, eager %s: hung", plan, purge_delay, eager);
      return;
    }
    mi_test_sleep_ms(1);
  }
  MI_CHECK_MSG(got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, delay %s, eager %s: status 0x%x", plan, purge_delay, eager, (unsigned)status);
}

static void for_all_settings(int mode, long first) {
  run_plan(mode, first, "0", "0");
  run_plan(mode, first, "1000", "1");
}

static void many(int mode, long last) {
  for (long n = 1; n <= last && mi_test_failure_count() < 20; n++) for_all_settings(mode, n);
}

MI_TEST(each_call_in_turn) { many(FAULT_NTH, mi_test_scale("MI_TEST_FAULTS", 100)); }

MI_TEST(all_from_each_call_on) { many(FAULT_FROM, mi_test_scale("MI_TEST_FAULTS", 100)); }

MI_TEST(by_chance) {
  static const long odds[] = {2, 3, 5, 10, 30, 100};
  for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) for_all_settings(FAULT_RANDOM, odds[i]);
}

// The failures hit the workload only, the start of the process has gone well.
MI_TEST(after_a_good_start) {
  for (long n = 1; n <= 60; n++) {
    memset(main_slots, 0, sizeof(main_slots));
    fault_plan(n % 2 ? FAULT_NTH : FAULT_FROM, n);
    under_plan((uint64_t)n);
    if (mi_test_failure_count() > 0) return;
  }
}

// One kind of call fails always: memory of the others must do, or be refused.
MI_TEST(one_kind_always) {
  for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
    fault_kinds = 1U << kind;
    fault_plan(FAULT_FROM, 1);
    under_plan(kind + 500);
    MI_CHECK_MSG(mi_test_failure_count() == 0, "kind %u", kind);
    fault_kinds = ~0U;
  }
}

// Failures of what only saves memory are no reason to refuse any.
MI_TEST(helpers_are_not_needed) {
  fault_kinds = 1U << FAULT_PURGE | 1U << FAULT_RESET | 1U << FAULT_DECOMMIT | 1U << FAULT_PROTECT | 1U << FAULT_GROW | 1U << FAULT_MOVE | 1U << FAULT_ADVICE |
      1U << FAULT_RANDOM_BYTES;
  fault_plan(FAULT_FROM, 1);
  uint64_t seed = 9;
  for (int i = 0; i < 3000; i++) {
    const size_t n = some_size(mi_test_random(&seed));
    char* p = (char*)mi_malloc(n);
    char* q = (char*)mi_realloc(p, n * 2 + 1);
    MI_CHECK_MSG(p != NULL && q != NULL, "%zu bytes are refused", n);
    mi_free(q);
  }
  fault_plan(FAULT_NONE, 0);
  fault_kinds = ~0U;
}

// What failed is not lost for good: after many rounds of failures memory and mappings are where they were.
MI_TEST(nothing_leaks) {
  // A release that fails is a leak by its nature (the addresses stay mapped), unless it is tried again; it is left out here.
  fault_kinds = ~(1U << FAULT_RELEASE);
  size_t rss = 0, maps = 0, space = 0;
  const uint64_t deadline = mi_test_deadline();
  for (uint64_t round = 0; round < 60 || mi_test_goes_on((long)round, 120, deadline); round++) {
    fault_seed = round;
    fault_plan(FAULT_RANDOM, 4);
    workload(round * 100, 150);
    fault_plan(FAULT_NONE, 0);
    clear(main_slots);
    mi_collect(true);
    if (round == 20) rss = mi_test_rss(), maps = mi_test_mappings(), space = mi_test_address_space();
  }
  mi_collect(true);
  MI_CHECK_MSG(mi_test_rss() <= rss + (16 << 20), "RSS from %zu to %zu KiB", rss >> 10, mi_test_rss() >> 10);
  MI_CHECK_MSG(mi_test_mappings() <= maps + 40, "mappings from %zu to %zu", maps, mi_test_mappings());
  MI_CHECK_MSG(mi_test_address_space() <= space + ((size_t)1200 << 20), "address space from %zu to %zu MiB", space >> 20, mi_test_address_space() >> 20);
  fault_kinds = ~0U;
}

// The control: without it a plan that never hits anything would pass all of the above.
MI_TEST(plans_hit) {
  fault_plan(FAULT_FROM, 1);
  int refused = 0;
  for (int i = 0; i < 64; i++) {
    errno = 0;
    void* p = mi_malloc((size_t)200 << 20);
    if (p == NULL) {
      MI_CHECK_EQ(errno, ENOMEM);
      refused++;
    } else {
      main_slots[i].p = (unsigned char*)p;
    }
  }
  MI_CHECK_MSG(fault_hits > 0 && refused > 0, "%ld of %ld calls failed, %d blocks were refused", fault_hits, fault_calls, refused);
  fault_plan(FAULT_NONE, 0);
  for (int i = 0; i < 64; i++) {
    mi_free(main_slots[i].p);
    main_slots[i].p = NULL;
  }
}

int main(int argc, char** argv) {
  fault_read_plan();
  if (argc > 1 && strcmp(argv[1], "--child") == 0) {
    const char* plan = getenv("MI_FAULT");
    mi_test_current = plan == NULL ? "no plan" : plan;
    under_plan((uint64_t)fault_first + (uint64_t)fault_mode * 1000);
    return mi_test_status();
  }
  mi_option_set(mi_option_show_errors, 0);
  // argv[0] may be relative to a folder that a test has left.
  own_path = realpath("/proc/self/exe", NULL);
  MI_REQUIRE(own_path != NULL);
  return mi_test_main(argc, argv);
}
