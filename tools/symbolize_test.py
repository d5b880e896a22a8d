# Owns: tests of tools/symbolize: what is a report, names of calls in a program that is compiled here, and groups of equal reports.
# May include: the standard library of Python.
# Called by: the build, as a test: symbolize_test.py SCRIPT.
# Invariants: needs a C compiler and addr2line, which building the allocator needs too.
import os
import subprocess
import sys
import tempfile

PROGRAM = """
__attribute__((noinline)) int buggy(const char* p) { return p[1]; }
int main(int argc, char** argv) { return buggy(argv[argc - 1]); }
"""

REPORT = """some line of the program
mimalloc-secure: overflow: pointer 0x7f%(n)d000 is 1 byte beyond the end of a guarded block of 48 bytes at 0x7f%(n)dfd0, %(access)s by thread %(n)d
    #0 0x55550000%(n)d %(module)s+%(offset)s
    #1 0x7f1234
  allocated by thread %(n)d:
    #0 0x1 /nowhere/lib.so+0x10
  to repeat: MIMALLOC_GUARDED_SAMPLE_RATE=4000 MIMALLOC_GUARDED_SAMPLE_SEED=%(n)d
another line
"""

failures = []


def check(what, condition, shown=""):
    if not condition:
        failures.append(what)
        print("failed: %s\n%s" % (what, shown), file=sys.stderr)


def run(script, *args, **kwargs):
    return subprocess.run([sys.executable, "-B", script] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **kwargs)


def main():
    script = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "program.c")
        program = os.path.join(folder, "program with a space")
        with open(source, "w") as file:
            file.write(PROGRAM)
        subprocess.run(["cc", "-g", "-O0", "-o", program, source], check=True)
        symbols = subprocess.run(["nm", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        start = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" buggy"))
        values = {"module": program, "offset": hex(start + 4), "access": "read"}
        logs = os.path.join(folder, "logs")
        os.mkdir(logs)
        for n in range(1, 5):
            with open(os.path.join(logs, "log.%d" % n), "w") as file:
                file.write(REPORT % dict(values, n=n, access="written" if n == 4 else "read"))
        with open(os.path.join(logs, "binary"), "wb") as file:
            file.write(b"\xff\x00mimalloc: overflow\n")

        grouped = run(script, logs)
        check("status", grouped.returncode == 0, grouped.stderr)
        check("groups", grouped.stdout.startswith("3 times\nmimalloc-secure: overflow: ") and "\n1 time\n" in grouped.stdout, grouped.stdout)
        check("counts", grouped.stderr == "4 reports, 2 different\n", grouped.stderr)
        check("name and place", "    #0 buggy in %s:2\n" % source in grouped.stdout, grouped.stdout)
        check("unknown stays", "    #1 0x7f1234\n" in grouped.stdout and "    #0 0x1 /nowhere/lib.so+0x10\n" in grouped.stdout, grouped.stdout)
        check("only reports", "some line" not in grouped.stdout and "another line" not in grouped.stdout, grouped.stdout)
        check("how to repeat", "MIMALLOC_GUARDED_SAMPLE_SEED=1" in grouped.stdout, grouped.stdout)

        each = run(script, "--each", input=REPORT % dict(values, n=7) + REPORT % dict(values, n=8))
        check("standard input", each.stdout.count("mimalloc-secure: overflow: ") == 2 and "times" not in each.stdout, each.stdout)

        # Elsewhere than on the machine of the crash.
        os.makedirs(os.path.join(folder, "root", "bin"))
        os.rename(program, os.path.join(folder, "root", "bin", "p"))
        moved = run(script, "--root", os.path.join(folder, "root"), input=REPORT % dict(values, n=7, module="/bin/p"))
        check("root", "    #0 buggy in " in moved.stdout, moved.stdout)

        # A path that looks like an option, or like a command, is a path.
        odd = run(script, input=REPORT % dict(values, n=7, module="--help; touch %s/x" % folder), cwd=folder)
        check("no command", odd.returncode == 0 and not os.path.exists(os.path.join(folder, "x")), odd.stderr)
        check("nothing there", run(script, input="no report\n").returncode == 1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
