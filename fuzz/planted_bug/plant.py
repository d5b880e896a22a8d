#!/usr/bin/env python3
# Owns: plant.py NAME FAULTS FOLDER, which writes the file of a fault, with the fault, below FOLDER, and prints its name there.
# May include: nothing but Python's own library.
# Called by: the build, for mi_planted_bug.
# Invariants: the line to be changed stands in the file exactly once; else the build fails here, and the fault is to be planted anew.
import pathlib
import sys


def read(faults):
    """name -> (file, line, line instead)"""
    found = {}
    lines = [line for line in faults.read_text().split("\n") if not line.startswith("#") and line.strip()]
    for i in range(0, len(lines), 3):
        name, file = lines[i].split()
        found[name] = (file, lines[i + 1], lines[i + 2])
    return found


def main():
    name, faults, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    file, right, wrong = read(faults)[name]
    text = pathlib.Path(file).read_text()
    if text.count("\n" + right + "\n") != 1:
        sys.exit("planted bug %s: %s has the line %d times, not once: %s" % (name, file, text.count("\n" + right + "\n"), right.strip()))
    out = folder / file
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text.replace("\n" + right + "\n", "\n" + wrong + "\n"))
    print(out)


main()
