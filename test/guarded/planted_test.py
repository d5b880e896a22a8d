# Owns: that a bug of one byte in a small program is found by sampling, by name, and again by the seed of the report.
# May include: the standard library of Python.
# Called by: the build, as a test: planted_test.py LIBRARY SYMBOLIZE SOURCE...
# Invariants: the rate is that of every process (4000); what a run finds is chance, that one in 100 finds it is not.
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

RUNS = 100
ROUNDS = "300"


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def run(program, library, mode, log, **settings):
    # Where the rate is nobody's choice a fast program has fewer blocks guarded than a run with its seed.
    env = dict(os.environ, LD_PRELOAD=library, MIMALLOC_GUARDED_LOG=log, **{"MIMALLOC_GUARDED_SAMPLE_RATE": "4000", **settings})
    return subprocess.run([program, ROUNDS, mode], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120)


def symbolized(script, path):
    done = subprocess.run([sys.executable, "-B", script, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.stdout


def first_report(program, library, mode, logs):
    """The log and the run that found it."""
    for number in range(1, RUNS + 1):
        log = os.path.join(logs, "run.%d" % number)
        done = run(program, library, mode, log)
        if os.path.getsize(log) > 0:
            return log, done
        # A read beyond the last block of a page meets the guard page of all pages, where there is one: a fault that nothing is known of.
        if done.returncode != 0 and (mode, done.returncode) != ("read", -signal.SIGSEGV):
            fail("%s: run %d ended with %d and no report: %s" % (mode, number, done.returncode, done.stderr))
    return fail("%s: not found in %d runs" % (mode, RUNS))


def check(program, library, script, folder, mode, ends, named, repeats):
    """The bug of one mode is found, by name, and, where nothing else ends the run by chance, again with the seed."""
    logs = os.path.join(folder, mode)
    os.mkdir(logs)
    log, done = first_report(program, library, mode, logs)
    text = open(log).read()
    names = symbolized(script, log)
    if done.returncode != -ends:
        fail("%s: the run with the report ended with %d" % (mode, done.returncode))
    if not re.match(r"mimalloc[\w-]*: overflow: ", text):
        fail("%s: not the report that is expected:\n%s" % (mode, text))
    for pattern in named + [r"\n  allocated by thread \d+:\n    #0 copy_value in \S*store\.c:\d+\n    #1 store_set in "]:
        if not re.search(pattern, names):
            fail("%s: the functions are not named, %s:\n%s" % (mode, pattern, names))

    if not repeats:
        return
    # The same block, in the same round, with the same calls.
    seed = re.search(r"MIMALLOC_GUARDED_SAMPLE_SEED=(\d+)", text).group(1)
    for again in ("again.1", "again.2"):
        other = run(program, library, mode, os.path.join(logs, again), MIMALLOC_GUARDED_SAMPLE_SEED=seed)
        if other.stdout != done.stdout or other.returncode != done.returncode:
            fail("%s: seed %s: %d rounds and %d, then %d rounds and %d" % (mode, seed, done.stdout.count("\n"), done.returncode,
                                                                          other.stdout.count("\n"), other.returncode))
    grouped = symbolized(script, logs)
    if [count for count in re.findall(r"(?m)^(\d+) times?$", grouped) if int(count) % 3 != 0]:
        fail("%s: the runs of one seed are not equal:\n%s" % (mode, grouped))


def main():
    library, script, sources = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "store")
        subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", program] + [s for s in sources if s.endswith(".c")], check=True)
        plain = "guarded" in os.path.basename(library)
        check(program, library, script, folder, "read", signal.SIGSEGV, [r"read by thread \d+\n    #0 store_sum in \S*store\.c:\d+\n"], plain)
        check(program, library, script, folder, "write", 0 if plain else signal.SIGABRT, [], True)

        # None of this without sampling.
        quiet = os.path.join(folder, "quiet")
        for mode in ("read", "write"):
            run(program, library, mode, quiet, MIMALLOC_GUARDED_SAMPLE_RATE="0")
        if os.path.getsize(quiet) > 0:
            fail("a report at rate 0:\n%s" % open(quiet).read())
        # One process in two: some sample and some do not. That all of these do alike has a chance of 5 in 10^10.
        count = 32
        for number in range(count):
            run(program, library, "read", os.path.join(folder, "fraction.%d" % number), MIMALLOC_GUARDED_FRACTION="2", MIMALLOC_GUARDED_SAMPLE_RATE="50")
        found = sum(os.path.getsize(path) > 0 for path in glob.glob(os.path.join(folder, "fraction.*")))
        if found == 0 or found == count:
            fail("of %d processes %d sampled, with a fraction of 2" % (count, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
