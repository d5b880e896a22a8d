#!/usr/bin/env python3
# Owns: the test of fuzz/campaign, with a target that has a planted fault and one that has none.
# May include: nothing but Python's own library.
# Called by: the build, as a test.
# Invariants: nothing is written outside of a folder that is gone afterwards; times are limits, not what is hoped for.
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.path.realpath("WORKSPACE")).parent


def run(*arguments, good=(0,)):
    done = subprocess.run([sys.executable, "-B"] + [str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode == 77:
        print(done.stdout.strip())
        sys.exit(77)
    if done.returncode not in good:
        sys.exit("%s\n%s ended with status %d" % (done.stdout, arguments[0], done.returncode))
    return done.stdout


def expect(what, holds, told=""):
    if not holds:
        sys.exit("%s\nit does not hold: %s" % (told, what))


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        programs, home, crashes = folder / "programs", folder / "home", folder / "crashes"
        crashes.mkdir()
        make = ROOT / "fuzz" / "make"
        run(make, "--out", programs, "--only", "fuzz_freelist")
        run(make, "--out", programs, "--only", "fuzz_sizeclass", "--plant", "class_off_by_one")
        campaign = [ROOT / "fuzz" / "campaign", "--home", home, "--crashes", crashes, "--programs", programs, "--jobs", 2, "--turn", 2]

        told = run(*campaign, "--minutes", 0.1, good=(1,))
        expect("the finding is told", re.search(r"finding: secure-\w+: fuzz: ", told), told)
        rows = [line.split(None, 3) for line in (crashes / "rows.txt").read_text().splitlines()]
        expect("a fault that is found again and again is filed once for what it says", len({row[3] for row in rows}) == len(rows), rows)
        for target, variant, name, what in rows:
            expect("the row is of the target with the fault", (target, variant) == ("fuzz_sizeclass", "secure"), what)
            again = subprocess.run([programs / "fuzz_sizeclass_secure", crashes / target / name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            expect("the filed input fails alone", re.search(rb"==\d+==ERROR: fuzz: ", again.stdout), again.stdout)
            expect("it was made small", (crashes / target / name).stat().st_size <= 64)
        summary = (home / "summary.txt").read_text()
        expect("the summary has both targets", "fuzz_freelist_secure" in summary and "fuzz_sizeclass_secure" in summary, summary)
        first = json.loads((home / "state.json").read_text())
        expect("runs are counted", first["fuzz_freelist_secure"]["runs"] > 0 and first["fuzz_sizeclass_secure"]["findings"] > 0, first)
        kept = list((home / "corpus" / "fuzz_freelist").iterdir())
        expect("the corpus is kept", kept)

        # It goes on: with what it has found, and with its counts. What a merge does not need is gone.
        for i in range(3):
            shutil.copy(kept[0], home / "corpus" / "fuzz_freelist" / ("again-%d" % i))
        told = run(*campaign, "--only", "fuzz_freelist", "--minutes", 0.05)
        second = json.loads((home / "state.json").read_text())
        expect("counts go on", second["fuzz_freelist_secure"]["runs"] > first["fuzz_freelist_secure"]["runs"], second)
        expect("counts of others stay", second["fuzz_sizeclass_secure"] == first["fuzz_sizeclass_secure"], second)
        expect("the same input is kept once", len({f.read_bytes() for f in (home / "corpus" / "fuzz_freelist").iterdir()}) ==
               len(list((home / "corpus" / "fuzz_freelist").iterdir())))

        # A fuzzer that ends badly and says nothing is not passed over.
        mute = programs / "fuzz_freelist_secure"
        mute.unlink()
        mute.write_text("#!/bin/sh\nexit 3\n")
        mute.chmod(0o755)
        told = run(*campaign, "--only", "fuzz_freelist", "--minutes", 0.05, good=(1,))
        expect("a status without an input is a finding", "ended with status 3 and left no input" in told, told)


main()
