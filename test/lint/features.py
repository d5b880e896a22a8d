# Owns: that every mitigation which a profile switches is listed, has its unit, its section in the threat model and its test.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: policy/features.def alone says what belongs to a constant; a constant that only the list names is not honoured.
import re

import tree

PROFILE = re.compile(r"^policy/profiles/[^/]+/mi-profile\.h$")
CONSTANT = re.compile(r"^\s*(MI_HAS_\w+)\s*=", re.M)
ROW = re.compile(r'^F\((\w+), "([^"]*)", "([^"]*)", "([^"]*)"\)$', re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
LIST = "policy/features.def"
MODEL = "policy/threat-model.md"


def faults(files, row):
    constant, name, unit, test = row
    path, _, prefix = test.partition(":")
    if not unit.startswith("hardening/") or unit not in files:
        yield "its unit %s is no file of hardening/" % unit
    elif not any('"%s"' % unit in text for text in files.code("src/").values()):
        yield "no code includes its unit %s" % unit
    if "## %s" % name not in files.get(MODEL, "").split("\n"):
        yield "%s has no section `## %s`" % (MODEL, name)
    if not path.startswith("test/") or path not in files:
        yield "its test %s is no file of test/" % path
    elif prefix and not re.search("^" + re.escape(prefix), files[path], re.M):
        yield "no row of %s begins with %s" % (path, prefix)
    if not any(re.search(r"\b%s\b" % constant, COMMENT.sub("", text)) for text in files.code("src/", "hardening/").values()):
        yield "no code reads it"


def check(files):
    switched = set()
    for path, text in files.items():
        if PROFILE.match(path):
            switched |= set(CONSTANT.findall(COMMENT.sub("", text)))
    text = files.get(LIST, "")
    rows = ROW.findall(text)
    if len(rows) != len(re.findall(r"^\s*F\(", text, re.M)):
        yield "%s: a row is not F(constant, \"name\", \"unit\", \"test\") on one line" % LIST
    listed = [row[0] for row in rows]
    for constant in sorted(switched - set(listed)):
        yield "%s: has no row for %s" % (LIST, constant)
    for row in rows:
        if row[0] not in switched:
            yield "%s: %s is in no profile" % (LIST, row[0])
        if listed.count(row[0]) > 1:
            yield "%s: %s has two rows" % (LIST, row[0])
        for fault in faults(files, row):
            yield "%s: %s: %s" % (LIST, row[0], fault)


WHOLE = {
    "policy/profiles/release/mi-profile.h": "enum {\n  MI_HAS_A = 0,\n};\n",
    LIST: 'F(MI_HAS_A, "A thing", "hardening/a.h", "test/death/rows.txt:a/")\n',
    MODEL: "# Threats\n\n## A thing\n",
    "hardening/a.h": "#pragma once\n",
    "src/heap/a.c": '#include "hardening/a.h"\nint f(void) { return MI_HAS_A; }\n',
    "test/death/rows.txt": "a/1 | x\n",
}


def but(**changes):
    """WHOLE with some files changed, each by the first letters of its path's last part; None takes the file away."""
    sample = dict(WHOLE)
    for key, text in changes.items():
        path = next(p for p in WHOLE if p.rsplit("/", 1)[-1].replace("-", "_").replace(".", "_").startswith(key))
        del sample[path]
        if text is not None:
            sample[path] = text
    return sample


SAMPLES = [
    but(features=""),
    but(features=WHOLE[LIST].replace("A thing", "Another thing")),
    but(features=WHOLE[LIST].replace("hardening/a.h", "hardening/b.h")),
    but(features=WHOLE[LIST].replace(":a/", ":b/")),
    but(features=WHOLE[LIST] * 2),
    but(features=WHOLE[LIST] + 'F(MI_HAS_B, "A thing", "hardening/a.h", "test/death/rows.txt")\n'),
    but(features=WHOLE[LIST].replace('", "', '",\n  "')),
    but(threat="# Threats\n"),
    but(rows=None),
    but(a_h=None),
    but(a_c='#include "hardening/a.h"\n// MI_HAS_A\n'),
    but(a_c="int f(void) { return MI_HAS_A; }\n"),
]
GOOD = [WHOLE, but(features=WHOLE[LIST].replace(":a/", ""))]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
