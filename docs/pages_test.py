# Owns: that the API pages are made without a warning, and that every group has an example, which is its page's.
# May include: Python's standard library; filter.py; doxygen.
# Called by: the build, as a test: pages_test.py pages.sh HEADER...
# Invariants: each rule has a header that breaks it; these are written here.
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.abspath(sys.argv[1])
HEADERS = sys.argv[2:]
sys.path.insert(0, os.path.dirname(SCRIPT))
import filter as pages  # noqa: E402

# Groups that are no calls.
NO_EXAMPLE = {"attributes", "conventions", "types"}

GOOD = """// Owns: a header.
// May include: nothing.
#ifndef SAMPLE_H
#define SAMPLE_H
// ---- Conventions. They hold for all. ----
// * One.

// ---- Basic allocation. One call. ----

// mi_sample_t counts.
typedef struct mi_sample_s {
  int used;  // so many
} mi_sample_t;

// mi_one returns 1 * 1, or <2>.
int mi_one(mi_sample_t* sample);

// MI_LIMIT is the limit.

#define MI_LIMIT 1
#endif
"""
BAD = {
    "mi_two": GOOD.replace("#endif", "int mi_two(void);\n#endif"),
    "mi_one": GOOD.replace("// mi_one returns 1 * 1, or <2>.\n", ""),
    "used": GOOD.replace("  // so many", ""),
    "MI_LIMIT": GOOD.replace("// MI_LIMIT is the limit.\n", ""),
    "MI_LIMITS": GOOD.replace("// MI_LIMIT is", "// MI_LIMITS is"),
    "mi_sample_s": GOOD.replace("// mi_sample_t counts.\n", ""),
    "mi_gone": GOOD.replace("returns 1", "is as @ref mi_gone and returns 1"),
}


def make(out, headers):
    """What doxygen complains of in these headers."""
    done = subprocess.run([SCRIPT, out], env=dict(os.environ, MI_DOCS_INPUT=headers), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode != 0 or done.stdout else ""


def groups_without_example(text):
    for identifier, title in pages.groups(text.split("\n")):
        if identifier not in NO_EXAMPLE and pages.example(identifier) is None:
            yield "the group %s has no docs/examples/%s.c" % (title, identifier)


def check(work):
    found = set()
    for header in HEADERS:
        text = open(header).read()
        yield from groups_without_example(text)
        found |= {identifier for identifier, _ in pages.groups(text.split("\n"))}
    for name in sorted(os.listdir(pages.EXAMPLES)):
        if os.path.splitext(name)[0] not in found:
            yield "docs/examples/%s belongs to no group of a header" % name
    out = os.path.join(work, "pages")
    yield make(out, os.path.dirname(os.path.realpath(HEADERS[0])))
    for identifier in sorted(found):
        path = os.path.join(out, "html", "group__%s.html" % identifier.replace("_", "__"))
        text = open(path).read() if os.path.exists(path) else ""
        if not text:
            yield path + " was not made"
        elif pages.example(identifier) and ">Example<" not in text:
            yield path + " does not show its example"


def controls(work):
    for name, text in [("", GOOD)] + sorted(BAD.items()):
        folder = os.path.join(work, "sample_" + name)
        os.mkdir(folder)
        with open(os.path.join(folder, "sample.h"), "w") as f:
            f.write(text)
        said = make(os.path.join(folder, "pages"), folder)
        if name and name not in said:
            yield "nobody complains of a header where %s is wrong: %s" % (name, said)
        if not name and said:
            yield "a good header is complained of: " + said
    if not list(groups_without_example("// ---- No such group. Text. ----")):
        yield "nobody misses an example"


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as work:
        complaints = [c for c in list(controls(work)) + list(check(work)) if c]
    print("\n".join(complaints), end="\n" if complaints else "")
    sys.exit(1 if complaints else 0)


main()
