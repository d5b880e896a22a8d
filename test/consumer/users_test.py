# Owns: that programs of users compile with every compiler and standard, and run with each variant, linked in each way.
# May include: Python's standard library; gcc, and clang where it is installed.
# Called by: the build, as the test users_standards (no artifacts given) and a test of each variant.
# Invariants: a warning is an error; a program that must not compile is the control.
"""users_test.py MIMALLOC_H SOURCE... [--artifacts SHARED ARCHIVE OBJECT]"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

C, CXX = ["c11", "c17"], ["c++11", "c++14", "c++17", "c++20"]
COMPILERS = [("gcc", "g++"), ("clang", "clang++")]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Wshadow", "-Wconversion", "-Wcast-qual", "-Werror"]


def run(*words, **kwargs):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
    return done.returncode, done.stdout


def must(*words, **kwargs):
    status, output = run(*words, **kwargs)
    if status != 0:
        sys.exit("%s: status %d\n%s" % (" ".join(words), status, output))
    return output


def command(compiler, source, standard, include):
    """How a source is compiled: one in C also as C++."""
    cc = compiler[1 if standard in CXX else 0]
    if source.endswith(".c") and standard in CXX:
        return [cc, "-x", "c++"] + WARNINGS + ["-std=" + standard, "-O1", "-I", include]
    return [cc] + WARNINGS + ["-std=" + standard, "-O1", "-I", include] + (["-D_POSIX_C_SOURCE=200809L"] if standard in C else [])


def combinations(sources):
    for source in sources:
        for standard in (C if source.endswith(".c") else []) + CXX:
            yield source, standard


def standards(sources, include, work):
    """Every compiler and standard, compiled only."""
    compilers = [c for c in COMPILERS if all(map(shutil.which, c))]
    jobs = [command(c, source, standard, include) + ["-c", source, "-o", os.devnull] for c in compilers for source, standard in combinations(sources)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for words, (status, output) in zip(jobs, pool.map(lambda j: run(*j), jobs)):
            if status != 0:
                yield "%s\n%s" % (" ".join(words), output)
    # All operators that a standard has are the program's own where it includes mimalloc-new-delete.h.
    made = os.path.join(work, "operators.o")
    for standard, count in [("c++11", 8), ("c++14", 10), ("c++17", 20)]:
        source = os.path.join(work, "operators.cc")
        with open(source, "w") as f:
            f.write('#include "mimalloc-new-delete.h"\n')
        must(*command(compilers[0], source, standard, include), "-c", source, "-o", made)
        found = re.findall(r" T (_Z(?:n[wa]|d[la])\w*)$", must("nm", made), re.M)
        if len(found) != count:
            yield "mimalloc-new-delete.h as %s defines %d operators of %d: %s" % (standard, len(found), count, found)
    # Controls: an argument order of the other version is an error in each mode.
    wrong = os.path.join(work, "wrong.c")
    for mode, line in [("", "mi_reallocn_tp(p, int, 2)"), ("#define MI_API_V2\n", "mi_reallocn_tp(int, p, 2)")]:
        with open(wrong, "w") as f:
            f.write("%s#include \"mimalloc.h\"\nint* f(int* p) { return %s; }\n" % (mode, line))
        if run(*command(compilers[0], wrong, "c11", include), "-c", wrong, "-o", os.devnull)[0] == 0:
            yield "%s compiles with %r" % (line, mode)


def variant(sources, include, work, artifacts):
    """As C and as C++, linked with the shared library, with the archive, and with the object before all else; then run."""
    shared, archive, single = artifacts
    ways = [([], [shared, "-Wl,-rpath," + os.path.dirname(shared)]), ([], [archive]), ([single], [])]
    for number, source in enumerate(sources):
        for standard in ["c11", "c++17"] if source.endswith(".c") else ["c++17"]:
            made = os.path.join(work, "%d.o" % number)
            words = command(COMPILERS[0], source, standard, include)
            must(*words, "-c", source, "-o", made)
            for first, last in ways:
                program = os.path.join(work, "program")
                must(words[0], *first, made, *last, "-o", program, "-lpthread")
                status, output = run(program)
                if (status, output) != (0, "ok\n"):
                    yield "%s as %s with %s: status %d\n%s" % (os.path.basename(source), standard, " ".join(first + last), status, output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("header")
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--artifacts", nargs=3)
    args = parser.parse_args()
    include = os.path.dirname(os.path.realpath(args.header))
    sources = [os.path.abspath(s) for s in args.sources]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as work:
        if args.artifacts:
            complaints = list(variant(sources, include, work, [os.path.abspath(a) for a in args.artifacts]))
        else:
            complaints = list(standards(sources, include, work))
    print("\n".join(complaints), end="\n" if complaints else "")
    sys.exit(1 if complaints else 0)


main()
