#!/usr/bin/env python3
# Owns: the test of run_rows.py itself: each kind of wrong outcome must be seen, else every green row is worth nothing.
# May include: Python 3.7 and its own library only; the programs are the system's sh.
# Called by: the test targets.
# Invariants: quiet when all is well.
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# (row without its name, variant, must pass)
CASES = [
    ("sh -c 'exit 0' | glibc | | exit 0", True),
    ("sh -c 'exit 1' | glibc | | exit 0", False),
    ("sh -c 'exit 0' | glibc | | exit 1", False),
    ("sh -c 'echo x >&2' | glibc | | exit 0", False),
    ("sh -c 'echo x >&2' | glibc | | exit 0 ^x$", True),
    ("sh -c 'echo x >&2' | glibc | | exit 0 ^y$", False),
    ("sh -c 'echo x >&2' | glibc | | exit 0 ^x$ not /x/", False),
    ("sh -c 'kill -ABRT $$' | glibc | | exit 0", False),
    ("sh -c 'kill -ABRT $$' | glibc | | SIGABRT", True),
    ("sh -c 'kill -SEGV $$' | glibc | | SIGABRT", False),
    ("sh -c 'exit 0' | glibc | | SIGABRT", False),
    ("sh -c 'exit 134' | glibc | | SIGABRT", False),
    ("sh -c 'echo pointer 0x12; echo glibc: double-free: pointer 0x12 >&2; kill -ABRT $$' | glibc | | SIGABRT ^{name}: double-free: pointer {ptr}", True),
    ("sh -c 'echo pointer 0x12; echo glibc: double-free: pointer 0x123 >&2; kill -ABRT $$' | glibc | | SIGABRT ^{name}: double-free: pointer {ptr}", False),
    ("sh -c 'echo glibc: double-free: pointer 0x12 >&2; kill -ABRT $$' | glibc | | SIGABRT ^{name}: double-free: pointer {ptr}", False),
    ("sh -c 'echo pointer 0x12; echo glibc: interior-free: pointer 0x12 >&2; kill -ABRT $$' | glibc | | SIGABRT ^{name}: double-free: pointer {ptr}", False),
    ("sh -c 'for i in 1 2; do echo glibc: double-free: x >&2; done; kill -ABRT $$' | glibc | | SIGABRT ^{name}: double-free: ", False),
    ("sh -c 'echo glibc: double-frees: x >&2; kill -ABRT $$' | glibc | | SIGABRT", False),
    ("sh -c 'echo glibc: double-free: x >&2; for i in 0 1 2; do echo \"    #$i 0x12 /a b+0x3\" >&2; done; kill -ABRT $$' | glibc | | SIGABRT", True),
    ("sh -c 'echo glibc: double-free: x >&2; for i in 0 2; do echo \"    #$i 0x12\" >&2; done; kill -ABRT $$' | glibc | | SIGABRT", False),
    ("sh -c 'echo glibc: double-free: x >&2; for i in 0 1; do echo \"    #$i 12\" >&2; done; kill -ABRT $$' | glibc | | SIGABRT", False),
    ("sh -c 'sleep 20' | glibc | timeout=0.3 | exit 0", False),
    ("sh -c 'exit 0' | glibc | | any-failure", False),
    ("sh -c 'echo attack: failed; exit 10' | glibc | | neutralised", True),
    ("sh -c 'echo attack: failed: 3 of 9; exit 10' | glibc | | neutralised", True),
    ("sh -c 'exit 10' | glibc | | neutralised", False),
    ("sh -c 'echo attack: failed; exit 0' | glibc | | neutralised", False),
    ("sh -c 'echo attack: succeeded; exit 10' | glibc | | neutralised", False),
    ("sh -c 'echo attack: succeeded; echo attack: failed; exit 10' | glibc | | neutralised", False),
    ("sh -c 'echo attack: succeeded; exit 20' | glibc | | neutralised", False),
    ("sh -c 'echo attack: failed; kill -ABRT $$' | glibc | | neutralised", False),
    ("sh -c 'echo attack: failed; echo x >&2; exit 10' | glibc | | neutralised", False),
    ("sh -c 'echo attack: failed; echo x >&2; exit 10' | glibc | | neutralised ^x$", True),
    ("sh -c 'echo attack: failed; echo x >&2; exit 10' | glibc | | neutralised ^y$", False),
    ("sh -c 'echo attack: succeeded; exit 20' | glibc | | succeeds", True),
    ("sh -c 'echo attack: succeeded; exit 20' | glibc | | out-of-scope", True),
    ("sh -c 'echo attack: failed; exit 10' | glibc | | succeeds", False),
    ("sh -c 'echo attack: failed; exit 10' | glibc | | out-of-scope", False),
    ("sh -c 'exit 20' | glibc | | succeeds", False),
    ("sh -c 'kill -ABRT $$' | glibc | | stopped SIGABRT", True),
    ("sh -c 'echo x >&2; kill -ABRT $$' | glibc | | stopped SIGABRT ^y$", False),
    ("sh -c 'kill -SEGV $$' | glibc | | stopped SIGABRT", False),
    ("sh -c 'echo attack: failed; exit 10' | glibc | | stopped SIGABRT", True),
    ("sh -c 'echo attack: succeeded; exit 20' | glibc | | stopped SIGABRT", False),
    ("sh -c 'exit 0' | glibc | | stopped SIGABRT", False),
    ("sh -c 'kill -ABRT $$' | glibc | | caught SIGABRT", True),
    ("sh -c 'echo x >&2; kill -ABRT $$' | glibc | | caught SIGABRT ^x$", True),
    ("sh -c 'echo x >&2; kill -ABRT $$' | glibc | | caught SIGABRT ^y$", False),
    ("sh -c 'kill -SEGV $$' | glibc | | caught SIGABRT", False),
    ("sh -c 'echo attack: succeeded; kill -ABRT $$' | glibc | | caught SIGABRT", False),
    ("sh -c 'echo attack: failed; exit 10' | glibc | | caught SIGABRT", False),
    ("sh -c 'exit 3' | glibc | | any-failure", True),
    ("sh -c 'test $A_B = 5' | glibc | A_B=5 | exit 0", True),
    ("sh -c 'test $(ulimit -v) = 204800' | glibc | as=200M | exit 0", True),
    ("sh -c 'test -z \"$LD_PRELOAD$MIMALLOC_VERBOSE\"' | glibc | | exit 0", True),
]

# (row without its name, what a table says of it, sampled, must pass)
EXCEPTIONS = [
    ("sh -c 'exit 1' | strict | | exit 0", "case | 1 | * | ends with another status | exit 1", "1", True),
    ("sh -c 'exit 1' | strict | | exit 0", "case | 1 | * | ends with another status | exit 1", "50", False),
    ("sh -c 'exit 0' | strict | | exit 0", "case | * | * | ends with another status | exit 1", "1", False),
    ("sh -c 'exit 1' | strict | | exit 0", "case | * | secure | ends with another status | exit 1", "1", False),
    ("sh -c 'exit 1' | strict | | exit 0", "case | * | strict | ends with another status | exit 1", "1", True),
    ("sh -c 'exit 0' | strict | | exit 0", "other | * | * | there is no such row", "1", False),
    # Then none is left.
    ("sh -c 'exit 0' | strict | | exit 0", "c.* | * | * | left out for nothing", "1", False),
]


def main():
    bad = 0
    env = dict(os.environ, MIMALLOC_VERBOSE="1")
    shell = os.path.realpath("/bin/sh")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(shell, os.path.join(folder, "sh"))
        table = os.path.join(folder, "rows.txt")
        for text, good in CASES:
            with open(table, "w") as f:
                f.write("case | %s\n" % text)
            r = subprocess.run([sys.executable, os.path.join(HERE, "run_rows.py"), "--rows", table, "--bin", folder, "--variant", "glibc"], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            if (r.returncode == 0) != good:
                bad += 1
                print("the runner %s: %s\n%s" % ("refuses" if good else "accepts", text, r.stdout))
            elif good and r.stdout:
                bad += 1
                print("not quiet: %s\n%s" % (text, r.stdout))
        notes = os.path.join(folder, "exceptions.txt")
        for text, exception, rate, good in EXCEPTIONS:
            for path, line in ((table, "case | %s\n" % text), (notes, exception + "\n")):
                with open(path, "w") as f:
                    f.write(line)
            r = subprocess.run([sys.executable, os.path.join(HERE, "run_rows.py"), "--rows", table, "--bin", folder, "--variant", "strict", "--sampled", rate,
                                "--exceptions", notes], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            if (r.returncode == 0) != good:
                bad += 1
                print("at a rate of %s the runner %s: %s with %s\n%s" % (rate, "refuses" if good else "accepts", text, exception, r.stdout))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
