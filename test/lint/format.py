# Owns: that the C code is laid out as .clang-format says.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: judged by version 14 alone, since versions differ in detail; without it the test says so and counts as skipped.
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import tree

VERSION = 14


def find():
    for name in ("clang-format-%d" % VERSION, "clang-format"):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True).stdout
            match = re.search(r"version (\d+)", said)
            if match and int(match.group(1)) == VERSION:
                return path
    return None


def check(files):
    style = "file:" + os.path.join(tree.root(), ".clang-format")

    def judge(item):
        path, text = item
        formatted = subprocess.run([PROGRAM, "--style=" + style, "--assume-filename=" + path], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
        if formatted == text:
            return None
        pairs = zip(text.split("\n") + [""], formatted.split("\n") + [""])
        line = next((i for i, (a, b) in enumerate(pairs, 1) if a != b), 1)
        return "%s:%d: not as .clang-format has it; clang-format -i %s" % (path, line, path)

    code = files.under("src/", "hardening/", "include/", "test/", "fuzz/", "policy/profiles/", ends=(".c", ".h", ".cc"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from (complaint for complaint in pool.map(judge, code.items()) if complaint)


SAMPLES = [{"src/a/a.c": "int  x ;\n"}, {"src/a/a.h": "int f(void)\n{\n\treturn 1;\n}\n"}]
GOOD = [{"src/a/a.c": "int f(void) { return 1; }\n"}]
PROGRAM = find()

if __name__ == "__main__":
    if PROGRAM is None:
        print("skipped: clang-format %d is not installed" % VERSION)
        sys.exit(77)
    tree.main(check, SAMPLES, GOOD)
