# Owns: running test programs with every allocation guarded, or one in so many, but for the cases that a table excepts.
# May include: the standard library of Python; exceptions.py.
# Called by: the build, as a test; by hand with --excepted.
# Invariants: a case is left out for a reason that the table says, and for no other.
"""run_cases.py --rate N --variant NAME --exceptions TABLE [--some] [--excepted] PROGRAM...

A program is one of test/lib/test.h; its file is `<name>_<variant>`, and a name in the table is `<name>.<case>`. With --excepted the
cases that are left out are run instead, one by one, and those that pass are named: they need no row."""
import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
import exceptions  # noqa: E402

SKIPPED = 77
JOBS = 2
# So that what is sampled is the same in each run, but for what threads do.
SEED = "77"


def run(program, cases, rate, timeout):
    env = dict(os.environ, MIMALLOC_GUARDED_SAMPLE_RATE=rate, MIMALLOC_GUARDED_SAMPLE_SEED=SEED)
    try:
        done = subprocess.run([program] + cases, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as late:
        return "no end in %d s" % timeout, (late.stdout or b"").decode("utf-8", "replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", required=True)
    parser.add_argument("--variant", required=True)
    parser.add_argument("--exceptions", required=True)
    parser.add_argument("--some", action="store_true", help="the table has rows of other programs too")
    parser.add_argument("--excepted", action="store_true")
    parser.add_argument("--timeout", type=int, default=240, help="seconds for each program")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args()
    cases = {}
    # As they are given: reports have the path that a program was started by in each line.
    for path in args.programs:
        name, _, variant = os.path.basename(path).rpartition("_" + args.variant)
        if variant != "" or not name:
            sys.exit("%s is no program of %s" % (path, args.variant))
        listed = subprocess.run([path, "--list"], stdout=subprocess.PIPE, check=True).stdout.decode()
        cases[name] = (path, listed.split())
    table = exceptions.read(args.exceptions, [name + "." + case for name, (_, listed) in cases.items() for case in listed], not args.some)
    jobs = []
    for name, (path, listed) in cases.items():
        kept = [case for case in listed if not exceptions.of(table, name + "." + case, args.rate, args.variant)]
        if args.excepted:
            jobs += [(name, path, [case]) for case in listed if case not in kept]
        elif kept:
            jobs.append((name, path, kept))
    if not jobs and not args.excepted:
        sys.exit("nothing is left to run")
    failed = 0
    with ThreadPoolExecutor(JOBS) as pool:
        for (name, _, listed), (status, output) in zip(jobs, pool.map(lambda job: run(job[1], job[2], args.rate, args.timeout), jobs)):
            good = status in (0, SKIPPED)
            if args.excepted and good:
                print("%s.%s passes" % (name, listed[0]))
            elif not args.excepted and not good:
                failed += 1
                print("%s at a rate of %s: %s\n%s" % (name, args.rate, status, output[-4000:]), end="")
            elif args.verbose:
                print("%s: %d cases" % (name, len(listed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
