# Owns: that the profiles are complete, alike and honoured.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: a constant that no code reads would claim what is not there.
import re

import tree

PROFILE = re.compile(r"^policy/profiles/([^/]+)/mi-profile\.h$")
CONSTANT = re.compile(r"^\s*(MI_\w+)\s*=\s*[^,]+,", re.M)
MACRO = re.compile(r"^#define (MI_\w+)", re.M)
ROW = re.compile(r'^\s*_variant\(\s*"(\w+)",\s*"(\w+)",\s*"([\w-]+)",\s*"(\w+)"', re.M)
PARTED = re.compile(r'^\s*_variant\(\s*"\w+",\s*"\w+",\s*"[\w-]+",\s*"(\w+)"([^()]*)\)', re.M)
# The part of a shared library that a constant stands for.
PARTS = {"MI_HAS_CHECKED_COPIES": "copies", "MI_HAS_GUARDED": "signals"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def check(files):
    profiles = {}
    for path, text in files.items():
        match = PROFILE.match(path)
        if match:
            text = COMMENT.sub("", text)
            profiles[match.group(1)] = (path, set(CONSTANT.findall(text)) | set(MACRO.findall(text)), text)
    everything = set().union(*(names for _, names, _ in profiles.values())) if profiles else set()
    for path, names, text in profiles.values():
        for name in sorted(everything - names):
            yield "%s: lacks %s" % (path, name)
        for line in re.findall(r"^#[ \t]*(?:if|ifdef|ifndef|include).*$", text, re.M):
            yield "%s: %s" % (path, line)
    code = "\n".join(COMMENT.sub("", t) for t in files.code("src/", "hardening/", "policy/options.def", "policy/violations.def", "policy/features.def").values())
    for name in sorted(everything):
        if not re.search(r"\b%s\b" % name, code):
            yield "%s: no code reads it" % name
    rows = {row[3]: row for row in ROW.findall(files.get("policy/variants.bzl", ""))}
    if "policy/variants.bzl" in files:
        for name in sorted(set(profiles) - set(rows)):
            yield "policy/profiles/%s: no row of policy/variants.bzl uses it" % name
        for name in sorted(set(rows) - set(profiles)):
            yield "policy/variants.bzl: there is no profile %s" % name
        for name, rest in PARTED.findall(files["policy/variants.bzl"]):
            text = profiles.get(name, ("", set(), ""))[2]
            for constant, part in PARTS.items():
                wanted = re.search(r"\b%s\s*=\s*[1-9]" % constant, text) is not None
                listed = '"%s"' % part in rest.partition("parts")[2]
                # Instrumented rows have no shared library.
                if wanted != listed and (listed or "shipped = False" not in rest):
                    yield "policy/variants.bzl: the row of %s does not have the parts that %s asks for" % (name, constant)
        for name, row in sorted(rows.items()):
            if name in profiles and '"%s"' % row[2] not in profiles[name][2]:
                yield "%s: MI_PROFILE_NAME is not the stem of policy/variants.bzl, %s" % (profiles[name][0], row[2])


A = "policy/profiles/release/mi-profile.h"
B = "policy/profiles/secure/mi-profile.h"
USE = "if (MI_A && MI_B) x(MI_N);\n"
SAMPLES = [
    {A: "enum {\n  MI_A = 1,\n  MI_B = 1,\n};\n", B: "enum {\n  MI_A = 0,\n};\n", "src/a/a.c": USE},
    {A: '#define MI_N "a"\n', B: "", "src/a/a.c": USE},
    {A: "enum {\n  MI_A = 1,\n};\n", B: "enum {\n  MI_A = 0,\n};\n", "src/a/a.c": "// MI_A\n"},
    {A: "#ifdef X\n#endif\n", "src/a/a.c": USE},
    {A: "", B: "", "policy/variants.bzl": '    _variant("m", "release", "m", "release"),\n'},
    {A: '#define MI_N "m"\nenum {\n  MI_HAS_CHECKED_COPIES = 1,\n};\n', "src/a/a.c": "MI_HAS_CHECKED_COPIES MI_N", "policy/variants.bzl": '    _variant("m", "release", "m", "release"),\n'},
    {A: '#define MI_N "m"\nenum {\n  MI_HAS_CHECKED_COPIES = 0,\n};\n', "src/a/a.c": "MI_HAS_CHECKED_COPIES MI_N",
     "policy/variants.bzl": '    _variant("m", "release", "m", "release", parts = ["copies"]),\n'},
    {A: '#define MI_N "other"\n', "src/a/a.c": USE, "policy/variants.bzl": '    _variant("m", "release", "m", "release"),\n'},
]
GOOD = [{A: '#define MI_N "m"\nenum {\n  // why\n  MI_A = 1,\n};\n', B: '#define MI_N "s"\nenum {\n  MI_A = 0,\n};\n', "src/a/a.c": USE,
         "policy/variants.bzl": '    _variant("m", "release", "m", "release"),\n    _variant(\n        "s",\n        "s",\n        "s",\n        "secure",\n    ),\n'}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
