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
import tempfile

import tree

VERSION = 14
FILES_AT_ONCE = 40


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
    code = files.under("src/", "hardening/", "include/", "test/", "fuzz/", "policy/profiles/", ends=(".c", ".h", ".cc"))
    paths = sorted(code)
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8", newline="") as f:
                f.write(code[path])

        # Many files a process: its start takes longer than a file.
        def judge(part):
            return subprocess.run([PROGRAM, "--style=" + style, "--dry-run"] + part, cwd=folder, stderr=subprocess.PIPE, text=True, check=True).stderr

        parts = [paths[i : i + FILES_AT_ONCE] for i in range(0, len(paths), FILES_AT_ONCE)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            said = "".join(pool.map(judge, parts))
    first = {}
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: warning: .*\[-Wclang-format-violations\]$", said, re.M):
        first.setdefault(path, line)
    for path in sorted(first):
        yield "%s:%s: not as .clang-format has it; clang-format -i %s" % (path, first[path], path)


SAMPLES = [{"src/a/a.c": "int  x ;\n"}, {"src/a/a.h": "int f(void)\n{\n\treturn 1;\n}\n"}]
GOOD = [{"src/a/a.c": "int f(void) { return 1; }\n"}]
PROGRAM = find()

if __name__ == "__main__":
    if PROGRAM is None:
        print("skipped: clang-format %d is not installed" % VERSION)
        sys.exit(77)
    tree.main(check, SAMPLES, GOOD)
