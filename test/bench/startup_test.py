#!/usr/bin/env python3
# Owns: the test that a process starts with no more system calls and resident memory than it does.
# May include: harness.py.
# Called by: Bazel, or a person.
# Invariants: calls and pages, never times. A limit is what a start takes today, or the project's goal where that is met: who passes it has made the start of every program dearer, and says why by raising it here.
import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import Allocator, RunFailed, build_bench, clean_environment

# Calls that a preloaded library adds to a program that allocates nothing, those of the loader among them, and to one that
# allocates one block; and what it adds in KiB to resident memory, and to the part that is the process's own. The goal of the
# first is 25, and of the third 400. The third has room: how many pages of a file the kernel maps around a fault depends on where
# the file lies in memory and among addresses. The fourth is the process's doing alone, and has room for four OS pages: the same
# library was seen with 52 KiB and, on another build of the kernel, with 68 to 72.
LIMITS = {
    "release": (25, 25, 560, 80),
    "guarded": (30, 30, 620, 96),
    "secure": (37, 37, 700, 104),
    "strict": (37, 37, 700, 104),
    "debug": (37, 40, 760, 128),
}
RUNS = 21
# Guards that are no mappings are tried by one call. Where a kernel has none, their number has to be read.
CALLS_WITHOUT_LIGHT_GUARDS = 3
LIGHT_GUARDS_SINCE = (6, 13)


def calls(command, environment):
    """The system calls of a program that strace counts, all threads and children included."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "calls")
        settings = [part for item in environment.items() for part in ("-E", "%s=%s" % item)]
        done = subprocess.run(["strace", "-f", "-o", path] + settings + command, env=clean_environment(), capture_output=True, text=True)
        if done.returncode != 0 or not os.path.exists(path):
            raise RunFailed(done.stderr.strip()[:300])
        with open(path) as f:
            found = [line.split("(")[0].split()[-1] for line in f if re.match(r"\d+ +\w+\(", line)]
    return found


def resident(bench, environment):
    """KiB of resident memory, and of the part that no other process shares."""
    done = subprocess.run([bench, "--resident"], env=dict(clean_environment(), **environment), capture_output=True, text=True)
    found = dict(re.findall(r"^(Rss|Anonymous): +(\d+) kB", done.stdout, re.M))
    if done.returncode != 0 or len(found) != 2:
        raise RunFailed("no figures of memory: %s" % done.stderr.strip()[:300])
    return int(found["Rss"]), int(found["Anonymous"])


def middle(values):
    return sorted(values)[len(values) // 2]


def check_calls(bench, environment, limits, slack):
    wrong = 0
    for option, limit in zip(("--resident", "--one"), limits):
        before, after = calls([bench, option], {}), calls([bench, option], environment)
        added = len(after) - len(before)
        print("%s: %d system calls added to %d, limit %d" % (option, added, len(before), limit + slack))
        if added > limit + slack:
            wrong += 1
            print("  " + " ".join(after))
        elif added < 10:
            wrong += 1
            print("  fewer than the loader alone makes: the library was not loaded")
    return wrong


def check_resident(bench, environment, limits):
    before, after = [], []
    for _ in range(RUNS):
        before.append(resident(bench, {}))
        after.append(resident(bench, environment))
    wrong = 0
    for i, what in enumerate(("resident", "of its own")):
        added = middle([pair[i] for pair in after]) - middle([pair[i] for pair in before])
        print("%s: %d KiB added, limit %d" % (what, added, limits[i]))
        if added > limits[i] or added <= 0:
            wrong += 1
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bench", help="the bench program (default: compile it)")
    p.add_argument("--lib", required=True)
    p.add_argument("--variant", required=True)
    options = p.parse_args()
    environment = Allocator("", os.path.realpath(options.lib)).environment()
    if platform.machine() != "x86_64" or os.sysconf("SC_PAGESIZE") != 4096:
        print("the limits are of x86-64")
        return 77
    release = tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2])
    slack = 0 if release >= LIGHT_GUARDS_SINCE else CALLS_WITHOUT_LIGHT_GUARDS
    limits = LIMITS[options.variant]
    with tempfile.TemporaryDirectory() as directory:
        bench = os.path.realpath(options.bench) if options.bench else build_bench(directory)
        try:
            wrong = check_resident(bench, environment, limits[2:])
        except RunFailed as error:
            print("the kernel does not tell: %s" % error)
            return 77
        if shutil.which("strace") is None or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
            print("strace is not there, or may not trace")
            return 1 if wrong else 77
        wrong += check_calls(bench, environment, limits[:2], slack)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
