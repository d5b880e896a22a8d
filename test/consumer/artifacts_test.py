# Owns: what every artifact of a variant must be, looked up in the files themselves.
# May include: elf.py.
# Called by: the build, as a test of each variant.
# Invariants: each rule has a bad library that it must complain about; these are compiled here.
"""artifacts_test.py STEM SHARED ARCHIVE OBJECT EXPORTS SHARED_EXPORTS: the names that all have, and those of the shared library"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import elf

# The C library under its names on all processors, and the loader, which TLS may need.
NEEDED = re.compile(r"^(?:libc\.so\.6|libpthread\.so\.0|libc\.musl-\w+\.so\.1|ld-linux.*\.so\.\d)$")
# Static TLS that a library which comes late may take: the C library keeps little more than a kilobyte for all of them.
MAX_TLS = 256


# size_t in the mangled names of operators, by word size.
SIZE = {32: "j", 64: "m"}


def exported(path, bits):
    """The names of the list; an operator that takes a size has two names in it, of which a processor has one."""
    other = re.compile(r"_Z(?:n[wa]|d[la]Pv)%s" % SIZE[96 - bits])
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    body = re.search(r"global:(.*?)local:", text, re.S).group(1)
    return {name.strip() for name in body.split(";") if name.strip() and not other.match(name.strip())}


def shared_only(exports):
    """Names of copying functions, and of those that install handlers, which a part of the shared library may define."""
    return {name for name in exports if re.match(r"(?:__)?(?:sysv_|bsd_)?sig(?:action|ignore|nal|set)$|(?:__)?(?:w?mem(?:cpy|move|pcpy|set|ccpy)|st[rp]n?c|b(?:copy|zero))", name)}


def shared(path, stem, exports):
    tags, headers = elf.dynamic(path), elf.segments(path)
    if tags.get("SONAME") != ["lib%s.so.3" % stem]:
        yield "SONAME is %s" % tags.get("SONAME")
    for name in tags.get("NEEDED", []):
        if not NEEDED.match(name):
            yield "needs %s" % name
    if "NOW" not in " ".join(tags.get("FLAGS_1", []) + tags.get("FLAGS", [])):
        yield "is not bound at once"
    if "NODELETE" not in " ".join(tags.get("FLAGS_1", [])):
        yield "may be unloaded under a thread that runs in it"
    if "TEXTREL" in tags or "TEXTREL" in " ".join(tags.get("FLAGS", [])):
        yield "has text relocations"
    if "RPATH" in tags or "RUNPATH" in tags:
        yield "has a search path"
    if "GNU_RELRO" not in headers:
        yield "has no read-only relocations"
    if "E" in headers.get("GNU_STACK", (0, "E"))[1]:
        yield "has an executable stack"
    if headers.get("TLS", (0, ""))[0] > MAX_TLS:
        yield "takes %d bytes of static TLS" % headers["TLS"][0]
    for line in elf.run("readelf", "-lW", path).splitlines():
        if re.match(r"\s+LOAD\s.*\bRWE\b", line):
            yield "has a segment that may be written and run"
    # What the allocator itself copies would go through the checks of its programs' copies, or through those of another library.
    bound = set(re.findall(r"R_\w+\s+[0-9a-f]+\s+(\w+)", elf.run("readelf", "-rW", path)))
    for name in sorted(bound & (shared_only(exports))):
        yield "calls its own %s by name" % name
    shown = {name for name, kind in elf.symbols(path, "-D", "--defined-only") if kind.isupper() or kind in "wv"}
    for name in sorted(shown - exports):
        yield "shows %s, which its list does not name" % name
    for name in sorted(exports - shown):
        yield "does not show %s of its list" % name


def linked(exports, shared_exports):
    """Of the parts, those that install handlers are in the archive and the object too."""
    return exports | {name for name in shared_only(shared_exports) if "sig" in name}


def relocatable(path, exports):
    defined = {name for name, kind in elf.symbols(path, "--defined-only", "-g")}
    for name in sorted(defined - exports):
        # The linker leaves names of merged sections that it made up itself.
        if not name.startswith("__x86.get_pc_thunk"):
            yield "defines %s for all" % name
    for name in sorted(exports - defined):
        yield "lacks %s" % name
    for name, kind in sorted(elf.symbols(path, "-u")):
        if re.match(r"_?mi_", name):
            yield "leaves %s undefined" % name


def archive(path, exports):
    members = elf.run("ar", "t", path).split()
    if len(members) != 1:
        yield "has %d members, so that a program may take some of them only" % len(members)
    yield from relocatable(path, exports)


def check(stem, paths, exports, shared_exports):
    static = linked(exports, shared_exports)
    for kind, complaints in (("shared", shared(paths[0], stem, shared_exports)), ("archive", archive(paths[1], static)), ("object", relocatable(paths[2], static))):
        for complaint in complaints:
            yield "%s: %s" % (os.path.basename(paths[("shared", "archive", "object").index(kind)]), complaint)
    real = os.path.realpath(paths[0])
    folder = os.path.dirname(real)
    if os.path.basename(real) != "lib%s.so.3.0" % stem:
        yield "%s is not a link to the file with the full version" % paths[0]
    for name in ("lib%s.so" % stem, "lib%s.so.3" % stem):
        path = os.path.join(folder, name)
        if not os.path.islink(path) or os.readlink(path) != os.path.basename(real):
            yield "%s is no relative link to %s" % (name, os.path.basename(real))


def controls():
    """Bad artifacts, each of which must be complained about in these words."""
    source = "#include <math.h>\n__thread char tls[4096]; double (*f)(double) = cos; void *memset(void* p, int c, unsigned long n) { return p; } void* (*g)(void*, int, unsigned long) = memset; int mi_x(void) { return tls[0]; } void leak(void) {}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bad")
        with open(path + ".c", "w") as f:
            f.write(source)
        flags = ["-fPIC", "-shared", "-Wl,-soname,libother.so.1", "-Wl,-z,lazy", "-Wl,-z,norelro", "-Wl,-z,execstack", "-Wl,-rpath,/tmp", "-Wl,--no-as-needed"]
        subprocess.run(["gcc"] + flags + [path + ".c", "-o", path + ".so", "-lm"], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["gcc", "-fPIC", "-c", path + ".c", "-o", path + ".o"], check=True)
        shutil.copy(path + ".o", path + ".2.o")
        subprocess.run(["ar", "rc", path + ".a", path + ".o", path + ".2.o"], check=True)
        said = "\n".join(check("good", [path + ".so", path + ".a", path + ".o"], {"mi_x", "mi_y"}, {"mi_x", "mi_z", "memset", "sigset"}))
        for words in ("SONAME is", "needs libm", "not bound at once", "may be unloaded", "search path", "no read-only relocations", "executable stack",
                      "of static TLS", "shows leak", "does not show mi_z", "calls its own memset", "defines leak", "lacks mi_y", "lacks sigset", "2 members", "not a link"):
            if words not in said:
                yield "the check does not see a library that deserves: " + words


def main():
    stem, paths = sys.argv[1], sys.argv[2:5]
    exports, shared_exports = (exported(path, elf.bits(sys.argv[2])) for path in sys.argv[5:7])
    complaints = list(controls()) + list(check(stem, paths, exports, shared_exports))
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
