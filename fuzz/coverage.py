#!/usr/bin/env python3
# Owns: how much of the sources that a fuzz target is for its kept inputs reach, held against the floors of fuzz/coverage.txt.
# May include: fuzz/targets.py.
# Called by: a person, or the test //fuzz:coverage_test; --write puts what is reached now, less a little, in the table; fuzz/reach.py.
# Invariants: counted are lines, of replays without libFuzzer; a source falls below its floor only when inputs or code have changed. What
# fuzz/only-by-fuzzing.txt says is reached by fuzzing is.
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.path.realpath(os.environ.get("MI_LINT_ANCHOR", __file__))).parent
ROOT = ROOT if (ROOT / "WORKSPACE").exists() else ROOT.parent
TABLE = ROOT / "fuzz" / "coverage.txt"
ONLY = ROOT / "fuzz" / "only-by-fuzzing.txt"
SPARE = 6  # percent between what is reached and the floor that is written: what threads do at once is not always the same
sys.path.insert(0, str(ROOT / "fuzz"))
import targets as table  # noqa: E402


def find_tools():
    for version in ("-19", "-18", "-17", "-16", "-15", "-14", ""):
        tools = ["clang" + version, "llvm-profdata" + version, "llvm-cov" + version]
        if all(map(shutil.which, tools)):
            return tools
    print("skipped: clang with llvm-profdata and llvm-cov is not installed (Debian: clang, llvm)")
    sys.exit(77)


def read_table():
    """(target, variant) -> {source: floor}"""
    rows = {}
    for line in TABLE.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            target, variant, source, floor = line.split()
            rows.setdefault((target, variant), {})[source] = float(floor)
    return rows


def compile_unit(clang, variant, folder, unit, more=()):
    """Without optimisation: what is counted is lines."""
    out = "%s/%s/%s.o" % (folder, variant, unit[:-2].replace("/", "_"))
    os.makedirs(os.path.dirname(out), exist_ok=True)
    if not os.path.exists(out):
        flags = "-std=gnu11 -O0 -g0 -w -fno-builtin -fexceptions -fPIC -pthread -fprofile-instr-generate -fcoverage-mapping -I. -Iinclude".split()
        subprocess.run([clang] + flags + ["-Ipolicy/profiles/" + variant, *more, "-c", unit, "-o", out], cwd=ROOT, check=True)
    return out


def read_profile(tools, program, raw):
    """source -> percent of its lines, and {(source, function)} of what was entered, of the allocator"""
    _, profdata, cov = tools
    subprocess.run([profdata, "merge", "-failure-mode=all", *raw, "-o", program + ".profile"], check=True, stderr=subprocess.DEVNULL)
    told = json.loads(subprocess.run([cov, "export", "-skip-expansions", "-instr-profile", program + ".profile", program], cwd=ROOT, check=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)["data"][0]

    def of_root(name):
        return os.path.relpath(os.path.join(ROOT, name), ROOT)

    entered = {(of_root(f["filenames"][0]), f["name"].split(":")[-1]) for f in told["functions"] if f["count"] > 0}
    return ({of_root(f["filename"]): f["summary"]["lines"]["percent"] for f in told["files"]},
            {e for e in entered if e[0].startswith(("src/", "hardening/"))})


def measure(tools, target, variant, folder):
    """What the kept inputs reach, as read_profile says it"""
    row = table.read(ROOT / "fuzz")[target]
    units = table.allocator(ROOT, row) + table.units(ROOT, target) + ["fuzz/lib/replay.c"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: compile_unit(tools[0], variant, folder, unit), units))
    program = "%s/%s_%s" % (folder, target, variant)
    subprocess.run([tools[0], "-pthread", "-fprofile-instr-generate"] + objects + table.link_flags(row) + ["-o", program], check=True)
    inputs = [str(d) for d in (ROOT / "fuzz" / "corpus" / target, ROOT / "fuzz" / "crashes" / target) if d.is_dir()]
    subprocess.run([program] + inputs, env=dict(os.environ, LLVM_PROFILE_FILE=program + ".raw"), check=True, stdout=subprocess.DEVNULL)
    return read_profile(tools, program, [program + ".raw"])


def read_only():
    """{(source, function)} of fuzz/only-by-fuzzing.txt"""
    return {tuple(line.split()) for line in ONLY.read_text().splitlines() if line.strip() and not line.startswith("#")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="replace the floors")
    write = parser.parse_args().write
    tools, rows, bad, out = find_tools(), read_table(), 0, []
    entered = set()
    with tempfile.TemporaryDirectory() as folder:
        for (target, variant), floors in rows.items():
            reached, functions = measure(tools, target, variant, folder)
            entered |= functions
            for source, floor in floors.items():
                percent = reached.get(source, 0.0)
                out.append("%-16s %-8s %-28s %5.1f" % (target, variant, source, max(0.0, percent - SPARE)))
                if percent < floor and not write:
                    bad += 1
                    print("%s_%s reaches %.1f %% of the lines of %s, the floor is %.1f %%" % (target, variant, percent, source, floor))
    for source, function in sorted(read_only() - entered):
        bad += 1
        print("no kept input comes to %s of %s, which fuzz/only-by-fuzzing.txt has: fuzz/reach.py makes that anew" % (function, source))
    if write:
        head = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
        TABLE.write_text("\n".join(head + out) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
