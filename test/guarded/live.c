// Owns: what many live guarded objects take of mappings and memory, and what happens when the mappings for them are used up.
// May include: test/lib, Linux headers.
// Called by: rows of test/guarded/rows.txt: live TEST, with every allocation sampled; MI_TEST_LIVE objects.
// Invariants: the bounds are those of policy/decisions/0025; a block is told to be guarded by its usable size, which is the request.
#define _GNU_SOURCE 1
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

enum { SIZE_FIRST = 41,
       // Odd, so that no size class has them.
       SIZE_STEP = 2,
       SIZES = 16,
       OS_PAGE = 4096,
       // Metadata, record and what else a guarded object takes beside its OS page.
       BESIDE = 1024,
       // An arena's mappings for so many objects, and those of the start.
       OBJECTS_A_MAPPING = 300,
       MAPPINGS_OF_THE_START = 200,
       ADVICE_GUARD_INSTALL = 102,
       ADVICE_GUARD_REMOVE = 103 };

static size_t count;
static unsigned char** blocks;

static size_t size_of(size_t i) { return SIZE_FIRST + i % SIZES * SIZE_STEP; }

static bool is_guarded(size_t i) { return malloc_usable_size(blocks[i]) == size_of(i); }

static void make(size_t i) {
  blocks[i] = malloc(size_of(i));
  MI_REQUIRE(blocks[i] != NULL);
  memset(blocks[i], (int)(unsigned char)i, size_of(i));
}

static size_t drop(size_t i) {
  const bool was_guarded = is_guarded(i);
  MI_CHECK(mi_test_all_bytes(blocks[i], size_of(i), (unsigned char)i));
  free(blocks[i]);
  blocks[i] = NULL;
  return was_guarded;
}

static size_t objects(void) { return (size_t)mi_test_scale("MI_TEST_LIVE", 100000); }

static size_t make_all(size_t wanted) {
  count = wanted;
  blocks = mmap(NULL, count * sizeof(blocks[0]), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(blocks != MAP_FAILED);
  size_t guarded = 0;
  for (size_t i = 0; i < count; i++) {
    make(i);
    guarded += is_guarded(i);
  }
  return guarded;
}

static size_t available(void) {
  char text[4096];
  const int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
  close(fd);
  text[length < 0 ? 0 : length] = 0;
  const char* const at = strstr(text, "MemAvailable:");
  return at == NULL ? 0 : (size_t)strtoull(at + strlen("MemAvailable:"), NULL, 10) * 1024;
}

static bool has_light_guards(void) {
  char* const p = mmap(NULL, OS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(p != MAP_FAILED);
  const bool result = madvise(p, OS_PAGE, ADVICE_GUARD_INSTALL) == 0;
  munmap(p, OS_PAGE);
  return result;
}

// Every object is guarded; mappings stay few, and memory is what was measured.
MI_TEST(all_are_guarded) {
  if (!has_light_guards()) {
    MI_TEST_SKIP("the system has no light guards");
    return;
  }
  if (available() < objects() * (OS_PAGE + BESIDE) / 2 * 3) {
    MI_TEST_SKIP("too little memory is available for %zu guarded objects", objects());
    return;
  }
  const size_t base = mi_test_rss();
  const size_t guarded = make_all(objects());
  MI_CHECK_EQ(guarded, count);
  const size_t held = mi_test_rss() - base;
  MI_CHECK_MSG(held <= count * (OS_PAGE + BESIDE), "%zu KiB are resident for %zu objects", held / 1024, count);
  // Else they lie side by side, and nothing is tested.
  MI_CHECK_MSG(held >= count * OS_PAGE, "%zu KiB are resident for %zu objects", held / 1024, count);
  const size_t mappings = mi_test_mappings();
  MI_CHECK_MSG(mappings <= count / OBJECTS_A_MAPPING + MAPPINGS_OF_THE_START, "%zu mappings for %zu objects", mappings, count);
  for (size_t i = 0; i < count; i++) (void)drop(i);
  const size_t left = mi_test_rss() - base;
  MI_CHECK_MSG(left <= count * BESIDE, "%zu KiB are resident after all are freed", left / 1024);
}

static size_t max_mappings(void) {
  long max = 65530;
  FILE* const file = fopen("/proc/sys/vm/max_map_count", "r");
  if (file != NULL) {
    if (fscanf(file, "%ld", &max) != 1) max = 65530;
    fclose(file);
  }
  return (size_t)max;
}

// A slot beside another splits off two mappings, and one by itself three; the budget counts two.
static bool are_in_budget(size_t mappings) { return mappings <= max_mappings() / 8 * 3 + MAPPINGS_OF_THE_START; }

// Where guards are mappings: as many objects are guarded as the budget has mappings for, and then one for each that is freed.
static void check_budget(void) {
  enum { MAX = 2000000 };
  const size_t max = max_mappings();
  if (max > MAX) {
    MI_TEST_SKIP("vm.max_map_count is %zu, too much to use up", max);
    return;
  }
  const size_t base = mi_test_rss();
  const size_t before = mi_test_mappings();
  const size_t guarded = make_all(objects() > max / 4 ? objects() : max / 4);
  const size_t mappings = mi_test_mappings() - before;
  MI_CHECK_MSG(guarded >= max / 16 && guarded <= max / 8, "%zu of %zu objects are guarded, of %zu mappings", guarded, count, max);
  MI_CHECK_MSG(are_in_budget(mappings), "%zu of %zu mappings are taken", mappings, max);
  const size_t held = mi_test_rss() - base;
  MI_CHECK_MSG(held <= guarded * (OS_PAGE + BESIDE) + count * 160, "%zu KiB are resident for %zu objects, %zu of them guarded", held / 1024,
               count, guarded);
  MI_CHECK(!is_guarded(count - 1));
  size_t freed = 0;
  for (size_t i = 0; freed < 1000; i++) freed += drop(i);
  size_t again = 0;
  for (size_t i = 0; blocks[i] == NULL; i++) {
    make(i);
    again += is_guarded(i);
  }
  MI_CHECK_EQ(again, freed);
  MI_CHECK_MSG(are_in_budget(mi_test_mappings() - before), "%zu mappings", mi_test_mappings() - before);
  for (size_t i = 0; i < count; i++) (void)drop(i);
}

MI_TEST(as_many_as_mappings) { check_budget(); }

// The same where the system does not know of light guards: it refuses the advice from before the start of the process.
MI_TEST(old_system) {
  if (getenv("MI_TEST_OLD") != NULL) {
    MI_CHECK(!has_light_guards());
    check_budget();
    return;
  }
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ADVICE_GUARD_REMOVE + 1, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ADVICE_GUARD_INSTALL, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
  };
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  MI_REQUIRE(setenv("MI_TEST_OLD", "1", 1) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  MI_REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
  execl("/proc/self/exe", "live", "old_system", NULL);
  MI_REQUIRE(!"the program runs again");
}

MI_TEST_MAIN()
