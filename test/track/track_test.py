# Owns: running wrong.c under a tool and comparing what is said with the table.
# May include: Python's standard library.
# Called by: the build, as a test of each tool and each way to link; test/lint/track_table.py reads the table with it.
# Invariants: a report is told by its header, at the beginning of a line; a tool that is not there ends the test with 77.
"""track_test.py TOOL ROWS SOURCE HEADERS LIBRARY [WAY [CASE...]]

TOOL     asan-gcc, asan-clang, valgrind, or the short name of a variant that needs no tool
LIBRARY  shared library, archive or object
WAY      preload (where not said), object, archive, static
CASE     these of the table only
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

COLUMNS = ["asan", "valgrind", "debug", "secure", "strict", "guarded"]
MEMCHECK = {
    "read": r"Invalid read of size \d+",
    "write": r"Invalid write of size \d+",
    "free": r"Invalid free\(\) / delete / delete\[\] / realloc\(\)",
    "uninitialised": r"Conditional jump or move depends on uninitialised value\(s\)",
    "lost": r"[\d,]+ bytes in \d+ blocks are definitely lost",
    # What lies in an old stack or register may look like an address inside a block.
    "maybe-lost": r"[\d,]+ bytes in \d+ blocks are possibly lost",
}
# The most that a case takes where nothing is in its way is some two seconds.
TIMEOUT = 300


def rows(text):
    """(case, column -> words), and the cases of each row of the README by its title. ValueError says what is wrong."""
    table, groups = {}, []
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("= "):
            groups.append((line[2:], []))
        elif line and not line.startswith("#"):
            case, *cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != len(COLUMNS) or not groups:
                raise ValueError("test/track/rows.txt: no row: " + line)
            table[case] = dict(zip(COLUMNS, [cell.split() for cell in cells]))
            groups[-1][1].append(case)
    return table, groups


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def wanted(command):
    if shutil.which(command) is None:
        skip("no %s on this machine" % command)
    return command


def build(tool, source, headers, out, library, way):
    """The program; None is returned where the compiler has no sanitizer of this kind."""
    compiler = wanted("clang" if tool == "asan-clang" else "gcc")
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-fno-builtin", "-I", headers]
    libraries = ["-lpthread"]
    if tool.startswith("asan"):
        flags.append("-fsanitize=address")
        if compiler == "clang":
            name = "libclang_rt.asan-%s.so" % os.uname().machine
            runtime = subprocess.run([compiler, "-print-file-name=" + name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            if not os.path.isabs(runtime):
                skip("clang's %s is not installed" % name)
            flags += ["-shared-libasan", "-Wl,-rpath," + os.path.dirname(runtime)]
    elif way != "static":
        # For operator new, which an object or archive brings.
        libraries += [] if way != "preload" else ["-Wl,--no-as-needed", "-lstdc++"]
    if way == "static":
        flags.append("-static")
    # The sanitizer's malloc comes first on the command line, so that nothing is looked for in an archive.
    linked = {"preload": [], "archive": ["-Wl,--whole-archive", library, "-Wl,--no-whole-archive"]}.get(way, [library])
    done = subprocess.run([compiler] + flags + [source] + linked + libraries + ["-o", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        if tool.startswith("asan") and re.search(r"cannot find .*asan", done.stdout):
            skip("the run time of AddressSanitizer of %s is not installed" % compiler)
        sys.exit("%s does not compile:\n%s" % (source, done.stdout))


def said(tool, name, status, text):
    """The words for what was said, in order, and what was said that there is no word for."""
    words, rest = [], []
    for line in text.splitlines():
        own = re.match(r"%s: ([a-z-]+): " % name, line)
        asan = re.match(r"==\d+==ERROR: AddressSanitizer: ([\w-]+)", line)
        memcheck = re.match(r"==\d+== (.*)", line)
        if own:
            words.append(own.group(1))
        elif asan:
            words.append("poison" if asan.group(1) == "use-after-poison" else asan.group(1))
        elif tool == "valgrind" and memcheck:
            words += [word for word, what in MEMCHECK.items() if re.match(what, memcheck.group(1))]
        elif re.match(r"==\d+==ERROR: ", line):
            words.append(line)
    if status != 0 and not words:
        words.append("fault" if status == -signal.SIGSEGV else "status %d" % status)
    if status == 0 and not words and text:
        words.append("unknown: " + text)
    return words


def of_program(text):
    """Without reports whose calls do not lead through the program: a static C library starts with some, whatever its malloc is."""
    lines = text.splitlines(True)
    # The allocator's own stand between reports.
    kept = [line for line in lines if not line.startswith("==")]
    for part in re.split(r"(?<=\n)==\d+== \n", "".join(line for line in lines if line.startswith("=="))):
        if re.search(r" by 0x[0-9A-F]+: (?:main|churning|freeing) \(wrong\.c:", part):
            kept.append(part)
    return "".join(kept)


def run(tool, name, program, library, way, case):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MIMALLOC_", "ASAN_", "LSAN_", "LD_"))}
    environment["MIMALLOC_BACKTRACE"] = "0"
    environment["MIMALLOC_GUARDED_SAMPLE_RATE"] = "1" if tool == "guarded" else "0"
    command = [program, case]
    if way == "preload":
        environment["LD_PRELOAD"] = library
    if tool == "valgrind":
        command = ["valgrind", "-q", "--leak-check=full", "--soname-synonyms=somalloc=nouserintercepts", "--error-exitcode=9"] + command
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT)
    text = done.stdout.decode(errors="replace")
    if way != "static":
        return done.returncode, text
    text = of_program(text)
    return done.returncode if text else 0, text


def judge(tool, name, case, expected, status, text):
    if expected == ["?"]:
        return None
    words = said(tool, name, status, text)
    # A tool may say a thing twice, of several blocks or accesses.
    if "lost" in expected:
        words = [word.replace("maybe-", "") for word in words]
    once = [word for word in dict.fromkeys(words) if word != "maybe-lost"]
    if sorted(once) != sorted(w for w in expected if w != "-"):
        return "%s: %s instead of %s; status %d, it said:\n%s" % (case, " ".join(once) or "nothing", " ".join(expected), status, text[:3000])
    if expected != ["-"] and status == 0 and tool not in ("guarded", "valgrind"):
        return "%s: was reported and ended with 0" % case
    # The stack is the program's: it leads through the function of the case.
    if tool in ("valgrind", "asan-gcc", "asan-clang") and {"read", "write", "free", "lost", "uninitialised", "poison"} & set(expected):
        if not re.search(r"\b%s\b" % case, text):
            return "%s: no call of it is in the report:\n%s" % (case, text[:3000])
    return None


def main():
    tool, path, source, headers, library = sys.argv[1:6]
    way = sys.argv[6] if len(sys.argv) > 6 else "preload"
    column = "asan" if tool.startswith("asan") else tool
    name = "mimalloc-" + column
    library = os.path.abspath(library)
    if tool == "valgrind":
        wanted("valgrind")
    with open(path) as f:
        table, _ = rows(f.read())
    cases = sys.argv[7:] or list(table)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "wrong")
        build(tool, source, os.path.dirname(os.path.abspath(headers)), program, library, way)
        known = subprocess.run([program], stdout=subprocess.PIPE, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"}).stdout.split()
        failures = []
        if sorted(known) != sorted(table):
            failures.append("wrong.c and the table differ: " + " ".join(sorted(set(known) ^ set(table))))
        with ThreadPoolExecutor(2) as pool:
            results = pool.map(lambda case: run(tool, name, program, library, way, case), cases)
            for case, (status, text) in zip(cases, results):
                failures.append(judge(tool, name, case, table[case][column], status, text))
    for failure in filter(None, failures):
        print(failure)
    sys.exit(1 if any(failures) else 0)


if __name__ == "__main__":
    main()
