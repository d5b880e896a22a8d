# Owns: what sampling costs in instructions: nothing at rate 0, no more than the decision on the path, and 2 % of a program at 4000.
# May include: the standard library of Python; test/bench/counts.py and what that needs.
# Called by: the build, as a test: cost_test.py VARIANT LIBRARY BENCH COUNTS.PY SOURCE...
# Invariants: counts, never times; runs have a seed and so sample the same blocks each time. What the system does for a guarded block
# is not among the instructions; policy/decisions/0025 has the times.
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

# More than one in so many of a program's instructions, and it is felt.
SHARE = 0.02
# Instructions of a guarded block from its allocation to its free, and those that a countdown may take of each allocation.
BLOCK = {"guarded": 11000, "secure": 19000}
DECISION = 1.5
RARE = 10**9
FEW, MANY = 60, 40060

failures = []


def check(what, condition):
    print("%s: %s" % ("ok" if condition else "FAILED", what))
    if not condition:
        failures.append(what)


def callgrind(command, library, rate, folder):
    """The output of callgrind for a run, as text."""
    out = os.path.join(folder, "callgrind.out")
    env = {k: v for k, v in os.environ.items() if not k.startswith("MIMALLOC_")}
    env.update(LD_PRELOAD=library, MIMALLOC_GUARDED_SAMPLE_RATE=str(rate), MIMALLOC_GUARDED_SAMPLE_SEED="77")
    subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out] + command, env=env, check=True, timeout=300,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(out) as file:
        return file.read()


def pairs(counts, bench, library, rate, folder):
    """Instructions of one malloc and its free, in a loop that does nothing else, without the start of the process."""
    cost = []
    for batches in (FEW, MANY):
        text = callgrind([bench, "@trace", "pair", "16", str(batches)], library, rate, folder)
        found = [counts.inclusive_cost(text, name) for name in ("trace_allocate", "trace_release")]
        if [calls for calls, _ in found] != [batches, batches]:
            sys.exit("the calls were not counted: %s" % found)
        cost.append(sum(instructions for _, instructions in found))
    return (cost[1] - cost[0]) / (MANY - FEW)


def whole(program, rounds, library, rate, folder):
    text = callgrind([program, str(rounds), "right"], library, rate, folder)
    return int(re.search(r"(?m)^(?:summary|totals): (\d+)", text).group(1))


def main():
    variant, library, bench, counts_path = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), os.path.abspath(sys.argv[4])
    if platform.machine() != "x86_64" or not shutil.which("valgrind"):
        print("callgrind is not there, or has not this machine's figures: nothing was counted")
        return 77
    sys.path.insert(0, os.path.dirname(counts_path))
    import counts  # noqa: E402

    with tempfile.TemporaryDirectory() as folder:
        off = pairs(counts, bench, library, 0, folder)
        rare = pairs(counts, bench, library, RARE, folder)
        usual = pairs(counts, bench, library, 4000, folder)
        check("%s: malloc and free take %.2f instructions at rate 0, and %.2f where one in %d is sampled: %.2f more, at most %.1f" %
              (variant, off, rare, RARE, rare - off, DECISION), rare - off <= DECISION)
        block = (usual - rare) * 4000
        check("a guarded block takes %.0f instructions, at most %d" % (block, BLOCK[variant]), block <= BLOCK[variant])
        # Else nothing was sampled, and nothing counted.
        check("… and at least 1000", block >= 1000)

        program = os.path.join(folder, "store")
        subprocess.run(["cc", "-g", "-O2", "-o", program] + [s for s in sys.argv[5:] if s.endswith(".c")], check=True)
        few = [whole(program, 1, library, rate, folder) for rate in (0, 4000)]
        many = [whole(program, 101, library, rate, folder) for rate in (0, 4000)]
        share = (many[1] - few[1]) / (many[0] - few[0]) - 1
        check("a program takes %.2f %% more instructions at rate 4000, at most %.0f %%" % (100 * share, 100 * SHARE), share <= SHARE)
        check("… and more than none", share > 0)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
