# Owns: medians, spreads, ratios, the markdown of the result, the picture.
# May include: harness.py.
# Called by: run.py.
# Invariants: a ratio compares two medians of the same session; a failed pair is shown as failed and left out of every mean, which then says how many rows it stands on.
import math
import os
import statistics
import subprocess
import tempfile

from harness import PEERS, say

NOISY = 0.20


def median(values):
    return statistics.median(values)


def spread(values):
    """The interquartile range as a share of the median: one stray run in seven does not move it, two do."""
    if len(values) < 3:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    middle = median(values)
    return (high - low) / middle if middle > 0 else 0.0


def geomean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


class Results:
    def __init__(self, workloads, allocators):
        self.workloads = workloads
        self.allocators = allocators  # names, in the order of the table
        self.samples = {}  # (workload, allocator) -> [Sample]
        self.failures = {}  # (workload, allocator) -> text
        self.whole = True  # every workload, at full scale, in enough rounds: only then is a goal met or missed

    def add(self, workload, allocator, sample):
        self.samples.setdefault((workload, allocator), []).append(sample)

    def values(self, workload, allocator, what):
        if (workload, allocator) in self.failures:
            return []
        return [getattr(s, what) for s in self.samples.get((workload, allocator), [])]

    def middle(self, workload, allocator, what):
        values = self.values(workload, allocator, what)
        return median(values) if values else None

    def spread(self, workload, allocator):
        return spread(self.values(workload, allocator, "wall"))

    def noisy(self, workload):
        return [a for a in self.allocators if self.spread(workload, a) > NOISY]

    def rows(self, kind):
        return [w.name for w in self.workloads if w.kind == kind]

    def ratio(self, workload, allocator, base, what):
        """Of medians; `base` is a name, or "peer" for the least median among the peers."""
        mine = self.middle(workload, allocator, what)
        if base == "peer":
            others = [self.middle(workload, p, what) for p in PEERS if p in self.allocators]
            others = [o for o in others if o is not None]
            other = min(others) if others else None
        else:
            other = self.middle(workload, base, what) if base in self.allocators else None
        return mine / other if mine and other else None

    def ratios(self, kind, allocator, base, what):
        found = {w: self.ratio(w, allocator, base, what) for w in self.rows(kind)}
        return {w: r for w, r in found.items() if r is not None}


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return out + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def _mean_cell(results, kind, allocator, base, what):
    ratios = results.ratios(kind, allocator, base, what)
    mean = geomean(list(ratios.values()))
    if mean is None:
        return "-"
    short = "" if len(ratios) == len(results.rows(kind)) else " (%d of %d rows)" % (len(ratios), len(results.rows(kind)))
    return "%.2f%s" % (mean, short)


def _summary(results):
    out = ["## Geometric means", "",
           "Ratios of medians, lower is better; *best* is, row by row, the best peer (%s)." % ", ".join(p for p in PEERS if p in results.allocators), ""]
    columns = [("time / glibc", "glibc", "wall"), ("time / best", "peer", "wall"), ("CPU / glibc", "glibc", "cpu"), ("RSS / glibc", "glibc", "rss_kib"), ("RSS / best", "peer", "rss_kib")]
    for kind, title in (("micro", "own workloads"), ("real", "real programs")):
        if not results.rows(kind):
            continue
        rows = []
        for a in results.allocators:
            worst = max(results.ratios(kind, a, "peer", "wall").items(), key=lambda item: item[1], default=None)
            rows.append([a] + [_mean_cell(results, kind, a, base, what) for _, base, what in columns] + ["%s %.2f" % worst if worst else "-"])
        out += ["**%s** (%d)" % (title, len(results.rows(kind))), ""] + table(["allocator"] + [c[0] for c in columns] + ["worst row, time / best"], rows)
    return out


def _detail(results, title, note, what, show, kinds=("micro", "real")):
    rows = []
    for kind in kinds:
        for w in results.rows(kind):
            row = [w]
            for a in results.allocators:
                if (w, a) in results.failures:
                    row.append("failed")
                    continue
                value = results.middle(w, a, what)
                if value is None:
                    row.append("-")
                    continue
                cell = show(value)
                if what == "wall":
                    s = results.spread(w, a)
                    cell += " ±%.0f%%%s" % (s * 100, " !" if s > NOISY else "")
                ratio = results.ratio(w, a, "glibc", what)
                if ratio is not None and a != "glibc":
                    cell += " (%.2f)" % ratio
                row.append(cell)
            rows.append(row)
    return ["## " + title, "", note, ""] + table(["workload"] + results.allocators, rows) if rows else []


def _returned(results):
    """The lines "rss <label> <KiB> live <KiB>" of the memory rows."""
    rows = []
    for w in results.rows("memory"):
        labels = {}
        for a in results.allocators:
            for s in results.samples.get((w, a), []):
                for line in s.output.decode().splitlines():
                    if line.startswith("rss "):
                        _, label, rss, _, live = line.split()
                        labels.setdefault((label, int(live)), {}).setdefault(a, []).append(int(rss))
        for (label, live), by_name in labels.items():
            rows.append(["%s: %s" % (w, label), "%.1f" % (live / 1024)] + ["%.1f" % (median(by_name[a]) / 1024) if a in by_name else "-" for a in results.allocators])
    if not rows:
        return []
    return ["## Memory over time", "", "Resident MiB beside the MiB the workload holds at that moment.", ""] + table(["moment", "live"] + results.allocators, rows)


def _two_threads(results):
    rows = []
    for title, one, two, factor in (("private work, 1 → 2 threads", "private-1t", "private-2t", 2), ("hand-over with work, 1 → 2 threads", "handover-1", "handover-2", 1),
                                   ("hand-over of cache lines alone, 1 → 2 threads", "prodcons-0", "prodcons-1", 1)):
        cells = []
        for a in results.allocators:
            t1, t2 = results.middle(one, a, "wall"), results.middle(two, a, "wall")
            cells.append("%.2f×" % (factor * t1 / t2) if t1 and t2 else "-")
        if any(c != "-" for c in cells):
            rows.append([title] + cells)
    return ["## Throughput of two threads over one", ""] + table(["work"] + results.allocators, rows) if rows else []


def _latency(results):
    """The lines "latency <call> <p50> <p99> <p99.99> <worst> <worst with the system>" in ns: the median over the rounds."""
    rows = []
    for w in results.rows("latency"):
        for a in results.allocators:
            calls = {}
            for s in results.samples.get((w, a), []):
                for line in s.output.decode().splitlines():
                    if line.startswith("latency "):
                        _, call, *figures = line.split()
                        calls.setdefault(call, []).append([int(f) for f in figures])
            rows += [["%s, %s" % (a, call)] + ["%.2f" % (median(column) / 1000) for column in zip(*found)] for call, found in calls.items()]
    if not rows:
        return []
    note = "Microseconds, with some 0.03 of the clock in each. A call is *with the system* if the kernel counted a fault, a switch of threads or its own time meanwhile; those stand in the last column only."
    return ["## Single calls", "", note, ""] + table(["allocator, call", "p50", "p99", "p99.99", "worst", "worst with the system"], rows)


def _startup(results, starts):
    rows = []
    for a in results.allocators:
        wall, base = results.middle("start-up", a, "wall"), results.middle("start-up", "glibc", "wall")
        rss, base_rss = results.middle("start-up", a, "rss_kib"), results.middle("start-up", "glibc", "rss_kib")
        if wall and base and rss and base_rss:
            rows.append([a, "%.0f" % (wall / starts * 1e6), "%+.0f" % ((wall - base) / starts * 1e6), "%d" % rss, "%+d" % (rss - base_rss)])
    return ["## Start-up of `true`", ""] + table(["allocator", "µs a start", "added µs", "peak RSS KiB", "added KiB"], rows) if rows else []


def _goals(results):
    def ratios(kind, name, base):
        """Of a row of the table below: the values it stands on, and whether every workload is among them."""
        found = list(results.ratios(kind, name, base[0], base[1]).values()) if name in results.allocators else []
        return found, len(found) == len(results.rows(kind))

    wall = "wall"
    goals = [("release / best peer, own workloads, time", geomean, "micro", "release", ("peer", wall), 1.00),
             ("release / best peer, worst own workload, time", max, "micro", "release", ("peer", wall), 1.15),
             ("release / glibc, worst own workload, time", max, "micro", "release", ("glibc", wall), 1.10),
             ("release / glibc, real programs, time", geomean, "real", "release", ("glibc", wall), 0.95),
             ("release / glibc, real programs, RSS", geomean, "real", "release", ("glibc", "rss_kib"), 1.10),
             ("secure / release, own workloads, time", geomean, "micro", "secure", ("release", wall), 1.35),
             ("secure / release, worst own workload, time", max, "micro", "secure", ("release", wall), 1.60),
             ("secure / release, real programs, time", geomean, "real", "secure", ("release", wall), 1.03),
             ("secure / mimalloc2, own workloads, time", geomean, "micro", "secure", ("mimalloc2", wall), 1.00),
             ("secure / scudo, own workloads, time", geomean, "micro", "secure", ("scudo", wall), 0.60),
             ("secure / scudo, own workloads, RSS", geomean, "micro", "secure", ("scudo", "rss_kib"), 1.00),
             ("strict / release, own workloads, time", geomean, "micro", "strict", ("release", wall), 1.80),
             ("strict / release, real programs, time", geomean, "real", "strict", ("release", wall), 1.10)]
    rows = []
    for text, combine, kind, name, base, limit in goals:
        values, complete = ratios(kind, name, base)
        if values:
            value = combine(values)
            verdict = "not judged" if not results.whole else "missed" if value > limit else "met" if complete else "incomplete"
            rows.append([text, "%d" % len(values), "%.2f" % value, "≤ %.2f" % limit, verdict])
    return ["## Goals", ""] + table(["ratio", "rows", "measured", "goal", ""], rows) if rows else []


def markdown(results, head, starts):
    out = ["# Bench results", ""] + head + [""] + _summary(results) + _goals(results)
    out += _detail(results, "Time", "Median wall milliseconds ± spread (ratio to glibc); `!` marks a spread above 20 % after all reruns.", "wall", lambda v: "%.0f" % (v * 1000))
    out += _detail(results, "CPU", "Median user and system milliseconds (ratio to glibc).", "cpu", lambda v: "%.0f" % (v * 1000))
    out += _detail(results, "Peak RSS", "Median MiB of the largest process (ratio to glibc).", "rss_kib", lambda v: "%.1f" % (v / 1024))
    out += _returned(results) + _two_threads(results) + _latency(results) + _startup(results, starts)
    if results.failures:
        out += ["## Failures", ""] + ["* %s under %s: %s" % (w, a, text.replace("\n", " ")) for (w, a), text in sorted(results.failures.items())] + [""]
    return "\n".join(out).rstrip() + "\n"


def as_json(results, head):
    runs = {}
    for (w, a), samples in results.samples.items():
        runs.setdefault(w, {})[a] = [{"wall": s.wall, "cpu": s.cpu, "rss_kib": s.rss_kib} for s in samples]
    return {"head": head, "runs": runs, "failures": ["%s %s: %s" % (w, a, t) for (w, a), t in results.failures.items()]}


def plot(results, path):
    """Two panels of bars by gnuplot: time and RSS of each row relative to glibc."""
    rows = results.rows("micro") + results.rows("real")
    names = [a for a in results.allocators if a != "glibc"]
    with tempfile.TemporaryDirectory() as directory:
        panels = []
        for what, title in (("wall", "time / glibc"), ("rss_kib", "peak RSS / glibc")):
            data = os.path.join(directory, what)
            with open(data, "w") as f:
                f.write("workload\t" + "\t".join(names) + "\n")
                for w in rows:
                    cells = [results.ratio(w, a, "glibc", what) for a in names]
                    f.write(w + "\t" + "\t".join("?" if c is None else "%.4f" % c for c in cells) + "\n")
            panels.append("set title '%s'\nplot for [i=2:%d] '%s' using i:xtic(1) title columnheader(i), 1 with lines lc 'black' title ''\n" % (title, len(names) + 1, data))
        script = "set terminal svg size 1400,900 font 'sans,11' background 'white'\nset output '%s'\nset datafile separator '\\t'\nset datafile missing '?'\n" % path
        script += "set style data histograms\nset style histogram clustered gap 1\nset style fill solid 0.9\nset xtics rotate by -40\nset logscale y 2\nset grid y\nset key top left horizontal\nset multiplot layout 2,1\n"
        try:
            done = subprocess.run(["gnuplot"], input=script + "".join(panels) + "unset multiplot\n", text=True, capture_output=True)
        except FileNotFoundError:
            say("bench: no gnuplot, no picture")
            return
        if done.returncode != 0:
            say("bench: gnuplot: " + done.stderr.strip()[:300])
