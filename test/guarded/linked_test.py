# Owns: that programs which are linked with a variant have the report of a fault before their own handler, whenever it was installed.
# May include: the standard library of Python.
# Called by: the build, as a test: linked_test.py VARIANT ARCHIVE OBJECT SOURCE.
# Invariants: the program is the one of test/death, which preloads the library there.
import os
import re
import subprocess
import sys
import tempfile

# What the program does around its overflow, how it ends, and the line of its handler.
ROWS = [
    ([], -11, None),
    (["signal"], 40, "handler: SIGSEGV"),
    (["info"], 41, "handler: 11 at {ptr}, context, on the same stack"),
    (["info", "stack"], 41, "handler: 11 at {ptr}, context, on another stack"),
    (["signal", "early"], 40, "handler: SIGSEGV"),
    (["info", "stack", "early"], 41, "handler: 11 at {ptr}, context, on another stack"),
]


def main():
    variant, archive, single, source = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), os.path.abspath(sys.argv[4])
    failures = 0
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MIMALLOC_", "LD_PRELOAD"))}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sampled")
        for flags, file in (([], archive), (["-static"], archive), (["-static-pie"], single), ([], single)):
            kind = " ".join(flags + [os.path.basename(file)])
            subprocess.run(["cc", "-g", "-O1", "-fno-builtin", "-o", program] + flags + [source, file, "-lpthread"], check=True)
            for around, status, line in ROWS:
                done = subprocess.run([program, "over-write", "100", "16"] + around, env=dict(env, MIMALLOC_GUARDED_SAMPLE_RATE="1"), check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
                pointer = re.findall(r"pointer (0x[0-9a-f]+)", done.stdout)[-1:]
                report = r"(?m)^mimalloc-%s: overflow: pointer %s is 13 bytes beyond the end of a guarded block of 100 bytes at 0x[0-9a-f]+, written by thread \d+$" % (
                    variant, "".join(pointer))
                said = line is None or re.search("(?m)^%s$" % re.escape(line.replace("{ptr}", "".join(pointer))), done.stderr)
                if done.returncode != status or len(re.findall(report, done.stderr)) != 1 or not said:
                    failures += 1
                    print("%s, %s: ended with %d, expected %d and one report and %s:\n%s" % (kind, " ".join(around) or "no handler", done.returncode, status,
                                                                                          line or "no handler", done.stderr), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
