#!/usr/bin/env python3
# Owns: the command line of the real-programs test: each program runs without and with a library, and must do the same.
# May include: runner.py and the tables programs_light.py and programs_heavy.py.
# Called by: the build's test targets (light set, once for each variant; heavy set, by hand), and by people.
# Invariants: a program that is not installed is a failed row that names the package; nothing is skipped.
"""Runs real programs on an allocator.

    run.py --lib libmimalloc-secure.so.3                      the light set on one library
    run.py --lib A.so --lib name=B.so --set all --install     both sets on two, missing packages installed first
    run.py --lib A.so --row git --row redis                   some rows
    run.py --list                                             the table
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs_heavy  # noqa: E402
import programs_light  # noqa: E402
import runner  # noqa: E402

SETS = {"light": programs_light.ROWS, "heavy": programs_heavy.ROWS, "all": programs_light.ROWS + programs_heavy.ROWS}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", action="append", default=[], metavar="[NAME=]PATH", help="library to preload; may be repeated")
    parser.add_argument("--set", choices=SETS, default="light")
    parser.add_argument("--row", action="append", default=[], metavar="NAME", help="only this row, of any set; may be repeated")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set in the runs with the library only")
    parser.add_argument("--install", action="store_true", help="apt-get install the packages of missing programs first")
    parser.add_argument("--table", metavar="FILE", help="write the result table, PROGRAMS.md")
    parser.add_argument("--timeout-factor", type=float, default=3.0, help="multiplies every time limit; the default leaves room on a busy machine")
    parser.add_argument("--verbose", action="store_true", help="a line a row, with times")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not options.lib and not options.list:
        parser.error("--lib is needed")
    return options


def chosen(options):
    rows = SETS[options.set]
    if options.row:
        known = {row.name: row for row in SETS["all"]}
        unknown = [name for name in options.row if name not in known]
        if unknown:
            sys.exit("run.py: no such row: " + ", ".join(unknown))
        rows = tuple(known[name] for name in options.row)
    # The build may cut a test into shards.
    total, index = int(os.environ.get("TEST_TOTAL_SHARDS", "1")), int(os.environ.get("TEST_SHARD_INDEX", "0"))
    if "TEST_SHARD_STATUS_FILE" in os.environ:
        with open(os.environ["TEST_SHARD_STATUS_FILE"], "w"):
            pass
    return rows[index::total]


def variant(argument):
    """(name, path) of a --lib argument; libmimalloc-secure.so.3 is `secure`, and the plain library is `release`."""
    name, equals, path = argument.partition("=")
    if not equals:
        name, path = "", argument
    if not os.path.isfile(path):
        sys.exit("run.py: no such library: " + path)
    if not name:
        stem = re.sub(r"\.so.*$|^lib", "", os.path.basename(path))
        name = "release" if stem == "mimalloc" else stem.replace("mimalloc-", "")
    return name, path


def install(rows):
    packages = sorted({package for row in rows if runner.missing(row) for package in row.packages})
    if not packages:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    print("run.py: installing: " + " ".join(command), flush=True)
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update", "-qq"], env=env, stdin=subprocess.DEVNULL, check=False)
    if subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode != 0:
        print("run.py: installing failed; the rows concerned fail", file=sys.stderr)
    # Servers that the packages start on installation belong to nobody's test.
    for service in ("nginx", "redis-server", "postgresql"):
        if shutil.which("service") and any(package.startswith(service[:5]) for package in packages):
            subprocess.run(["service", service, "stop"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_row(row, variants, place, probe, options):
    """One (row, variant name, reasons, time ratio) for each variant."""
    absent = runner.missing(row)
    if absent:
        reason = "missing: %s; apt-get install %s" % (", ".join(absent), " ".join(row.packages))
        print(runner.explain(row, "missing", [reason], None), end="", flush=True)
        return [(row, name, [reason], None) for name, _ in variants]
    plain = runner.execute(row, place, factor=options.timeout_factor)
    reasons = runner.judge_plain(row, plain)
    if reasons:
        print(runner.explain(row, "plain", reasons, plain), end="", flush=True)
        return [(row, name, reasons, None) for name, _ in variants]
    results = []
    extra = tuple(setting.split("=", 1) for setting in options.env)
    for name, lib in variants:
        loaded = runner.execute(row, place, lib, probe, extra, options.timeout_factor)
        reasons = runner.judge(row, plain, loaded, lib)
        ratio = loaded.cpu / plain.cpu if plain.cpu > 0.02 else None
        results.append((row, name, reasons, ratio))
        if reasons:
            print(runner.explain(row, name, reasons, loaded, lib), end="", flush=True)
        if options.verbose:
            print("%-28s %-12s %-5s cpu %6.2f -> %6.2f s  wall %6.2f -> %6.2f s  %d processes" %
                  (row.name, name, "FAIL" if reasons else "ok", plain.cpu, loaded.cpu, plain.wall, loaded.wall, len(loaded.processes)), flush=True)
    return results


def write_table(path, results):
    base = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    path = os.path.join(base, path) if base else path
    names = list(dict.fromkeys(name for _, name, _, _ in results))
    lines = ["# Real programs on each variant", "",
             "Every program ran without and with the library preloaded; exit code and output agreed, no report was written, and every process",
             "took its `malloc` from the library. The ratio is processor time with the library to processor time without it, of one run: it shows",
             "a program that suffers, not small differences. Made by", "", "    test/override/run.py --set all --install --table test/override/PROGRAMS.md --lib …", "",
             "| program | version | variant | result | time ratio |", "|---|---|---|---|---|"]
    versions = {}
    for row, name, reasons, ratio in sorted(results, key=lambda r: (r[0].name, names.index(r[1]))):
        if row.name not in versions:
            versions[row.name] = runner.version_of(row)
        result = "runs" if not reasons else "FAILS: " + reasons[0].replace("|", "\\|")[:100]
        own = " (its own malloc)" if row.own and not reasons else ""
        lines.append("| %s | %s | %s | %s | %s |" % (row.name, versions[row.name], name, result + own, "%.2f" % ratio if ratio else "–"))
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def main():
    options = arguments()
    if options.list:
        for row in SETS["all"]:
            kind = "light" if row in programs_light.ROWS else "heavy"
            print("%s\t%s\t%s\t%s\t%s" % (kind, row.name, " ".join(row.packages), " ".join(row.argv), " ".join(row.compare)))
        return 0
    rows = chosen(options)
    given = [variant(argument) for argument in options.lib]
    if options.install:
        install(rows)
    results = []
    # The build ends a test that takes too long so; what it started and its directory go all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with runner.Workplace() as place:
        probe = place.build("probe.c", "libprobe.so", "-ldl")
        variants = [(name, place.library(path)) for name, path in given]
        for row in rows:
            results += run_row(row, variants, place, probe, options)
    if options.table:
        write_table(os.path.expandvars(options.table), results)
    failed = sum(1 for result in results if result[2])
    print("programs: %d passed, %d failed" % (len(results) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
