# Owns: that the table in README.md of what each tool finds says what the rows of test/track/rows.txt expect.
# May include: tree.py, test/track/track_test.py.
# Called by: the build, as a test; by hand, with --write by whoever changes a row.
# Invariants: the part between the markers is made from the rows alone.
import os
import sys

import tree

sys.path.insert(0, os.path.join(tree.root(), "test", "track"))
sys.dont_write_bytecode = True
import track_test

ROWS = "test/track/rows.txt"
PAGE = "README.md"
BEGIN = "<!-- tools: made from test/track/rows.txt by test/lint/track_table.py --write -->\n"
END = "<!-- tools: end -->\n"
NAMES = {"asan": "`asan`, AddressSanitizer", "valgrind": "`valgrind`, Memcheck", "guarded": "`guarded`, every block"}
CLEAN = "no error"


def cell(found):
    """What a column says of the cases of a row, each a list of words."""
    hits = sum(words not in (["-"], ["?"]) for words in found)
    if hits == len(found):
        return "yes"
    if hits:
        return "%d of %d" % (hits, len(found))
    return "by place" if ["?"] in found else "no"


def section(text):
    cases, groups = track_test.rows(text)
    lines = ["| error | %s |\n" % " | ".join(NAMES.get(c, "`%s`" % c) for c in track_test.COLUMNS), "|---" * (len(track_test.COLUMNS) + 1) + "|\n"]
    for title, members in groups:
        if title != CLEAN:
            lines.append("| %s | %s |\n" % (title, " | ".join(cell([cases[case][column] for case in members]) for column in track_test.COLUMNS)))
        elif any(cases[case][column] != ["-"] for case in members for column in track_test.COLUMNS):
            raise ValueError("%s: a program without an error is expected to be reported" % ROWS)
    return "".join(lines)


def check(files):
    try:
        wanted = section(files.get(ROWS, ""))
    except ValueError as error:
        yield str(error)
        return
    page = files.get(PAGE, "")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        yield "%s: the markers of the table of tools are missing" % PAGE
    elif page.partition(BEGIN)[2].partition(END)[0] != wanted:
        yield "%s: the table of tools is not that of the rows (python3 test/lint/track_table.py --write)" % PAGE


def sample(rows, line):
    return {ROWS: rows, PAGE: BEGIN + section("")[:0] + section("= x\n").replace("| x | yes | yes | yes | yes | yes | yes |\n", line) + END}


TWO = "= a read\na | poison | read | - | - | ? | x\nb | poison | read | - | x | - | x\n= no error\nc | - | - | - | - | - | -\n"
LINE = "| a read | yes | yes | no | 1 of 2 | by place | yes |\n"
SAMPLES = [
    sample(TWO, ""),
    sample(TWO, LINE.replace("1 of 2", "yes")),
    sample(TWO, LINE.replace("no |", "yes |")),
    sample(TWO.replace("c | -", "c | read"), LINE),
    sample(TWO + "d | -\n", LINE),
    {ROWS: TWO, PAGE: LINE},
]
GOOD = [sample(TWO, LINE)]

if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        tree.replace_table(ROWS, PAGE, BEGIN, END, section)
    else:
        tree.main(check, SAMPLES, GOOD)
