// Owns: tests of sys/random: seeding, independence of contexts, and children that must not repeat their parent.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: children are made both with and without fork handlers.
#include "src/sys/random.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "src/sys/os.h"
#include "test/lib/child.h"
#include "test/lib/test.h"

enum { DRAWS = 64,
       CONTEXTS = 4 };

static bool mi_random_test_distinct(const uint64_t* words, size_t n) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) {
      if (words[i] == words[k]) {
        return false;
      }
    }
  }
  return true;
}

MI_TEST(zeroed_context) {
  static mi_random_t random;
  uint64_t words[DRAWS];
  errno = 12345;
  for (size_t i = 0; i < DRAWS; i++) {
    words[i] = _mi_random_next(&random);
  }
  MI_CHECK_EQ(errno, 12345);
  MI_CHECK(mi_random_test_distinct(words, DRAWS));
  MI_CHECK(random.generation != 0 && random.generation == _mi_random_generation());
}

MI_TEST(independent) {
  mi_random_t r[CONTEXTS];
  memset(r, 0x5a, sizeof(r));
  uint64_t words[CONTEXTS * DRAWS];
  _mi_random_init(&r[0]);
  _mi_random_init(&r[1]);
  _mi_random_split(&r[0], &r[2]);
  _mi_random_split(NULL, &r[3]);
  for (size_t i = 0; i < CONTEXTS * DRAWS; i++) {
    words[i] = _mi_random_next(&r[i % CONTEXTS]);
  }
  MI_CHECK(mi_random_test_distinct(words, CONTEXTS * DRAWS));
}

MI_TEST(balance) {
  mi_random_t random;
  enum { ROUNDS = 20000 };
  int ones[64] = {0};
  _mi_random_init(&random);
  for (int i = 0; i < ROUNDS; i++) {
    const uint64_t word = _mi_random_next(&random);
    for (int bit = 0; bit < 64; bit++) {
      ones[bit] += (int)(word >> bit & 1);
    }
  }
  // Ten standard deviations: a false alarm is no matter of luck.
  for (int bit = 0; bit < 64; bit++) {
    MI_CHECK_MSG(ones[bit] > ROUNDS / 2 - 708 && ones[bit] < ROUNDS / 2 + 708, "bit %d: %d", bit, ones[bit]);
  }
}

MI_TEST(below) {
  mi_random_t random;
  _mi_random_init(&random);
  bool seen[7] = {false};
  for (int i = 0; i < 1000; i++) {
    const size_t n = _mi_random_below(&random, 7);
    if (MI_CHECK(n < 7)) {
      seen[n] = true;
    }
    MI_CHECK_EQ(_mi_random_below(&random, 1), 0);
  }
  for (size_t i = 0; i < 7; i++) {
    MI_CHECK(seen[i]);
  }
}

// Nothing of what was handed out or became a key is left in the context.
MI_TEST(erased) {
  mi_random_t random;
  _mi_random_init(&random);
  for (int i = 0; i < 30; i++) {
    const uint64_t word = _mi_random_next(&random);
    for (size_t k = 0; k < MI_RANDOM_POOL; k++) {
      MI_CHECK(random.pool[k] != word);
      MI_CHECK(k < MI_RANDOM_KEY + random.left || random.pool[k] == 0);
    }
    MI_CHECK_EQ(random.pool[0], 0);
    MI_CHECK_EQ(random.pool[MI_RANDOM_KEY - 1], 0);
  }
}

// Children. Each draws from an inherited context with words left, from an inherited one that is used up, from one split
// off an inherited one and from a new one, and tells through shared memory.

typedef struct mi_random_test_shared_s {
  uint64_t words[3][CONTEXTS][DRAWS];  // first child, second child, parent
} mi_random_test_shared_t;

static mi_random_t mi_random_test_partial;
static mi_random_t mi_random_test_used_up;

static void mi_random_test_draw(uint64_t words[CONTEXTS][DRAWS]) {
  static mi_random_t split, fresh;
  _mi_random_split(&mi_random_test_partial, &split);
  _mi_random_init(&fresh);
  mi_random_t* const from[CONTEXTS] = {&mi_random_test_partial, &mi_random_test_used_up, &split, &fresh};
  for (size_t i = 0; i < CONTEXTS; i++) {
    for (size_t k = 0; k < DRAWS; k++) {
      words[i][k] = _mi_random_next(from[i]);
    }
  }
}

static pid_t mi_random_test_fork_plain(void) { return fork(); }

// Neither the C library nor any handler gets to know of this child.
static pid_t mi_random_test_fork_raw(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static pid_t mi_random_test_fork_handled(void) {
  _mi_random_fork_prepare();
  const pid_t pid = fork();
  _mi_random_fork_release(pid == 0);
  return pid;
}

static void mi_random_test_children(pid_t (*make)(void)) {
  mi_random_test_shared_t* const shared =
      mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(shared != MAP_FAILED);
  for (int i = 0; i < 3; i++) {
    _mi_random_next(&mi_random_test_partial);
    _mi_random_next(&mi_random_test_used_up);
  }
  while (mi_random_test_used_up.left > 0) {
    _mi_random_next(&mi_random_test_used_up);
  }
  MI_CHECK(mi_random_test_partial.left > 0);
  for (int child = 0; child < 2; child++) {
    const uint32_t generation = _mi_random_generation();
    const pid_t pid = make();
    MI_REQUIRE(pid >= 0);
    if (pid == 0) {
      mi_random_test_draw(shared->words[child]);
      // A grandchild of this one would find a new root too.
      _exit(_mi_random_generation() == generation || mi_random_test_partial.generation != _mi_random_generation());
    }
    int status = -1;
    waitpid(pid, &status, 0);
    MI_CHECK_EQ(status, 0);
    MI_CHECK_EQ(_mi_random_generation(), generation);
  }
  mi_random_test_draw(shared->words[2]);
  MI_CHECK(mi_random_test_distinct(&shared->words[0][0][0], 3 * CONTEXTS * DRAWS));
  munmap(shared, sizeof(*shared));
}

// Whether the kernel wipes a page in children, which all but the handlers rely on.
static bool mi_random_test_can_wipe(void) {
  const size_t page = _mi_os_page_size();
  void* const p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  const bool can = madvise(p, page, MADV_WIPEONFORK) == 0;
  munmap(p, page);
  return can;
}

MI_TEST(children) {
  if (!mi_random_test_can_wipe()) {
    MI_TEST_SKIP("no MADV_WIPEONFORK");
  } else {
    mi_random_test_children(&mi_random_test_fork_plain);
  }
}

// The thread sanitizer takes such a child for a thread of the parent, and may wait in it for ever.
MI_TEST(raw_children) {
  if (MI_TSAN_BUILD) {
    return;
  }
  if (!mi_random_test_can_wipe()) {
    MI_TEST_SKIP("no MADV_WIPEONFORK");
  } else {
    mi_random_test_children(&mi_random_test_fork_raw);
  }
}

// A child of a raw clone finds the page of the root wiped, all of it, and the parent's as it was.
MI_TEST(wiped_page) {
  if (MI_TSAN_BUILD) {
    return;
  }
  if (!mi_random_test_can_wipe()) {
    MI_TEST_SKIP("no MADV_WIPEONFORK");
    return;
  }
  mi_random_t random;
  _mi_random_init(&random);
  const void* const root = (const void*)_mi_settings.random_root;
  const size_t size = _mi_os_page_size();
  MI_REQUIRE(root != NULL && (uintptr_t)root % size == 0);
  MI_CHECK(!mi_test_all_bytes(root, size, 0));
  const pid_t pid = mi_random_test_fork_raw();
  MI_REQUIRE(pid >= 0);
  if (pid == 0) {
    _exit(mi_test_all_bytes(root, size, 0) ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  MI_CHECK_EQ(status, 0);
  MI_CHECK(!mi_test_all_bytes(root, size, 0));
}

MI_TEST(handled_children) { mi_random_test_children(&mi_random_test_fork_handled); }

MI_TEST(reseed) {
  mi_random_t random;
  _mi_random_init(&random);
  _mi_random_next(&random);
  mi_random_t copy = random;
  const uint32_t generation = _mi_random_generation();
  _mi_random_reseed_after_fork();
  uint64_t words[2 * DRAWS];
  for (size_t i = 0; i < DRAWS; i++) {
    words[2 * i] = _mi_random_next(&random);
    words[2 * i + 1] = _mi_random_next(&copy);
  }
  MI_CHECK(mi_random_test_distinct(words, 2 * DRAWS));
  MI_CHECK(_mi_random_generation() != generation);
}

// A child made while another thread is inside the root is not stopped by a lock that nobody will open.

static _Atomic(bool) mi_random_test_stop;

static void* mi_random_test_busy(void* arg) {
  mi_random_t random;
  while (!mi_atomic_load_relaxed(&mi_random_test_stop)) {
    _mi_random_init(&random);
  }
  return arg;
}

static void mi_random_test_fork_while_busy(void* arg) {
  (void)arg;
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_random_test_busy, NULL) == 0);
  for (int i = 0; i < 300; i++) {
    const pid_t pid = mi_random_test_fork_raw();
    MI_REQUIRE(pid >= 0);
    if (pid == 0) {
      _mi_random_next(&mi_random_test_partial);
      _exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    MI_CHECK_EQ(status, 0);
  }
  mi_atomic_store_relaxed(&mi_random_test_stop, true);
  pthread_join(thread, NULL);
}

MI_TEST(fork_while_busy) {
  if (MI_TSAN_BUILD) {
    return;
  }
  if (!mi_random_test_can_wipe()) {
    MI_TEST_SKIP("no MADV_WIPEONFORK");
  } else {
    MI_CHECK_IN_CHILD(&mi_random_test_fork_while_busy, NULL, 60000);
  }
}

static void* mi_random_test_thread(void* arg) {
  uint64_t* const words = arg;
  mi_random_t random;
  _mi_random_init(&random);
  for (size_t i = 0; i < DRAWS; i++) {
    words[i] = _mi_random_next(&random);
  }
  return NULL;
}

MI_TEST(threads) {
  static uint64_t words[8 * DRAWS];
  pthread_t threads[8];
  for (size_t i = 0; i < 8; i++) {
    MI_REQUIRE(pthread_create(&threads[i], NULL, &mi_random_test_thread, &words[i * DRAWS]) == 0);
  }
  for (size_t i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
  }
  MI_CHECK(mi_random_test_distinct(words, 8 * DRAWS));
}

MI_TEST_MAIN()
