# Owns: that a file-local name stands once in the allocator, so that all units could be compiled as one.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: files for different operating systems or trackers never meet, so they may use one name.
import re

import tree

# A definition or declaration at the left margin; the name is what stands before `(`, `[`, `=` or `;`.
STATIC = re.compile(r"^(?:static|mi_inline|mi_thread_local static|(?:mi_\w+ )+static)\b([^;={(]*?)\b(\w+)\s*(?=[(\[=;])", re.M)
TYPE = re.compile(r"^typedef (?:struct|union|enum)\b[^;{]*\{.*?^\} (\w+);", re.M | re.S)
MACRO = re.compile(r"^#[ \t]*define[ \t]+(\w+)", re.M)
UNDEF = re.compile(r"^#[ \t]*undef[ \t]+(\w+)", re.M)
ALTERNATIVE = re.compile(r"^src/(?:prim|track)/(\w+)/")
# A Unix runs two of the folders.
TOGETHER = {"linux": "unix", "macos": "unix"}
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)|\bmi_(?:aligned|printf_like)\([^)]*\)")
ATOMIC = re.compile(r"\b_Atomic\(([^()]*)\)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def names(path, text):
    text = COMMENT.sub("", text)
    plain = ATOMIC.sub(r"\1", ATTRIBUTE.sub("", text))
    for match in STATIC.finditer(plain):
        yield match.group(2)
    for match in TYPE.finditer(plain):
        yield match.group(1)
    undefined = set(UNDEF.findall(text))
    for name in MACRO.findall(text):
        if name not in undefined:
            yield name


def meet(a, b):
    x, y = ALTERNATIVE.match(a), ALTERNATIVE.match(b)
    if not x or not y or x.group(1) == y.group(1):
        return True
    x, y = x.group(1), y.group(1)
    return TOGETHER.get(x) == y or TOGETHER.get(y) == x


def check(files):
    seen = {}
    for path, text in files.under("src/", "hardening/", ends=(".c", ".h")).items():
        for name in set(names(path, text)):
            for other in seen.get(name, []):
                if meet(path, other):
                    yield "%s: %s is defined in %s too" % (path, name, other)
            seen.setdefault(name, []).append(path)


SAMPLES = [
    {"src/a/a.c": "static int x(int y) {\n}\n", "src/b/b.c": "static void x(void) {\n}\n"},
    {"src/a/a.c": "static _Atomic(size_t) mi_count = 1;\n", "src/b/b.c": "static size_t mi_count;\n"},
    {"src/a/a.c": "mi_cold static int x(int y) {\n}\n", "src/b/b.c": "mi_inline int x(void) {\n}\n"},
    {"src/a/a.c": "static char table[3] = {0};\n", "src/b/b.c": "static const int* const table = 0;\n"},
    {"src/a/a.c": "#define X 1\n", "src/b/b.c": "#define X 2\n"},
    {"src/a/a.c": "typedef struct t_s {\n  int a;\n} t_t;\n", "src/b/b.c": "typedef struct t_s {\n  int a;\n} t_t;\n"},
    {"src/prim/linux/a.c": "static int x;\n", "src/prim/unix/b.c": "static int x;\n"},
]
GOOD = [
    {"src/a/a.c": "static int x(int y) {\n  static int z;\n}\n", "src/b/b.c": "static void y(void) {\n  static int z;\n}\n"},
    {"src/prim/windows/a.c": "static int x;\n", "src/prim/unix/b.c": "static int x;\n"},
    {"src/a/a.c": "#define F(x) x\n#undef F\n", "src/b/b.c": "#define F(x) 2\n#undef F\n"},
    {"src/a/a.c": "static int x(void);\nstatic int x(void) {\n}\n"},
]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
