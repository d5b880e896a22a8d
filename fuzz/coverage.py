#!/usr/bin/env python3
# Owns: how much of the sources that a fuzz target is for its kept inputs reach, held against the floors of fuzz/coverage.txt.
# May include: fuzz/targets.py.
# Called by: a person, or the test //fuzz:coverage_test; --write puts what is reached now, less a little, in the table.
# Invariants: counted are lines, of replays without libFuzzer; a source falls below its floor only when inputs or code have changed.
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


def measure(tools, target, variant, folder):
    """source -> percent of its lines"""
    clang, profdata, cov = tools
    # Without optimisation: what is counted is lines.
    flags = ("-std=gnu11 -O0 -g0 -w -fno-builtin -fexceptions -pthread -fprofile-instr-generate -fcoverage-mapping -I. -Iinclude -Ipolicy/profiles/"
             + variant).split()

    def compile(unit):
        out = "%s/%s/%s.o" % (folder, variant, unit[:-2].replace("/", "_"))
        os.makedirs(os.path.dirname(out), exist_ok=True)
        if not os.path.exists(out):
            subprocess.run([clang] + flags + ["-c", unit, "-o", out], cwd=ROOT, check=True)
        return out

    row = table.read(ROOT / "fuzz")[target]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile, table.allocator(ROOT, row) + table.units(ROOT, target) + ["fuzz/lib/replay.c"]))
    program = "%s/%s_%s" % (folder, target, variant)
    subprocess.run([clang, "-pthread", "-fprofile-instr-generate"] + objects + table.link_flags(row) + ["-o", program], check=True)
    inputs = [str(d) for d in (ROOT / "fuzz" / "corpus" / target, ROOT / "fuzz" / "crashes" / target) if d.is_dir()]
    subprocess.run([program] + inputs, env=dict(os.environ, LLVM_PROFILE_FILE=program + ".raw"), check=True, stdout=subprocess.DEVNULL)
    subprocess.run([profdata, "merge", program + ".raw", "-o", program + ".profile"], check=True)
    told = json.loads(subprocess.run([cov, "export", "-summary-only", "-instr-profile", program + ".profile", program], cwd=ROOT, check=True,
                                     stdout=subprocess.PIPE, text=True).stdout)
    return {os.path.relpath(os.path.join(ROOT, f["filename"]), ROOT): f["summary"]["lines"]["percent"] for f in told["data"][0]["files"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="replace the floors")
    write = parser.parse_args().write
    tools, rows, bad, out = find_tools(), read_table(), 0, []
    with tempfile.TemporaryDirectory() as folder:
        for (target, variant), floors in rows.items():
            reached = measure(tools, target, variant, folder)
            for source, floor in floors.items():
                percent = reached.get(source, 0.0)
                out.append("%-16s %-8s %-28s %5.1f" % (target, variant, source, max(0.0, percent - SPARE)))
                if percent < floor and not write:
                    bad += 1
                    print("%s_%s reaches %.1f %% of the lines of %s, the floor is %.1f %%" % (target, variant, percent, source, floor))
    if write:
        head = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
        TABLE.write_text("\n".join(head + out) + "\n")
    return 1 if bad else 0


sys.exit(main())
