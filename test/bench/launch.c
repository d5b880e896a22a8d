// Owns: `bench @run`: starts a program with extra environment and measures it from a small parent. `bench @spawn`: starts a program many times.
// May include: bench.h, libc.
// Called by: run.py, for every measured program.
// Invariants: the figures do not contain the runner: Linux counts the memory of the forking process into ru_maxrss of its child until exec, so the parent has to be this small program.
#include "bench.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

// Arguments: <descriptor for the report> [NAME=VALUE ...] -- program [arguments].
// The report is one line: wall, user and system seconds, peak resident KiB of the largest process of the tree, wait status.
int launch_main(int argc, char** argv) {
  if (argc < 3) die("@run <fd> [NAME=VALUE ...] -- program [arguments]");
  int report = (int)strtol(argv[0], NULL, 10);
  int at = 1;
  while (at < argc && strcmp(argv[at], "--") != 0) at++;
  if (at + 1 >= argc) die("@run names no program");
  double start = now();
  pid_t child = fork();
  if (child < 0) die("fork failed");
  if (child == 0) {
    close(report);
    for (int i = 1; i < at; i++) putenv(argv[i]);
    execvp(argv[at + 1], argv + at + 1);
    die("the program could not be started");
  }
  int status = 0;
  struct rusage usage;
  while (wait4(child, &status, 0, &usage) != child) {
  }
  double wall = now() - start;
  dprintf(report, "%.6f %.6f %.6f %ld %d\n", wall, seconds_of(usage.ru_utime), seconds_of(usage.ru_stime), usage.ru_maxrss, status);
  return 0;
}

// Arguments: <count> program [arguments]. Starts the program so many times, one after the other.
int spawn_main(int argc, char** argv) {
  if (argc < 2) die("@spawn <count> program [arguments]");
  for (unsigned long left = strtoul(argv[0], NULL, 10); left > 0; left--) {
    pid_t child;
    int status = 0;
    if (posix_spawnp(&child, argv[1], NULL, NULL, argv + 1, environ) != 0) die("the program could not be started");
    while (waitpid(child, &status, 0) != child) {
    }
    if (status != 0) die("the program failed");
  }
  return 0;
}
