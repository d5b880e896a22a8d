// Owns: the kernel's own figures of this process: resident memory, address space, number of mappings.
// May include: test/lib/test.h.
// Called by: tests of memory return and boundedness.
// Invariants: never allocates; a figure that cannot be had ends the test, it is never taken for zero.
#pragma once

#include <fcntl.h>
#include <time.h>

#include "test/lib/test.h"

// Resident bytes. The sum that smaps_rollup makes is exact, where statm may lag by some pages for each processor.
static MI_TEST_UNUSED size_t mi_test_rss(void) {
  char buf[4096];
  int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const ssize_t n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n > 0) {
      buf[n] = 0;
      const char* at = strstr(buf, "\nRss:");
      if (at != NULL) return (size_t)strtoull(at + 5, NULL, 10) * 1024;
    }
  }
  fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  MI_REQUIRE(fd >= 0);
  const ssize_t n = read(fd, buf, sizeof(buf) - 1);
  close(fd);
  MI_REQUIRE(n > 0);
  buf[n] = 0;
  const char* at = strchr(buf, ' ');
  MI_REQUIRE(at != NULL);
  return (size_t)strtoull(at, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

// Address space in bytes, reserved or not.
static MI_TEST_UNUSED size_t mi_test_address_space(void) {
  char buf[256];
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  MI_REQUIRE(fd >= 0);
  const ssize_t n = read(fd, buf, sizeof(buf) - 1);
  close(fd);
  MI_REQUIRE(n > 0);
  buf[n] = 0;
  return (size_t)strtoull(buf, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

// Number of mappings, as vm.max_map_count counts them (give or take the kernel's own).
static MI_TEST_UNUSED size_t mi_test_mappings(void) {
  char buf[65536];
  size_t lines = 0;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  MI_REQUIRE(fd >= 0);
  for (;;) {
    const ssize_t n = read(fd, buf, sizeof(buf));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; i++) lines += (buf[i] == '\n');
  }
  close(fd);
  MI_REQUIRE(lines > 0);
  return lines;
}

static MI_TEST_UNUSED uint64_t mi_test_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000U + (uint64_t)t.tv_nsec / 1000000U;
}

static MI_TEST_UNUSED void mi_test_sleep_ms(long ms) {
  struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}
