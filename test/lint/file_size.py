# Owns: the limit on a file's length.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: there are no exceptions.
import tree

LIMIT = 600
PLACES = ("src/", "hardening/", "test/", "fuzz/", "include/")
ENDS = tree.CODE + (".py", ".sh")


def check(files):
    for path, text in files.under(*PLACES, ends=ENDS).items():
        lines = text.count("\n")
        if lines > LIMIT:
            yield "%s: %d lines; split it along a seam that the design names (limit %d)" % (path, lines, LIMIT)


SAMPLES = [{"src/heap/page.c": "\n" * 601}, {"test/unit/a_test.c": "\n" * 700}, {"include/mimalloc/alloc.h": "\n" * 601}]
GOOD = [{"src/heap/page.c": "\n" * 600}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
