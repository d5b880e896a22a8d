// Owns: a program that uses 200 KiB never makes the allocator hold 2 MiB, whatever the system does about huge pages.
// May include: test/lib, the C library.
// Called by: rows of test/contract/rows.txt.
// Invariants: alone in its process: every further test would hide what the first blocks cost.
// Flags: -fno-builtin
#include "test/lib/rss.h"
#include "test/lib/test.h"

// Kilobytes of a field of smaps_rollup.
static size_t field(const char* name) {
  static char buf[4096];
  const int fd = open("/proc/self/smaps_rollup", O_RDONLY);
  MI_REQUIRE(fd >= 0);
  const ssize_t n = read(fd, buf, sizeof(buf) - 1);
  close(fd);
  MI_REQUIRE(n > 0);
  buf[n] = 0;
  const char* at = strstr(buf, name);
  MI_REQUIRE(at != NULL);
  return (size_t)strtoull(at + strlen(name), NULL, 10);
}

int main(void) {
  enum { N = 400 };
  static void* p[N];
  mi_test_current = "small program";
  // Private memory that is written: what the library's code takes is shared and does not count.
  const size_t start = field("\nAnonymous:");
  for (size_t i = 0; i < N; i++) {
    p[i] = malloc(24 + (i * 97) % 976);
    MI_REQUIRE(p[i] != NULL);
    memset(p[i], 1, 24 + (i * 97) % 976);
  }
  const size_t now = field("\nAnonymous:");
  printf("anonymous memory: %zu KiB before, %zu KiB with 200 KiB in use\n", start, now);
  MI_CHECK_MSG(now < 2048, "%zu KiB of anonymous memory (%zu KiB at the start)", now, start);
  MI_CHECK_EQ(field("\nAnonHugePages:"), 0);
  for (size_t i = 0; i < N; i++) free(p[i]);
  return mi_test_status();
}
