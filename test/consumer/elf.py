# Owns: reading what the artifact checks need of an ELF file, by binutils' readelf and nm.
# May include: Python's standard library.
# Called by: artifacts_test.py.
# Invariants: a tool that fails ends the test.
import re
import subprocess


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin"}).stdout


def bits(path):
    return int(re.search(r"Class:\s+ELF(\d+)", run("readelf", "-hW", path)).group(1))


def dynamic(path):
    """Tag -> list of values of the dynamic section."""
    found = {}
    for line in run("readelf", "-dW", path).splitlines():
        match = re.match(r"\s*0x[0-9a-f]+ \((\w+)\)\s*(.*)", line)
        if match:
            value = re.search(r"\[(.*)\]", match.group(2))
            found.setdefault(match.group(1), []).append(value.group(1) if value else match.group(2).strip())
    return found


def segments(path):
    """Type -> flags of the program headers."""
    found = {}
    for line in run("readelf", "-lW", path).splitlines():
        match = re.match(r"\s+(\w+)\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ (0x\w+) ([RWE ]{3})", line)
        if match:
            found[match.group(1)] = (int(match.group(2), 16), match.group(3).replace(" ", ""))
    return found


def symbols(path, *options):
    """(name, type) of the symbols that nm lists, versions cut off."""
    found = set()
    for line in run("nm", "-P", *options, path).splitlines():
        words = line.split()
        if len(words) >= 2 and not line.endswith(":"):
            found.add((words[0].split("@")[0], words[1]))
    return found
