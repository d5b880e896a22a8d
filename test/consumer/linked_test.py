# Owns: that a program can be linked with the artifacts by a compiler alone, in every usual way.
# May include: Python's standard library.
# Called by: the build, as a test of each variant.
# Invariants: the control links without the allocator, and must not pass.
"""linked_test.py SHARED ARCHIVE OBJECT PROGRAM PROGRAM_CXX"""
import os
import re
import signal
import subprocess
import sys
import tempfile

SHARED, ARCHIVE, OBJECT, C, CXX = (os.path.abspath(p) for p in sys.argv[1:])
FOLDER = os.path.dirname(os.path.realpath(SHARED))
NAME = os.path.basename(SHARED)[3:].split(".so")[0]
LIBRARY = ["-L" + FOLDER, "-l" + NAME, "-Wl,-rpath," + FOLDER]
# No version of malloc that the compiler knows the meaning of.
FLAGS = ["-O1", "-fno-builtin", "-Wall", "-Werror"]

# what: compiler, words before the source, words after it
WAYS = {
    "object first": ("gcc", [OBJECT], []),
    "object last": ("gcc", [], [OBJECT]),
    "object, -static": ("gcc", ["-static", OBJECT], []),
    "object, -static-pie": ("gcc", ["-static-pie", OBJECT], []),
    "object, no pie": ("gcc", ["-no-pie", OBJECT], []),
    "object, sections collected": ("gcc", ["-Wl,--gc-sections", OBJECT], []),
    "archive": ("gcc", [], [ARCHIVE]),
    "archive, -static": ("gcc", ["-static"], [ARCHIVE]),
    "shared": ("gcc", [], LIBRARY),
    "C++, object": ("g++", [OBJECT], []),
    "C++, object, -static": ("g++", ["-static", OBJECT], []),
    "C++, archive": ("g++", [], [ARCHIVE]),
    "C++, shared": ("g++", [], LIBRARY),
}


def attempt(folder, what, compiler, before, after):
    program = os.path.join(folder, "program")
    link = subprocess.run([compiler] + FLAGS + before + [CXX if compiler == "g++" else C] + after + ["-o", program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if link.returncode != 0:
        return "%s: does not link:\n%s" % (what, "\n".join(link.stdout.splitlines()[:8]))
    ran = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    if ran.returncode != 0 or ran.stdout != "works\n":
        return "%s: status %d, it said:\n%s" % (what, ran.returncode, ran.stdout)
    if NAME in ("mimalloc", "mimalloc-guarded") or compiler == "g++":
        return None
    # A report comes out with its calls however the program was linked.
    ran = subprocess.run([program, "twice"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    if ran.returncode != -signal.SIGABRT or not re.match(r"%s: double-free: pointer 0x[0-9a-f]+ .*\n    #0 0x[0-9a-f]+ " % NAME, ran.stdout):
        return "%s: a second free: status %d, it said:\n%s" % (what, ran.returncode, ran.stdout)
    return None


def main():
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for what, (compiler, before, after) in WAYS.items():
            failures.append(attempt(folder, what, compiler, before, after))
        weak = os.path.join(folder, "weak.c")
        with open(weak, "w") as f:
            f.write("_Bool mi_is_in_heap_region(const void* p) { return p == 0; }\nint mi_version(void) { return 1; }\n")
        if attempt(folder, "control", "gcc", [weak], []) is None:
            failures.append("the program passes on the C library's malloc")
    for failure in filter(None, failures):
        print(failure)
    sys.exit(1 if any(failures) else 0)


if __name__ == "__main__":
    main()
