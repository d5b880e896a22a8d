// Owns: tests of the report of blocks that have not been freed.
// May include: everything.
// Called by: the test runner, under every variant.
// Invariants: looks are at the difference that the test's own blocks make.
#include <sys/wait.h>
#include <unistd.h>

#include "mimalloc.h"
#include "src/base/compiler.h"
#include "src/heap/leaks.h"
#include "test/lib/test.h"

enum { TEXT_MAX = 1 << 16 };

static char mi_leaks_test_text[TEXT_MAX];
static size_t mi_leaks_test_length;

static void mi_leaks_test_note(const char* text, void* arg) {
  (void)arg;
  for (; *text != 0 && mi_leaks_test_length < TEXT_MAX - 1; text++) {
    mi_leaks_test_text[mi_leaks_test_length++] = *text;
  }
  mi_leaks_test_text[mi_leaks_test_length] = 0;
}

static void mi_leaks_test_count(const char* text, size_t* blocks, size_t* bytes) {
  const char* const line = strstr(text, ": leaks: ");
  MI_REQUIRE(line != NULL && sscanf(line, ": leaks: %zu blocks, %zu bytes\n", blocks, bytes) == 2);
}

// How many lines tell of this block, and with what size.
static size_t mi_leaks_test_find(const char* text, const void* block, size_t* size) {
  size_t found = 0;
  for (const char* at = text; (at = strstr(at, ": leak: block ")) != NULL; at++) {
    void* p;
    size_t bytes;
    MI_REQUIRE(sscanf(at, ": leak: block %p of %zu bytes\n", &p, &bytes) == 2);
    if (p == block) {
      found++;
      *size = bytes;
    }
  }
  return found;
}

static size_t mi_leaks_test_lines(const char* text) {
  size_t lines = 0;
  for (const char* at = text; (at = strstr(at, ": leak: block ")) != NULL; at++) {
    lines++;
  }
  return lines;
}

static const size_t mi_leaks_test_sizes[] = {1, 100, 1000, 70000, 5000000};
enum { SIZES = sizeof(mi_leaks_test_sizes) / sizeof(mi_leaks_test_sizes[0]) };

MI_TEST(listed) {
  mi_heap_t* const heap = mi_heap_new();
  void* blocks[SIZES];
  size_t before[2];
  size_t after[2];
  mi_register_output(&mi_leaks_test_note, NULL);
  mi_leaks_test_length = 0;
  _mi_leaks_print();
  mi_leaks_test_count(mi_leaks_test_text, &before[0], &before[1]);
  size_t usable = 0;
  for (size_t i = 0; i < SIZES; i++) {
    blocks[i] = i % 2 == 0 ? mi_malloc(mi_leaks_test_sizes[i]) : mi_heap_malloc(heap, mi_leaks_test_sizes[i]);
    MI_REQUIRE(blocks[i] != NULL);
    usable += mi_usable_size(blocks[i]);
  }
  mi_leaks_test_length = 0;
  _mi_leaks_print();
  mi_leaks_test_count(mi_leaks_test_text, &after[0], &after[1]);
  MI_CHECK_EQ(after[0], before[0] + SIZES);
  MI_CHECK_EQ(after[1], before[1] + usable);
  MI_CHECK_EQ(mi_leaks_test_lines(mi_leaks_test_text), after[0]);
  for (size_t i = 0; i < SIZES; i++) {
    size_t size = 0;
    MI_CHECK_EQ(mi_leaks_test_find(mi_leaks_test_text, blocks[i], &size), 1);
    MI_CHECK_EQ(size, MI_HAS_PADDING ? mi_leaks_test_sizes[i] : mi_usable_size(blocks[i]));
    mi_free(blocks[i]);
  }
  mi_leaks_test_length = 0;
  _mi_leaks_print();
  for (size_t i = 0; i < SIZES; i++) {
    size_t size = 0;
    MI_CHECK_EQ(mi_leaks_test_find(mi_leaks_test_text, blocks[i], &size), 0);
  }
  mi_leaks_test_count(mi_leaks_test_text, &after[0], &after[1]);
  MI_CHECK(after[0] == before[0] && after[1] == before[1]);
  mi_register_output(NULL, NULL);
  mi_heap_delete(heap);
}

// At the end of a process, where the option asks for it and not where it does not.
MI_TEST(at_the_end) {
  for (int wanted = 0; wanted < 2; wanted++) {
    int fds[2];
    MI_REQUIRE(pipe(fds) == 0);
    const pid_t pid = fork();
    MI_REQUIRE(pid >= 0);
    if (pid == 0) {
      (void)dup2(fds[1], STDERR_FILENO);
      (void)close(fds[1]);
      mi_option_set_enabled(mi_option_show_leaks, wanted != 0);
      void* const p = mi_malloc(4321);
      __asm__ volatile("" ::"r"(p)
                       : "memory");
      exit(0);
    }
    (void)close(fds[1]);
    mi_leaks_test_length = 0;
    ssize_t n;
    while (mi_leaks_test_length < TEXT_MAX - 1 &&
           (n = read(fds[0], mi_leaks_test_text + mi_leaks_test_length, TEXT_MAX - 1 - mi_leaks_test_length)) > 0) {
      mi_leaks_test_length += (size_t)n;
    }
    mi_leaks_test_text[mi_leaks_test_length] = 0;
    (void)close(fds[0]);
    int status;
    MI_REQUIRE(waitpid(pid, &status, 0) == pid);
    MI_CHECK_EQ(status, 0);
    MI_CHECK_EQ(mi_leaks_test_lines(mi_leaks_test_text) > 0, wanted);
    MI_CHECK(!wanted || !MI_HAS_PADDING || strstr(mi_leaks_test_text, " of 4321 bytes\n") != NULL);
  }
}

MI_TEST_MAIN()
