# Owns: the run of spin over a model: every interleaving of it is right, and each fault that it names is found.
# May include: Python's standard library; spin, and a C compiler for the program that spin writes.
# Called by: the build, as a test of each model: model_test.py MODEL.pml [OPTION-OF-PAN...]. By hand alike, in any folder.
# Invariants: without a fault the search is complete and nothing is found; with one an assertion is, or an end where somebody
# waits for ever. A model without faults, or with one that nobody describes on top, is none.
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEPTH = 100000


def explore(model, options, fault, folder):
    """The output of the exhaustive search, or as far as the first error."""
    shutil.copy(model, folder)
    plant = ["-DFAULT_" + fault] if fault else []
    compiler = shutil.which("gcc") or shutil.which("clang")
    subprocess.run(["spin", *plant, "-a", os.path.basename(model)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    # A fault is found among the first states, so that the search is not worth a compiler's effort.
    optimise = ["-O0"] if fault else ["-O1", "-DCOLLAPSE"]
    subprocess.run([compiler, "-w", *optimise, "-DSAFETY", "-DMEMLIM=2048", "-o", "pan", "pan.c"], cwd=folder, check=True)
    done = subprocess.run(["./pan", "-m%d" % DEPTH, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def trail(model, fault, folder):
    plant = ["-DFAULT_" + fault] if fault else []
    return subprocess.run(["spin", *plant, "-t", "-p", os.path.basename(model)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def errors(output):
    found = re.search(r"errors: (\d+)", output)
    return int(found.group(1)) if found else None


def check_model(model, options):
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        output = explore(model, options, None, folder)
        if errors(output) != 0:
            bad.append("an interleaving goes wrong:\n%s\n%s" % (output, trail(model, None, folder)))
        elif "error: max search depth too small" in output or "Search not completed" in output:
            bad.append("the search is not complete:\n" + output)
        states = re.search(r"(\d+(?:\.\d+)?(?:e\+\d+)?) states, stored", output)
        print("%s: %s states" % (os.path.basename(model), states.group(1) if states else "no"))
    return bad


def check_fault(model, options, fault):
    with tempfile.TemporaryDirectory() as folder:
        output = explore(model, options, fault, folder)
        if not errors(output) or not re.search(r"pan:\d+: (assertion violated|invalid end state)", output):
            return ["the fault %s is not found:\n%s" % (fault, output)]
    return []


def faults(model):
    """Those that the code has, which must be those that the comment on top describes."""
    with open(model) as f:
        text = f.read()
    used = set(re.findall(r"FAULT_(\w+)", text))
    named = set(re.findall(r"^//   (\w+) +\S", text, re.M))
    return sorted(used), ["faults on top and in the code differ: " + ", ".join(sorted(used ^ named))] if used != named or not used else []


def main():
    model, options = os.path.abspath(sys.argv[1]), sys.argv[2:]
    for tool, alternative in [("spin", "spin"), ("gcc", "clang")]:
        if not shutil.which(tool) and not shutil.which(alternative):
            print("skipped: %s is not installed (Debian: %s)" % (tool, tool))
            return 77
    planted, bad = faults(model)
    bad += check_model(model, options)
    for fault in planted:
        bad += check_fault(model, options, fault)
    for line in bad:
        print("%s: %s" % (os.path.basename(model), line))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
