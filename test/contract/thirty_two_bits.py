#!/usr/bin/env python3
# Owns: the library as a 32-bit one on a 64-bit machine: built by gcc -m32, and the contract's rows run with 32-bit programs.
# May include: Python 3.7 and its own library only.
# Called by: the manual targets thirty_two_bits_<variant>, and by hand: thirty_two_bits.py VARIANT.
# Invariants: works in a folder of its own; what the machine lacks is a failure that names the package (gcc-multilib, g++-multilib).
import glob
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.realpath(os.environ.get("MI_LINT_ANCHOR", os.path.join(HERE, "..", "..", "WORKSPACE"))))
# Rows that need more addresses than there are, or a library of this machine's own kind; and, of addresses that differ, the
# system's own share: its 8 random bits of 4 KiB go under in the alignment of an arena.
LEFT_OUT = ("memory/addresses-once-used", "memory/many-addresses-at-once", "memory/commit-on-demand", "limit/address-space", "dlclose/", "seccomp", "at-secure", "limit/", "addresses/", "control")
FLAGS = ["-m32", "-std=gnu11", "-O2", "-g", "-fvisibility=hidden", "-fPIC", "-ftls-model=initial-exec", "-fno-semantic-interposition", "-fno-builtin-malloc", "-fexceptions", "-w"]


def run(command):
    r = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if r.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), r.stdout))


def compiler(folder, name):
    path = os.path.join(folder, name + "-32")
    with open(path, "w") as f:
        # What the programs compute in 64 bits is meant to be cut where a size is of 32.
        f.write("#!/bin/sh\nexec %s -m32 \"$@\" -Wno-psabi -Wno-conversion -Wno-sign-conversion\n" % name)
    os.chmod(path, 0o755)
    return path


def library(folder, variant):
    sources = [s for layer in ("base", "prim/unix", "prim/linux", "sys", "region", "guarded", "heap", "alloc", "api") for s in glob.glob(os.path.join(ROOT, "src", layer, "*.c"))]
    if not sources:
        sys.exit("no source was found in " + ROOT)
    objects = [os.path.join(folder, "%d.o" % i) for i in range(len(sources))]
    include = ["-I.", "-Iinclude", "-Ipolicy/profiles/" + variant]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: run(["gcc"] + FLAGS + include + ["-c", pair[0], "-o", pair[1]]), zip(sources, objects)))
    out = os.path.join(folder, "lib.so")
    run(["gcc", "-m32", "-shared", "-o", out] + objects + ["-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,--version-script=src/api/exports.map", "-lpthread"])
    return out


def rows(folder):
    table = os.path.join(ROOT, "test/contract/rows.txt")
    text = "".join(line for line in open(table) if not any(word in line.split("|")[0] for word in LEFT_OUT))
    if text.count("\n") < 50:
        sys.exit("too few rows are left")
    place = os.path.join(folder, "test", "contract")
    os.makedirs(os.path.dirname(place))
    os.symlink(os.path.join(ROOT, "test", "lib"), os.path.join(folder, "test", "lib"))
    os.makedirs(place)
    for source in glob.glob(os.path.join(ROOT, "test/contract/*.c*")):
        os.symlink(source, os.path.join(place, os.path.basename(source)))
    with open(os.path.join(place, "rows.txt"), "w") as f:
        f.write(text)
    return f.name


def main():
    variant = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        probe = os.path.join(folder, "probe.cc")
        with open(probe, "w") as f:
            f.write("#include <string>\nint main() { return std::string().size(); }\n")
        if subprocess.run(["g++", "-m32", probe, "-o", probe + ".out"], stderr=subprocess.DEVNULL).returncode != 0:
            sys.exit("there is no 32-bit C++ compiler: install g++-multilib")
        lib = library(folder, variant)
        table = rows(folder)
        sys.exit(subprocess.run([sys.executable, os.path.join(ROOT, "test/lib/run_rows.py"), "--rows", table, "--bin", os.path.join(folder, "bin"), "--variant", variant, "--preload", lib,
                                 "--build", "--cc", compiler(folder, "gcc"), "--cxx", compiler(folder, "g++"), "--slow", "2"]).returncode)


main()
