# Owns: the test of run_cases.py and of the tables of exceptions: what is wrong must be seen, and nothing else left out.
# May include: the standard library of Python; the programs are scripts of sh.
# Called by: the build, as a test.
# Invariants: quiet when all is well.
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Has two cases; `bad` fails where it is sampled. Without names all cases would run.
PROGRAM = """#!/bin/sh
[ "$1" = --list ] && { echo good; echo bad; exit 0; }
[ $# -gt 0 ] || exit 3
for case; do [ $case != bad ] || [ $MIMALLOC_GUARDED_SAMPLE_RATE = 0 ] || exit 1; done
"""
# (table, rate, more arguments, must pass, what is said)
CASES = [
    ("", "1", [], False, "one at a rate of 1: 1"),
    ("", "0", [], True, ""),
    ("one.bad | 1 | * | fails as it should", "1", [], True, ""),
    ("one.bad | 1 | * | fails as it should", "50", [], False, "one at a rate of 50: 1"),
    ("one.bad | 1 50 | other | fails as it should", "1", [], False, "one at a rate of 1: 1"),
    ("one.bad | * | v | fails as it should", "50", [], True, ""),
    ("one.good | * | * | no good reason given", "1", [], False, "one at a rate of 1: 1"),
    ("one.good | * | * | no good reason given", "1", ["--excepted"], True, "one.good passes\n"),
    ("one.bad | * | * | fails as it should", "1", ["--excepted"], True, ""),
    ("one.* | * | * | nothing is left then", "1", [], False, "nothing is left to run"),
    ("one.gone | * | * | fits nothing any more", "1", [], False, "nothing of the name"),
    ("one.gone | * | * | fits nothing any more", "0", ["--some"], True, ""),
    ("one.bad | * | * | why", "1", [], False, "not `name"),
    ("one.bad | * | *", "1", [], False, "not `name"),
]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "one_v")
        table = os.path.join(folder, "table.txt")
        with open(program, "w") as file:
            file.write(PROGRAM)
        os.chmod(program, 0o755)
        for text, rate, more, good, said in CASES:
            with open(table, "w") as file:
                file.write("# A table.\n\n" + text + "\n")
            done = subprocess.run([sys.executable, os.path.join(HERE, "run_cases.py"), "--rate", rate, "--variant", "v", "--exceptions", table] + more + [program],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if (done.returncode == 0) != good or said not in done.stdout or (good and done.stdout != said):
                bad += 1
                print("%s at %s %s: ended with %d\n%s" % (text, rate, more, done.returncode, done.stdout))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
