#!/usr/bin/env python3
# Owns: which functions of the allocator only fuzzing comes to: those that the kept inputs enter, and no unit test and no row of the contract.
# May include: fuzz/coverage.py, fuzz/targets.py.
# Called by: a person, fuzz/reach.py, which writes fuzz/only-by-fuzzing.txt; it takes some minutes on an idle machine.
# Invariants: all are compiled alike, by clang without optimisation, under the release variant, which has the targets of coverage.txt that it has
# there: the stream over the whole interface. A program of a test counts for what it
# entered until it ended well: what is entered only on the way to a death is not known to be.
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import coverage  # noqa: E402
import targets as table  # noqa: E402

ROOT = coverage.ROOT
TIMEOUT = 900
WHOLE = {"layers": []}
VARIANT = "release"
HEAD = """# Functions of the allocator that the kept inputs of the fuzz targets enter, and no unit test and no row of the contract: source, function.
# fuzz/reach.py makes this anew, by llvm-cov, of the release variant: after new tests or inputs, whose functions come or go.
# //fuzz:coverage_test fails when the kept inputs lose one. A function here asks for a unit test;
# those of src/api have theirs in test/api, which is not counted.
"""


def read_names(tools, profile, raws):
    """The names of the functions that were entered: they are unique in the allocator, which a check of the tree sees to."""
    if not raws:
        return set()
    subprocess.run([tools[1], "merge", "-failure-mode=all", *raws, "-o", profile], check=True, stderr=subprocess.DEVNULL)
    told = subprocess.run([tools[1], "show", "-all-functions", profile], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name.split(":")[-1] for name, count in re.findall(r"^  (\S+):\n    Hash: .*\n    Counters: .*\n    Function count: (\d+)$", told, re.M)
            if int(count) > 0}


def link_options():
    """What test/unit/BUILD.bazel links a test with besides."""
    text = re.search(r"^_SPECIAL = (\{.*?^\})", (ROOT / "test/unit/BUILD.bazel").read_text(), re.S | re.M).group(1)
    names = {"INTERNALS_WITH_API": [], "VARIANT_NAMES": [], "__builtins__": {}}
    return {name: row.get("linkopts", []) for name, row in eval(text, names).items()}


def of_unit_tests(tools, variant, folder, objects):
    """The names of the functions that they enter."""
    archive = "%s/%s/allocator.a" % (folder, variant)
    subprocess.run(["ar", "rcs", archive] + objects, check=True)
    special = link_options()

    def run(test):
        name = test.stem
        program = "%s/%s_%s" % (folder, name, variant)
        own = coverage.compile_unit(tools[0], variant, folder, str(test.relative_to(ROOT)))
        subprocess.run([tools[0], "-pthread", "-fprofile-instr-generate", own, archive] + special.get(name, []) + ["-lm", "-o", program], check=True)
        raw = program + ".raws"
        os.makedirs(raw, exist_ok=True)
        try:
            subprocess.run([program], env=dict(os.environ, LLVM_PROFILE_FILE=raw + "/%p", MIMALLOC_GUARDED_SAMPLE_RATE="0"), cwd=folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            print("%s under %s was ended after %d seconds" % (name, variant, TIMEOUT), file=sys.stderr)
        os.remove(program)
        raws = ["%s/%s" % (raw, f) for f in os.listdir(raw)]
        if not raws:
            print("%s under %s told nothing" % (name, variant), file=sys.stderr)
        return raws

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        raws = sum(pool.map(run, sorted((ROOT / "test" / "unit").glob("*_test.c"))), [])
    return read_names(tools, archive + ".profile", raws)


def of_contract(tools, variant, folder, objects):
    """The same of its programs, preloaded with a library that counts; each as rows.txt says, whatever it ends with."""
    library = "%s/libcounts-%s.so" % (folder, variant)
    own = [coverage.compile_unit(tools[0], variant, folder, str(u.relative_to(ROOT))) for u in sorted((ROOT / "src/api").glob("override*.c")) if
           "cxx" not in u.name]
    subprocess.run([tools[0], "-shared", "-pthread", "-fprofile-instr-generate"] + objects + own + ["-o", library], check=True)
    raw = "%s/contract_%s.raws" % (folder, variant)
    os.makedirs(raw, exist_ok=True)
    calls = set()
    for line in (ROOT / "test/contract/rows.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            _, call, _, how, _ = [part.strip() for part in line.split("|", 4)]
            source = ROOT / "test" / "contract" / (call.split()[0] + ".c")
            if source.exists() and "{" not in call and not re.search(r"nopreload|setuid|nobody|system|noproc|=\w+-", how):
                calls.add((call, how))
    for name in sorted({call.split()[0] for call, _ in calls}):
        subprocess.run(["cc", "-std=gnu11", "-O1", "-w", "-fno-builtin", "-pthread", "-I.", "-Iinclude", "test/contract/%s.c" % name, "-o",
                        "%s/contract_%s" % (folder, name), "-ldl"], cwd=ROOT, check=True)

    def run(row):
        words = row[0].split()
        environment = dict(w.split("=", 1) for w in row[1].split() if w.startswith("MIMALLOC_") and "=" in w)
        try:
            subprocess.run(["%s/contract_%s" % (folder, words[0])] + words[1:],
                           env=dict(os.environ, LD_PRELOAD=library, LLVM_PROFILE_FILE=raw + "/%4m", **environment), cwd=folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        except subprocess.TimeoutExpired:
            pass

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, sorted(calls)))
    return read_names(tools, library + ".profile", ["%s/%s" % (raw, f) for f in os.listdir(raw)])


def kept(file, make):
    """What was found before, or else now."""
    if not file.exists():
        file.write_text(json.dumps(sorted(make())))
    return json.loads(file.read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, help="a folder, in which parts that are done stay done, to go on after an interruption")
    arguments = parser.parse_args()
    tools, fuzzed, tested = coverage.find_tools(), set(), set()
    with tempfile.TemporaryDirectory() as folder:
        work = arguments.work or pathlib.Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        for target, variant in coverage.read_table():
            if variant == VARIANT:
                fuzzed |= set(map(tuple, kept(work / ("%s.json" % target), lambda: coverage.measure(tools, target, VARIANT, folder)[1])))

        def objects():
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                return list(pool.map(lambda unit: coverage.compile_unit(tools[0], VARIANT, folder, unit), table.allocator(ROOT, WHOLE)))

        for kind, look in (("unit-tests", of_unit_tests), ("contract", of_contract)):
            found = kept(work / (kind + ".json"), lambda: look(tools, VARIANT, folder, objects()))
            print("%s: %d functions" % (kind, len(found)), flush=True)
            tested |= set(found)
    only = sorted(f for f in fuzzed if f[1] not in tested)
    coverage.ONLY.write_text(HEAD + "".join("%-34s %s\n" % row for row in only))
    print("fuzzing: %d functions, %d of them alone" % (len(fuzzed), len(only)))


main()
