# Owns: that policy/messages.md tells the kinds of reports as policy/violations.def has them, and the tests know all of them.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: a row that cannot be read is a fault, not a row less.
import re

import tree

DEF = "policy/violations.def"
DOC = "policy/messages.md"
RUNNER = "test/lib/run_rows.py"
ROW = re.compile(r'^V\((\w+), "([a-z-]+)", (E\w+), (OPTION|ABORT|NEVER), (OPTION|ABORT|NEVER), "([^"]+)"\)$', re.M)
SHOWN = re.compile(r"^\| `([a-z-]+)` \|.*\|$", re.M)
ACTION = {"OPTION": "option", "ABORT": "abort", "NEVER": "none"}


def check(files):
    text = files.get(DEF, "")
    rows = ROW.findall(text)
    if len(rows) != len(re.findall(r"^V\(", text, re.M)):
        yield "%s: a row is not understood" % DEF
    expected = {}
    for symbol, word, number, lenient, hardened, meaning in rows:
        if word != symbol.replace("_", "-"):
            yield "%s: %s has another word, %s" % (DEF, symbol, word)
        expected[word] = "| `%s` | %s | %s | %s | %s |" % (word, number, ACTION[lenient], ACTION[hardened], meaning)
    section = files.get(DOC, "").partition("\n## Kinds\n")[2].partition("\n## ")[0]
    lines = {match.group(1): match.group(0) for match in SHOWN.finditer(section)}
    for word, line in expected.items():
        if lines.get(word) != line:
            yield "%s: the row of %s is to be: %s" % (DOC, word, line)
    for word in sorted(set(lines) - set(expected)):
        yield "%s: there is no kind %s" % (DOC, word)
    kinds = re.search(r'^KINDS = \((.*?)\)\.split\(\)$', files.get(RUNNER, ""), re.M | re.S)
    known = " ".join(re.findall(r'"([^"]*)"', kinds.group(1))).split() if kinds else []
    if known != list(expected):
        yield "%s: KINDS is not the list of %s" % (RUNNER, DEF)


A = 'V(a_b, "a-b", EINVAL, OPTION, ABORT, "What it is.")\n'
A_LINE = "| `a-b` | EINVAL | option | abort | What it is. |\n"
KINDS = 'KINDS = ("a-b "\n         "").split()\n'


def sample(rows, lines, kinds=KINDS):
    return {DEF: rows, DOC: "# M\n\n## Kinds\n\n| kind |\n" + lines + "\n## Order\n", RUNNER: kinds}


SAMPLES = [
    sample(A, ""),
    sample(A, A_LINE.replace("abort", "option")),
    sample(A, A_LINE.replace("What", "Where")),
    sample(A, A_LINE + A_LINE.replace("a-b", "c")),
    sample(A.replace("ABORT", "DIE"), A_LINE),
    sample(A.replace('"a-b"', '"ab"'), A_LINE.replace("a-b", "ab"), KINDS.replace("a-b", "ab")),
    sample(A, A_LINE, KINDS.replace("a-b", "a-c")),
    sample(A, A_LINE, ""),
]
GOOD = [sample(A, A_LINE)]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
