# Owns: that every unit of a library was compiled by clang, and which units those are.
# May include: Python's standard library; binutils' readelf.
# Called by: the build, as a test of each variant: compiler_test.py LIBRARY-BY-CLANG LIBRARY-BY-THE-TOOLCHAIN.
# Invariants: the compiler is what the file says of itself; the units are those of the library that the toolchain made.
import re
import subprocess
import sys


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], check=True, stdout=subprocess.PIPE, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin"}).stdout


def units(path):
    """Source file -> its producer, from the debug information."""
    found, name, producer = {}, None, None
    for line in readelf("--debug-dump=info", "--dwarf-depth=1", path).splitlines():
        tag = re.search(r"\((DW_TAG_\w+)\)$", line)
        value = re.search(r"DW_AT_(name|producer)\s*:\s*(?:\(.*?\): )?(.*?)\s*$", line)
        if tag:
            name = producer = None
        elif value and value.group(1) == "name":
            name = value.group(2)
        elif value:
            producer = value.group(2)
        if name and producer:
            found[re.sub(r"^.*?/((?:src|hardening)/)", r"\1", name)] = producer
            name = producer = None
    return found


def main():
    by_clang, by_toolchain = sys.argv[1:]
    comment = readelf("-p", ".comment", by_clang)
    bad = []
    if "clang version" not in comment:
        bad.append(".comment names no clang: " + comment.strip())
    found = units(by_clang)
    # Units for tools that watch memory are empty in all other variants, and clang tells nothing of those.
    expected = [u for u in units(by_toolchain) if u in found or not u.startswith("src/track/")]
    bad += ["%s was compiled by %s" % item for item in sorted(found.items()) if "clang version" not in item[1]]
    if set(found) != set(expected):
        bad.append("units differ: %s" % ", ".join(sorted(set(found) ^ set(expected))))
    if len(found) < 50:
        bad.append("%d units are not the whole library" % len(found))
    for line in bad:
        print("%s: %s" % (by_clang, line))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
