# Owns: that the library compiles for i386 without a warning, shows the names that are mangled for 32 bits, and runs there.
# May include: Python's standard library; a cross compiler of Debian and its C library. A kernel that runs no programs of 32 bits leaves them to qemu.
# Called by: the build, as a test of some variants: i686_test.py PROFILE.
# Invariants: reads the checkout itself, like the checks of test/lint.
import concurrent.futures
import errno
import glob
import os
import re
import subprocess
import sys
import tempfile

TARGET = "i686-linux-gnu"
SYSROOT = "/usr/" + TARGET
WARNINGS = ["-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Wconversion", "-Wcast-qual", "-Werror"]
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-fno-semantic-interposition", "-fno-builtin-malloc", "-fno-plt", "-fexceptions"]
PROGRAMS = ["header_test.c", "header_v2_test.c", "override_test.c", "header_test.cc", "override_test.cc"]


def must(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit("%s: status %d\n%s" % (" ".join(words), done.returncode, done.stdout))
    return done.stdout


def build(root, profile, work):
    """The shared library of a profile, from every source of Linux."""
    constants = open(os.path.join(root, "policy/profiles", profile, "mi-profile.h")).read()
    copies = re.search(r"MI_HAS_CHECKED_COPIES = [12]", constants) is not None
    sampled = "MI_HAS_GUARDED = 1" in constants
    found = sorted(glob.glob(os.path.join(root, "src/**/*.c"), recursive=True))
    sources = [s for s in found if not re.search(r"/prim/(windows|macos|wasi)/", s) and (copies or "/api/shared/copies" not in s) and
               (sampled or "/api/shared/signals" not in s)]
    search = ["-I", root, "-I", os.path.join(root, "include"), "-I", os.path.join(root, "policy/profiles", profile)]
    objects = [os.path.join(work, os.path.relpath(s, root).replace("/", "_") + ".o") for s in sources]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: must(TARGET + "-gcc", *FLAGS, *WARNINGS, "-Wstrict-prototypes", *search, "-c", pair[0], "-o", pair[1]), zip(sources, objects)))
    names, parts = open(os.path.join(root, "src/api/exports.map")).read(), ""
    if copies:
        parts += open(os.path.join(root, "src/api/shared/copies.map")).read()
    if sampled:
        parts += open(os.path.join(root, "src/api/shared/signals.map")).read()
    script = os.path.join(work, "exports.map")
    with open(script, "w") as f:
        f.write(names.replace("  local:", parts + "  local:"))
    library = os.path.join(work, "libours.so.3")
    wrap = ["-Wl,--wrap=" + f for f in ("memcpy", "memmove", "memset")] if copies else []
    must(TARGET + "-gcc", "-shared", "-o", library, "-Wl,-soname,libours.so.3", "-Wl,--version-script=" + script, *objects, *wrap, "-Wl,-z,now", "-Wl,-z,defs", "-lpthread")
    return library


def names(root, library):
    """What differs from the list of the interface, with j for size_t."""
    def lines(name):
        return {line.split(":")[0].strip() for line in open(os.path.join(root, "test/api", name)) if line.strip() and line[0] != "#"}

    promised = {re.sub(r"^(_Zn[wa]|_Zd[la]Pv)m", r"\1j", n) for n in lines("interface.txt") - lines("not_yet.txt")}
    operators = {n for n in promised if n.startswith("_Z")}
    assert len(operators) == 20 and sum("j" in n for n in operators) == 12, operators
    shown = {line.split()[-1] for line in must("nm", "-D", "--defined-only", library).splitlines()}
    yield from ("does not show " + n for n in sorted(promised - shown))
    yield from ("shows " + n for n in sorted(shown - promised) if n.startswith(("mi_", "_Z")))


def runner():
    try:
        subprocess.run([SYSROOT + "/lib/ld-linux.so.2", "--version"], stdout=subprocess.DEVNULL, check=True)
        return []
    except OSError as e:
        if e.errno != errno.ENOEXEC:
            raise
        return ["qemu-i386"]


def run(root, library, name, work, emulated):
    program = os.path.join(work, name + ".bin")
    compiler = [TARGET + "-g++", "-std=gnu++17"] if name.endswith(".cc") else [TARGET + "-gcc", "-std=gnu11"]
    must(*compiler, "-O1", "-fno-builtin", *WARNINGS, "-I", root, "-I", os.path.join(root, "include"), os.path.join(root, "test/api", name), "-o", program, library, "-lpthread")
    must(*emulated, SYSROOT + "/lib/ld-linux.so.2", "--library-path", "%s/lib:%s" % (SYSROOT, os.path.dirname(library)), program)


def main():
    root = os.path.dirname(os.path.realpath(os.environ["MI_LINT_ANCHOR"]))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as work:
        library = build(root, sys.argv[1], work)
        complaints = list(names(root, library))
        emulated = runner()
        # To qemu MADV_DONTNEED is a hint: what is given back keeps its content, which zero-on-free finds and reports.
        left_out = emulated and sys.argv[1] == "strict"
        for name in PROGRAMS if not left_out else []:
            run(root, library, name, work, emulated)
    print("\n".join(complaints), end="\n" if complaints else "")
    if left_out and not complaints:
        print("its programs do not run: the kernel runs none of 32 bits, and under qemu memory that was given back keeps its content")
        sys.exit(77)
    sys.exit(1 if complaints else 0)


main()
