#!/usr/bin/env python3
# Owns: putting built artifacts, headers, CMake packages and pkg-config files where a prefix or a package wants them.
# May include: Python 3.7 and its own library only.
# Called by: packagers, by hand; test/consumer.
# Invariants: everything that will be installed is known to be there before the first file is written; what was not built is named.
"""Installs the variants that were built, under a prefix.

    ./bazelw build //:mimalloc //:mimalloc_secure
    packaging/install.py --prefix /usr/local

Each variant gets its shared library with links, archive and object in the library folder, a CMake package and a pkg-config
file, both named like the library; all share the headers. Variants can be installed beside each other.
"""
import argparse
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
STEM = re.compile(r"^lib(mimalloc(?:-[a-z]+)?)\.so\.(\d+)\.(\d+)$")
DESCRIPTION = {
    "mimalloc": "a fast malloc",
    "mimalloc-secure": "a hardened malloc",
    "mimalloc-strict": "a malloc with every check that is meant for production",
    "mimalloc-guarded": "a malloc that samples allocations for guard pages",
    "mimalloc-debug": "a malloc that says most about bad use",
}


def fail(text):
    sys.exit("install.py: " + text)


def version(include):
    with open(os.path.join(include, "mimalloc.h")) as f:
        match = re.search(r"^#define MI_MALLOC_VERSION (\d)(\d\d)(\d\d)$", f.read(), re.M)
    if match is None:
        fail("%s/mimalloc.h does not say its version" % include)
    return ".".join(str(int(part)) for part in match.groups())


def built(folder):
    """Stem -> (so version, so minor) of what is in the folder."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return {m.group(1): (m.group(2), m.group(3)) for m in map(STEM.match, sorted(names)) if m}


def pointer_size(path):
    with open(path, "rb") as f:
        head = f.read(5)
    if head[:4] != b"\x7fELF":
        fail("%s is no ELF file" % path)
    return 8 if head[4] == 2 else 4


def fill(template, values):
    with open(template) as f:
        text = f.read()
    for key, value in values.items():
        text = text.replace("@%s@" % key, value)
    left = re.search(r"@[A-Z_]+@", text)
    if left:
        fail("%s: nothing is known about %s" % (template, left.group(0)))
    return text


class Plan:
    """What goes where, all of it before anything is written."""

    def __init__(self, destdir):
        self.destdir, self.steps = destdir, []

    def target(self, path):
        return os.path.join(self.destdir, path.lstrip("/")) if self.destdir else path

    def copy(self, source, path, mode=0o644):
        if not os.path.isfile(source):
            fail("%s is missing: build the variant first" % source)
        self.steps.append(("copy", source, self.target(path), mode))

    def link(self, text, path):
        self.steps.append(("link", text, self.target(path), None))

    def write(self, text, path):
        self.steps.append(("write", text, self.target(path), 0o644))

    def run(self):
        for kind, source, path, mode in self.steps:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # Beside and then over it: a library that programs have mapped must not change under them.
            fresh = path + ".new"
            if os.path.lexists(fresh):
                os.unlink(fresh)
            if kind == "link":
                os.symlink(source, fresh)
            elif kind == "write":
                with open(fresh, "w") as f:
                    f.write(source)
            else:
                shutil.copyfile(source, fresh)
            if mode is not None:
                os.chmod(fresh, mode)
            os.replace(fresh, path)


def plan_variant(plan, args, stem, soversion, minor, release):
    artifacts, libdir = args.artifacts, args.libdir
    real = "lib%s.so.%s.%s" % (stem, soversion, minor)
    plan.copy(os.path.join(artifacts, real), os.path.join(libdir, real), 0o755)
    plan.link(real, os.path.join(libdir, "lib%s.so.%s" % (stem, soversion)))
    plan.link(real, os.path.join(libdir, "lib%s.so" % stem))
    plan.copy(os.path.join(artifacts, "lib%s.a" % stem), os.path.join(libdir, "lib%s.a" % stem))
    plan.copy(os.path.join(artifacts, stem + ".o"), os.path.join(libdir, stem + ".o"))
    cmake = os.path.join(libdir, "cmake", stem)
    values = {
        "STEM": stem,
        "VERSION": release,
        "SOVERSION": soversion,
        "DESCRIPTION": DESCRIPTION.get(stem, "a malloc"),
        "POINTER_SIZE": str(pointer_size(os.path.join(artifacts, real))),
        "PREFIX": args.prefix,
        "LIBDIR": libdir,
        "INCLUDEDIR": args.includedir,
        "LIBDIR_FROM_CMAKE": os.path.relpath(libdir, cmake),
        "INCLUDEDIR_FROM_CMAKE": os.path.relpath(args.includedir, cmake),
        "PREFIX_FROM_CMAKE": os.path.relpath(args.prefix, cmake),
    }
    for suffix in ("config", "config-version"):
        plan.write(fill(os.path.join(HERE, "cmake", suffix + ".cmake.in"), values), os.path.join(cmake, "%s-%s.cmake" % (stem, suffix)))
    plan.write(fill(os.path.join(HERE, "pkgconfig", "variant.pc.in"), values), os.path.join(libdir, "pkgconfig", stem + ".pc"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="/usr/local", help="absolute path (default: %(default)s)")
    parser.add_argument("--libdir", default="lib", help="relative to the prefix, or absolute (default: %(default)s)")
    parser.add_argument("--includedir", default="include", help="likewise (default: %(default)s)")
    parser.add_argument("--destdir", default="", help="put before every path that is written, for packages")
    parser.add_argument("--artifacts", default=os.path.join(ROOT, "bazel-bin"), help="folder of what was built (default: %(default)s)")
    parser.add_argument("--headers", default=os.path.join(ROOT, "include"), help="folder of the headers (default: %(default)s)")
    parser.add_argument("--variant", action="append", default=[], metavar="STEM",
                        help="mimalloc, mimalloc-secure and so on; may be repeated (default: every one that was built)")
    args = parser.parse_args()
    if not os.path.isabs(args.prefix):
        fail("--prefix %s is no absolute path" % args.prefix)
    args.libdir = os.path.join(args.prefix, args.libdir)
    args.includedir = os.path.join(args.prefix, args.includedir)
    found = built(args.artifacts)
    if not found:
        fail("%s holds no library: build one first, as by ./bazelw build //:mimalloc_secure" % args.artifacts)
    for stem in args.variant:
        if stem not in found:
            fail("%s was not built: %s has %s" % (stem, args.artifacts, ", ".join(found)))
    plan = Plan(args.destdir)
    for folder, _, names in sorted(os.walk(args.headers)):
        for name in sorted(names):
            if name.endswith(".h"):
                source = os.path.join(folder, name)
                plan.copy(source, os.path.join(args.includedir, os.path.relpath(source, args.headers)))
    release = version(args.headers)
    for stem in args.variant or found:
        plan_variant(plan, args, stem, found[stem][0], found[stem][1], release)
    plan.run()
    print("installed %s %s under %s" % (", ".join(args.variant or found), release, plan.target(args.prefix)))


if __name__ == "__main__":
    main()
