// Owns: tests of _mi_prim_backtrace and _mi_prim_module_of: true chains, broken ones in every way, small and other stacks.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: a chain that leads anywhere else than to readable words of a stack ends, and nothing faults.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include "src/base/compiler.h"
#include "src/prim/prim.h"
#include "test/lib/child.h"
#include "test/lib/deny.h"
#include "test/lib/test.h"

enum { CALLS = 64,
       FAKE_RETURN = 0x123456 };

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
enum { HAS_CHAIN = 1 };
#else
enum { HAS_CHAIN = 0 };
#endif

// Asking for the frame's address gives a function a frame pointer, whatever the flags are.
static void* volatile mi_stack_test_frame;
static uintptr_t mi_stack_test_calls[CALLS];

static mi_noinline size_t mi_stack_test_deep(int depth, size_t count) {
  mi_stack_test_frame = __builtin_frame_address(0);
  const size_t found = depth > 0 ? mi_stack_test_deep(depth - 1, count)
                                 : _mi_prim_backtrace(mi_stack_test_frame, mi_stack_test_calls, count);
  mi_stack_test_frame = NULL;
  return found;
}

MI_TEST(true_chain) {
  const uintptr_t start = (uintptr_t)&mi_stack_test_deep;
  for (size_t count = 0; count <= 20; count++) {
    memset(mi_stack_test_calls, 0, sizeof(mi_stack_test_calls));
    MI_CHECK_EQ(mi_stack_test_deep(30, count), HAS_CHAIN ? count : 0);
    for (size_t i = 0; HAS_CHAIN && i < count; i++) {
      MI_CHECK_MSG(mi_stack_test_calls[i] - start < 4096 && mi_stack_test_calls[i] == mi_stack_test_calls[0], "call %zu", i);
    }
    MI_CHECK_EQ(mi_stack_test_calls[count], 0);
  }
}

// Broken chains: the second frame of an array of words on the stack leads to what the row says.
MI_TEST(broken_chains) {
  const size_t page = 4096;
  char* const map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(map != MAP_FAILED);
  MI_REQUIRE(mprotect(map + page, page, PROT_NONE) == 0);
  uintptr_t words[8] = {0};
  const uintptr_t self = (uintptr_t)&words[0];
  const struct {
    const char* what;
    uintptr_t next;
  } rows[] = {
      {"nothing", 0},
      {"one", 1},
      {"itself", self},
      {"downwards", self - 64},
      {"misaligned", self + 1},
      {"misaligned by half", self + sizeof(void*) / 2},
      {"all bits", UINTPTR_MAX},
      {"the last word", UINTPTR_MAX - sizeof(void*) + 1},
      {"no access", (uintptr_t)map + page},
      {"half of it no access", (uintptr_t)map + page - sizeof(void*)},
      {"static data", (uintptr_t)&mi_stack_test_calls},
      {"far upwards", self + ((uintptr_t)1 << 40)},
      {"beyond the largest frame", self + 1024 * 1024 + 64},
      {"the kernel", ~(uintptr_t)0 << (sizeof(void*) * 8 - 8)},
      {"not canonical", (uintptr_t)1 << (sizeof(void*) * 8 - 8)},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    words[0] = rows[i].next;
    words[1] = FAKE_RETURN;
    const size_t found = _mi_prim_backtrace(words, mi_stack_test_calls, CALLS);
    MI_CHECK_MSG(found == HAS_CHAIN && (!HAS_CHAIN || mi_stack_test_calls[0] == FAKE_RETURN - 1), "%s: %zu", rows[i].what, found);
  }
  // The return address of the outermost frame is 0 in many programs.
  words[0] = (uintptr_t)&words[4];
  words[1] = FAKE_RETURN;
  words[4] = (uintptr_t)&words[6];
  words[5] = 0;
  MI_CHECK_EQ(_mi_prim_backtrace(words, mi_stack_test_calls, CALLS), HAS_CHAIN);
  // Frames of which nothing, or not all, can be read.
  MI_CHECK_EQ(_mi_prim_backtrace(map + page, mi_stack_test_calls, CALLS), 0);
  MI_CHECK_EQ(_mi_prim_backtrace(map + page - sizeof(void*), mi_stack_test_calls, CALLS), 0);
  // A chain across a page that is not there, to one that is.
  *(uintptr_t*)(void*)map = (uintptr_t)map + 2 * page;
  *(uintptr_t*)(void*)(map + sizeof(void*)) = FAKE_RETURN;
  *(uintptr_t*)(void*)(map + 2 * page + sizeof(void*)) = FAKE_RETURN;
  MI_CHECK_EQ(_mi_prim_backtrace(map, mi_stack_test_calls, CALLS), HAS_CHAIN);
  munmap(map, 3 * page);
}

// What a thread's own stack holds the kernel is asked once; what lies elsewhere, each time. Here it says nothing from then on.
static void* mi_stack_test_ask_once(void* other) {
  MI_CHECK(!HAS_CHAIN || mi_stack_test_deep(3, CALLS) >= 4);
  MI_REQUIRE(mi_test_deny(SYS_futex, MI_TEST_ANY, 0, ENOSYS));
  MI_CHECK(!HAS_CHAIN || mi_stack_test_deep(3, CALLS) >= 4);
  MI_CHECK_EQ(_mi_prim_backtrace(other, mi_stack_test_calls, CALLS), 0);
  const uintptr_t words[2] = {(uintptr_t)other, FAKE_RETURN};
  MI_CHECK_EQ(_mi_prim_backtrace(words, mi_stack_test_calls, CALLS), HAS_CHAIN);
  return NULL;
}

static void mi_stack_test_ask_in_thread(void* other) {
  pthread_t thread;
  MI_REQUIRE(pthread_create(&thread, NULL, &mi_stack_test_ask_once, other) == 0);
  pthread_join(thread, NULL);
}

static void mi_stack_test_ask_in_child(void* other) { (void)mi_stack_test_ask_once(other); }

MI_TEST(own_stack_is_asked_about_once) {
  uintptr_t* const other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(other != MAP_FAILED);
  other[1] = FAKE_RETURN;
  MI_CHECK_EQ(_mi_prim_backtrace(other, mi_stack_test_calls, CALLS), HAS_CHAIN);
  MI_CHECK_IN_CHILD(&mi_stack_test_ask_in_child, other, 10000);
  MI_CHECK_IN_CHILD(&mi_stack_test_ask_in_thread, other, 10000);
  munmap(other, 4096);
}

// Random words for frames: each run of the walk ends, and nothing faults.
MI_TEST(random_chains) {
  uint64_t seed = 7;
  static uintptr_t words[4096];
  for (int round = 0; round < 2000; round++) {
    for (size_t i = 0; i < 64; i++) {
      const uint64_t r = mi_test_random(&seed);
      const uintptr_t near = (uintptr_t)&words[r % 4096];
      words[mi_test_random(&seed) % 4096] = r % 3 == 0 ? (uintptr_t)r : r % 3 == 1 ? near
                                                                                   : near + 4096 * (r >> 60);
    }
    MI_CHECK(_mi_prim_backtrace(&words[round], mi_stack_test_calls, CALLS) <= CALLS);
  }
}

#if defined(__x86_64__) || defined(__i386__)
// Where nothing is known of a function, the word at its stack pointer may be where it goes back to, and may be anything: also an
// address of bytes of data that look like a call.
MI_TEST(word_of_a_stack_that_is_no_call) {
  unsigned char data[16];
  memset(data, 0, sizeof(data));
  data[8 - 5] = 0xe8;
  uintptr_t frame[2] = {0, 0};
  uintptr_t stack[2] = {(uintptr_t)&data[8], 0};
  mi_prim_fault_t fault = {.code = (uintptr_t)&data[0], .stack = stack, .frame = frame};
  uintptr_t calls[4] = {0};
  MI_CHECK_EQ(_mi_prim_fault_calls(&fault, calls, 4), 1);
  MI_CHECK_EQ(calls[0], fault.code);
  stack[0] = (uintptr_t)__builtin_return_address(0);
  MI_CHECK_EQ(_mi_prim_fault_calls(&fault, calls, 4), 2);
  MI_CHECK_EQ(calls[1], stack[0] - 1);
}

// A chain that leads through a register with something else in it: what it finds on the stack is no call.
MI_TEST(what_a_chain_finds_beyond_its_end) {
  const uintptr_t call = (uintptr_t)__builtin_return_address(0) - 1;
  const uintptr_t here = (uintptr_t)&call;
  const uintptr_t calls[] = {call, call, here, call};
  for (size_t count = 0; count <= 4; count++) {
    MI_CHECK_EQ(_mi_prim_calls_plausible(calls, count), count < 2 ? count : 2);
  }
  // The frame after the next is none: its word for a return address is one of the stack.
  uintptr_t frames[6] = {(uintptr_t)&frames[2], call + 1, (uintptr_t)&frames[4], here, 0, call + 1};
  const mi_prim_fault_t fault = {.code = (uintptr_t)&frames, .stack = frames, .frame = frames};
  uintptr_t found[4] = {0};
  MI_CHECK_EQ(_mi_prim_backtrace(frames, found, 4), 3);
  MI_CHECK_EQ(_mi_prim_fault_calls(&fault, found, 4), 2);
  MI_CHECK_EQ(found[1], call);
}
#endif

#if defined(__x86_64__) && !defined(__ILP32__)
// Functions as compilers make them: each label is an instruction, with so many words between the stack pointer and where the
// function goes back to. With a frame of its own the words at the stack pointer are left over from calls that are long over.
__asm__(
    ".pushsection .text\n"
    "mi_stack_test_bare: .cfi_startproc\n"
    "mi_stack_test_at_0: push %rbx\n.cfi_adjust_cfa_offset 8\n"
    "mi_stack_test_at_1: sub $16, %rsp\n.cfi_adjust_cfa_offset 16\n"
    "mi_stack_test_at_3: nop\n.cfi_remember_state\n"
    "add $16, %rsp\n.cfi_adjust_cfa_offset -16\n"
    "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\n"
    "mi_stack_test_at_return: ret\n.cfi_restore_state\n"
    "mi_stack_test_at_3_again: nop\n"
    "ret\n"
    ".cfi_endproc\n"
    "mi_stack_test_framed: .cfi_startproc\n"
    "mi_stack_test_at_begin: push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
    "mi_stack_test_at_pushed: mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
    "sub $64, %rsp\n"
    "mi_stack_test_at_frame: nop\n"
    "leave\n.cfi_def_cfa %rsp, 8\n"
    "mi_stack_test_at_left: ret\n"
    ".cfi_endproc\n"
    "mi_stack_test_call: .byte 0xe8, 0, 0, 0, 0\n"
    ".popsection\n");

extern const char mi_stack_test_at_0[], mi_stack_test_at_1[], mi_stack_test_at_3[], mi_stack_test_at_return[], mi_stack_test_at_3_again[],
    mi_stack_test_at_begin[], mi_stack_test_at_pushed[], mi_stack_test_at_frame[], mi_stack_test_at_left[],
    mi_stack_test_call[];

MI_TEST(caller_of_a_function_in_every_state) {
  const struct {
    const char* at;
    int words;  // -1: the chain alone knows
  } rows[] = {
      {mi_stack_test_at_0, 0},
      {mi_stack_test_at_1, 1},
      {mi_stack_test_at_3, 3},
      {mi_stack_test_at_return, 0},
      {mi_stack_test_at_3_again, 3},
      {mi_stack_test_at_begin, 0},
      {mi_stack_test_at_pushed, 1},
      {mi_stack_test_at_frame, -1},
      {mi_stack_test_at_left, 0},
  };
  const uintptr_t stale = (uintptr_t)__builtin_return_address(0);
  if (dlsym(RTLD_DEFAULT, "_dl_find_object") == NULL) {
    MI_TEST_SKIP("the C library does not say where the tables of frames are");
    return;
  }
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    uintptr_t stack[8];
    for (size_t k = 0; k < 8; k++) {
      stack[k] = stale;
    }
    // Another call than the stale ones.
    const uintptr_t back = (uintptr_t)mi_stack_test_call + 5;
    if (rows[i].words >= 0) {
      stack[rows[i].words] = back;
    }
    uintptr_t frame[2] = {0, 0};
    const mi_prim_fault_t fault = {.code = (uintptr_t)rows[i].at, .stack = stack, .frame = frame};
    uintptr_t calls[4] = {0};
    MI_CHECK_MSG(_mi_prim_fault_calls(&fault, calls, 4) == (rows[i].words < 0 ? 1 : 2), "row %zu", i);
    MI_CHECK_MSG(rows[i].words < 0 || calls[1] == back - 1, "row %zu", i);
  }
}
#endif

static void* mi_stack_test_thread(void* arg) {
  *(size_t*)arg = mi_stack_test_deep(20, CALLS);
  return NULL;
}

MI_TEST(small_thread_stack) {
  pthread_attr_t attributes;
  pthread_t thread;
  size_t found = 0;
  pthread_attr_init(&attributes);
  MI_REQUIRE(pthread_attr_setstacksize(&attributes, 16384 > PTHREAD_STACK_MIN ? 16384 : (size_t)PTHREAD_STACK_MIN) == 0);
  MI_REQUIRE(pthread_create(&thread, &attributes, &mi_stack_test_thread, &found) == 0);
  pthread_join(thread, NULL);
  MI_CHECK(!HAS_CHAIN || (found > 20 && found < CALLS));
}

static size_t mi_stack_test_in_handler;

static void mi_stack_test_handler(int sig) {
  (void)sig;
  mi_stack_test_in_handler = mi_stack_test_deep(3, CALLS);
}

MI_TEST(other_stack) {
  // The stack of the handler ends where nothing can be read.
  char* const map = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MI_REQUIRE(map != MAP_FAILED && mprotect(map + 4 * 4096, 4096, PROT_NONE) == 0);
  const stack_t other = {.ss_sp = map, .ss_size = 4 * 4096};
  stack_t old;
  MI_REQUIRE(sigaltstack(&other, &old) == 0);
  const struct sigaction action = {.sa_handler = &mi_stack_test_handler, .sa_flags = SA_ONSTACK};
  MI_REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
  raise(SIGUSR1);
  MI_CHECK(!HAS_CHAIN || (mi_stack_test_in_handler >= 4 && mi_stack_test_in_handler <= CALLS));
  MI_REQUIRE(sigaltstack(&old, NULL) == 0);
  signal(SIGUSR1, SIG_DFL);
  munmap(map, 5 * 4096);
}

// Files

static int mi_stack_test_program_base(struct dl_phdr_info* info, size_t size, void* base) {
  (void)size;
  *(uintptr_t*)base = info->dlpi_addr;
  return 1;
}

MI_TEST(modules) {
  mi_prim_module_t module;
  uintptr_t base = 0;
  dl_iterate_phdr(&mi_stack_test_program_base, &base);
  const uintptr_t own = (uintptr_t)&mi_stack_test_handler;
  Dl_info info;
  const uintptr_t other = (uintptr_t)&fork;
  MI_REQUIRE(dladdr((void*)other, &info) != 0);
  for (int thorough = 0; thorough < 2; thorough++) {
    MI_CHECK(_mi_prim_module_of(own, thorough, &module));
    MI_CHECK_EQ(module.offset, own - base);
    MI_CHECK(strlen(module.path) > 0);
    if (_mi_prim_module_of(other, thorough, &module)) {
      MI_CHECK_EQ(module.offset, other - (uintptr_t)info.dli_fbase);
      MI_CHECK_MSG(strstr(module.path, "libc") != NULL, "%s", module.path);
    } else {
      // A C library without a search that takes no lock.
      MI_CHECK(thorough == 0);
    }
    static char data[1];
    char* const map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MI_CHECK(!_mi_prim_module_of((uintptr_t)map, thorough, &module));
    MI_CHECK(!_mi_prim_module_of((uintptr_t)&module, thorough, &module));
    MI_CHECK(!_mi_prim_module_of(0, thorough, &module));
    MI_CHECK(!_mi_prim_module_of(UINTPTR_MAX, thorough, &module));
    MI_CHECK(_mi_prim_module_of((uintptr_t)data, thorough, &module));
    munmap(map, 4096);
  }
}

MI_TEST_MAIN()
