#!/usr/bin/env python3
# Owns: the command line of the benches and the order of the runs.
# May include: the modules beside it.
# Called by: a person, or Bazel.
# Invariants: every workload runs under all allocators before the next one starts, in an order drawn anew each round; every output is compared with the one under glibc.
import argparse
import json
import os
import platform
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import counts
import programs
import report
from harness import HERE, PEERS, ROOT, RunFailed, build_bench, check_allocator, find_allocators, install_packages, result_lines, say

MEMORY_ROUNDS = 3  # of the rows whose point is memory: their figures hardly vary and they mostly sleep
MAX_RERUNS = 2


def parse(arguments):
    p = argparse.ArgumentParser(description="Runs workloads under several allocators, paired and interleaved, and prints ratios of time and memory.")
    p.add_argument("--runs", type=int, default=7, help="rounds (a table to keep needs 7 or more)")
    p.add_argument("--workloads", help="comma separated names, or micro, real, memory, latency, startup")
    p.add_argument("--allocators", help="comma separated names")
    p.add_argument("--lib", action="append", default=[], metavar="NAME=PATH[,VAR=VALUE]", help="one more allocator, preloaded from PATH")
    p.add_argument("--bin", action="append", default=[], metavar="NAME=PATH", help="one more allocator, linked into the bench program PATH")
    p.add_argument("--bench", help="the bench program (default: compile it)")
    p.add_argument("--out", help="write the markdown there")
    p.add_argument("--json", help="write every single run there")
    p.add_argument("--plot", help="draw time and memory there, as SVG")
    p.add_argument("--scale", type=int, default=100, help="percent of the fixed work")
    p.add_argument("--seed", type=int, help="of the order of runs")
    p.add_argument("--no-install", action="store_true", help="do not install missing packages")
    p.add_argument("--no-rerun", action="store_true", help="keep noisy rows as they are")
    p.add_argument("--callgrind", action="store_true", help="count instructions a call instead")
    p.add_argument("--list", action="store_true", help="name the workloads and allocators")
    return p.parse_args(arguments)


def choose_workloads(all_workloads, text):
    if not text:
        return all_workloads
    wanted = text.split(",")
    known = {w.name for w in all_workloads} | {w.kind for w in all_workloads}
    for name in wanted:
        if name not in known:
            raise SystemExit("bench: no workload or kind '%s'" % name)
    return [w for w in all_workloads if w.name in wanted or w.kind in wanted]


def choose_allocators(found, text):
    if not text:
        ours = [n for n in found if n not in PEERS]
        for name in PEERS:
            if name not in found:
                say("bench: %s is not installed" % name)
        return [found[n] for n in PEERS + ours if n in found]
    chosen = []
    for name in text.split(","):
        if name not in found:
            raise SystemExit("bench: no allocator '%s' here; there are %s" % (name, ", ".join(found)))
        chosen.append(found[name])
    return chosen


def measure(results, context, workload, allocator, reference):
    pair = (workload.name, allocator.name)
    if pair in results.failures or (allocator.program and workload.kind not in ("micro", "memory", "latency")):
        return  # an allocator linked into the bench program runs no other
    try:
        sample = workload.run(context, allocator)
        lines = result_lines(sample.output.decode(errors="replace"))
        if lines != reference.setdefault(workload.name, lines):
            raise RunFailed("its output differs from the one under glibc")
        results.add(workload.name, allocator.name, sample)
    except RunFailed as error:
        results.failures[pair] = str(error)
        say("bench: %s under %s: %s" % (workload.name, allocator.name, error))


def run_rounds(results, context, workloads, allocators, reference, rounds, order):
    for number in range(rounds):
        start = time.monotonic()
        shuffled = list(workloads)
        order.shuffle(shuffled)
        for w in shuffled:
            if w.kind in ("memory", "latency") and number >= MEMORY_ROUNDS:
                continue
            turn = list(allocators)
            order.shuffle(turn)
            for a in turn:
                measure(results, context, w, a, reference)
        say("bench: round %d of %d, %.0f s" % (number + 1, rounds, time.monotonic() - start))


def rerun_noisy(results, context, workloads, allocators, reference, runs, order):
    for _ in range(MAX_RERUNS):
        noisy = [w for w in workloads if w.kind not in ("memory", "latency") and results.noisy(w.name)]
        if not noisy:
            return
        say("bench: spread above 20 %%, run again beside all samples so far: %s" % ", ".join("%s (%s)" % (w.name, " ".join(results.noisy(w.name))) for w in noisy))
        run_rounds(results, context, noisy, allocators, reference, max(2, runs // 2), order)


def describe(allocators, seed, runs, scale):
    cpu = "unknown processor"
    try:
        with open("/proc/cpuinfo") as f:
            cpu = next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    lines = ["Command: `%s`" % " ".join(["test/bench/run.py"] + [shlex.quote(a.replace(ROOT + "/", "")) for a in sys.argv[1:]]), "",
             "* %d processors, %s, Linux %s, %s %s" % (os.cpu_count(), cpu, platform.release(), *platform.libc_ver()),
             "* %d rounds%s, scale %d %%, order seeded with %d, load average at the start %.2f" % (runs, "" if runs >= 7 else " (too few for a table to keep)", scale, seed, os.getloadavg()[0])]
    versions = []
    for a in allocators:
        owner = ""
        if a.name in PEERS and a.library and shutil.which("dpkg-query"):
            for path in (a.library, os.path.realpath(a.library)):
                package = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True).stdout.split(":")[0]
                if package:
                    owner = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}", package], capture_output=True, text=True).stdout
                    break
        settings = "".join(" %s=%s" % item for item in a.env.items())
        versions.append("%s%s%s" % (a.name, " (%s)" % owner if owner else "", settings))
    return lines + ["* " + ", ".join(versions)]


def write(path, text):
    with open(os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", "."), path), "w") as f:
        f.write(text)


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what runs is ended and removed
    missing = install_packages(not options.no_install)
    if missing:
        say("bench: missing packages: " + " ".join(missing))
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        bench = os.path.realpath(options.bench) if options.bench else build_bench(directory)
        allocators = choose_allocators(find_allocators(options.lib, options.bin), options.allocators)
        all_workloads = programs.bench_workloads(bench) + programs.real_workloads()
        if options.list:
            say("\n".join("%-15s %-8s %s" % (w.name, w.kind, w.what) for w in all_workloads))
            say("allocators: " + ", ".join("%s %s" % (a.name, a.library or a.program) for a in allocators))
            return 0
        usable = []
        for a in allocators:
            try:
                check_allocator(bench, a)
                usable.append(a)
            except RunFailed as error:
                say("bench: %s is left out: %s" % (a.name, error))
        if options.callgrind:
            rows = counts.count(bench, usable, directory)
            table = report.table(["instructions, malloc / free"] + [a.name for a in usable], rows)
            say("\n".join(table))
            if options.out:
                write(options.out, "\n".join(table))
            return 0 if len(usable) == len(allocators) else 1

        workloads = choose_workloads(all_workloads, options.workloads)
        absent = [w for w in workloads if w.needs and not shutil.which(w.needs)]
        for w in absent:
            say("bench: %s is not installed: the row %s is missing" % (w.needs, w.name))
        workloads = [w for w in workloads if w not in absent]
        seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
        head = describe(usable, seed, options.runs, options.scale)
        say("bench: %d workloads, %d allocators, order seeded with %d" % (len(workloads), len(usable), seed))
        programs.write_inputs(directory)
        context = programs.Context(bench, directory, options.scale)
        reference = {}
        warm = report.Results(workloads, [])
        for w in workloads:  # fills the caches of the machine and gives the output to compare with
            measure(warm, context, w, find_allocators([], [])["glibc"], reference)
        results = report.Results(workloads, [a.name for a in usable])
        results.whole = not options.workloads and not absent and options.scale == 100 and options.runs >= 7
        order = random.Random(seed)
        run_rounds(results, context, workloads, usable, reference, options.runs, order)
        if not options.no_rerun and options.runs >= 3:
            rerun_noisy(results, context, workloads, usable, reference, options.runs, order)
        starts = max(10, programs.STARTS * options.scale // 100)
        text = report.markdown(results, head, starts)
        if options.out:
            write(options.out, text)
        else:
            say(text)
        if options.json:
            write(options.json, json.dumps(report.as_json(results, head), indent=1) + "\n")
        if options.plot:
            report.plot(results, os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()), options.plot))
        failed = results.failures or warm.failures or absent or len(usable) != len(allocators)
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
