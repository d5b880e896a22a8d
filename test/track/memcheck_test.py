# Owns: that a test program which is right gives Memcheck nothing to report.
# May include: Python's standard library.
# Called by: the build.
# Invariants: Memcheck is known to report from the tables of track_test.py; the program says by its status what it found itself.
"""memcheck_test.py PROGRAM"""
import os
import re
import shutil
import subprocess
import sys


def main():
    program = os.path.abspath(sys.argv[1])
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind on this machine")
        sys.exit(77)
    # What the program allocates and keeps to its end is its own business; what Memcheck says in a child is as well looked for.
    command = ["valgrind", "-q", "--trace-children=yes", "--leak-check=no", "--soname-synonyms=somalloc=nouserintercepts", "--error-exitcode=99", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500)
    text = done.stdout.decode(errors="replace")
    reports = [line for line in text.splitlines() if re.match(r"==\d+== (?:Invalid|Mismatched|Conditional|Use of|Syscall param|Source and dest|Jump to|Process terminating)", line)]
    if done.returncode != 0 or reports:
        print("status %d, it said:\n%s" % (done.returncode, text[:6000]))
        sys.exit(1)


if __name__ == "__main__":
    main()
