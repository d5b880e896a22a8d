# Owns: the check that the map from the contract's claims to tests names tests that exist, and every row of the contract.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: a name is looked up where it is defined; controls, which show that a test can fail, need no claim.
import re

import tree

MAP = "test/contract/COVERAGE.md"
TABLES = {"": "test/contract/rows.txt", "death": "test/death/rows.txt", "stress": "test/stress/rows.txt"}
PLACES = ("test/unit/", "test/api/", "test/fault/")


def row_names(text):
    return {line.split("|")[0].strip() for line in text.splitlines() if "|" in line and not line.startswith("#")}


def unit_names(files):
    found = set()
    for path, text in files.under(*PLACES, ends=(".c", ".cc")).items():
        stem = path.rsplit("/", 1)[1].rsplit(".", 1)[0]
        found |= {"%s.%s" % (stem, name) for name in re.findall(r"^MI_TEST\((\w+)\)", text, re.M)}
    return found


def has_target(files, name):
    stem = name.rsplit("_", 1)[0]
    return any('name = "%s"' % name in t or 'name = "%s_" +' % stem in t for t in files.under("test/", ends=("BUILD.bazel",)).values())


def check(files):
    text = files.get(MAP)
    if text is None:
        yield MAP + ": is missing"
        return
    tables = {word: row_names(files.get(path, "")) for word, path in TABLES.items()}
    units = unit_names(files)
    claimed = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("| ") or line.startswith("| claim"):
            continue
        where = "%s:%d: " % (MAP, number)
        cells = [c.strip() for c in line.strip("|").split("|")]
        names = re.findall(r"`([^`]+)`", cells[-1])
        if len(cells) != 2 or not names:
            yield where + "a claim has one cell, and one with its tests"
        for name in names:
            word, colon, rest = name.partition(":")
            if word == "target":
                if not has_target(files, rest):
                    yield where + "no target " + rest
            elif re.fullmatch(r"\w+\.\w+", name):
                if name not in units:
                    yield where + "no test " + name
            else:
                rows = tables.get(word if colon else "", set())
                pattern = rest if colon else name
                hits = {r for r in rows if r == pattern or pattern.endswith("*") and r.startswith(pattern[:-1])}
                if not hits:
                    yield where + "no row " + name
                claimed |= hits if not colon else set()
    for row in sorted(tables[""] - claimed):
        if not re.search(r"(^|/)control(/|$)", row):
            yield "%s: row %s of %s is claimed by nothing" % (MAP, row, TABLES[""])


ROWS = {TABLES[""]: "a/b | p | ours | | exit 0\na/control | p | glibc | | any-failure\n", "test/unit/x_test.c": "MI_TEST(y) {\n"}
HEAD = "| claim | tests |\n|---|---|\n"
SAMPLES = [
    ROWS,
    {**ROWS, MAP: HEAD + "| one | `a/b` `a/c` |\n"},
    {**ROWS, MAP: HEAD + "| one | `x_test.y` |\n"},
    {**ROWS, MAP: HEAD + "| one | `a/b` `x_test.z` |\n"},
    {**ROWS, MAP: HEAD + "| one | `a/b` |\n| two | none |\n"},
    {**ROWS, MAP: HEAD + "| one | `a/b` `target:t` |\n"},
    {**ROWS, MAP: HEAD + "| one | `a/b` `death:t` |\n"},
]
GOOD = [{**ROWS, "test/x/BUILD.bazel": 'name = "t"', MAP: HEAD + "| one | `a/*` `x_test.y` `target:t` |\n"}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
