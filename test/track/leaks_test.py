# Owns: that AddressSanitizer's search for leaks looks into blocks of the allocator, and only into live ones.
# May include: Python's standard library.
# Called by: the build.
# Invariants: a program without the allocator loses a block first: where that is not found the search does not work on this machine.
"""leaks_test.py SOURCE HEADERS LIBRARY

The program is linked with the library in the usual way, behind the run time of AddressSanitizer: malloc is that of the run time.
"""
import os
import re
import subprocess
import sys
import tempfile

CASES = {"held": False, "held_by_large": False, "held_by_grown": False, "lost_with_holder": True, "lost_with_large": True, "lost_in_mapping": True,
         "overwritten": True, "own": False}
# What the search does not find: blocks of the allocator's.
OWN = r"^%s: leaks: 1 blocks, 4321 bytes\n%s: leak: block 0x[0-9a-f]+ of 4321 bytes$"
LEAK = re.compile(r"^==\d+==ERROR: LeakSanitizer: detected memory leaks$", re.M)
BLOCK = re.compile(r"^Direct leak of 1234 byte\(s\) in 1 object\(s\) allocated from:$(?:\n.*){0,3}\n +#1 0x[0-9a-f]+ in (?:fill|map) ", re.M)
CONTROL = "#include <stdlib.h>\nvoid* volatile p;\nint main(void) { p = malloc(1234); p = NULL; return 0; }\n"


def compiled(source, out, more):
    done = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-fno-builtin", "-fsanitize=address", source, "-o", out] + more,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print("does not compile:\n" + done.stdout)
    return done.returncode == 0


def run(command, more=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MIMALLOC_", "ASAN_", "LSAN_", "LD_"))}
    environment["ASAN_OPTIONS"] = "detect_leaks=1"
    environment.update(more or {})
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def main():
    source, headers, library = sys.argv[1:]
    folder_of_library = os.path.dirname(os.path.realpath(library))
    name = os.path.basename(library)[3:].split(".so")[0]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        control = os.path.join(folder, "control.c")
        with open(control, "w") as f:
            f.write(CONTROL)
        if not compiled(control, control + ".out", []):
            print("skipped: gcc's AddressSanitizer is not installed")
            sys.exit(77)
        _, text = run([control + ".out"])
        if not LEAK.search(text):
            print("skipped: the search for leaks does not work here: %s" % text[:300])
            sys.exit(77)
        program = os.path.join(folder, "leaks")
        if not compiled(source, program, ["-I", os.path.dirname(headers), "-L" + folder_of_library, "-l" + name, "-Wl,-rpath," + folder_of_library]):
            sys.exit(1)
        for case, lost in CASES.items():
            status, text = run([program, case])
            found = LEAK.search(text) is not None and BLOCK.search(text) is not None
            if found != lost or (status != 0) != lost or (not lost and text):
                print("%s: %s, status %d, it said:\n%s" % (case, "not found" if lost else "found", status, text[:3000]))
                failed = True
        # But the allocator shows them, whether they are lost or not.
        status, text = run([program, "own"], {"MIMALLOC_SHOW_LEAKS": "1"})
        if status != 0 or not re.search(OWN % (name, name), text, re.M):
            print("own: not shown, status %d, it said:\n%s" % (status, text[:3000]))
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
