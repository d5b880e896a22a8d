# Owns: that the table of attacks in SECURITY.md says what the rows of test/attack/rows.txt expect.
# May include: tree.py, test/lib/run_rows.py.
# Called by: the build, as a test; by hand with --check, and with --write by whoever changes a row.
# Invariants: the part between the markers is made from the rows alone; a technique without rows, or a row without one, is a mistake.
import os
import re
import sys

import tree

sys.path.insert(0, os.path.join(tree.root(), "test", "lib"))
sys.dont_write_bytecode = True
import run_rows

ROWS = "test/attack/rows.txt"
PAGE = "SECURITY.md"
BEGIN = "<!-- attacks: made from test/attack/rows.txt by test/lint/attack_table.py --write -->\n"
END = "<!-- attacks: end -->\n"
TITLE = re.compile(r"^# Technique: (\S.*)$")
NO_CONTROL = re.compile(r"succeeds? nowhere|no control")
COLUMNS = ["release", "secure", "strict", "debug", "glibc"]
# In this order where a technique ends in several ways.
WORDS = {"caught": "caught", "stopped": "caught or neutralised", "neutralised": "neutralised", "out-of-scope": "out of scope", "succeeds": "succeeds"}
CRASH = "crashes"
HEAD = """
## Attacks

Each line is a technique, as programs of our own ([test/attack](test/attack)) that decide themselves whether they reached their goal, and what comes of them in each variant. *Caught*: the process ends with a report, or at
inaccessible memory, before the goal. *Neutralised*: the program runs to its end and the goal is not reached; where that is chance, the bound that the test allows stands beside it. *Out of scope*: it succeeds, and
[policy/threat-model.md](policy/threat-model.md) says so. *Succeeds*: so it does in release, which does not check, and in the C library (glibc 2.36, without this allocator), which shows that the attack works. *Crashes*: the
process ends somewhere after the allocator followed the attacker's value. Numbers count the attacks of the technique that end so.

| technique | attacks | release | secure | strict | debug | glibc |
|---|---|---|---|---|---|---|
"""


def techniques(text):
    """[(title, {attack: {variant: (word, bound)}})] in the order of the table; ValueError says what is wrong."""
    found, lines = [], text.split("\n")
    for number, line in enumerate(lines, 1):
        match = TITLE.match(line)
        if match:
            found.append((match.group(1), {}))
        elif line.strip() and not line.startswith("#"):
            row = run_rows.Row(ROWS, number, line)
            if not found:
                raise ValueError("%s:%d: a row before the first technique" % (ROWS, number))
            word = row.expected.split(" ")[0]
            if word not in WORDS and not word.startswith("SIG"):
                raise ValueError("%s:%d: `%s` is no outcome of an attack" % (ROWS, number, word))
            numbers = dict(re.findall(r"\b(tries|most)=(\d+)", " ".join(row.command)))
            bound = (int(numbers.get("most", 0)), int(numbers["tries"])) if "tries" in numbers and word == "neutralised" else None
            ends = found[-1][1].setdefault(row.name, {})
            for variant in row.variants:
                if variant in ends:
                    raise ValueError("%s:%d: %s ends twice for %s" % (ROWS, number, row.name, variant))
                ends[variant] = (word, bound)
    for title, attacks in found:
        if not attacks:
            raise ValueError("%s: technique without rows: %s" % (ROWS, title))
        shown = any(ends.get(v, ("",))[0] == "succeeds" for ends in attacks.values() for v in ("release", "glibc"))
        if not shown and not NO_CONTROL.search(title):
            raise ValueError("%s: nothing shows that this works, and the title does not say so: %s" % (ROWS, title))
        if shown and NO_CONTROL.search(title):
            raise ValueError("%s: there is a success, and the title says that there is none: %s" % (ROWS, title))
    names = [name for unused, attacks in found for name in attacks]
    for name in names:
        if names.count(name) > 1:
            raise ValueError("%s: %s stands under two techniques" % (ROWS, name))
    return found


def cell(ends):
    """What is said of the ends of a technique's attacks in one variant."""
    if not ends:
        return "–"
    order = list(WORDS) + [CRASH]
    words = [word if word in WORDS else CRASH for word, unused in ends]
    parts = []
    for word in sorted(set(words), key=order.index):
        text = WORDS.get(word, CRASH)
        if len(set(words)) > 1:
            text += " %d" % words.count(word)
        bounds = [bound for end, bound in ends if bound and end == word]
        if bounds:
            most, tries = max(bounds, key=lambda b: b[0] / b[1])
            text += " (at most %d of %s)" % (most, format(tries, ","))
        parts.append(text)
    return ", ".join(parts)


def section(text):
    lines = []
    for title, attacks in techniques(text):
        cells = [cell([ends[variant] for ends in attacks.values() if variant in ends]) for variant in COLUMNS]
        lines.append("| %s | %d | %s |\n" % (title, len(attacks), " | ".join(cells)))
    return HEAD + "".join(lines) + "\n"


def check(files):
    try:
        wanted = section(files.get(ROWS, ""))
    except (ValueError, SystemExit) as error:
        yield str(error)
        return
    page = files.get(PAGE, "")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        yield "%s: the markers of the table of attacks are missing" % PAGE
        return
    shown = page.partition(BEGIN)[2].partition(END)[0]
    if shown == wanted:
        return
    old, new = shown.split("\n"), wanted.split("\n")
    for line in new:
        if line not in old:
            yield "%s: the table of attacks lacks: %s (python3 test/lint/attack_table.py --write)" % (PAGE, line)
    for line in old:
        if line not in new:
            yield "%s: the table of attacks has what no row says: %s" % (PAGE, line)
    if sorted(old) == sorted(new):
        yield "%s: the lines of the table of attacks are not in the order of the rows" % PAGE


def sample(rows, table, begin=BEGIN):
    return {ROWS: rows, PAGE: "# A\n" + begin + HEAD + table + "\n" + END}


TWO = "# Technique: Twice\n" + "".join("a/%d | p %d | %s\n" % (n, n, rest) for n in (1, 2) for rest in (
    "hard | | caught SIGABRT ^x", "release | | succeeds")) + "a/1 | p 1 | glibc | | SIGSEGV\n# Technique: Luck (succeeds nowhere)\nb | q tries=1000 most=5 | ours | | neutralised\n"
TWO_LINES = ("| Twice | 2 | succeeds | caught | caught | caught | crashes |\n"
             "| Luck (succeeds nowhere) | 1 | %s | – |\n" % " | ".join(["neutralised (at most 5 of 1,000)"] * 4))
SAMPLES = [
    sample(TWO, ""),
    sample(TWO, TWO_LINES, begin=""),
    sample(TWO, TWO_LINES.replace("Twice | 2", "Twice | 3")),
    sample(TWO, TWO_LINES.replace("succeeds", "caught")),
    sample(TWO, TWO_LINES.replace("at most 5", "at most 4")),
    sample(TWO, "".join(reversed(TWO_LINES.splitlines(True)))),
    sample(TWO, TWO_LINES + "| Other | 1 | – | – | – | – | – |\n"),
    sample(TWO + "# Technique: Nothing\n", TWO_LINES),
    sample(TWO.replace("SIGSEGV", "exit 0"), TWO_LINES),
    sample(TWO + "b | q | release | | succeeds\n", TWO_LINES),
    sample(TWO + "# Technique: Again\na/1 | p | release | | succeeds\n", TWO_LINES + "| Again | 1 | succeeds | – | – | – | – |\n"),
    sample(TWO.replace(" (succeeds nowhere)", ""), TWO_LINES.replace(" (succeeds nowhere)", "")),
    sample(TWO.replace("Twice", "Twice (succeeds nowhere)"), TWO_LINES.replace("Twice", "Twice (succeeds nowhere)")),
    sample(TWO.partition("\n")[2], TWO_LINES),
    sample(TWO + "c | q | release\n", TWO_LINES),
]
GOOD = [
    sample(TWO, TWO_LINES),
    sample("# Technique: T, no control\na | p | strict | | caught SIGABRT\nb | p | strict | | stopped SIGABRT\nc | p | strict | | out-of-scope\n",
           "| T, no control | 3 | – | – | caught 1, caught or neutralised 1, out of scope 1 | – | – |\n"),
]

if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        tree.replace_table(ROWS, PAGE, BEGIN, END, section)
    else:
        tree.main(check, SAMPLES, GOOD)
