# Owns: what the lint checks share: the files of the tree, and running a check on the tree and on its bad samples.
# May include: Python's standard library.
# Called by: every check of test/lint.
# Invariants: reads the checkout itself, so that a new folder is looked at without being listed anywhere; changes nothing.
"""A check is a function `check(tree)` that yields complaints, and SAMPLES: small trees that it must complain about, and GOOD: some
that it must not. `main` runs the samples first: a check that finds nothing in them is broken, and says nothing about the tree."""
import os
import sys

# Folders with text of ours. Everything else at the top is looked at as single files.
FOLDERS = (".ci", "docs", "fuzz", "hardening", "include", "packaging", "policy", "src", "test", "tools")
CODE = (".c", ".h", ".cc", ".def", ".inc")
STUBS = "policy/build/stubs/"


def root():
    """The checkout. A build's copy of a file is a link to the checkout's own."""
    here = os.path.realpath(os.environ.get("MI_LINT_ANCHOR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "WORKSPACE")))
    return os.path.dirname(here)


def replace_table(rows, page, begin, end, section):
    """Puts `section` of the text of `rows` between two markers of `page`: what a check does that is called with --write."""
    with open(os.path.join(root(), rows), encoding="utf-8") as f:
        wanted = section(f.read())
    path = os.path.join(root(), page)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit("%s: the markers are missing" % page)
    before, _, rest = text.partition(begin)
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + begin + wanted + end + rest.partition(end)[2])


class Tree(dict):
    """Path relative to the root -> text."""

    def under(self, *prefixes, ends=()):
        return {p: t for p, t in sorted(self.items()) if p.startswith(prefixes) and (not ends or p.endswith(tuple(ends)))}

    def code(self, *prefixes):
        return self.under(*(prefixes or ("src/", "hardening/")), ends=CODE)


def read(top):
    tree = Tree()
    names = [n for n in os.listdir(top) if os.path.isfile(os.path.join(top, n))]
    for folder in FOLDERS:
        for path, folders, files in os.walk(os.path.join(top, folder)):
            folders[:] = [f for f in folders if f not in ("__pycache__", ".git") and not os.path.islink(os.path.join(path, f))]
            names += [os.path.relpath(os.path.join(path, f), top) for f in files]
    for name in names:
        if name.endswith((".swp", "~", ".pyc")) or name in (".bazelrc.user", ".git"):
            continue
        try:
            with open(os.path.join(top, name), encoding="utf-8") as f:
                tree[name] = f.read()
        except (UnicodeDecodeError, OSError):
            continue
    return tree


def main(check, samples, good=()):
    broken = []
    for number, sample in enumerate(samples):
        if not list(check(Tree(sample))):
            broken.append("bad sample %d of the check passes it: %s" % (number + 1, ", ".join(sorted(sample))))
    for number, sample in enumerate(good):
        for complaint in check(Tree(sample)):
            broken.append("good sample %d of the check fails it: %s" % (number + 1, complaint))
    if not samples:
        broken.append("the check has no bad sample")
    tree = read(root())
    if not tree.code():
        broken.append("no source was found in " + root())
    complaints = broken + sorted(set(check(tree)))
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)
