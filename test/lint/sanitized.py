# Owns: the check that a unit test which does not run under clang's sanitizers is one that there is, with a reason.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: a test is left out by the table alone: what the sanitizers run is made of all files of the folder but those.
import ast
import re

import tree

BUILD = "test/unit/BUILD.bazel"
MACRO = "policy/build/test.bzl"
WORDS_MIN = 5


def table(text, name):
    """The value of a table of the build file; None: there is none that can be read."""
    found = re.search(r"^%s = (\{.*?^\})" % name, text, re.M | re.S)
    try:
        return ast.literal_eval(found.group(1)) if found else None
    except (ValueError, SyntaxError):
        return None


def check(files):
    text = files.get(BUILD, "")
    tests = {path[len("test/unit/"):-len(".c")] for path in files.under("test/unit/", ends=("_test.c",))}
    left_out, at_once, under = (table(text, name) for name in ("_NOT_UNDER", "_AT_ONCE", "_UNDER"))
    if left_out is None or at_once is None or not under:
        yield BUILD + ": _NOT_UNDER, _AT_ONCE and _UNDER are tables of plain words"
        return
    if set(left_out) != set(under) or set(at_once) != set(under):
        yield BUILD + ": the tables are not of the same kinds of sanitizer"
    for kind, reasons in left_out.items():
        for name, reason in reasons.items():
            if name not in tests:
                yield "%s: _NOT_UNDER names %s, which is no test" % (BUILD, name)
            if len(reason.split()) < WORDS_MIN:
                yield "%s: _NOT_UNDER gives no reason for %s" % (BUILD, name)
            if name in at_once.get(kind, ()):
                yield "%s: %s is left out and run" % (BUILD, name)
    for kind, names in at_once.items():
        for name in set(names) - tests:
            yield "%s: _AT_ONCE names %s, which is no test" % (BUILD, name)
    # Nothing else takes a test out.
    if not re.search(r"^                if name not in not_under\[kind\] and \(name in at_once\[kind\]\) == now\n            \]$", files.get(MACRO, ""), re.M):
        yield MACRO + ": tests are left out by something else than the table"
    if not re.search(r"^    at_once = _AT_ONCE,\n    not_under = _NOT_UNDER,\n    special = _SPECIAL,\n    under = _UNDER,$", text, re.M):
        yield BUILD + ": the tables are not those that the tests are made by"


CALL = "mi_unit_tests(\n    at_once = _AT_ONCE,\n    not_under = _NOT_UNDER,\n    special = _SPECIAL,\n    under = _UNDER,\n)\n"
LINES = "                if name not in not_under[kind] and (name in at_once[kind]) == now\n            ]\n"


def sample(left_out, at_once="[]", call=CALL, macro=LINES):
    text = '_NOT_UNDER = {\n"memory": %s,\n}\n_AT_ONCE = {\n"memory": %s,\n}\n_UNDER = {\n"memory": ["a"],\n}\n' % (left_out, at_once)
    return {BUILD: text + call, MACRO: macro, "test/unit/a_test.c": "", "test/unit/b_test.c": ""}


SAMPLES = [
    sample('{"c_test": "there is no such test at all"}'),
    sample('{"a_test": "fails"}'),
    sample('{"a_test": "asks for what it does not have"}', '["a_test"]'),
    sample("{}", '["c_test"]'),
    sample("{}", call=""),
    sample("{}", macro=LINES.replace("if name", "if name != \"b_test\" and name")),
    sample('{"a_test": _REASON}'),
    {BUILD: "", "test/unit/a_test.c": ""},
]
GOOD = [sample('{"a_test": "asks for what it does not have"}', '["b_test"]')]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
