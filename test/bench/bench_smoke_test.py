#!/usr/bin/env python3
# Owns: the test that every workload runs under every given allocator and gives the checksum it gives under the C library's.
# May include: harness.py.
# Called by: Bazel, or a person.
# Invariants: tiny scale, so that it takes seconds; a slow allocator is no failure here, a lost byte is.
import argparse
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import RunFailed, Allocator, build_bench, check_allocator, clean_environment, result_lines


def run(program, workload, environment):
    command = [program, workload, "1", "--rss"]
    done = subprocess.run(command, env=dict(clean_environment(), **environment), capture_output=True, text=True, timeout=120)
    lines = result_lines(done.stdout)
    if done.returncode != 0 or done.stderr or len(lines) != 1:
        return "status %d: %s %s" % (done.returncode, done.stdout.strip()[:200], done.stderr.strip()[:300])
    return lines[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bench", help="the bench program on the C library's malloc (default: compile it)")
    p.add_argument("--lib", action="append", default=[], help="an allocator to preload")
    p.add_argument("--bin", action="append", default=[], help="a bench program linked with an allocator")
    options = p.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        bench = os.path.realpath(options.bench) if options.bench else build_bench(directory)
        rows = [(os.path.basename(path), bench, Allocator("", os.path.realpath(path)).environment()) for path in options.lib]
        rows += [(path, os.path.realpath(path), {}) for path in options.bin]
        if not rows:
            rows = [("a second run", bench, {})]
        for path in options.lib:
            try:
                check_allocator(bench, Allocator(path, os.path.realpath(path)))
            except RunFailed as error:
                print("%s: %s" % (path, error))
                failures += 1
        names = [line.split("\t")[0] for line in subprocess.run([bench, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
        for name in names:
            expected = run(bench, name, {})
            if not expected.startswith("checksum %s " % name):
                print("%s: %s" % (name, expected))
                failures += 1
            for title, program, environment in rows:
                found = run(program, name, environment)
                if found != expected:
                    print("%s under %s: %s, expected %s" % (name, title, found, expected))
                    failures += 1
    if not names:
        failures += 1
    print("%d workloads, %d allocators, %d failures" % (len(names), len(rows), failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
