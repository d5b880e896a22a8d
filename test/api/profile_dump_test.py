# Owns: that a real program is profiled from its start to its end: the dumps of both formats are what their readers take, and
# what is estimated from them is what the program has.
# May include: the Python library.
# Called by: the test profile_dump of each variant: profile_dump_test.py <library.so>
# Invariants: the program is this Python with its own allocator off; where `go tool pprof` is there it reads the dumps as well.
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

RATE = 16384
BLOCKS = 20000
SIZE = 1000
# What is still used at the end is kept beyond it.
PROGRAM = "import ctypes, os\nx = [bytes(%d) for i in range(%d)]\nctypes.pythonapi.Py_IncRef(ctypes.py_object(x))\nif os.environ.get('MI_TEST_FORK') and os.fork() == 0:\n  y = [bytes(%d) for i in range(100)]\n" % (SIZE - 33, BLOCKS, SIZE)
failures = []


def check(ok, text):
    if not ok:
        failures.append(text)


def run(library, folder, path, **env):
    return run_with(library, folder, MIMALLOC_PROF="1", MIMALLOC_PROF_SAMPLE_RATE=str(RATE), MIMALLOC_PROF_DUMP_AT_EXIT=path, **env)


def run_with(library, folder, **env):
    settings = dict(os.environ, LD_PRELOAD=library, PYTHONMALLOC="malloc", **env)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    check(done.returncode == 0, "the program ended with %d: %s" % (done.returncode, done.stderr.decode()[-300:]))
    return done.stderr.decode()


def near(what, estimate):
    low, high = BLOCKS * SIZE, BLOCKS * SIZE * 1.6 + 8e6
    check(0.85 * low < estimate < high, "%s estimates %d bytes, not from %d to %d" % (what, estimate, low, high))


def read_text(path):
    lines = open(path).read().split("\n")
    head = re.fullmatch(r"heap profile: +(\d+): (\d+) \[ +(\d+): (\d+)\] @ heap_v2/(\d+)", lines[0])
    check(head is not None, "the first line is %r" % lines[0])
    check(int(head.group(5)) == RATE, "the interval is " + head.group(5))
    sums = [0] * 4
    estimate = 0
    at = 1
    while not lines[at].startswith("#"):
        row = re.fullmatch(r" *(\d+): (\d+) \[ *(\d+): (\d+)\] @((?: 0x[0-9a-f]+)*)", lines[at])
        check(row is not None, "no line of a sample: %r" % lines[at])
        counts = [int(row.group(i)) for i in range(1, 5)]
        sums = [a + b for a, b in zip(sums, counts)]
        if counts[0]:
            estimate += counts[1] / -math.expm1(-counts[1] / counts[0] / RATE)
        at += 1
    check(sums == [int(head.group(i)) for i in range(1, 5)], "the samples add up to %s, not to %s" % (sums, lines[0]))
    names = [line.split(" = ")[0] for line in lines[at:at + 11]]
    check(names == ["# mimalloc heap stats"] + ["# " + n for n in "committed reserved malloc_requested pages pages_abandoned heaps theaps purged "
                                               "profiler_dropped_samples detailed_stats".split()], "the figures are %s" % names)
    check(lines[at + 11] == "MAPPED_LIBRARIES:" and any("r-xp" in line for line in lines[at + 12:]), "no list of modules")
    near("the text", estimate)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            check(key & 7 == 0, "a field of wire type %d" % (key & 7))
        yield key >> 3, value


def packed(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def read_proto(path):
    strings, samples, locations, mappings, period, types = [], [], {}, {}, 0, []
    for field, value in fields(open(path, "rb").read()):
        if field == 1:
            types.append(dict(fields(value)))
        elif field == 2:
            message = dict(fields(value))
            samples.append((list(packed(message[1])), list(packed(message[2]))))
        elif field == 3:
            message = dict(fields(value))
            mappings[message[1]] = message
        elif field == 4:
            message = dict(fields(value))
            locations[message[1]] = message
        elif field == 6:
            strings.append(value.decode())
        elif field == 12:
            period = value
    check(period == RATE, "the period is %d" % period)
    check([(strings[t[1]], strings[t[2]]) for t in types] ==
          [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")], "types %s" % types)
    for ids, values in samples:
        check(len(values) == 4 and all(i in locations for i in ids), "a sample %s %s" % (ids, values))
    for location in locations.values():
        if 2 in location:
            mapping = mappings[location[2]]
            check(mapping[2] <= location[3] < mapping[3], "location %s is not in %s" % (location, mapping))
    check(any("python" in strings[m[5]] for m in mappings.values()), "no module is Python")
    near("the proto", sum(values[3] for _, values in samples))


def pprof(path):
    if shutil.which("go"):
        done = subprocess.run(["go", "tool", "pprof", "-raw", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              env=dict(os.environ, HOME=os.path.dirname(path), PPROF_TMPDIR=os.path.dirname(path)))
        check(done.returncode == 0 and b"Samples:" in done.stdout, "pprof says %s" % done.stderr.decode()[-300:])


def profiler(library, folder):
    every = 4 << 20
    said = run_with(library, folder, MIMALLOC_PROFILE="by", MIMALLOC_PROFILE_SAMPLE_RATE=str(RATE), MIMALLOC_PROFILE_ALLOC_INTERVAL=str(every),
                    MI_TEST_FORK="1")
    check(said == "", "something was said: " + said)
    found = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"by\.(\d+)\.(\d{4})\.pb", name)
        if match:
            found.setdefault(int(match.group(1)), {})[int(match.group(2))] = os.path.join(folder, name)
    check(len(found) == 2, "files of %d processes, not of two" % len(found))
    for numbers in found.values():
        pprof(numbers[max(numbers)])
    numbers = max(found.values(), key=len)
    check(len(numbers) >= 0.85 * BLOCKS * SIZE // every + 1, "files %s" % sorted(numbers))
    read_proto(numbers[max(numbers)])


def main(library):
    library = os.path.abspath(library)
    with tempfile.TemporaryDirectory() as folder:
        text, proto = os.path.join(folder, "text"), os.path.join(folder, "proto")
        check(run(library, folder, text) == "", "something was said")
        read_text(text)
        check(os.stat(text).st_mode & 0o777 == 0o600, "others may read the dump")
        pprof(text)
        run(library, folder, proto, MIMALLOC_PROF_DUMP_FORMAT="Proto")
        read_proto(proto)
        pprof(proto)
        # A child writes its own.
        run(library, folder, "of.%p", MI_TEST_FORK="1")
        check(len([f for f in os.listdir(folder) if re.fullmatch(r"of\.\d+", f)]) == 2, "files %s" % os.listdir(folder))
        # A profiler of the environment: a file at its end, of each process, and one for each interval.
        profiler(library, folder)
        # Not what could harm somebody.
        os.symlink(text, os.path.join(folder, "link"))
        before = open(text).read()
        said = run(library, folder, os.path.join(folder, "link"))
        check("the heap profile cannot be written" in said and open(text).read() == before, "a link was followed: %s" % said)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
