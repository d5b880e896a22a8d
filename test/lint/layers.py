# Owns: the layer rule: what a file may include by where it stands.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: the order is read from policy/build/layers.bzl, which the layer macro obeys as well.
import posixpath
import re

import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

# The language's own headers are everyone's. Only prim speaks to the operating system; api has types of the C library in its signatures.
LANGUAGE = {"assert.h", "errno.h", "float.h", "inttypes.h", "limits.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
            "stdnoreturn.h", "string.h"}
OPEN = ("prim", "track", "api")
FREESTANDING = ("hardening", "base")
SYSTEM = {"errno.h"}


def order(files):
    names = {}
    exec(files.get("policy/build/layers.bzl", ORDER).split("def ")[0], {}, names)
    return {layer: rank for rank, row in enumerate(names["LAYERS"]) for layer in row}


def layer_of(path):
    """The layer of a file, None for a test or fuzz target, "" for a place that is no layer."""
    parts = path.split("/")
    if parts[0] in ("test", "fuzz"):
        return None
    if parts[0] in ("policy", "hardening"):
        return parts[0]
    if parts[0] == "include":
        return "policy"
    return parts[1] if parts[0] == "src" and len(parts) > 2 else ""


def check(files):
    rank = order(files)
    for path, text in files.code("src/", "hardening/", "include/", "policy/").items():
        own = layer_of(path)
        if own not in rank:
            yield "%s: stands in no layer" % path
            continue
        for match in INCLUDE.finditer(text):
            kind, name = match.groups()
            where = "%s:%d" % (path, text.count("\n", 0, match.start()) + 1)
            if kind == "<":
                if path.startswith("include/") or own in OPEN or name in LANGUAGE - (SYSTEM if own in FREESTANDING else set()):
                    continue
                yield "%s: <%s> is for %s" % (where, name, " and ".join(OPEN))
                continue
            if name == "mi-profile.h":
                if own != "base":
                    yield "%s: the profile comes with src/base/compiler.h" % where
                continue
            # The public headers are installed elsewhere, so their parts name each other as the compiler looks first: from where they are.
            beside = posixpath.join(posixpath.dirname(path), name)
            if path.startswith("include/") and beside in files:
                target = beside
            elif "include/" + name in files:
                target = "include/" + name
            else:
                target = name
            if target not in files:
                yield "%s: \"%s\" is no file seen from the root" % (where, name)
                continue
            other = layer_of(target)
            if other is None:
                yield "%s: %s includes a test" % (where, own)
            elif other != own and rank.get(other, 99) >= rank[own]:
                yield "%s: %s may not include %s (%s)" % (where, own, other, target)


ORDER = 'LAYERS = [["policy"], ["base"], ["hardening", "prim", "track"], ["sys"], ["region"], ["heap"], ["alloc"], ["api"]]\n'
H = "#pragma once\n"
SAMPLES = [
    {"src/base/a.h": '#include "src/heap/page.h"\n', "src/heap/page.h": H},
    {"src/prim/a.c": '#include "hardening/x.h"\n', "hardening/x.h": H},
    {"src/heap/a.c": '#include "test/lib/test.h"\n', "test/lib/test.h": H},
    {"src/heap/a.c": '#include "page.h"\n', "src/heap/page.h": H},
    {"src/heap/a.c": "#  include <pthread.h>\n"},
    {"hardening/a.c": "#include <errno.h>\n"},
    {"src/other/a.c": "\n"},
    {"src/sys/a.c": '#include "mi-profile.h"\n'},
    {"include/mimalloc/b.h": '#include "c.h"\n', "include/mimalloc/a.h": H},
]
GOOD = [
    {"src/heap/a.c": '#include "src/heap/page.h"\n#include <errno.h>\n#include "policy/x.def"\n', "src/heap/page.h": '#include "src/base/b.h"\n',
     "src/base/b.h": H, "policy/x.def": ""},
    {"src/prim/unix/a.c": '#include <pthread.h>\n#include "src/prim/prim.h"\n', "src/prim/prim.h": H},
    {"src/sys/o.h": '#include "mimalloc.h"\n', "include/mimalloc.h": '#include <stdio.h>\n#include "mimalloc/b.h"\n', "include/mimalloc/b.h": '#include "a.h"\n', "include/mimalloc/a.h": H},
]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
