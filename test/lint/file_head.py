# Owns: the four lines that every file opens with.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: the lines stand first, in this order; each may run on over further comment lines.
import re

import tree

LABELS = ("Owns", "May include", "Called by", "Invariants")


def check(files):
    code = files.under("src/", "hardening/", "test/", "fuzz/", "include/", "policy/profiles/", ends=(".c", ".h", ".cc", ".py"))
    for path, text in code.items():
        if "/inputs/" in path:
            continue
        mark = "#" if path.endswith(".py") else "//"
        lines = text.split("\n")
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        labels = []
        for line in lines:
            if not line.startswith(mark):
                break
            match = re.match(re.escape(mark) + r" (%s): \S" % "|".join(LABELS), line)
            if match:
                labels.append(match.group(1))
            elif not labels:
                break
        if tuple(labels) != LABELS:
            missing = [name for name in LABELS if name not in labels]
            yield "%s:1: the head lacks `%s %s:`" % (path, mark, missing[0]) if missing else "%s:1: the head's lines are not in order" % path


HEAD = "// Owns: a.\n// May include: b.\n// Called by: c.\n// Invariants: d.\n"
SAMPLES = [
    {"src/heap/page.c": "#include <stddef.h>\n" + HEAD},
    {"src/heap/page.c": HEAD.replace("// Called by: c.\n", "")},
    {"src/heap/page.c": HEAD.replace("b.", "")},
    {"src/heap/page.c": "// Invariants: d.\n// Owns: a.\n// May include: b.\n// Called by: c.\n"},
    {"test/lint/a.py": HEAD},
]
GOOD = [
    {"src/heap/page.c": HEAD + "#include <stddef.h>\n"},
    {"src/heap/page.c": HEAD.replace("a.\n", "a, and what\n//   belongs to it.\n")},
    {"test/lint/a.py": "#!/usr/bin/env python3\n" + HEAD.replace("//", "#")},
]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
