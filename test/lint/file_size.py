# Owns: the limit on a file's length.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: an exception has a reason, and goes when its file has shrunk.
import tree

LIMIT = 600
PLACES = ("src/", "hardening/", "test/", "fuzz/", "include/")
ENDS = tree.CODE + (".py", ".sh")

# path: why it is one file.
EXCEPTIONS = {
    "include/mimalloc.h": "programs include this one name, and every symbol is documented where it is declared",
}


def check(files):
    found = files.under(*PLACES, ends=ENDS)
    for path, text in found.items():
        lines = text.count("\n")
        if lines > LIMIT and path not in EXCEPTIONS:
            yield "%s: %d lines; split it along a seam that the design names (limit %d)" % (path, lines, LIMIT)
    for path in EXCEPTIONS:
        if path in found and found[path].count("\n") <= LIMIT:
            yield "%s: needs no exception any more" % path


SAMPLES = [{"src/heap/page.c": "\n" * 601}, {"test/unit/a_test.c": "\n" * 700}, {"include/mimalloc.h": "\n"}]
GOOD = [{"src/heap/page.c": "\n" * 600}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
