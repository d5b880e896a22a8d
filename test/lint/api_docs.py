# Owns: the check that the README's table of the interface has every group of the headers, each with tests that exist.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: a group is what `// ---- Title. More. ----` begins in a header; the API pages are made of the same lines.
import re

import tree

# Groups that are no calls.
NO_CALLS = ("Attributes", "Conventions", "Types")


def titles(files):
    for text in files.under("include/", ends=(".h",)).values():
        for title in re.findall(r"^// ---- ([^.\n]*)\.", text, re.M):
            if title not in NO_CALLS:
                yield title


def has_target(files, label):
    """A target that is named, one of a list that begins like it, or a file of tests that are made of all files."""
    folder, name = re.fullmatch(r"//(.*):(.*)", label).groups()
    build = files.get(folder + "/BUILD.bazel", "")
    return 'name = "%s"' % name in build or any(map(name.startswith, re.findall(r'name = "(\w+)" \+', build))) or \
        any("%s/%s%s" % (folder, name, end) in files for end in (".c", ".cc"))


def check(files):
    readme = files.get("README.md", "")
    section = re.search(r"^## API\n(.*?)(?=^## |\Z)", readme, re.M | re.S)
    if section is None:
        yield "README.md: has no section API"
        return
    rows = {}
    for line in section.group(1).splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "group":
            rows[cells[0]] = cells[2]
    for title in titles(files):
        if title not in rows:
            yield "README.md: the table of the interface lacks the group %s" % title
    for title, cell in rows.items():
        labels = re.findall(r"`(//[^`]+)`", cell)
        if title not in set(titles(files)) | {"Other headers"}:
            yield "README.md: no header has the group %s" % title
        if not labels:
            yield "README.md: the group %s names no test" % title
        for label in labels:
            if not has_target(files, label):
                yield "README.md: there is no test %s" % label


HEADER = {"include/a.h": "// ---- Types. Of things. ----\n// ---- One. Calls. ----\n", "test/api/BUILD.bazel": 'name = "calls",\nname = "more_c" + std,\n', "test/unit/one_test.c": ""}
TABLE = "## API\n\n| group | what it is | test |\n|---|---|---|\n"
SAMPLES = [
    HEADER,
    {**HEADER, "README.md": TABLE},
    {**HEADER, "README.md": TABLE + "| One | calls | |\n"},
    {**HEADER, "README.md": TABLE + "| One | calls | `//test/api:call` |\n"},
    {**HEADER, "README.md": TABLE + "| One | calls | `//test/unit:two_test` |\n"},
    {**HEADER, "README.md": TABLE + "| One | calls | `//test/api:calls` |\n| Two | calls | `//test/api:calls` |\n"},
]
GOOD = [{**HEADER, "README.md": TABLE + "| One | calls | `//test/api:calls`, `//test/api:more_c11`, `//test/unit:one_test` |\n\n## Options\n| a | b | c |\n"}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
