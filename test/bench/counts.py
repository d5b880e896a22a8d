# Owns: instructions a call, counted by callgrind.
# May include: harness.py.
# Called by: run.py --callgrind.
# Invariants: a figure is the difference of two runs that differ in the number of batches only, so that start-up and first touches are not in it.
import os
import re
import subprocess

from harness import RunFailed, clean_environment

BATCH = {"pair": 1, "local": 32, "zero": 32, "remote": 32}  # calls a batch, as in trace.c
FEW, MANY = 60, 260  # batches
TRACES = [("pair", 16), ("local", 16), ("local", 64), ("local", 512), ("local", 4096), ("zero", 64), ("remote", 64)]

TITLES = {"pair": "malloc(%d), freed at once", "local": "malloc(%d), 32 at a time", "zero": "calloc(%d), 32 at a time",
          "remote": "malloc(%d), 32 at a time, freed by another thread"}


def inclusive_cost(text, caller):
    """Calls and inclusive instructions of everything `caller` calls, from a callgrind file with compressed names."""
    names = {}
    inside = False
    calls = cost = 0
    lines = iter(text.splitlines())
    for line in lines:
        found = re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line)
        if found:
            if found.group(3):
                names[found.group(2)] = found.group(3)
            if found.group(1) == "fn":
                inside = re.fullmatch(re.escape(caller) + r"(\..*|'\d+)?", names[found.group(2)]) is not None
        elif inside and line.startswith("calls="):
            calls += int(line[6:].split()[0])
            cost += int(next(lines).split()[1])
    return calls, cost


def run(bench, allocator, kind, size, batches, directory):
    out = os.path.join(directory, "callgrind.out")
    if os.path.exists(out):
        os.unlink(out)
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, allocator.program or bench, "@trace", kind, str(size), str(batches)]
    env = dict(clean_environment(), **allocator.environment())
    done = subprocess.run(command, env=env, cwd=directory, capture_output=True, text=True, timeout=120)
    if done.returncode != 0 or not os.path.exists(out):
        raise RunFailed(done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "no output")
    with open(out) as f:
        text = f.read()
    return [inclusive_cost(text, name) for name in ("trace_allocate", "trace_release")]


def count(bench, allocators, directory):
    """Rows for a markdown table: one a trace, "malloc / free" for each allocator."""
    rows = []
    for kind, size in TRACES:
        row = [TITLES[kind] % size]
        for allocator in allocators:
            try:
                few = run(bench, allocator, kind, size, FEW, directory)
                many = run(bench, allocator, kind, size, MANY, directory)
            except (RunFailed, subprocess.TimeoutExpired) as error:
                row.append("failed: %s" % error)
                continue
            cells = []
            for (calls_few, cost_few), (calls_many, cost_many) in zip(few, many):
                if calls_many - calls_few != (MANY - FEW) * BATCH[kind]:
                    cells.append("?")
                else:
                    cells.append("%.1f" % ((cost_many - cost_few) / (calls_many - calls_few)))
            row.append(" / ".join(cells))
        rows.append(row)
    return rows
