# Owns: where conditional compilation may stand.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: a profile constant is read with a plain `if`, everywhere.
import re

import tree

CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b.*$", re.M)
PROFILE = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b.*\bMI_(?:HAS|VIOLATION|ASSERT)_\w+", re.M)
ALLOWED = re.compile(r"^src/(?:base/(?:compiler|atomic|bits)\.h|prim/.*|track/.*|api/override[^/]*)$")


def check(files):
    for path, text in files.code().items():
        where = CONDITIONAL if not ALLOWED.match(path) else PROFILE
        for match in where.finditer(text):
            yield "%s:%d: %s" % (path, text.count("\n", 0, match.start()) + 1, match.group(0).strip())


SAMPLES = [
    {"src/heap/page.c": "#if MI_X\n#endif\n"},
    {"hardening/a.h": " #  ifdef __linux__\n#endif\n"},
    {"src/base/geometry.h": "#ifndef X\n#define X\n#endif\n"},
    {"src/prim/linux/mem.c": "#if MI_HAS_LIVE_BITS\n#endif\n"},
]
GOOD = [{"src/prim/linux/mem.c": "#if defined(__x86_64__)\n#endif\n", "src/heap/a.c": '#include "x.h"\n// #if is not needed\n', "test/lib/a.h": "#if X\n#endif\n"}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
