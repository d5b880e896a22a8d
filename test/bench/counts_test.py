#!/usr/bin/env python3
# Owns: the test that malloc and free stay as short as they are.
# May include: counts.py, harness.py.
# Called by: Bazel, or a person.
# Invariants: counts, never times, so that a busy machine decides nothing. A limit is a little above what the compiler makes today: who passes it has made every call longer, and says why by raising it here.
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
import counts
from harness import Allocator, RunFailed, build_bench

# Instructions from the entry of the function to its first return where no conditional jump is taken: what a call executes that
# finds a block, or frees a block of its own thread. Only of variants whose paths are without calls.
STRAIGHT = {
    "release": {"mi_malloc": 16, "malloc": 16, "mi_free": 20, "free": 20},
    "secure": {"mi_malloc": 29, "malloc": 29, "mi_free": 42, "free": 42},
}
# The same run, with the share of the slower calls: one block of 16 bytes at a time, and 32 of 4096 bytes, which fill several pages.
COUNTED = {
    "release": {("pair", 16): (17, 20), ("local", 4096): (67, 29)},
    "secure": {("pair", 16): (53, 44), ("local", 4096): (168, 65)},
    "strict": {("pair", 16): (105, 190)},
    "debug": {("pair", 16): (255, 305)},
}
FEW, MANY = 60, 260
# What most programs call most lies side by side, in so many bytes: on two or three pages of the system's.
HOT = ("malloc", "free", "calloc", "realloc", "mi_malloc", "mi_free", "mi_zalloc", "mi_calloc")
HOT_SPAN = 8192


def straight_paths(library):
    """For each global function the instructions up to its first return, and whether a call is among them."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    paths = {}
    name = None
    for line in text.splitlines():
        head = re.match(r"[0-9a-f]+ <([^>]+)>:$", line)
        if head:
            name = head.group(1)
            paths[name] = []
            continue
        found = re.match(r"\s+[0-9a-f]+:\s+(\S+)", line)
        if found and name:
            paths[name].append(found.group(1))
            if found.group(1).startswith(("ret", "jmp")):
                name = None
    return paths


def check_straight(library, limits):
    wrong = []
    paths = straight_paths(library)
    for name, limit in sorted(limits.items()):
        path = paths.get(name, [])
        if not path or not path[-1].startswith("ret") or any(i.startswith("call") for i in path):
            wrong.append("%s: the path that takes no jump does not return, or calls: %s" % (name, " ".join(path)))
        elif len(path) > limit:
            wrong.append("%s: %d instructions to its return, at most %d are meant: %s" % (name, len(path), limit, " ".join(path)))
        else:
            print("%s: %d instructions, at most %d" % (name, len(path), limit))
    return wrong


def check_counted(bench, library, limits, directory):
    wrong = []
    # What is due by the clock, on a machine so busy that it comes within a run, is no part of a call.
    allocator = Allocator("tested", library=library, env={"MIMALLOC_PURGE_DELAY": "-1"})
    for (kind, size), limit in sorted(limits.items()):
        pairs = zip(counts.run(bench, allocator, kind, size, FEW, directory), counts.run(bench, allocator, kind, size, MANY, directory))
        for call, most, ((calls_few, cost_few), (calls_many, cost_many)) in zip(("malloc", "free"), limit, pairs):
            if calls_many - calls_few != (MANY - FEW) * counts.BATCH[kind]:
                wrong.append("%s(%d), %s: %d calls were counted" % (call, size, kind, calls_many - calls_few))
                continue
            cost = (cost_many - cost_few) / (calls_many - calls_few)
            line = "%s of %d bytes, %s: %.1f instructions a call, at most %d" % (call, size, kind, cost, most)
            if cost > most:
                wrong.append(line + " are meant")
            else:
                print(line)
    return wrong


def output(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_shape(library):
    """What a path costs besides its instructions: where it lies, and how it reaches a thread's variables and other functions."""
    wrong = []
    rows = [line.split() for line in output(["nm", library]).splitlines()]
    places = {row[2]: int(row[0], 16) for row in rows if len(row) == 3 and row[2] in HOT}
    if len(places) != len(HOT):
        wrong.append("not all of %s are there" % " ".join(HOT))
    elif max(places.values()) - min(places.values()) > HOT_SPAN:
        wrong.append("the hot functions lie in %d bytes, at most %d are meant" % (max(places.values()) - min(places.values()), HOT_SPAN))
    relocations = output(["readelf", "-Wr", library])
    for name in ("DTPMOD", "DTPOFF", "TLSDESC"):
        if name in relocations:
            wrong.append("a variable of the thread is looked up by a call: relocation %s" % name)
    if "TPOFF" not in relocations:
        wrong.append("no variable of the thread is found by its offset")
    if "__tls_get_addr" in output(["nm", "-D", "--undefined-only", library]):
        wrong.append("__tls_get_addr is called")
    dynamic = output(["readelf", "-Wd", library])
    for flag in ("BIND_NOW", "NODELETE", "STATIC_TLS"):
        if not re.search(r"FLAGS.*\b%s\b" % flag, dynamic):
            wrong.append("the library is not marked %s" % flag)
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bench", help="the bench program (default: compile it)")
    p.add_argument("--lib", required=True)
    p.add_argument("--variant", required=True)
    options = p.parse_args()
    library = os.path.abspath(options.lib)
    wrong = check_shape(library) if platform.machine() == "x86_64" else []
    if platform.machine() == "x86_64" and options.variant in STRAIGHT:
        wrong += check_straight(library, STRAIGHT[options.variant])
    if platform.machine() == "x86_64" and shutil.which("valgrind"):
        with tempfile.TemporaryDirectory(prefix="counts-") as directory:
            bench = os.path.abspath(options.bench) if options.bench else build_bench(directory)
            try:
                wrong += check_counted(bench, library, COUNTED.get(options.variant, {}), directory)
            except RunFailed as error:
                wrong.append("callgrind: %s" % error)
    else:
        print("callgrind is not there, or has not this machine's figures: nothing was counted")
    for line in wrong:
        print("FAILED: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
