# Owns: that the README's table of options says what policy/options.def says.
# May include: tree.py.
# Called by: the build, as a test; with --print by whoever changes an option, for the rows to put into the README.
# Invariants: number, default, kind of value, effect, meaning and old names of each row are made from options.def and the profiles.
import re
import sys

import tree

DEF = "policy/options.def"
README = "README.md"
ROW = re.compile(r'^OPTION\((\d+), (\w+), (.*?), (BOOL|LONG|KIB|ACTION|PATH), (WORKS|NONE), "([\w ]*)",\s*((?:"[^"]*"\s*)+)\)$', re.M)
SHOWN = re.compile(r"^\| `(\w+)` \|.*$", re.M)
PROFILE = re.compile(r"^policy/profiles/([^/]+)/mi-profile\.h$")
CONSTANT = re.compile(r"^\s*(MI_\w+)\s*=\s*(\d+),", re.M)
VALUES = {"BOOL": "0, 1", "LONG": "a number", "KIB": "bytes, or with K, M, G, T", "ACTION": "abort, report, ignore", "PATH": "a path"}
EFFECTS = {"WORKS": "", "NONE": "**No effect**, accepted only: "}
ACTIONS = ["abort", "report", "ignore"]


def evaluate(expression, constants, pointer_size):
    """The value of a default: numbers, constants of a profile, sizeof(void*), * + - comparisons and one `? :`."""
    text = re.sub(r"sizeof\(void\s*\*\)", str(pointer_size), expression)
    text = re.sub(r"\b(\d+)[UL]+\b", r"\1", text)
    text = re.sub(r"\b(MI_\w+)\b", lambda m: constants.get(m.group(1), "?" + m.group(1)), text)
    text = re.sub(r"^\((.*?)\?(.*?):(.*)\)$", r"(\2) if (\1) else (\3)", text)
    if re.search(r"[^\d\s()*+<>=.-]", text.replace("if", "").replace("else", "")):
        raise ValueError("the default %s is not understood" % expression)
    return int(eval(text, {"__builtins__": {}}))


def shown(value, kind):
    if kind == "ACTION":
        return ACTIONS[value]
    if kind != "KIB" or value == 0:
        return str(value)
    for size, unit in ((1 << 20, "GiB"), (1 << 10, "MiB"), (1, "KiB")):
        if value % size == 0:
            return "%d %s" % (value // size, unit)


def default(expression, kind, profiles):
    by_profile = {name: shown(evaluate(expression, constants, 8), kind) for name, constants in profiles}
    values = list(by_profile.values())
    text = values[0] if len(set(values)) == 1 else ", ".join("%s: %s" % item for item in by_profile.items())
    small = shown(evaluate(expression, profiles[0][1], 4), kind)
    return text if small == values[0] else "%s (32 bits: %s)" % (text, small)


def expected(files):
    """Option -> its line of the README, in the order of options.def."""
    found = {m.group(1): dict(CONSTANT.findall(text)) for path, text in files.items() for m in [PROFILE.match(path)] if m}
    # The variants that measure one mitigation are no one's to run.
    names = [n for n in found if not n.startswith("only_")]
    profiles = [(name, found[name]) for name in sorted(names, key=lambda n: (["release", "secure", "strict"] + [n]).index(n))]
    rows = {}
    for number, name, expression, kind, effect, old, documentation in ROW.findall(files.get(DEF, "")):
        meaning = EFFECTS[effect] + "".join(re.findall(r'"([^"]*)"', documentation))
        if old:
            meaning += " Old name%s: %s." % ("s" if " " in old else "", ", ".join("`%s`" % word for word in old.split()))
        rows[name] = "| `%s` | %s | %s | %s | %s |" % (name, number, default(expression, kind, profiles), VALUES[kind], meaning)
    return rows


def check(files):
    try:
        rows = expected(files)
    except ValueError as error:
        yield "%s: %s" % (DEF, error)
        return
    if len(rows) != len(re.findall(r"^OPTION\(", files.get(DEF, ""), re.M)):
        yield "%s: a row is not understood" % DEF
    section = files.get(README, "").partition("\n## Options\n")[2].partition("\n## ")[0]
    lines = {match.group(1): match.group(0) for match in SHOWN.finditer(section)}
    for name, line in rows.items():
        if name not in lines:
            yield "%s: the table of options lacks: %s" % (README, line)
        elif lines[name] != line:
            yield "%s: the row of %s is to be: %s" % (README, name, line)
    for name in sorted(set(lines) - set(rows)):
        yield "%s: there is no option %s" % (README, name)


def sample(row, line):
    return {DEF: row, README: "# A\n\n## Options\n\n| option | number |\n%s\n## B\n" % line,
            "policy/profiles/release/mi-profile.h": "enum {\n  MI_X = 0,\n};\n", "policy/profiles/secure/mi-profile.h": "enum {\n  MI_X = 1,\n};\n"}


DELAY = 'OPTION(15, delay, 1000, LONG, WORKS, "wait",\n       "Milliseconds "\n       "to wait.")\n'
DELAY_LINE = "| `delay` | 15 | 1000 | a number | Milliseconds to wait. Old name: `wait`. |\n"
ROOM = 'OPTION(2, room, (sizeof(void*) > 4 ? 1024L * 1024 : 128L * 1024), KIB, NONE, "space place", "Room.")\n'
ROOM_LINE = "| `room` | 2 | 1 GiB (32 bits: 128 MiB) | bytes, or with K, M, G, T | **No effect**, accepted only: Room. Old names: `space`, `place`. |\n"
ACTION = 'OPTION(3, act, (MI_X ? 0 : 1), ACTION, NONE, "", "Act.")\n'
ACTION_LINE = "| `act` | 3 | release: report, secure: abort | abort, report, ignore | **No effect**, accepted only: Act. |\n"
SAMPLES = [
    sample(DELAY, ""),
    sample(DELAY, DELAY_LINE.replace("15", "16")),
    sample(DELAY, DELAY_LINE.replace("1000", "100")),
    sample(DELAY, DELAY_LINE.replace("wait.", "stay.")),
    sample(ROOM, ROOM_LINE.replace("128", "256")),
    sample(ROOM, ROOM_LINE.replace("**No effect**, accepted only: ", "")),
    sample(ROOM, ROOM_LINE.replace("`place`", "`spot`")),
    sample(ACTION, ACTION_LINE.replace("only", "")),
    sample(ACTION, ACTION_LINE.replace("secure: abort", "secure: report")),
    sample(DELAY, DELAY_LINE + ROOM_LINE),
    sample(DELAY.replace("1000", "limit()"), DELAY_LINE),
    sample(DELAY.replace("LONG", "LENGTH"), ""),
    {**sample(DELAY, ""), README: "# A\n" + DELAY_LINE},
]
GOOD = [sample(DELAY + ROOM + ACTION, DELAY_LINE + ROOM_LINE + ACTION_LINE)]

if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print("\n".join(expected(tree.read(tree.root())).values()))
    else:
        tree.main(check, SAMPLES, GOOD)
